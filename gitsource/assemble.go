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

func (p located) rarely() rarely {
	if p.rare == nil {
		return rarely{}
	}
	return *p.rare
}

func (p *located) alter(change func(*rarely)) {
	r := p.rarely()
	change(&r)
	p.rare = &r
}

func (p *located) hold(since model.Revision) {
	p.lastGood = true
	p.alter(func(r *rarely) { r.since = since })
}

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

type objectsInForce map[model.Identity]located

// effective is what is in force. It is not changed once made.
type effective struct {
	objects objectsInForce
	// files are those of the revision in force, in order of path.
	files []manifest
	// content are the objects as the planner reads them. fits is set if all of them are known and
	// nothing is wrong between them, so that a check of the changes is enough.
	content *model.Desired
	fits    bool
	// unsettled are the objects that each commit decides again, whichever files it changes. Any
	// other object is in force as its only file has it, or is not in Git.
	unsettled map[model.Identity]bool

	// absent is what Git lacks, or has otherwise, and no commit says so; token
	// approves it all. offered is what Git has in its place.
	absent  map[model.Identity]model.Absence
	token   string
	offered map[model.Identity]located
	// removed and renamed are what commits did since the revision applied.
	// Of several removals of one name, each another tenant's, the newest is the last.
	removed map[model.Identity][]model.Removal
	renamed []model.Renaming
	// undoable are the objects that commits removed since the planner had a revision, as they
	// were. One that the same tenant adds again was not removed.
	undoable map[model.Identity][]located
}

func newEffective() effective {
	return effective{
		objects:   make(objectsInForce),
		unsettled: make(map[model.Identity]bool),
		absent:    make(map[model.Identity]model.Absence),
		offered:   make(map[model.Identity]located),
		removed:   make(map[model.Identity][]model.Removal),
		undoable:  make(map[model.Identity][]located),
	}
}

// isEmpty reports whether there is nothing that a revision could take away.
func (f effective) isEmpty() bool { return len(f.objects)+len(f.absent) == 0 }

type outcome struct {
	effective effective
	// quarantined are those who define what cannot be used, by what that is.
	quarantined map[model.Identity][]string
	problems    []model.Problem
	// notes are the problems that concern the step itself, and not the files that it leaves.
	notes []model.Problem
}

// rules are the checks that go beyond one file, and where tokens come from.
type rules struct {
	validate   func(before, after model.Object) []model.Problem
	crossCheck func(*model.Desired) []model.Problem
	// stillFit reports for some changes that crossCheck finds nothing, as it did before them;
	// nil never does.
	stillFit func(*model.Desired, []model.Change) bool
	token    func() string
	tenants  model.Tenants
}

// step is a commit, or several that count as one.
type step struct {
	revision model.Revision
	lineage  lineage
	cause    model.AbsenceCause // of what is absent when the lineage is rewritten
	at       time.Time
	// approvals are what Ingot-Approve trailers name, of this revision and before.
	approvals []string
	// joined is set for several commits: no claim counts as renamed or handed over.
	joined bool
}

// diff is what a step changes in the manifests.
type diff struct {
	files    []manifest // all of them afterwards, in order of path
	was, now []manifest // those that differ, before and afterwards
	whole    bool       // all objects are decided again, whichever files differ
}

// diffOf compares the files before, in order of path, with those after a step.
func diffOf(before, after []manifest) diff {
	after = inOrder(after)
	d := diff{files: after}
	for len(before) > 0 || len(after) > 0 {
		switch {
		case len(after) == 0, len(before) > 0 && before[0].path < after[0].path:
			d.was, before = append(d.was, before[0]), before[1:]
		case len(before) == 0, after[0].path < before[0].path:
			d.now, after = append(d.now, after[0]), after[1:]
		default:
			if before[0] != after[0] {
				d.was, d.now = append(d.was, before[0]), append(d.now, after[0])
			}
			before, after = before[1:], after[1:]
		}
	}
	return d
}

// found are the objects of the scope in the revision.
type found struct {
	// candidates are those that count where they stand, refused those that do not. places is how many
	// files define one.
	candidates, refused map[model.Identity][]located
	places              map[model.Identity]int
	// borrowed are the files whose secrets do not count, and why, see borrowedKeys.
	borrowed map[string]string
}

type assembler struct {
	prev effective
	base objectsInForce // prev.objects, without those that undo added
	step
	diff
	rules
	outcome
	suspects
	// scope are the objects that are decided. All others stay as they are.
	scope map[model.Identity]bool
	found
	// heirs are those that come into force once the tenant who had the object first has
	// removed his; contested are the objects that have some.
	heirs     map[model.Identity][]located
	contested map[model.Identity]bool
	// gone is what a commit took away, names are the other names that it gave to claims. unclear
	// are the objects of which it is not known who has them now, or under which name.
	gone    map[model.Identity]model.Removal
	names   names
	unclear map[model.Identity]bool
}

// next decides what is in force after a step, given what was in force before. An object
// stays in force while the file it came from is wrong, while its manifest in Git is wrong or
// there are two, and when no commit that descends from the revision in force took it away.
func next(prev effective, s step, d diff, r rules) outcome {
	d.whole = d.whole || s.lineage != lineageDescends
	a := newAssembler(prev, s, d, r)
	a.run()
	if a.namesAreInForce() {
		return a.outcome
	}
	s.joined = true // a claim cannot have its new name: it keeps the old one
	a = newAssembler(prev, s, d, r)
	a.run()
	return a.outcome
}

func newAssembler(prev effective, s step, d diff, r rules) *assembler {
	a := &assembler{
		prev: prev, base: prev.objects, step: s, diff: d, rules: r,
		outcome: outcome{effective: newEffective(), quarantined: make(map[model.Identity][]string)},
		scope:   maps.Clone(prev.unsettled),
		found: found{
			candidates: make(map[model.Identity][]located), refused: make(map[model.Identity][]located), places: make(map[model.Identity]int),
		},
		heirs:     make(map[model.Identity][]located),
		contested: make(map[model.Identity]bool),
		gone:      make(map[model.Identity]model.Removal),
		unclear:   make(map[model.Identity]bool),
	}
	a.suspects = newSuspects(r.tenants, prev.files, d.files, a.lacks)
	a.setScope()
	a.effective.files = d.files
	a.effective.objects = maps.Clone(prev.objects)
	for id := range a.scope {
		delete(a.effective.objects, id)
	}
	maps.Copy(a.effective.undoable, prev.undoable)
	return a
}

// setScope finds the objects that the step may concern, and the files of secrets that do not count.
func (a *assembler) setScope() {
	var shared []manifest
	a.borrowed, shared = borrowedKeys(a.files, a.tenants, a.prev.objects)
	files := [][]manifest{a.was, a.now, shared}
	if a.whole {
		files = [][]manifest{a.files}
		for id := range a.prev.objects {
			a.scope[id] = true
		}
		for id := range a.prev.absent {
			a.scope[id] = true
		}
	}
	for _, f := range slices.Concat(files...) {
		for _, o := range f.objects {
			a.scope[o.Identity()] = true
		}
	}
	for _, f := range shared {
		for _, o := range f.objects { // after a restart the owner of the key would not be known
			if a.borrowed[f.path] == "" && o.Metadata().DataKey != "" {
				a.contested[o.Identity()] = true
			}
		}
	}
}

func (a *assembler) run() {
	a.collect()
	a.tellApart()
	a.keepFromFaultyFiles()
	a.keepRefused()
	a.quarantine()
	a.holdMentioned()
	a.settleVanished()
	a.nameClaims()
	a.choose()
	a.settleClashes()
	a.follow()
	a.effective.settleTokens(a.prev, a.token)
	a.noteKept()
	a.settle()
	model.SortProblems(a.problems)
}

// collect reads the files: all of them for their problems, and those that may define an object of
// the scope for their objects.
func (a *assembler) collect() {
	paths := make(map[string]bool, len(a.now)) // an object that is settled is in its own file alone
	for id := range a.scope {
		paths[a.prev.objects[id].path] = true
	}
	for _, f := range a.now {
		paths[f.path] = true
	}
	everywhere := a.whole || len(a.prev.unsettled) > 0
	for _, f := range a.files {
		a.problems = append(a.problems, a.problemsOf(f, a.tenants)...)
		a.note(f)
		if !everywhere && !paths[f.path] {
			continue
		}
		for _, o := range f.objects {
			id, p := o.Identity(), located{object: o, path: f.path, blob: f.blob, shared: len(f.objects) > 1}
			if !a.scope[id] {
				continue
			}
			a.places[id]++
			if o.Metadata().Refused != "" || a.isBorrowed(f.path, o) {
				a.refused[id] = append(a.refused[id], p)
				continue
			}
			a.candidates[id] = append(a.candidates[id], p)
		}
	}
	a.bound()
	a.undo()
}

// undo has the objects in force again that a commit before removed and that their tenant has added
// again, as if none had removed them.
func (a *assembler) undo() {
	for id, removed := range a.prev.undoable {
		if _, inForce := a.prev.objects[id]; inForce {
			continue
		}
		for _, p := range a.candidates[id] {
			if i := slices.IndexFunc(removed, func(was located) bool { return was.owner() == p.owner() }); i >= 0 {
				a.prev.objects = maps.Clone(a.prev.objects)
				a.prev.objects[id] = removed[i]
				a.effective.undoable[id] = slices.Delete(slices.Clone(removed), i, i+1)
				break
			}
		}
	}
}

// choose takes each object that stands once, may follow the one in force and
// does not wait for an approval.
func (a *assembler) choose() {
	for id, c := range a.candidates {
		before := a.prev.objects[id]
		old, renamed := a.names.old[id]
		switch {
		case len(c) > 1:
			a.problems = append(a.problems, duplicateProblems(id, c)...)
			for _, p := range c {
				a.keepOrQuarantine(id, p.owner())
			}
		case renamed:
			a.take(id, c[0], a.prev.objects[old])
		case a.listed(id, c[0]):
		case before.object != nil && !before.sameAs(c[0]) && !a.mayFollow(before.object, c[0]):
			a.keepLastGood(id)
		default:
			a.take(id, c[0], before)
		}
	}
}

// take puts an object in force in the place of the one before.
func (a *assembler) take(id model.Identity, now, before located) {
	formerly := before.rarely().formerly
	if by := before.owner(); by != "" && by != now.owner() {
		formerly = append(slices.Clip(formerly), by)
	}
	if len(formerly) > 0 {
		now.alter(func(r *rarely) { r.formerly = formerly })
	}
	if a.contested[id] { // or after a restart its owner would not be known
		now.hold(cmp.Or(before.rarely().since, a.revision))
	}
	a.effective.objects[id] = now
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
	p, ok := a.prev.objects[id]
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
	a.effective.objects[id] = p
	a.effective.unsettled[id] = true
}

// keepOrQuarantine keeps an object; without one in force what its owner defines is
// quarantined.
func (a *assembler) keepOrQuarantine(id model.Identity, owner string, behind ...string) {
	a.keepLastGood(id, behind...)
	if _, inForce := a.prev.objects[id]; !inForce {
		a.quarantined[id] = append(a.quarantined[id], owner)
	}
}

func (o *outcome) settled(id model.Identity) bool {
	_, inForce := o.effective.objects[id]
	_, absent := o.effective.absent[id]
	return inForce || absent || len(o.quarantined[id]) > 0
}

// quarantine holds the objects that problems name and that have no good version
// in this revision.
func (a *assembler) quarantine() {
	for _, p := range a.problems {
		owner := a.tenants.Owner(p.File)
		id, ok := named(p)
		if !ok || !isError(p) || a.candidates[id] != nil || a.settled(id) || !a.concerns(p, id, a.prev.objects[id]) || a.prev.succeeds(id, owner) {
			continue
		}
		a.keepOrQuarantine(id, owner, p.File)
		if _, was := a.prev.objects[id]; !was {
			a.noteMistaken(id, owner, p.File)
		}
	}
}

// settleClashes lets none of the objects that claim the same thing come into force
// anew: what was in force before stays.
func (a *assembler) settleClashes() {
	a.read()
	if a.prev.fits && !a.whole && len(a.quarantined) == 0 && a.stillFit != nil && a.stillFit(a.effective.content, a.changes()) {
		a.effective.fits = true
		return
	}
	problems := a.crossCheck(a.desired())
	a.effective.fits = len(problems) == 0 && len(a.quarantined) == 0
	a.problems = append(a.problems, problems...)
	dropped := false
	for _, p := range problems {
		id, ok := named(p)
		now, inForce := a.effective.objects[id]
		if !ok || !inForce || !isError(p) {
			continue
		}
		before, was := a.prev.objects[id]
		switch unchanged := was && before.sameAs(now); {
		case p.Rule == model.RuleReference && (unchanged || !was):
			continue // a claim without its image waits for it
		case unchanged:
			a.keep(id, now)
			continue
		}
		delete(a.effective.objects, id)
		dropped = true
		if !a.prev.succeeds(id, now.owner()) {
			a.keepOrQuarantine(id, now.owner())
		}
	}
	if dropped {
		a.read()
	}
}

// read puts together the objects in force for the planner.
func (a *assembler) read() {
	if a.whole || a.prev.content == nil {
		a.effective.content = contentOf(a.effective.objects)
		return
	}
	a.effective.content = a.prev.content.With(a.changes())
}

// changes are the objects of the scope that are not as before.
func (a *assembler) changes() []model.Change {
	var all []model.Change
	for id := range a.scope {
		if before, after := a.base[id].object, a.effective.objects[id].object; before != after {
			all = append(all, model.Change{Before: before, After: after})
		}
	}
	return all
}

// settle notes which objects the next step decides again.
func (a *assembler) settle() {
	for id := range a.scope {
		p, inForce := a.effective.objects[id]
		_, absent := a.effective.absent[id]
		if places := a.places[id]; absent || p.lastGood || inForce != (places == 1) || places > 1 {
			a.effective.unsettled[id] = true
		}
		a.effective.fits = a.effective.fits && (!inForce || p.object != nil)
	}
}

// namesAreInForce reports whether each claim that has another name now is in force.
func (a *assembler) namesAreInForce() bool {
	for id := range a.names.old {
		if a.effective.objects[id].object != a.candidates[id][0].object {
			return false
		}
	}
	return true
}

// noteKept reports the files of objects that stay in force and that no usable file has: the
// person who removed one waits for the result.
func (a *assembler) noteKept() {
	told := make(map[model.Identity]bool) // that they are wrong
	for _, p := range a.problems {
		if id, ok := named(p); ok {
			told[id] = true
		}
	}
	kept := make(map[string][]string)
	for id := range a.scope {
		p := a.effective.objects[id]
		_, absent := a.effective.absent[id]
		if !p.lastGood || absent || told[id] || a.candidates[id] != nil {
			continue
		}
		file := p.path
		if behind := p.rarely().behind; len(behind) > 0 && behind[0] != anywhere {
			file = behind[0]
		}
		if depended(id.Kind) || a.vacant[file] != "" {
			kept[file] = append(kept[file], id.String())
		}
	}
	for file, objects := range kept {
		slices.Sort(objects)
		if why := a.vacant[file]; why != "" {
			a.problems = append(a.problems, model.Problem{
				Severity: model.SeverityError, File: file,
				Message: why + ". It defined these objects, which stay in force: " + listed(objects) + ". To remove them, delete the file",
			})
			continue
		}
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
		now.hold(cmp.Or(a.prev.objects[id].rarely().since, a.revision))
	}
	a.scope[id] = true
	a.effective.objects[id] = now
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

func named(p model.Problem) (model.Identity, bool) {
	id, ok := model.ParseIdentity(p.Object)
	return id, ok && id.Name != ""
}

// contentOf are the objects in force as the planner reads them.
func contentOf(objects objectsInForce) *model.Desired {
	d := model.NewDesired()
	for _, p := range objects {
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
	for id := range o.effective.unsettled {
		if p, inForce := o.effective.objects[id]; inForce && p.object == nil {
			hidden[id] = append(slices.Clip(hidden[id]), p.owner())
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
	d.Renamed = o.effective.renamed
	d.Absent = slices.SortedFunc(maps.Values(o.effective.absent), func(a, b model.Absence) int {
		return cmp.Compare(a.Identity.String(), b.Identity.String())
	})
	d.AbsentToken, d.LastGood = o.effective.token, o.effective.lastGood()
	return d
}
