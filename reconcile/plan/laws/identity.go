package laws

import (
	"time"

	"ingot/reconcile/plan/proposal"
)

// identity is law 5, for the machine: one that contradicts Git is read, and nothing else. The author of the manifest
// may have meant another machine.
func identity(_ *Laws, s *server, p *proposal.Proposal) (why proposal.Why, until time.Time) {
	looks := p.Kind == proposal.Look && !p.Of.Edited()
	if s.Contradicted.Reason == "" || p.Kind == proposal.Note || p.Blind || looks {
		return why, until
	}
	return s.Contradicted, until
}
