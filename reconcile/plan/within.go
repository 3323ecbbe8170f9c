package plan

import (
	"fmt"
	"slices"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// ownSystem is the system of a BMC that is the Server which describes that BMC within itself,
// and gives no UUID: the one with its systemURI, or else the only one. It is nil for others.
func (f *fleet) ownSystem(b *bmcView) *model.SystemFact {
	if b == nil || b.spec.Within == "" || b.facts == nil {
		return nil
	}
	s := f.in.Desired.Servers[b.spec.Within]
	if s == nil || s.Spec.SystemUUID != "" || s.Spec.SystemURI == "" && len(b.facts.Systems) != 1 {
		return nil
	}
	i := slices.IndexFunc(b.facts.Systems, func(sys model.SystemFact) bool {
		return s.Spec.SystemURI == "" || sameURI(s.Spec.SystemURI, sys.URI)
	})
	if i < 0 {
		return nil
	}
	return &b.facts.Systems[i]
}

// withinProblem says why no system of a BMC is the Server that describes it, "" if one is or
// nothing is known of them.
func (f *fleet) withinProblem(b *bmcView) string {
	if b.spec.Within == "" || b.facts == nil || len(b.facts.Systems) == 0 || f.ownSystem(b) != nil {
		return ""
	}
	s := f.in.Desired.Servers[b.spec.Within]
	is := func(sys model.SystemFact) bool { return sys.UUID == "" || model.SameUUID(sys.UUID, s.Spec.SystemUUID) }
	switch {
	case s == nil || s.Spec.SystemUUID != "" && slices.ContainsFunc(b.facts.Systems, is):
		return ""
	case s.Spec.SystemUUID != "":
		return fmt.Sprintf("none of its systems has spec.systemUUID %s of Server %s (%s), which describes it",
			s.Spec.SystemUUID, s.Name, s.Source)
	case s.Spec.SystemURI != "":
		return fmt.Sprintf("it shows no system %s, which Server %s (%s) says that it is", s.Spec.SystemURI, s.Name, s.Source)
	}
	return fmt.Sprintf("it shows %d systems: say by spec.systemUUID or spec.systemURI which is Server %s (%s)",
		len(b.facts.Systems), s.Name, s.Source)
}

// noteTaken has nothing sent for a BMC within a Server to an address that another BMC has: they
// may have stood beside each other while what Servers say of BMCs had no effect.
func (f *fleet) noteTaken() {
	if !slices.ContainsFunc(f.bmcs, func(b *bmcView) bool { return b.spec.Within != "" }) {
		return
	}
	has := make(map[string]model.BMCName, len(f.bmcs))
	for _, within := range []bool{false, true} {
		for _, b := range f.bmcs {
			at := b.target.Address
			if at == "" || (b.spec.Within != "") != within {
				continue
			}
			if other := has[at]; other != "" && within {
				b.taken = true
				b.why = proposal.Why{Reason: model.ReasonAddressNotAllowed, Message: fmt.Sprintf("BMC %s has the address %s, so nothing is sent there for spec.bmc of "+
					"Server %s (%s): correct one of them", other, at, b.name, b.spec.Source), Since: b.rec.Since, Actor: proposal.RackOperator}
				continue
			}
			has[at] = b.name
		}
	}
}
