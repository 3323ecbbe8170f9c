package plan

import (
	"fmt"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// lastOf has ServerBootConfigurations come after all claims: they are for servers that no
// claim asks for.
func lastOf(a, b *model.ServerClaim) int {
	switch {
	case a.BootConfiguration == b.BootConfiguration:
		return 0
	case a.BootConfiguration:
		return 1
	}
	return -1
}

// superseded says why a ServerBootConfiguration has no server, though one may be free: the
// server boots what a claim says, or another ServerBootConfiguration.
func (f *fleet) superseded(c *model.ServerClaim) proposal.Why {
	server, own := f.resolve(c.Spec.ServerRef.Name), model.Named[model.ClaimName](c.Namespace, c.Name)
	claim, named := f.memory.naming[c.Spec.ServerRef.Name]
	if f.in.Desired.Claims[own] != nil {
		claim, named = own, true
	}
	why := proposal.Why{Reason: model.ReasonSuperseded, Actor: proposal.RackOperator}
	spec := f.specs[server]
	switch {
	case named:
		why.Message = fmt.Sprintf("server %s boots what ServerClaim %s says", server, claim)
	case spec != nil && spec.Spec.BootConfigurationRef != nil:
		ref := spec.Spec.BootConfigurationRef
		other := model.Named[model.ClaimName](ref.Namespace, ref.Name)
		if other == own {
			return proposal.Why{}
		}
		why.Message = fmt.Sprintf("Server %s (%s) names another in bootConfigurationRef: %s", spec.Name, spec.Source, other)
	default:
		return proposal.Why{}
	}
	return why
}
