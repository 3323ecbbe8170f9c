package plan_test

import (
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/internal/plantest"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/reading"
	"ingot/reconcile/plan/world"
)

// assumed plans and assumes until nothing changes. It returns the last input, and the steps that were taken.
func assumed(t *testing.T, in *world.Input) (last *world.Input, steps []proposal.Step) {
	t.Helper()
	for range 10 {
		r := plan.Plan(in)
		for _, p := range r.Taken {
			steps = append(steps, p.Step())
		}
		next, changed := plan.Assume(in, r)
		if !changed {
			return next, steps
		}
		in = next
	}
	t.Fatalf("there is no end of changes: %v", steps)
	return nil, nil
}

func TestAssume(t *testing.T) {
	first, free := fleettest.ServerName(0), fleettest.ServerName(1)
	for name, tt := range map[string]struct {
		change func(in *world.Input)
		of     model.ServerName
		step   proposal.Step
		state  model.ServerState
		busy   bool
		done   int // disruptions that the guard counts
	}{
		"a settled fleet stays as it is": {change: func(*world.Input) {}, of: first, state: model.StateReserved},
		"a binding is recorded, and arming the ticket begins": {
			change: func(in *world.Input) { in.Desired.Add(fleettest.Claim("web")) }, of: free, step: proposal.StepBind, state: model.StateReserved, busy: true,
		},
		"a claim that is Off from the start needs no request": {
			change: func(in *world.Input) {
				in.Desired.Add(fleettest.Claim("web", func(c *model.ServerClaim) { c.Spec.Power = model.PowerOff }))
			}, of: free, step: proposal.StepBind, state: model.StateReserved,
		},
		"a release is recorded, and powering off begins": {
			change: func(in *world.Input) {
				delete(in.Desired.Claims, "default/c00000")
				in.Desired.Removed = map[model.Identity][]model.Removal{model.ClaimName("default/c00000").Identity(): {{Revision: "main@sha1:2"}}}
			}, of: first, step: proposal.StepRelease, state: model.StateReserved, busy: true, done: 1,
		},
		"a server that was not read yet is read": {
			change: func(in *world.Input) {
				in.Readings[free] = reading.State{}
				in.Observed.ServerFacts[free].Power = model.PowerOn
			}, of: free, state: model.StateAvailable,
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := plantest.BigFleet(2, 1)
			in.Observed.Fleet.Applied = in.Desired.Applied()
			tt.change(in)
			before := in.Observed.Servers[tt.of]
			last, steps := assumed(t, in)
			rec := last.Observed.Servers[tt.of]
			var step proposal.Step
			if len(steps) > 0 {
				step = steps[0]
			}
			if step != tt.step || rec.Life.State != tt.state || last.Busy[tt.of] != tt.busy || last.Readings[tt.of].At.IsZero() {
				t.Errorf("got steps %v, state %s, busy %v, reading %+v", steps, rec.Life.State, last.Busy[tt.of], last.Readings[tt.of])
			}
			if n := len(last.Observed.Fleet.Done); n != tt.done {
				t.Errorf("%d disruptions are done, want %d", n, tt.done)
			}
			if in.Observed.Servers[tt.of] != before || len(in.Busy) > 0 {
				t.Error("the input was changed")
			}
		})
	}
}

func TestAssumeWiped(t *testing.T) {
	in := plantest.BigFleet(1, 1)
	in.Observed.Fleet.Applied = in.Desired.Applied()
	name := fleettest.ServerName(0)
	rec := in.Observed.Servers[name]
	rec.Claim = model.RecordClaim{Name: "default/gone", Cleanup: model.CleanupSecure}
	rec.Release, rec.Doubt = &model.Release{Claim: "default/gone", At: in.Now}, &model.Doubt{Reason: model.DoubtInstallUnknown}
	rec.Boot.Ticket = &model.Ticket{ID: "t", Purpose: model.PurposeCleanup, ArmedAt: in.Now.Add(-time.Minute)}
	in.Observed.ServerFacts[name].Power = model.PowerOn
	in.Busy = map[model.ServerName]bool{name: true}

	last, steps := assumed(t, plan.AssumeWiped(in, []model.ServerName{name}))
	if got := last.Observed.Servers[name]; len(steps) == 0 || steps[0] != proposal.StepBind || got.Claim.Name != "default/c00000" || got.Claim.Cleanup != "" || got.Doubt != nil {
		t.Errorf("after the wipe the steps are %v, and the record %+v", steps, got)
	}
	if in.Observed.Servers[name] != rec || in.Observed.ServerFacts[name].Power != model.PowerOn || !in.Busy[name] {
		t.Error("the input was changed")
	}
}
