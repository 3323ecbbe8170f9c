package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/reading"
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

// lostPower is a fleet of servers that serve claims and are all found Off.
func lostPower(servers int) *input {
	in := bigFleet(servers, servers)
	for _, f := range in.Observed.ServerFacts {
		f.Power = model.PowerOff
	}
	return in
}

func TestServersStandInLineForAPowerOn(t *testing.T) {
	in := lostPower(60)
	in.Policy.MaxConcurrentPowerOns = 10
	for _, b := range in.Desired.BMCs {
		b.Annotations = map[string]string{model.AnnotationTLSMinimum: "1.0"}
	}
	r := plan.Plan(in)
	if len(r.Moves) != 10 {
		t.Errorf("%d servers are powered on, want 10", len(r.Moves))
	}
	var want, got []model.ServerName
	for i := 10; i < 50; i++ {
		want = append(want, fleettest.ServerName(i))
	}
	for _, q := range r.Queued {
		got = append(got, q.Name)
		last, ok := q.Do[len(q.Do)-1].(proposal.SetPower)
		if !ok || last.Reset != model.ResetOn || q.Then.Power.Asked == nil || q.Target.UUID == "" || q.Target.BMC.TLSMinimum != "1.0" || !q.Heals {
			t.Fatalf("%s waits for its turn with %+v", q.Name, q.Move)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the line (-want +got):\n%s", diff)
	}
	for _, s := range r.Servers[10:] {
		if s.Why.Reason != model.ReasonPowerOnsLimited || s.Record.Power.Asked != nil {
			t.Errorf("%s: %+v, asked %+v", s.Name, s.Why, s.Record.Power.Asked)
		}
	}
}

// Machines that were asked to power on and did not come on are asked again in half of the
// places alone, whatever their names: the others are for those that may come on.
func TestBrokenServersLeaveRoomForOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		broken, others, places int
		limits                 time.Duration // since they were asked, in PowerOnLimit
		want                   [2]int        // broken and others that are powered on
	}{
		"half of the places are for others":  {broken: 12, others: 5, places: 10, limits: 30, want: [2]int{5, 5}},
		"one alone is asked again":           {broken: 1, places: 1, limits: 20, want: [2]int{1, 0}},
		"in a single place another is first": {broken: 1, others: 1, places: 1, limits: 1, want: [2]int{0, 1}},
		"then it is asked again":             {broken: 1, others: 1, places: 1, limits: 2, want: [2]int{1, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			in := lostPower(tc.broken + tc.others)
			in.Policy.MaxConcurrentPowerOns = tc.places
			for i := range tc.broken { // by name before the others
				in.Observed.Servers[fleettest.ServerName(i)].Power.Asked = &model.PowerAsked{
					Reset: model.ResetOn, Want: model.PowerOn, At: in.Now.Add(-tc.limits*in.Policy.PowerOnLimit - time.Second),
				}
				in.Readings[fleettest.ServerName(i)] = reading.State{At: in.Now.Add(-time.Second), Offs: 3}
			}
			r, got := plan.Plan(in), [2]int{}
			for name, m := range r.Moves {
				if last, ok := m.Do[len(m.Do)-1].(proposal.SetPower); !ok || last.Reset != model.ResetOn {
					continue
				}
				if name < fleettest.ServerName(tc.broken) {
					got[0]++
				} else {
					got[1]++
				}
			}
			if got != tc.want {
				t.Errorf("powered on are %d that did not come on and %d others, want %d", got[0], got[1], tc.want)
			}
			for _, q := range r.Queued {
				if got[0] > 0 && q.Name < fleettest.ServerName(tc.broken) {
					t.Errorf("%s, which did not come on, is in line", q.Name)
				}
			}
		})
	}
}
