// Package power brings a server to a power state, one request or look at a time. It owns that part of a record.
package power

import (
	"fmt"
	"slices"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

type server = proposal.Server

// Toward turns the goal of a proposal into a request, a look or a wait; before are the actions before a power-on.
func Toward(p proposal.Proposal, before []proposal.Action) proposal.Proposal {
	s, g := p.Of, p.Goal
	if g.Reset != "" {
		return ask(s, g, "", g.Reset, before...)
	}
	if g.Again {
		if wait, paused := pause(s, g.Want); paused {
			return wait
		}
	}
	switch {
	case g.Shutdown:
		return shutDown(s, g, p.Why)
	case g.Want == model.PowerOff:
		return toOff(s, g)
	}
	return toOn(s, g, before)
}

func toOff(s *server, g *proposal.Goal) proposal.Proposal {
	isOff := s.Power() == model.PowerOff
	why := s.Why(model.ReasonWaitingForPowerOff, "waiting for the server to power off")
	if n := forcedOff(s); n > 1 {
		why = s.WhyBy(why.Reason, fmt.Sprintf("it was forced off %d times, and its BMC still says that it is %s: look at the machine, and "+
			"restart its BMC if that is off", n, s.Power()), proposal.RackOperator)
	}
	switch {
	case s.Settling():
		return s.Watch(proposal.NextLook(s), why) // it may yet come on
	case isOff:
		return s.Watch(s.Reading.At.Add(s.Policy.ConfirmEvery), why)
	case knowsNoShutdown(s):
		return ask(s, g, "", model.ResetForceOff)
	case s.GoingOff() && s.Record.Power.Asked.Unsure:
		return askAgain(s, why)
	}
	if reset := nextReset(s, g.Grace); reset != "" {
		return ask(s, g, "", reset)
	}
	return s.Watch(proposal.NextLook(s), why)
}

// shutDown asks what runs on a server to shut down, and never forces it.
func shutDown(s *server, g *proposal.Goal, why proposal.Why) proposal.Proposal {
	switch {
	case !s.GoingOff():
		return ask(s, g, "", model.ResetGracefulOff)
	case s.Record.Power.Asked.Unsure:
		return askAgain(s, why)
	}
	return s.Watch(proposal.NextLook(s), s.Why(model.ReasonWaitingForPowerOff, "waiting for the server to shut down"))
}

// nextReset is what to ask of a server that is on and has to be off; "" = the last request may yet take effect.
func nextReset(s *server, grace time.Duration) model.ResetKind {
	asked, p := s.Record.Power.Asked, s.Policy
	switch {
	case !s.GoingOff() && grace > 0 && s.Record.Life.Failures < 3:
		return model.ResetGracefulOff
	case !s.GoingOff():
		return model.ResetForceOff
	case asked.Reset == model.ResetForceOff: // twice as long each time
		grace = min(p.PowerOnLimit<<min(max(asked.Tries-1, 0), 16), max(p.PowerOnLimit, p.PowerPauseMax))
	}
	if s.Over(asked.At, grace) && slices.Contains([]model.ResetKind{model.ResetGracefulOff, model.ResetForceOff}, asked.Reset) {
		return model.ResetForceOff
	}
	return ""
}

// forcedOff is how often the server was forced off so far, without going off.
func forcedOff(s *server) int {
	if !s.GoingOff() || s.Record.Power.Asked.Reset != model.ResetForceOff {
		return 0
	}
	return s.Record.Power.Asked.Tries
}

func knowsNoShutdown(s *server) bool {
	at := s.Record.Power.NoShutdown
	return !at.IsZero() && !at.After(s.Now) && s.Now.Before(at.Add(s.Policy.PowerOffGrace))
}

func toOn(s *server, g *proposal.Goal, before []proposal.Action) proposal.Proposal {
	asked := s.Record.Power.Asked
	if s.Settling() {
		says := "waiting for the server to power on"
		if asked.Again > 1 {
			says += fmt.Sprintf(", which it was asked to do %d times in a row", asked.Again)
		}
		return s.Watch(proposal.NextLook(s), s.Why(model.ReasonWaitingForPower, says))
	}
	if s.Starting() && s.Reading.At.Before(asked.At) && !asked.At.After(s.Now) {
		return s.Watch(s.Reading.At, s.Why(model.ReasonWaitingForPower, "looking whether the server powered on")) // before it is asked again
	}
	if s.Starting() && !g.Again { // it did not come on
		if wait, paused := pause(s, model.PowerOn); paused {
			return wait
		}
		g = proposal.Changed(g, func(g *proposal.Goal) { g.Again = true })
	}
	tries := unsureTries(s)
	if tries >= s.Policy.UnsureTries {
		return unknown(s)
	}
	then := s
	if g.Then != nil {
		then = s.With(g.Then)
	}
	p := then.Change(func(rec *model.ServerRecord) {
		rec.Power.Asked = &model.PowerAsked{
			Reset: model.ResetOn, Want: model.PowerOn, At: s.Now, Tries: tries + 1, Again: timesAgain(s, model.PowerOn, g.Again),
		}
	}).Stay(proposal.Act, append(before, proposal.SetPower{Reset: model.ResetOn, From: model.PowerOff})...)
	p.Place = []proposal.Place{proposal.PowerOnPlace}
	return p
}

// unsureTries is how often the server was asked to power on without an answer.
func unsureTries(s *server) int {
	if a := s.Record.Power.Asked; a != nil && a.Unsure && a.Reset == model.ResetOn && !s.Reached() {
		return a.Tries
	}
	return 0
}

// ask makes one power request of a server that is in power state from; "" = any.
func ask(s *server, g *proposal.Goal, from model.Power, reset model.ResetKind, before ...proposal.Action) proposal.Proposal {
	want := model.PowerOn
	if reset == model.ResetGracefulOff || reset == model.ResetForceOff {
		want = model.PowerOff
	}
	asked := &model.PowerAsked{Reset: reset, Want: want, At: s.Now, Tries: 1, Again: timesAgain(s, want, g.Again)}
	if reset == model.ResetForceOff {
		asked.Tries += forcedOff(s)
	}
	return s.Change(func(rec *model.ServerRecord) { rec.Power.Asked = asked }).
		Stay(proposal.Act, append(before, proposal.SetPower{Reset: reset, From: from, Gently: gently(s)})...)
}

// gently reports whether the machine must not be forced off: it runs what Ingot did not start.
func gently(s *server) bool { return !s.Record.Life.FoundRunning.IsZero() }

func askAgain(s *server, why proposal.Why) proposal.Proposal {
	asked := *s.Record.Power.Asked
	switch {
	case !asked.At.After(s.Now) && (s.Now.Before(asked.At.Add(s.Policy.UnsureAfter)) || s.Reading.At.Before(asked.At)):
		return s.Watch(proposal.NextLook(s), why)
	case asked.Tries >= s.Policy.UnsureTries:
		return unknown(s)
	}
	asked.At, asked.Tries = s.Now, asked.Tries+1
	return s.Change(func(rec *model.ServerRecord) { rec.Power.Asked = &asked }).
		Stay(proposal.Act, proposal.SetPower{Reset: asked.Reset, Gently: gently(s)})
}

// unknown gives up a power request whose answers were lost and that shows no effect.
func unknown(s *server) proposal.Proposal {
	a := s.Record.Power.Asked
	return s.Fail(proposal.Act, model.ReasonPowerOutcomeUnknown, fmt.Sprintf("its BMC was asked %d times for %s without saying whether it was done, "+
		"and its power stays %s (%s); look at the machine, then set %s", a.Tries, a.Reset, s.Power(), s.Record.Life.LastError, proposal.RetryText(s)))
}

// pause waits before a server is brought again to a power state that it left by itself, or did not reach. The first
// time is at once, then the pause doubles, so that a machine that goes off each time is not worn out.
func pause(s *server, want model.Power) (proposal.Proposal, bool) {
	a := s.Record.Power.Asked
	if a == nil || a.Want != want || a.Again == 0 || a.At.After(s.Now) || s.Settling() || unsureTries(s) > 0 || s.GoingOff() {
		return proposal.Proposal{}, false
	}
	length := s.Policy.PauseAfter(a.Again)
	until := a.At.Add(length)
	if !s.Now.Before(until) {
		return proposal.Proposal{}, false
	}
	says := fmt.Sprintf("it was brought back to %s %d times in a row, and its power is %s again", want, a.Again, s.Power())
	reason := model.ReasonPowerUnstable
	if off := s.StaysOff(); off != "" {
		reason, says = model.ReasonPowerOnRefused, fmt.Sprintf("%s; it was asked %d times in a row", off, a.Again+1)
	} else if !s.Reached() {
		says = fmt.Sprintf("it was asked %d times in a row to go %s, and its power stays %s: look at the machine", a.Again+1, want, s.Power())
	}
	why := proposal.Why{Reason: reason, Message: says + fmt.Sprintf("; the next time in %s at most", length), Since: a.At, Actor: proposal.RackOperator}
	return s.Rest(why).WakeBy(until), true
}

// timesAgain is how often in a row a power state will have been restored, once it is requested now.
func timesAgain(s *server, want model.Power, again bool) int {
	a := s.Record.Power.Asked
	switch {
	case !again || a == nil || a.Want != want:
		return 0
	case !s.Now.Before(a.At.Add(s.Policy.PauseAfter(a.Again) + s.Policy.PowerPauseMax)):
		return 1 // it stayed so for a while
	case !s.Reached() && (a.Unsure || want == model.PowerOff):
		return a.Again // the same request, or one that forces it
	}
	return a.Again + 1
}
