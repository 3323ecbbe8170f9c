package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"ingot/model"
	"ingot/model/text"
)

// cleanupStage is how far the wipe of a server's disks has come.
type cleanupStage int

const (
	cleanupToArm       cleanupStage = iota // it has no ticket for its wipe that is of use
	cleanupUnwanted                        // nothing is to be wiped
	cleanupReported                        // the outcome of the wipe is there
	cleanupImageless                       // no image is known that wipes
	cleanupLate                            // it was powered on for its wipe, and nothing came of it
	cleanupAwaitingOff                     // it may still run what was on it
	cleanupPoweringOn                      // it was asked to power on, and may yet do so
	cleanupStranded                        // it asked while no Ingot answered
	cleanupWiping                          // it is on for its wipe
	cleanupReady                           // it is off, and boots for its wipe next
	cleanupRunning                         // it is on, and not for its wipe
)

// cleanupStage is the stage of the server's wipe.
func (s *server) cleanupStage() cleanupStage {
	switch {
	case s.cleanupMode() == model.CleanupNone:
		return cleanupUnwanted
	case s.wipeReport() != nil:
		return cleanupReported
	case s.cleanupImage() == "":
		return cleanupImageless
	case s.wipeLate():
		return cleanupLate
	case s.holds(model.PurposeCleanup):
		return cleanupAwaitingOff
	case s.settling():
		return cleanupPoweringOn
	case s.opened(model.PurposeCleanup):
		return s.wipeStage()
	case s.power() == model.PowerOn:
		return cleanupRunning
	}
	return cleanupToArm
}

// wipeStage is the stage of the wipe that the server's ticket is for.
func (s *server) wipeStage() cleanupStage {
	switch {
	case s.stranded():
		return cleanupStranded
	case s.power() == model.PowerOn:
		return cleanupWiping
	case s.rec.Ticket.MayBoot(s.progress()):
		return cleanupReady
	}
	return cleanupToArm
}

// cleanup wipes the server's disks and waits for the outcome of each.
func (s *server) cleanup() Step {
	switch s.cleanupStage() {
	case cleanupUnwanted:
		return s.cleaned(nil, s.rec.Missing)
	case cleanupReported:
		return s.reportedWipe(s.wipeReport())
	case cleanupImageless:
		return s.rest(s.why(model.ReasonNoDiscoveryImage, "neither cleanup.image nor discovery.image is set in Ingot's configuration").by(RackOperator))
	case cleanupLate:
		return s.failLate()
	case cleanupAwaitingOff:
		return s.letBoot(s.off(s.fleet.in.Policy.PowerOffGrace))
	case cleanupPoweringOn:
		return s.look(s.nextLook(), s.why(model.ReasonWaitingForPower, "waiting for the server to power on"))
	case cleanupStranded:
		return s.wipeAnew()
	case cleanupWiping:
		return s.awaitWipe()
	case cleanupReady:
		return s.netBoot(nil)
	case cleanupRunning:
		st, _ := s.off(s.fleet.in.Policy.PowerOffGrace)
		return st
	case cleanupToArm:
	}
	return s.armWipe()
}

// wipeReport is what the server's probe reported of its wipe with its open ticket, nil if
// nothing.
func (s *server) wipeReport() *model.WipeReport {
	r := s.fleet.in.Observed.Wipes[s.name]
	if r == nil || !s.opened(model.PurposeCleanup) || r.Ticket != s.rec.Ticket.ID {
		return nil
	}
	return r
}

// wipeLate reports whether the server was powered on for its wipe, and the time of that
// is over.
func (s *server) wipeLate() bool {
	t := s.rec.Ticket
	return s.begun() && t.Purpose == model.PurposeCleanup && !t.Open() && !t.ArmedAt.Before(s.rec.Since) &&
		s.over(s.rec.Asked.At, s.fleet.in.Policy.cleanupTimeout(t.CleanupMode))
}

// cleanupImage is the image that wipes, "" if there is none.
func (s *server) cleanupImage() string {
	return cmp.Or(s.fleet.in.Policy.CleanupImage, s.fleet.in.Policy.DiscoveryImage)
}

// armWipe makes a ticket for the wipe.
func (s *server) armWipe() Step {
	b := Boot{Image: s.cleanupImage()}
	b.Ticket.CleanupMode = s.cleanupMode()
	return s.arm(model.PurposeCleanup, s.held(b))
}

// wipeAnew ends a ticket that nobody was there to answer.
func (s *server) wipeAnew() Step {
	s.end(model.TicketSpent)
	s.edit().Asked = nil
	return s.stay()
}

// failLate gives up on a wipe of which nothing came in its time.
func (s *server) failLate() Step {
	rec := s.edit()
	rec.Wiped, rec.Missing = nil, remembered(s.acceptedBefore())
	return s.fail(model.ReasonCleanupFailed, fmt.Sprintf("no wipe result within %s; %s",
		s.fleet.in.Policy.cleanupTimeout(s.rec.Ticket.CleanupMode), s.lastProgress()))
}

// reportedWipe compares what a wipe reported with the drives and volumes as the machine
// has them now.
func (s *server) reportedWipe(report *model.WipeReport) Step {
	if s.reading.InventoryAt.Before(report.ReceivedAt) {
		return s.stay(Inspect{Inventory: true})
	}
	return s.wiped(report.Disks)
}

// wipeSilence is how long there is no word of a wipe, which comes every few seconds,
// until that is worth to be told.
const wipeSilence = 5 * time.Minute

// awaitWipe waits for the outcome of the wipe.
func (s *server) awaitWipe() Step {
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
