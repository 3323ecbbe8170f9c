package fleettest

import (
	"slices"

	"ingot/model"
)

// Claim is a ServerClaim in Git that has its server on with an image, and whatever
// changes it.
func Claim(name string, change ...func(*model.ServerClaim)) *model.ServerClaim {
	c := &model.ServerClaim{
		Meta: model.Meta{Name: name, Namespace: "default"},
		Spec: model.ServerClaimSpec{Power: model.PowerOn, Image: "os:1"},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

// Annotated annotates a claim.
func Annotated(key, v string) func(*model.ServerClaim) {
	return func(c *model.ServerClaim) {
		if c.Annotations == nil {
			c.Annotations = map[string]string{}
		}
		c.Annotations[key] = v
	}
}

// OfTenant has a claim be a tenant's.
func OfTenant(tenant string) func(*model.ServerClaim) {
	return func(c *model.ServerClaim) { c.Tenant = tenant }
}

// Renamed has a commit give a claim another name.
func Renamed(from, to string) func(d *model.Desired) {
	return func(d *model.Desired) {
		delete(d.Claims, model.ClaimName("default/"+from))
		d.Add(Claim(to))
		names := map[model.ClaimName]model.ClaimName{model.ClaimName("default/" + from): model.ClaimName("default/" + to)}
		d.Renamed = append(slices.Clip(d.Renamed), model.Renaming{Revision: model.Revision("main@sha1:" + from + ">" + to), Names: names})
	}
}

// IgnitionSecret is the Secret default/ign with Ignition in it.
func IgnitionSecret(ignition string) *model.Secret {
	return &model.Secret{
		Meta:   model.Meta{Name: "ign", Namespace: "default"},
		Values: map[string]model.Sensitive{"ignition": model.NewSensitive(ignition)},
	}
}
