package laws

import (
	"time"

	"ingot/reconcile/plan/proposal"
)

// newest is law 1, for a start: a revision that is older than the one applied last may lack claims
// that are bound. Until Git was read, servers are only read, too.
func newest(l *Laws, _ *server, p *proposal.Proposal) (why proposal.Why, until time.Time) {
	if p.Kind == proposal.Look {
		return why, until
	}
	return l.Outdated, until
}
