package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"ingot/model/text"
	"ingot/reconcile/report"
)

// errNotRead is why a daemon that has just started is waited for.
var errNotRead = errors.New("the daemon has not read the repository yet")

// wait looks every interval until all that was asked for is as Git says, and prints it. What it
// waits for goes to standard error, once for each change.
func (s statusCommand) wait(ctx context.Context, c *console) error {
	if s.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.Timeout)
		defer cancel()
	}
	tick := time.NewTicker(s.Interval)
	defer tick.Stop()
	for said := ""; ; {
		summary, err := s.look(ctx, c)
		s.quiet = true
		if err == nil && summary.Revision == "" {
			err = errNotRead
		}
		unfinished := err
		if err == nil {
			unfinished = verdict(summary, s.whole())
		}
		if unfinished == nil {
			return s.print(c, summary, time.Now())
		}
		if why := cmp.Or(errorText(err), waitsFor(summary)); why != said && ctx.Err() == nil {
			said = why
			fmt.Fprintf(c.err, "%s %s\n", time.Now().Format(time.TimeOnly), printable(why))
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return unfinished
			}
			return exitUnderWay
		case <-tick.C:
		}
	}
}

// waitsFor says in a line what is not as Git says: the first object of those that wait.
func waitsFor(s report.Summary) string {
	var lines []string
	note := func(kind, name, state, why string) {
		if why != "" {
			lines = append(lines, fmt.Sprintf("%s %s is %s: %s", kind, name, state, why))
		}
	}
	for _, v := range s.Claims {
		note("claim", string(v.Name), string(v.State), v.Why)
	}
	for _, v := range s.Servers {
		note("server", string(v.Name), string(v.State), v.Why)
	}
	for _, v := range s.BMCs {
		note("BMC", string(v.Name), v.State, v.Why)
	}
	switch len(lines) {
	case 0:
		return "somebody has to act, see ingot status"
	case 1:
		return lines[0]
	}
	return fmt.Sprintf("%s; %s more", lines[0], text.Plural(len(lines)-1, "object"))
}
