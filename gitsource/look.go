package gitsource

import (
	"context"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"ingot/model"
)

// Sighting is the status branch as it looks from outside.
type Sighting struct {
	Head string // the branch's newest commit, "" if there is no branch
	// Fence and Holder are of the Ingot that wrote it last.
	Fence  uint64
	Holder model.Holder
	// Challenger is the ID of another Ingot that asks whether the one that writes the
	// branch is alive, and has no answer yet; "" is none.
	Challenger string
}

// sighted is who was found to have written a head of the branch.
type sighted struct {
	head   plumbing.Hash
	writer writer
	// ingot is set when the commit itself is an Ingot's, not one that a person put on
	// top of it.
	ingot bool
}

// Look sees who writes the branch, and whether somebody challenges that. It is one
// request for the list of refs, and more only when there is something new.
func (b *StatusBranch) Look(ctx context.Context) (Sighting, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ctx, cancel := b.remote.within(ctx)
	defer cancel()
	s, err := b.look(ctx)
	if err != nil {
		return Sighting{}, b.postponed(fmt.Errorf("look at branch %s: %w", b.opts.Branch, err))
	}
	return s, nil
}

func (b *StatusBranch) look(ctx context.Context) (Sighting, error) {
	head, commits, err := b.newCommits(ctx)
	if err != nil {
		return Sighting{}, err
	}
	b.known = b.known && head == b.head
	if head.IsZero() {
		return Sighting{Challenger: b.challenge.open()}, nil
	}
	if head != b.sighted.head {
		w := trailerWriter(commits[head].Message)
		ingot := w.holder.ID != ""
		if w.fence == 0 || w.outranks(b.highest.fence, b.highest.holder.ID) {
			if w, err = b.whole(ctx, head); err != nil {
				return Sighting{}, err
			}
		}
		b.sighted = sighted{head, w, ingot}
		b.highest = b.highest.later(w)
	}
	w := b.sighted.writer
	return Sighting{head.String(), w.fence, w.holder, b.challenge.open()}, nil
}

// newCommits returns the branch's head, and those commits of the head and of the
// challenges that are not known yet. It notes what the challenges say.
func (b *StatusBranch) newCommits(ctx context.Context) (plumbing.Hash, map[plumbing.Hash]*object.Commit, error) {
	session, err := b.remote.uploadSession(ctx)
	if err != nil {
		return plumbing.ZeroHash, nil, err
	}
	defer closeSession(session)
	adv, head, err := b.advertised(ctx, session)
	if err != nil {
		return plumbing.ZeroHash, nil, err
	}
	want := b.challenge.unknown(adv)
	if !head.IsZero() && head != b.sighted.head {
		want = append(want, head)
	}
	if len(want) == 0 {
		return head, nil, nil
	}
	commits := make(map[plumbing.Hash]*object.Commit)
	err = b.unpacked(ctx, session, adv, shallow(filterTrees), want, func(s *store) error {
		for _, h := range want {
			c, err := s.commit(h)
			if err != nil {
				return fmt.Errorf("read commit %s: %w", h, err)
			}
			commits[h] = c
		}
		return nil
	})
	if err != nil {
		return plumbing.ZeroHash, nil, err
	}
	b.challenge.learn(adv, commits)
	return head, commits, nil
}

// whole looks into the files of the head for what its trailers leave out: who wrote it,
// if a person put a commit on top, or on which host.
func (b *StatusBranch) whole(ctx context.Context, head plumbing.Hash) (w writer, err error) {
	err = b.fetched(ctx, shallow(filterLarge), func(s *store, at plumbing.Hash) error {
		if at != head {
			return errMoved
		}
		c, err := s.commit(head)
		if err != nil {
			return fmt.Errorf("read commit %s: %w", head, err)
		}
		files, _ := listing(s, c.TreeHash, make(map[string]error))
		w = s.writerOf(c, files)
		return nil
	})
	return w, err
}
