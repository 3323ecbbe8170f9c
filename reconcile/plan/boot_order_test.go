package plan

import (
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// orderPending has the wanted order pending since then, and the probe report half an hour ago.
func orderPending(in *Input, rec *model.ServerRecord, since time.Time) {
	rec.Settings.BootOrderPending = &model.PendingBootOrder{Order: []string{"b", "a"}, Since: since}
	rec.Settings.BootOrderSet = model.BootOrderKey([]model.BootOrder{{Name: "b", Device: "b"}}, "", []string{"a", "b"})
	in.Observed.Probes[rec.Name] = &model.ProbeReport{ReceivedAt: in.Now.Add(-time.Hour / 2)}
}

// The boot order is set of a server that is off, and used by nobody, and certain to be the
// one that Git says.
func TestWhoseBootOrderIsSet(t *testing.T) {
	tests := map[string]struct {
		change func(in *Input, s *model.Server, rec *model.ServerRecord)
		set    bool
	}{
		"of one that is Available and off": {change: func(*Input, *model.Server, *model.ServerRecord) {}, set: true},
		"of one that is not confirmed to be off": {change: func(in *Input, _ *model.Server, rec *model.ServerRecord) {
			r := in.Readings[rec.Name]
			r.Offs = 1
			in.Readings[rec.Name] = r
		}},
		"of one that Git has at another URI": {change: func(_ *Input, s *model.Server, _ *model.ServerRecord) {
			s.Spec.SystemURI = "/redfish/v1/Systems/other"
		}},
		"of one that has it pending": {change: func(in *Input, _ *model.Server, rec *model.ServerRecord) { orderPending(in, rec, in.Now) }},
		"of one that has it pending and has started since": {
			change: func(in *Input, _ *model.Server, rec *model.ServerRecord) {
				orderPending(in, rec, in.Now.Add(-time.Hour))
			}, set: true,
		},
		"of one that is Released": {change: func(_ *Input, _ *model.Server, rec *model.ServerRecord) { rec.Life.State = model.StateReleased }},
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
			if m := Plan(in).Moves[rec.Name]; m != nil && len(m.Do) > 0 {
				_, set = m.Do[0].(proposal.SetBootOrder)
			}
			if set != tt.set {
				t.Errorf("it is set: %v, want %v", set, tt.set)
			}
		})
	}
}
