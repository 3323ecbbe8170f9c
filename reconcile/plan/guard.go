package plan

import (
	"fmt"
	"slices"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/laws/window"
	"ingot/reconcile/plan/proposal"
)

// guard decides which disruptive steps may be begun: so many within a window of time,
// whatever commits ask for them, and the others once a commit approves their list
// (law 2). What was decided before does not count again.
func (f *fleet) guard() {
	if f.observeOnly.Reason != "" {
		return
	}
	var asked []model.Disruption
	for _, d := range f.disruptions() {
		if f.endApproved(d) {
			f.allowed[d.Server] = append(f.allowed[d.Server], d)
			continue
		}
		asked = append(asked, d)
	}
	var bound map[string]int
	if len(asked) > 0 { // else nothing is measured by it
		bound = f.boundByNamespace()
	}
	r := window.Check(window.Input{
		Asked: asked, Uncertain: f.uncertain(asked), Record: f.record, Bound: bound, Approvals: f.in.Desired.Approvals,
		Limits: window.Limits{
			MaxDisruptions: f.in.Policy.MaxDisruptions, MaxPowerDisruptions: f.in.Policy.MaxPowerDisruptions, Window: f.in.Policy.GuardWindow,
		},
		Revision: f.in.Desired.Revision, Now: f.in.Now, Seed: f.in.Nonce,
	})
	f.record.Holds, f.record.ApprovedSteps, f.record.Done = r.Holds, r.ApprovedSteps, r.Done
	f.guardNext = r.Next
	for _, d := range r.Allowed {
		f.allowed[d.Server] = append(f.allowed[d.Server], d)
	}
	for _, d := range asked {
		if _, waits := r.Held[window.KeyOf(d)]; waits {
			f.blockedByGuard[d.Server] = append(f.blockedByGuard[d.Server], d)
		}
	}
}

// uncertain are the steps that the first revision after a long gap asks for, of servers that are
// not known to be off: they may be bound to another claim since.
func (f *fleet) uncertain(asked []model.Disruption) map[window.Key]bool {
	if !f.in.LongGap || f.in.First != "" && f.in.First != f.in.Desired.Revision {
		return nil
	}
	steps := make(map[window.Key]bool)
	for _, d := range asked {
		if f.server(d.Server).power() != model.PowerOff {
			steps[window.KeyOf(d)] = true
		}
	}
	return steps
}

// boundByNamespace counts the servers that claims have.
func (f *fleet) boundByNamespace() map[string]int {
	bound := make(map[string]int)
	for _, s := range f.servers {
		if s.bound() {
			ns, _ := model.SplitName(s.rec.Claim.Name)
			bound[ns]++
		}
	}
	return bound
}

// endApproved reports whether a step takes a server from a claim of which a person
// approved that it is gone: that is an approval for the guard too.
func (f *fleet) endApproved(d model.Disruption) bool {
	if d.Action != proposal.StepRelease && d.Action != proposal.StepRetain || f.server(d.Server).rec.Life.State != model.StateReserved {
		return false
	}
	r, _ := f.claimRemoval(f.server(d.Server).rec)
	return r.Approved
}

// may reports whether the guard lets a step be begun.
func (s *server) may(action string) bool {
	return slices.ContainsFunc(s.fleet.allowed[s.name], func(d model.Disruption) bool { return d.Action == action })
}

// guardWhy says that the guard holds a step back.
func (s *server) guardWhy(d model.Disruption) proposal.Why {
	for _, h := range s.fleet.in.Observed.Fleet.Holds {
		if !slices.ContainsFunc(h.Steps, d.Same) {
			continue
		}
		why := proposal.Why{Reason: model.ReasonGuardHeld, Message: fmt.Sprintf("%s: approve it by a commit whose message ends with "+
			"Ingot-Approve: %s", s.heldText(d), h.Token), Since: h.Since, Actor: proposal.RackOperator}
		if !h.Until.IsZero() {
			why.Message += ", or wait until " + text.Time(h.Until)
		}
		return why
	}
	return s.whySince(model.ReasonGuardHeld, s.heldText(d)+"; see "+model.ReportRevision, proposal.RackOperator)
}

// heldText says which step the guard holds back, and what it would do.
func (s *server) heldText(d model.Disruption) string {
	text := "the guard holds its " + d.Action + " back"
	if m := s.fleet.in.Desired.Maintenances[d.Value]; m != nil && d.Action == proposal.StepMaintenance {
		text += ", which " + maintenanceEffect(m)
	}
	return text
}
