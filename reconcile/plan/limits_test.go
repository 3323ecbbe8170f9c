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
func asking(change change) *input {
	in, rec := serving()
	in.Policy.MaxDisruptions, in.Policy.MaxPowerDisruptions = 1, 1
	for _, action := range []string{proposal.StepRelease, proposal.StepPowerOff} {
		in.Observed.Fleet.Done = append(in.Observed.Fleet.Done, model.Disruption{Action: action, Server: "another", At: in.Now.Add(-time.Minute)})
	}
	change(in, rec)
	return in
}

func TestWhatTheGuardIsAskedFor(t *testing.T) {
	wantsOff := func(in *input, rec *record) { in.Desired.Claims[rec.Claim.Name].Spec.Power = model.PowerOff }
	reprovision := func(in *input, rec *record) {
		annotated(model.AnnotationReprovision, "1")(in.Desired.Claims[rec.Claim.Name])
	}
	empty := func(_ *input, rec *record) { rec.Install.Digest = "" }
	for name, tc := range map[string]struct {
		change change
		want   string
	}{
		"nothing":                                           {all(), ""},
		"a claim that wants its server off":                 {wantsOff, "power-off default/c00000=Off"},
		"a claim that wanted its server off before":         {all(wantsOff, func(_ *input, r *record) { r.Claim.Power = model.PowerOff }), ""},
		"a server in maintenance is off anyway":             {all(wantsOff, serviced), ""},
		"a new value of the reprovision annotation":         {reprovision, "reprovision default/c00000=1"},
		"a server with nothing on it loses nothing":         {all(reprovision, empty), ""},
		"a server that may be installed may lose something": {all(reprovision, empty, mayBeInstalled), "reprovision default/c00000=1"},
		"one whose release is decided is asked for nothing": {all(wantsOff, func(_ *input, r *record) { r.Release = &model.Release{} }), ""},
		"a maintenance":                                     {toBeServiced, "maintenance default/c00000=m"},
		"a maintenance that is decided": {all(toBeServiced, func(_ *input, r *record) {
			r.Intent = &model.Intent{Kind: model.IntentMaintenance, Value: "m"}
		}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got string
			if f := plan.Plan(asking(tc.change)).Decided.Fleet; f != nil && len(f.Holds) > 0 {
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
		change   change
		want     bool // it is released
		held     bool
	}{
		"a removal that a person approved":                  {approved: true, want: true},
		"a removal by a commit":                             {held: true},
		"a server in maintenance is released only after it": {approved: true, change: serviced},
	} {
		t.Run(name, func(t *testing.T) {
			in := asking(func(in *input, r *record) {
				claim := r.Claim.Name
				delete(in.Desired.Claims, claim)
				in.Desired.Removed = map[model.Identity][]model.Removal{claim.Identity(): {{Revision: "r", Approved: tc.approved}}}
				all(tc.change)(in, r)
				step := model.Disruption{Action: proposal.StepRelease, Server: first, Claim: claim, Value: text.Time(fleettest.Now)}
				in.Observed.Fleet.Holds = []model.GuardHold{{Token: "t", Steps: []model.Disruption{step}}}
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
