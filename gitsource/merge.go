package gitsource

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"go.yaml.in/yaml/v3"

	"ingot/gitsource/sops"
	"ingot/model"
)

// MergeOptions say what is merged into what.
type MergeOptions struct {
	Base, Head string // commits
	// Source is the URL, the branch and the path that Ingot watches.
	Source  model.Applied
	Tenants model.Tenants
	// AllowPlaintextSecrets takes secrets that stand in plain text.
	AllowPlaintextSecrets bool
	Checker               model.CrossChecker
	// Boots is that of Checks.
	Boots func(*model.Desired) []model.Problem
	// Open decrypts files; nil compares them as they are.
	Open func([]*yaml.Node) (model.Opened, *model.OpenError)
	// Beginning is what the records say, see Begin.
	Beginning Beginning
	// LastGood are the objects that were in force with the revision applied as they had been before.
	LastGood []model.LastGood
	Now      time.Time
}

// Merged is what is in force before and after a merge.
type Merged struct {
	Base, Head *model.Desired
	// OneByOne is Head if the commits are applied one after the other, as after a rebase or a fast-forward;
	// nil if there is only one.
	OneByOne *model.Desired
	// Since is the commit that both come from. Contained is set when the base has all of the
	// head already.
	Since     string
	Contained bool
	// Behind is set when Ingot has not acted yet upon all that the base says.
	Behind bool
	// Approves is what the commits that the merge brings approve, newest last.
	Approves []string
}

// MissingError is history that a clone lacks.
type MissingError struct {
	What string // the commit, and whose it is
	// Applied is set for the revision that Ingot acted upon last.
	Applied bool
}

// Error implements error.
func (e *MissingError) Error() string { return e.What + " is not in this clone" }

// Merge decides what is in force with the base, and what once the head is merged into it,
// in the way in which Source does as it meets one revision after the other.
func (c *Clone) Merge(o MergeOptions) (*Merged, error) {
	m := merge{Clone: c, MergeOptions: o, read: c.reader(&o)}
	m.walker = walker{rules: o.rules(), revision: m.revision}
	return m.run()
}

// reader reads manifests as Source does. Without a key it is enough that encrypted values can be compared.
func (c *Clone) reader(o *MergeOptions) *reader {
	open := o.Open
	if open == nil {
		open = sops.Compare
	}
	opts := withModel(Options{Path: cmp.Or(o.Source.Path, "."), Tenants: o.Tenants, Checks: Checks{Decode: func(file string, data []byte) ([]model.Object, []model.Problem) {
		return model.Decode(file, data, model.DecodeOptions{AllowPlaintextSecrets: o.AllowPlaintextSecrets, Open: open})
	}}}, nil)
	return &reader{decode: opts.Decode, count: func() {}, tenants: opts.Tenants}
}

func (o *MergeOptions) rules() rules {
	with := withModel(Options{Path: cmp.Or(o.Source.Path, "."), Tenants: o.Tenants}, nil)
	return rules{validate: with.Validate, crossCheck: o.Checker.Check, stillFit: o.Checker.StillFits, token: func() string { return "" }, tenants: with.Tenants}
}

type merge struct {
	*Clone
	MergeOptions
	read   *reader
	walker walker
}

func (m *merge) run() (*Merged, error) {
	base, err := m.commit(m.Base)
	if err != nil {
		return nil, err
	}
	head, err := m.commit(m.Head)
	if err != nil {
		return nil, err
	}
	way := m.store.meet(base.Hash, head.Hash)
	since, err := m.parting(way)
	if err != nil {
		return nil, err
	}
	result := &Merged{Since: since.String(), Contained: since == head.Hash, Approves: approvedIn(way.between)}
	before, next, err := m.before(base, result)
	if err != nil {
		return nil, err
	}
	files, err := m.merged(since, base, head, before.effective)
	if err != nil {
		return nil, err
	}
	one := m.walker
	one.files = func(lineCommit, effective) ([]manifest, error) { return files, nil }
	whole := lineCommit{head.Hash, head.TreeHash, m.store.approvals(head, result.Approves)}
	if result.Head, err = m.after(one, before, []lineCommit{whole}, next); err != nil {
		return nil, err
	}
	if result.Contained {
		result.Head = result.Base
		return result, nil
	}
	if line := m.branch(base, head); len(line) > 1 {
		conflict := false
		each, err := m.after(m.rebasing(before.effective, &conflict), before, line, next)
		if conflict {
			return result, nil // a person has to say what the commits become
		}
		result.OneByOne = each
		return result, err
	}
	return result, nil
}

// after is what is in force once commits are applied.
func (m *merge) after(w walker, before outcome, line []lineCommit, s step) (*model.Desired, error) {
	out, s, err := w.walk(before.effective, line, s)
	switch {
	case errors.Is(err, errNoManifest):
		return nil, errors.New("no manifest is left: Ingot refuses such a revision, and everything stays as it is")
	case err != nil:
		return nil, err
	}
	return m.desired(out, line[len(line)-1].hash, s.approvals), nil
}

// branch returns the commits of the head's first-parent line that the base does not have, oldest first.
func (m *merge) branch(base, head *object.Commit) []lineCommit {
	known, _ := m.store.ancestors(base.Hash)
	line, fork := m.store.lineUntil(head.Hash, func(h plumbing.Hash) bool { return known[h] })
	if !known[fork] {
		return nil
	}
	for i := range line {
		if c, err := m.store.commit(line[i].hash); err == nil {
			line[i].approved = m.store.approvals(c, nil)
		}
	}
	return line
}

// rebasing is a walker that applies what each commit of the head changes to the manifests before it, which are
// those of the base at first. It notes a file that both have changed.
func (m *merge) rebasing(in effective, conflict *bool) walker {
	w, now := m.walker, in.files
	w.files = func(c lineCommit, in effective) ([]manifest, error) {
		commit, err := m.store.commit(c.hash)
		if err != nil {
			return nil, err
		}
		parent, err := m.store.commit(commit.ParentHashes[0])
		if err != nil {
			return nil, err
		}
		was, err := m.manifests(parent, in)
		if err != nil && !errors.Is(err, errPathMissing) {
			return nil, err
		}
		theirs, err := m.manifests(commit, in)
		if err != nil {
			return nil, err
		}
		var both []string
		now, both = mergeManifests(was, now, theirs)
		*conflict = *conflict || len(both) > 0
		return now, nil
	}
	return w
}

func (m *merge) commit(hash string) (*object.Commit, error) {
	c, err := m.store.commit(plumbing.NewHash(hash))
	if err != nil {
		return nil, &MissingError{What: "commit " + hash}
	}
	return c, nil
}

// before is what is in force with the base: what is with the revision that Ingot acted upon
// last, and what came since.
func (m *merge) before(base *object.Commit, result *Merged) (outcome, step, error) {
	applied := m.Beginning.Applied
	at, way := base, meeting{}
	if hash := m.Beginning.appliedHash(); !hash.IsZero() && hash != base.Hash && applied.Branch == m.Source.Branch {
		var err error
		if at, err = m.store.commit(hash); err != nil {
			return outcome{}, step{}, &MissingError{What: "revision " + string(applied.Revision()) + ", which Ingot acted upon last,", Applied: true}
		}
		if way = m.store.meet(hash, base.Hash); way.at(base.Hash) {
			return outcome{}, step{}, &MissingError{What: fmt.Sprintf("%s has moved on to %s, and that", m.Source.Branch, hash), Applied: true}
		}
		if way.truncated && !way.at(hash) {
			return outcome{}, step{}, &MissingError{What: "the history between " + string(applied.Revision()) + ", which Ingot acted upon last, and the base", Applied: true}
		}
		result.Behind = true
	}
	lastGood := m.lastGood()
	files, err := m.manifests(at, effective{objects: lastGood})
	if err != nil && !errors.Is(err, errPathMissing) {
		return outcome{}, step{}, err
	}
	s := step{lineage: lineageSame, revision: m.revision(at.Hash), at: m.Now, approvals: newest(m.store.approvals(at, nil))}
	out := next(baseEffective(m.Beginning, lastGood, files), s, diffOf(nil, files), m.walker.rules)
	s.lineage = lineageDescends
	if at != base {
		if out, s, err = m.toBase(out.effective, at, base, way, s); err != nil {
			return outcome{}, step{}, err
		}
	}
	result.Base = m.desired(out, base.Hash, s.approvals)
	return out, s, nil
}

// toBase applies the commits between the revision that Ingot acted upon last and the base.
func (m *merge) toBase(in effective, at, base *object.Commit, way meeting, s step) (outcome, step, error) {
	w := m.walker
	w.files = func(c lineCommit, in effective) ([]manifest, error) {
		commit, err := m.store.commit(c.hash)
		if err != nil {
			return nil, err
		}
		return m.manifests(commit, in)
	}
	line := m.store.line(at.Hash, base.Hash)
	if len(line) == 0 {
		line = []lineCommit{{base.Hash, base.TreeHash, m.store.approvals(base, approvedIn(way.between))}}
		s.joined = true
		if !way.at(at.Hash) {
			s.lineage, s.cause = rewritten, model.AbsentHistoryRewritten
		}
	}
	out, s, err := w.walk(in, line, s)
	s.lineage, s.cause, s.joined = lineageDescends, "", false
	if errors.Is(err, errNoManifest) {
		err = fmt.Errorf("%s holds no manifest: Ingot refuses it, and everything stays as it is", m.revision(base.Hash).Short())
	}
	return out, s, err
}

// lastGood are the objects that were in force as they had been before, as far as the clone has them.
func (m *merge) lastGood() objectsInForce {
	known := objectsOf(m.LastGood, func(h model.LastGood) *decoded {
		blob := plumbing.NewHash(h.Blob)
		if size, err := m.store.size(blob); err != nil || size > maxBlob {
			return nil
		}
		content, err := m.store.blob(blob)
		if err != nil {
			return nil
		}
		return m.read.parse(h.Path, content)
	})
	for _, h := range m.LastGood {
		if _, read := known[h.Identity]; !read { // by name alone
			owner := m.Beginning.Owners[h.Identity]
			known[h.Identity] = located{path: h.Path, lastGood: true, rare: &rarely{since: h.Since, behind: h.Behind, tenant: owner}}
		}
	}
	return known
}

func (m *merge) revision(c plumbing.Hash) model.Revision {
	return target{name: m.Source.Branch, commit: c}.revision()
}

func (m *merge) desired(out outcome, at plumbing.Hash, approvals []string) *model.Desired {
	d := withBoots(out.desired(), m.Boots)
	d.Revision, d.URL, d.Path = m.revision(at), m.Source.URL, m.Source.Path
	d.Time, d.Approvals = m.Now, approvals
	return d
}

// manifests are those of a commit that follows upon what is in force.
func (m *merge) manifests(c *object.Commit, inForce effective) ([]manifest, error) {
	files, err := m.read.read(m.store, c.TreeHash, cmp.Or(m.Source.Path, "."), inForce)
	switch {
	case errors.Is(err, errNotReadable):
		return nil, &MissingError{What: fmt.Sprintf("a part of %s (%v)", m.revision(c.Hash).Short(), err)}
	case errors.Is(err, errPathMissing):
		return nil, fmt.Errorf("folder %s is not in %s: %w", m.Source.Path, m.revision(c.Hash).Short(), err)
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", m.revision(c.Hash).Short(), err)
	}
	return files, nil
}

func (m *merge) merged(since plumbing.Hash, base, head *object.Commit, inForce effective) ([]manifest, error) {
	if since == base.Hash {
		return m.manifests(head, inForce)
	}
	old, err := m.store.commit(since)
	if err != nil {
		return nil, err
	}
	var sides [3][]manifest
	for i, c := range []*object.Commit{old, base, head} {
		if sides[i], err = m.manifests(c, inForce); err != nil && !errors.Is(err, errPathMissing) {
			return nil, err
		}
	}
	files, both := mergeManifests(sides[0], sides[1], sides[2])
	if len(both) > 0 {
		return nil, fmt.Errorf("%s changed on both sides since %s, so what a merge makes of it is not known: merge %s into the branch, then plan again",
			strings.Join(both[:min(len(both), 5)], ", "), since.String()[:12], m.Source.Branch)
	}
	return files, nil
}

// mergeManifests takes of each file the side that changed it. Both are the paths of those
// that both sides changed, each otherwise.
func mergeManifests(old, ours, theirs []manifest) (merged []manifest, both []string) {
	byPath := func(files []manifest) map[string]manifest {
		m := make(map[string]manifest, len(files))
		for _, f := range files {
			m[f.path] = f
		}
		return m
	}
	was, here, there := byPath(old), byPath(ours), byPath(theirs)
	paths := make(map[string]bool, len(ours))
	for _, side := range [][]manifest{ours, theirs} {
		for _, f := range side {
			paths[f.path] = true
		}
	}
	for _, p := range slices.Sorted(maps.Keys(paths)) {
		o, h, t := was[p].blob, here[p].blob, there[p].blob
		file := here[p]
		switch {
		case t == o || h == t:
		case h == o:
			file = there[p]
		default:
			both = append(both, p)
		}
		if file.decoded != nil {
			merged = append(merged, file)
		}
	}
	return merged, both
}

// parting is the newest commit that two come from.
func (m *merge) parting(way meeting) (plumbing.Hash, error) {
	base, head := m.Base[:12], m.Head[:12]
	switch {
	case len(way.common) == 1:
		return way.common[0], nil
	case len(way.common) > 1:
		return plumbing.ZeroHash, fmt.Errorf("%s and %s were merged crosswise, so what another merge makes of them is not known: merge %s "+
			"into the branch, then plan again", base, head, m.Source.Branch)
	case way.truncated:
		return plumbing.ZeroHash, &MissingError{What: fmt.Sprintf("the commit that %s and %s both come from", base, head)}
	}
	return plumbing.ZeroHash, fmt.Errorf("%s and %s have no commit in common: they cannot be merged", base, head)
}
