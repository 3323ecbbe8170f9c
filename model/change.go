package model

import (
	"maps"
	"reflect"
	"slices"
)

// Change is what becomes of one object: Before is nil if it is new, After if it is gone.
type Change struct{ Before, After Object }

// With returns a copy in which objects have changed, each named once. It shares the maps of
// the kinds that have not.
func (d *Desired) With(changes []Change) *Desired {
	c := *d
	own := make(map[Kind]bool)
	for _, change := range changes {
		for _, o := range []Object{change.Before, change.After} {
			if o != nil && !own[o.Identity().Kind] {
				own[o.Identity().Kind] = true
				c.cloneMapsOf(o.Identity().Kind)
			}
		}
	}
	for _, change := range changes {
		if change.Before != nil {
			c.remove(change.Before)
		}
	}
	for _, change := range changes {
		if change.After != nil {
			c.Add(change.After)
		}
	}
	return &c
}

// cloneMapsOf makes the maps that objects of a kind are in its own.
func (d *Desired) cloneMapsOf(kind Kind) {
	switch kind {
	case KindEndpoint:
		d.Endpoints = maps.Clone(d.Endpoints)
	case KindBMC:
		d.BMCs = maps.Clone(d.BMCs)
	case KindBMCSecret:
		d.BMCSecrets = maps.Clone(d.BMCSecrets)
	case KindServer: // with the BMC that it may describe
		d.Servers, d.BMCs = maps.Clone(d.Servers), maps.Clone(d.BMCs)
	case KindServerClaim, KindServerBootConfiguration:
		d.Claims = maps.Clone(d.Claims)
	case KindServerMaintenance:
		d.Maintenances = maps.Clone(d.Maintenances)
	case KindServerReadinessRule:
		d.ReadinessRules = maps.Clone(d.ReadinessRules)
	case KindImageCatalog: // has no map
	case KindSecret:
		d.Secrets = maps.Clone(d.Secrets)
	}
}

func (d *Desired) remove(o Object) {
	id := o.Identity()
	switch o.(type) {
	case *Endpoint:
		delete(d.Endpoints, id.Name)
	case *BMC:
		delete(d.BMCs, BMCName(id.Name))
		if s := d.Servers[ServerName(id.Name)]; s != nil {
			d.addInlineBMC(s)
		}
	case *BMCSecret:
		delete(d.BMCSecrets, id.Name)
	case *Server:
		delete(d.Servers, ServerName(id.Name))
		if b := d.BMCs[BMCName(id.Name)]; b != nil && b.Within != "" {
			delete(d.BMCs, BMCName(id.Name))
		}
	case *ServerClaim, *ServerBootConfiguration:
		delete(d.Claims, id.ClaimName())
	case *ServerMaintenance:
		delete(d.Maintenances, id.Name)
	case *ServerReadinessRule:
		delete(d.ReadinessRules, id.Name)
	case *ImageCatalog:
		d.Images = nil
	case *Secret:
		delete(d.Secrets, Named[ObjectName](id.Namespace, id.Name))
	}
}

// StillFits reports whether Check finds nothing wrong with d, given that it found nothing before the changes were made. It
// checks only the objects of the changes, and returns false if these are not enough to decide.
func (k CrossChecker) StillFits(d *Desired, changes []Change) bool {
	c := &crossCheck{CrossChecker: k, desired: d}
	gone := make(map[Identity]bool)
	arrived := false
	for _, change := range changes {
		before, after := change.Before, change.After
		if isCatalog(before) || isCatalog(after) {
			return false // claims name what it has
		}
		switch {
		case after == nil:
			id := before.Identity()
			gone[id] = true
			switch id.Kind {
			case KindServerClaim: // see made
				gone[Identity{Kind: KindServerBootConfiguration, Namespace: id.Namespace, Name: id.Name}] = true
			case KindServer: // with the BMC that it may describe
				gone[Identity{Kind: KindBMC, Name: id.Name}] = true
			default:
			}
			continue
		case before == nil:
			arrived = true
		}
		if claim := c.desired.Claims[after.Identity().ClaimName()]; !sameClaims(before, after) || c.misses(after) || claim != nil && c.lacksImage(claim) {
			return false
		}
	}
	if len(gone) == 0 && !arrived {
		return true
	}
	for _, o := range c.desired.objects() {
		if arrived && hasCapital(o) || len(gone) > 0 && refersTo(o, gone) {
			return false
		}
	}
	return true
}

// sameClaims reports whether an object claims what only one can have just as it did before,
// or is of a kind that claims nothing.
func sameClaims(before, after Object) bool {
	switch now := after.(type) {
	case *Endpoint:
		was, _ := before.(*Endpoint)
		return was != nil && was.Spec == now.Spec && was.ClientID() == now.ClientID() && was.RelayPort() == now.RelayPort()
	case *BMC:
		was, _ := before.(*BMC)
		return was != nil && reflect.DeepEqual(was.Spec, now.Spec)
	case *Server:
		was, _ := before.(*Server)
		return was != nil && was.Spec.SystemUUID == now.Spec.SystemUUID &&
			was.Annotations[AnnotationMACAddresses] == now.Annotations[AnnotationMACAddresses] &&
			reflect.DeepEqual(was.Spec.BMC, now.Spec.BMC) &&
			reflect.DeepEqual(was.Spec.BootConfigurationRef, now.Spec.BootConfigurationRef)
	case *ServerBootConfiguration: // a Server may name it, which it has to name, too
		was, _ := before.(*ServerBootConfiguration)
		return was != nil && was.Spec.ServerRef == now.Spec.ServerRef && was.ofDiscovery() == now.ofDiscovery()
	default:
		return true
	}
}

func isCatalog(o Object) bool {
	_, is := o.(*ImageCatalog)
	return is
}

func (c *crossCheck) misses(o Object) bool {
	return slices.ContainsFunc(o.Metadata().References, func(r Reference) bool { return c.dangles(r.To) })
}

// refersTo reports whether an object names one of some others.
func refersTo(o Object, others map[Identity]bool) bool {
	return slices.ContainsFunc(o.Metadata().References, func(r Reference) bool { return others[r.To] })
}
