package reconcile

import (
	"fmt"
	"time"

	"ingot/model"
)

// cleanup wipes the server's disks and waits for the outcome of each.
func (s *server) cleanup() Step {
	p, mode := s.fleet.in.Policy, s.cleanupMode()
	image := p.CleanupImage
	if image == "" {
		image = p.DiscoveryImage
	}
	report := s.fleet.in.Observed.Wipes[s.name]
	ours := report != nil && s.opened(model.PurposeCleanup) && report.Ticket == s.rec.Ticket.ID
	late := s.begun() && s.rec.Ticket.Purpose == model.PurposeCleanup && !s.rec.Ticket.Open() && !s.rec.Ticket.ArmedAt.Before(s.rec.Since) &&
		s.over(s.rec.Asked.At, p.cleanupTimeout(s.rec.Ticket.CleanupMode))
	switch {
	case mode == model.CleanupNone:
		return s.cleaned(nil, s.rec.Missing)
	case ours:
		return s.wiped(report.Disks)
	case image == "":
		return s.rest(s.why(NoDiscoveryImage, "neither cleanup.image nor discovery.image is set in Ingot's configuration").by(RackOperator))
	case late:
		return s.fail("CleanupFailed", fmt.Sprintf("no wipe result within %s; %s", p.cleanupTimeout(s.rec.Ticket.CleanupMode), s.lastWord()))
	case s.holds(model.PurposeCleanup):
		return s.letBoot(p.PowerOffGrace)
	case s.settling():
		return s.look(s.nextLook(), s.why(WaitingForPower, "waiting for the server to power on"))
	case s.opened(model.PurposeCleanup) && s.stranded():
		s.end(model.TicketSpent) // nobody was there to answer
		rec := s.edit()
		rec.Asked = nil
		return s.stay()
	case s.opened(model.PurposeCleanup) && s.power() == model.PowerOn:
		return s.wait()
	case s.opened(model.PurposeCleanup) && s.rec.Ticket.MayBoot(s.progress()):
		return s.netBoot(nil)
	case s.power() == model.PowerOn:
		st, _ := s.off(p.PowerOffGrace)
		return st
	}
	b := Boot{Image: image}
	b.Ticket.CleanupMode = mode
	return s.arm(model.PurposeCleanup, s.held(b))
}

// wipeSilence is how long there is no word of a wipe, which comes every few seconds,
// until that is worth to be told.
const wipeSilence = 5 * time.Minute

// wait waits for the outcome of the wipe.
func (s *server) wait() Step {
	w := s.wiping()
	if w == nil || len(w.Disks) == 0 {
		return s.rest(s.why("Wiping", "waiting for the wipe of its disks, "+s.lastStage()))
	}
	quiet := w.ReceivedAt.Add(wipeSilence)
	if s.now().Before(quiet) {
		return s.rest(s.why("Wiping", "its disks are being wiped: "+wipeText(w))).wakeBy(quiet)
	}
	return s.rest(s.why("Wiping", s.lastWord()+"; look at its console").by(RackOperator))
}

// lastWord says how far the wipe had come when it was last heard of, or else the boot.
func (s *server) lastWord() string {
	w := s.wiping()
	if w == nil || len(w.Disks) == 0 {
		return s.lastStage()
	}
	return fmt.Sprintf("the last word of its wipe came at %s: %s", clock(w.ReceivedAt), wipeText(w))
}

// wiped sees to the outcome of a wipe: the server is Available again only if each of
// its disks was seen to.
func (s *server) wiped(disks []model.DiskWipe) Step {
	missing := s.missing(disks)
	wrong := s.wipeFailure(disks, missed(missing))
	if wrong == "" {
		return s.cleaned(disks, missing)
	}
	st, done := s.off(probeGrace)
	if !done {
		return st
	}
	rec := s.edit()
	rec.Wiped, rec.Missing = disks, missing
	return s.fail("CleanupFailed", wrong)
}

// wipeFailure says which disks were not wiped and what to do about it; "" = all were.
func (s *server) wipeFailure(disks []model.DiskWipe, missed []model.MissingDisk) string {
	failed, missing := failedDisks(disks), missingText(missed)
	retry := fmt.Sprintf("set annotation %s: %s on Server %s", model.AnnotationOperation, s.newRetry(), s.name)
	switch {
	case failed == "" && missing == "":
		return ""
	case missing == "":
		return fmt.Sprintf("wipe failed on %s; mend it and %s", failed, retry)
	case failed == "":
		return fmt.Sprintf("%s: %s %s", missing, seatedText(missed), retry)
	}
	return fmt.Sprintf("wipe failed on %s; mend it. %s: %s %s", failed, missing, seatedText(missed), retry)
}

// cleaned powers off, and then the server is Available again.
func (s *server) cleaned(disks []model.DiskWipe, missing []model.MissingDisk) Step {
	st, done := s.off(probeGrace)
	if !done {
		return st
	}
	rec := s.edit()
	rec.Wiped, rec.Missing, rec.Release, rec.Attempts, rec.Intent = disks, missing, nil, 0, nil
	s.end(model.TicketBooted)
	return s.enter(model.StateAvailable)
}

// cleanupMode is how the server's disks are wiped.
func (s *server) cleanupMode() string {
	if m := s.annotation(model.AnnotationCleanup); m != "" {
		return m
	}
	return s.fleet.in.Policy.CleanupMode
}

// failedDisks names the disks that were not wiped, by serial number; "" = none.
func failedDisks(disks []model.DiskWipe) string {
	names := ""
	for _, d := range disks {
		if d.Result != model.WipeFailed {
			continue
		}
		if names != "" {
			names += ", "
		}
		names += fmt.Sprintf("%s (serial %s): %s", d.Name, d.Serial, d.Error)
	}
	return names
}
