package model

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Tenant is what the files below one folder of the repository may define.
type Tenant struct {
	// Path is the folder, as the repository has it; "." is all of it.
	Path string `json:"path"`
	// Kinds are those of the objects; none = ServerClaim and Secret, "*" = all.
	Kinds []Kind `json:"kinds,omitempty"`
	// Namespaces are those of the objects; none = the last element of Path, "*" = all.
	Namespaces []string `json:"namespaces,omitempty"`
	// Servers selects those that claims may be bound to; nil = all.
	Servers *metav1.LabelSelector `json:"servers,omitempty"`
	// BMCNetworks are where its BMCs may be; none = wherever BMCs may be.
	BMCNetworks []netip.Prefix `json:"bmcNetworks,omitempty"`
}

// anything stands for all kinds, and for all namespaces.
const anything = "*"

// AllowedKinds are the kinds of the objects that may be defined.
func (t *Tenant) AllowedKinds() []Kind {
	switch {
	case len(t.Kinds) == 0:
		return []Kind{KindServerClaim, KindSecret}
	case slices.Contains(t.Kinds, anything): // the ImageCatalog is in a file of its own, see WithCatalog
		return slices.DeleteFunc(slices.Clone(Kinds), func(k Kind) bool { return k == KindImageCatalog })
	}
	return t.Kinds
}

func (t *Tenant) allowedNamespaces() []string {
	if len(t.Namespaces) == 0 {
		return []string{path.Base(t.Path)}
	}
	return t.Namespaces
}

// String says what may be defined below the tenant's folder, and which servers that may have.
func (t *Tenant) String() string {
	list := func(all []string) string { return strings.ReplaceAll(strings.Join(all, ", "), anything, "any") }
	kinds := make([]string, 0, len(t.Kinds))
	for _, k := range t.Kinds {
		kinds = append(kinds, string(k))
	}
	if len(kinds) == 0 {
		kinds = []string{string(KindServerClaim), string(KindSecret)}
	}
	says := fmt.Sprintf("%s: kinds %s; namespaces %s", t.Path, list(kinds), list(t.allowedNamespaces()))
	if t.Servers != nil {
		says += "; servers with " + metav1.FormatLabelSelector(t.Servers)
	}
	return says
}

// Refuse says why an object must not be defined below the tenant's folder, "" if it may.
func (t *Tenant) Refuse(id Identity) string {
	kinds, namespaces := t.AllowedKinds(), t.allowedNamespaces()
	switch {
	case !slices.Contains(kinds, id.Kind):
		names := make([]string, len(kinds))
		for i, k := range kinds {
			names[i] = string(k)
		}
		return fmt.Sprintf("below %s only %s (git.tenants)", t.Path, strings.Join(names, ", "))
	case id.Kind.Namespaced() && !slices.Contains(namespaces, anything) && !slices.Contains(namespaces, id.Namespace):
		return fmt.Sprintf("below %s only namespace %s (git.tenants), not %s", t.Path, strings.Join(namespaces, ", "), id.Namespace)
	}
	return ""
}

// MayBind reports whether claims of the tenant may be bound to a server with these
// labels.
func (t *Tenant) MayBind(labels map[string]string) bool { return selectorMatches(t.Servers, labels) }

// MayReach reports whether a BMC of the tenant may be at an address.
func (t *Tenant) MayReach(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	return len(t.BMCNetworks) == 0 || slices.ContainsFunc(t.BMCNetworks, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// Tenants say what files may define, by the folder that they lie in. Without any, one
// operator owns all; with some, a file that is in no folder of them does not count.
type Tenants []Tenant

// Of is the tenant that a file belongs to, that of the longest path; nil = none.
func (t Tenants) Of(file string) *Tenant {
	var found *Tenant
	for i := range t {
		p := t[i].Path
		within := p == "." || file == p || strings.HasPrefix(file, p+"/")
		if within && (found == nil || found.Path == "." || p != "." && len(p) > len(found.Path)) {
			found = &t[i]
		}
	}
	return found
}

// Owner is the path of the tenant that a file belongs to, "" if it belongs to none.
func (t Tenants) Owner(file string) string {
	if of := t.Of(file); of != nil {
		return of.Path
	}
	return ""
}

// At is the tenant of a path, nil if there is none.
func (t Tenants) At(path string) *Tenant {
	if i := slices.IndexFunc(t, func(x Tenant) bool { return x.Path == path }); i >= 0 {
		return &t[i]
	}
	return nil
}

// Refuse says why a file must not define an object, "" if it may.
func (t Tenants) Refuse(file string, id Identity) string {
	of := t.Of(file)
	switch {
	case len(t) == 0:
		return ""
	case of == nil:
		return "is below no path of git.tenants, so it does not count"
	}
	return of.Refuse(id)
}

// Place notes in objects of a file whose they are, and why they do not count, if so.
func (t Tenants) Place(file string, objects []Object) {
	if len(t) == 0 {
		return
	}
	for _, o := range objects {
		m := o.Metadata()
		m.Tenant, m.Refused = t.Owner(file), t.Refuse(file, o.Identity())
		s, is := o.(*Server)
		if !is || s.Spec.BMC == nil || m.Refused != "" {
			continue
		}
		if why := t.Refuse(file, Identity{Kind: KindBMC, Name: s.Name}); why != "" {
			m.Refused = "spec.bmc describes a BMC: " + why
		}
	}
}

// RefusedProblem is the problem of an object that does not count. It names the kind
// alone: what it says of an object of somebody else's is not to hold that one up.
func RefusedProblem(o Object) Problem {
	m := o.Metadata()
	file, line := m.Position()
	return Problem{Severity: SeverityError, File: file, Line: line, Object: string(o.Identity().Kind), Message: m.Refused, Rule: RuleTenant}
}
