package gitsource

import (
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
	forth, back := make(map[model.Identity][]model.Identity), make(map[model.Identity][]model.Identity)
	for _, old := range vanished {
		for _, now := range arrived {
			if a.sameClaim(old, now) {
				forth[old] = append(forth[old], now)
				back[now] = append(back[now], old)
			}
		}
	}
	pairs := make(map[model.ClaimName]model.ClaimName)
	for old := range forth {
		now, ok := a.only(forth[old], a.prev.objects.of(old).path, a.effective.objects)
		if !ok {
			continue
		}
		if again, ok := a.only(back[now], a.effective.objects.of(now).path, a.prev.objects); ok && again == old {
			pairs[old.ClaimName()] = now.ClaimName()
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

// only returns the one of several identities, or the only one in a file.
func (a *assembler) only(ids []model.Identity, file string, in *objectsInForce) (model.Identity, bool) {
	if len(ids) == 1 {
		return ids[0], true
	}
	var found []model.Identity
	for _, id := range ids {
		if in.of(id).path == file {
			found = append(found, id)
		}
	}
	if len(found) != 1 {
		return model.Identity{}, false
	}
	return found[0], true
}

// sameClaim reports whether two claims ask for the same, the content of their
// Secrets included. A Secret may have been renamed along.
func (a *assembler) sameClaim(old, now model.Identity) bool {
	if old.Namespace != now.Namespace {
		return false
	}
	before, ok := a.prev.objects.of(old).object.(*model.ServerClaim)
	after, ok2 := a.effective.objects.of(now).object.(*model.ServerClaim)
	return ok && ok2 &&
		reflect.DeepEqual(nameless(before), nameless(after)) &&
		a.sameSecret(old.Namespace, before.Spec.IgnitionSecretRef, after.Spec.IgnitionSecretRef) &&
		a.sameSecret(old.Namespace, before.Spec.UserDataRef, after.Spec.UserDataRef)
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
	if old == nil || now == nil {
		return old == now
	}
	before, ok := secretOf(a.before, namespace, old.Name)
	after, ok2 := secretOf(a.inForce, namespace, now.Name)
	if !ok && !ok2 {
		return old.Name == now.Name
	}
	return ok && ok2 && before.Type == after.Type && reflect.DeepEqual(before.Values, after.Values)
}

func secretOf(find func(model.Identity) (located, bool), namespace, name string) (*model.Secret, bool) {
	p, _ := find(model.Identity{Kind: model.KindSecret, Namespace: namespace, Name: name})
	s, ok := p.object.(*model.Secret)
	return s, ok
}
