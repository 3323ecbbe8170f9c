package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan/proposal"
)

// lostPower is a fleet of servers that serve claims and are all found Off.
func lostPower(servers int) *Input {
	in := bigFleet(servers, servers)
	for _, f := range in.Observed.ServerFacts {
		f.Power = model.PowerOff
	}
	return in
}

func TestServersStandInLineForAPowerOn(t *testing.T) {
	in := lostPower(60)
	in.Policy.MaxConcurrentPowerOns = 10
	r := Plan(in)
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
		if !ok || last.Reset != model.ResetOn || q.Then.Power.Asked == nil || q.Target.UUID == "" || !q.Heals {
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

func TestWhatTheStatusBranchDoesNotShowIsNotInLine(t *testing.T) {
	in := bigFleet(2, 2)
	rec := fleettest.Ticketed(in.Observed, model.StateReserved, model.PurposeClaim)
	rec.Power.Asked = nil
	in.Observed.ServerFacts[rec.Name].Power = model.PowerOff
	starting := fleettest.ServerName(1) // has the only place
	in.Observed.ServerFacts[starting].Power = model.PowerOff
	in.Observed.Servers[starting].Power.Asked = &model.PowerAsked{Reset: model.ResetOn, Want: model.PowerOn, At: in.Now.Add(-time.Second)}
	in.Readings[starting] = proposal.Reading{At: in.Now}
	in.Policy.MaxConcurrentPowerOns, in.Policy.ShowFirst = 1, false
	if r := Plan(in); len(r.Queued) != 1 || r.Queued[0].Heals {
		t.Fatalf("in line where the branch need not be written first: %+v", r.Queued)
	}
	in.Policy.ShowFirst = true // nothing was announced yet
	if r := Plan(in); len(r.Queued) != 0 {
		t.Errorf("in line: %+v", r.Queued[0].Move)
	}
}

func TestWhoMustWaitOtherwiseIsNotInLine(t *testing.T) {
	for name, change := range map[string]func(in *Input, rec *model.ServerRecord){
		"a busy server": func(in *Input, rec *model.ServerRecord) {
			in.Busy = map[model.ServerName]bool{rec.Name: true}
		},
		"a server that is to be read first": func(in *Input, rec *model.ServerRecord) { in.Readings[rec.Name] = proposal.Reading{} },
		"a server whose BMC did not answer a number of requests": func(in *Input, rec *model.ServerRecord) {
			rec.Power.Asked = &model.PowerAsked{
				Reset: model.ResetOn, Want: model.PowerOn, At: in.Now.Add(-time.Hour), Unsure: true, Tries: in.Policy.UnsureTries,
			}
			in.Readings[rec.Name] = proposal.Reading{At: in.Now.Add(-time.Second), Offs: 3}
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := lostPower(2)
			in.Policy.MaxConcurrentPowerOns = 1
			if r := Plan(in); len(r.Queued) != 1 {
				t.Fatalf("%d are in line to begin with", len(r.Queued))
			}
			change(in, in.Observed.Servers[fleettest.ServerName(1)])
			if r := Plan(in); len(r.Queued) != 0 {
				t.Errorf("in line: %+v", r.Queued[0].Move)
			}
		})
	}
}

func TestALookFollowsOnAPowerRequestThatWasAnswered(t *testing.T) {
	p := proposal.DefaultPolicy()
	off := &model.ServerFacts{Name: "s1", Power: model.PowerOff}
	on := &Move{
		Do: []proposal.Action{proposal.DiskOnce{}, proposal.SetPower{Reset: model.ResetOn, From: model.PowerOff}}, Then: powering(),
		was: known{old: recordOf(), facts: off, reading: proposal.Reading{At: plannedAt, Offs: 3}, policy: &p},
	}
	answered := []proposal.Answer{{At: settleNow}, {At: settleNow, Reset: model.ResetResult{Before: model.PowerOff, Did: model.ResetOn}}}
	lost := []proposal.Answer{{At: settleNow}, failed(proposal.FailureUnsure, "", "EOF")}
	s := on.Settle(lost, settleNow)
	if look, _, ok := on.Look(&s); ok {
		t.Errorf("after a lost answer: %+v", look)
	}
	s = on.Settle(answered, settleNow)
	look, after, ok := on.Look(&s)
	if !ok || after != p.Settle || s.PoweredOn {
		t.Fatalf("look %v after %s, powered on %t", ok, after, s.PoweredOn)
	}
	later := settleNow.Add(after)
	saw := func(power model.Power) proposal.Settled {
		return look.Settle([]proposal.Answer{{At: later, Facts: &model.ServerFacts{Power: power}}}, later)
	}
	if s := saw(model.PowerOff); s.PoweredOn || len(s.Servers) != 0 || s.Reading.Offs != 0 {
		t.Errorf("while it is Off still: %+v", s)
	}
	if s := saw(model.PowerOn); !s.PoweredOn || len(s.Servers) != 1 || !s.Servers[0].Power.Asked.Reached ||
		s.ServerFacts[0].Power != model.PowerOn {
		t.Errorf("once it is On: %+v", s)
	}
	for name, asked := range map[string]model.PowerAsked{
		"long before this process began": {Reset: model.ResetOn, Want: model.PowerOn, At: plannedAt.Add(-time.Hour), Reached: true},
		"longer ago than it may take":    {Reset: model.ResetOn, Want: model.PowerOn, At: plannedAt.Add(-p.PowerOnLimit)},
	} {
		first := *look
		first.Then, first.was.reading = recordOf(func(rec *model.ServerRecord) { rec.Power.Asked = &asked }), proposal.Reading{}
		first.was.old = first.Then
		if s := first.Settle([]proposal.Answer{{At: later, Facts: &model.ServerFacts{Power: model.PowerOn}}}, later); s.PoweredOn {
			t.Errorf("asked to power on %s, it leaves a place that it does not have", name)
		}
	}
	again := *look
	again.was.reading = saw(model.PowerOn).Reading
	if s := again.Settle([]proposal.Answer{{At: later, Facts: &model.ServerFacts{Power: model.PowerOn}}}, later); s.PoweredOn {
		t.Error("it is said to have powered on a second time")
	}
	if _, _, ok := look.Look(&s); ok {
		t.Error("a look is followed by another")
	}
}

// Machines that were asked to power on and did not come on are asked again in half of the
// places alone, whatever their names: the others are for those that may come on.
func TestServersThatDoNotComeOnLeaveRoomForOthers(t *testing.T) {
	in := lostPower(17)
	in.Policy.MaxConcurrentPowerOns = 10
	for i := range 12 { // by name before the others
		name := fleettest.ServerName(i)
		at := in.Now.Add(-time.Hour)
		in.Observed.Servers[name].Power.Asked = &model.PowerAsked{Reset: model.ResetOn, Want: model.PowerOn, At: at}
		in.Readings[name] = proposal.Reading{At: in.Now.Add(-time.Second), Offs: 3}
	}
	r := Plan(in)
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

func TestAServerThatDidNotComeOnHasTheOnlyPlace(t *testing.T) {
	in := lostPower(1)
	in.Policy.MaxConcurrentPowerOns = 1
	name := fleettest.ServerName(0)
	in.Observed.Servers[name].Power.Asked = &model.PowerAsked{Reset: model.ResetOn, Want: model.PowerOn, At: in.Now.Add(-time.Hour)}
	in.Readings[name] = proposal.Reading{At: in.Now.Add(-time.Second), Offs: 3}
	if r := Plan(in); len(r.Moves) != 1 {
		t.Errorf("%d moves, want that it is asked again", len(r.Moves))
	}
}

func TestAServerThatDidNotComeOnTakesTurnsForTheOnlyPlace(t *testing.T) {
	for name, tc := range map[string]struct {
		limits time.Duration // since it was asked, in PowerOnLimit
		want   model.ServerName
	}{
		"another comes first for a time": {limits: 1, want: fleettest.ServerName(1)},
		"then it is asked again":         {limits: 2, want: fleettest.ServerName(0)},
	} {
		in := lostPower(2)
		in.Policy.MaxConcurrentPowerOns = 1
		broken := fleettest.ServerName(0)
		at := in.Now.Add(-tc.limits*in.Policy.PowerOnLimit - time.Second)
		in.Observed.Servers[broken].Power.Asked = &model.PowerAsked{Reset: model.ResetOn, Want: model.PowerOn, At: at}
		in.Readings[broken] = proposal.Reading{At: in.Now.Add(-time.Second), Offs: 3}
		r := Plan(in)
		if m := r.Moves[tc.want]; m == nil || len(r.Moves) != 1 {
			t.Errorf("%s: %d moves, want that of %s", name, len(r.Moves), tc.want)
		}
	}
}
