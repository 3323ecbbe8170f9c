package plan_test

import (
	"testing"
	"time"

	"ingot/model"
)

// A machine that asked while the port was closed waits for ever. It is powered on again soon, and
// only where it is certain that the port was closed.
func TestAServerThatMetAClosedPort(t *testing.T) {
	// Ingot is back 5 seconds after the power-on, which was ago.
	since := func(ago time.Duration) change {
		return func(in *input, rec *record) {
			rec.Power.Asked.At = in.Now.Add(-ago)
			rec.Boot.Ticket.ArmedAt, rec.Life.Since = rec.Power.Asked.At.Add(-time.Second), rec.Power.Asked.At
			in.Started, in.Serving = rec.Power.Asked.At.Add(4*time.Second), rec.Power.Asked.At.Add(5*time.Second)
		}
	}
	progress := func(p model.Progress) change {
		return func(in *input, rec *record) {
			p.Ticket = "t"
			in.Observed.Progress[rec.Name] = &p
		}
	}
	seconds := func(n int) time.Time { return bigFleet(1, 1).Now.Add(-4*time.Minute + time.Duration(n)*time.Second) }
	for name, tc := range map[string]struct {
		changes []change
		want    bool
	}{
		"is powered on again":           {changes: []change{since(4 * time.Minute)}, want: true},
		"not before 3 minutes are over": {changes: []change{since(3 * time.Minute)}},
		"not where the port was open": {changes: []change{since(4 * time.Minute), func(in *input, rec *record) {
			in.Serving = rec.Power.Asked.At.Add(-time.Second)
		}}},
		"not while nobody can reach Ingot": {changes: []change{since(4 * time.Minute), func(in *input, _ *record) { in.Serving = time.Time{} }}},
		"not while its firmware tests itself": {changes: []change{since(4 * time.Minute), func(in *input, rec *record) {
			r := in.Readings[rec.Name]
			r.POST = true
			in.Readings[rec.Name] = r
		}}},
		"not before it usually asks": {changes: []change{since(4 * time.Minute), func(_ *input, rec *record) { rec.Boot.BootsAfter = 11 * time.Minute }}},
		"but a minute after that": {
			changes: []change{since(12*time.Minute + time.Second), func(_ *input, rec *record) { rec.Boot.BootsAfter = 11 * time.Minute }},
			want:    true,
		},
		"not once it is served": {changes: []change{since(4 * time.Minute), progress(model.Progress{DHCPAt: seconds(60)})}},
		"though it was to be served its initramfs": {
			changes: []change{since(4 * time.Minute), progress(model.Progress{ScriptAt: seconds(1), KernelAt: seconds(2), InitrdAt: seconds(3)})},
			want:    true,
		},
		"though it was served its script": {changes: []change{since(4 * time.Minute), progress(model.Progress{ScriptAt: seconds(1)})}, want: true},
		"though it was served its kernel": {
			changes: []change{since(4 * time.Minute), progress(model.Progress{ScriptAt: seconds(1), KernelAt: seconds(2)})}, want: true,
		},
		"not while it is off": {changes: []change{since(4 * time.Minute), func(in *input, rec *record) {
			in.Observed.ServerFacts[rec.Name].Power = model.PowerOff
		}}},
	} {
		for state, purpose := range map[model.ServerState]model.TicketPurpose{
			model.StateReserved: model.PurposeClaim, model.StateDiscovery: model.PurposeDiscovery, model.StateCleanup: model.PurposeCleanup,
		} {
			t.Run(name+", "+string(purpose), func(t *testing.T) {
				in, rec := ticketed(state, purpose)
				rec.Boot.Ticket.Image.Kernel, rec.Boot.Ticket.Image.Initrd = &model.Layer{}, &model.Layer{}
				rec.Boot.Attempts = 1
				for _, c := range tc.changes {
					c(in, rec)
				}
				st := stepOf(in, rec.Name)
				if got := st.After.Boot.Ticket.Ended == model.TicketSpent && in.Observed.ServerFacts[rec.Name].Power == model.PowerOn; got != tc.want {
					t.Fatalf("it is given up: %t, want %t; its ticket is %+v", got, tc.want, st.After.Boot.Ticket)
				}
				want := 1 // of a claim that is served anew, and is counted when that comes to nothing
				if purpose == model.PurposeDiscovery && tc.want {
					want = 0
				}
				if st.After.Boot.Attempts != want {
					t.Errorf("it counts as %d attempts, want %d", st.After.Boot.Attempts, want)
				}
				if tc.want && (st.Move == nil || st.does() != "") {
					t.Errorf("with it %v is done, want nothing", st.Move)
				}
			})
		}
	}
}
