package model

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// CrossChecker finds objects that are right each by itself and wrong together.
type CrossChecker struct {
	// Subnets are those of DHCP. In each of them a device has one address. In other networks it is not known which
	// addresses share a subnet.
	Subnets []netip.Prefix
	// SecretsElsewhere is set when secrets need not be in Git: then none is missing.
	SecretsElsewhere bool
}

// Check returns two problems for two objects that claim what only one can have, each naming the other; and, as
// warnings, those that name an object which is not there.
func (k CrossChecker) Check(d *Desired) []Problem {
	return (&crossCheck{CrossChecker: k, desired: d}).all()
}

func (c *crossCheck) all() []Problem {
	d := c.desired
	endpoints, servers := all(d.Endpoints), all(d.Servers)
	clashes(c, endpoints, "spec.macAddress", "has the MAC address %s of", c.inSubnet(func(e *Endpoint) string { return e.Spec.MACAddress }))
	clashes(c, endpoints, "spec.ip", "has the IP address %s of", one(func(e *Endpoint) string { return e.Spec.IP }))
	clashes(c, endpoints, "metadata.annotations["+AnnotationClientID+"]", "has the client identifier %s of", c.inSubnet(clientOf))
	clashes(c, endpoints, "metadata.annotations["+AnnotationCircuitID+"]", "has the relay port %s of", c.inSubnet(portOf))
	clashes(c, endpoints, "metadata.annotations["+AnnotationRemoteID+"]", "has the relay %s of", c.inSubnet(relayOf))
	describers := c.describers()
	clashes(c, describers, "spec", "describes a BMC %s, as does", one(func(o Object) string { return o.Metadata().Name }))
	clashes(c, describers, "spec", "has the address %s of", one(c.address))
	clashes(c, servers, "spec.systemUUID", "has the system UUID %s of", one(func(s *Server) string { return anyOrder(s.Spec.SystemUUID) }))
	clashes(c, servers, "metadata.annotations["+AnnotationMACAddresses+"]", "has the MAC address %s of", (*Server).MACAddresses)

	for _, s := range servers {
		c.bootConfiguration(s)
	}
	guesses := Guesses{MaxGuesses}
	for _, claim := range d.Claims {
		if c.lacksImage(claim) {
			c.conflict(claim, "spec.image", d.UnknownImage(claim.Spec.Image, &guesses))
			c.problems[len(c.problems)-1].Rule = RuleReference
		}
	}
	if objects := d.objects(); slices.ContainsFunc(objects, hasCapital) {
		clashes(c, objects, "metadata.name", "differs only by upper and lower case from", one(func(o Object) string {
			return strings.ToLower(o.Identity().String())
		}))
	}
	c.dangling()
	SortProblems(c.problems)
	return c.problems
}

// maxAlsoDefined is how many other places are named for an object that stands in several: each
// of them is told of the others.
const maxAlsoDefined = 5

// AlsoDefinedIn says where an object is defined besides one of its places.
func AlsoDefinedIn(places []string, here int) string {
	var others []string
	for i, place := range places {
		if i != here && len(others) < maxAlsoDefined {
			others = append(others, place)
		}
	}
	if more := len(places) - 1 - len(others); more > 0 {
		others = append(others, strconv.Itoa(more)+" more places")
	}
	return "is also defined in " + strings.Join(others, " and ") + ": keep one of them"
}

type crossCheck struct {
	CrossChecker
	desired  *Desired
	problems []Problem
}

func (c *crossCheck) conflict(o Object, field, message string) {
	p := problemOf(o, field, message)
	if at, known := o.Metadata().Place(field); known {
		p.Line, p.Column = at.Line, at.Column
	}
	p.Rule = RuleConflict
	c.problems = append(c.problems, p)
}

func clientOf(e *Endpoint) string {
	if id := e.ClientID(); id != "" {
		return "0x" + id
	}
	return ""
}

// portOf is the port that an Endpoint is for, of any relay or of one.
func portOf(e *Endpoint) string {
	if p := e.RelayPort(); p.CircuitID != "" {
		return p.name()
	}
	return ""
}

// relayOf is the relay of which an Endpoint is for any port.
func relayOf(e *Endpoint) string {
	if p := e.RelayPort(); p.CircuitID == "" && p.RemoteID != "" {
		return p.name()
	}
	return ""
}

// inSubnet makes a list of a key by which an Endpoint identifies its device, with the subnet in which the device has one
// address; none outside of the subnets that are known.
func (c *crossCheck) inSubnet(key func(*Endpoint) string) func(*Endpoint) []string {
	return one(func(e *Endpoint) string {
		addr, _ := netip.ParseAddr(e.Spec.IP) // Contains is false for an invalid one
		at := slices.IndexFunc(c.Subnets, func(p netip.Prefix) bool { return p.Contains(addr) })
		if k := key(e); k != "" && at >= 0 {
			return k + " in " + c.Subnets[at].String()
		}
		return ""
	})
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
	first, shared := make(map[string]O, len(objects)), make(map[string][]O)
	for _, o := range objects {
		for _, k := range keys(o) {
			before, has := first[k]
			switch {
			case !has:
				first[k] = o
			case shared[k] == nil:
				shared[k] = []O{before, o}
			default:
				shared[k] = append(shared[k], o)
			}
		}
	}
	for _, k := range slices.Sorted(maps.Keys(shared)) {
		same := shared[k]
		slices.SortFunc(same, func(a, b O) int { return cmp.Compare(a.Identity().String(), b.Identity().String()) })
		for i, o := range same {
			other := same[0]
			if i == 0 {
				other = same[1]
			}
			c.conflict(o, field, strings.Replace(what, "%s", k, 1)+" "+
				other.Identity().String()+" ("+other.Metadata().Source+"): only one of them can have it")
		}
	}
}

func (c *crossCheck) bootConfiguration(s *Server) {
	ref := s.Spec.BootConfigurationRef
	if ref == nil {
		return
	}
	if b := c.desired.Claims[BootConfigurationName(ref.Namespace, ref.Name)]; b != nil && b.Spec.ServerRef.Name != s.Name {
		c.conflict(s, "spec.bootConfigurationRef", "names "+b.Identity().String()+" ("+b.Source+
			"), which is for server "+b.Spec.ServerRef.Name+": correct its serverRef, or take it out here")
	}
}

// lacksImage reports whether a claim names an image that the catalogue does not have. A catalogue that cannot be read may
// have it.
func (c *crossCheck) lacksImage(claim *ServerClaim) bool {
	image := claim.Spec.Image
	return IsCatalogName(image) && len(c.desired.CatalogImages(image)) == 0 && !c.desired.IsQuarantined(CatalogIdentity)
}

// describers are the objects that describe a BMC: itself, or a Server.
func (c *crossCheck) describers() []Object {
	all := make([]Object, 0, len(c.desired.BMCs))
	for _, b := range c.desired.BMCs {
		if b.Within == "" {
			all = append(all, b)
		}
	}
	for _, s := range c.desired.Servers {
		if s.Spec.BMC != nil {
			all = append(all, s)
		}
	}
	return all
}

// address returns host and port of the BMC that an object describes, or "" while they are
// not known.
func (c *crossCheck) address(o Object) string {
	b, is := o.(*BMC)
	if s, within := o.(*Server); within {
		b, is = s.inlineBMC(), true
	}
	if !is {
		return ""
	}
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

// hasCapital reports whether an object's name has a letter that is not in lower case. Of
// two that differ by that alone one has.
func hasCapital(o Object) bool {
	id := o.Identity()
	return id.Namespace != strings.ToLower(id.Namespace) || id.Name != strings.ToLower(id.Name)
}

func (d *Desired) objects() []Object {
	objects := make([]Object, 0, len(d.Endpoints)+len(d.BMCs)+len(d.BMCSecrets)+len(d.Servers)+len(d.Claims)+len(d.Secrets))
	objects = appendAll(objects, d.Endpoints)
	objects = appendAll(objects, d.BMCs)
	objects = appendAll(objects, d.BMCSecrets)
	objects = appendAll(objects, d.Servers)
	objects = appendAll(objects, d.Claims)
	objects = appendAll(objects, d.Maintenances)
	objects = appendAll(objects, d.ReadinessRules)
	if d.Images != nil {
		objects = append(objects, d.Images)
	}
	return appendAll(objects, d.Secrets)
}

func appendAll[K comparable, O Object](objects []Object, m map[K]O) []Object {
	for _, o := range m {
		objects = append(objects, o)
	}
	return objects
}

func all[K comparable, O any](m map[K]O) []O { return slices.Collect(maps.Values(m)) }
