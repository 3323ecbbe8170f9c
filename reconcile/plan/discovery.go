package plan

import (
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// probeGrace is how long the probe's own system, which holds nothing of value,
// may take to shut down.
const probeGrace = 30 * time.Second

// discovery waits for the report of the probe that was booted.
func (s *server) discovery() Step {
	p, report := s.fleet.in.Policy, s.probeReport()
	opened := s.opened(model.PurposeDiscovery)
	late := !opened || s.over(s.rec.Life.Since, p.DiscoveryTimeout)
	switch {
	case opened && report == nil && s.stranded():
		return s.discoverAnew()
	case report != nil && complete(report):
		return s.discovered(report)
	case report != nil && !late:
		st := s.rest(s.whySince(model.ReasonReportIncomplete, "the probe reported, but no network interface; it is asked until the time "+
			"is up", proposal.RackOperator))
		return st.wakeBy(s.rec.Life.Since.Add(p.DiscoveryTimeout))
	case late:
		return s.endDiscovery()
	case s.settling():
		return s.look(s.nextLook(), s.why(model.ReasonWaitingForPower, "waiting for the server to power on"))
	case s.power() == model.PowerOff:
		return s.rediscover()
	}
	st := s.rest(s.whySince(model.ReasonWaitingForReport, "waiting for the probe's report, "+s.lastStage(), proposal.ActorNone))
	return st.wakeBy(s.rec.Life.Since.Add(p.DiscoveryTimeout))
}

// probeReport is what the server's probe reported of it with its open ticket, nil if
// nothing.
func (s *server) probeReport() *model.ProbeReport {
	r := s.fleet.in.Observed.Probes[s.name]
	if r == nil || !s.opened(model.PurposeDiscovery) || r.Ticket != s.rec.Boot.Ticket.ID {
		return nil
	}
	return r
}

// discoverAnew ends a ticket that was used while no Ingot answered. It counts as no attempt.
func (s *server) discoverAnew() Step {
	s.end(model.TicketSpent)
	rec := s.edit()
	rec.Boot.Attempts = max(rec.Boot.Attempts-1, 0)
	return s.stay()
}

// discovered powers the server off, and then it is Available.
func (s *server) discovered(report *model.ProbeReport) Step {
	st, done := s.off(probeGrace)
	if !done {
		return st
	}
	if text := s.ambiguous(&report.Data); text != "" {
		return s.failAmbiguous(text)
	}
	rec := s.edit()
	rec.Boot.Attempts, rec.Intent = 0, nil
	s.forgetThefts()
	rec.MACs = s.proven(&report.Data)
	s.noteBootsAfter()
	s.end(model.TicketBooted)
	return s.enter(model.StateAvailable)
}

// endDiscovery powers a server off whose discovery came to nothing in its time, unless
// what it runs may be somebody's.
func (s *server) endDiscovery() Step {
	if s.power() == model.PowerOn && !s.mayForceOff() {
		s.enter(model.StateInitial)
		return s.noteRunning("it was switched on to be discovered, and asked for nothing of that: " + s.lastStage() + "; " + s.hint())
	}
	st, done := s.off(s.lateGrace())
	if !done {
		return st
	}
	if text := s.ambiguous(nil); text != "" {
		return s.failAmbiguous(text)
	}
	return s.rediscover()
}

// rediscover gives up on an attempt at discovery.
func (s *server) rediscover() Step {
	rec := s.edit()
	rec.Life.Message = s.lastStage()
	rec.Life.NotBefore = s.now().Add(proposal.Backoff(s.name, rec.Boot.Attempts, s.fleet.in.Policy))
	rec.Life.LastError = "discovery ended without a report, " + s.lastStage()
	if s.progress().LockedOut() {
		rec.Boot.Attempts = max(rec.Boot.Attempts-1, 0)
		rec.Life.LastError = "discovery ended without a report: the machine that asked to boot could not be identified as the server, see its " +
			"condition BootRefused"
	}
	s.end(model.TicketSpent)
	return s.enter(model.StateInitial)
}

// complete reports whether a probe's report says all that a server needs to be
// offered to tenants: who it is and how it is connected.
func complete(r *model.ProbeReport) bool {
	return len(r.Data.NetworkInterfaces) > 0 || len(r.Data.NICs) > 0
}
