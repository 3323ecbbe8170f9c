package plan

import (
	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// claimBoot is what the claim has its server boot, or why that is not known.
func (s *server) claimBoot() (proposal.Boot, proposal.Why) {
	boot, why := proposal.BootOfClaim(s.fleet.in.Desired, s.claim)
	boot.Ticket.Always = s.claim.Annotations[model.AnnotationBoot] == "always"
	boot.Ticket.BootedBy = s.bootedBy()
	s.target(&boot)
	why.Since = s.rec.Life.Since
	return boot, why
}
