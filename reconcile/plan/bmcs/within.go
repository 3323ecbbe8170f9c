package bmcs

import (
	"fmt"
	"slices"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// OwnSystem is the system that is the Server within which a BMC is described, if that Server gives no UUID:
// the one with its systemURI, or else the only one. It is nil for other BMCs.
func (s *Set) OwnSystem(b *BMC) *model.SystemFact {
	if b == nil || b.Manifest.Within == "" || b.Facts == nil {
		return nil
	}
	server := s.in.Desired.Servers[b.Manifest.Within]
	if server == nil || server.Spec.SystemUUID != "" || server.Spec.SystemURI == "" && len(b.Facts.Systems) != 1 {
		return nil
	}
	i := slices.IndexFunc(b.Facts.Systems, func(sys model.SystemFact) bool {
		return server.Spec.SystemURI == "" || SameURI(server.Spec.SystemURI, sys.URI)
	})
	if i < 0 {
		return nil
	}
	return &b.Facts.Systems[i]
}

// withinProblem says why no system of a BMC is the Server that describes it, "" if one is or no system is
// known.
func (s *Set) withinProblem(b *BMC) string {
	if b.Manifest.Within == "" || b.Facts == nil || len(b.Facts.Systems) == 0 || s.OwnSystem(b) != nil {
		return ""
	}
	server := s.in.Desired.Servers[b.Manifest.Within]
	is := func(sys model.SystemFact) bool {
		return sys.UUID == "" || model.SameUUID(sys.UUID, server.Spec.SystemUUID)
	}
	switch {
	case server == nil || server.Spec.SystemUUID != "" && slices.ContainsFunc(b.Facts.Systems, is):
		return ""
	case server.Spec.SystemUUID != "":
		return fmt.Sprintf("none of its systems has spec.systemUUID %s of Server %s (%s), which describes it",
			server.Spec.SystemUUID, server.Name, server.Source)
	case server.Spec.SystemURI != "":
		return fmt.Sprintf("it shows no system %s, which Server %s (%s) says that it is", server.Spec.SystemURI, server.Name, server.Source)
	}
	return fmt.Sprintf("it shows %d systems: say by spec.systemUUID or spec.systemURI which is Server %s (%s)",
		len(b.Facts.Systems), server.Name, server.Source)
}

// noteTaken stops requests to a BMC within a Server at an address that another BMC has. Both may be in Git
// since a time in which BMCs within Servers had no effect.
func (s *Set) noteTaken() {
	has := make(map[string]model.BMCName)
	within := slices.ContainsFunc(s.BMCs, func(b *BMC) bool { return b.Manifest.Within != "" })
	for _, b := range s.BMCs {
		if within && b.Manifest.Within == "" && b.Target.Address != "" {
			has[b.Target.Address] = b.Name
		}
	}
	for _, b := range s.BMCs {
		at := b.Target.Address
		if b.Manifest.Within == "" || at == "" {
			continue
		}
		if has[at] == "" {
			has[at] = b.Name
			continue
		}
		b.taken = true
		b.Why = b.why(model.ReasonAddressNotAllowed, fmt.Sprintf("BMC %s has the address %s, so nothing is sent there for spec.bmc of "+
			"Server %s (%s): correct one of them", has[at], at, b.Name, b.Manifest.Source), proposal.RackOperator)
	}
}
