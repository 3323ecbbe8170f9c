package laws

import (
	"time"

	"ingot/model"
	"ingot/reconcile/plan/disks"
	"ingot/reconcile/plan/proposal"
)

// wiped is law 7: nothing counts as wiped that was not. A server becomes free only with a proof that accounts for
// each of its known disks.
func wiped(_ *Laws, s *server, p *proposal.Proposal) (why proposal.Why, until time.Time) {
	if p.Frees == nil {
		return why, until
	}
	if missing := disks.Unaccounted(s, p.Frees); missing != "" {
		return s.WhyBy(model.ReasonCleanupFailed, missing, proposal.RackOperator), until
	}
	return why, until
}
