package plan

import (
	"fmt"
	"net/netip"
	"slices"

	"ingot/model"
)

// otherTenants reports whether a claim is not the one that the record is of, though it is
// called the same: that one was removed, and this one is another tenant's.
func (f *fleet) otherTenants(rec *model.ServerRecord, c *model.ServerClaim) bool {
	if rec.Claim.Tenant == "" || c == nil || c.Tenant == rec.Claim.Tenant {
		return false
	}
	if c.Tenant != "" && (rec.Release != nil || rec.Life.State == model.StateReleased) {
		return true // the removal was acted upon, and may be forgotten since
	}
	r, removed := f.claimRemoval(rec)
	return removed && r.Tenant == rec.Claim.Tenant
}

// inherit has the record say whose the server's claim is: one tenant handed it to
// another, or the configuration has others. It touches nothing.
func (s *server) inherit() (Step, bool) {
	if s.claim == nil || s.rec.Claim.Tenant == s.claim.Tenant || s.rec.Claim.Name != s.claim.ClaimName() || s.fleet.observeOnly.Reason != "" {
		return Step{}, false
	}
	s.edit().Claim.Tenant = s.claim.Tenant
	return s.stay(), true
}

// barred is why a claim's tenant may not have a server, "" if it may.
func (f *fleet) barred(c *model.ServerClaim, labels map[string]string) string {
	if of := f.in.Policy.Tenants.At(c.Tenant); of != nil && !of.MayBind(labels) {
		return "not for " + of.Path + " (git.tenants)"
	}
	return ""
}

// strangers says why a BMC in Git does not use a BMCSecret, "" if it does: a secret is
// used by whom it belongs to.
func (f *fleet) strangers(b *bmcView, secret *model.BMCSecret) string {
	if len(f.in.Policy.Tenants) == 0 || secret.Tenant == b.spec.Tenant {
		return ""
	}
	return fmt.Sprintf("BMCSecret %s belongs to %s, and a BMC below %s uses only those below %s "+
		"(git.tenants)", secret.Name, secret.Tenant, b.spec.Tenant, b.spec.Tenant)
}

// foundSecret is the BMCSecret in Git of a BMC that was recognised on the network, nil if
// there is none: it is of somebody who may define such a BMC.
func (f *fleet) foundSecret(name string) *model.BMCSecret {
	secret, tenants := f.in.Desired.BMCSecrets[name], f.in.Policy.Tenants
	if secret == nil || len(tenants) == 0 {
		return secret
	}
	if of := tenants.At(secret.Tenant); of == nil || of.Refuse(model.Identity{Kind: model.KindBMC, Name: name}) != "" {
		return nil
	}
	return secret
}

// mayReach says why a tenant's BMC may not be at an address, nil if it may.
func (f *fleet) mayReach(b *bmcView, addr netip.Addr) error {
	of := f.in.Policy.Tenants.At(b.spec.Tenant)
	if of == nil {
		return nil
	}
	if why := of.Refuse(b.spec.Identity()); b.spec.Within != "" && why != "" {
		return fmt.Errorf("spec.bmc of Server %s describes a BMC, so nothing is sent there: %s", b.spec.Within, why)
	}
	if !of.MayReach(addr) {
		return fmt.Errorf("%s is in none of the bmcNetworks of %s (git.tenants), so nothing is sent there: correct the address, or add %s "+
			"to them in Ingot's configuration",
			addr, of.Path, netip.PrefixFrom(addr, addr.BitLen()))
	}
	return nil
}

// mayMaintain reports whether a maintenance may take a server out of service: a tenant who
// may define no Servers does so with servers of his own claims alone. What has begun is
// kept up whoever might begin it now: it ends by a commit.
func (f *fleet) mayMaintain(m *model.ServerMaintenance, name model.ServerName) bool {
	of := f.in.Policy.Tenants.At(m.Tenant)
	if of == nil || of.Refuse(name.Identity()) == "" {
		return true
	}
	s := f.server(name)
	switch {
	case s == nil:
		return false
	case s.rec.Maintenance.By == m.Name && !f.namesake(m):
		return true
	case s.claim != nil:
		return s.claim.Tenant == m.Tenant
	}
	return s.rec.Claim.Name != "" && s.rec.Claim.Tenant == m.Tenant
}

// mayTaint reports whether a rule may keep servers from claims: those of others, too, so its
// tenant has to be one who may define Servers.
func (f *fleet) mayTaint(r *model.ServerReadinessRule) bool {
	of := f.in.Policy.Tenants.At(r.Tenant)
	return of == nil || slices.Contains(of.AllowedKinds(), model.KindServer)
}

// namesake reports whether a maintenance is not the one that was called so before: that
// one was another tenant's, who took it away.
func (f *fleet) namesake(m *model.ServerMaintenance) bool {
	r, removed := f.removal(model.MaintenanceIdentity(m.Name))
	return removed && r.Tenant != "" && r.Tenant != m.Tenant
}
