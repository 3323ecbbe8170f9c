package plan

import (
	"fmt"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// A server that runs what Ingot did not start runs somebody's work. That it was found so
// is recorded, for BMCs say Off of machines that run, for seconds or, while they restart,
// for minutes: it has to be Off for long before it is switched on, and is never forced off.

// noteRunning records that the server runs what Ingot did not start, and closes the
// ticket that it might be booted with.
func (s *server) noteRunning(because string) Step {
	s.end(model.TicketSpent)
	rec := s.edit()
	rec.Life.FoundRunning, rec.Life.Message = s.now(), because
	return s.stay()
}

// leaveRunning leaves a server alone that is On though Ingot did not switch it on.
func (s *server) leaveRunning() Step {
	switch {
	case s.rec.Life.FoundRunning.IsZero() && s.reading.Ons < onReadings && !s.opened(model.PurposeDiscovery):
		return s.look(s.reading.At.Add(s.fleet.in.Policy.ConfirmEvery), s.foundRunning())
	case s.rec.Life.FoundRunning.IsZero() || s.opened(model.PurposeDiscovery):
		return s.noteRunning("")
	}
	return s.rest(s.foundRunning())
}

// noteRanBefore records that the server ran before this process began.
func (s *server) noteRanBefore() (Step, bool) {
	if !s.ranBefore() {
		return Step{}, false
	}
	return s.noteRunning(""), true
}

// ranBefore reports whether the server is known to have run when it was read last, before
// this process began, by an Ingot that did not record it.
func (s *server) ranBefore() bool {
	return s.rec.Life.State == model.StateInitial && s.rec.Life.FoundRunning.IsZero() && s.reading.At.IsZero() &&
		s.power() == model.PowerOn && !s.rec.Boot.Ticket.Open() && s.fleet.observeOnly.Reason == ""
}

// ours reports whether it was Ingot that switched the server on for its open ticket: it
// was Off right before it was asked, as far as is known, and came on in time.
func (s *server) ours() bool {
	asked, in := s.rec.Power.Asked, s.fleet.in
	if !s.begun() || asked.Before != "" && asked.Before != model.PowerOff {
		return false
	}
	inTime := asked.Reached || s.now().Before(asked.At.Add(in.Policy.PowerOnLimit+in.Policy.SettleMax))
	return inTime || asked.At.Before(in.Started) // when it came on is not known
}

// served reports whether the server was given anything to run with its newest ticket.
func (s *server) served() bool {
	p, t, report := s.progress(), s.rec.Boot.Ticket, s.fleet.in.Observed.Probes[s.name]
	switch {
	case t == nil:
		return false
	case p != nil && !(p.ScriptAt.IsZero() && p.KernelAt.IsZero() && p.IgnitionAt.IsZero()):
		return true
	}
	return !t.IgnitionAt.IsZero() || report != nil && report.Ticket == t.ID
}

// surelyOff reports whether a server that was found running is off: it was read Off for
// minutes, by a BMC that was read then, too, and had not restarted meanwhile.
func (s *server) surelyOff() bool {
	return s.offForLong() && !s.bmcToConfirm() && !s.bmcRestarted()
}

// bmcRestarted reports whether the BMC is known to have restarted since it began to say
// what was read last.
func (s *server) bmcRestarted() bool {
	b := s.bmc
	return b != nil && b.facts != nil && proposal.Restarted(s.reading.BMCReset, b.facts.LastResetTime)
}

func (s *server) offForLong() bool {
	p, r := &s.fleet.in.Policy, s.reading
	return s.power() == model.PowerOff && r.Offs >= p.FoundOffReadings && !s.now().Before(r.OffSince.Add(p.FoundOffTime))
}

// bmcToConfirm reports whether the BMC of a server that was found running, and was read
// Off for minutes, has to be read: it says whether it has restarted meanwhile.
func (s *server) bmcToConfirm() bool {
	r := s.reading
	return s.rec.Life.State == model.StateInitial && !s.rec.Life.FoundRunning.IsZero() && s.offForLong() &&
		s.fleet.in.BMCRead[s.rec.BMC].Before(r.OffSince.Add(s.fleet.in.Policy.FoundOffTime))
}

// awaitSurelyOff reads a server that was found running until it is surely off.
func (s *server) awaitSurelyOff() Step {
	p := s.fleet.in.Policy
	if s.bmcRestarted() {
		return s.stay(proposal.Inspect{}) // which counts from the beginning
	}
	why := s.whySince(model.ReasonFoundRunning, fmt.Sprintf("it was found running, and has to be Off for %s before anything is done "+
		"to it", p.FoundOffTime), proposal.ActorNone)
	st := s.look(s.reading.At.Add(p.FoundOffTime/time.Duration(max(p.FoundOffReadings-1, 1))), why)
	if end := s.reading.OffSince.Add(p.FoundOffTime); s.reading.Offs > 0 && end.After(s.now()) {
		st = st.wakeBy(end)
	}
	return st
}

// shutDown asks what runs on the server to shut down, which Git asks for. It is not
// forced to.
func (s *server) shutDown() (st Step, done bool) {
	asked := s.rec.Power.Asked
	switch {
	case s.power() == model.PowerOff && s.surelyOff():
		return Step{}, true
	case s.power() == model.PowerOff:
		return s.awaitSurelyOff(), false
	case !s.goingOff():
		return s.ask(model.ResetGracefulOff), false
	case s.stuckOn():
		return s.noteRunning("it was asked to shut down and still runs, and it is not forced off"), false
	case asked.Unsure:
		return s.askAgain(s.foundRunning()), false
	}
	return s.look(s.nextLook(), s.why(model.ReasonWaitingForPowerOff, "waiting for the server to shut down")), false
}

// stuckOn reports whether what runs on the server was asked to shut down, and did not.
func (s *server) stuckOn() bool {
	return !s.rec.Life.FoundRunning.IsZero() && s.power() == model.PowerOn && s.goingOff() &&
		s.over(s.rec.Power.Asked.At, s.fleet.in.Policy.PowerOffGrace)
}

// mayForceOff reports whether a server that came to nothing in Discovery may be forced
// off: it runs what it was served, or was switched on by Ingot a while ago. Once its time
// is over, what it runs may be anybody's.
func (s *server) mayForceOff() bool {
	return s.served() || s.ours() && !s.over(s.rec.Power.Asked.At, s.fleet.in.Policy.DiscoveryTimeout)
}

// lateGrace is how long such a server may take to shut down.
func (s *server) lateGrace() time.Duration {
	if s.served() {
		return 0 // it holds nothing of value
	}
	return s.fleet.in.Policy.PowerOffGrace
}

// foundRunning says that a server is left alone because it may run something.
func (s *server) foundRunning() proposal.Why {
	now := ""
	if v := s.annotation(model.AnnotationDiscover); v != "" {
		now = fmt.Sprintf(" (now %q)", v)
	}
	found := "found running, so it is left alone"
	if s.rec.Life.Message != "" {
		found += " (" + s.rec.Life.Message + ")"
	}
	release := fmt.Sprintf("power it off for %s", s.fleet.in.Policy.FoundOffTime)
	if token := s.fleet.record.UnknownToken; token != "" {
		found += ". Neither the store nor the status branch knows the fleet, so it may serve a claim, also while it is off"
		release = fmt.Sprintf("adopt it by spec.serverClaimRef, make a commit whose message ends with %s", proposal.ApproveLine(token))
	}
	return s.whySince(model.ReasonFoundRunning, fmt.Sprintf("%s: %s, or give Server %s a new value%s of annotation %s",
		found, release, s.name, now, model.AnnotationDiscover), proposal.RackOperator)
}

// decideDiscover notes that a server that was found running is to be powered off and
// discovered.
func (s *server) decideDiscover() Step {
	if !s.may(proposal.StepDiscover) {
		return s.rest(s.foundRunning())
	}
	s.announce(model.IntentDiscover, s.annotation(model.AnnotationDiscover))
	if rec := s.edit(); s.stuckOn() {
		rec.Power.Asked, rec.Life.Message = nil, "" // it is asked again
	}
	return s.stay()
}
