package gitsource

import (
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"

	"ingot/model"
)

// problemsOf are a file's problems, and why objects of it do not count.
func (f found) problemsOf(m manifest, tenants model.Tenants) []model.Problem {
	switch {
	case len(m.problems) == 0 && !m.refused && f.borrowed[m.path] == "":
		return nil
	case len(tenants) > 0 && tenants.Of(m.path) == nil && len(m.objects) == 0:
		return []model.Problem{{Severity: model.SeverityWarning, File: m.path, Message: "is below no path of git.tenants, so nothing in it counts"}}
	}
	problems := m.problems
	for _, o := range m.objects {
		if o.Metadata().Refused != "" {
			problems = append(slices.Clip(problems), model.RefusedProblem(o))
		}
		if f.isBorrowed(m.path, o) {
			file, line := o.Metadata().Position()
			problems = append(slices.Clip(problems), model.Problem{
				Severity: model.SeverityError, File: file, Line: line, Object: string(o.Identity().Kind), Message: f.borrowed[m.path], Rule: model.RuleTenant,
			})
		}
	}
	return problems
}

// keepRefused holds what was in force and stands now where it does not count: because
// the tenants are others than before, or because its file was moved there. Nobody takes
// away what is somebody else's by writing it where it does not count.
func (a *assembler) keepRefused() {
	for id, places := range a.refused {
		before, inForce := a.prev.objects[id]
		if _, absent := a.prev.absent[id]; absent || !inForce || a.settled(id) || a.candidates[id] != nil {
			continue
		}
		for _, p := range places {
			if a.wasThere(before, p) {
				a.keepLastGood(id, p.path)
				break
			}
		}
	}
}

// wasThere reports whether what is refused is an object in force, as far as can be told.
// Of one that is known by name alone any place may be the one that it has.
func (s *suspects) wasThere(before, refused located) bool {
	return before.object == nil || s.movedTo(before, refused) || slices.Contains(before.suspects(), refused.path)
}

// movedTo reports whether an object's file came to where it does not count. Written
// otherwise along the way it counts only where the object's owner can take it away, or
// anybody could hold up the removal of what is another's.
func (s *suspects) movedTo(before, refused located) bool {
	if blobAt(s.before, refused.path) == refused.blob {
		return false
	}
	stands := !blobAt(s.after, before.path).IsZero()
	of := s.owners.Owner(refused.path)
	return sameContent(before.object, refused.object) || !stands && (of == "" || of == before.owner())
}

// concerns reports whether a file's problem with an object may be about the one that is
// in force, or about one that would count: a tenant's mistake holds up nobody else.
func (r *rules) concerns(p model.Problem, id model.Identity, before located) bool {
	switch {
	case len(r.tenants) == 0:
		return true
	case before.object != nil:
		return before.owner() == r.tenants.Owner(p.File)
	}
	return r.tenants.Refuse(p.File, id) == ""
}

// tellApart leaves of the places that define an object those of the tenant whose it is:
// whoever had it first. The others do not count until he gives it up.
func (a *assembler) tellApart() {
	for id, places := range a.candidates {
		before := a.prev.objects[id]
		owner := before.owner()
		foreign := func(p located) bool { return p.owner() != owner }
		switch {
		case owner == "" || !slices.ContainsFunc(places, foreign):
		case a.orphaned(before):
			a.findHeir(id, before, places)
		case len(places) == 1 && (a.handedOver(id, before, places[0]) || a.inherits(id, before, places[0])):
		default:
			a.contested[id] = true
			for _, p := range places {
				if foreign(p) {
					a.heirs[id] = append(a.heirs[id], p)
					a.problems = append(a.problems, a.notYours(id, before, p))
				}
			}
			a.leave(id, slices.DeleteFunc(places, foreign))
		}
	}
}

// leave has some of the places count that define an object.
func (f found) leave(id model.Identity, places []located) {
	if f.candidates[id] = places; len(places) == 0 {
		delete(f.candidates, id)
	}
}

// orphaned reports whether an object known by name alone is of a path that is no tenant's
// any more.
func (r *rules) orphaned(before located) bool {
	return before.object == nil && len(r.tenants) > 0 && r.tenants.At(before.owner()) == nil
}

// findHeir has the place count of whoever has now what a path had that is no tenant's any
// more. If that cannot be told the object stays as it is.
func (a *assembler) findHeir(id model.Identity, before located, places []located) {
	heir := slices.DeleteFunc(slices.Clone(places), func(p located) bool { return !a.inherits(id, before, p) })
	for _, p := range places {
		if len(heir) != 1 || p.path != heir[0].path {
			a.problems = append(a.problems, contested(id, p, before.owner()+
				", which is no path of git.tenants any more: move its file from there as it is, or have the path there again"))
		}
	}
	if len(heir) == 1 {
		a.contested[id] = len(places) > 1
		a.leave(id, heir)
		return
	}
	a.leave(id, nil)
	a.keepOrQuarantine(id, before.owner())
}

// succeed puts in force what another tenant has of the name of an object that was
// removed: a new object. The old one of a name that a claim gave up is not removed.
func (a *assembler) succeed() {
	came := make(map[model.Identity]bool)
	for id, heirs := range a.heirs {
		if _, gone := a.gone[id]; gone && len(heirs) == 1 {
			a.effective.objects[id] = heirs[0]
			came[id] = true
		}
	}
	if len(came) > 0 {
		a.settleHeirs(came)
	}
}

// settleHeirs takes out those that claim what another object does: all others came
// before them.
func (a *assembler) settleHeirs(came map[model.Identity]bool) {
	told := make(map[model.Problem]bool, len(a.problems))
	for _, p := range a.problems {
		told[p] = true
	}
	a.read()
	for _, p := range a.crossCheck(a.desired()) {
		a.effective.fits = false
		if !told[p] {
			a.problems = append(a.problems, p)
		}
		id, ok := named(p)
		switch now, inForce := a.effective.objects[id]; {
		case !ok || !inForce || !isError(p):
		case came[id]:
			delete(a.effective.objects, id)
		default:
			a.keep(id, now)
		}
	}
	a.read()
}

// succeeds reports whether a tenant's object would be a new one after another tenant's of
// the same name, which was removed. That one's removal goes on whatever is wrong with this.
func (f effective) succeeds(id model.Identity, owner string) bool {
	of := func(r model.Removal) bool { return r.IsOf(owner) }
	_, inForce := f.objects[id]
	gone := f.removed[id]
	return !inForce && len(gone) > 0 && !slices.ContainsFunc(gone, of)
}

// handedOver reports whether the commit took an object from its place, wrote the same to that of
// another tenant, and had the consent of the one who gave it away.
func (a *assembler) handedOver(id model.Identity, before, now located) bool {
	if !a.movedOver(before, now) || claiming(id.Kind) && !consents(before.object, now.owner()) {
		return false
	}
	a.unclear[id] = a.joined // perhaps it was given away, and perhaps it was removed
	return !a.joined
}

// movedOver reports whether a commit that descends took an object from its place and wrote the same to
// that of another tenant. What cannot be read of a place took nothing away.
func (a *assembler) movedOver(before, now located) bool {
	return a.lineage == lineageDescends && blobAt(a.before, now.path) != now.blob && before.object != nil && len(a.suspectsOf(before)) == 0 &&
		reflect.DeepEqual(withoutConsent(before.object), withoutConsent(now.object))
}

// consents reports whether an object may be handed over to a tenant.
func consents(o model.Object, tenant string) bool {
	to := o.Metadata().Annotations[model.AnnotationHandOverTo]
	return to != "" && path.Clean(to) == tenant
}

// withoutConsent is the content of an object without the annotation that hands it over.
func withoutConsent(o model.Object) any {
	bare := content(o)
	m := bare.Metadata()
	m.Annotations = maps.Clone(m.Annotations)
	if delete(m.Annotations, model.AnnotationHandOverTo); len(m.Annotations) == 0 {
		m.Annotations = nil
	}
	return bare
}

// notYours is the problem of an object that another tenant had first.
func (a *assembler) notYours(id model.Identity, before, now located) model.Problem {
	p := contested(id, now, before.owner()+", which had it first: take one of them away")
	if claiming(id.Kind) && !a.joined && a.movedOver(before, now) {
		p.Severity = model.SeverityWarning
		p.Message = fmt.Sprintf("is a new claim, and the server of the one that %s removed is released: to hand a claim over, that one needs "+
			"annotation %s: %s before the commit that moves it", before.owner(), model.AnnotationHandOverTo, now.owner())
	}
	return p
}

// inherits reports whether a place that defines an object known by name alone is that of
// whoever has its owner's folder now: the records name a path of before the restart, and
// it was split, is another, or there are no tenants any more. What another path has is the
// same object if it came as it was from where the old path had it, or nobody else may
// define it.
func (a *assembler) inherits(id model.Identity, before, now located) bool {
	below := model.Tenants{{Path: before.owner()}}
	switch {
	case before.object != nil:
		return false
	case len(a.tenants) == 0, below.Of(now.path) != nil:
		return true
	case a.tenants.At(before.owner()) != nil:
		return false
	}
	was := before.rarely()
	return onlyOneMay(a.tenants, id) || was.previous != nil && sameContent(was.previous.object, now.object) &&
		(slices.Contains(was.behind, now.path) ||
			a.lineage == lineageDescends && !was.previous.gone && !a.standsAt(id, was.previous.path) && blobAt(a.before, now.path) != now.blob)
}

// onlyOneMay reports whether one tenant alone may define an object.
func onlyOneMay(tenants model.Tenants, id model.Identity) bool {
	n := 0
	for i := range tenants {
		if tenants[i].Refuse(id) == "" {
			n++
		}
	}
	return n == 1
}

// standsAt reports whether a file defines an object, whether it counts there or not.
func (f found) standsAt(id model.Identity, file string) bool {
	there := func(p located) bool { return p.path == file }
	return slices.ContainsFunc(f.refused[id], there) || slices.ContainsFunc(f.candidates[id], there)
}

// contested is the problem of an object that somebody else has.
func contested(id model.Identity, p located, whose string) model.Problem {
	file, line := position(p)
	return model.Problem{Severity: model.SeverityError, File: file, Line: line, Object: id.String(), Message: "belongs to " + whose}
}
