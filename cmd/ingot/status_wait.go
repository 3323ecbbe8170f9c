package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"ingot/model"
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
	commit, err := newAwaitedCommit(ctx, c, s.Revision)
	if err != nil {
		return err
	}
	tick := time.NewTicker(s.Interval)
	defer tick.Stop()
	var unfinished error // as of the last look that was not cut short
	for said := ""; ; {
		summary, err := s.look(ctx, c)
		if err != nil && ctx.Err() != nil && unfinished != nil {
			return givenUp(ctx, unfinished)
		}
		s.quiet = true
		if err == nil && summary.Revision == "" {
			err = errNotRead
		}
		var why string
		unfinished = err
		switch {
		case err != nil:
			why = err.Error()
		case !commit.isIn(ctx, summary.Revision):
			unfinished, why = exitUnderWay, fmt.Sprintf("the daemon acts on %s, and not on %s yet", summary.Revision.Short(), commit.hash[:shortHash])
		default:
			unfinished, why = verdict(summary, s.whole()), waitsFor(summary)
		}
		if unfinished == nil {
			return s.print(c, summary, time.Now())
		}
		if why != said && ctx.Err() == nil {
			said = why
			fmt.Fprintf(c.err, "%s %s\n", time.Now().Format(time.TimeOnly), printable(why))
		}
		select {
		case <-ctx.Done():
			return givenUp(ctx, unfinished)
		case <-tick.C:
		}
	}
}

// givenUp is how waiting ends without what was waited for: at its timeout with what is unfinished.
func givenUp(ctx context.Context, unfinished error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return unfinished
	}
	return exitUnderWay
}

// awaitedCommit is a commit that is waited for; the zero value is any.
type awaitedCommit struct {
	hash  string
	clone *clone // nil = there is none, and only the commit itself is known
}

// shortHash is how many digits of a commit's hash are shown, and are enough to name it.
const shortHash = 7

// commitHash is a commit's hash, or the beginning of one that is long enough.
var commitHash = regexp.MustCompile(fmt.Sprintf("^[0-9a-f]{%d,64}$", shortHash))

// newAwaitedCommit returns the commit that a user names: by its hash, or as git in the working directory does.
func newAwaitedCommit(ctx context.Context, c *console, name string) (awaitedCommit, error) {
	if name == "" {
		return awaitedCommit{}, nil
	}
	g, err := openClone(ctx, c, ".", "origin")
	if err == nil {
		hash, unknown := g.git(ctx, "rev-parse", "--quiet", "--verify", "--end-of-options", name+"^{commit}")
		if unknown == nil {
			return awaitedCommit{hash, g}, nil
		}
		err = fmt.Errorf("the clone in the working directory has no commit %s", name)
	}
	if commitHash.MatchString(name) {
		return awaitedCommit{hash: name}, nil
	}
	return awaitedCommit{}, fmt.Errorf("--revision %s is no hash of a commit, and %w", name, err)
}

// isIn reports whether a revision is of the commit, or of one that follows it as far as the clone knows.
func (a awaitedCommit) isIn(ctx context.Context, r model.Revision) bool {
	if strings.HasPrefix(r.Commit(), a.hash) {
		return true
	}
	if a.clone == nil {
		return false
	}
	_, err := a.clone.git(ctx, "merge-base", "--is-ancestor", a.hash, r.Commit())
	return err == nil
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
		if !v.Decommissioned {
			note("server", string(v.Name), string(v.State), v.Why)
		}
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
