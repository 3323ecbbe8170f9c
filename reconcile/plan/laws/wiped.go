package laws

import (
	"ingot/model"
	"ingot/reconcile/plan/disks"
	"ingot/reconcile/plan/proposal"
)

// wiped is law 7: nothing counts as wiped that was not. A free server has a proof for each of its known disks.
func wiped(_ *Laws, s *server, p *proposal.Proposal) (why proposal.Why) {
	if p.Frees == nil {
		return why
	}
	if missing := disks.Unaccounted(s, p.Frees); missing != "" {
		return s.WhyBy(model.ReasonCleanupFailed, missing, proposal.RackOperator)
	}
	return why
}
