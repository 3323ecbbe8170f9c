package plan

import (
	"time"

	"ingot/model"
	"ingot/reconcile/plan/install"
	"ingot/reconcile/plan/laws/window"
	"ingot/reconcile/plan/proposal"
)

// guard decides which disruptive steps may be begun: so many within a window of time, and the others once a commit
// approves their list (law 2). next is when a list that is held may go, zero if none may by time.
func (f *planner) guard() (next time.Time) {
	asked := f.disruptions()
	bound := make(map[string]int) // by namespace
	for _, s := range f.Servers {
		if len(asked) > 0 && s.IsBound() { // else nothing is measured by it
			ns, _ := model.SplitName(s.Record.Claim.Name)
			bound[ns]++
		}
	}
	// The first revision after a long gap may ask for steps on servers that are bound to other claims since.
	gap := f.In.LongGap && (f.In.First == "" || f.In.First == f.In.Desired.Revision)
	uncertain := func(d model.Disruption) bool { return gap && f.Server(d.Server).Power() != model.PowerOff }
	r := window.Check(window.Input{
		Asked: asked, Uncertain: uncertain, Record: *f.Record, Bound: bound, Approvals: f.In.Desired.Approvals,
		Policy: &f.In.Policy, Revision: f.In.Desired.Revision, Now: f.In.Now, Seed: f.In.Nonce,
	})
	*f.Record = r.Record
	for _, d := range r.Allowed {
		f.laws.Allow(d)
	}
	return r.Next
}

// disruptions are the decisions that the guard has to let pass. A release that a person approved needs no other room.
func (f *planner) disruptions() (steps []model.Disruption) {
	for _, s := range f.Servers {
		if install.JustRecovered(s.Server) {
			continue
		}
		for _, decide := range decisions {
			p, ok := decide(s.Server)
			if !ok || p.Takes == nil || !f.laws.Counts(s.Server, &p) {
				continue
			}
			f.asked = append(f.asked, new(p))
			d := *p.Takes
			d.Server, d.Claim = s.Name, s.Record.Claim.Name
			if r, _ := f.Moment.ClaimRemoval(s.Record); p.Ends() && r.Approved {
				f.laws.Allow(d)
			} else {
				steps = append(steps, d)
			}
			if p.Ends() || d.Action == proposal.StepWipe {
				break // the claim is gone: it asks for nothing else
			}
		}
	}
	return steps
}
