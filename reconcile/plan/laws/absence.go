package laws

import (
	"ingot/model"
	"ingot/reconcile/plan/life"
	"ingot/reconcile/plan/proposal"
)

// absence is law 1: a removal is a commit. A server is not taken from a claim that Git merely lacks.
func absence(l *Laws, s *server, p *proposal.Proposal) (why proposal.Why) {
	if !p.Ends() {
		return why
	}
	if _, removed := l.ClaimRemoval(s.Record); removed {
		return why
	}
	id := s.Record.Claim.Name.Identity()
	if l.Desired.IsQuarantined(id) {
		return life.QuarantinedWhy(s)
	}
	if absent, listed := l.Desired.Absence(id); listed {
		return AbsentWhy("its claim "+string(s.Record.Claim.Name), absent)
	}
	return s.WhyBy(model.ReasonAbsentWithoutCommit, "its claim is not in Git, and no commit took it away: put it back, or remove it "+
		"by a commit", proposal.RackOperator)
}

// AbsentWhy says that an object is absent without a commit, and what to do.
func AbsentWhy(what string, a model.Absence) proposal.Why {
	text := what + " is not in Git, and no commit that follows on the revision applied took it away"
	if a.Blob != "" {
		text = what + " stands otherwise in Git, and no commit that follows on the revision applied says so"
	}
	text += absentCauses[a.Cause] + ": it stays in force; put it back, or make a commit whose message ends with " + proposal.ApproveLine(a.Token)
	return proposal.Why{Reason: model.ReasonAbsentWithoutCommit, Message: text, Since: a.Since, Actor: proposal.RackOperator}
}

var absentCauses = map[model.AbsenceCause]string{
	model.AbsentHistoryRewritten: " (the history of the branch was rewritten)",
	model.AbsentSourceChanged:    " (git.url, git.branch or git.path is another)",
	model.AbsentAppliedUnknown:   " (the revision applied is no longer available)",
}

// newest is law 1, for a start: a revision that is older than the one applied last may lack claims that are bound.
func newest(l *Laws, _ *server, p *proposal.Proposal) (why proposal.Why) {
	if p.Kind != proposal.Look && l.ObserveOnly.Reason == model.ReasonRevisionOutdated {
		why = l.ObserveOnly
	}
	return why
}
