package gitsource

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"ingot/model"
)

// placed is an object that is in force, and the blob it was decoded from.
type placed struct {
	object model.Object
	path   string
	blob   plumbing.Hash
	// held is set when the object is not what the revision in force says: its file
	// is wrong, or it vanished in a rewritten history.
	held bool
	// vanished is set for the latter: the next commit that descends from the
	// revision in force decides.
	vanished bool
}

// sameAs reports whether both come from the same content.
func (p placed) sameAs(q placed) bool { return p.path == q.path && p.blob == q.blob }

// force is what is in force. It is not changed once made.
type force struct {
	objects map[model.Identity]placed
	// lost are objects that were held and cannot be read any more.
	lost map[model.Identity]bool
	// paths are the files of the revision in force.
	paths map[string]bool
	// unread are files of which something could never be read: nobody knows which
	// objects they hold.
	unread map[string]bool
	// forgotten is set when it is not known at all what was in force before.
	forgotten bool
}

// outcome is what a revision comes to.
type outcome struct {
	restored    bool // kept over a restart, and not looked at since
	force       force
	quarantined map[model.Identity]bool
	problems    []model.Problem
}

// incomplete reports whether there may be objects that nobody knows of.
func (o outcome) incomplete() bool { return len(o.force.unread) > 0 || o.force.forgotten }

// rules are the checks that go beyond one file.
type rules struct {
	validate   func(before, after model.Object) []model.Problem
	crossCheck func(*model.Desired) []model.Problem
}

// assembler holds what assemble works with.
type assembler struct {
	prev    force
	files   []manifest
	lineage lineage
	rules

	outcome
	// candidates are the objects of the revision, by identity.
	candidates map[model.Identity][]placed
}

// assemble decides what is in force with the manifests of a revision, given what
// was in force before. An object in force stays there while the file it came from
// is wrong, while what Git says of it is wrong or said twice, and when it vanished
// in a rewritten history.
func assemble(prev force, files []manifest, l lineage, r rules) outcome {
	a := &assembler{prev: prev, files: files, lineage: l, rules: r}
	a.force = force{
		objects: make(map[model.Identity]placed, len(prev.objects)),
		lost:    make(map[model.Identity]bool),
		paths:   make(map[string]bool, len(files)),
		unread:  make(map[string]bool),
		// Only a commit that descends from a revision we know tells what it removes.
		forgotten: prev.forgotten && l != descends,
	}
	a.quarantined = make(map[model.Identity]bool)
	a.collect()
	a.choose()
	a.keepFromFaultyFiles()
	a.quarantine()
	a.keepVanished()
	a.settleClashes()
	model.SortProblems(a.problems)
	return a.outcome
}

func (a *assembler) collect() {
	a.candidates = make(map[model.Identity][]placed, len(a.prev.objects))
	for _, f := range a.files {
		a.force.paths[f.path] = true
		a.problems = append(a.problems, f.problems...)
		for _, o := range f.objects {
			id := o.Identity()
			a.candidates[id] = append(a.candidates[id], placed{object: o, path: f.path, blob: f.blob})
		}
		known := a.prev.paths[f.path] && !a.prev.unread[f.path]
		if f.nameless() && !known {
			a.force.unread[f.path] = true
		}
	}
}

// choose takes each object that stands once and may follow the one in force.
func (a *assembler) choose() {
	for id, c := range a.candidates {
		before, inForce := a.prev.objects[id]
		switch {
		case len(c) > 1:
			a.problems = append(a.problems, twice(id, c)...)
			a.hold(id)
		case inForce && !before.sameAs(c[0]) && !a.mayFollow(before.object, c[0]):
			a.hold(id)
		default:
			a.force.objects[id] = c[0]
		}
	}
}

// mayFollow reports whether after may take the place of before.
func (a *assembler) mayFollow(before model.Object, after placed) bool {
	problems := a.validate(before, after.object)
	for i := range problems {
		if problems[i].File == "" {
			problems[i].File, problems[i].Line = position(after)
		}
	}
	a.problems = append(a.problems, problems...)
	return !model.HasErrors(problems)
}

// hold keeps the object in force as it is; without one its identity is quarantined.
func (a *assembler) hold(id model.Identity) {
	p, ok := a.prev.objects[id]
	if !ok {
		a.quarantined[id] = true
		return
	}
	p.held = true
	a.force.objects[id] = p
}

// keepFromFaultyFiles holds the objects of files that cannot be read in whole. A
// folder may have become a submodule or a link, so what lay below counts too.
func (a *assembler) keepFromFaultyFiles() {
	faulty := make(map[string]bool)
	for _, f := range a.files {
		if f.faulty() || !isManifest(f.path) {
			faulty[f.path] = true
		}
	}
	if len(faulty) == 0 {
		return
	}
	for id, p := range a.prev.objects {
		if _, settled := a.candidates[id]; !settled && below(faulty, p.path) {
			a.hold(id)
		}
	}
}

// below reports whether file or a folder above it is among paths.
func below(paths map[string]bool, file string) bool {
	for {
		if paths[file] {
			return true
		}
		i := strings.LastIndexByte(file, '/')
		if i < 0 {
			return false
		}
		file = file[:i]
	}
}

// quarantine holds the objects that problems name and that have no good version
// in this revision.
func (a *assembler) quarantine() {
	for _, p := range a.problems {
		id, ok := named(p)
		if !ok || !isError(p) {
			continue
		}
		if _, settled := a.force.objects[id]; !settled {
			a.hold(id)
		}
	}
	for id := range a.prev.lost {
		if _, settled := a.force.objects[id]; !settled && a.lineage != descends {
			a.force.lost[id] = true
			a.quarantined[id] = true
		}
	}
}

// keepVanished keeps what a rewritten history does not have, until a commit that
// descends from it does not have it either.
func (a *assembler) keepVanished() {
	for id, p := range a.prev.objects {
		if _, settled := a.force.objects[id]; settled {
			continue
		}
		if a.lineage == rewritten || a.lineage == same && p.held {
			p.held, p.vanished = true, true
			a.force.objects[id] = p
		}
	}
}

// settleClashes lets none of the objects that claim the same thing come into force
// anew: what was in force before stays.
func (a *assembler) settleClashes() {
	problems := a.crossCheck(a.desired())
	a.problems = append(a.problems, problems...)
	for _, p := range problems {
		id, ok := named(p)
		now, inForce := a.force.objects[id]
		if !ok || !inForce || !isError(p) {
			continue
		}
		if before, was := a.prev.objects[id]; was && before.sameAs(now) {
			now.held = true // or a restart could not tell which of them was first
			a.force.objects[id] = now
			continue
		}
		delete(a.force.objects, id)
		a.hold(id)
	}
}

// nameless reports whether the file has an error that belongs to nothing that is
// known by name, so that it may hold objects nobody knows of.
func (m manifest) nameless() bool {
	return isManifest(m.path) && slices.ContainsFunc(m.problems, func(p model.Problem) bool {
		return isError(p) && p.Object == ""
	})
}

// twice has a problem for each place that defines the same object.
func twice(id model.Identity, places []placed) []model.Problem {
	var problems []model.Problem
	for i, p := range places {
		var others []string
		for j, o := range places {
			if i != j {
				others = append(others, o.object.Metadata().Source)
			}
		}
		file, line := position(p)
		problems = append(problems, model.Problem{
			Severity: model.SeverityError, File: file, Line: line, Object: id.String(),
			Message: fmt.Sprintf("is also defined in %s: keep one of them", strings.Join(others, " and ")),
		})
	}
	return problems
}

// position returns where an object stands, from its source "path:line".
func position(p placed) (file string, line int) {
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

// desired turns an outcome into what the planner reads.
func (o outcome) desired() *model.Desired {
	d := model.NewDesired()
	for _, p := range o.force.objects {
		d.Add(p.object)
	}
	for id := range o.quarantined {
		d.Quarantined[id] = true
	}
	d.Problems = o.problems
	d.Incomplete = o.incomplete()
	return d
}
