package gitsource

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"

	"ingot/model"
)

// Beginning is what the records say of the watched branch. The folder of the Source
// is but a cache: what is in force and what was removed follows from this.
type Beginning struct {
	// Applied is the revision last planned with; zero = none ever was.
	Applied model.Applied
	// Absent is what was listed with it, AbsentToken what approves it all.
	Absent      []model.Absence
	AbsentToken string
	// Tips are the other revisions that were in force, see model.FleetRecord.
	Tips []string
	// Bound are the objects that records depend on, bound claims above all. One that
	// Git lacks is listed as absent: what is recorded as removed does not belong here,
	// nor do claims that their servers are being taken from, nor Servers that came to be by
	// discovery alone.
	Bound []model.Identity
	// Owners are the tenants whose those are, as far as the records say.
	Owners map[model.Identity]string
	// Removed are the objects that a commit took away, and whose removal is being acted upon.
	Removed map[model.Identity][]model.Removal
}

// BeginningOf is what records say of the watched branch.
func BeginningOf(observed *model.Observed) Beginning {
	b := Beginning{
		Applied: observed.Fleet.Applied, Absent: observed.Fleet.Absent, AbsentToken: observed.Fleet.AbsentToken, Tips: observed.Fleet.Tips,
		Owners: make(map[model.Identity]string), Removed: make(map[model.Identity][]model.Removal),
	}
	remove := func(id model.Identity, r model.Removal) {
		b.Removed[id] = append(without(b.Removed[id], r.Tenant), r)
	}
	for _, r := range observed.Fleet.Removed {
		remove(r.Identity, r.Removal)
	}
	needed := make(map[model.Identity]bool)
	need := func(id model.Identity, tenant string) bool {
		removed := slices.ContainsFunc(b.Removed[id], func(r model.Removal) bool { return r.IsOf(tenant) })
		if removed || needed[id] {
			return false
		}
		needed[id] = true
		b.Bound = append(b.Bound, id)
		return true
	}
	names := slices.Sorted(maps.Keys(observed.Servers))
	for _, name := range names {
		rec := observed.Servers[name]
		if id := rec.Claim.Name.Identity(); rec.Claim.Name != "" && !rec.ReleaseDecided() && need(id, rec.Claim.Tenant) {
			b.Owners[id] = rec.Claim.Tenant
		}
		switch by := rec.Maintenance.By; by {
		case "":
		case model.OperationPark:
			need(rec.Name.Identity(), "")
		default:
			need(model.MaintenanceIdentity(by), "")
		}
	}
	for _, name := range names {
		rec := observed.Servers[name]
		if id := rec.Claim.Name.Identity(); rec.Claim.Name != "" && rec.ReleaseDecided() && !needed[id] {
			remove(id, removalOf(rec))
		}
	}
	return b
}

// removalOf is the commit that took away the claim of a server which is taken from it, as far as its
// record says.
func removalOf(rec *model.ServerRecord) model.Removal {
	r := model.Removal{Tenant: rec.Claim.Tenant}
	if rec.Release != nil {
		r.Revision, r.At = rec.Release.Revision, rec.Release.At
	}
	return r
}

// Begin hands over what the records say. Until then revisions are fetched, and none
// is judged. Only the first call counts.
func (s *Source) Begin(b Beginning) {
	if s.beginning.CompareAndSwap(nil, &b) {
		s.Wake()
	}
}

// source is where the watched branch comes from.
func (s *Source) source() model.Applied {
	return model.Applied{URL: model.CanonicalURL(s.opts.URL), Branch: s.opts.Branch, Path: s.opts.Path}
}

// appliedHash is the commit that was applied, zero if there is none.
func (b *Beginning) appliedHash() plumbing.Hash {
	if b == nil || !plumbing.IsHash(b.Applied.Commit) {
		return plumbing.ZeroHash
	}
	return plumbing.NewHash(b.Applied.Commit)
}

// beginCached puts the revision applied in force if the store holds it. A store that
// does not is of no use, or damaged.
func (s *Source) beginCached(b *Beginning) error {
	switch {
	case s.begun:
		return nil
	case b.appliedHash().IsZero():
		s.beginUnknown(b)
		return nil
	case s.trustApplied(b.Applied).problem != "":
		return nil // what is fetched decides
	case s.beginAt(b) == nil:
		return nil
	}
	st, err := s.store.renewed()
	if err != nil {
		return err
	}
	s.store = st
	return nil
}

// beginLate is for a store that did not hold the revision applied before the fetch, or
// could not verify it. Nothing begins where it is not vouched for.
func (s *Source) beginLate(ctx context.Context, b *Beginning, t target, way ancestry) error {
	if s.begun {
		return nil
	}
	if s.opts.Verify.on() {
		if err := s.obtainMissing(ctx, b, way); err != nil {
			return err
		}
		switch vouched, named := s.vouched(b, t, way); {
		case named:
			s.beginUnknown(b)
			return nil
		case !vouched:
			return nil
		}
	}
	if s.beginAt(b) == nil {
		return nil
	}
	switch err := s.obtain(ctx, s.judgement, b, way); {
	case err != nil && s.again(err):
		return fmt.Errorf("look for the revision applied: %w", err)
	case err == nil && s.beginAt(b) == nil:
		return nil
	}
	if c, err := s.store.commit(t.commit); err == nil && s.replays(c, way, b.Applied) {
		s.target = t
		s.verdict = model.SourceState{Observed: t.revision(), Reason: model.SourceOlder, Message: s.olderText(way, b.Applied.Revision())}
		s.announce(s.verdict)
		return nil
	}
	s.log.Warn("the revision applied cannot be had any more: what depends on it and is not in Git stays until it is approved",
		"revision", b.Applied.Revision())
	s.beginUnknown(b)
	return nil
}

// obtainMissing obtains the revision applied where the store lacks it, if it can be had.
func (s *Source) obtainMissing(ctx context.Context, b *Beginning, way ancestry) error {
	if s.store.has(b.appliedHash()) {
		return nil
	}
	if err := s.obtain(ctx, s.judgement, b, way); err != nil && s.again(err) {
		return fmt.Errorf("look for the revision applied: %w", err)
	}
	return nil
}

// beginAt puts the revision applied in force, with what was held and listed then.
func (s *Source) beginAt(b *Beginning) error {
	head := b.appliedHash()
	c, err := s.store.commit(head)
	if err != nil {
		return err
	}
	path := b.Applied.Path
	if path == "" {
		path = "."
	}
	held := s.state.held(b.Applied, s.reader.parse)
	files, err := s.reader.read(s.store, c.TreeHash, path, effective{objects: held})
	s.store.forget()
	if err != nil && !errors.Is(err, errPathMissing) {
		return err
	}
	s.begun = true
	s.tips = tipsOf(b.Tips)
	s.cause = ""
	s.evaluated = head
	if !b.Applied.SameSource(s.source()) {
		s.cause, s.evaluated = model.AbsentSourceChanged, plumbing.ZeroHash
	}
	s.approvals = newest(s.store.approvals(c, nil))
	if s.state.head() == b.Applied {
		s.approvals = newest(s.state.Approvals, s.approvals)
	}
	out := next(baseEffective(*b, held, files), step{
		lineage: lineageSame, revision: b.Applied.Revision(), at: s.opts.Clock(), approvals: s.approvals,
	}, diffOf(nil, files), s.walker().rules)
	s.head, s.at, s.anchor, s.effective = head, b.Applied, b.Applied, out.effective
	s.trust = s.trustApplied(b.Applied)
	s.signer = s.trust.signer
	known, _ := s.state.verified(b.Applied)
	s.target = target{name: b.Applied.Revision().Name(), commit: head, tag: plumbing.NewHash(known.Tag)}
	s.verdict = model.SourceState{Observed: b.Applied.Revision()}
	s.takeOver(out, true)
	s.log.Info("revision restored", "revision", b.Applied.Revision())
	return nil
}

// beginUnknown begins where nothing was applied, or nobody knows what.
func (s *Source) beginUnknown(b *Beginning) {
	s.begun, s.anchor, s.tips = true, b.Applied, tipsOf(b.Tips)
	s.effective = baseEffective(*b, s.state.held(b.Applied, s.reader.parse), nil)
	if !b.Applied.IsZero() || !s.effective.isEmpty() {
		s.cause = model.AbsentAppliedUnknown
	}
}

// baseEffective is what the records and the cache know to be in force beside the files
// of the revision applied.
func baseEffective(b Beginning, lastGood objectsInForce, files []manifest) effective {
	f := newEffective()
	f.token = b.AbsentToken
	maps.Copy(f.removed, b.Removed)
	was := formers(b.Owners, files)
	seed := func(id model.Identity) {
		p, ok := lastGood[id]
		if !ok {
			p = located{lastGood: true, rare: &rarely{since: b.Applied.Revision(), tenant: b.Owners[id], previous: was[id]}}
		}
		f.objects[id] = p
	}
	for _, id := range b.Bound {
		seed(id)
	}
	for _, e := range b.Absent {
		f.absent[e.Identity] = e
		_, cached := lastGood[e.Identity]
		if cached || e.Blob == "" || claiming(e.Identity.Kind) {
			seed(e.Identity)
		}
	}
	faulty, vacant, defined := make(map[string]bool), make(map[string]bool), make(map[model.Identity]bool)
	for _, file := range files {
		faulty[file.path], vacant[file.path] = file.hides(), file.vacant != ""
		for _, o := range file.objects {
			defined[o.Identity()] = true
		}
	}
	hidesAny := slices.ContainsFunc(files, manifest.hides)
	for id, p := range lastGood {
		behind := slices.ContainsFunc(p.suspects(), func(file string) bool {
			_, found := above(func(path string) bool { return faulty[path] }, file)
			return found || vacant[file] || file == anywhere && hidesAny
		})
		if behind || defined[id] {
			seed(id)
		}
	}
	return f
}

// formers are the objects that stand below the paths of those whose they are by the
// records, each if it stands there once.
func formers(owners map[model.Identity]string, files []manifest) map[model.Identity]*previousLocation {
	found, often := make(map[model.Identity]*previousLocation), make(map[model.Identity]bool)
	for _, file := range files {
		for _, o := range file.objects {
			id := o.Identity()
			if owner := owners[id]; owner == "" || (model.Tenants{{Path: owner}}).Of(file.path) == nil {
				continue
			}
			often[id] = found[id] != nil
			found[id] = &previousLocation{object: o, path: file.path}
		}
	}
	maps.DeleteFunc(found, func(id model.Identity, _ *previousLocation) bool { return often[id] })
	return found
}

// obtain fetches the commit that was applied: by its name where the server allows it,
// else from the branch it was on, else from far back.
func (m *mirror) obtain(ctx context.Context, j judgement, b *Beginning, way ancestry) error {
	parent := ctx
	ctx, cancel := m.remote.within(ctx)
	defer cancel()
	session, err := m.remote.uploadSession(ctx)
	if err != nil {
		return err
	}
	defer closeSession(session)
	adv, t, err := m.remote.resolved(ctx, session)
	if err != nil {
		return err
	}
	applied := b.appliedHash()
	w := wanted{commits: []plumbing.Hash{applied}, depth: 1}
	tag := plumbing.NewTagReferenceName(b.Applied.Ref).String()
	old, exists := adv.References[plumbing.NewBranchReferenceName(b.Applied.Branch).String()]
	switch {
	case given(adv, applied):
	case adv.Peeled[tag] == applied:
		w.commits = []plumbing.Hash{adv.References[tag]}
	case exists && b.Applied.Branch != m.remote.follows.Branch:
		w = wanted{commits: []plumbing.Hash{old}, depth: searchDepth}
	case way.lineage == lineageDescends:
		closeSession(session)
		_, err := m.bring(parent, j, t.commit, wholeDepth)
		return err
	default:
		return fmt.Errorf("the server does not give commit %s", applied)
	}
	w.have = m.store.newest(j.head, fetchDepth)
	return m.remote.explained(ctx, fetchWanted(ctx, session, adv, m.store, w))
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

// again reports whether an attempt that failed is to be repeated before its question
// counts as one that nobody can answer.
func (m *mirror) again(err error) bool {
	switch kind := kindOf(err); {
	case kind != failureOther, unwell(err):
		m.attempts++
	default:
		m.attempts = maxAttempts
	}
	if m.attempts < maxAttempts {
		return true
	}
	m.attempts = 0
	return false
}

// maxAttempts is how often something is looked for in the repository that the server
// fails to give.
const maxAttempts = 3
