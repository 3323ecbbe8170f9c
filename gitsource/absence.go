package gitsource

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"ingot/model"
)

// newToken returns a token that nobody can know before it is published.
func newToken() string { return rand.Text() }

// protected reports whether a revision that does not descend leaves objects of this
// kind as they were: a server's user would feel the difference.
func protected(kind model.Kind) bool {
	return claiming(kind) || kind == model.KindServer || kind == model.KindServerMaintenance
}

func claiming(kind model.Kind) bool {
	return kind == model.KindServerClaim || kind == model.KindServerBootConfiguration
}

// approved reports whether a commit approves that Git's word is taken for what was
// listed before. Tokens of this very step are not known to anybody yet.
func (s *step) approved(e model.Absence, prev effective) bool {
	return slices.Contains(s.approvals, e.Token) || prev.token != "" && slices.Contains(s.approvals, prev.token)
}

// listed reports whether what Git has of an object is not to be taken over, and
// lists it then: no commit that descends from the revision in force made it so.
func (a *assembler) listed(id model.Identity, now located) bool {
	e, was := a.prev.absent[id]
	before, known := a.prev.offered[id]
	blob := now.blob.String()
	read := was && (e.Blob == blob || known && sameContent(before.object, now.object))
	switch {
	case read && a.approved(e, a.prev):
		return false
	case a.lineage == rewritten:
		if !a.differs(id, now) {
			return false
		}
	case !was || e.Blob == "" || a.lineage == lineageDescends && !a.prev.unchanged(id, e, now):
		return false
	}
	switch {
	case !was:
		e = a.absence(id)
	case !read:
		e.Token = a.token() // it would approve what nobody has read
	}
	e.Blob = blob
	a.keepAbsent(id, e)
	a.effective.offered[id] = now
	return true
}

// differs reports whether a revision that does not descend says of an object what
// cannot be taken over unasked.
func (a *assembler) differs(id model.Identity, now located) bool {
	before, inForce := a.prev.objects[id]
	e, was := a.prev.absent[id]
	switch {
	case before.object != nil:
		return protected(id.Kind) && !sameContent(before.object, now.object)
	case was:
		return e.Blob != ""
	case inForce: // by name alone: what it was cannot be had
		return false
	}
	return protected(id.Kind) && !claiming(id.Kind) && a.cause != model.AbsentAppliedUnknown
}

// unchanged reports whether a descendant left alone what is listed: a change to
// another object of the same file says nothing about this one.
func (f effective) unchanged(id model.Identity, e model.Absence, now located) bool {
	if now.blob.String() == e.Blob {
		return true
	}
	before, known := f.offered[id]
	return known && (before.shared || now.shared) && sameContent(before.object, now.object)
}

func (a *assembler) absence(id model.Identity) model.Absence {
	cause := a.cause
	switch {
	case a.lineage == lineageSame:
		cause = model.AbsentAppliedUnknown
	case a.unclear[id]:
		cause = model.AbsentNameUnclear
	}
	return model.Absence{Identity: id, Since: a.at, Cause: cause, Token: a.token()}
}

// keepAbsent lists an object, which stays in force if it is, with the faulty files
// that may hold what Git has in its place.
func (a *assembler) keepAbsent(id model.Identity, e model.Absence, behind ...string) {
	if _, inForce := a.prev.objects[id]; inForce {
		a.keepLastGood(id)
	}
	a.list(id, e, behind...)
}

// list keeps an entry of the list, with what Git has in the place of the object as it
// was last read.
func (a *assembler) list(id model.Identity, e model.Absence, behind ...string) {
	a.effective.absent[id] = e
	offered, known := a.prev.offered[id]
	if e.Blob == "" || !known && len(behind) == 0 {
		delete(a.effective.offered, id)
		return
	}
	if len(behind) > 0 {
		offered.alter(func(r *rarely) { r.behind = behind })
	}
	a.effective.offered[id] = offered
}

// settleVanished decides what becomes of the objects that the revision lacks.
func (a *assembler) settleVanished() {
	for id, e := range a.prev.absent {
		if a.candidates[id] == nil && !a.settled(id) {
			a.settleAbsent(id, e)
		}
	}
	for id := range a.scope {
		p, was := a.prev.objects[id]
		_, absent := a.prev.absent[id]
		switch {
		case !was || absent || a.candidates[id] != nil || a.settled(id):
		case a.lineage == lineageSame && p.object == nil && id.Kind == model.KindServer:
			// Records know it from discovery: Git had none of its name.
		case a.lineage != lineageDescends || a.unclear[id]:
			a.keepAbsent(id, a.absence(id))
		case len(a.freshOf(id, p)) > 0:
			a.keepLastGood(id, a.freshOf(id, p)...)
		default:
			a.remove(id, false)
		}
	}
}

// settleAbsent decides what becomes of an object that was listed and that the
// revision lacks. Who approved what Git had in its place did not approve its removal.
func (a *assembler) settleAbsent(id model.Identity, e model.Absence) {
	before, inForce := a.prev.objects[id]
	offered := a.prev.offered[id]
	behind, fresh := a.suspectsOf(offered), a.fresh[cmp.Or(offered.owner(), before.owner())]
	switch {
	case e.Blob == "" && a.approved(e, a.prev):
		a.remove(id, true)
	case e.Blob == "":
		a.keepAbsent(id, e)
	case a.lineage != lineageDescends && inForce:
		e.Blob, e.Token = "", a.token()
		a.keepAbsent(id, e)
	case a.lineage != lineageDescends:
		// Neither in force nor in Git any more.
	case len(behind)+len(fresh) > 0:
		a.keepAbsent(id, e, bounded(slices.Concat(behind, fresh))...)
	default:
		// The revision in force had it, if otherwise, and a commit took it away.
		a.remove(id, false)
	}
}

// remove notes that the revision took an object away, if it was in force.
func (a *assembler) remove(id model.Identity, approved bool) {
	if _, inForce := a.prev.objects[id]; inForce {
		a.gone[id] = model.Removal{Revision: a.revision, At: a.at, Approved: approved, Tenant: a.prev.objects[id].owner()}
	}
}

// follow notes what was removed and renamed, in this step and before: whoever
// missed a revision finds it all the same.
func (a *assembler) follow() {
	a.succeed()
	removed := a.effective.removed
	maps.Copy(removed, a.prev.removed)
	for id, r := range a.gone {
		was := a.prev.objects[id]
		for _, tenant := range append(slices.Clip(was.rarely().formerly), r.Tenant) {
			r.Tenant = tenant
			removed[id] = append(without(removed[id], r.Tenant), r)
		}
		a.effective.undoable[id] = append(slices.Clip(a.effective.undoable[id]), was)
	}
	for id := range removed {
		if p, back := a.effective.objects[id]; back {
			a.effective.forget(id, p.owner())
		}
	}
	a.effective.renamed = a.prev.renamed
	if renaming := a.names.renaming(a.revision); len(renaming.Names) > 0 {
		a.effective.renamed = append(slices.Clip(a.prev.renamed), renaming)
	}
}

// forget takes out the removal of a tenant's object, which is back or goes on by another
// name. Those of another's of the same name stay.
func (f effective) forget(id model.Identity, tenant string) {
	if left := without(f.removed[id], tenant); len(left) > 0 {
		f.removed[id] = left
	} else {
		delete(f.removed, id)
	}
}

// without are the removals of one name but those of a tenant's, and of nobody's.
func without(all []model.Removal, tenant string) []model.Removal {
	return slices.DeleteFunc(slices.Clone(all), func(r model.Removal) bool { return r.Tenant == "" || r.Tenant == tenant })
}

// settleTokens keeps the token of the whole list as long as nothing came to it:
// nobody may approve what was not listed when the token was read.
func (f *effective) settleTokens(prev effective, newToken func() string) {
	if len(f.absent) == 0 {
		return
	}
	f.token = prev.token
	for id, e := range f.absent {
		if e.Token == "" {
			e.Token = newToken()
			f.absent[id] = e
		}
		if e.Token != prev.absent[id].Token {
			f.token = ""
		}
	}
	if f.token == "" {
		f.token = newToken()
	}
}

// sameContent reports whether two objects say the same, wherever they stand.
func sameContent(a, b model.Object) bool { return reflect.DeepEqual(content(a), content(b)) }

func content(o model.Object) model.Object {
	c := reflect.New(reflect.TypeOf(o).Elem())
	c.Elem().Set(reflect.ValueOf(o).Elem())
	bare := c.Interface().(model.Object)
	m := bare.Metadata()
	m.Source, m.Tenant, m.Refused, m.References, m.Places, m.Encrypted, m.DataKey = "", "", "", nil, nil, false, ""
	return bare
}

// rewriteText says what the list of absences means and how it ends.
func (f effective) rewriteText() string {
	ids := make([]string, 0, len(f.absent))
	for id := range f.absent {
		ids = append(ids, id.String())
	}
	what, approve := "object stays", "it"
	if len(ids) > 1 {
		what, approve = "objects stay", "them all"
	}
	return fmt.Sprintf("%d %s as before, because no commit that descends from the revision applied changed or removed what Git has otherwise or lacks (the first is %s): put it back, or approve %s with a commit whose message ends in Ingot-Approve: %s",
		len(ids), what, slices.Min(ids), approve, f.token)
}
