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

// fetch brings what is followed into the store and returns it, with how it relates to the
// revision in force.
func (s *Source) fetch(ctx context.Context, b *Beginning) (target, ancestry, error) {
	t, err := s.bring(ctx, plumbing.ZeroHash, fetchDepth)
	if err != nil {
		return target{}, ancestry{}, err
	}
	if s.judged(t) {
		return t, ancestry{lineage: lineageSame}, nil
	}
	known := s.related(b)
	way := s.store.relate(known, t.commit)
	if way.truncated {
		// The revision in force lies further back, if anywhere: only the history
		// between tells a busy day from a rewritten history.
		if t, err = s.bring(ctx, t.commit, searchDepth); err != nil {
			return target{}, ancestry{}, err
		}
		way = s.store.relate(known, t.commit)
	}
	if way.truncated && s.sameSource(b) {
		way, err = s.search(ctx, known, t)
	}
	return t, way, err
}

// judged reports whether t is what was judged last.
func (s *Source) judged(t target) bool { return t.commit == s.evaluated && t == s.target }

// sameSource reports whether the revision in force comes from the branch as it is
// configured. A commit that another one has too was not made for this one.
func (s *Source) sameSource(b *Beginning) bool {
	return s.cause == "" && (s.begun || b != nil && b.Applied.SameSource(s.source()))
}

// search looks for a commit further back than is fetched with all files. One that is
// not found, or a server that will not tell, counts as a rewritten history.
func (s *Source) search(ctx context.Context, known plumbing.Hash, head target) (ancestry, error) {
	way, err := s.searchCommits(ctx, known, head)
	if err != nil && s.again(err) {
		return ancestry{}, fmt.Errorf("look for the revision in force: %w", err)
	}
	if err != nil {
		s.log.WarnContext(ctx, "the history between two revisions is not available: it counts as rewritten", "err", message(err))
		return ancestry{lineage: rewritten, unclear: true}, nil
	}
	s.attempts = 0
	return way, nil
}

// errHeadMoved is a branch that got another head between two requests: the next look
// finds it.
var errHeadMoved error = &failure{kind: failureNetwork, err: errors.New("the branch moved while it was read")}

func (s *Source) searchCommits(ctx context.Context, known plumbing.Hash, head target) (way ancestry, err error) {
	parent := ctx
	ctx, cancel := s.remote.within(ctx)
	defer cancel()
	session, err := s.remote.uploadSession(ctx)
	if err != nil {
		return ancestry{}, err
	}
	defer closeSession(session)
	adv, now, err := s.remote.resolved(ctx, session)
	if err != nil {
		return ancestry{}, err
	}
	if !adv.Capabilities.Supports(capability.Filter) {
		closeSession(session)
		if _, err := s.bring(parent, head.commit, wholeDepth); err != nil {
			return ancestry{}, err
		}
		return s.store.relate(known, head.commit), nil
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
	w := wanted{commits: []plumbing.Hash{head.object()}, depth: commitDepth, filter: packp.FilterTreeDepth(0)}
	if err := fetchWanted(ctx, session, adv, commits, w); err != nil {
		return ancestry{}, s.remote.explain(ctx, err)
	}
	return relate(s.store, known, commits, head.commit), nil
}

// bring opens a session, reads what is followed and fetches it if the store does not hold
// it, or if its commit is the one to deepen.
func (s *Source) bring(ctx context.Context, deepen plumbing.Hash, depth int) (target, error) {
	ctx, cancel := s.remote.within(ctx)
	defer cancel()
	session, err := s.remote.uploadSession(ctx)
	if err != nil {
		return target{}, err
	}
	defer closeSession(session)
	adv, t, err := s.remote.resolved(ctx, session)
	if err != nil {
		return target{}, err
	}
	if t.commit != deepen && (s.judged(t) || s.store.holds(t)) {
		return t, nil
	}
	w := wanted{commits: []plumbing.Hash{t.object()}, depth: depth}
	if adv.Capabilities.Supports(capability.Filter) {
		w.filter = filterLarge
	}
	if t.name == commitName && !given(adv, t.commit) {
		// The server gives no commit by its name: it lies behind a branch, if anywhere.
		if w.commits, w.depth = branchHeads(adv), wholeDepth; len(w.commits) == 0 {
			return target{}, notThere(t.commit)
		}
	}
	w.have = slices.Concat(s.store.newest(s.head, fetchDepth), s.store.newest(s.evaluated, fetchDepth))
	if err := fetchWanted(ctx, session, adv, s.store, w); err != nil {
		return target{}, s.remote.explain(ctx, err)
	}
	if size, left := s.store.left[t.commit]; left {
		return target{}, fmt.Errorf("commit %s has %d bytes, of at most %d: shorten its message", t.commit, size, maxCommit)
	}
	other, err := s.store.storage.EncodedObject(plumbing.AnyObject, t.commit)
	switch {
	case s.store.holds(t):
		return t, nil
	case err == nil && other.Type() != plumbing.CommitObject:
		return target{}, &failure{failureBranch, fmt.Errorf("%s is a %s, not a commit", t.revision(), other.Type())}
	case t.name == commitName:
		return target{}, notThere(t.commit)
	}
	return target{}, fmt.Errorf("%w: commit %s did not arrive", errNotReadable, t.commit)
}

// given reports whether the server gives the commit when asked for it by name.
func given(adv *packp.AdvRefs, commit plumbing.Hash) bool {
	for _, tip := range adv.References {
		if tip == commit {
			return true
		}
	}
	return adv.Capabilities.Supports(capability.AllowReachableSHA1InWant) || adv.Capabilities.Supports(capability.AllowTipSHA1InWant)
}

// maxBranches is behind how many branches a commit is looked for.
const maxBranches = 100

// branchHeads are the heads of the branches.
func branchHeads(adv *packp.AdvRefs) []plumbing.Hash {
	var out []plumbing.Hash
	for _, name := range refNames(adv, "refs/heads/") {
		if tip := adv.References["refs/heads/"+name]; len(out) < maxBranches && !slices.Contains(out, tip) {
			out = append(out, tip)
		}
	}
	return out
}

func notThere(commit plumbing.Hash) error {
	return &failure{failureBranch, fmt.Errorf("commit %s is not in the repository, or further back than %d commits behind its branches: "+
		"correct git.commit, or put a tag on it", commit, wholeDepth)}
}

func closeSession(c io.Closer) { _ = c.Close() }

// refetch throws the store away, fetches into a new one and returns the head.
func (s *Source) refetch(ctx context.Context, head plumbing.Hash) (plumbing.Hash, error) {
	st, err := s.store.renewed()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	s.store = st
	t, err := s.bring(ctx, head, fetchDepth)
	return t.commit, err
}

// tidy replaces a store that took many fetches by one fetched afresh. Failing to is
// put right after a later look.
func (s *Source) tidy(ctx context.Context, head plumbing.Hash) {
	if s.store.packs() <= s.keep {
		return
	}
	if err := s.replaceStore(ctx, head); err != nil {
		s.log.WarnContext(ctx, "object store grows, because it cannot be fetched again", "err", message(err))
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
