package gitsource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// fetch brings the branch's head into the store and returns it, with how it relates
// to the revision in force.
func (s *Source) fetch(ctx context.Context, b *Beginning) (plumbing.Hash, ancestry, error) {
	head, err := s.bring(ctx, plumbing.ZeroHash, fetchDepth)
	if err != nil {
		return plumbing.ZeroHash, ancestry{}, err
	}
	known := s.head
	if !s.begun {
		known = b.appliedHash()
	}
	if head == s.evaluated {
		return head, ancestry{lineage: lineageSame}, nil
	}
	way := s.store.relate(known, head)
	if way.truncated {
		// The revision in force lies further back, if anywhere: only the history
		// between tells a busy day from a rewritten history.
		if head, err = s.bring(ctx, head, searchDepth); err != nil {
			return plumbing.ZeroHash, ancestry{}, err
		}
		way = s.store.relate(known, head)
	}
	if way.truncated && s.sameSource(b) {
		way, err = s.search(ctx, known, head)
	}
	return head, way, err
}

// sameSource reports whether the revision in force comes from the branch as it is
// configured. A commit that another one has too was not made for this one.
func (s *Source) sameSource(b *Beginning) bool {
	return s.cause == "" && (s.begun || b != nil && b.Applied.SameSource(s.source()))
}

// search looks for a commit further back than is fetched with all files. One that is
// not found, or a server that will not tell, counts as a rewritten history.
func (s *Source) search(ctx context.Context, known, head plumbing.Hash) (ancestry, error) {
	way, err := s.searchCommits(ctx, known, head)
	if err != nil && s.again(err) {
		return ancestry{}, fmt.Errorf("look for the revision in force: %w", err)
	}
	if err != nil {
		s.log.WarnContext(ctx, "the history between two revisions cannot be had: it counts as rewritten", "err", message(err))
		return ancestry{lineage: rewritten}, nil
	}
	s.attempts = 0
	return way, nil
}

// errHeadMoved is a branch that got another head between two requests: the next look
// finds it.
var errHeadMoved error = &failure{kind: failureNetwork, err: errors.New("the branch moved while it was read")}

func (s *Source) searchCommits(ctx context.Context, known, head plumbing.Hash) (way ancestry, err error) {
	parent := ctx
	ctx, cancel := s.remote.within(ctx)
	defer cancel()
	session, err := s.remote.uploadSession(ctx)
	if err != nil {
		return ancestry{}, err
	}
	defer closeSession(session)
	adv, now, err := s.remote.advertised(ctx, session)
	if err != nil {
		return ancestry{}, err
	}
	if !adv.Capabilities.Supports(capability.Filter) {
		closeSession(session)
		if _, err := s.bring(parent, head, wholeDepth); err != nil {
			return ancestry{}, err
		}
		return s.store.relate(known, head), nil
	}
	if now != head {
		return ancestry{}, errHeadMoved
	}
	commits, err := openStore(filepath.Join(s.opts.Dir, "commits.git"))
	if err != nil {
		return ancestry{}, err
	}
	if commits, err = commits.renewed(); err != nil {
		return ancestry{}, err
	}
	defer func() { err = errors.Join(err, commits.discard()) }()
	w := wanted{commits: []plumbing.Hash{head}, depth: commitDepth, filter: packp.FilterTreeDepth(0)}
	if err := fetchWanted(ctx, session, adv, commits, w); err != nil {
		return ancestry{}, s.remote.explain(ctx, err)
	}
	return commits.relate(known, head), nil
}

// bring opens a session, reads the branch's head and fetches it if the store does
// not hold it, or if it is the commit to deepen.
func (s *Source) bring(ctx context.Context, deepen plumbing.Hash, depth int) (plumbing.Hash, error) {
	ctx, cancel := s.remote.within(ctx)
	defer cancel()
	session, err := s.remote.uploadSession(ctx)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	defer closeSession(session)
	adv, head, err := s.remote.advertised(ctx, session)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if head != deepen && (head == s.evaluated || s.store.has(head)) {
		return head, nil
	}
	w := wanted{commits: []plumbing.Hash{head}, depth: depth}
	if adv.Capabilities.Supports(capability.Filter) {
		w.filter = filterLarge
	}
	w.have = slices.Concat(s.store.newest(s.head, fetchDepth), s.store.newest(s.evaluated, fetchDepth))
	if err := fetchWanted(ctx, session, adv, s.store, w); err != nil {
		return plumbing.ZeroHash, s.remote.explain(ctx, err)
	}
	if size, left := s.store.left[head]; left {
		return plumbing.ZeroHash, fmt.Errorf("commit %s has %d bytes, of at most %d: shorten its message", head, size, maxCommit)
	}
	if !s.store.has(head) {
		return plumbing.ZeroHash, fmt.Errorf("%w: commit %s did not arrive", errNotReadable, head)
	}
	return head, nil
}

func closeSession(c io.Closer) { _ = c.Close() }

// refetch throws the store away, fetches into a new one and returns the head.
func (s *Source) refetch(ctx context.Context, head plumbing.Hash) (plumbing.Hash, error) {
	st, err := s.store.renewed()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	s.store = st
	return s.bring(ctx, head, fetchDepth)
}

// tidy replaces a store that took many fetches by one fetched afresh. Failing to is
// put right after a later look.
func (s *Source) tidy(ctx context.Context, head plumbing.Hash) {
	if s.store.packs() <= s.keep {
		return
	}
	if err := s.replaceStore(ctx, head); err != nil {
		s.log.WarnContext(ctx, "object store grows, for it cannot be fetched afresh", "err", message(err))
	}
}

func (s *Source) replaceStore(ctx context.Context, head plumbing.Hash) error {
	fresh, err := openStore(s.store.dir + ".new")
	if err != nil {
		return err
	}
	if fresh, err = fresh.renewed(); err != nil {
		return err
	}
	old := s.store
	s.store = fresh
	if _, err := s.bring(ctx, head, fetchDepth); err != nil {
		s.store = old
		return errors.Join(err, fresh.discard())
	}
	s.store, err = old.replacedBy(fresh)
	return err
}
