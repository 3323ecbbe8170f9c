package gitsource

import (
	"reflect"

	"ingot/model"
)

// renames pairs claims that vanished with new ones of the same content, in the same
// namespace: they keep their server. A claim that could be paired with several is
// paired with the one in the same file, or not at all.
func (a *assembler) renames() map[model.ClaimName]model.ClaimName {
	var vanished, arrived []model.Identity
	for id, r := range a.gone {
		if id.Kind == model.KindServerClaim && !r.Approved && a.prev.objects[id].object != nil {
			vanished = append(vanished, id)
		}
	}
	if len(vanished) == 0 {
		return nil
	}
	for id, p := range a.effective.objects {
		_, was := a.prev.objects[id]
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
		now, ok := a.only(forth[old], a.prev.objects[old].path, a.effective.objects)
		if !ok {
			continue
		}
		if again, ok := a.only(back[now], a.effective.objects[now].path, a.prev.objects); ok && again == old {
			pairs[old.ClaimName()] = now.ClaimName()
		}
	}
	return pairs
}

// only returns the one of several identities, or the only one in a file.
func (a *assembler) only(ids []model.Identity, file string, in map[model.Identity]located) (model.Identity, bool) {
	if len(ids) == 1 {
		return ids[0], true
	}
	var found []model.Identity
	for _, id := range ids {
		if in[id].path == file {
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
	before, ok := a.prev.objects[old].object.(*model.ServerClaim)
	after, ok2 := a.effective.objects[now].object.(*model.ServerClaim)
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
	before, ok := secretOf(a.prev.objects, namespace, old.Name)
	after, ok2 := secretOf(a.effective.objects, namespace, now.Name)
	if !ok && !ok2 {
		return old.Name == now.Name
	}
	return ok && ok2 && before.Type == after.Type && reflect.DeepEqual(before.Values, after.Values)
}

func secretOf(objects map[model.Identity]located, namespace, name string) (*model.Secret, bool) {
	s, ok := objects[model.Identity{Kind: model.KindSecret, Namespace: namespace, Name: name}].object.(*model.Secret)
	return s, ok
}
