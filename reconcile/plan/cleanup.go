package plan

import (
	"fmt"
	"slices"
	"time"

	"ingot/model"
	"ingot/model/text"
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
	case ours && s.reading.InventoryAt.Before(report.ReceivedAt):
		return s.stay(Inspect{Inventory: true}) // drives and volumes are as the machine has them now
	case ours:
		return s.wiped(report.Disks)
	case image == "":
		return s.rest(s.why(model.ReasonNoDiscoveryImage, "neither cleanup.image nor discovery.image is set in Ingot's configuration").by(RackOperator))
	case late:
		rec := s.edit()
		rec.Wiped, rec.Missing = nil, remembered(s.acceptedBefore())
		return s.fail(model.ReasonCleanupFailed, fmt.Sprintf("no wipe result within %s; %s", p.cleanupTimeout(s.rec.Ticket.CleanupMode), s.lastProgress()))
	case s.holds(model.PurposeCleanup):
		return s.letBoot(s.off(p.PowerOffGrace))
	case s.settling():
		return s.look(s.nextLook(), s.why(model.ReasonWaitingForPower, "waiting for the server to power on"))
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
	w := s.trace().Wiping()
	if w == nil || len(w.Disks) == 0 {
		return s.rest(s.why(model.ReasonWiping, "waiting for the wipe of its disks, "+s.lastStage()))
	}
	quiet := w.ReceivedAt.Add(wipeSilence)
	if s.now().Before(quiet) {
		return s.rest(s.why(model.ReasonWiping, "its disks are being wiped: "+WipeText(w))).wakeBy(quiet)
	}
	return s.rest(s.why(model.ReasonWiping, s.lastProgress()+"; look at its console").by(RackOperator))
}

// lastProgress says how far the wipe had come when the probe last reported, or else the boot.
func (s *server) lastProgress() string {
	w := s.trace().Wiping()
	if w == nil || len(w.Disks) == 0 {
		return s.lastStage()
	}
	return fmt.Sprintf("last wipe progress at %s: %s", text.Time(w.ReceivedAt), WipeText(w))
}

// wiped sees to the outcome of a wipe: the server is Available again only if each of
// its disks was seen to.
func (s *server) wiped(disks []model.DiskWipe) Step {
	missing := s.missing(disks)
	wrong := s.wipeFailure(disks, NotAccepted(missing))
	if wrong == "" {
		return s.cleaned(disks, missing)
	}
	st, done := s.off(probeGrace)
	if !done {
		return st
	}
	rec := s.edit()
	if what := s.acceptance(); what == model.DisksNone || what == model.DisksAsReported {
		handle(rec, AskedDisks, s.annotation(model.AnnotationDisksAccepted)) // of before anybody was told
		wrong = s.wipeFailure(disks, NotAccepted(missing))
	}
	rec.Wiped, rec.Missing = disks, missing
	return s.fail(model.ReasonCleanupFailed, wrong)
}

// wipeFailure says what a wipe does not account for and what to do about it; "" = all
// disks were seen to.
func (s *server) wipeFailure(disks []model.DiskWipe, missed []model.MissingDisk) string {
	failed, missing := FailedDisksText(disks), MissingDisksText(missed)
	retry := fmt.Sprintf("annotation %s: %s on Server %s has it wiped again", model.AnnotationOperation, s.newRetry(), s.name)
	switch {
	case failed == "" && missing == "" && s.unknownDisks():
		return s.unknownText(disks)
	case failed == "" && missing == "":
		return ""
	case missing == "":
		return fmt.Sprintf("wipe failed on %s: mend that; %s", failed, retry)
	case failed == "":
		return fmt.Sprintf("%s: look for it; %s; %s", missing, retry, s.acceptText(missed))
	}
	return fmt.Sprintf("wipe failed on %s: mend that; %s: look for it; %s; %s", failed, missing, retry, s.acceptText(missed))
}

// unknownText says what a wipe saw of disks of which nothing was known.
func (s *server) unknownText(disks []model.DiskWipe) string {
	saw, value, so := "no disk", model.DisksNone, "it has none"
	if len(disks) > 0 {
		saw, value, so = wipedText(disks), model.DisksAsReported, "these are all"
	}
	return fmt.Sprintf("the wipe saw %s, and nobody ever said what disks it has: look, and if %s, set annotation %s: %q on Server %s",
		saw, so, model.AnnotationDisksAccepted, s.newAcceptance(value), s.name)
}

// wipedText names what was wiped.
func wipedText(disks []model.DiskWipe) string {
	var all []model.MissingDisk
	for _, d := range disks {
		all = append(all, model.MissingDisk{Name: d.Name, Serial: d.Serial, Model: d.Model})
	}
	return text.Plural(len(disks), "disk") + ", " + DisksText(all)
}

// unknownDisks reports whether there is nothing to compare the report of a wipe with.
func (s *server) unknownDisks() bool {
	return len(s.disks()) == 0 && s.rec.DisksAt.IsZero() && s.fleet.in.Observed.Probes[s.name] == nil
}

// accept has a server wiped again once a person accepted what its wipe did not account
// for: what he was told of, and nothing more.
func (s *server) accept() (Step, bool) {
	what := s.acceptance()
	if what == "" || s.rec.Reason != model.ReasonCleanupFailed || s.rec.Back != model.StateCleanup {
		return Step{}, false
	}
	missing := s.acceptedOf(what)
	switch {
	case len(NotAccepted(s.rec.Missing)) == 0 && !s.acceptsUnknown(what):
		return Step{}, false // he was told of no disk
	case len(NotAccepted(missing)) > 0:
		return Step{}, false
	}
	rec := s.edit()
	handle(rec, AskedDisks, s.annotation(model.AnnotationDisksAccepted))
	if len(missing) == 0 {
		s.noteWiped(rec.Wiped)
	}
	rec.Missing, rec.Back = missing, ""
	return s.enter(model.StateCleanup), true
}

// acceptedOf are the disks that are missing, with those marked that a person accepts.
func (s *server) acceptedOf(what string) []model.MissingDisk {
	all := what == model.DisksAsReported || what == model.DisksNone && len(s.rec.Wiped) == 0
	missing := slices.Clone(s.rec.Missing)
	for i, m := range missing {
		missing[i].Gone = m.Gone || all || accepts(what, m)
	}
	return missing
}

// acceptsUnknown reports whether a person says of a server of which nothing was known
// that what its wipe saw is all.
func (s *server) acceptsUnknown(what string) bool {
	said := model.DisksAsReported
	if len(s.rec.Wiped) == 0 {
		said = model.DisksNone
	}
	return what == said && len(s.rec.Missing) == 0 && s.unknownDisks()
}

// acceptedBefore are the disks that a person accepted and that were not seen since.
func (s *server) acceptedBefore() []model.MissingDisk {
	return slices.DeleteFunc(slices.Clone(s.rec.Missing), func(m model.MissingDisk) bool { return !m.Gone })
}

// cleaned powers off, and then the server is Available again.
func (s *server) cleaned(disks []model.DiskWipe, missing []model.MissingDisk) Step {
	st, done := s.off(probeGrace)
	if !done {
		return st
	}
	rec := s.edit()
	if s.cleanupMode() != model.CleanupNone {
		if s.acceptance() != "" {
			handle(rec, AskedDisks, s.annotation(model.AnnotationDisksAccepted))
		}
		s.noteWiped(disks)
		missing = remembered(missing)
	}
	rec.Wiped, rec.Missing, rec.Release, rec.Attempts, rec.Intent = disks, missing, nil, 0, nil
	s.end(model.TicketBooted)
	return s.enter(model.StateAvailable)
}

// noteWiped has the record know what was wiped.
func (s *server) noteWiped(disks []model.DiskWipe) {
	rec := s.edit()
	var all []model.Disk
	for _, w := range disks {
		if w.Result == model.WipeDone {
			d := w.Disk()
			all = append(all, disk(d.Name, d.Serial, d.Model, d.Bytes, d.IDs...))
		}
	}
	rec.Disks = JoinDisks(rec.Disks, all)
	if rec.DisksAt.IsZero() {
		rec.DisksAt = s.now()
	}
}

// cleanupMode is how the server's disks are wiped.
func (s *server) cleanupMode() string {
	if m := s.annotation(model.AnnotationCleanup); m != "" {
		return m
	}
	return s.fleet.in.Policy.CleanupMode
}

// FailedDisksText names the disks that were not wiped, by serial number; "" = none.
func FailedDisksText(disks []model.DiskWipe) string {
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
