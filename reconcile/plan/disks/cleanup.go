// Package disks decides which disks a wipe accounts for (law 7): each disk that a server is known
// to have, or to have had, was wiped, or a person has accepted that it is gone.
package disks

import (
	"cmp"
	"fmt"
	"time"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/event"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/progress"
)

type server = proposal.Server

// wipeSilence is how long a wipe, which reports at least every minute, may report nothing.
const wipeSilence = 5 * time.Minute

// Mode is how the server's disks are wiped: the stricter mode of its claim and its manifest, or the configuration.
func Mode(s *server) string {
	return model.StricterCleanup(cmp.Or(s.Annotation(model.AnnotationCleanup), s.Policy.CleanupMode), s.Record.Claim.Cleanup)
}

// Cleanup wipes the server's disks and waits for the outcome of each.
func Cleanup(s *server) (p proposal.Proposal, ok bool) {
	if s.State() != model.StateCleanup {
		return p, false
	}
	switch {
	case Mode(s) == model.CleanupNone:
		return cleaned(s, nil, s.Record.Disks.Missing), true
	case proposal.WipeReport(s) != nil:
		return reported(s, proposal.WipeReport(s)), true
	case s.Policy.DiscoveryImage == "":
		return s.Rest(s.WhyBy(model.ReasonNoDiscoveryImage, "discovery.image is not set in Ingot's configuration", proposal.RackOperator)), true
	case late(s): // it reported nothing in its time
		return s.Change(func(rec *model.ServerRecord) {
			rec.Disks.Wiped, rec.Disks.Missing = nil, remembered(s.Record.Disks.Missing)
		}).Fail(proposal.Act, model.ReasonCleanupFailed, fmt.Sprintf("no wipe result within %s; %s",
			s.Policy.WipeTimeout(s.Ticket().CleanupMode), lastProgress(s))), true
	case proposal.IsGivenUp(s) && !s.Opened(model.PurposeCleanup):
		return notBooted(s), true
	case s.AwaitsOff(model.PurposeCleanup) && s.IsOff():
		return proposal.OpenTicket(s), true
	case s.AwaitsOff(model.PurposeCleanup):
		return s.ToOff(s.Policy.PowerOffGrace), true
	case s.Settling():
		return s.ToOn(proposal.Act, proposal.FromNetwork, nil), true
	}
	return wipe(s), true
}

func wipe(s *server) proposal.Proposal {
	on, opened := s.Power() == model.PowerOn, s.Opened(model.PurposeCleanup)
	switch {
	case opened && proposal.Stranded(s): // it asked while no Ingot answered
		return s.Change(func(rec *model.ServerRecord) {
			proposal.EndTicket(rec, model.TicketSpent)
			rec.Power.Asked = nil
		}).Stay(proposal.Look)
	case opened && on:
		return awaitWipe(s)
	case opened && s.Ticket().MayBoot(s.Progress()):
		return s.ToOn(proposal.Act, proposal.FromNetwork, nil)
	case !opened && on && s.Record.Boot.Attempts > 0:
		return s.ToOff(0) // what it runs had its time to shut down before the first attempt
	case !opened && on:
		return s.ToOff(s.Policy.PowerOffGrace)
	}
	b := proposal.Boot{Image: s.Policy.DiscoveryImage}
	b.Ticket.CleanupMode = Mode(s)
	return s.ToArm(model.PurposeCleanup, proposal.UntilOff(s, b))
}

// late reports whether the server was powered on for its wipe, and the time of that is over.
func late(s *server) bool {
	t := s.Ticket()
	return s.Begun() && t.Purpose == model.PurposeCleanup && !t.Open() && !t.ArmedAt.Before(s.Record.Life.Since) &&
		s.Over(s.Record.Power.Asked.At, s.Policy.WipeTimeout(t.CleanupMode))
}

// notBooted gives up on a server that did not boot its probe. Nothing of its former user is left running.
func notBooted(s *server) proposal.Proposal {
	if !s.IsOff() {
		return s.ToOff(0)
	}
	reason := model.ReasonBootFailed
	if s.StaysOff() != "" {
		reason = model.ReasonPowerOnRefused
	}
	return s.Fail(proposal.Act, reason, fmt.Sprintf("it did not boot what wipes its disks in %d attempts, %s; %s; fix it and set %s",
		s.Record.Boot.Attempts, s.BootText(), s.BMC.Console, proposal.RetryText(s)))
}

// reported compares what a wipe reported with the drives and volumes as the machine
// has them now: the server is Available again only if each of its disks is accounted for.
func reported(s *server, report *model.WipeReport) proposal.Proposal {
	if s.Reading.InventoryAt.Before(s.NotedAt(report.ReceivedAt)) {
		return s.Inspect()
	}
	missing := missing(s, report.Disks)
	wrong := failure(s, report.Disks, NotAccepted(missing))
	switch what := acceptance(s); {
	case wrong == "":
		return cleaned(s, report.Disks, missing)
	case !s.IsOff():
		return s.ToOff(proposal.ProbeGrace)
	case what == model.DisksNone || what == model.DisksAsReported: // it was there before anything was listed
		s = s.Change(func(rec *model.ServerRecord) { markAccepted(s, rec) })
		wrong = failure(s, report.Disks, NotAccepted(missing))
	}
	return s.Change(func(rec *model.ServerRecord) { rec.Disks.Wiped, rec.Disks.Missing = report.Disks, missing }).
		Fail(proposal.Act, model.ReasonCleanupFailed, wrong)
}

func cleaned(s *server, report []model.DiskWipe, missing []model.MissingDisk) proposal.Proposal {
	if !s.IsOff() {
		return s.ToOff(proposal.ProbeGrace)
	}
	proof := proposal.Proof{Mode: Mode(s), Reported: report, Missing: missing}
	if proof.Mode != model.CleanupNone {
		s = s.Change(func(rec *model.ServerRecord) {
			if acceptance(s) != "" {
				markAccepted(s, rec)
			}
			noteWiped(rec, report, s.Now)
		})
		proof.Missing = remembered(missing)
	}
	p := event.After(s, event.Event{Kind: event.Freed, Proof: &proof}).Stay(proposal.Act)
	p.Frees = &proof
	return p
}

// Unaccounted says which disks of a server a proof does not account for; "" = it accounts for all. A law asks that.
func Unaccounted(s *server, proof *proposal.Proof) string {
	if proof.Mode == model.CleanupNone && Mode(s) == model.CleanupNone {
		return ""
	}
	return failure(s, proof.Reported, NotAccepted(missing(s, proof.Reported)))
}

func awaitWipe(s *server) proposal.Proposal {
	w := s.Trace().Wiping()
	if w == nil || len(w.Disks) == 0 {
		return s.Rest(s.Why(model.ReasonWiping, "waiting for the wipe of its disks, "+lastProgress(s)))
	}
	quiet := w.ReceivedAt.Add(wipeSilence)
	if s.Now.Before(quiet) {
		return s.Rest(s.Why(model.ReasonWiping, "its disks are being wiped: "+progress.Wipe(w))).WakeBy(quiet)
	}
	return s.Rest(s.WhyBy(model.ReasonWiping, lastProgress(s)+"; look at its console", proposal.RackOperator))
}

// lastProgress says how far the wipe had come when the probe last reported, or else the boot.
func lastProgress(s *server) string {
	w := s.Trace().Wiping()
	if w == nil || len(w.Disks) == 0 {
		return progress.Boot(s.Trace())
	}
	return fmt.Sprintf("last wipe progress at %s: %s", text.Time(w.ReceivedAt), progress.Wipe(w))
}
