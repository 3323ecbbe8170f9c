package laws

import "ingot/model"

// MayMaintain is law 8: a tenant's file stays a tenant's file. A tenant who may define no Servers takes only servers
// of its own claims out of service. A maintenance that has begun continues in any case: it ends by a commit.
func MayMaintain(m *model.ServerMaintenance, s *server) bool {
	of := s.Policy.Tenants.At(m.Tenant)
	switch {
	case of == nil || of.Refuse(s.Name.Identity()) == "":
		return true
	case s.Record.Maintenance.By == m.Name && !s.Namesake(m):
		return true
	case s.Claim != nil:
		return s.Claim.Tenant == m.Tenant
	}
	return s.Record.Claim.Name != "" && s.Record.Claim.Tenant == m.Tenant
}
