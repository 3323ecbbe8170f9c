package plan

import (
	"testing"
	"time"

	"ingot/model"
)

// A machine that asked while nobody listened stands there. It is powered on again soon, and
// only where it is certain that nobody listened.
func TestAServerThatMetAClosedPort(t *testing.T) {
	type change = func(in *Input, rec *model.ServerRecord)
	// Ingot is back 5 seconds after the power-on, which was ago.
	since := func(ago time.Duration) change {
		return func(in *Input, rec *model.ServerRecord) {
			rec.Power.Asked.At = in.Now.Add(-ago)
			rec.Boot.Ticket.ArmedAt, rec.Life.Since = rec.Power.Asked.At.Add(-time.Second), rec.Power.Asked.At
			in.Started, in.Serving = rec.Power.Asked.At.Add(4*time.Second), rec.Power.Asked.At.Add(5*time.Second)
		}
	}
	progress := func(p model.Progress) change {
		return func(in *Input, rec *model.ServerRecord) {
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
		"not where the port was open": {changes: []change{since(4 * time.Minute), func(in *Input, rec *model.ServerRecord) {
			in.Serving = rec.Power.Asked.At.Add(-time.Second)
		}}},
		"not while nobody can reach Ingot": {changes: []change{since(4 * time.Minute), func(in *Input, _ *model.ServerRecord) {
			in.Serving = time.Time{}
		}}},
		"not while its firmware tests itself": {changes: []change{since(4 * time.Minute), func(in *Input, rec *model.ServerRecord) {
			r := in.Readings[rec.Name]
			r.POST = true
			in.Readings[rec.Name] = r
		}}},
		"not before it usually asks": {changes: []change{since(4 * time.Minute), func(_ *Input, rec *model.ServerRecord) {
			rec.Boot.BootsAfter = 11 * time.Minute
		}}},
		"but a minute after that": {
			changes: []change{since(12*time.Minute + time.Second), func(_ *Input, rec *model.ServerRecord) {
				rec.Boot.BootsAfter = 11 * time.Minute
			}},
			want: true,
		},
		"not once it is served": {changes: []change{since(4 * time.Minute), progress(model.Progress{DHCPAt: seconds(60)})}},
		"though it was to be served its initramfs": {
			changes: []change{
				since(4 * time.Minute),
				progress(model.Progress{ScriptAt: seconds(1), KernelAt: seconds(2), InitrdAt: seconds(3)}),
			},
			want: true,
		},
		"though it was served its script": {
			changes: []change{since(4 * time.Minute), progress(model.Progress{ScriptAt: seconds(1)})},
			want:    true,
		},
		"though it was served its kernel": {
			changes: []change{since(4 * time.Minute), progress(model.Progress{ScriptAt: seconds(1), KernelAt: seconds(2)})},
			want:    true,
		},
		"not while it is off": {changes: []change{since(4 * time.Minute), func(in *Input, rec *model.ServerRecord) {
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
				s := newFleet(in).server(rec.Name)
				st := s.step()
				if got := s.rec.Boot.Ticket.Ended == model.TicketSpent && s.power() == model.PowerOn; got != tc.want {
					t.Fatalf("it is given up: %t, want %t; its ticket is %+v", got, tc.want, s.rec.Boot.Ticket)
				}
				want := 1 // of a claim that is served anew, and is counted when that comes to nothing
				if purpose == model.PurposeDiscovery && tc.want {
					want = 0
				}
				if s.rec.Boot.Attempts != want {
					t.Errorf("it counts as %d attempts, want %d", s.rec.Boot.Attempts, want)
				}
				if tc.want && (st.Move == nil || done(st) != "") {
					t.Errorf("with it %v is done, want nothing", st.Move)
				}
			})
		}
	}
}
