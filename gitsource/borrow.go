package gitsource

import (
	"slices"

	"ingot/model"
)

// keysOfSeveral are the tenants whose secrets are encrypted with one key, by that key, where
// they are several.
func keysOfSeveral(files []manifest, tenants model.Tenants) map[string][]string {
	if len(tenants) < 2 {
		return nil
	}
	var owners map[string][]string
	for _, f := range files {
		if f.dataKey == "" {
			continue
		}
		if owners == nil {
			owners = make(map[string][]string)
		}
		if owner := tenants.Owner(f.path); !slices.Contains(owners[f.dataKey], owner) {
			owners[f.dataKey] = append(owners[f.dataKey], owner)
		}
	}
	for key, of := range owners {
		if len(of) < 2 {
			delete(owners, key)
		}
	}
	return owners
}

// borrowedKeys finds the files that are made of those of another tenant. SOPS binds a secret
// value to its field alone, and to the texts of the file, but neither to their fields nor to
// where one ends: who cannot decrypt a file can copy it, and have the copy define another
// object with the same values. He has no way to encrypt it with another key. So a key is that
// of the tenant whose secrets with it are in force, else of the one who may define everything.
func (a *assembler) borrowedKeys() {
	owners := keysOfSeveral(a.files, a.tenants)
	if len(owners) == 0 {
		return
	}
	inForce := make(map[string][]string)
	for _, p := range a.prev.objects.all() {
		if p.object == nil || owners[p.object.Metadata().DataKey] == nil {
			continue
		}
		if key := p.object.Metadata().DataKey; !slices.Contains(inForce[key], p.owner()) {
			inForce[key] = append(inForce[key], p.owner())
		}
	}
	for _, f := range a.files {
		if owners[f.dataKey] == nil {
			continue
		}
		whose, known := a.keeper(inForce[f.dataKey], owners[f.dataKey])
		switch owner := a.tenants.Owner(f.path); {
		case known && owner == whose:
			for _, o := range f.objects { // a restart could not tell whose the key is
				a.contested[o.Identity()] = a.contested[o.Identity()] || o.Metadata().DataKey != ""
			}
		case known:
			a.borrowed[f.path] = "is encrypted with the key of a file of " + whose + ": " + reencrypt
		default:
			a.borrowed[f.path] = "is encrypted with the same key as a file of another tenant: " + reencrypt
		}
	}
}

const reencrypt = "encrypt it anew with `sops rotate`, which needs the key"

// keeper is the tenant whose a key is.
func (a *assembler) keeper(inForce, owners []string) (owner string, known bool) {
	if len(inForce) == 1 {
		return inForce[0], true
	}
	all := slices.DeleteFunc(slices.Clone(owners), func(owner string) bool { return (&shares{tenants: a.tenants}).bounded(owner) })
	if len(all) == 1 {
		return all[0], true
	}
	return "", false
}

// isBorrowed reports whether an object of a file is a secret that does not count.
func (a *assembler) isBorrowed(f manifest, o model.Object) bool {
	return a.borrowed[f.path] != "" && o.Metadata().DataKey != "" && o.Metadata().Refused == ""
}
