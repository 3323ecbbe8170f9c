package laws

import (
	"time"

	"ingot/reconcile/plan/proposal"
)

// lead is law 6: one Ingot acts. While this process must not decide, servers are only read; where it may heal, the
// power of bound servers is restored from their disks.
func lead(l *Laws, s *server, p *proposal.Proposal) (why proposal.Why, until time.Time) {
	heals := p.Kind == proposal.Keep && l.HealOnly && s.Record.Release == nil && s.Service.By == ""
	if l.ObserveOnly.Reason == "" || p.Kind == proposal.Look || heals {
		return why, until
	}
	return l.ObserveOnly, until
}
