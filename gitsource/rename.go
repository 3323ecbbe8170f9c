package gitsource

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"ingot/model"
)

// names are the claims of a step that have another name now, both ways.
type names struct {
	now, old map[model.Identity]model.Identity
}

func (n *names) pair(old, now model.Identity) { n.now[old], n.old[now] = now, old }

func (n *names) renaming(at model.Revision) model.Renaming {
	r := model.Renaming{Revision: at, Names: make(map[model.ClaimName]model.ClaimName, len(n.now))}
	for old, now := range n.now {
		r.Names[old.ClaimName()] = now.ClaimName()
	}
	return r
}

// naming finds the new names of the claims that a commit took away: they keep their server.
type naming struct {
	*assembler
	vanished, arrived []model.Identity
	changed           map[model.Identity]bool
	unclear           []model.Identity // perhaps removed, and perhaps renamed
}

// nameClaims finds which claims have other names. If one may have another name, and which is not
// certain, the claim stays in force and waits for an approval.
func (a *assembler) nameClaims() {
	a.names = names{make(map[model.Identity]model.Identity), make(map[model.Identity]model.Identity)}
	n := naming{assembler: a, changed: make(map[model.Identity]bool)}
	for id, r := range a.gone {
		if id.Kind == model.KindServerClaim && !r.Approved && a.prev.objects[id].object != nil {
			n.vanished = append(n.vanished, id)
		}
	}
	if len(n.vanished) == 0 {
		return
	}
	for id, places := range a.candidates {
		before := a.prev.objects[id]
		switch {
		case id.Kind != model.KindServerClaim || len(places) != 1 || a.prev.absent[id].Blob != "":
		case before.object == nil:
			n.arrived = append(n.arrived, id)
		case !before.sameAs(places[0]) && !sameContent(before.object, places[0].object):
			n.changed[id] = true
		}
	}
	pairs, _ := n.pairs(n.vanished, n.arrived)
	for old, now := range pairs {
		a.names.pair(old, now)
	}
	n.followChains()
	n.changedAlong()
	if a.joined {
		n.unclear = slices.AppendSeq(n.unclear, maps.Keys(a.names.now))
		a.names = names{}
	}
	for _, old := range n.unclear {
		a.unclear[old] = true
		a.keepAbsent(old, a.absence(old))
	}
	for _, old := range n.vanished {
		if _, renamed := a.names.now[old]; renamed || a.unclear[old] {
			delete(a.gone, old)
		}
	}
}

// left returns the claims that have no other name yet, and are not known by another one.
func (n *naming) left(ids []model.Identity) []model.Identity {
	return slices.DeleteFunc(slices.Clone(ids), func(id model.Identity) bool {
		_, renamed := n.names.now[id]
		_, taken := n.names.old[id]
		return renamed || taken
	})
}

// pairs finds claims of the same content in the same namespace. A claim that could be paired with several is
// paired with the one in the same file, or not at all. See changedAlong for those of another
// content. Doubtful are those whose content has a name now that another claim had.
func (n *naming) pairs(olds, nows []model.Identity) (found map[model.Identity]model.Identity, doubtful map[model.Identity]bool) {
	found, doubtful = make(map[model.Identity]model.Identity), make(map[model.Identity]bool)
	for _, same := range n.alike(olds, nows) {
		overwrites := slices.ContainsFunc(same.nows.all, func(id model.Identity) bool { return n.changed[id] })
		for _, old := range same.olds.all {
			doubtful[old] = overwrites
			now, ok := same.nows.only(n.before(old).path)
			if !ok || now == old {
				continue
			}
			if again, ok := same.olds.only(n.after(now).path); ok && again == old {
				found[old] = now
			}
		}
	}
	return found, doubtful
}

// followChains finds claims that vanished and whose content has a name now that another claim had, which has
// another name itself, and so on, until a name that is new. If a claim in between has no new name, it is not
// known what the one that vanished is called.
func (n *naming) followChains() {
	if len(n.changed) == 0 {
		return
	}
	changed := slices.Collect(maps.Keys(n.changed))
	next, doubtful := n.pairs(slices.Concat(n.left(n.vanished), changed), slices.Concat(n.left(n.arrived), changed))
	for _, vanished := range n.left(n.vanished) {
		end := vanished
		for now, ok := next[end]; ok; now, ok = next[end] {
			end = now
		}
		switch {
		case n.changed[end], end == vanished && doubtful[vanished]:
			n.unclear = append(n.unclear, vanished)
		case end != vanished:
			for old := vanished; old != end; old = next[old] {
				n.names.pair(old, next[old])
			}
		}
	}
}

// changedAlong pairs the one claim that vanished from a file with the one that is new in it,
// if what changed with the name leaves no doubt that it goes on, and else says why it does not.
func (n *naming) changedAlong() {
	byFile := func(ids []model.Identity, place func(model.Identity) located) map[string][]model.Identity {
		files := make(map[string][]model.Identity)
		for _, id := range n.left(ids) {
			if !slices.Contains(n.unclear, id) {
				files[place(id).path] = append(files[place(id).path], id)
			}
		}
		return files
	}
	came := byFile(n.arrived, n.after)
	for file, olds := range byFile(n.vanished, n.before) {
		if len(olds) != 1 || len(came[file]) != 1 {
			continue
		}
		old, now := olds[0], came[file][0]
		why := n.otherClaim(old, now)
		if why == "" {
			n.names.pair(old, now)
			continue
		}
		_, line := n.after(now).object.Metadata().Position()
		n.notes = append(n.notes, model.Problem{
			Severity: model.SeverityWarning, File: file, Line: line, Object: now.String(), Field: "metadata.name",
			Message: "is another claim than " + old.String() + ", which left this file with the same commit: " + why +
				". The server that the old one had is released. To keep a server, change the name alone, and the rest with the next commit",
		})
	}
}

func (n *naming) before(id model.Identity) located { return n.prev.objects[id] }

// after is an object as it will be in force, unless something is wrong with it.
func (n *naming) after(id model.Identity) located {
	if places := n.candidates[id]; len(places) == 1 {
		return places[0]
	}
	return n.effective.objects[id]
}

// otherClaim says why a claim with another name and another content does not go on as an old
// one of its file, "" if it does: it may differ in what may change in place, if it asks for the
// same secrets, and for the same image or the same server by name.
func (n *naming) otherClaim(old, now model.Identity) string {
	before, ok := n.before(old).object.(*model.ServerClaim)
	after, ok2 := n.after(now).object.(*model.ServerClaim)
	switch {
	case !ok || !ok2 || old.Namespace != now.Namespace:
		return "its namespace is another"
	case before.Tenant != after.Tenant:
		return "it belongs to another tenant"
	case !reflect.DeepEqual(before.Spec.ServerRef, after.Spec.ServerRef):
		return "its spec.serverRef is another"
	case !reflect.DeepEqual(before.Spec.ServerSelector, after.Spec.ServerSelector):
		return "its spec.serverSelector is another"
	case !n.sameSecret(old.Namespace, before.Spec.IgnitionSecretRef, after.Spec.IgnitionSecretRef),
		!n.sameSecret(old.Namespace, before.Spec.UserDataRef, after.Spec.UserDataRef):
		return "what its Secrets hold is another"
	case before.Spec.Image != after.Spec.Image && after.Spec.ServerRef == nil:
		return "its spec.image is another, and no spec.serverRef says that it is for the same server"
	}
	return ""
}

// alikeClaims are claims that ask for the same: those that vanished, and those that are new.
type alikeClaims struct {
	content    claimContent
	olds, nows claimsOfFiles
}

// claimsOfFiles are claims, also by the file that they stand in.
type claimsOfFiles struct {
	all    []model.Identity
	byFile map[string][]model.Identity
}

func (c *claimsOfFiles) add(id model.Identity, file string) {
	if c.byFile == nil {
		c.byFile = make(map[string][]model.Identity)
	}
	c.all, c.byFile[file] = append(c.all, id), append(c.byFile[file], id)
}

func (c *claimsOfFiles) only(file string) (model.Identity, bool) {
	for _, ids := range [][]model.Identity{c.all, c.byFile[file]} {
		if len(ids) == 1 {
			return ids[0], true
		}
	}
	return model.Identity{}, false
}

// alike are the claims by what they ask for. To compare each with each other would take hours of a
// fleet whose claims all get other names.
func (n *naming) alike(olds, nows []model.Identity) []*alikeClaims {
	var all []*alikeClaims
	byText := make(map[string][]*alikeClaims) // what is as text the same may still differ
	of := func(id model.Identity, in func(model.Identity) located) *alikeClaims {
		c := contentOfClaim(in(id).object.(*model.ServerClaim), in)
		text, _ := json.Marshal(c.bare) // without one all are compared
		for _, known := range byText[string(text)] {
			if reflect.DeepEqual(known.content, c) {
				return known
			}
		}
		one := &alikeClaims{content: c}
		all, byText[string(text)] = append(all, one), append(byText[string(text)], one)
		return one
	}
	for _, id := range olds {
		of(id, n.before).olds.add(id, n.before(id).path)
	}
	for _, id := range nows {
		of(id, n.after).nows.add(id, n.after(id).path)
	}
	return all
}

// claimContent is what a claim asks for, the content of its Secrets included. A Secret may have
// been renamed along.
type claimContent struct {
	bare           model.ServerClaim
	ignition, user secretContent
}

// secretContent is what a reference to a Secret leads to.
type secretContent struct {
	named   bool
	missing string // the name, if there is no such Secret
	kind    string
	values  map[string]model.Sensitive
}

func contentOfClaim(c *model.ServerClaim, find func(model.Identity) located) claimContent {
	return claimContent{
		nameless(c), contentOfSecret(c.Namespace, c.Spec.IgnitionSecretRef, find), contentOfSecret(c.Namespace, c.Spec.UserDataRef, find),
	}
}

func contentOfSecret(namespace string, ref *model.LocalRef, find func(model.Identity) located) secretContent {
	if ref == nil {
		return secretContent{}
	}
	if s, ok := secretOf(find, namespace, ref.Name); ok {
		return secretContent{named: true, kind: s.Type, values: s.Values}
	}
	return secretContent{named: true, missing: ref.Name}
}

// nameless is a claim without its name, its place and the names of its Secrets.
func nameless(c *model.ServerClaim) model.ServerClaim {
	bare := *c
	bare.Name, bare.Source, bare.References, bare.Places = "", "", nil, nil
	bare.Spec.IgnitionSecretRef, bare.Spec.UserDataRef = nil, nil
	return bare
}

// sameSecret reports whether two references lead to the same values, before and
// with this revision.
func (n *naming) sameSecret(namespace string, old, now *model.LocalRef) bool {
	return reflect.DeepEqual(contentOfSecret(namespace, old, n.before), contentOfSecret(namespace, now, n.after))
}

func secretOf(find func(model.Identity) located, namespace, name string) (*model.Secret, bool) {
	p := find(model.Identity{Kind: model.KindSecret, Namespace: namespace, Name: name})
	s, ok := p.object.(*model.Secret)
	return s, ok
}
