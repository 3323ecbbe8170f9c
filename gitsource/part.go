package gitsource

import (
	"slices"

	"ingot/model"
)

// assembleChanged comes to the same as assembleAll, and looks at nothing but the files that
// changed and their objects. It can while what was in force and what comes are plain: then
// what becomes of an object follows from the files that have it or had it, and from nothing
// else but the checks between objects. Else it returns false.
func assembleChanged(c change, r rules) (outcome, bool) {
	if !c.prev.plain || c.lineage != lineageDescends {
		return outcome{}, false
	}
	was, now := changedFiles(c.prev.files, c.files)
	part := c
	part.prev, part.files = c.prev.objectsOf(was), now
	if !standsNowhereElse(now, part.prev.objects, c.prev.objects) {
		return outcome{}, false
	}
	a := newAssembler(part, r)
	a.aside = c.prev.objects
	a.crossCheck = func(*model.Desired) []model.Problem { return nil } // whole does it
	a.run()
	if !a.isPlain() {
		return outcome{}, false
	}
	return a.whole(c.prev, c.files, r)
}

// changedFiles are those of the files before and after, both in order of path, that the
// others do not have just so.
func changedFiles(before, after []manifest) (was, now []manifest) {
	for len(before) > 0 || len(after) > 0 {
		switch {
		case len(after) == 0, len(before) > 0 && before[0].path < after[0].path:
			was, before = append(was, before[0]), before[1:]
		case len(before) == 0, after[0].path < before[0].path:
			now, after = append(now, after[0]), after[1:]
		default:
			if before[0] != after[0] {
				was, now = append(was, before[0]), append(now, after[0])
			}
			before, after = before[1:], after[1:]
		}
	}
	return was, now
}

// objectsOf is what is in force of some files alone.
func (f effective) objectsOf(files []manifest) effective {
	part := newEffective()
	part.files, part.removed, part.renamed = files, f.removed, f.renamed
	for _, file := range files {
		for _, o := range file.objects {
			id := o.Identity()
			part.objects.set(id, f.objects.of(id))
		}
	}
	return part
}

// standsNowhereElse reports whether no object of the files is one of all that are in force
// but for those of their own.
func standsNowhereElse(files []manifest, own, all *objectsInForce) bool {
	for _, file := range files {
		for _, o := range file.objects {
			id := o.Identity()
			if _, inForce := all.get(id); !inForce {
				continue
			}
			if _, itself := own.get(id); !itself {
				return false
			}
		}
	}
	return true
}

// isPlain reports whether what is in force is what the files say and nothing else, and
// nothing is wrong with them or between them.
func (a *assembler) isPlain() bool {
	count := 0
	for _, f := range a.files {
		count += len(f.objects)
	}
	odd := len(a.faulty) + len(a.refused) + len(a.unread) + len(a.quarantined) + len(a.effective.absent) + len(a.contested) + a.clashes
	if odd > 0 || count != a.effective.objects.len() || model.HasErrors(a.problems) {
		return false
	}
	for _, f := range a.files {
		elsewhere := func(p model.Problem) bool { return p.File != f.path }
		if slices.ContainsFunc(f.problems, elsewhere) {
			return false
		}
		for _, o := range f.objects {
			if p := a.effective.objects.of(o.Identity()); p.object != o || p.path != f.path || p.lastGood {
				return false
			}
		}
	}
	return true
}

// whole puts the part that was assembled in the place of what was in force of the same
// files. It returns false if the objects do not fit together then.
func (a *assembler) whole(prev effective, files []manifest, r rules) (outcome, bool) {
	changes := a.changes()
	out := a.outcome
	out.effective.files, out.effective.plain = files, true
	out.effective.objects, out.effective.content = prev.objects, prev.content
	if len(changes) > 0 {
		out.effective.objects = prev.objects.replacing(a.prev.objects, a.effective.objects)
		out.effective.content = prev.content.With(changes)
	}
	stillFit := r.stillFit != nil && r.stillFit(out.effective.content, changes)
	if !stillFit && len(r.crossCheck(out.effective.content)) > 0 {
		return outcome{}, false
	}
	others := a.notedOfOthers(prev)
	out.effective.noted = slices.Concat(others, a.noted)
	out.problems = slices.Concat(others, a.problems)
	model.SortProblems(out.effective.noted)
	model.SortProblems(out.problems)
	return out, true
}

// changes are what became of the objects of the part.
func (a *assembler) changes() []model.Change {
	var all []model.Change
	for id, before := range a.prev.objects.all() {
		all = append(all, model.Change{Before: before.object, After: a.effective.objects.of(id).object})
	}
	for id, after := range a.effective.objects.all() {
		if _, was := a.prev.objects.get(id); !was {
			all = append(all, model.Change{After: after.object})
		}
	}
	return all
}

// notedOfOthers are what files were warned of that are not of the part.
func (a *assembler) notedOfOthers(prev effective) []model.Problem {
	if len(prev.noted) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(prev.noted), func(p model.Problem) bool {
		_, part := a.prev.find(p.File)
		return part
	})
}

// before is an object as it was in force, also where a part is assembled.
func (a *assembler) before(id model.Identity) (located, bool) {
	if p, was := a.prev.objects.get(id); was {
		return p, true
	}
	p, was := a.aside.get(id)
	return p, was
}

// inForce is an object as it is in force, also where a part is assembled.
func (a *assembler) inForce(id model.Identity) (located, bool) {
	if p, is := a.effective.objects.get(id); is {
		return p, true
	}
	if _, was := a.prev.objects.get(id); was {
		return located{}, false
	}
	p, is := a.aside.get(id)
	return p, is
}
