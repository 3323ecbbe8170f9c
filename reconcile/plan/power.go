package plan

import (
	"fmt"
	"time"

	"ingot/model"
)

// knowsNoShutdown reports whether the machine was just found to know no graceful shutdown.
// For how long that counts is of little matter: it is forced off at once.
func (s *server) knowsNoShutdown() bool {
	at := s.rec.NoShutdown
	return !at.IsZero() && s.now().Before(at.Add(s.fleet.in.Policy.PowerOffGrace))
}

// powerUnknown gives up a power request whose answers were lost and that shows no
// effect.
func (s *server) powerUnknown() Step {
	a := s.rec.Asked
	return s.fail(model.ReasonPowerOutcomeUnknown, fmt.Sprintf("its BMC was asked %d times for %s without saying whether it was done, and its power stays %s (%s); look at the machine, then set annotation %s: %s on Server %s",
		a.Tries, a.Reset, s.power(), s.rec.LastError, model.AnnotationOperation, s.newRetry(), s.name))
}

// erroneous leaves a server alone until its cause is gone or a person says so.
func (s *server) erroneous() Step {
	if s.rec.Reason == model.ReasonPowerOutcomeUnknown && s.reached() {
		rec := s.edit()
		back := rec.Back
		rec.Back, rec.LastError = "", ""
		return s.enter(back)
	}
	if s.rec.Reason == model.ReasonMachineAmbiguous && s.identified() {
		rec := s.edit()
		rec.Back, rec.Attempts = "", 0
		return s.enter(model.StateInitial)
	}
	if st, ok := s.accept(); ok {
		return st
	}
	return s.rest(s.whySince(s.rec.Reason, s.rec.Message, RackOperator))
}

// observe leaves the server as it is while nothing may be decided, but for the power of
// what is bound where that may be brought back.
func (s *server) observe() (Step, bool) {
	f := s.fleet
	if f.observeOnly.Reason == "" {
		return Step{}, false
	}
	lost := s.rec.State == model.StateReserved && s.rec.Installed != "" && s.rec.Release == nil &&
		s.rec.WantPower == model.PowerOn && s.power() == model.PowerOff && f.maintenance(s).by == ""
	if f.in.HealOnly != "" && f.in.ObserveOnly == "" && lost {
		return heals(s.diskBoot()), true
	}
	return s.rest(f.observeOnly), true
}

// over reports whether a time-out that forces or fails something is over. What was
// noted before this process began was noted by a clock that may have been another, so
// it is given some minutes from the start.
func (s *server) over(from time.Time, length time.Duration) bool {
	in := s.fleet.in
	if from.Before(in.Started) && in.Now.Before(in.Started.Add(in.Policy.StartGrace)) {
		return false
	}
	return !in.Now.Before(from.Add(length))
}

// stranded reports whether the server was powered on for its ticket while no Ingot
// answered, so that its firmware has given up. One that is still in its power-on self-test
// has not come to ask: that may take longer than anything else.
func (s *server) stranded() bool {
	end := s.strandedEnd()
	return !end.IsZero() && s.power() == model.PowerOn && !s.reading.POST && !s.now().Before(end)
}

// strandedEnd is when a server that was powered on before this process could be reached
// counts as stranded, if nothing is served to it before; zero = it does not. One that
// is known to take long to its first request is waited for. What was begun to be served
// before may not have arrived.
func (s *server) strandedEnd() time.Time {
	in, t := s.fleet.in, s.rec.Ticket
	if in.Serving.IsZero() || !t.Open() || t.AwaitingOff || !s.begun() || !s.rec.Asked.At.Before(in.Serving) ||
		t.State(s.progress()) == model.TicketIgnitionServed || lastServed(s.progress()).After(in.Serving) {
		return time.Time{}
	}
	end := in.Serving.Add(in.Policy.StrandedAfter)
	if slow := s.rec.Asked.At.Add(s.rec.BootsAfter + in.Policy.StrandedAfter/3); slow.After(end) {
		end = slow
	}
	return end
}

// lastServed is when a server was last given anything with its ticket, zero = never.
func lastServed(p *model.Progress) time.Time {
	if p == nil {
		return time.Time{}
	}
	last := p.DHCPAt
	for _, at := range []time.Time{p.TFTPAt, p.HTTPBootAt, p.ScriptAt, p.KernelAt, p.InitrdAt, p.IgnitionAt} {
		if at.After(last) {
			last = at
		}
	}
	return last
}

// noteBootsAfter records how long the server took from its power-on to its first
// request.
func (s *server) noteBootsAfter() {
	p, asked := s.progress(), s.rec.Asked
	if p == nil || asked == nil {
		return
	}
	first := time.Time{}
	for _, at := range []time.Time{p.DHCPAt, p.TFTPAt, p.HTTPBootAt, p.ScriptAt} {
		if at.After(asked.At) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	if !first.IsZero() {
		s.edit().BootsAfter = first.Sub(asked.At).Round(time.Second)
	}
}
