package laws

import (
	"fmt"
	"slices"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/proposal"
)

// written is laws 2 and 3: shown before done, and the status branch is the record. The newest decision is shown there
// before anything follows from it. A release is the exception: it revokes the ticket at once.
func written(l *Laws, s *server, p *proposal.Proposal) (why proposal.Why) {
	if s.Shown {
		return why
	}
	// A ticket may be armed for these before they are shown: it boots nothing yet.
	harmless := []model.IntentKind{model.IntentBind, model.IntentAdopt, model.IntentWipe, model.IntentDiscover}
	touches := p.Touches || p.Goal != nil || slices.ContainsFunc(p.Do, proposal.Touches)
	if p.Kind == proposal.Act && (touches || !slices.Contains(harmless, s.Record.Intent.Kind)) || p.Kind == proposal.Decide && !p.Ends() {
		why = l.Unshown(s)
	}
	return why
}

// Pushed says that a proposal waits for this process's first push: nothing is changed on a machine before.
func (l *Laws) Pushed(s *server, p *proposal.Proposal) (why proposal.Why) {
	if p.Kind == proposal.Act && (p.Touches || slices.ContainsFunc(p.Do, proposal.Touches)) {
		return l.Unshown(s)
	}
	return why
}

// Unshown says why what was decided last for a server must not be acted upon yet; no reason = it may be.
func (l *Laws) Unshown(s *server) (why proposal.Why) {
	switch {
	case !s.Shown:
		why = s.Why(model.ReasonWaitingForStatusBranch, fmt.Sprintf("waiting for the status branch to show it: %s %s", s.Record.Intent.Kind, s.Record.Intent.Value))
	case l.Unpushed:
		why = s.Why(model.ReasonWaitingForStatusBranch, "waiting for this Ingot's first commit to the status branch")
	default:
		return why
	}
	if since := l.Unannounced; !since.IsZero() {
		why.Message += ", which cannot be pushed since " + text.Time(since) + "; see the check status of /readyz"
		why.Since, why.Actor = since, proposal.RackOperator
	}
	return why
}
