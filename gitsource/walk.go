package gitsource

import (
	"errors"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"ingot/model"
)

// maxLine is the maximum number of commits that are judged one by one.
const maxLine = 1000

// lineCommit is a commit of a first-parent line, and the approvals in it and in the commits that it merges.
type lineCommit struct {
	hash, tree plumbing.Hash
	approved   []string
}

// line returns the commits that follow old on the first-parent line of head, oldest first. There are none if
// old is not on that line, or too far back.
func (s *store) line(old, head plumbing.Hash) []lineCommit {
	line, at := s.lineUntil(head, func(h plumbing.Hash) bool { return h == old })
	if at != old {
		return nil
	}
	known, _ := s.ancestors(old)
	for i := range line {
		var approved tokens
		s.visit(line[i].hash, known, func(c *object.Commit) bool {
			approved.addOlder(c)
			known[c.Hash] = true
			return true
		})
		line[i].approved = approved.newestLast()
	}
	return line
}

// lineUntil returns the commits of a first-parent line from head back to the one to stop at, which is not
// among them, oldest first.
func (s *store) lineUntil(head plumbing.Hash, stop func(plumbing.Hash) bool) (line []lineCommit, at plumbing.Hash) {
	for at = head; !stop(at) && len(line) < maxLine; {
		c, err := s.commit(at)
		if err != nil || len(c.ParentHashes) == 0 {
			break
		}
		line = append(line, lineCommit{hash: at, tree: c.TreeHash})
		at = c.ParentHashes[0]
	}
	slices.Reverse(line)
	return line, at
}

// walker applies commits to what is in force, one by one: each is judged for itself, so that a removal and an
// addition by two people are not taken for one change.
type walker struct {
	rules
	files func(lineCommit, effective) ([]manifest, error)
	// usable reports whether a commit counts by itself; nil = each does.
	usable   func(plumbing.Hash) bool
	revision func(plumbing.Hash) model.Revision
}

var (
	errNoManifest = errors.New("no manifest")
	errUnverified = errors.New("commit without a valid signature")
)

// walk applies the commits of a line. One that cannot be used is joined with the next. It fails if the
// last one cannot be used.
func (w walker) walk(in effective, line []lineCommit, s step) (outcome, step, error) {
	in.undoable = nil
	var notes []model.Problem
	for _, c := range line[:len(line)-1] {
		s.approvals = newest(s.approvals, c.approved)
		out, err := w.apply(in, c, s)
		if s.joined = err != nil; err == nil {
			in, notes = out.effective, append(notes, out.notes...)
		}
	}
	last := line[len(line)-1]
	s.approvals = newest(s.approvals, last.approved)
	w.usable = nil // the caller has decided that
	out, err := w.apply(in, last, s)
	out.problems = slices.Concat(out.problems, notes, out.notes)
	model.SortProblems(out.problems)
	return out, s, err
}

func (w *walker) apply(in effective, c lineCommit, s step) (outcome, error) {
	if w.usable != nil && !w.usable(c.hash) {
		return outcome{}, errUnverified
	}
	files, err := w.files(c, in)
	switch {
	case err != nil:
		return outcome{}, err
	case len(files) == 0 && !in.isEmpty():
		return outcome{}, errNoManifest
	}
	s.revision = w.revision(c.hash)
	return next(in, s, diffOf(in.files, files), w.rules), nil
}
