package plan_test

import (
	"cmp"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/internal/plantest"
	"ingot/reconcile/plan/install"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/reading"
	"ingot/reconcile/progress"
)

func TestTheWindowOfATicket(t *testing.T) {
	const boot, discovery, wipe = 15 * time.Minute, 30 * time.Minute, 30 * time.Minute
	heard := func(ago time.Duration) func(in *input, rec *record) {
		return func(in *input, rec *record) {
			in.Observed.WipeProgress[rec.Name] = &model.WipeProgress{Ticket: "t", ReceivedAt: in.Now.Add(-ago)}
		}
	}
	for name, tc := range map[string]struct {
		state   model.ServerState   // "" = that of its purpose
		purpose model.TicketPurpose // "" = a claim
		change  change
		want    time.Duration // from now; 0 = it has no end
	}{
		"of discovery runs from the power-on":              {purpose: model.PurposeDiscovery, want: discovery - 30*time.Second},
		"of a claim does too":                              {want: boot - 30*time.Second},
		"of a wipe is that of a boot":                      {purpose: model.PurposeCleanup, want: boot - 30*time.Second},
		"of a wipe is longer once its probe runs":          {purpose: model.PurposeCleanup, want: wipe - 30*time.Second, change: fetched},
		"runs from arming before a power-on":               {want: boot - time.Minute, change: func(_ *input, rec *record) { rec.Power.Asked = nil }},
		"a power-off is no beginning":                      {want: boot - time.Minute, change: func(_ *input, rec *record) { rec.Power.Asked.Want = model.PowerOff }},
		"is over for a claim once its Ignition was served": {change: fetched},
		"goes on for discovery then":                       {purpose: model.PurposeDiscovery, want: discovery - 30*time.Second, change: fetched},
		"of a wipe runs anew from each word of it":         {purpose: model.PurposeCleanup, want: wipe, change: heard(0)},
		"of a wipe is not for ever": {purpose: model.PurposeCleanup, want: 5 * time.Minute, change: all(heard(0), func(in *input, rec *record) {
			rec.Boot.Ticket.ArmedAt, rec.Power.Asked.At = in.Now.Add(-10*wipe), in.Now.Add(5*time.Minute-10*wipe)
		})},
		"of a secure wipe is longer": {purpose: model.PurposeCleanup, want: 24*time.Hour - 30*time.Second, change: all(fetched, func(_ *input, rec *record) {
			rec.Boot.Ticket.CleanupMode = model.CleanupSecure
		})},
		"word of an older wipe does not count": {purpose: model.PurposeCleanup, want: boot - 30*time.Second, change: all(heard(0), func(in *input, rec *record) {
			in.Observed.WipeProgress[rec.Name].Ticket = "old"
		})},
		"a closed ticket has none": {change: func(_ *input, rec *record) { rec.Boot.Ticket.Ended = model.TicketBooted }},
	} {
		t.Run(name, func(t *testing.T) {
			in, rec := ticketedFor(tc.purpose, tc.state)
			all(tc.change)(in, rec)
			_, end := install.Window(plantest.ServerOf(in, rec.Name))
			if got := end.Sub(in.Now); tc.want == 0 && !end.IsZero() || tc.want != 0 && got != tc.want {
				t.Errorf("it ends %v from now (%v), want %v", got, end, tc.want)
			}
		})
	}
}

func TestATicketIsSpentWhenItsTimeIsOver(t *testing.T) {
	unreachable := func(in *input, rec *record) {
		in.Readings[rec.Name] = reading.State{Failed: reading.Failed{Failures: 3, Err: "no route", NotBefore: in.Now.Add(24 * time.Hour)}}
	}
	type outcome struct {
		Ended    model.TicketState
		Attempts int
		Problem  *model.BootProblem
		Do       string
	}
	spent := outcome{Ended: model.TicketSpent}
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		state   model.ServerState   // "" = that of its purpose
		purpose model.TicketPurpose // "" = a claim
		change  change
		want    outcome
	}{
		"of discovery":                                 {purpose: model.PurposeDiscovery, want: spent},
		"of discovery, though its BMC is silent":       {purpose: model.PurposeDiscovery, change: unreachable, want: spent},
		"of a server that never came to be powered on": {state: model.StateInitial, purpose: model.PurposeDiscovery, change: unreachable, want: spent},
		"of a wipe": {purpose: model.PurposeCleanup, want: outcome{Ended: model.TicketSpent, Attempts: 1}},
		"of a claim, with the last stage that was seen": {
			change: progressed(model.Progress{DHCPAt: start, TFTPAt: start.Add(time.Second)}),
			want: outcome{model.TicketSpent, 1, &model.BootProblem{
				Message: "it did not boot within 15m0s, last seen fetching its boot loader by TFTP at 2026-11-21T12:00:01Z; " +
					progress.Hint(model.StageTFTP),
			}, ""},
		},
		"of a claim whose server was not powered on": {
			change: all(unreachable, func(_ *input, rec *record) { rec.Power.Asked = nil }),
			want:   outcome{model.TicketSpent, 0, &model.BootProblem{Message: "it was not powered on within 15m0s"}, ""},
		},
		"of a claim that wants its server off, which is nobody's fault": {want: spent, change: func(in *input, rec *record) {
			in.Desired.Claims[rec.Claim.Name].Spec.Power, rec.Claim.Power = model.PowerOff, model.PowerOff
		}},
		"of one that waits for the server to be off, which is no boot": {want: spent, change: awaitingOff},
		"but not while nothing is acted upon":                          {change: outdated},
		"nor once the server has reported that it booted":              {change: all(unreachable, reported)},
		"nor once the wipe's result is there": {purpose: model.PurposeCleanup, change: all(unreachable, func(in *input, rec *record) {
			in.Observed.Wipes[rec.Name] = &model.WipeReport{Ticket: "t", ReceivedAt: in.Now}
		})},
	} {
		t.Run(name, func(t *testing.T) {
			in, rec := ticketedFor(tc.purpose, tc.state)
			in.Now = in.Now.Add(time.Hour)
			all(tc.change)(in, rec)
			st := stepOf(in, rec.Name)
			got := outcome{st.After.Boot.Ticket.Ended, st.After.Boot.Attempts, st.After.Boot.Problem, st.does()}
			if p := got.Problem; p != nil {
				if p.Digest != rec.Boot.Ticket.Digest || p.Reason != model.ReasonBootTimeout || !p.NotBefore.After(in.Now) {
					t.Errorf("the problem is %+v", p)
				}
				got.Problem = &model.BootProblem{Message: p.Message}
			}
			if diff := gocmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if got.Ended != "" && !st.recordsOnly() {
				t.Errorf("with it %v is done, want nothing", st.Move)
			}
		})
	}
}

func TestWipeTicketWaitsForOff(t *testing.T) {
	for name, tc := range map[string]struct {
		offs   int
		power  model.Power
		ticket *model.Ticket // nil = none yet
		want   string        // what is done
		held   bool          // its ticket, afterwards
	}{
		"armed when it is known to be off":    {offs: 3, power: model.PowerOff, want: "arm boot ticket for probe:1"},
		"armed when it was read off but once": {offs: 1, power: model.PowerOff, want: "arm boot ticket for probe:1", held: true},
		"waiting while it is on":              {power: model.PowerOn, ticket: &model.Ticket{AwaitingOff: true}, want: "ask for power GracefulShutdown", held: true},
		"waiting while it was read off once":  {offs: 1, power: model.PowerOff, ticket: &model.Ticket{AwaitingOff: true}, held: true},
		"let go once it is off":               {offs: 3, power: model.PowerOff, ticket: &model.Ticket{AwaitingOff: true}},
		"and then it is powered on":           {offs: 3, power: model.PowerOff, ticket: &model.Ticket{}, want: "set one-time network boot, then ask for power On"},
	} {
		t.Run(name, func(t *testing.T) {
			in, rec := ticketed(model.StateCleanup, model.PurposeCleanup)
			in.Observed.ServerFacts[rec.Name] = &model.ServerFacts{Name: rec.Name, Power: tc.power, Inventory: &model.Inventory{}}
			in.Readings[rec.Name] = reading.State{At: in.Now, Offs: tc.offs}
			rec.Power.Asked, rec.Boot.Ticket = nil, tc.ticket
			if rec.Boot.Ticket != nil {
				rec.Boot.Ticket.ID, rec.Boot.Ticket.Purpose, rec.Boot.Ticket.ArmedAt = "t", model.PurposeCleanup, in.Now
			}
			st := stepOf(in, rec.Name)
			if got := st.does(); got != tc.want {
				t.Errorf("done is %q, want %q", got, tc.want)
			}
			held := st.After.Boot.Ticket != nil && st.After.Boot.Ticket.AwaitingOff
			if st.Move != nil && len(st.Move.Do) > 0 {
				if arm, ok := st.Move.Do[0].(proposal.Arm); ok {
					held = arm.Boot.Ticket.AwaitingOff
				}
			}
			if held != tc.held {
				t.Errorf("held is %v, want %v", held, tc.held)
			}
		})
	}
}

// ticketedFor is ticketed for a purpose, by default that of a claim.
func ticketedFor(purpose model.TicketPurpose, state model.ServerState) (*input, *record) {
	purpose = cmp.Or(purpose, model.PurposeClaim)
	return ticketed(cmp.Or(state, map[model.TicketPurpose]model.ServerState{
		model.PurposeClaim: model.StateReserved, model.PurposeDiscovery: model.StateDiscovery, model.PurposeCleanup: model.StateCleanup,
	}[purpose]), purpose)
}

// A boot that was refused is not a failed boot.
func TestARefusedBootUsesUpNoAttempt(t *testing.T) {
	refused := model.TicketUse{What: model.ThingScript, Client: "10.0.0.9", Refusal: model.RefusedCannotTell, Count: 1}
	for title, tc := range map[string]struct {
		uses []model.TicketUse
		want int
	}{
		"nobody asked":                  {nil, 2},
		"somebody was refused":          {[]model.TicketUse{refused}, 1},
		"and somebody else was served":  {[]model.TicketUse{refused, {What: model.ThingScript, Client: "10.0.0.5", Count: 1}}, 2},
		"and firmware fetched an image": {[]model.TicketUse{refused, {What: model.ThingImage, Client: "10.0.0.5", Count: 1}}, 1},
	} {
		in, rec := ticketed(model.StateDiscovery, model.PurposeDiscovery)
		rec.Boot.Attempts, rec.Life.Since = 2, in.Now.Add(-time.Hour)
		in.Observed.Progress[rec.Name] = &model.Progress{Ticket: "t", Uses: tc.uses}
		in.Observed.ServerFacts[rec.Name].Power = model.PowerOff
		if got := stepOf(in, rec.Name).After.Boot.Attempts; got != tc.want {
			t.Errorf("%s: %d attempts, want %d", title, got, tc.want)
		}
	}
}

// A machine that asked while the port was closed waits for ever. It is powered on again soon, and
// only where it is certain that the port was closed.
func TestAServerThatMetAClosedPort(t *testing.T) {
	seconds := func(n time.Duration) time.Time { return fleettest.Now.Add(n*time.Second - 4*time.Minute) }
	bootsLate := func(_ *input, rec *record) { rec.Boot.BootsAfter = 11 * time.Minute }
	for name, tc := range map[string]struct {
		ago    time.Duration // since the power-on; 0 = 4 minutes
		change change
		want   bool
	}{
		"is powered on again":                 {want: true},
		"not before 3 minutes are over":       {ago: 3 * time.Minute},
		"not where the port was open":         {change: func(in *input, rec *record) { in.Serving = rec.Power.Asked.At.Add(-time.Second) }},
		"not while nobody can reach Ingot":    {change: func(in *input, _ *record) { in.Serving = time.Time{} }},
		"not while its firmware tests itself": {change: readAs(func(r *reading.State) { r.POST = true })},
		"not before it usually asks":          {change: bootsLate},
		"but a minute after that":             {ago: 12*time.Minute + time.Second, change: bootsLate, want: true},
		"not once it is served":               {change: progressed(model.Progress{DHCPAt: seconds(60)})},
		"though it was to get its initramfs":  {change: progressed(model.Progress{ScriptAt: seconds(1), KernelAt: seconds(2), InitrdAt: seconds(3)}), want: true},
		"though it was served its script":     {change: progressed(model.Progress{ScriptAt: seconds(1)}), want: true},
		"though it was served its kernel":     {change: progressed(model.Progress{ScriptAt: seconds(1), KernelAt: seconds(2)}), want: true},
		"not while it is off":                 {change: off},
	} {
		for state, purpose := range map[model.ServerState]model.TicketPurpose{
			model.StateReserved: model.PurposeClaim, model.StateDiscovery: model.PurposeDiscovery, model.StateCleanup: model.PurposeCleanup,
		} {
			t.Run(name+", "+string(purpose), func(t *testing.T) {
				in, rec := ticketed(state, purpose)
				rec.Boot.Ticket.Image.Kernel, rec.Boot.Ticket.Image.Initrd = &model.Layer{}, &model.Layer{}
				rec.Boot.Attempts = 1
				rec.Power.Asked.At = in.Now.Add(-cmp.Or(tc.ago, 4*time.Minute))
				rec.Boot.Ticket.ArmedAt, rec.Life.Since = rec.Power.Asked.At.Add(-time.Second), rec.Power.Asked.At
				in.Started, in.Serving = rec.Power.Asked.At.Add(4*time.Second), rec.Power.Asked.At.Add(5*time.Second) // it is back
				all(tc.change)(in, rec)
				st := stepOf(in, rec.Name)
				if got := st.After.Boot.Ticket.Ended == model.TicketSpent && in.Observed.ServerFacts[rec.Name].Power == model.PowerOn; got != tc.want {
					t.Fatalf("it is given up: %t, want %t; its ticket is %+v", got, tc.want, st.After.Boot.Ticket)
				}
				want := 1 // that of a claim is served again, and counted if that fails
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
