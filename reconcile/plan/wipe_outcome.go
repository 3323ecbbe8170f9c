package plan

import (
	"fmt"

	"ingot/model"
	"ingot/reconcile/plan/disks"
	"ingot/reconcile/plan/proposal"
)

// wiped judges the outcome of a wipe: the server is Available again only if each of its
// disks is accounted for.
func (s *server) wiped(reported []model.DiskWipe) Step {
	missing := s.missing(reported)
	wrong := s.wipeFailure(reported, disks.NotAccepted(missing))
	if wrong == "" {
		return s.cleaned(reported, missing)
	}
	st, done := s.off(probeGrace)
	if !done {
		return st
	}
	rec := s.edit()
	if what := s.acceptance(); what == model.DisksNone || what == model.DisksAsReported {
		proposal.MarkHandled(rec, proposal.AskedDisks, s.annotation(model.AnnotationDisksAccepted)) // it was there before anything was listed
		wrong = s.wipeFailure(reported, disks.NotAccepted(missing))
	}
	rec.Disks.Wiped, rec.Disks.Missing = reported, missing
	return s.fail(model.ReasonCleanupFailed, wrong)
}

// wipeFailure says what a wipe does not account for and what to do about it; "" = all
// disks are accounted for.
func (s *server) wipeFailure(reported []model.DiskWipe, missed []model.MissingDisk) string {
	failed, missing := disks.FailedDisksText(reported), disks.MissingDisksText(missed)
	retry := fmt.Sprintf("annotation %s: %s on Server %s has it wiped again", model.AnnotationOperation, s.newRetry(), s.name)
	switch {
	case failed == "" && missing == "" && s.unknownDisks():
		return s.unknownText(reported)
	case failed == "" && missing == "":
		return ""
	case missing == "":
		return fmt.Sprintf("wipe failed on %s: repair or replace it; %s", failed, retry)
	case failed == "":
		return fmt.Sprintf("%s: look for it; %s; %s", missing, retry, s.acceptText(missed))
	}
	return fmt.Sprintf("wipe failed on %s: repair or replace it; %s: look for it; %s; %s", failed, missing, retry, s.acceptText(missed))
}

// unknownText says what a wipe saw of disks of which nothing was known.
func (s *server) unknownText(reported []model.DiskWipe) string {
	saw, value, so := "no disk", model.DisksNone, "it has none"
	if len(reported) > 0 {
		saw, value, so = disks.WipedText(reported), model.DisksAsReported, "these are all"
	}
	return fmt.Sprintf("the wipe saw %s, and nobody ever said what disks it has: look, and if %s, set annotation %s: %q on Server %s",
		saw, so, model.AnnotationDisksAccepted, s.newAcceptance(value), s.name)
}

// unknownDisks reports whether there is nothing to compare the report of a wipe with.
func (s *server) unknownDisks() bool {
	return len(s.disks()) == 0 && s.rec.Disks.KnownAt.IsZero() && s.fleet.in.Observed.Probes[s.name] == nil
}

// cleaned powers off, and then the server is Available again.
func (s *server) cleaned(reported []model.DiskWipe, missing []model.MissingDisk) Step {
	st, done := s.off(probeGrace)
	if !done {
		return st
	}
	rec := s.edit()
	if s.cleanupMode() != model.CleanupNone {
		if s.acceptance() != "" {
			proposal.MarkHandled(rec, proposal.AskedDisks, s.annotation(model.AnnotationDisksAccepted))
		}
		s.noteWiped(reported)
		missing = disks.Remembered(missing)
	}
	rec.Disks.Wiped, rec.Disks.Missing, rec.Release, rec.Boot.Attempts, rec.Intent, rec.Claim.Cleanup = reported, missing, nil, 0, nil, ""
	rec.Install.RootDisk = nil
	s.end(model.TicketBooted)
	return s.enter(model.StateAvailable)
}

// noteWiped has the record know what was wiped.
func (s *server) noteWiped(reported []model.DiskWipe) {
	rec := s.edit()
	var all []model.Disk
	for _, w := range reported {
		if w.Result == model.WipeDone {
			d := w.Disk()
			all = append(all, disks.Disk(d.Name, d.Serial, d.Model, d.Bytes, d.IDs...))
		}
	}
	rec.Disks.Known = disks.JoinDisks(rec.Disks.Known, all)
	if rec.Disks.KnownAt.IsZero() {
		rec.Disks.KnownAt = s.now()
	}
}
