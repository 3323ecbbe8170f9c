package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/report"
)

// errNotRead is why a daemon that has just started is waited for.
var errNotRead = errors.New("the daemon has not read the repository yet")

// wait watches until everything that was asked for is as Git says, and prints it. Each change of the
// reason for waiting goes to standard error.
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
	watching, finish := context.WithCancel(ctx)
	defer finish()
	v := &statusView{statusCommand: s, c: c}
	var unfinished error // as of the last complete look
	said := ""
	show := func(err error, at time.Time) {
		var why string
		if why, unfinished = v.unfinished(ctx, err, commit); unfinished == nil && v.updated {
			why, unfinished = v.unfinished(ctx, v.look(ctx, nil), commit)
		}
		if unfinished == nil {
			finish()
		} else if why != said && ctx.Err() == nil {
			said = why
			fmt.Fprintf(c.err, "%s %s\n", at.Format(time.TimeOnly), printable(why))
		}
	}
	s.watchFlags.watch(watching, v.view(watching, show), v.look(ctx, nil))
	if unfinished == nil {
		return s.print(c, v.docs, time.Now())
	}
	return givenUp(ctx, unfinished)
}

// unfinished returns why the command still waits, and the error with which it ends now; nil if nothing
// is waited for. Err is that of the last look.
func (v *statusView) unfinished(ctx context.Context, err error, commit awaitedCommit) (why string, end error) {
	if err = cmp.Or(err, v.missing); err == nil && v.docs.Fleet.Applied == "" {
		err = errNotRead
	}
	if err != nil {
		return err.Error(), err
	}
	applied := v.docs.Fleet.Applied
	if hash := commit.hashFor(ctx, applied); !commit.isIn(ctx, hash, applied) {
		return fmt.Sprintf("the daemon acts on %s, and not on %s yet", applied.Short(), hash[:shortHash]), exitUnderWay
	}
	return waitsFor(v.docs), verdict(v.docs, v.whole())
}

// givenUp is how waiting ends without what was waited for: at its timeout with what is unfinished.
func givenUp(ctx context.Context, unfinished error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return unfinished
	}
	return exitUnderWay
}

// awaitedCommit is a commit that is waited for.
type awaitedCommit struct {
	hash  string // "" = what the clone pushed or fetched last
	clone *clone // nil = there is none, and only the commit itself is known
}

// shortHash is how many digits of a commit's hash are shown, and are enough to name it.
const shortHash = 7

// commitHash is a commit's hash, or the beginning of one that is long enough.
var commitHash = regexp.MustCompile(fmt.Sprintf("^[0-9a-f]{%d,64}$", shortHash))

// newAwaitedCommit returns the commit that a user names: by its hash, or as git in the working directory does.
func newAwaitedCommit(ctx context.Context, c *console, name string) (awaitedCommit, error) {
	g, err := openClone(ctx, c, ".", "origin")
	if name == "" {
		return awaitedCommit{clone: g}, nil
	}
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

// hashFor returns the hash of the commit: without a name, that of the branch that the daemon watches, as the clone pushed or
// fetched it last. It is "" in a clone without the commit that the daemon acts on: it is of another repository, or older.
func (a awaitedCommit) hashFor(ctx context.Context, r model.Revision) string {
	if a.hash != "" || a.clone == nil || !a.clone.has(ctx, r.Commit()+"^{commit}") {
		return a.hash
	}
	branch, _, _ := strings.Cut(string(r), "@")
	hash, _ := a.clone.git(ctx, "rev-parse", "--quiet", "--verify", "refs/remotes/origin/"+branch)
	return hash
}

// isIn reports whether a revision is of a commit, or of one that follows it as far as the clone knows.
func (a awaitedCommit) isIn(ctx context.Context, hash string, r model.Revision) bool {
	if strings.HasPrefix(r.Commit(), hash) {
		return true
	}
	if a.clone == nil {
		return false
	}
	_, err := a.clone.git(ctx, "merge-base", "--is-ancestor", hash, r.Commit())
	return err == nil
}

// waitsFor names the first object that waits, claims before servers and BMCs.
func waitsFor(docs *report.Documents) string {
	var first string
	more := -1
	for _, d := range slices.Concat(docs.ClaimsInGit(), docs.List(report.Servers), docs.List(report.BMCs)) {
		o := d.Overview()
		if len(o.Waiting) == 0 || o.First().Reason == model.ReasonDecommissioned {
			continue
		}
		if more++; first == "" {
			first = fmt.Sprintf("%s %s is %s: %s", d.Folder().Noun(), d.Name(), o.Summary.State, waitingText(o.First()))
		}
	}
	switch {
	case more < 0:
		return "action is needed, see ingot status"
	case more == 0:
		return first
	}
	return fmt.Sprintf("%s; %s more", first, text.Plural(more, "object"))
}
