// Package laws checks proposals: each check has the law that it enforces as its comment. A proposal that is held is
// passed over, and the next one has to be right without it.
package laws

import (
	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

type server = proposal.Server

// Laws is what the checks compare a proposal with, in addition to the server itself.
type Laws struct {
	*proposal.Moment
	// ObserveOnly says why nothing may be done or, with HealOnly, nothing but to restore the power of bound servers.
	ObserveOnly proposal.Why
	HealOnly    bool
	allowed     map[model.ServerName][]model.Disruption // the disruptions that may be begun now
}

// checks say why a proposal waits. Absence comes before guard: what no commit removed takes no room.
var checks = []func(*Laws, *server, *proposal.Proposal) proposal.Why{newest, lead, absence, damage, identity, wiped, guard, written}

// Check returns why a proposal has to wait; no reason = it may be taken.
func (l *Laws) Check(s *server, p *proposal.Proposal) (why proposal.Why) {
	for _, holds := range checks {
		if why = holds(l, s, p); why.Reason != "" {
			return why
		}
	}
	return why
}

// Counts reports whether a disruption counts for the guard: a step that only a silent BMC holds does.
func (l *Laws) Counts(s *server, p *proposal.Proposal) bool {
	return absence(l, s, p).Reason == ""
}
