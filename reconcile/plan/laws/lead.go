package laws

import "ingot/reconcile/plan/proposal"

// lead is law 6: one Ingot acts. Any other only reads servers or, where it may heal, restores the power of bound ones.
func lead(l *Laws, s *server, p *proposal.Proposal) (why proposal.Why) {
	heals := p.Kind == proposal.Keep && l.HealOnly && s.Record.Release == nil && s.Service.By == ""
	if l.ObserveOnly.Reason == "" || p.Kind == proposal.Look || heals {
		return why
	}
	return l.ObserveOnly
}
