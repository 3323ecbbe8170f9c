package laws

import "ingot/reconcile/plan/proposal"

// identity is law 5, for the machine: one that contradicts Git is only read. Its manifest may mean another machine.
func identity(_ *Laws, s *server, p *proposal.Proposal) (why proposal.Why) {
	looks := p.Kind == proposal.Look && !p.Of.Edited
	if s.Contradicted.Reason == "" || p.Kind == proposal.Note || p.Blind || looks {
		return why
	}
	return s.Contradicted
}
