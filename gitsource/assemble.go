package gitsource

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"ingot/model"
)

// located is an object that is in force, and the blob it was decoded from. There is one for
// each object, so what few have is apart.
type located struct {
	// object is nil when only its name is known: something depends on it, and its
	// content cannot be had.
	object model.Object
	path   string
	blob   plumbing.Hash
	// lastGood is set when the object is not what the revision in force says: its file
	// is wrong, or Git lacks it or has it otherwise though no commit says so.
	lastGood bool
	// shared is set when its file defines other objects too.
	shared bool
	rare   *rarely // nil is none; not changed once made
}

// rarely is what few objects have.
type rarely struct {
	// since is the revision with which it began to be kept so.
	since model.Revision
	// behind are the faulty files that may hold it, or anywhere; empty is path alone.
	behind []string
	// tenant is whose the object is while its content cannot be had.
	tenant string
	// previous is where such an object stood in the revision applied, if that is known.
	previous *previousLocation
	// formerly are the tenants whose the object was, as records may name them still.
	formerly []string
}

// previousLocation is an object as it stood below a path that is no tenant's any more.
type previousLocation struct {
	object model.Object
	path   string
	gone   bool // a commit took it from there
}

// rarely is what the object has of it.
func (p located) rarely() rarely {
	if p.rare == nil {
		return rarely{}
	}
	return *p.rare
}

// alter changes what the object has rarely.
func (p *located) alter(change func(*rarely)) {
	r := p.rarely()
	change(&r)
	p.rare = &r
}

// hold marks the object as one that is not what the revision says, since one.
func (p *located) hold(since model.Revision) {
	p.lastGood = true
	p.alter(func(r *rarely) { r.since = since })
}

// owner is the tenant whose the object is.
func (p located) owner() string {
	if p.object != nil {
		return p.object.Metadata().Tenant
	}
	return p.rarely().tenant
}

// sameAs reports whether both come from the same content.
func (p located) sameAs(q located) bool { return p.path == q.path && p.blob == q.blob }

// suspects are the files that may hold the object when they are faulty.
func (p located) suspects() []string {
	if behind := p.rarely().behind; len(behind) > 0 || p.path == "" {
		return behind
	}
	return []string{p.path}
}

// effective is what is in force. It is not changed once made.
type effective struct {
	objects *objectsInForce
	// files are those of the revision in force, in order of path.
	files []manifest
	// content are the objects as the planner reads them.
	content *model.Desired
	// plain is set when the objects are what the files say and nothing else, and nothing
	// is wrong with any of them; noted is then what the files are warned of.
	plain bool
	noted []model.Problem

	// absent is what Git lacks, or has otherwise, and no commit says so; token
	// approves it all. offered is what Git has in its place.
	absent  map[model.Identity]model.Absence
	token   string
	offered map[model.Identity]located
	// removed and renamed are what commits did since the revision applied.
	// Of several removals of one name, each another tenant's, the newest is the last.
	removed map[model.Identity][]model.Removal
	renamed map[model.ClaimName]model.ClaimName
}

func newEffective() effective {
	return effective{
		objects: new(objectsInForce),
		absent:  make(map[model.Identity]model.Absence),
		offered: make(map[model.Identity]located),
		removed: make(map[model.Identity][]model.Removal),
		renamed: make(map[model.ClaimName]model.ClaimName),
	}
}

// blobAt is the content of the file at a path, zero if there is none.
func (f effective) blobAt(path string) plumbing.Hash {
	if i, found := f.find(path); found {
		return f.files[i].blob
	}
	return plumbing.ZeroHash
}

func (f effective) find(path string) (int, bool) {
	return slices.BinarySearchFunc(f.files, path, func(m manifest, path string) int { return strings.Compare(m.path, path) })
}

// isEmpty reports whether there is nothing that a revision could take away.
func (f effective) isEmpty() bool { return f.objects.len()+len(f.absent) == 0 }

// outcome is what a revision comes to.
type outcome struct {
	effective effective
	// quarantined are those who define what cannot be used, by what that is.
	quarantined map[model.Identity][]string
	problems    []model.Problem
}

// rules are the checks that go beyond one file, and where tokens come from.
type rules struct {
	validate   func(before, after model.Object) []model.Problem
	crossCheck func(*model.Desired) []model.Problem
	// stillFit tells for some changes that crossCheck finds nothing, as it did before them;
	// nil never does.
	stillFit func(*model.Desired, []model.Change) bool
	token    func() string
	tenants  model.Tenants
}

// change is one step from what was in force to a revision.
type change struct {
	prev     effective
	files    []manifest
	lineage  lineage
	cause    model.AbsenceCause // of what is absent when the lineage is rewritten
	revision model.Revision
	at       time.Time
	// approvals are what Ingot-Approve trailers name, of this revision and before.
	approvals []string
}

// assembler holds what assemble works with.
type assembler struct {
	change
	rules
	outcome
	// aside are the objects in force that are not looked at, for they stay as they are, when
	// a part is assembled; those of prev that are count as they are there.
	aside *objectsInForce
	// noted are the problems of the files, clashes is how many there are between objects.
	noted   []model.Problem
	clashes int
	// candidates are the objects of the revision, by identity.
	candidates map[model.Identity][]located
	// heirs are those that come into force once the tenant who had the object first has
	// removed his; contested are the objects that have some.
	heirs     map[model.Identity][]located
	contested map[model.Identity]bool
	// borrowed are the files whose secrets do not count, and why, see borrowedKeys.
	borrowed map[string]string
	// refused are those that do not count where they stand.
	refused map[model.Identity][]located
	// faulty are the files that may hide objects; fresh are those of them that
	// may hold objects nobody knows of and whose content came with this revision, by the
	// tenant whose those are.
	faulty map[string]bool
	fresh  map[string][]string
	// unnamed are the files that may hold objects nobody knows of, with names in them; mentions are
	// those by name, nil until one is asked for.
	unnamed  []manifest
	mentions map[mention][]string
	// mistaken are the files with objects that cannot be used and came with this revision, which may
	// be what others of their kind are called by now.
	mistaken map[successors][]string
	// unread are the tenants of whose folders nothing is read, for they have too much.
	unread map[string]bool
	// copies are the faulty files, by their content: what may be in one of them may be
	// in the others, wherever it was moved or copied from.
	copies map[plumbing.Hash][]string
	// gone is what a commit took away.
	gone map[model.Identity]model.Removal
	// blobs are the contents of the files before; nil until one is asked for.
	blobs map[plumbing.Hash]bool
}

// assemble decides what is in force with the manifests of a revision, given what
// was in force before. An object in force stays there while the file it came from
// is wrong, while what Git says of it is wrong or said twice, and when no commit
// that descends from the revision in force took it away.
func assemble(c change, r rules) outcome {
	c.files = inOrder(c.files)
	if len(keysOfSeveral(c.files, r.tenants)) > 0 {
		return assembleAll(c, r)
	}
	if out, ok := assembleChanged(c, r); ok {
		return out
	}
	return assembleAll(c, r)
}

// assembleAll looks at all files and all objects in force.
func assembleAll(c change, r rules) outcome {
	a := newAssembler(c, r)
	a.run()
	a.effective.plain = a.isPlain()
	if a.effective.plain {
		a.effective.noted = a.noted
		model.SortProblems(a.effective.noted)
	}
	return a.outcome
}

func newAssembler(c change, r rules) *assembler {
	return &assembler{
		change: c, rules: r,
		outcome: outcome{
			effective:   newEffective(),
			quarantined: make(map[model.Identity][]string),
		},
		candidates: make(map[model.Identity][]located, c.prev.objects.len()),
		heirs:      make(map[model.Identity][]located),
		contested:  make(map[model.Identity]bool),
		refused:    make(map[model.Identity][]located),
		faulty:     make(map[string]bool),
		unread:     make(map[string]bool),
		fresh:      make(map[string][]string),
		mistaken:   make(map[successors][]string),
		copies:     make(map[plumbing.Hash][]string),
		gone:       make(map[model.Identity]model.Removal),
		borrowed:   make(map[string]string),
	}
}

func (a *assembler) run() {
	a.collect()
	a.tellApart()
	a.choose()
	a.keepFromFaultyFiles()
	a.keepRefused()
	a.quarantine()
	a.holdMentioned()
	a.settleVanished()
	a.settleClashes()
	a.follow()
	a.settleTokens()
	a.noteKept()
	if a.effective.content == nil {
		a.effective.content = contentOf(a.effective.objects)
	}
	model.SortProblems(a.problems)
}

func (a *assembler) collect() {
	a.effective.files = a.files
	a.borrowedKeys()
	for _, f := range a.files {
		a.problems = append(a.problems, a.problemsOf(f)...)
		for _, o := range f.objects {
			id, p := o.Identity(), located{object: o, path: f.path, blob: f.blob, shared: len(f.objects) > 1}
			if o.Metadata().Refused != "" || a.isBorrowed(f, o) {
				a.refused[id] = append(a.refused[id], p)
				continue
			}
			a.candidates[id] = append(a.candidates[id], p)
		}
		if f.overShare {
			a.unread[f.path] = true
		}
		if f.hides() {
			a.faulty[f.path] = true
			a.copies[f.blob] = append(a.copies[f.blob], f.path)
		}
		if f.mentions != "" {
			a.unnamed = append(a.unnamed, f)
		}
		if f.opaque && !a.knew(f.blob) {
			owner := a.tenants.Owner(f.path)
			a.fresh[owner] = append(a.fresh[owner], f.path)
		}
	}
	a.noted = slices.Clone(a.problems)
	for owner, files := range a.fresh {
		a.fresh[owner] = bounded(files)
	}
	for blob, files := range a.copies {
		a.copies[blob] = bounded(files)
	}
}

// knew reports whether the revision before had a file of a content.
func (a *assembler) knew(blob plumbing.Hash) bool {
	if a.blobs == nil {
		a.blobs = make(map[plumbing.Hash]bool, len(a.prev.files))
		for _, f := range a.prev.files {
			a.blobs[f.blob] = true
		}
	}
	return a.blobs[blob]
}

// choose takes each object that stands once, may follow the one in force and is
// not to wait for an approval.
func (a *assembler) choose() {
	for id, c := range a.candidates {
		before := a.prev.objects.of(id)
		switch {
		case len(c) > 1:
			a.problems = append(a.problems, duplicateProblems(id, c)...)
			for _, p := range c {
				a.keepOrQuarantine(id, p.owner())
			}
		case a.listed(id, c[0]):
		case before.object != nil && !before.sameAs(c[0]) && !a.mayFollow(before.object, c[0]):
			a.keepLastGood(id)
		default:
			now := c[0]
			formerly := before.rarely().formerly
			if by := before.owner(); by != "" && by != now.owner() {
				formerly = append(slices.Clip(formerly), by)
			}
			if len(formerly) > 0 {
				now.alter(func(r *rarely) { r.formerly = formerly })
			}
			if a.contested[id] { // or a restart could not tell whose it is
				now.hold(cmp.Or(before.rarely().since, a.revision))
			}
			a.effective.objects.set(id, now)
		}
	}
}

// mayFollow reports whether after may take the place of before.
func (a *assembler) mayFollow(before model.Object, after located) bool {
	problems := a.validate(before, after.object)
	for i := range problems {
		if problems[i].File == "" {
			problems[i].File, problems[i].Line = position(after)
		}
	}
	a.problems = append(a.problems, problems...)
	return !model.HasErrors(problems)
}

// keepLastGood keeps the object in force as it is, with the files that may hold it if they
// are others than before.
func (a *assembler) keepLastGood(id model.Identity, behind ...string) {
	p, ok := a.prev.objects.get(id)
	behind = bounded(behind)
	if e, absent := a.prev.absent[id]; absent {
		a.list(id, e, behind...)
	}
	if !ok {
		return
	}
	if !p.lastGood {
		p.hold(a.revision)
	}
	if was := p.rarely().previous; was != nil && !a.standsAt(id, was.path) {
		p.alter(func(r *rarely) { r.previous = &previousLocation{was.object, was.path, true} })
	}
	if len(behind) > 0 {
		p.alter(func(r *rarely) { r.behind = behind })
	}
	a.effective.objects.set(id, p)
}

// keepOrQuarantine keeps an object; without one in force what its owner defines is
// quarantined.
func (a *assembler) keepOrQuarantine(id model.Identity, owner string, behind ...string) {
	a.keepLastGood(id, behind...)
	if _, inForce := a.prev.objects.get(id); !inForce {
		a.quarantined[id] = append(a.quarantined[id], owner)
	}
}

// settled reports whether it is decided what becomes of an identity.
func (a *assembler) settled(id model.Identity) bool {
	_, inForce := a.effective.objects.get(id)
	_, absent := a.effective.absent[id]
	return inForce || absent || len(a.quarantined[id]) > 0
}

// quarantine holds the objects that problems name and that have no good version
// in this revision.
func (a *assembler) quarantine() {
	for _, p := range a.problems {
		owner := a.tenants.Owner(p.File)
		if id, ok := named(p); ok && isError(p) && !a.settled(id) && a.concerns(p, id) && !a.succeeds(id, owner) {
			a.keepOrQuarantine(id, owner, p.File)
			a.noteMistaken(id, owner, p.File)
		}
	}
}

// settleClashes lets none of the objects that claim the same thing come into force
// anew: what was in force before stays.
func (a *assembler) settleClashes() {
	a.effective.content = contentOf(a.effective.objects)
	problems := a.crossCheck(a.desired())
	a.clashes += len(problems)
	a.problems = append(a.problems, problems...)
	for _, p := range problems {
		id, ok := named(p)
		now, inForce := a.effective.objects.get(id)
		if !ok || !inForce || !isError(p) {
			continue
		}
		if before, was := a.prev.objects.get(id); was && before.sameAs(now) {
			a.keep(id, now)
			continue
		}
		a.effective.objects.drop(id)
		a.effective.content = nil
		if !a.succeeds(id, now.owner()) {
			a.keepOrQuarantine(id, now.owner())
		}
	}
}

// noteKept says of which files it is that objects stay in force which no usable file has: somebody who
// took one away waits for what comes of it.
func (a *assembler) noteKept() {
	told := make(map[model.Identity]bool) // that they are wrong
	for _, p := range a.problems {
		if id, ok := named(p); ok {
			told[id] = true
		}
	}
	kept := make(map[string][]string)
	for id, p := range a.effective.objects.all() {
		_, absent := a.effective.absent[id]
		if !p.lastGood || absent || told[id] || a.candidates[id] != nil || !depended(id.Kind) {
			continue
		}
		file := p.path
		if behind := p.rarely().behind; len(behind) > 0 && behind[0] != anywhere {
			file = behind[0]
		}
		kept[file] = append(kept[file], id.String())
	}
	for file, objects := range kept {
		slices.Sort(objects)
		a.problems = append(a.problems, model.Problem{
			Severity: model.SeverityWarning, File: file,
			Message: "may have what other files do not have any more, which stays in force as it was: " + listed(objects) +
				". What no file has once this one can be used is removed",
		})
	}
}

// keep has the state remember an object in force whose name or part another one claims: a
// restart could not tell which of them was first.
func (a *assembler) keep(id model.Identity, now located) {
	if !now.lastGood {
		now.hold(cmp.Or(a.prev.objects.of(id).rarely().since, a.revision))
	}
	a.effective.objects.set(id, now)
}

// duplicateProblems has a problem for each place that defines the same object.
func duplicateProblems(id model.Identity, places []located) []model.Problem {
	var problems []model.Problem
	sources := make([]string, 0, len(places))
	for _, p := range places {
		sources = append(sources, p.object.Metadata().Source)
	}
	for i, p := range places {
		file, line := position(p)
		problems = append(problems, model.Problem{
			Severity: model.SeverityError, File: file, Line: line, Object: id.String(),
			Message: model.AlsoDefinedIn(sources, i),
		})
	}
	return problems
}

// position returns where an object stands, from its source "path:line".
func position(p located) (file string, line int) {
	source := p.object.Metadata().Source
	if i := strings.LastIndexByte(source, ':'); i >= 0 {
		if n, err := strconv.Atoi(source[i+1:]); err == nil {
			return p.path, n
		}
	}
	return p.path, 0
}

// named returns the object that a problem names, if it names one.
func named(p model.Problem) (model.Identity, bool) {
	id, ok := model.ParseIdentity(p.Object)
	return id, ok && id.Name != ""
}

// contentOf are the objects in force as the planner reads them.
func contentOf(objects *objectsInForce) *model.Desired {
	d := model.NewDesired()
	for _, p := range objects.all() {
		if p.object != nil {
			d.Add(p.object)
		}
	}
	return d
}

// desired turns an outcome into what the planner reads.
func (o outcome) desired() *model.Desired {
	d := new(model.Desired)
	*d = *o.effective.content
	hidden := make(map[model.Identity][]string)
	maps.Copy(hidden, o.quarantined)
	if !o.effective.plain {
		for id, p := range o.effective.objects.all() {
			if p.object == nil {
				hidden[id] = append(slices.Clip(hidden[id]), p.owner())
			}
		}
	}
	d.Quarantined = hidden
	d.Problems = o.problems
	d.Removed = make(map[model.Identity][]model.Removal, len(o.effective.removed))
	for id, all := range o.effective.removed {
		// What stands there again in a way that cannot be used was not removed.
		counts := slices.DeleteFunc(slices.Clone(all), func(r model.Removal) bool { return d.IsQuarantinedOf(id, r.Tenant) })
		if len(counts) > 0 {
			d.Removed[id] = counts
		}
	}
	d.Renamed = maps.Clone(o.effective.renamed)
	d.Absent = slices.SortedFunc(maps.Values(o.effective.absent), func(a, b model.Absence) int {
		return cmp.Compare(a.Identity.String(), b.Identity.String())
	})
	d.AbsentToken, d.LastGood = o.effective.token, o.effective.lastGood()
	return d
}
