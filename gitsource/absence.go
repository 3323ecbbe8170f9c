package gitsource

import (
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
	return kind == model.KindServerClaim || kind == model.KindServer || kind == model.KindServerMaintenance
}

// approved reports whether a commit approves that Git's word is taken for what was
// listed before. Tokens of this very step are not known to anybody yet.
func (a *assembler) approved(e model.Absence) bool {
	return slices.Contains(a.approvals, e.Token) || a.prev.token != "" && slices.Contains(a.approvals, a.prev.token)
}

// listed reports whether what Git has of an object is not to be taken over, and
// lists it then: no commit that descends from the revision in force made it so.
func (a *assembler) listed(id model.Identity, now placed) bool {
	e, was := a.prev.absent[id]
	switch {
	case was && a.approved(e):
		return false
	case a.lineage == rewritten:
		if !a.differs(id, now) {
			return false
		}
	case !was || e.Blob == "" || a.lineage == descends && !a.unchanged(id, e, now):
		return false
	}
	before, known := a.prev.offered[id]
	blob := now.blob.String()
	switch {
	case !was:
		e = a.absence(id)
	case e.Blob != blob && !(known && sameContent(before.object, now.object)):
		e.Token = a.token() // it would approve what nobody has read
	}
	e.Blob = blob
	a.keepAbsent(id, e)
	a.force.offered[id] = now
	return true
}

// differs reports whether a revision that does not descend says of an object what
// cannot be taken over unasked.
func (a *assembler) differs(id model.Identity, now placed) bool {
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
	return protected(id.Kind) && id.Kind != model.KindServerClaim && a.cause != model.AbsentAppliedUnknown
}

// unchanged reports whether a descendant left alone what is listed: a change to
// another object of the same file says nothing about this one.
func (a *assembler) unchanged(id model.Identity, e model.Absence, now placed) bool {
	if now.blob.String() == e.Blob {
		return true
	}
	before, known := a.prev.offered[id]
	return known && a.size[now.path] > 1 && sameContent(before.object, now.object)
}

// absence is a new entry of the list.
func (a *assembler) absence(id model.Identity) model.Absence {
	cause := a.cause
	if a.lineage == same {
		cause = model.AbsentAppliedUnknown
	}
	return model.Absence{Identity: id, Since: a.at, Cause: cause, Token: a.token()}
}

// keepAbsent lists an object, which stays in force if it is.
func (a *assembler) keepAbsent(id model.Identity, e model.Absence) {
	if _, inForce := a.prev.objects[id]; inForce {
		a.hold(id)
	}
	a.force.absent[id] = e
}

// settleVanished decides what becomes of the objects that the revision lacks.
func (a *assembler) settleVanished() {
	for id, e := range a.prev.absent {
		if a.candidates[id] == nil && !a.settled(id) {
			a.settleAbsent(id, e)
		}
	}
	for id, p := range a.prev.objects {
		_, absent := a.prev.absent[id]
		switch {
		case absent || a.candidates[id] != nil || a.settled(id):
		case a.lineage == same && p.object == nil && id.Kind == model.KindServer:
			// Records know it from discovery: Git had none of its name.
		case a.lineage != descends:
			a.keepAbsent(id, a.absence(id))
		case len(a.fresh) > 0:
			a.hold(id, a.fresh...)
		default:
			a.gone[id] = model.Removal{Revision: a.revision, At: a.at}
		}
	}
}

// settleAbsent decides what becomes of an object that was listed and that the
// revision lacks.
func (a *assembler) settleAbsent(id model.Identity, e model.Absence) {
	_, inForce := a.prev.objects[id]
	offered := a.prev.offered[id].path
	switch {
	case a.approved(e):
		if inForce {
			a.gone[id] = model.Removal{Revision: a.revision, At: a.at, Approved: true}
		}
	case e.Blob == "" || a.lineage == descends && offered != "" && below(a.faulty, offered):
		a.keepAbsent(id, e)
	case a.lineage != descends:
		if inForce {
			e.Blob, e.Token = "", a.token()
			a.keepAbsent(id, e)
		}
	case len(a.fresh) > 0:
		a.keepAbsent(id, e)
	case inForce:
		// The revision in force had it, if otherwise, and a commit took it away.
		a.gone[id] = model.Removal{Revision: a.revision, At: a.at}
	}
}

// follow notes what was removed and renamed, in this step and before: whoever
// missed a revision finds it all the same.
func (a *assembler) follow() {
	pairs := a.renames()
	removed, renamed := a.force.removed, a.force.renamed
	maps.Copy(removed, a.prev.removed)
	maps.Copy(removed, a.gone)
	for id := range a.force.objects {
		delete(removed, id)
	}
	for old := range pairs {
		delete(removed, claimIdentity(old))
	}
	for old, now := range a.prev.renamed {
		if further, again := pairs[now]; again {
			now = further
		}
		if r, gone := removed[claimIdentity(now)]; gone {
			removed[claimIdentity(old)] = r
			continue
		}
		renamed[old] = now
	}
	maps.Copy(renamed, pairs)
	for id := range a.force.objects {
		if id.Kind == model.KindServerClaim {
			delete(renamed, claimName(id))
		}
	}
}

// settleTokens keeps the token of the whole list as long as nothing came to it:
// nobody may approve what was not listed when the token was read.
func (a *assembler) settleTokens() {
	if len(a.force.absent) == 0 {
		return
	}
	a.force.token = a.prev.token
	for id, e := range a.force.absent {
		if e.Token == "" {
			e.Token = a.token()
			a.force.absent[id] = e
		}
		if e.Token != a.prev.absent[id].Token {
			a.force.token = ""
		}
	}
	if a.force.token == "" {
		a.force.token = a.token()
	}
}

// sameContent reports whether two objects say the same, wherever they stand.
func sameContent(a, b model.Object) bool { return reflect.DeepEqual(content(a), content(b)) }

// content is an object without its place.
func content(o model.Object) model.Object {
	switch o := o.(type) {
	case *model.ServerClaim:
		c := *o
		c.Source = ""
		return &c
	case *model.Server:
		c := *o
		c.Source = ""
		return &c
	case *model.ServerMaintenance:
		c := *o
		c.Source = ""
		return &c
	case *model.Secret:
		c := *o
		c.Source = ""
		return &c
	}
	return o
}

// claimName is the name of a claim's identity.
func claimName(id model.Identity) model.ClaimName {
	return model.Named[model.ClaimName](id.Namespace, id.Name)
}

func claimIdentity(name model.ClaimName) model.Identity {
	namespace, n := model.SplitName(name)
	return model.Identity{Kind: model.KindServerClaim, Namespace: namespace, Name: n}
}

// rewriteText says what the list of absences means and how it ends.
func (f force) rewriteText() string {
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
