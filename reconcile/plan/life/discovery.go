package life

import (
	"fmt"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/booting"
	"ingot/reconcile/plan/event"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/progress"
)

// initial adopts a server, or discovers it once no tenant's work can run on it.
func initial(s *server) proposal.Proposal {
	switch {
	case s.Facts.Inventory == nil:
		return s.Inspect()
	case s.Adopts != nil && s.Duplicate.Reason != "":
		return s.Rest(s.Duplicate)
	case s.Adopts != nil:
		return adopt(s)
	}
	if p, ok := found(s); ok {
		return p
	}
	return beginDiscovery(s)
}

// adopt takes over a server as it runs (L01). Its system counts as the install of its claim.
func adopt(s *server) proposal.Proposal {
	boot, why := booting.ClaimBoot(proposal.Changed(s, func(s *server) { s.Claim = s.Adopts }))
	if why.Reason != "" {
		why.Message += fmt.Sprintf("; the server is left alone until it is, and serves claim %s then (spec.serverClaimRef)", s.Adopts.ClaimName())
		return s.Rest(why)
	}
	return event.After(s, event.Event{Kind: event.Adopted, Claim: s.Adopts, Value: booting.Digest(s.DigestKey, &boot)}).Stay(proposal.Decide).As(proposal.StepAdopt)
}

// beginDiscovery boots the probe on a server, as often as is tried.
func beginDiscovery(s *server) proposal.Proposal {
	p := s.Policy
	switch {
	case s.Power() != model.PowerOn && s.Reading.Offs < p.OffReadings && !s.Starting():
		return s.Watch(s.Reading.At.Add(p.ConfirmEvery), s.Why(model.ReasonWaitingForPowerOff, "making sure that the server is off"))
	case s.Record.Boot.Attempts >= p.DiscoveryAttempts && s.StaysOff() != "":
		return s.Fail(proposal.Act, model.ReasonPowerOnRefused, fmt.Sprintf("%s, in %d attempts; fix it and set %s",
			s.StaysOff(), s.Record.Boot.Attempts, proposal.RetryText(s)))
	case s.Record.Boot.Attempts >= p.DiscoveryAttempts:
		return s.Fail(proposal.Act, model.ReasonDiscoveryFailed, fmt.Sprintf("no report after %d attempts, %s; %s; %s; fix it and set annotation %s: %s#1 on Server %s",
			s.Record.Boot.Attempts, s.Record.Life.LastError, progress.BootHint(s.Trace()), s.BMC.Console, model.AnnotationOperation, model.OperationRetry, s.Name))
	case p.DiscoveryImage == "":
		return s.Rest(s.WhyBy(model.ReasonNoDiscoveryImage, "discovery.image is not set in Ingot's configuration", proposal.RackOperator))
	case !s.Opened(model.PurposeDiscovery):
		return s.ToArm(model.PurposeDiscovery, proposal.UntilOff(s, proposal.Boot{Image: p.DiscoveryImage})).As(proposal.StepDiscover)
	}
	return s.ToOn(proposal.Act, proposal.FromNetwork, func(rec *model.ServerRecord) {
		proposal.MarkHandled(rec, proposal.AskedDiscover, s.Annotation(model.AnnotationDiscover))
		proposal.EnterState(rec, model.StateDiscovery, s.Now)
		rec.Life.FoundRunning = time.Time{}
		rec.Boot.Attempts++
	})
}

func discovery(s *server) proposal.Proposal {
	report := proposal.ProbeReport(s)
	opened, end := s.Opened(model.PurposeDiscovery), s.OverAt(s.Record.Life.Since, s.Policy.DiscoveryTimeout)
	late := !opened || !s.Now.Before(end)
	switch {
	case opened && report == nil && proposal.Stranded(s): // no Ingot answered, so it counts as no attempt
		return s.Change(func(rec *model.ServerRecord) {
			proposal.EndTicket(rec, model.TicketSpent)
			rec.Boot.Attempts = max(rec.Boot.Attempts-1, 0)
		}).Stay(proposal.Look)
	case report != nil && len(report.Data.NetworkInterfaces)+len(report.Data.NICs) > 0:
		return discovered(s, report)
	case report != nil && !late:
		return s.Rest(s.WhyBy(model.ReasonReportIncomplete, "the probe reported, but no network interface; it is asked until the time "+
			"is up", proposal.RackOperator)).WakeBy(end)
	case late:
		return endDiscovery(s)
	case s.Settling():
		return s.ToOn(proposal.Act, proposal.FromNetwork, nil)
	case s.Power() == model.PowerOff:
		return rediscover(s)
	}
	return awaitReport(s, end)
}

// awaitReport waits for the report of the probe, and says where to look once a stage takes far longer than usual.
func awaitReport(s *server, end time.Time) proposal.Proposal {
	usual, slow := proposal.UsualStage(s)
	says := fmt.Sprintf("waiting for the probe's report, %s; attempt %d of %d; what comes next usually takes %s",
		progress.Boot(s.Trace()), s.Record.Boot.Attempts, s.Policy.DiscoveryAttempts, usual)
	if s.Now.Before(slow) {
		return s.Rest(s.Why(model.ReasonWaitingForReport, says)).WakeBy(slow).WakeBy(end)
	}
	return s.Rest(s.WhyBy(model.ReasonBootTimeout, says+": "+progress.BootHint(s.Trace())+"; "+s.BMC.Console, proposal.RackOperator)).WakeBy(end)
}

func discovered(s *server, report *model.ProbeReport) proposal.Proposal {
	if !s.IsOff() {
		return s.ToOff(proposal.ProbeGrace)
	}
	if text := ambiguous(s, &report.Data); text != "" {
		return failAmbiguous(s, text)
	}
	macs := MACs(s)
	if !identified(s) && len(sighted(s)) > 0 {
		macs = addMACs(nil, model.MACBySighting, report.Data.MACs())
	}
	return event.After(s, event.Event{Kind: event.Discovered, MACs: macs}).Stay(proposal.Act)
}

// endDiscovery powers a server off whose discovery timed out, unless it may run a tenant's work.
func endDiscovery(s *server) proposal.Proposal {
	ran := served(s) || ours(s) && !s.Over(s.Record.Power.Asked.At, s.Policy.DiscoveryTimeout) // what Ingot started, and no longer
	if s.Power() == model.PowerOn && !ran {
		return noteRunning(s.Enter(proposal.Look, model.StateInitial).Of,
			"it was switched on to be discovered, and asked for nothing of that: "+progress.Boot(s.Trace())+"; "+progress.BootHint(s.Trace()))
	}
	if !s.IsOff() {
		if served(s) {
			return s.ToOff(0) // it holds nothing of value
		}
		return s.ToOff(s.Policy.PowerOffGrace)
	}
	if text := ambiguous(s, nil); text != "" {
		return failAmbiguous(s, text)
	}
	return rediscover(s)
}

func rediscover(s *server) proposal.Proposal {
	return s.Change(func(rec *model.ServerRecord) {
		rec.Life.NotBefore = s.Now.Add(policy.Backoff(s.Name, rec.Boot.Attempts, *s.Policy))
		rec.Life.LastError, rec.Life.LastReason = "discovery ended without a report, "+progress.Boot(s.Trace()), ""
		if off := s.StaysOff(); off != "" {
			rec.Life.LastError, rec.Life.LastReason = off, model.ReasonPowerOnRefused
		}
		if s.Progress().LockedOut() {
			rec.Boot.Attempts = max(rec.Boot.Attempts-1, 0)
			rec.Life.LastError = "discovery ended without a report: the machine that asked to boot could not be identified as the server, see its " +
				"condition BootRefused"
		}
		proposal.EndTicket(rec, model.TicketSpent)
	}).Enter(proposal.Act, model.StateInitial)
}

func failAmbiguous(s *server, why string) proposal.Proposal {
	p := s.Fail(proposal.Act, model.ReasonMachineAmbiguous, why)
	p.Of = p.Of.Change(func(rec *model.ServerRecord) { rec.Life.Back = model.StateInitial })
	return p
}
