package power_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/power"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/reading"
)

type server = proposal.Server

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// asked is a request of some time ago.
func asked(reset model.ResetKind, ago time.Duration, change ...func(a *model.PowerAsked)) *model.PowerAsked {
	a := &model.PowerAsked{Reset: reset, Want: model.PowerOn, At: now.Add(-ago), Tries: 1}
	if reset == model.ResetGracefulOff || reset == model.ResetForceOff {
		a.Want = model.PowerOff
	}
	for _, f := range change {
		f(a)
	}
	return a
}

var (
	reached = func(a *model.PowerAsked) { a.Reached = true }
	unsure  = func(a *model.PowerAsked) { a.Unsure = true }
	tries   = func(n int) func(*model.PowerAsked) { return func(a *model.PowerAsked) { a.Tries = n } }
	again   = func(n int) func(*model.PowerAsked) { return func(a *model.PowerAsked) { a.Again = n } }
)

// shown lists the actions of a proposal, or its wait, then the request as it is recorded, the reason, and the
// other changes.
func shown(p proposal.Proposal, before *model.ServerRecord) string {
	var all []string
	for _, a := range p.Do {
		text := a.String()
		if set, ok := a.(proposal.SetPower); ok {
			text = strings.TrimSuffix("ask "+string(set.Reset)+" from "+string(set.From), " from ")
			if set.Gently {
				text += " gently"
			}
		}
		all = append(all, text)
	}
	if p.Waits {
		all = append(all, "wait "+p.Wake.Sub(now).String())
	}
	if a := p.Of.Record.Power.Asked; a != before.Power.Asked {
		all = append(all, fmt.Sprintf("tries %d again %d", a.Tries, a.Again))
		if a.Unsure {
			all = append(all, "unsure")
		}
		if a.At != now || a.Reached || (a.Want == model.PowerOff) != (a.Reset == model.ResetGracefulOff || a.Reset == model.ResetForceOff) {
			all = append(all, fmt.Sprintf("recorded as %+v", a))
		}
	}
	if p.Why.Reason != "" {
		all = append(all, p.Why.Reason+strings.Repeat(" to act: ", min(1, len(p.Why.Actor)))+string(p.Why.Actor))
	}
	if l := p.Of.Record.Life; l.State != before.Life.State {
		all = append(all, string(l.State)+" "+l.Reason)
	}
	if n := p.Of.Record.Boot.Attempts; n != 0 {
		all = append(all, fmt.Sprint("attempt ", n))
	}
	if len(p.Place) > 0 {
		all = append(all, fmt.Sprint("place ", p.Place))
	}
	return strings.Join(all, ", ")
}

func TestToward(t *testing.T) {
	const on, off, grace, force, start = model.PowerOn, model.PowerOff, model.ResetGracefulOff, model.ResetForceOff, model.ResetOn
	toOff := proposal.Goal{Want: off, Grace: 5 * time.Minute}
	toOn := proposal.Goal{Want: on}
	keepOn := proposal.Goal{Want: on, Again: true}
	stayOff := proposal.Goal{Want: off, Grace: 5 * time.Minute, Again: true}
	shutdown := proposal.Goal{Want: off, Shutdown: true}
	poweredOn := func(tries, again int) string {
		return fmt.Sprintf("clear boot override, ask On from Off, tries %d again %d, place [0]", tries, again)
	}
	for _, c := range []struct {
		name  string
		goal  proposal.Goal
		power model.Power
		asked *model.PowerAsked
		read  time.Duration // ago
		given func(s *server)
		want  string
	}{
		// To Off.
		{"On is shut down", toOff, on, nil, 0, nil, "ask GracefulShutdown, tries 1 again 0"},
		{"On since it was asked to be is shut down", toOff, on, asked(start, time.Hour, reached), 0, nil, "ask GracefulShutdown, tries 1 again 0"},
		{"On is forced without grace", proposal.Goal{Want: off}, on, nil, 0, nil, "ask ForceOff, tries 1 again 0"},
		{"On is forced after three failures", toOff, on, nil, 0, func(s *server) { s.Record.Life.Failures = 3 }, "ask ForceOff, tries 1 again 0"},
		{"On is forced if the machine knows no shutdown", toOff, on, nil, 0, func(s *server) { s.Record.Power.NoShutdown = now.Add(-time.Minute) }, "ask ForceOff, tries 1 again 0"},
		{"On is shut down if it was long ago that it knew none", toOff, on, nil, 0, func(s *server) { s.Record.Power.NoShutdown = now.Add(-5 * time.Minute) }, "ask GracefulShutdown, tries 1 again 0"},
		{"On is asked gently if it was found running", toOff, on, nil, 0, func(s *server) { s.Record.Life.FoundRunning = now }, "ask GracefulShutdown gently, tries 1 again 0"},
		{"Stopping is waited for", toOff, on, asked(grace, time.Minute), 2 * time.Second, nil, "wait 3s, WaitingForPowerOff"},
		{"Stopping is looked at", toOff, on, asked(grace, time.Minute), 5 * time.Second, nil, "read power state, WaitingForPowerOff"},
		{"Stopping is forced after grace", toOff, on, asked(grace, 5*time.Minute), time.Second, nil, "ask ForceOff, tries 1 again 0"},
		{"Stopping is not forced soon after a start", toOff, on, asked(grace, 5*time.Minute), time.Second, func(s *server) { s.Started = now.Add(-time.Minute) }, "wait 4s, WaitingForPowerOff"},
		{"Forced is waited for", toOff, on, asked(force, time.Minute), time.Second, nil, "wait 4s, WaitingForPowerOff"},
		{"Forced that is On is forced again", toOff, on, asked(force, 5*time.Minute), time.Second, nil, "ask ForceOff, tries 2 again 0"},
		{"Forced twice asks for a person", toOff, on, asked(force, time.Second, tries(2)), time.Second, nil, "read power state, WaitingForPowerOff to act: rack operator"},
		{"a lost shutdown is looked at first", toOff, on, asked(grace, time.Minute, unsure), 2 * time.Minute, nil, "read power state, WaitingForPowerOff"},
		{"a lost shutdown is given time", toOff, on, asked(grace, 19*time.Second, unsure), time.Second, nil, "wait 4s, WaitingForPowerOff"},
		{"a lost shutdown is repeated", toOff, on, asked(grace, 20*time.Second, unsure), time.Second, nil, "ask GracefulShutdown, tries 2 again 0, unsure"},
		{"three lost ones are an error", toOff, on, asked(grace, time.Minute, unsure, tries(3)), time.Second, nil, "Error PowerOutcomeUnknown"},
		{"Off is confirmed", toOff, off, nil, 600 * time.Millisecond, nil, "wait 400ms, WaitingForPowerOff"},
		{"Off is read again", toOff, off, nil, time.Second, nil, "read power state, WaitingForPowerOff"},
		{"Starting is waited for", toOff, off, asked(start, time.Minute), time.Second, nil, "wait 4s, WaitingForPowerOff"},
		{"what did not start is not forced off", toOff, off, asked(start, 2*time.Minute), time.Second, nil, "read power state, WaitingForPowerOff"},
		{"what comes on again and again is paused", stayOff, on, asked(force, 90*time.Second, reached, again(2)), 0, nil, "wait 30s, PowerUnstable to act: rack operator"},
		{"a first time is at once", stayOff, on, asked(force, time.Second, reached), 0, nil, "ask GracefulShutdown, tries 1 again 1"},
		{"a shutdown under way is no new time", stayOff, on, asked(grace, 5*time.Minute, again(2)), time.Second, nil, "ask ForceOff, tries 1 again 2"},

		// A shutdown that is never forced.
		{"what was found running is asked", shutdown, on, nil, 0, nil, "ask GracefulShutdown, tries 1 again 0"},
		{"and is left to it", shutdown, on, asked(grace, time.Hour), 5 * time.Second, nil, "read power state, WaitingForPowerOff"},
		{"a lost answer has it asked again", shutdown, on, asked(grace, time.Hour, unsure), time.Second, nil, "ask GracefulShutdown, tries 2 again 0, unsure"},

		// To On.
		{"Off is powered on", toOn, off, nil, 0, nil, poweredOn(1, 0)},
		{"with the record from then on", proposal.Goal{Want: on, Then: &model.ServerRecord{Boot: model.RecordBoot{BootScratch: model.BootScratch{Attempts: 1}}, Life: model.RecordLife{State: model.StateReserved}}},
			off, nil, 0, nil, "clear boot override, ask On from Off, tries 1 again 0, attempt 1, place [0]"},
		{"Starting is waited for", toOn, off, asked(start, time.Minute), time.Second, nil, "wait 4s, WaitingForPower"},
		{"Starting without an answer is waited for, too", toOn, off, asked(start, 19*time.Second, unsure), time.Second, nil, "wait 4s, WaitingForPower"},
		{"what may not have started is looked at first", toOn, off, asked(start, 2*time.Minute), time.Hour, nil, "read power state, WaitingForPower"},
		{"what did not start is asked at once", toOn, off, asked(start, 2*time.Minute), time.Second, nil, poweredOn(1, 1)},
		{"the next time after a pause", toOn, off, asked(start, 3*time.Minute, again(3)), time.Second, nil, "wait 1m0s, PowerOnRefused to act: rack operator"},
		{"and then again", toOn, off, asked(start, 4*time.Minute, again(3)), time.Second, nil, poweredOn(1, 4)},
		{"a lost power-on is repeated", toOn, off, asked(start, 20*time.Second, unsure, again(2)), time.Second, nil, poweredOn(2, 2)},
		{"three lost ones are an error", toOn, off, asked(start, time.Minute, unsure, tries(3)), time.Second, nil, "Error PowerOutcomeUnknown"},
		{"what was never asked for is restored at once", keepOn, off, nil, 0, nil, poweredOn(1, 0)},
		{"going off by itself is restored at once", keepOn, off, asked(start, time.Minute, reached), 0, nil, poweredOn(1, 1)},
		{"twice in a row is paused", keepOn, off, asked(start, 30*time.Second, reached, again(1)), 0, nil, "wait 30s, PowerUnstable to act: rack operator"},
		{"for ten minutes at most", keepOn, off, asked(start, 9*time.Minute, reached, again(9)), 0, nil, "wait 1m0s, PowerUnstable to act: rack operator"},
		{"and restored after it", keepOn, off, asked(start, time.Minute, reached, again(1)), 0, nil, poweredOn(1, 2)},
		{"after a stable while it is a first time", keepOn, off, asked(start, 14*time.Minute, reached, again(3)), 0, nil, poweredOn(1, 1)},
		{"and not before", keepOn, off, asked(start, 13*time.Minute, reached, again(3)), 0, nil, poweredOn(1, 4)},
		{"since it was asked to go off it is the first time", keepOn, off, asked(force, time.Minute, reached, again(3)), 0, nil, poweredOn(1, 0)},
		{"a commit does not wait for that", toOn, off, asked(start, time.Second, reached, again(9)), 0, nil, poweredOn(1, 0)},

		// Once, whatever its power is.
		{"a restart", proposal.Goal{Reset: model.ResetForceRestart}, on, asked(start, time.Second), 0, nil, "clear boot override, ask ForceRestart, tries 1 again 0"},
		{"a forced Off", proposal.Goal{Reset: force}, on, asked(force, time.Second, tries(2)), 0, nil, "clear boot override, ask ForceOff, tries 3 again 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			options := policy.Default()
			options.PollInterval = time.Hour // pauses end before the next poll
			s := &proposal.Server{
				Moment: &proposal.Moment{Now: now, Started: now.Add(-24 * time.Hour), Policy: &options, Observed: model.NewObserved()}, Name: "s1",
				Record: &model.ServerRecord{Life: model.RecordLife{State: model.StateReserved}, Power: model.RecordPower{PowerObserved: model.PowerObserved{Asked: c.asked}}},
				Facts:  &model.ServerFacts{Power: c.power}, Reading: &reading.State{At: now.Add(-c.read)},
			}
			if c.given != nil {
				c.given(s)
			}
			p := power.Toward(proposal.Proposal{Of: s, Goal: &c.goal}, []proposal.Action{proposal.ClearBoot{}})
			if got := shown(p, s.Record); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
