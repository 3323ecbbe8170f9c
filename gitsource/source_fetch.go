package gitsource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// mirror is the copy of the repository on this machine.
type mirror struct {
	remote   *remote
	dir      string // holds the stores
	log      *slog.Logger
	store    *store
	keep     int // packs in the store before all is fetched again
	attempts int // that failed in a row to find something far back
}

// fetch brings what is followed into the store and returns it, with how it relates to the
// revision in force.
func (s *Source) fetch(ctx context.Context, b *Beginning) (target, ancestry, error) {
	t, err := s.bring(ctx, s.judgement, plumbing.ZeroHash, fetchDepth)
	if err != nil {
		return target{}, ancestry{}, err
	}
	if s.decided(t) {
		return t, ancestry{lineage: lineageSame}, nil
	}
	known := s.related(b)
	way := s.store.relate(known, t.commit)
	if way.truncated {
		// The revision in force lies further back, if anywhere: only the history
		// between tells a busy day from a rewritten history.
		if t, err = s.bring(ctx, s.judgement, t.commit, searchDepth); err != nil {
			return target{}, ancestry{}, err
		}
		way = s.store.relate(known, t.commit)
	}
	if way.truncated && s.sameSource(b) {
		way, err = s.search(ctx, s.judgement, known, t)
	}
	return t, way, err
}

// sameSource reports whether the revision in force comes from the branch as it is
// configured. A commit that another one has too was not made for this one.
func (s *Source) sameSource(b *Beginning) bool {
	return s.cause == "" && (s.begun || b != nil && b.Applied.SameSource(s.source()))
}

// search looks for a commit further back than is fetched with all files. One that is
// not found, or a server that will not tell, counts as a rewritten history.
func (m *mirror) search(ctx context.Context, j judgement, known plumbing.Hash, head target) (ancestry, error) {
	way, err := m.searchCommits(ctx, j, known, head)
	if err != nil && m.again(err) {
		return ancestry{}, fmt.Errorf("look for the revision in force: %w", err)
	}
	if err != nil {
		m.log.WarnContext(ctx, "the history between two revisions is not available: it counts as rewritten", "err", message(err))
		return ancestry{lineage: rewritten, unclear: true}, nil
	}
	m.attempts = 0
	return way, nil
}

// errHeadMoved is a branch that got another head between two requests: the next look
// finds it.
var errHeadMoved error = &failure{kind: failureNetwork, err: errors.New("the branch moved while it was read")}

func (m *mirror) searchCommits(ctx context.Context, j judgement, known plumbing.Hash, head target) (way ancestry, err error) {
	parent := ctx
	ctx, cancel := m.remote.within(ctx)
	defer cancel()
	session, err := m.remote.uploadSession(ctx)
	if err != nil {
		return ancestry{}, err
	}
	defer closeSession(session)
	adv, now, err := m.remote.resolved(ctx, session)
	if err != nil {
		return ancestry{}, err
	}
	if !adv.Capabilities.Supports(capability.Filter) {
		closeSession(session)
		if _, err := m.bring(parent, j, head.commit, wholeDepth); err != nil {
			return ancestry{}, err
		}
		return m.store.relate(known, head.commit), nil
	}
	if now != head {
		return ancestry{}, errHeadMoved
	}
	commits, err := openStore(filepath.Join(m.dir, "commits.git"))
	if err != nil {
		return ancestry{}, err
	}
	if commits, err = commits.renewed(); err != nil {
		return ancestry{}, err
	}
	defer func() { err = errors.Join(err, commits.discard()) }()
	w := wanted{commits: []plumbing.Hash{head.object()}, depth: commitDepth, filter: packp.FilterTreeDepth(0)}
	if err := fetchWanted(ctx, session, adv, commits, w); err != nil {
		return ancestry{}, m.remote.explain(ctx, err)
	}
	return relate(m.store, known, commits, head.commit), nil
}

// bring opens a session, reads what is followed and fetches it if the store does not hold
// it, or if its commit is the one to deepen.
func (m *mirror) bring(ctx context.Context, j judgement, deepen plumbing.Hash, depth int) (target, error) {
	ctx, cancel := m.remote.within(ctx)
	defer cancel()
	session, err := m.remote.uploadSession(ctx)
	if err != nil {
		return target{}, err
	}
	defer closeSession(session)
	adv, t, err := m.remote.resolved(ctx, session)
	if err != nil {
		return target{}, err
	}
	if t.commit != deepen && (j.decided(t) || m.store.holds(t)) {
		return t, nil
	}
	w := wanted{commits: []plumbing.Hash{t.object()}, depth: depth}
	if adv.Capabilities.Supports(capability.Filter) {
		w.filter = filterLarge
	}
	w.have = slices.Concat(m.store.newest(j.head, fetchDepth), m.store.newest(j.evaluated, fetchDepth))
	if err := fetchWanted(ctx, session, adv, m.store, w); err != nil {
		return target{}, m.remote.explain(ctx, err)
	}
	if size, left := m.store.left[t.commit]; left {
		return target{}, fmt.Errorf("commit %s has %d bytes, of at most %d: shorten its message", t.commit, size, maxCommit)
	}
	other, err := m.store.storage.EncodedObject(plumbing.AnyObject, t.commit)
	switch {
	case m.store.holds(t):
		return t, nil
	case err == nil && other.Type() != plumbing.CommitObject:
		return target{}, &failure{failureBranch, fmt.Errorf("%s is a %s, not a commit", t.revision(), other.Type())}
	}
	return target{}, fmt.Errorf("%w: commit %s did not arrive", errNotReadable, t.commit)
}

func closeSession(c io.Closer) { _ = c.Close() }

// refetch throws the store away, fetches into a new one and returns the head.
func (m *mirror) refetch(ctx context.Context, j judgement, head plumbing.Hash) (plumbing.Hash, error) {
	st, err := m.store.renewed()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	m.store = st
	t, err := m.bring(ctx, j, head, fetchDepth)
	return t.commit, err
}

// tidy replaces a store that took many fetches by one fetched afresh. Failing to is
// put right after a later look.
func (m *mirror) tidy(ctx context.Context, j judgement, head plumbing.Hash) {
	if m.store.packs() <= m.keep {
		return
	}
	if err := m.replaceStore(ctx, j, head); err != nil {
		m.log.WarnContext(ctx, "object store grows, because it cannot be fetched again", "err", message(err))
	}
}

func (m *mirror) replaceStore(ctx context.Context, j judgement, head plumbing.Hash) error {
	fresh, err := openStore(m.store.dir + ".new")
	if err != nil {
		return err
	}
	if fresh, err = fresh.renewed(); err != nil {
		return err
	}
	old := m.store
	m.store = fresh
	if _, err := m.bring(ctx, j, head, fetchDepth); err != nil {
		m.store = old
		return errors.Join(err, fresh.discard())
	}
	m.store, err = old.replacedBy(fresh)
	return err
}
