package laws

import (
	"fmt"
	"slices"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/service"
)

// Allow has the guard let a disruption be begun. It holds all others.
func (l *Laws) Allow(d model.Disruption) {
	if l.allowed == nil {
		l.allowed = make(map[model.ServerName][]model.Disruption)
	}
	l.allowed[d.Server] = append(l.allowed[d.Server], d)
}

// guard is law 2, for disruptions: more than the guard allows wait for an approval in Git.
func guard(l *Laws, s *server, p *proposal.Proposal) (why proposal.Why) {
	if p.Takes == nil {
		return why
	}
	same := func(d model.Disruption) bool { return d.Action == p.Takes.Action && d.Value == p.Takes.Value }
	if slices.ContainsFunc(l.allowed[s.Name], same) {
		return why
	}
	d := *p.Takes
	d.Server, d.Claim = s.Name, s.Record.Claim.Name
	for _, h := range l.Observed.Fleet.Holds {
		if !slices.ContainsFunc(h.Steps, d.Same) {
			continue
		}
		why = proposal.Why{Reason: model.ReasonGuardHeld, Message: fmt.Sprintf("%s: approve it by a commit whose message ends with %s, "+
			"or refuse it with %s", heldText(s, d), proposal.ApproveLine(h.Token), proposal.Refuse(h.Revision)), Since: h.Since, Actor: proposal.RackOperator}
		if !h.Until.IsZero() {
			why.Message += "; without either it goes at " + text.Time(h.Until)
		}
		return why
	}
	return s.WhyBy(model.ReasonGuardHeld, heldText(s, d)+"; see "+model.ReportFleet, proposal.RackOperator)
}

func heldText(s *server, d model.Disruption) string {
	text := "the guard holds its " + d.Action + " back"
	if m := s.Desired.Maintenances[d.Value]; m != nil && d.Action == proposal.StepMaintenance {
		text += ", which " + service.EffectText(m)
	}
	return text
}
