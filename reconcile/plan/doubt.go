package plan

import (
	"fmt"
	"slices"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// noteInstallUnknown treats the requests in Git as handled, for a server that may have been installed
// after its record was lost: the install may have been theirs, so only another value is a new request.
func (s *server) noteInstallUnknown() (Step, bool) {
	if !s.justRecovered() || s.fleet.observeOnly.Reason != "" {
		return Step{}, false
	}
	rec := s.edit()
	if s.claim != nil {
		if v := s.claim.Annotations[model.AnnotationReprovision]; v != "" {
			proposal.MarkHandled(rec, proposal.AskedReprovision, v)
		}
		if v := s.claim.Annotations[model.AnnotationOverwrite]; v != "" {
			proposal.MarkHandled(rec, proposal.AskedOverwrite, v)
		}
	}
	rec.Doubt = &model.Doubt{
		Reason: model.DoubtInstallUnknown, Since: s.now(), SeenOn: rec.Doubt.SeenOn,
		Message: "it was bound before the store was lost, and nothing shows whether it was installed since",
	}
	return s.stay(), true
}

// justRecovered reports whether the server may have been installed since its record was lost, and
// the requests in Git were not compared with that.
func (s *server) justRecovered() bool {
	return proposal.InstallUnknown(s.rec) && s.rec.Doubt.Since.IsZero()
}

// foundInGap reports whether the server was found running after a long gap, though it should be off.
// That ends with a person's request, not when the server is off.
func (s *server) foundInGap() bool {
	return !s.rec.Life.FoundRunning.IsZero() && s.shouldBeOff()
}

func (s *server) shouldBeOff() bool {
	return s.rec.Life.State == model.StateAvailable || s.rec.Life.State == model.StateCleanup
}

// ranInGap leaves a server alone that should be off and was On when it was first read after a long
// gap: decisions about it may be lost, and it may serve a claim.
func (s *server) ranInGap() (Step, bool) {
	switch {
	case !s.shouldBeOff():
		return Step{}, false
	case s.foundInGap() && (s.gapApproved() || s.discoverAsked()):
		rec := s.edit()
		rec.Life.FoundRunning, rec.Life.Message = time.Time{}, ""
		proposal.MarkHandled(rec, proposal.AskedDiscover, s.annotation(model.AnnotationDiscover))
		if s.power() == model.PowerOff {
			return s.stay(), true
		}
		return s.ask(model.ResetGracefulOff), true
	case s.foundInGap():
		return s.rest(s.foundInGapWhy()), true
	case !s.fleet.in.LongGap || s.reading.WasOff || s.power() != model.PowerOn || s.goingOff() || s.reports():
		return Step{}, false
	case s.reading.Ons < onReadings || s.rec.Boot.Ticket.Open() && s.now().Before(s.fleet.in.Started.Add(reportAgain)):
		return s.look(s.reading.At.Add(s.fleet.in.Policy.ConfirmEvery), s.foundInGapWhy()), true
	}
	return s.noteRunning(""), true
}

// reportAgain is within which time metalprobe repeats a report that was not answered.
const reportAgain = 2 * time.Minute

// reports reports whether what the server runs has reported to this process with its open ticket, so
// that it is Ingot's own.
func (s *server) reports() bool {
	probe, wipe := s.probeReport(), s.wipeReport()
	return probe != nil && probe.ReceivedAt.After(s.fleet.in.Started) || wipe != nil && wipe.ReceivedAt.After(s.fleet.in.Started)
}

// gapApproved reports whether a commit approves that servers found running after a gap are switched off.
func (s *server) gapApproved() bool {
	return slices.Contains(s.fleet.in.Desired.Approvals, s.fleet.in.Observed.Fleet.GapToken)
}

// noteGap has a token for the servers that were found running after a gap, while there are any.
func (f *fleet) noteGap() {
	for _, s := range f.servers {
		switch {
		case s.foundInGap() && (f.gapFound == nil || s.rec.Life.FoundRunning.After(f.gapFound.rec.Life.FoundRunning)):
			f.gapFound = s
		case f.in.LongGap && s.shouldBeOff() && !s.foundInGap() && !s.reading.WasOff && s.reading.Failures == 0:
			f.gapUnread = s
		}
	}
	switch {
	case f.observeOnly.Reason != "":
	case f.gapFound != nil && f.record.GapToken == "":
		f.record.GapToken = proposal.Token(f.in.Nonce, "gap", proposal.TokenLength)
	case f.gapFound == nil:
		f.record.GapToken = ""
	}
}

// boundInGap returns why a claim waits that may have been bound by a decision that was lost: a server
// that should be off runs, or may run.
func (f *fleet) boundInGap(name model.ClaimName) proposal.Why {
	held := slices.IndexFunc(f.record.Holds, func(h model.GuardHold) bool { return h.Gap })
	if f.gapFound == nil && f.gapUnread == nil && held < 0 {
		return proposal.Why{}
	}
	rec := f.claimRecord(name)
	if held >= 0 && !rec.FirstSeen.After(f.record.Holds[held].Since) {
		h := f.record.Holds[held]
		return proposal.Why{Reason: model.ReasonGuardHeld, Message: fmt.Sprintf("%s; one of them may serve this claim: approve the list by a commit whose message ends with %s, or take it back",
			"no Ingot had run for long, and steps on servers that run wait for an approval", proposal.ApproveLine(h.Token)), Since: h.Since, Actor: proposal.RackOperator}
	}
	if s := f.gapFound; s != nil && !rec.FirstSeen.After(s.rec.Life.FoundRunning) {
		return proposal.Why{Reason: model.ReasonFoundRunning, Message: fmt.Sprintf("server %s was found running after no Ingot had run for long, and may serve this claim: "+
			"see what it runs, then make a commit whose message ends with %s", s.name, proposal.ApproveLine(f.record.GapToken)), Since: s.rec.Life.FoundRunning, Actor: proposal.RackOperator}
	}
	if s := f.gapUnread; s != nil && (rec.FirstRevision == f.in.First || rec.FirstSeen.Before(f.in.Started)) {
		return proposal.Why{Reason: model.ReasonInProgress, Message: fmt.Sprintf("waiting until server %s shows whether it runs: it may serve this claim", s.name), Since: f.in.Started, Actor: proposal.ActorNone}
	}
	return proposal.Why{}
}

func (s *server) foundInGapWhy() proposal.Why {
	release := ""
	if token := s.fleet.in.Observed.Fleet.GapToken; token != "" {
		release = ", or make a commit whose message ends with " + proposal.ApproveLine(token) + ", which covers all servers that were found so"
	}
	return s.whySince(model.ReasonFoundRunning, fmt.Sprintf("it should be off, and was found running after no Ingot had run for long, so it is "+
		"left alone: it may serve a claim. If it does not, give Server %s a new value of annotation %s%s", s.name, model.AnnotationDiscover,
		release), proposal.RackOperator)
}

// awaitInstall leaves a server alone that may be installed or not: it is neither served
// its boot again nor powered off, and starts from its disk when it is off.
func (s *server) awaitInstall() Step {
	switch {
	case s.reportedBooted():
		rec := s.edit()
		s.noteDisk()
		rec.Doubt, rec.Install.Digest, rec.Install.Unconfirmed, rec.Boot.Attempts, rec.Boot.Problem = nil, rec.Boot.Ticket.Digest, time.Time{}, 0, nil
		s.end(model.TicketBooted)
		return s.stay()
	case s.rec.Boot.Ticket.Open() && s.rec.Boot.Ticket.AwaitingOff:
		s.end(model.TicketSpent)
		return s.stay()
	case s.writingDisk() && s.diskInstall().ReportedAt.After(s.rec.Doubt.Since):
		// Its probe says so now that it is not installed. What a store that is older than the
		// install has of an earlier report says nothing.
		t := *s.rec.Boot.Ticket
		t.IgnitionAt = time.Time{}
		rec := s.edit()
		rec.Boot.Ticket, rec.Doubt = &t, nil
		return s.stay()
	case s.power() == model.PowerOff && s.reading.Offs < s.fleet.in.Policy.OffReadings:
		return s.look(s.reading.At.Add(s.fleet.in.Policy.ConfirmEvery), s.installUnknownWhy())
	case s.power() == model.PowerOff && s.neverOn() && s.unusedDiskTicket():
		// The probe refuses a disk with content, so it may be booted for its install after all.
		s.edit().Doubt = nil
		return s.stay()
	case s.rec.Boot.Ticket.Open() && s.rec.Boot.Ticket.IgnitionAt.IsZero():
		// Nothing more is served with it, but what took it may still report.
		t := *s.rec.Boot.Ticket
		t.IgnitionAt = s.now()
		s.edit().Boot.Ticket = &t
		return s.stay()
	}
	return s.runOrRest()
}

// runOrRest has a server of which it is not known whether it is installed run what is on its disk,
// if it was on before.
func (s *server) runOrRest() Step {
	switch {
	case s.power() == model.PowerOff && !s.neverOn():
		return s.heals(s.diskBoot)
	case s.power() == model.PowerOn && s.neverOn():
		d := *s.rec.Doubt
		d.SeenOn = true
		s.edit().Doubt = &d
		return s.stay()
	}
	return s.rest(s.installUnknownWhy())
}

// unusedDiskTicket reports whether the server's ticket is of a disk image, and was not used as far as
// is known.
func (s *server) unusedDiskTicket() bool {
	t := s.rec.Boot.Ticket
	return t.Open() && t.Disk != nil && t.IgnitionAt.IsZero()
}

// neverOn reports whether nothing shows that a server of which it is not known whether it is
// installed was ever on for its claim: its disk may be empty.
func (s *server) neverOn() bool { return s.rec.Install.Digest == "" && !s.rec.Doubt.SeenOn }

// installUnknownWhy says that it is not known whether the server was installed.
func (s *server) installUnknownWhy() proposal.Why {
	d := s.rec.Doubt
	return proposal.Why{Reason: string(model.DoubtInstallUnknown), Message: fmt.Sprintf("%s: it is left to what is on its disk. If that is not what claim %s "+
		"asks for, give the claim a new value of annotation %s, or Server %s annotation %s: %s",
		d.Message, s.rec.Claim.Name, model.AnnotationReprovision, s.name, model.AnnotationOperation, s.newRetry()), Since: d.Since, Actor: proposal.RackOperator}
}
