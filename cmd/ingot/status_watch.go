package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"ingot/model/text"
	"ingot/reconcile/report"
)

// watch shows the state of the fleet until ctx is done: drawn anew on a terminal, a document
// for each change as JSON, and a line for each change elsewhere.
func (s statusCommand) watch(ctx context.Context, c *console) error {
	summary, err := s.look(ctx, c)
	if err != nil {
		return err // what never was there is a mistake
	}
	s.quiet = true
	show := s.lines(c)
	switch {
	case c.json():
		show = documents(c)
	case c.terminal:
		show = s.screens(c)
	}
	tick := time.NewTicker(s.Interval)
	defer tick.Stop()
	for {
		show(summary, err, time.Now())
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now, failed := s.look(ctx, c)
		if ctx.Err() != nil {
			return nil
		}
		if err = failed; err == nil {
			summary = now
		}
	}
}

// show shows a summary, and why there is no newer one, if there is none.
type show func(now report.Summary, err error, at time.Time)

// screens draws each summary over the one before.
func (s statusCommand) screens(c *console) show {
	return func(now report.Summary, err error, at time.Time) {
		var drawn bytes.Buffer
		on := *c
		on.out = &drawn
		on.printf("%s\n", on.paint(fmt.Sprintf("%s, every %s", at.Format(time.TimeOnly), s.Interval), faint))
		if err != nil {
			on.printText(0, 2, printable("not so any more, perhaps: "+err.Error()), red)
		}
		printSummary(&on, now, s.Kind == "", at)
		lines := strings.Split(strings.TrimRight(drawn.String(), "\n"), "\n")
		if _, height := c.size(); len(lines) > height-1 {
			more := len(lines) - max(height-2, 1)
			lines = append(lines[:len(lines)-more], fmt.Sprintf("… %s more; a kind and a name show less", text.Plural(more, "line")))
		}
		// from the top, over what stands there, and nothing below (ECMA-48: CUP, EL, ED)
		c.printf("\x1b[H%s\x1b[K\n\x1b[J", strings.Join(lines, "\x1b[K\n"))
	}
}

// lines prints the first summary, and from then on a line for each change.
func (s statusCommand) lines(c *console) show {
	var before *report.Summary
	var said string
	return func(now report.Summary, err error, at time.Time) {
		if before == nil {
			printSummary(c, now, s.Kind == "", at)
			before = &now
		}
		if message := errorText(err); message != said {
			said = message
			c.printf("%s %s\n", at.Format(time.TimeOnly), printable(cmp.Or(message, "it answers again")))
		}
		for _, change := range append(changes(*before, now), transitionLines(*before, now)...) {
			c.printf("%s %s\n", at.Format(time.TimeOnly), printable(change))
		}
		before = &now
	}
}

// changes are the lines for what changed of the fleet as a whole.
func changes(before, now report.Summary) (lines []string) {
	if now.Revision != before.Revision {
		lines = append(lines, "revision "+string(now.Revision))
	}
	if len(now.Guard) != len(before.Guard) {
		lines = append(lines, text.Plural(len(now.Guard), "list")+" held by the guard")
	}
	if len(now.Problems) != len(before.Problems) {
		lines = append(lines, text.Plural(len(now.Problems), "problem"))
	}
	return lines
}

func transitionLines(before, now report.Summary) (lines []string) {
	for _, t := range transitions(before, now, 0) {
		lines = append(lines, fmt.Sprintf("%s %s %s", t.Kind, t.Name, t.change()))
	}
	return lines
}

// documents prints each summary that is another one as a line of JSON.
func documents(c *console) show {
	var before string
	return func(now report.Summary, _ error, _ time.Time) {
		line, err := json.Marshal(now)
		if err == nil && string(line) != before {
			before = string(line)
			c.printf("%s\n", line)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
