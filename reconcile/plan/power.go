package plan

import (
	"fmt"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// off is the step that brings the server to a confirmed Off, or done. A
// graceful shutdown that takes longer than grace is forced.
func (s *server) off(grace time.Duration) (st Step, done bool) {
	p, isOff := s.fleet.in.Policy, s.power() == model.PowerOff
	why := s.why(model.ReasonWaitingForPowerOff, "waiting for the server to power off")
	if n := s.forcedOff(); n > 1 {
		why = s.why(why.Reason, fmt.Sprintf("it was forced off %d times, and its BMC still says that it is %s: look at the machine, and "+
			"restart its BMC if that is off", n, s.power())).By(proposal.RackOperator)
	}
	switch {
	case isOff && s.reading.Offs >= p.OffReadings:
		return Step{}, true
	case s.settling():
		return s.look(s.nextLook(), why), false // it may yet come on
	case isOff && s.starting():
		return s.askFrom(model.PowerOff, model.ResetForceOff), false // it did not come on, and must not later
	case isOff:
		return s.look(s.reading.At.Add(p.ConfirmEvery), why), false
	case s.knowsNoShutdown():
		return s.ask(model.ResetForceOff), false
	case s.goingOff() && s.rec.Power.Asked.Unsure:
		return s.askAgain(why), false
	}
	if reset := s.nextReset(grace); reset != "" {
		return s.ask(reset), false
	}
	return s.look(s.nextLook(), why), false
}

// switchOff is the step that brings a server which is not yet Off to it.
func (s *server) switchOff() Step {
	st, _ := s.off(s.fleet.in.Policy.PowerOffGrace)
	return st
}

// nextReset is what to ask of a server that is on and has to be off; "" = what was asked
// for may yet take effect. A machine that refuses to shut down is forced.
func (s *server) nextReset(grace time.Duration) model.ResetKind {
	asked := s.rec.Power.Asked
	switch {
	case !s.goingOff() && grace > 0 && s.rec.Life.Failures < 3:
		return model.ResetGracefulOff
	case !s.goingOff():
		return model.ResetForceOff
	case asked.Reset == model.ResetGracefulOff && s.over(asked.At, grace),
		asked.Reset == model.ResetForceOff && s.over(asked.At, s.fleet.in.Policy.PauseAfterForce(asked.Tries)):
		return model.ResetForceOff
	}
	return ""
}

// forcedOff is how often the server was forced off so far, without going off.
func (s *server) forcedOff() int {
	if !s.goingOff() || s.rec.Power.Asked.Reset != model.ResetForceOff {
		return 0
	}
	return s.rec.Power.Asked.Tries
}

// netBoot boots the server from the network once, as far as the limit of
// concurrent power-ons allows, and notes what follows from it.
func (s *server) netBoot(then func(*model.ServerRecord)) Step {
	return s.powerOn(func(rec *model.ServerRecord) {
		rec.Install.Replaces = ""
		if then != nil {
			then(rec)
		}
	}, proposal.BootOnce{Method: s.bootMethod()})
}

func (s *server) powerOn(then func(*model.ServerRecord), before ...proposal.Action) Step {
	if s.settling() {
		return s.look(s.nextLook(), s.why(model.ReasonWaitingForPower, "waiting for the server to power on"))
	}
	if s.starting() && s.reading.At.Before(s.rec.Power.Asked.At) && !s.rec.Power.Asked.At.After(s.now()) {
		return s.look(s.reading.At, s.why(model.ReasonWaitingForPower, "looking whether the server powered on")) // before it is asked again
	}
	switch {
	case s.starting() && !s.bringsBack: // it did not come on
		return s.again(model.PowerOn, func() Step { return s.powerOn(then, before...) })
	case !s.hasPlace():
		return s.queueUp(then, before)
	case s.unsureTries() >= s.fleet.in.Policy.UnsureTries:
		return s.powerUnknown()
	}
	s.fleet.powerOns--
	s.askOn(then)
	return s.stay(append(before, proposal.SetPower{Reset: model.ResetOn, From: model.PowerOff})...)
}

// queuedPerPowerOn is how many servers stand in line for each that may be powering on.
const queuedPerPowerOn = 4

// hasPlace reports whether the server may be powered on beside the others. One that did not
// come on when it was last asked leaves half of the places to those that may, so that broken
// machines do not hold up the others again and again.
func (s *server) hasPlace() bool {
	left, p := s.fleet.powerOns, &s.fleet.in.Policy
	if s.starting() {
		if p.MaxConcurrentPowerOns == 1 && s.now().Before(s.notedAt(s.rec.Power.Asked.At).Add(2*p.PowerOnLimit)) {
			return false // it takes turns with the others
		}
		left -= p.MaxConcurrentPowerOns / 2
	}
	return left > 0
}

// queueUp has the server wait for another to be on, whose place it takes even before the
// next plan: in a large fleet that would come long after.
func (s *server) queueUp(then func(*model.ServerRecord), before []proposal.Action) Step {
	st := s.rest(s.why(model.ReasonPowerOnsLimited, "waiting for other servers to power on (guard.maxConcurrentPowerOns)"))
	f := s.fleet
	if st.Move != nil || s.starting() || s.unsureTries() >= f.in.Policy.UnsureTries || len(f.queued) >= queuedPerPowerOn*f.in.Policy.MaxConcurrentPowerOns {
		return st
	}
	next := *s
	next.fresh = false
	next.askOn(then)
	st.Queued = next.stay(append(before, proposal.SetPower{Reset: model.ResetOn, From: model.PowerOff})...).Move
	return st
}

// unsureTries is how often the server was asked to power on without an answer.
func (s *server) unsureTries() int {
	if a := s.rec.Power.Asked; a != nil && a.Unsure && a.Reset == model.ResetOn && !s.reached() {
		return a.Tries
	}
	return 0
}

// askOn notes that the server is asked to power on, and what follows from it.
func (s *server) askOn(then func(*model.ServerRecord)) {
	tries := s.unsureTries()
	rec := s.edit()
	if then != nil {
		then(rec)
	}
	rec.Power.Asked = &model.PowerAsked{
		Reset: model.ResetOn, Want: model.PowerOn, At: s.now(), Tries: tries + 1, Again: s.timesAgain(model.PowerOn),
	}
}

// ask makes one power request.
func (s *server) ask(reset model.ResetKind, before ...proposal.Action) Step {
	return s.askFrom("", reset, before...)
}

// askFrom makes one power request of a server that is in power state from.
func (s *server) askFrom(from model.Power, reset model.ResetKind, before ...proposal.Action) Step {
	want := model.PowerOn
	if reset == model.ResetGracefulOff || reset == model.ResetForceOff {
		want = model.PowerOff
	}
	tries := 1
	if reset == model.ResetForceOff {
		tries += s.forcedOff()
	}
	s.edit().Power.Asked = &model.PowerAsked{Reset: reset, Want: want, At: s.now(), Tries: tries, Again: s.timesAgain(want)}
	return s.stay(append(before, proposal.SetPower{Reset: reset, From: from, Gently: !s.rec.Life.FoundRunning.IsZero()})...)
}

// askAgain repeats a power request that may not have been carried out, after a reading
// that showed no effect.
func (s *server) askAgain(why proposal.Why) Step {
	p, asked := s.fleet.in.Policy, s.rec.Power.Asked
	switch {
	case !asked.At.After(s.now()) && (s.now().Before(asked.At.Add(p.UnsureAfter)) || s.reading.At.Before(asked.At)):
		return s.look(s.nextLook(), why)
	case asked.Tries >= p.UnsureTries:
		return s.powerUnknown()
	}
	again := *asked
	again.At, again.Tries = s.now(), asked.Tries+1
	s.edit().Power.Asked = &again
	return s.stay(proposal.SetPower{Reset: asked.Reset, Gently: !s.rec.Life.FoundRunning.IsZero()})
}

// knowsNoShutdown reports whether the machine was just found to know no graceful shutdown.
// For how long that counts is of little matter: it is forced off at once.
func (s *server) knowsNoShutdown() bool {
	at := s.rec.Power.NoShutdown
	return !at.IsZero() && !at.After(s.now()) && s.now().Before(at.Add(s.fleet.in.Policy.PowerOffGrace))
}

// powerUnknown gives up a power request whose answers were lost and that shows no
// effect.
func (s *server) powerUnknown() Step {
	a := s.rec.Power.Asked
	return s.fail(model.ReasonPowerOutcomeUnknown, fmt.Sprintf("its BMC was asked %d times for %s without saying whether it was done, "+
		"and its power stays %s (%s); look at the machine, then set annotation %s: %s on Server %s",
		a.Tries, a.Reset, s.power(), s.rec.Life.LastError, model.AnnotationOperation, s.newRetry(), s.name))
}

// starting reports whether a power-on was asked for that was not seen to take effect.
func (s *server) starting() bool {
	a := s.rec.Power.Asked
	return a != nil && a.Want == model.PowerOn && !s.reached()
}

// goingOff reports whether the server was asked to go off and was not seen to do so.
func (s *server) goingOff() bool {
	return s.rec.Power.Asked != nil && s.rec.Power.Asked.Want == model.PowerOff && !s.reached()
}

// reached reports whether the power state that was last asked for was read since.
func (s *server) reached() bool {
	return s.reading.Reached || s.rec.Power.Asked != nil && s.rec.Power.Asked.Reached
}

// settling reports whether a power-on was asked for and may still take effect.
func (s *server) settling() bool {
	return proposal.AwaitsOn(s.rec.Power.Asked, *s.reading, &s.fleet.in.Policy, s.now())
}

// comesOn reports whether the server is being powered on, or is about to be.
func (s *server) comesOn() bool {
	a := s.rec.Power.Asked
	return s.settling() || s.fleet.in.Busy[s.name] && a != nil && a.Want == model.PowerOn && !a.At.Before(s.reading.At)
}

// nextLook is when to read a power state that is about to change: soon after it
// was asked for, then ever more seldom.
func (s *server) nextLook() time.Time {
	p, from := s.fleet.in.Policy, s.reading.At
	if s.rec.Power.Asked == nil {
		return from.Add(p.SettleMax)
	}
	asked := s.notedAt(s.rec.Power.Asked.At)
	if from.Before(asked) {
		return asked.Add(p.Settle)
	}
	return from.Add(min(max(from.Sub(asked), p.Settle), p.SettleMax))
}

// over reports whether a time-out that forces or fails something is over. What was
// noted before this process began was noted by a clock that may have been another, so
// it is given some minutes from the start, and all of its length if that clock was ahead.
func (s *server) over(from time.Time, length time.Duration) bool {
	in := s.fleet.in
	if from = s.notedAt(from); from.Before(in.Started) && in.Now.Before(in.Started.Add(in.Policy.StartGrace)) {
		return false
	}
	return !in.Now.Before(from.Add(length))
}
