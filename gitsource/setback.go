package gitsource

import (
	"context"
	"errors"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Expect names the commit that this Ingot, or the one before it with the same
// store, is known to have published last: a branch that lacks it was set back. It is
// to be called before the first Publish; "" is none.
func (b *StatusBranch) Expect(commit string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = plumbing.NewHash(commit)
}

// setBack reports whether the branch, whose head is c, written by w, lacks the commit
// that was published last: somebody set it back, or wrote its history anew. It fails
// with errMoved if the branch has another head by now.
func (b *StatusBranch) setBack(ctx context.Context, c *object.Commit, w writer) (bool, error) {
	if b.last.IsZero() || c.Hash == b.last || slices.Contains(c.ParentHashes, b.last) {
		return false, nil
	}
	var a ancestry
	cutOff := false
	err := b.fetched(ctx, fetchPlan{depth: searchDepth, filter: filterTrees}, func(s *store, head plumbing.Hash) error {
		if head != c.Hash {
			return errMoved
		}
		a = s.relate(b.last, head)
		s.visit(head, func(c *object.Commit) bool {
			cutOff = squashedFrom(c, b.last)
			return !cutOff
		})
		return nil
	})
	switch {
	case errors.Is(err, errMoved):
		return false, err
	case err == nil && (a.lineage == lineageDescends || cutOff):
		return false, nil
	case err == nil && !a.truncated:
		return true, nil
	}
	// Further back than can be seen: many commits came since, or it was set back.
	return b.lastVersion.IsZero() || !w.version.After(b.lastVersion), nil
}
