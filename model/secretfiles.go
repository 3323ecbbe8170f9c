package model

import (
	"errors"
	"path/filepath"
)

// IsSecret reports whether objects of the kind hold secret values, and may come from
// elsewhere than Git.
func (k Kind) IsSecret() bool { return k.secret() }

// NewSecret makes a Secret or BMCSecret of what does not stand in a manifest.
func NewSecret(id Identity, values map[string]Sensitive, source string) (Object, error) {
	if fault := subdomainFault(id.Name); fault != "" {
		return nil, errors.New("the name of the object: " + fault)
	}
	for key := range values {
		if !isSecretKey(key) {
			return nil, errors.New(`a key is none: want letters, digits, "-", "_" and "."`)
		}
	}
	meta := Meta{Name: id.Name, Source: source}
	if id.Kind == KindBMCSecret {
		return &BMCSecret{Meta: meta, Values: values}, nil
	}
	if fault := labelFault(id.Namespace); fault != "" {
		return nil, errors.New("the namespace of the object: " + fault)
	}
	meta.Namespace = id.Namespace
	s := &Secret{Meta: meta, Values: values}
	s.Sum = NewSensitive(s.BootSum())
	return s, nil
}

// IsSecretKey reports whether a name may be a key of a Secret.
func IsSecretKey(s string) bool { return isSecretKey(s) }

// HasSecret reports whether a Secret or BMCSecret is desired, or stands in Git and cannot be used.
func (d *Desired) HasSecret(id Identity) bool {
	found := d.IsQuarantined(id)
	switch id.Kind {
	case KindBMCSecret:
		found = found || d.BMCSecrets[id.Name] != nil
	case KindSecret:
		found = found || d.Secrets[Named[ObjectName](id.Namespace, id.Name)] != nil
	default:
	}
	return found
}

// SecretPath is where a secret stands in the folder of secrets outside Git.
func SecretPath(dir string, id Identity) string { return filepath.Join(dir, id.Namespace, id.Name) }

// SecretMissing says that there is no such secret, and where one may be put.
func (d *Desired) SecretMissing(id Identity) string {
	if d.SecretFiles == "" {
		return id.String() + " is not in Git"
	}
	return id.String() + " is neither in Git nor in secretFiles: commit it encrypted, or put its keys into " + SecretPath(d.SecretFiles, id)
}

// MissingSecrets warns of references to secrets that are nowhere. SecretsInUse are those
// that something names.
func MissingSecrets(d *Desired) []Problem {
	var problems []Problem
	d.eachSecretReference(func(o Object, r *Reference) {
		if !d.HasSecret(r.To) {
			problems = append(problems, r.Problem(o, d.SecretMissing(r.To)))
		}
	})
	SortProblems(problems)
	return problems
}

// SecretsInUse are the secrets that an object in Git names.
func SecretsInUse(d *Desired) map[Identity]bool {
	used := make(map[Identity]bool)
	d.eachSecretReference(func(_ Object, r *Reference) { used[r.To] = true })
	return used
}

func (d *Desired) eachSecretReference(do func(Object, *Reference)) {
	for _, o := range d.objects() {
		refs := o.Metadata().References
		for i := range refs {
			if refs[i].To.Kind.secret() {
				do(o, &refs[i])
			}
		}
	}
}

// SecretOwner is the path of the tenant whom a secret outside Git belongs to: the one that may
// define it, of several the one that names its namespace, or may define everything if it has
// none; "" if that is not one.
func (t Tenants) SecretOwner(id Identity) string {
	var may, best []string
	for i := range t {
		if t[i].Refuse(id) != "" {
			continue
		}
		may = append(may, t[i].Path)
		all := false
		for _, n := range t[i].allowedNamespaces() {
			all = all || n == anything
		}
		if all != id.Kind.Namespaced() {
			best = append(best, t[i].Path)
		}
	}
	for _, list := range [][]string{may, best} {
		if len(list) == 1 {
			return list[0]
		}
	}
	return ""
}
