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

// borrowedKeys finds the files that are made of those of another tenant, and why their secrets do not
// count. SOPS binds a secret value to its field alone, and to the texts of the file, but neither to their
// fields nor to where one ends: a tenant who cannot decrypt a file can copy it, and have the copy
// define another object with the same values. They have no way to encrypt it with another key. So a key is that
// of the tenant whose secrets with it are in force, else of the one who may define everything.
// Shared are all files with a key that several tenants have.
func borrowedKeys(files []manifest, tenants model.Tenants, objects objectsInForce) (borrowed map[string]string, shared []manifest) {
	owners := keysOfSeveral(files, tenants)
	if len(owners) == 0 {
		return nil, nil
	}
	inForce := make(map[string][]string)
	for _, p := range objects {
		if p.object == nil || owners[p.object.Metadata().DataKey] == nil {
			continue
		}
		if key := p.object.Metadata().DataKey; !slices.Contains(inForce[key], p.owner()) {
			inForce[key] = append(inForce[key], p.owner())
		}
	}
	borrowed = make(map[string]string)
	for _, f := range files {
		if owners[f.dataKey] == nil {
			continue
		}
		shared = append(shared, f)
		switch whose, known := keeper(inForce[f.dataKey], owners[f.dataKey], tenants); {
		case !known:
			borrowed[f.path] = "is encrypted with the same key as a file of another tenant: " + reencrypt
		case whose != tenants.Owner(f.path):
			borrowed[f.path] = "is encrypted with the key of a file of " + whose + ": " + reencrypt
		}
	}
	return borrowed, shared
}

const reencrypt = "encrypt it anew with `sops rotate`, which needs the key"

func keeper(inForce, owners []string, tenants model.Tenants) (owner string, known bool) {
	if len(inForce) == 1 {
		return inForce[0], true
	}
	all := slices.DeleteFunc(slices.Clone(owners), func(owner string) bool { return (&shares{tenants: tenants}).bounded(owner) })
	if len(all) == 1 {
		return all[0], true
	}
	return "", false
}

// isBorrowed reports whether an object of a file is a secret that does not count.
func (f found) isBorrowed(file string, o model.Object) bool {
	return f.borrowed[file] != "" && o.Metadata().DataKey != "" && o.Metadata().Refused == ""
}
