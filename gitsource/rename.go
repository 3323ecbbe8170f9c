package gitsource

import (
	"encoding/json"
	"reflect"

	"ingot/model"
)

// renames pairs claims that vanished with new ones of the same content, in the same
// namespace: they keep their server. A claim that could be paired with several is
// paired with the one in the same file, or not at all. See changedAlong for those of another
// content.
func (a *assembler) renames() map[model.ClaimName]model.ClaimName {
	var vanished, arrived []model.Identity
	for id, r := range a.gone {
		if id.Kind == model.KindServerClaim && !r.Approved && a.prev.objects.of(id).object != nil {
			vanished = append(vanished, id)
		}
	}
	if len(vanished) == 0 {
		return nil
	}
	for id, p := range a.effective.objects.all() {
		_, was := a.prev.objects.get(id)
		if id.Kind == model.KindServerClaim && !was && p.object != nil {
			arrived = append(arrived, id)
		}
	}
	pairs := make(map[model.ClaimName]model.ClaimName)
	for _, same := range a.alike(vanished, arrived) {
		for _, old := range same.olds.all {
			now, ok := same.nows.only(a.prev.objects.of(old).path)
			if !ok {
				continue
			}
			if again, ok := same.olds.only(a.effective.objects.of(now).path); ok && again == old {
				pairs[old.ClaimName()] = now.ClaimName()
			}
		}
	}
	a.changedAlong(pairs, vanished, arrived)
	return pairs
}

// changedAlong pairs the one claim that vanished from a file with the one that is new in it,
// if what changed with the name leaves no doubt that it goes on, and else says why it does not.
func (a *assembler) changedAlong(pairs map[model.ClaimName]model.ClaimName, vanished, arrived []model.Identity) {
	paired := make(map[model.ClaimName]bool, 2*len(pairs))
	for old, now := range pairs {
		paired[old], paired[now] = true, true
	}
	left := func(ids []model.Identity, in *objectsInForce) map[string][]model.Identity {
		byFile := make(map[string][]model.Identity)
		for _, id := range ids {
			if !paired[id.ClaimName()] {
				byFile[in.of(id).path] = append(byFile[in.of(id).path], id)
			}
		}
		return byFile
	}
	came := left(arrived, a.effective.objects)
	for file, olds := range left(vanished, a.prev.objects) {
		if len(olds) != 1 || len(came[file]) != 1 {
			continue
		}
		old, now := olds[0], came[file][0]
		why := a.otherClaim(old, now)
		if why == "" {
			pairs[old.ClaimName()] = now.ClaimName()
			continue
		}
		o := a.effective.objects.of(now).object
		_, line := o.Metadata().Position()
		a.problems = append(a.problems, model.Problem{
			Severity: model.SeverityWarning, File: file, Line: line, Object: now.String(), Field: "metadata.name",
			Message: "is another claim than " + old.String() + ", which left this file with the same push: " + why +
				". The server that the old one had is released. To keep a server, change the name alone, and the rest with the next push",
		})
	}
}

// otherClaim says why a claim with another name and another content does not go on as an old
// one of its file, "" if it does: it may differ in what may change in place, if it asks for the
// same secrets, and for the same image or the same server by name.
func (a *assembler) otherClaim(old, now model.Identity) string {
	before, ok := a.prev.objects.of(old).object.(*model.ServerClaim)
	after, ok2 := a.effective.objects.of(now).object.(*model.ServerClaim)
	switch {
	case !ok || !ok2 || old.Namespace != now.Namespace:
		return "its namespace is another"
	case before.Tenant != after.Tenant:
		return "it belongs to another tenant"
	case !reflect.DeepEqual(before.Spec.ServerRef, after.Spec.ServerRef):
		return "its spec.serverRef is another"
	case !reflect.DeepEqual(before.Spec.ServerSelector, after.Spec.ServerSelector):
		return "its spec.serverSelector is another"
	case !a.sameSecret(old.Namespace, before.Spec.IgnitionSecretRef, after.Spec.IgnitionSecretRef),
		!a.sameSecret(old.Namespace, before.Spec.UserDataRef, after.Spec.UserDataRef):
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

// only returns the one of several claims, or the only one in a file.
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
func (a *assembler) alike(vanished, arrived []model.Identity) []*alikeClaims {
	var all []*alikeClaims
	byText := make(map[string][]*alikeClaims) // what is as text the same may still differ
	of := func(c claimContent) *alikeClaims {
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
	for _, id := range vanished {
		p := a.prev.objects.of(id)
		if c, ok := p.object.(*model.ServerClaim); ok {
			of(contentOfClaim(c, a.before)).olds.add(id, p.path)
		}
	}
	for _, id := range arrived {
		p := a.effective.objects.of(id)
		if c, ok := p.object.(*model.ServerClaim); ok {
			of(contentOfClaim(c, a.inForce)).nows.add(id, p.path)
		}
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

func contentOfClaim(c *model.ServerClaim, find func(model.Identity) (located, bool)) claimContent {
	return claimContent{
		nameless(c), contentOfSecret(c.Namespace, c.Spec.IgnitionSecretRef, find), contentOfSecret(c.Namespace, c.Spec.UserDataRef, find),
	}
}

func contentOfSecret(namespace string, ref *model.LocalRef, find func(model.Identity) (located, bool)) secretContent {
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
	bare.Name, bare.Source, bare.References = "", "", nil
	bare.Spec.IgnitionSecretRef, bare.Spec.UserDataRef = nil, nil
	return bare
}

// sameSecret reports whether two references lead to the same values, before and
// with this revision.
func (a *assembler) sameSecret(namespace string, old, now *model.LocalRef) bool {
	return reflect.DeepEqual(contentOfSecret(namespace, old, a.before), contentOfSecret(namespace, now, a.inForce))
}

func secretOf(find func(model.Identity) (located, bool), namespace, name string) (*model.Secret, bool) {
	p, _ := find(model.Identity{Kind: model.KindSecret, Namespace: namespace, Name: name})
	s, ok := p.object.(*model.Secret)
	return s, ok
}
