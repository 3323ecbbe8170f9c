package install

import (
	"time"

	"ingot/model"
	"ingot/reconcile/plan/booting"
	"ingot/reconcile/plan/event"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/progress"
)

// Install brings what the claim asks for onto the server, once.
func Install(s *server) (p proposal.Proposal, ok bool) {
	if !proposal.Installs(s) {
		return p, false
	}
	boot, missing := booting.ClaimBoot(s)
	switch now := stage(s, &boot, missing); now {
	case SecretMissing:
		p = s.Rest(missing)
	case ToArm:
		p = armForClaim(s, boot)
	default:
		p = steps[now](s)
	}
	return p, true
}

// steps are what is done at each stage of an install that has a ticket.
var steps = map[Stage]func(*server) proposal.Proposal{
	AwaitingOff: awaitOff,
	Ready:       bootForClaim,
	Booting:     awaitBoot,
	WritingDisk: awaitDisk,
	DiskFailed:  failDisk,
	UsedEarly:   startOver,
	Stranded:    startOver,
	Served: func(s *server) proposal.Proposal {
		return s.Change(func(rec *model.ServerRecord) {
			proposal.ChangeTicket(rec, func(t *model.Ticket) { t.IgnitionAt = t.ServedAt(s.Progress()) })
			event.NoteDisk(s, rec)
		}).Stay(proposal.Look)
	},
	Installing: awaitReport,
	PoweredOff: func(s *server) proposal.Proposal { return s.ToOn(proposal.Act, proposal.FromDisk, nil) },
	Unreported: takeForInstalled,
	Booted:     installed,
}

// startOver ends a ticket that had no effect. It is not counted as an attempt: the server ran already, or no Ingot answered.
func startOver(s *server) proposal.Proposal {
	return s.Change(func(rec *model.ServerRecord) { proposal.EndTicket(rec, model.TicketSpent) }).Stay(proposal.Look)
}

// armForClaim makes a ticket for the boot that the claim requests. Attempts at another one do not count. The ticket of
// a server that Ingot gave up on waits for nothing: an operator has to boot it.
func armForClaim(s *server, boot proposal.Boot) proposal.Proposal {
	p, givenUp := s.Record.Boot.Problem, proposal.IsGivenUp(s)
	switch {
	case s.Record.Boot.Attempts > 0 && p != nil && (p.Digest != booting.Digest(s.DigestKey, &boot) || booting.OtherTarget(s, s.Ticket())):
		return s.Change(func(rec *model.ServerRecord) { rec.Boot.Attempts, rec.Boot.Problem = 0, nil }).Stay(proposal.Act)
	case !givenUp:
		boot = proposal.UntilOff(s, boot)
	case !proposal.FailedDisk(p):
	case !s.IsOff(): // its probe runs on it: it is left off until a person acts
		return s.ToOff(0)
	case s.Edited:
		return s.Stay(proposal.Act)
	default:
		return s.Rest(proposal.ProblemWhy(s, p))
	}
	next := s.ToArm(model.PurposeClaim, boot)
	if boot.Ticket.Always {
		next.What = proposal.StepBoot
	}
	return next
}

// awaitOff powers the server off, by force if it runs nothing that was served to it.
func awaitOff(s *server) proposal.Proposal {
	theft := s.Record.Boot.Theft // the last ticket was used up by another machine, so that the server runs nothing
	robbed := theft != nil && theft.Count > 0 && theft.Purpose == model.PurposeClaim && theft.Claim == s.Record.Claim.Name
	if s.IsOff() {
		return proposal.OpenTicket(s)
	}
	if s.Record.Boot.Attempts > 0 || robbed {
		return s.ToOff(0)
	}
	return s.ToOff(s.Policy.PowerOffGrace)
}

// bootForClaim boots the server from the network. A reprovision that is asked for by now is part of this.
func bootForClaim(s *server) proposal.Proposal {
	p := s.ToOn(proposal.Act, proposal.FromNetwork, func(rec *model.ServerRecord) {
		proposal.MarkHandled(rec, proposal.AskedReprovision, s.ClaimAnnotation(model.AnnotationReprovision))
	})
	if proposal.NeedsInstallPlace(s) {
		p.Place = []proposal.Place{proposal.InstallPlace}
	}
	return p
}

func awaitBoot(s *server) proposal.Proposal {
	if p := s.Record.Boot.Problem; proposal.FailedBoot(p) && proposal.IsGivenUp(s) {
		return s.Rest(proposal.ProblemWhy(s, p))
	}
	return s.Rest(s.Why(model.ReasonWaitingForBoot, "waiting for the server to boot, "+progress.Boot(s.Trace())+attempt(s)))
}

// awaitReport waits for a server that was served to report that it has booted.
func awaitReport(s *server) proposal.Proposal {
	p := s.Rest(s.Why(model.ReasonWaitingForBoot, "waiting for the server to report that it has booted, "+progress.Boot(s.Trace())))
	if due := probeGoesOff(s); !due.IsZero() {
		p = s.Watch(due, s.Why(model.ReasonWaitingForBoot, diskName(s)+" holds its image: waiting for the probe to power it off, to start it from there"))
	}
	return p.WakeBy(s.NotedAt(s.Ticket().IgnitionAt).Add(s.Policy.BootGrace))
}

func installed(s *server) proposal.Proposal {
	p := s.Stay(proposal.Look)
	if !s.Unconfirmed() {
		p = takeForInstalled(s)
	}
	p.Of = p.Of.Change(func(rec *model.ServerRecord) {
		rec.Install.Unconfirmed = time.Time{}
		event.ForgetThefts(rec)
		proposal.EndTicket(rec, model.TicketBooted)
	})
	return p
}

// takeForInstalled notes the install of the ticket, which stays open: the server may still report.
func takeForInstalled(s *server) proposal.Proposal {
	s = event.After(s, event.Event{Kind: event.Installed})
	if s.Record.Boot.OverrideVariant == proposal.VariantContinuous && !s.Ticket().Always {
		return s.Stay(proposal.Act, proposal.ClearBoot{})
	}
	return s.Stay(proposal.Look)
}

func servesOn(s *server) bool {
	return s.State() == model.StateReserved && s.Record.Release == nil && s.Claim != nil && s.Record.Claim.Power != model.PowerOff
}

// KeepRunning keeps an installed server as its claim wants it: its power is restored from its disk (law 1).
func KeepRunning(s *server) (p proposal.Proposal, ok bool) {
	if !servesOn(s) || !s.HasInstall() || s.InstallUnknown() {
		return p, false
	}
	if s.Unconfirmed() && confirmed(s) {
		return installed(s), true
	}
	if s.Power() == model.PowerOff && !s.Claim.BootConfiguration { // which is booted once
		from := proposal.FromDisk
		if t := s.Ticket(); t != nil && t.Always && t.MayBoot(s.Progress()) {
			from = proposal.FromNetwork
		}
		return s.ToOn(proposal.Keep, from, nil), true
	}
	why := Pending(s)
	if s.Unconfirmed() && why.Reason == "" {
		return s.Rest(UnconfirmedWhy(s)).WakeBy(quietEnd(s)), true
	}
	return s.Rest(why), true
}
