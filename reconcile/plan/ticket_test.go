package plan_test

import (
	"cmp"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"ingot/model"
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
	tests := map[string]struct {
		state   model.ServerState   // "" = that of its purpose
		purpose model.TicketPurpose // "" = a claim
		change  change
		want    time.Duration // from now; 0 = it has no end
	}{
		"of discovery runs from the power-on": {purpose: model.PurposeDiscovery, want: discovery - 30*time.Second},
		"of a claim does too":                 {want: boot - 30*time.Second},
		"of a wipe is that of a boot":         {purpose: model.PurposeCleanup, want: boot - 30*time.Second},
		"of a wipe is longer once its probe runs": {purpose: model.PurposeCleanup, want: wipe - 30*time.Second, change: func(in *input, rec *record) {
			in.Observed.Progress[rec.Name] = &model.Progress{Ticket: "t", IgnitionAt: in.Now}
		}},
		"runs from arming before a power-on": {want: boot - time.Minute, change: func(_ *input, rec *record) { rec.Power.Asked = nil }},
		"a power-off is no beginning":        {want: boot - time.Minute, change: func(_ *input, rec *record) { rec.Power.Asked.Want = model.PowerOff }},
		"is over for a claim once its Ignition was served": {change: func(in *input, rec *record) {
			in.Observed.Progress[rec.Name] = &model.Progress{Ticket: "t", IgnitionAt: in.Now}
		}},
		"goes on for discovery then": {purpose: model.PurposeDiscovery, want: discovery - 30*time.Second, change: func(in *input, rec *record) {
			in.Observed.Progress[rec.Name] = &model.Progress{Ticket: "t", IgnitionAt: in.Now}
		}},
		"of a wipe runs anew from each word of it": {purpose: model.PurposeCleanup, want: wipe, change: heard(0)},
		"of a wipe is not for ever": {purpose: model.PurposeCleanup, want: 5 * time.Minute, change: func(in *input, rec *record) {
			rec.Boot.Ticket.ArmedAt = in.Now.Add(-10 * wipe)
			rec.Power.Asked.At = in.Now.Add(5*time.Minute - 10*wipe)
			heard(0)(in, rec)
		}},
		"of a secure wipe is longer": {
			purpose: model.PurposeCleanup, want: 24*time.Hour - 30*time.Second,
			change: func(in *input, rec *record) {
				rec.Boot.Ticket.CleanupMode = model.CleanupSecure
				in.Observed.Progress[rec.Name] = &model.Progress{Ticket: "t", IgnitionAt: in.Now}
			},
		},
		"word of an older wipe does not count": {purpose: model.PurposeCleanup, want: boot - 30*time.Second, change: func(in *input, rec *record) {
			heard(0)(in, rec)
			in.Observed.WipeProgress[rec.Name].Ticket = "old"
		}},
		"a closed ticket has none": {change: func(_ *input, rec *record) { rec.Boot.Ticket.Ended = model.TicketBooted }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in, rec := ticketedFor(tc.purpose, tc.state)
			if tc.change != nil {
				tc.change(in, rec)
			}
			_, end := install.Window(plantest.ServerOf(in, rec.Name))
			if got := end.Sub(in.Now); tc.want == 0 && !end.IsZero() || tc.want != 0 && got != tc.want {
				t.Errorf("it ends %v from now (%v), want %v", got, end, tc.want)
			}
		})
	}
}

func TestATicketIsSpentWhenItsTimeIsOver(t *testing.T) {
	unreachable := func(in *input, rec *record) {
		in.Readings[rec.Name] = reading.State{Failures: 3, Err: "no route", NotBefore: in.Now.Add(24 * time.Hour)}
	}
	type outcome struct {
		Ended    model.TicketState
		Attempts int
		Problem  *model.BootProblem
		Do       string
	}
	spent := outcome{Ended: model.TicketSpent}
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	tests := map[string]struct {
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
			change: func(in *input, rec *record) {
				in.Observed.Progress[rec.Name] = &model.Progress{Ticket: "t", DHCPAt: start, TFTPAt: start.Add(time.Second)}
			},
			want: outcome{model.TicketSpent, 1, &model.BootProblem{
				Message: "it did not boot within 15m0s, last seen fetching its boot loader by TFTP at 2026-11-21T12:00:01Z; " +
					progress.Hint(model.StageTFTP),
			}, ""},
		},
		"of a claim whose server was not powered on": {
			change: func(in *input, rec *record) { unreachable(in, rec); rec.Power.Asked = nil },
			want:   outcome{model.TicketSpent, 0, &model.BootProblem{Message: "it was not powered on within 15m0s"}, ""},
		},
		"of a claim that wants its server off, which is nobody's fault": {want: spent, change: func(in *input, rec *record) {
			in.Desired.Claims[rec.Claim.Name].Spec.Power, rec.Claim.Power = model.PowerOff, model.PowerOff
		}},
		"of one that waits for the server to be off, which is no boot": {
			want: spent, change: func(_ *input, rec *record) { rec.Boot.Ticket.AwaitingOff = true },
		},
		"but not while nothing is acted upon": {change: func(in *input, rec *record) {
			in.Desired.KeptOverRestart, in.Observed.Fleet.Applied = true, model.Applied{Branch: "main", Commit: "2"}
		}},
		"nor once the server has reported that it booted": {change: func(in *input, rec *record) {
			unreachable(in, rec)
			in.Observed.BootStates[rec.Name] = &model.BootState{Ticket: "t", ReceivedAt: start}
		}},
		"nor once the wipe's result is there": {purpose: model.PurposeCleanup, change: func(in *input, rec *record) {
			unreachable(in, rec)
			in.Observed.Wipes[rec.Name] = &model.WipeReport{Ticket: "t", ReceivedAt: start}
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in, rec := ticketedFor(tc.purpose, tc.state)
			in.Now = in.Now.Add(time.Hour)
			if tc.change != nil {
				tc.change(in, rec)
			}
			st := stepOf(in, rec.Name)
			got := outcome{st.After.Boot.Ticket.Ended, st.After.Boot.Attempts, st.After.Boot.Problem, st.does()}
			if got.Problem != nil {
				if got.Problem.Digest != rec.Boot.Ticket.Digest || got.Problem.Reason != model.ReasonBootTimeout ||
					!got.Problem.NotBefore.After(in.Now) {
					t.Errorf("the problem is %+v", got.Problem)
				}
				got.Problem = &model.BootProblem{Message: got.Problem.Message}
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
	tests := map[string]struct {
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
	}
	for name, tc := range tests {
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
