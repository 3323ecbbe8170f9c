package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/reading"
)

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
	in := lostPower(17)
	in.Policy.MaxConcurrentPowerOns = 10
	for i := range 12 { // by name before the others
		name := fleettest.ServerName(i)
		at := in.Now.Add(-time.Hour)
		in.Observed.Servers[name].Power.Asked = &model.PowerAsked{Reset: model.ResetOn, Want: model.PowerOn, At: at}
		in.Readings[name] = reading.State{At: in.Now.Add(-time.Second), Offs: 3}
	}
	r := plan.Plan(in)
	broken, others := 0, 0
	for name, m := range r.Moves {
		if last, ok := m.Do[len(m.Do)-1].(proposal.SetPower); !ok || last.Reset != model.ResetOn {
			continue
		}
		if name < fleettest.ServerName(12) {
			broken++
		} else {
			others++
		}
	}
	if broken != 5 || others != 5 {
		t.Errorf("powered on are %d that did not come on and %d others, want 5 and 5", broken, others)
	}
	for _, q := range r.Queued {
		if q.Name < fleettest.ServerName(12) {
			t.Errorf("%s, which did not come on, is in line", q.Name)
		}
	}
}

func TestAServerThatDidNotComeOnTakesTurns(t *testing.T) {
	for name, tc := range map[string]struct {
		servers int
		limits  time.Duration // since it was asked, in PowerOnLimit
		want    model.ServerName
	}{
		"alone it is asked again":        {servers: 1, limits: 20, want: fleettest.ServerName(0)},
		"another comes first for a time": {servers: 2, limits: 1, want: fleettest.ServerName(1)},
		"then it is asked again":         {servers: 2, limits: 2, want: fleettest.ServerName(0)},
	} {
		in := lostPower(tc.servers)
		in.Policy.MaxConcurrentPowerOns = 1
		broken := fleettest.ServerName(0)
		at := in.Now.Add(-tc.limits*in.Policy.PowerOnLimit - time.Second)
		in.Observed.Servers[broken].Power.Asked = &model.PowerAsked{Reset: model.ResetOn, Want: model.PowerOn, At: at}
		in.Readings[broken] = reading.State{At: in.Now.Add(-time.Second), Offs: 3}
		r := plan.Plan(in)
		if m := r.Moves[tc.want]; m == nil || len(r.Moves) != 1 {
			t.Errorf("%s: %d moves, want that of %s", name, len(r.Moves), tc.want)
		}
	}
}
