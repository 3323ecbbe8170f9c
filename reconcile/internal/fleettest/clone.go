package fleettest

import (
	"maps"

	"ingot/model"
)

// Clone returns a copy with maps of its own that shares the objects.
func Clone(d *model.Desired) *model.Desired {
	c := *d
	c.Endpoints = maps.Clone(d.Endpoints)
	c.BMCs = maps.Clone(d.BMCs)
	c.BMCSecrets = maps.Clone(d.BMCSecrets)
	c.Servers = maps.Clone(d.Servers)
	c.Claims = maps.Clone(d.Claims)
	c.Maintenances = maps.Clone(d.Maintenances)
	c.ReadinessRules = maps.Clone(d.ReadinessRules)
	c.Secrets = maps.Clone(d.Secrets)
	c.Quarantined = maps.Clone(d.Quarantined)
	return &c
}
