// Package laws checks proposals: each check has the law that it enforces as its comment. A proposal that is held is
// passed over, and the next one has to be right without it.
package laws

import (
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

type server = proposal.Server

// Laws is what the checks compare a proposal with, in addition to the server itself.
type Laws struct {
	*proposal.Moment
	// ObserveOnly says why nothing may be done at all, or, with HealOnly, nothing but to restore the power of bound
	// servers.
	ObserveOnly proposal.Why
	HealOnly    bool
	allowed     map[model.ServerName][]model.Disruption // the disruptions that may be begun now
}

// check is one law: why a proposal has to wait, and until when at most; no reason = it does not.
type check func(l *Laws, s *server, p *proposal.Proposal) (why proposal.Why, until time.Time)

// checks are in the order in which they are asked. Absence comes before guard: what no commit removed takes no room.
var checks = []check{newest, lead, absence, damage, identity, wiped, guard, written}

// Check returns why a proposal has to wait, and until when at most; no reason = it may be taken.
func (l *Laws) Check(s *server, p *proposal.Proposal) (why proposal.Why, until time.Time) {
	for _, holds := range checks {
		if why, until = holds(l, s, p); why.Reason != "" {
			return why, until
		}
	}
	return proposal.Why{}, time.Time{}
}

// Counts reports whether a disruption counts for the guard: a step that only a silent BMC holds does.
func (l *Laws) Counts(s *server, p *proposal.Proposal) bool {
	why, _ := absence(l, s, p)
	return why.Reason == ""
}
