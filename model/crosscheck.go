package model

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// CrossCheck finds objects that are right each by itself and wrong together: two
// that claim what only one can have. Both are reported, each naming the other.
func CrossCheck(d *Desired) []Problem {
	c := crossCheck{desired: d}
	endpoints, bmcs, servers := sorted(d.Endpoints), sorted(d.BMCs), sorted(d.Servers)
	clashes(&c, endpoints, "spec.macAddress", "has the MAC address %s of", one(func(e *Endpoint) string { return e.Spec.MACAddress }))
	clashes(&c, bmcs, "spec", "has the address %s of", one(c.address))
	clashes(&c, servers, "spec.systemUUID", "has the system UUID %s of", one(func(s *Server) string { return anyOrder(s.Spec.SystemUUID) }))
	clashes(&c, servers, "metadata.annotations["+AnnotationMACAddresses+"]", "has the MAC address %s of", (*Server).MACAddresses)

	clashes(&c, d.objects(), "metadata.name", "differs only by upper and lower case from", one(func(o Object) string {
		return strings.ToLower(o.Identity().String())
	}))
	SortProblems(c.problems)
	return c.problems
}

type crossCheck struct {
	desired  *Desired
	problems []Problem
}

// one makes a list of a key, none of one that is empty.
func one[O Object](key func(O) string) func(O) []string {
	return func(o O) []string {
		if k := key(o); k != "" {
			return []string{k}
		}
		return nil
	}
}

// clashes reports the objects that share a key, of which no object has one twice. What
// says how one stands to the other, with %s for the key.
func clashes[O Object](c *crossCheck, objects []O, field, what string, keys func(O) []string) {
	byKey := make(map[string][]O)
	for _, o := range objects {
		for _, k := range keys(o) {
			byKey[k] = append(byKey[k], o)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(byKey)) {
		same := byKey[k]
		for i, o := range same {
			if len(same) == 1 {
				break
			}
			other := same[0]
			if i == 0 {
				other = same[1]
			}
			c.problems = append(c.problems, problemOf(o, field, strings.Replace(what, "%s", k, 1)+" "+
				other.Identity().String()+" ("+other.Metadata().Source+"): only one of them can have it"))
		}
	}
}

// address returns host and port of a BMC, or "" while they are not known.
func (c *crossCheck) address(b *BMC) string {
	ip := ""
	switch {
	case b.Spec.Access != nil:
		ip = b.Spec.Access.IP
	case b.Spec.EndpointRef != nil && c.desired.Endpoints[b.Spec.EndpointRef.Name] != nil:
		ip = c.desired.Endpoints[b.Spec.EndpointRef.Name].Spec.IP
	}
	if ip == "" {
		return ""
	}
	return b.Spec.Protocol.Address(ip)
}

// anyOrder returns one spelling for all variants of a UUID.
func anyOrder(uuid string) string {
	variants := UUIDVariants(uuid)
	if len(variants) == 0 {
		return ""
	}
	return slices.Min(variants)
}

// objects returns all objects, those of a kind together and in order of name.
func (d *Desired) objects() []Object {
	var all []Object
	all = appendSorted(all, d.Endpoints)
	all = appendSorted(all, d.BMCs)
	all = appendSorted(all, d.BMCSecrets)
	all = appendSorted(all, d.Servers)
	all = appendSorted(all, d.Claims)
	all = appendSorted(all, d.BootConfigurations)
	all = appendSorted(all, d.Maintenances)
	all = appendSorted(all, d.ReadinessRules)
	return appendSorted(all, d.Secrets)
}

func appendSorted[K cmp.Ordered, O Object](all []Object, m map[K]O) []Object {
	for _, o := range sorted(m) {
		all = append(all, o)
	}
	return all
}

func sorted[K cmp.Ordered, O any](m map[K]O) []O {
	objects := make([]O, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		objects = append(objects, m[k])
	}
	return objects
}
