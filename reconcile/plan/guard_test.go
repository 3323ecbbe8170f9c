package plan_test

import (
	"strings"
	"testing"
	"time"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/proposal"
)

// asking is a fleet of one bound server whose guard lets nothing more pass for now.
func asking(edit func(in *input, rec *record, c *model.ServerClaim)) *input {
	in := bigFleet(1, 1)
	in.Policy.MaxDisruptions, in.Policy.MaxPowerDisruptions = 1, 1
	for _, action := range []string{proposal.StepRelease, proposal.StepPowerOff} {
		in.Observed.Fleet.Done = append(in.Observed.Fleet.Done, model.Disruption{Action: action, Server: "another", At: in.Now.Add(-time.Minute)})
	}
	rec := in.Observed.Servers[first]
	edit(in, rec, in.Desired.Claims[rec.Claim.Name])
	return in
}

func TestWhatTheGuardIsAskedFor(t *testing.T) {
	type edit = func(in *input, rec *record, c *model.ServerClaim)
	both := func(edits ...edit) edit {
		return func(in *input, rec *record, c *model.ServerClaim) {
			for _, e := range edits {
				e(in, rec, c)
			}
		}
	}
	of := func(e func(rec *record)) edit { return func(_ *input, rec *record, _ *model.ServerClaim) { e(rec) } }
	wantsOff := func(_ *input, _ *record, c *model.ServerClaim) { c.Spec.Power = model.PowerOff }
	reprovision := func(_ *input, _ *record, c *model.ServerClaim) { annotated(model.AnnotationReprovision, "1")(c) }
	maintenance := func(in *input, _ *record, _ *model.ServerClaim) {
		in.Desired.Add(&model.ServerMaintenance{
			Meta: model.Meta{Name: "m"}, Spec: model.ServerMaintenanceSpec{ServerRef: model.LocalRef{Name: string(first)}},
		})
	}
	empty := of(func(r *record) { r.Install.Digest = "" })
	for name, tc := range map[string]struct {
		edit edit
		want string
	}{
		"nothing":                                   {both(), ""},
		"a claim that wants its server off":         {wantsOff, "power-off default/c00000=Off"},
		"a claim that wanted its server off before": {both(wantsOff, of(func(r *record) { r.Claim.Power = model.PowerOff })), ""},
		"a server in maintenance is off anyway": {
			both(wantsOff, of(func(r *record) { r.Life.State, r.Life.Back = model.StateMaintenance, model.StateReserved })), "",
		},
		"a new value of the reprovision annotation": {reprovision, "reprovision default/c00000=1"},
		"a server with nothing on it loses nothing": {both(reprovision, empty), ""},
		"a server that may be installed may lose something": {both(reprovision, empty, of(func(r *record) {
			r.Doubt = &model.Doubt{Reason: model.DoubtInstallUnknown, Since: time.Unix(1, 0)}
		})), "reprovision default/c00000=1"},
		"one whose release is decided is asked for nothing": {both(wantsOff, of(func(r *record) { r.Release = &model.Release{} })), ""},
		"a maintenance": {maintenance, "maintenance default/c00000=m"},
		"a maintenance that is decided": {both(maintenance, of(func(r *record) {
			r.Intent = &model.Intent{Kind: model.IntentMaintenance, Value: "m"}
		})), ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got string
			if f := plan.Plan(asking(tc.edit)).Decided.Fleet; f != nil && len(f.Holds) > 0 {
				got = stepNames(f.Holds[0].Steps)
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// An approval of a missing claim approves its release, too, and nothing else.
func TestTheGuardLetsAnApprovedRemovalPass(t *testing.T) {
	for name, tc := range map[string]struct {
		approved bool
		state    model.ServerState
		want     bool // it is released
		held     bool
	}{
		"a removal that a person approved":                  {approved: true, state: model.StateReserved, want: true},
		"a removal by a commit":                             {state: model.StateReserved, held: true},
		"a server in maintenance is released only after it": {approved: true, state: model.StateMaintenance},
	} {
		t.Run(name, func(t *testing.T) {
			in := asking(func(in *input, r *record, c *model.ServerClaim) {
				delete(in.Desired.Claims, c.ClaimName())
				in.Desired.Removed = map[model.Identity][]model.Removal{c.ClaimName().Identity(): {{Revision: "r", Approved: tc.approved}}}
				r.Life.State, r.Life.Back = tc.state, model.StateReserved
				in.Observed.Fleet.Holds = []model.GuardHold{{
					Token: "t",
					Steps: []model.Disruption{{Action: proposal.StepRelease, Server: first, Claim: c.ClaimName(), Value: text.Time(fleettest.Now)}},
				}}
			})
			st := stepOf(in, first)
			if got := st.After.Release != nil; got != tc.want || (st.Why.Reason == model.ReasonGuardHeld) != tc.held {
				t.Errorf("it is released: %t, want %t; it waits for %+v", got, tc.want, st.Why)
			}
		})
	}
}

func stepNames(steps []model.Disruption) string {
	var all []string
	for _, d := range steps {
		all = append(all, strings.TrimSuffix(d.Action+" "+string(d.Claim)+"="+d.Value, "="))
	}
	return strings.Join(all, " ")
}
