package plan_test

import (
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/proposal"
)

// orderPending has the wanted order pending since then, and the probe report half an hour ago.
func orderPending(in *input, rec *record, since time.Time) {
	rec.Settings.BootOrderPending = &model.PendingBootOrder{Order: []string{"b", "a"}, Since: since}
	rec.Settings.BootOrderSet = model.BootOrderKey([]model.BootOrder{{Name: "b", Device: "b"}}, "", []string{"a", "b"})
	in.Observed.Probes[rec.Name] = &model.ProbeReport{ReceivedAt: in.Now.Add(-time.Hour / 2)}
}

// The boot order is set of a server that is off, and used by nobody, and certain to be the
// one that Git says.
func TestWhoseBootOrderIsSet(t *testing.T) {
	tests := map[string]struct {
		change func(in *input, s *model.Server, rec *record)
		set    bool
	}{
		"of one that is Available and off": {change: func(*input, *model.Server, *record) {}, set: true},
		"of one that is not confirmed to be off": {change: func(in *input, _ *model.Server, rec *record) {
			r := in.Readings[rec.Name]
			r.Offs = 1
			in.Readings[rec.Name] = r
		}},
		"of one that Git has at another URI": {change: func(_ *input, s *model.Server, _ *record) { s.Spec.SystemURI = "/redfish/v1/Systems/other" }},
		"of one that has it pending":         {change: func(in *input, _ *model.Server, rec *record) { orderPending(in, rec, in.Now) }},
		"of one that has it pending and has started since": {
			change: func(in *input, _ *model.Server, rec *record) { orderPending(in, rec, in.Now.Add(-time.Hour)) }, set: true,
		},
		"of one that is Released": {change: func(_ *input, _ *model.Server, rec *record) { rec.Life.State = model.StateReleased }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := bigFleet(1, 1)
			rec := in.Observed.Servers["bmc00000-system-0"]
			rec.Life.State, rec.Claim.Name, rec.Install.Digest, rec.Boot.Ticket = model.StateAvailable, "", "", nil
			clear(in.Desired.Claims)
			r := in.Readings[rec.Name]
			r.Offs, r.Ons = in.Policy.OffReadings, 0
			in.Readings[rec.Name] = r
			in.Observed.ServerFacts[rec.Name] = &model.ServerFacts{
				Name: rec.Name, Power: model.PowerOff, Inventory: &model.Inventory{BootOrder: []string{"a", "b"}},
			}
			s := &model.Server{Meta: model.Meta{Name: string(rec.Name)}, Spec: model.ServerSpec{BootOrder: []model.BootOrder{{Name: "b", Device: "b"}}}}
			tt.change(in, s, rec)
			in.Desired.Add(s)
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
