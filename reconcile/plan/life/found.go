package life

import (
	"fmt"
	"slices"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/event"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/reading"
)

// A server that runs what Ingot did not start may do a tenant's work. That is recorded, because BMCs report Off for
// machines that run, for minutes while they restart: it has to be Off for long, and is never forced off.

// found is the step of a server that runs, or may run, what Ingot did not start.
func found(s *server) (p proposal.Proposal, ok bool) {
	awaitingOff, running := s.AwaitsOff(model.PurposeDiscovery), foundRunning(s)
	switch {
	case awaitingOff && running:
		return shutDown(s), true
	case s.Power() == model.PowerOn:
		return foundOn(s)
	case awaitingOff && s.IsOff():
		return proposal.OpenTicket(s), true
	case awaitingOff:
		return s.ToOff(s.Policy.PowerOffGrace), true
	case running && s.Unknown != "" && !discoverAsked(s): // nothing is known of the fleet
		return s.Rest(foundWhy(s)), true
	case running && !surelyOff(s):
		return awaitSurelyOff(s), true
	}
	return p, false
}

func foundOn(s *server) (p proposal.Proposal, ok bool) {
	opened := s.Opened(model.PurposeDiscovery)
	switch {
	case opened && !s.Ticket().AwaitingOff && ours(s):
		return s.Enter(proposal.Act, model.StateDiscovery), true // powered on by Ingot, and then cut off
	case opened || !foundRunning(s) || !discoverAsked(s):
		return leaveRunning(s), true
	case !s.Intends(model.IntentDiscover, s.Annotation(model.AnnotationDiscover)), stuckOn(s):
		return s.Rest(foundWhy(s)), true
	}
	return p, false
}

// DecideDiscover decides that a server that was found running is powered off and discovered.
func DecideDiscover(s *server) (p proposal.Proposal, ok bool) {
	value := s.Annotation(model.AnnotationDiscover)
	if s.State() != model.StateInitial || s.Power() != model.PowerOn || !foundRunning(s) || !discoverAsked(s) || s.Opened(model.PurposeDiscovery) ||
		s.Intends(model.IntentDiscover, value) || s.Adopts != nil || s.Facts.Inventory == nil {
		return p, false
	}
	return s.Change(func(rec *model.ServerRecord) {
		event.Announce(s, rec, model.IntentDiscover, value)
		if stuckOn(s) {
			rec.Power.Asked, rec.Life.Message = nil, "" // it is asked again
		}
	}).Stay(proposal.Decide).Taking(proposal.StepDiscover, value)
}

// discoverAsked reports whether a new value of the annotation asks for a running server to be discovered.
func discoverAsked(s *server) bool {
	v := s.Annotation(model.AnnotationDiscover)
	return v != "" && !proposal.WasHandled(s.Record, proposal.AskedDiscover, v)
}

func leaveRunning(s *server) proposal.Proposal {
	switch {
	case s.Opened(model.PurposeDiscovery):
		return noteRunning(s, "")
	case foundRunning(s):
		return s.Rest(foundWhy(s))
	case s.Reading.Ons < onReadings:
		return s.Watch(s.Reading.At.Add(s.Policy.ConfirmEvery), foundWhy(s))
	}
	return noteRunning(s, "")
}

// NoteRanBefore records that the server ran when it was read last, before this process began.
func NoteRanBefore(s *server) (p proposal.Proposal, ok bool) {
	if s.State() != model.StateInitial || foundRunning(s) || !s.Reading.At.IsZero() || s.Power() != model.PowerOn || s.Ticket().Open() {
		return p, false
	}
	return noteRunning(s, ""), true
}

// ours reports whether Ingot switched the server on for its open ticket: it was Off before, and came on in time.
func ours(s *server) bool {
	asked := s.Record.Power.Asked
	if !s.Begun() || asked.Before != "" && asked.Before != model.PowerOff {
		return false
	}
	inTime := asked.Reached || s.Now.Before(asked.At.Add(s.Policy.PowerOnLimit+s.Policy.SettleMax))
	return inTime || asked.At.Before(s.Started) // when it came on is not known
}

// served reports whether the server was given anything to run with its newest ticket.
func served(s *server) bool {
	p, t, report := s.Progress(), s.Ticket(), s.Observed.Probes[s.Name]
	switch {
	case t == nil:
		return false
	case p != nil && !(p.ScriptAt.IsZero() && p.KernelAt.IsZero() && p.IgnitionAt.IsZero()):
		return true
	}
	return !t.IgnitionAt.IsZero() || report != nil && report.Ticket == t.ID
}

// surelyOff reports whether a server was Off for minutes, by a BMC that had not restarted meanwhile.
func surelyOff(s *server) bool { return offForLong(s) && !BMCToConfirm(s) && !bmcRestarted(s) }

func bmcRestarted(s *server) bool {
	return s.BMC.Known && reading.Restarted(s.Reading.BMCReset, s.BMC.LastReset)
}

func offForLong(s *server) bool {
	p, r := s.Policy, s.Reading
	return s.Power() == model.PowerOff && r.Offs >= p.FoundOffReadings && !s.Now.Before(r.OffSince.Add(p.FoundOffTime))
}

// BMCToConfirm reports whether the BMC has to be read, to know whether it restarted while it said Off.
func BMCToConfirm(s *server) bool {
	return s.State() == model.StateInitial && foundRunning(s) && offForLong(s) &&
		s.BMC.ReadAt.Before(s.Reading.OffSince.Add(s.Policy.FoundOffTime))
}

func awaitSurelyOff(s *server) proposal.Proposal {
	p := s.Policy
	if bmcRestarted(s) {
		return s.Stay(proposal.Look, proposal.Inspect{}) // which counts from the beginning
	}
	why := s.Why(model.ReasonFoundRunning, fmt.Sprintf("it was found running, and has to be Off for %s before anything is done "+
		"to it", p.FoundOffTime))
	look := s.Watch(s.Reading.At.Add(p.FoundOffTime/time.Duration(max(p.FoundOffReadings-1, 1))), why)
	if end := s.Reading.OffSince.Add(p.FoundOffTime); s.Reading.Offs > 0 && end.After(s.Now) {
		look = look.WakeBy(end)
	}
	return look
}

// shutDown asks what runs on the server to shut down, as Git asks, and then lets its ticket boot it.
func shutDown(s *server) proposal.Proposal {
	switch {
	case s.Power() == model.PowerOff && surelyOff(s):
		return proposal.OpenTicket(s)
	case s.Power() == model.PowerOff:
		return awaitSurelyOff(s)
	case stuckOn(s):
		return noteRunning(s, "it was asked to shut down and still runs, and it is not forced off")
	}
	return proposal.Proposal{Of: s, Kind: proposal.Act, Why: foundWhy(s), Goal: &proposal.Goal{Want: model.PowerOff, Shutdown: true}}
}

// stuckOn reports whether what runs on the server was asked to shut down, and did not.
func stuckOn(s *server) bool {
	return foundRunning(s) && s.Power() == model.PowerOn && s.GoingOff() && s.Over(s.Record.Power.Asked.At, s.Policy.PowerOffGrace)
}

// MayServe reports whether a server of an unknown fleet may serve a claim, also if its power was cut since.
func MayServe(s *server) bool {
	return foundRunning(s) || s.State() == model.StateInitial && s.Power() == model.PowerOn && !s.Opened(model.PurposeDiscovery)
}

// foundWhy says that a server is left alone because it may run something.
func foundWhy(s *server) proposal.Why {
	now := ""
	if v := s.Annotation(model.AnnotationDiscover); v != "" {
		now = fmt.Sprintf(" (now %q)", v)
	}
	found := "found running, so it is left alone"
	if s.Record.Life.Message != "" {
		found += " (" + s.Record.Life.Message + ")"
	}
	release := fmt.Sprintf("power it off for %s", s.Policy.FoundOffTime)
	if s.Unknown != "" {
		found += ". Neither the store nor the status branch knows the fleet, so it may serve a claim, also while it is off"
		release = fmt.Sprintf("adopt it by spec.serverClaimRef, make a commit whose message ends with %s", proposal.ApproveLine(s.Unknown))
	}
	return s.WhyBy(model.ReasonFoundRunning, fmt.Sprintf("%s: %s, or give Server %s a new value%s of annotation %s",
		found, release, s.Name, now, model.AnnotationDiscover), proposal.RackOperator)
}

// FoundInGap reports whether the server was found running after a long gap. Only a person's request ends that.
func FoundInGap(s *server) bool { return foundRunning(s) && ShouldBeOff(s) }

// ShouldBeOff reports whether the server is free, or about to be.
func ShouldBeOff(s *server) bool {
	return s.State() == model.StateAvailable || s.State() == model.StateCleanup
}

// reportAgain is within which time metalprobe repeats a report that was not answered.
const reportAgain = 2 * time.Minute

// Gap leaves a server alone that should be off and was On after a long gap: it may serve a claim.
func Gap(s *server) (p proposal.Proposal, ok bool) {
	switch {
	case !ShouldBeOff(s):
		return p, false
	case FoundInGap(s) && (slices.Contains(s.Desired.Approvals, s.Observed.Fleet.GapToken) || discoverAsked(s)):
		s = s.Change(func(rec *model.ServerRecord) {
			rec.Life.FoundRunning, rec.Life.Message = time.Time{}, ""
			proposal.MarkHandled(rec, proposal.AskedDiscover, s.Annotation(model.AnnotationDiscover))
		})
		if s.Power() == model.PowerOff {
			return s.Stay(proposal.Act), true
		}
		return s.ToOff(s.Policy.PowerOffGrace), true
	case FoundInGap(s):
		return s.Rest(gapWhy(s)), true
	case !s.LongGap || s.Reading.WasOff || s.Power() != model.PowerOn || s.GoingOff() || reports(s):
		return p, false
	case s.Reading.Ons < onReadings || s.Ticket().Open() && s.Now.Before(s.Started.Add(reportAgain)):
		return s.Watch(s.Reading.At.Add(s.Policy.ConfirmEvery), gapWhy(s)), true
	}
	return noteRunning(s, ""), true
}

// reports reports whether the server's open ticket was used for a report to this process.
func reports(s *server) bool {
	probe, wipe := proposal.ProbeReport(s), proposal.WipeReport(s)
	return probe != nil && probe.ReceivedAt.After(s.Started) || wipe != nil && wipe.ReceivedAt.After(s.Started)
}

func gapWhy(s *server) proposal.Why {
	release := ""
	if token := s.Observed.Fleet.GapToken; token != "" {
		release = ", or make a commit whose message ends with " + proposal.ApproveLine(token) + ", which covers all servers that were found so"
	}
	return s.WhyBy(model.ReasonFoundRunning, fmt.Sprintf("it should be off, and was found running after no Ingot had run for long, so it is "+
		"left alone: it may serve a claim. If it does not, give Server %s a new value of annotation %s%s", s.Name, model.AnnotationDiscover,
		release), proposal.RackOperator)
}
