package gitsource

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

const (
	// squashAgain is after how long a cut that did not succeed is tried again.
	squashAgain = 24 * time.Hour
	// maxKept is how many commits are kept at most, whatever their age.
	maxKept = 100_000
)

// squashWhenDue cuts off what is older than StatusOptions.Keep, once a quarter more than
// that has come together: readers that fetch meet a history written anew as seldom. It
// does so only at a head that is this Ingot's own and noted as published. What goes wrong
// is logged, and leaves the branch as it is.
func (b *StatusBranch) squashWhenDue(ctx context.Context) {
	now := b.opts.Clock()
	if ours := b.known && b.head == b.last; b.opts.Keep <= 0 || !ours || b.head.IsZero() || now.Before(b.squashAt) {
		return
	}
	due := b.opts.Keep + b.opts.Keep/4
	oldest, err := b.squash(ctx, now.Add(-b.opts.Keep), now.Add(-due))
	b.squashAt = oldest.Add(due)
	if err != nil {
		b.log.WarnContext(ctx, "the history of the status branch is not cut, this is retried in a day", "err", message(err))
	}
	if soonest := now.Add(squashAgain); b.squashAt.Before(soonest) {
		b.squashAt = soonest
	}
}

// squash cuts the history before a time, if it reaches back before another one. It returns
// of when the oldest commit is that the branch has now.
func (b *StatusBranch) squash(ctx context.Context, keep, since time.Time) (oldest time.Time, err error) {
	ctx, cancel := b.remote.within(ctx)
	defer cancel()
	var commits []keptCommit
	err = b.fetchedSince(ctx, since, func(s *store, head plumbing.Hash) error {
		if head != b.head {
			return errMoved
		}
		commits, oldest, err = s.kept(head, keep, since)
		return err
	})
	if err != nil || len(commits) == 0 {
		return oldest, err
	}
	if err := b.oldBehind(ctx, len(commits), keep); err != nil {
		return time.Time{}, err
	}
	pack, head, err := cutHistory(commits, b.head, b.signer.commit)
	if err != nil {
		return oldest, &failure{failureKey, err}
	}
	if err := b.moveAtHead(ctx, &packp.Command{Name: b.remote.ref(), Old: b.head, New: head}, pack); err != nil {
		return oldest, err
	}
	oldest = commits[len(commits)-1].at
	b.log.InfoContext(ctx, "the history of the status branch was cut", "before", oldest, "commits", len(commits), "was", b.head)
	b.head, b.last, b.seen.head, b.accepted = head, head, head, head
	return oldest, nil
}

// headMargin is how much earlier than it is known a head may have been made.
const headMargin = 10 * time.Minute

// fetchedSince is fetched for the commits since a time, without their files where the
// server can leave them out. The head is among them whenever it was made.
func (b *StatusBranch) fetchedSince(ctx context.Context, since time.Time, fn func(*store, plumbing.Hash) error) error {
	if head := b.headAt.Add(-headMargin); since.After(head) {
		since = head
	}
	return b.fetched(ctx, fetchPlan{depth: fetchDepth, filter: filterTrees, since: since}, fn)
}

// behindLooked is how many of the commits that are to be cut off are looked at.
const behindLooked = 1000

// oldBehind fails if commits to be cut off are as young as those that are kept: then the one in
// between was made while a clock was behind, and what it descends from is not as old as it says.
func (b *StatusBranch) oldBehind(ctx context.Context, kept int, keep time.Time) error {
	if kept == maxKept {
		return nil // they are cut whatever their age
	}
	return b.fetched(ctx, fetchPlan{depth: kept + behindLooked, filter: filterTrees}, func(s *store, head plumbing.Hash) error {
		if head != b.head {
			return errMoved
		}
		for h, n := head, 0; ; n++ {
			c, err := s.commit(h)
			if err != nil {
				return nil //nolint:nilerr // of a server that sends no commits alone fewer are fetched
			}
			if n >= kept && !c.Committer.When.Before(keep) {
				return fmt.Errorf("commit %s is of %s, and one that descends from it has an earlier date: the clock was behind", h, c.Committer.When.UTC().Format(time.DateOnly))
			}
			if len(c.ParentHashes) == 0 {
				return nil
			}
			h = c.ParentHashes[0]
		}
	})
}

type keptCommit struct {
	raw  []byte
	tree plumbing.Hash
	at   time.Time
}

// kept returns the commits from head on that were made since keep, the newest first; none
// if the history does not reach back before since. The time of the oldest that was seen
// comes with them.
func (s *store) kept(head plumbing.Hash, keep, since time.Time) (commits []keptCommit, oldest time.Time, err error) {
	boundary, err := s.storage.Shallow() // what is behind it is older than since
	if err != nil {
		return nil, oldest, fmt.Errorf("read shallow boundary: %w", err)
	}
	keeping := true
	for h, n := head, 0; ; n++ {
		c, err := s.commit(h)
		if err != nil {
			return nil, oldest, fmt.Errorf("read commit %s: %w", h, err)
		}
		oldest = c.Committer.When
		if keeping = keeping && (n == 0 || !oldest.Before(keep)) && n < maxKept; keeping {
			raw, err := s.content(plumbing.CommitObject, h)
			if err != nil {
				return nil, oldest, fmt.Errorf("read commit %s: %w", h, err)
			}
			commits = append(commits, keptCommit{raw, c.TreeHash, oldest})
		}
		switch {
		case len(c.ParentHashes) == 0 && (keeping || !oldest.Before(since)):
			return nil, oldest, nil // all of it is young enough
		case !keeping && (oldest.Before(since) || n > maxKept+maxKept/4), slices.Contains(boundary, h):
			return commits, oldest, nil
		}
		h = c.ParentHashes[0]
	}
}

// cutHistory writes the commits anew, without what is behind them. All else of them stays:
// trees, authors, dates and messages, but for signatures, which would be of something else:
// sign signs them anew.
// It returns the commits, and the last of them.
func cutHistory(
	commits []keptCommit, was plumbing.Hash, sign func([]byte) ([]byte, plumbing.Hash, error),
) (pack []byte, head plumbing.Hash, err error) {
	w := newPackWriter()
	for i, c := range slices.Backward(commits) {
		raw := withParent(c.raw, head)
		if i == len(commits)-1 { // the first one, which names the old head
			raw = withTrailer(raw, "Squashed: "+was.String())
		}
		if raw, head, err = sign(raw); err != nil {
			return nil, head, err
		}
		w.add(packCommit, raw)
	}
	return w.bytes(), head, nil
}

// withParent gives a commit another parent, none if that is zero, and takes its signature
// away.
func withParent(raw []byte, parent plumbing.Hash) []byte {
	header, text, _ := bytes.Cut(raw, []byte("\n\n"))
	var out bytes.Buffer
	dropped := false
	for line := range bytes.Lines(fmt.Appendln(nil, string(header))) {
		if !bytes.HasPrefix(line, []byte(" ")) { // else it goes on with the field before it
			field, _, _ := bytes.Cut(line, []byte(" "))
			switch string(field) {
			case "parent", "gpgsig", "gpgsig-sha256", "mergetag":
				dropped = true
			default:
				dropped = false
			}
		}
		if !dropped {
			out.Write(line)
		}
		if !parent.IsZero() && bytes.HasPrefix(line, []byte("tree ")) {
			fmt.Fprintf(&out, "parent %s\n", parent)
		}
	}
	out.WriteByte('\n')
	out.Write(text)
	return out.Bytes()
}

// withTrailer adds a trailer to the message of a commit.
func withTrailer(raw []byte, trailer string) []byte {
	header, text, _ := bytes.Cut(raw, []byte("\n\n"))
	separator := "\n"
	if len(Trailers(string(text))) == 0 {
		separator = "\n\n"
	}
	return fmt.Appendf(nil, "%s\n\n%s%s%s\n", header, bytes.TrimRight(text, "\n"), separator, trailer)
}

// moveAtHead asks the server once to move a ref, while the branch is where it is known to be.
func (b *StatusBranch) moveAtHead(ctx context.Context, cmd *packp.Command, pack []byte) error {
	session, err := b.remote.receiveSession(ctx)
	if err != nil {
		return err
	}
	defer closeSession(session)
	adv, head, err := b.advertised(ctx, session)
	if err != nil {
		return err
	}
	if head != b.head {
		return errMoved
	}
	said, err := b.send(ctx, session, adv.Capabilities, cmd, pack)
	if err == nil {
		return nil
	}
	b.known = false // whatever came of it: the branch is looked at before it is written
	if why := b.remote.explain(ctx, err); kindOf(why) != failureOther || unwell(err) {
		return why
	}
	return b.rejected(b.remote.tell(err.Error() + " " + said))
}
