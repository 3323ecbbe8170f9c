package config

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
)

// tenants checks what the files of each folder may define.
func (c *checks) tenants(o *Options) {
	if len(o.Git.Tenants) == 0 {
		return
	}
	seen, bmcs := make(map[string]bool), false
	for i := range o.Git.Tenants {
		t, key := &o.Git.Tenants[i], fmt.Sprintf("git.tenants[%d]", i)
		c.tenantPath(key+".path", t.Path, o.Git.Path, seen)
		c.tenant(key, t)
		bmcs = bmcs || slices.Contains(t.AllowedKinds(), model.KindBMC)
	}
	if !bmcs {
		c.wrong("git.tenants", "lets nobody define a BMC; add the folder of the rack's operator, such as {path: ops, kinds: [\"*\"], "+
			"namespaces: [\"*\"]}")
	}
	if len(o.Boot.Registries) == 0 {
		c.wrong("boot.registries", "is empty though git.tenants is set: a tenant's image may come from anywhere then, also from "+
			"inside; name the registries, and the hosts of URLs, of your images")
	}
}

func (c *checks) tenantPath(key, p, top string, seen map[string]bool) {
	within := func(inner, outer string) bool {
		return outer == "." || inner == outer || strings.HasPrefix(inner, outer+"/")
	}
	top = path.Clean(top)
	switch {
	case p == "" || path.IsAbs(p) || p != path.Clean(p) || strings.HasPrefix(p, ".."):
		c.wrong(key, `%q is not allowed: must be a folder of the repository, such as tenants/alpha; "." for all of it`, p)
	case seen[p]:
		c.wrong(key, "%q is there twice; write what may be defined there in one place", p)
	case !within(p, top) && !within(top, p):
		c.wrong(key, "%q is not below git.path %q, so no file is read there; paths begin at the root of the repository", p, top)
	}
	seen[p] = true
}

// namespacePattern is what a namespace is called (RFC 1123), or all of them.
var namespacePattern = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?|\*)$`)

func (c *checks) tenant(key string, t *model.Tenant) {
	for _, k := range t.Kinds {
		if k != "*" && !slices.Contains(model.Kinds, k) {
			c.wrong(key+".kinds", "%q is no kind that Ingot reads; allowed are \"*\" and %s", k, kindNames())
		}
	}
	for _, n := range t.Namespaces {
		if !namespacePattern.MatchString(n) {
			c.wrong(key+".namespaces", "%q is no namespace; allowed are \"*\", and lower-case letters, digits and - between them", n)
		}
	}
	if len(t.Namespaces) == 0 && !namespacePattern.MatchString(path.Base(t.Path)) {
		c.wrong(key+".namespaces", "is empty, and the last element of the path is no namespace; name those that it may use")
	}
	if _, err := metav1.LabelSelectorAsSelector(t.Servers); err != nil {
		c.wrong(key+".servers", "%v", err)
	}
	for i, n := range t.BMCNetworks {
		if _, err := model.ParseNetwork(n.String()); err != nil {
			c.wrong(fmt.Sprintf("%s.bmcNetworks[%d]", key, i), "%v", err)
		}
	}
}

func kindNames() string {
	names := make([]string, len(model.Kinds))
	for i, k := range model.Kinds {
		names[i] = string(k)
	}
	return strings.Join(names, ", ")
}
