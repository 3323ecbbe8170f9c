package plan_test

import (
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/reading"
)

// git has a server be in Git, with an indicator and perhaps an operation.
func git(led string, operation ...string) change {
	return func(in *input, rec *record) {
		s := &model.Server{Meta: model.Meta{Name: string(rec.Name)}, Spec: model.ServerSpec{IndicatorLED: led}}
		for _, o := range operation {
			s.Annotations = map[string]string{model.AnnotationOperation: o}
		}
		in.Desired.Add(s)
	}
}

// shows has the inventory of a server show its indicator.
func shows(led string, onOff bool) change {
	return func(in *input, rec *record) {
		in.Observed.ServerFacts[rec.Name].Inventory = &model.Inventory{IndicatorLED: led, IndicatorOnOff: onOff}
	}
}

// otherInGit has Git say that a server is at another place behind its BMC.
func otherInGit(in *input, rec *record) {
	in.Desired.Servers[rec.Name].Spec.SystemURI = "/redfish/v1/Systems/another"
}

func TestWhetherAnIndicatorIsSwitched(t *testing.T) {
	const firmware, park = "1.0", model.OperationPark
	problem := func(edit func(p *model.SettingProblem)) change {
		return func(in *input, rec *record) {
			rec.Settings.IndicatorProblem = &model.SettingProblem{
				Want: "Lit", Reason: model.ReasonSettingNotKept, Firmware: firmware, Failures: 1, NotBefore: in.Now.Add(-time.Second),
			}
			edit(rec.Settings.IndicatorProblem)
		}
	}
	ahead := func(p *model.SettingProblem) { p.NotBefore = fleettest.Now.Add(time.Minute) }
	for name, tc := range map[string]struct {
		changes []change
		want    string // what it is set to, "" = it is left alone
	}{
		"one that Git wants in another way":   {changes: []change{git("Lit")}, want: "Lit"},
		"one that is to be Off":               {changes: []change{git("Off"), shows("Lit", false)}, want: "Off"},
		"one that blinks and is to be lit":    {changes: []change{git("Lit"), shows("Blinking", false)}, want: "Lit"},
		"one that says nothing of itself":     {changes: []change{git("Off"), shows("", false)}, want: "Off"},
		"one that is as Git wants it":         {changes: []change{git("Lit"), shows("Lit", false)}},
		"one that can do no more than be lit": {changes: []change{git("Blinking"), shows("Lit", true)}},
		"one of which Git says nothing":       {changes: []change{git("")}},
		"one of which Git does not know":      {changes: []change{git("Unknown"), shows("Lit", false)}},
		"of a server that is not in Git":      {},
		"of one that is not what Git says":    {changes: []change{git("Lit"), otherInGit}},
		"of one that was found running":       {changes: []change{git("Lit"), state(model.StateInitial), foundRunning}, want: "Lit"},
		"of one that is Released": {changes: []change{git("Lit"), state(model.StateReleased), func(in *input, rec *record) {
			clear(in.Desired.Claims)
			in.Desired.Servers[rec.Name].Spec.ReclaimPolicy = model.ReclaimRetain
		}}, want: "Lit"},
		"of one in Maintenance": {changes: []change{git("Lit", park), serviced, func(_ *input, rec *record) {
			rec.Maintenance.By = park
		}}, want: "Lit"},
		"of one in Error":                  {changes: []change{git("Lit"), state(model.StateError)}, want: "Lit"},
		"of one that is ignored":           {changes: []change{git("Lit", model.OperationIgnore)}},
		"of one whose BMC is not in Git":   {changes: []change{git("Lit"), func(in *input, _ *record) { clear(in.Desired.BMCs) }}},
		"of one whose BMC does not answer": {changes: []change{git("Lit"), readAs(func(r *reading.State) { r.Failures = 1 })}},
		"of one that was not read yet":     {changes: []change{git("Lit"), readAs(func(r *reading.State) { *r = reading.State{} })}},
		"one that failed, and it is time":  {changes: []change{git("Lit"), problem(func(*model.SettingProblem) {})}, want: "Lit"},
		"one that failed a moment ago":     {changes: []change{git("Lit"), problem(ahead)}},
		"one that failed in another way":   {changes: []change{git("Blinking"), problem(ahead)}, want: "Blinking"},
		"one that was refused three times": {changes: []change{git("Lit"), problem(func(p *model.SettingProblem) { p.Failures = 3 })}},
		"one that other firmware refused": {
			changes: []change{git("Lit"), problem(func(p *model.SettingProblem) { p.Failures, p.Firmware = 3, "0.9" })}, want: "Lit",
		},
		"one whose BMC was busy often, in time": {
			changes: []change{git("Lit"), problem(func(p *model.SettingProblem) { p.Failures, p.Reason = 9, model.ReasonConnectionFailed })},
			want:    "Lit",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in, rec := serving(shows("Off", false))
			in.Observed.BMCFacts[rec.BMC].FirmwareVersion = firmware
			all(tc.changes...)(in, rec)
			r, got := plan.Plan(in), ""
			if m := r.Moves[rec.Name]; m != nil && len(m.Do) > 0 {
				if a, is := m.Do[0].(proposal.SetIndicator); is {
					got = a.To
				}
			}
			if got != tc.want {
				t.Errorf("the indicator is set to %q, want %q", got, tc.want)
			}
			if why := r.Servers[0].Why; why.Reason == model.ReasonInProgress {
				t.Errorf("it counts as a step: %+v", why)
			}
		})
	}
}

// foundRunning has a server run what Ingot did not start.
func foundRunning(_ *input, rec *record) {
	rec.Claim.Name, rec.Install.Digest, rec.Boot.Ticket, rec.Life.FoundRunning = "", "", nil, time.Date(2026, 11, 21, 11, 0, 0, 0, time.UTC)
}

// What waits for a place among guard.maxConcurrentPowerOns may be begun before the next
// plan: nothing else is begun with the server meanwhile.
func TestAServerInTheQueueHasNoOtherMove(t *testing.T) {
	in := lostPower(2)
	in.Policy.MaxConcurrentPowerOns = 1
	for _, rec := range in.Observed.Servers {
		all(git("Lit"), shows("Off", false))(in, rec)
	}
	r := plan.Plan(in)
	if len(r.Queued) != 1 || len(r.Moves) != 1 || r.Moves[r.Queued[0].Name] != nil {
		t.Errorf("%d moves and %d in the queue, want one of each, of two servers: %+v", len(r.Moves), len(r.Queued), r.Moves)
	}
}

func TestAPowerRequestComesBeforeAnIndicator(t *testing.T) {
	in, rec := serving(git("Lit"), shows("Off", false), off)
	if got := moveText(plan.Plan(in).Moves[rec.Name]); got != "set one-time boot from disk, then ask for power On" {
		t.Errorf("it is healed by %q", got)
	}
}

func TestNoSettingIsMadeWhileNothingMayBeDone(t *testing.T) {
	for name, forbid := range map[string]func(in *input){
		"without a store":              func(in *input) { in.ObserveOnly = "no store" },
		"while only power is restored": func(in *input) { in.HealOnly = "Git cannot be read" },
	} {
		in, _ := serving(git("Lit"), shows("Off", false))
		forbid(in)
		if m := plan.Plan(in).Moves[first]; m != nil {
			t.Errorf("%s: %s", name, moveText(m))
		}
	}
}

// The boot order is set on a server that is off, unclaimed and certain to be the
// one that Git says.
func TestWhoseBootOrderIsSet(t *testing.T) {
	order := []model.BootOrder{{Name: "b", Device: "b"}}
	pending := func(ago time.Duration) change { // its probe reported half an hour ago
		return func(in *input, rec *record) {
			rec.Settings.BootOrderPending = &model.PendingBootOrder{Order: []string{"b", "a"}, Since: in.Now.Add(-ago)}
			rec.Settings.BootOrderSet = model.BootOrderKey(order, "", []string{"a", "b"})
			in.Observed.Probes[rec.Name] = &model.ProbeReport{ReceivedAt: in.Now.Add(-time.Hour / 2)}
		}
	}
	for name, tt := range map[string]struct {
		change change
		set    bool
	}{
		"of one that is Available and off":                 {set: true},
		"of one that is not confirmed to be off":           {change: readAs(func(r *reading.State) { r.Offs = 1 })},
		"of one that Git has at another URI":               {change: otherInGit},
		"of one that has it pending":                       {change: pending(0)},
		"of one that has it pending and has started since": {change: pending(time.Hour), set: true},
		"of one that is Released":                          {change: state(model.StateReleased)},
	} {
		t.Run(name, func(t *testing.T) {
			in := bigFleet(1, 0)
			rec := in.Observed.Servers[first]
			in.Observed.ServerFacts[rec.Name].Inventory = &model.Inventory{BootOrder: []string{"a", "b"}}
			fleettest.AddManifest(in.Desired, 0, model.ServerSpec{BootOrder: order})
			all(off, tt.change)(in, rec)
			set := false
			if m := plan.Plan(in).Moves[rec.Name]; m != nil && len(m.Do) > 0 {
				_, set = m.Do[0].(proposal.SetBootOrder)
			}
			if set != tt.set {
				t.Errorf("it is set: %v, want %v", set, tt.set)
			}
		})
	}
}
