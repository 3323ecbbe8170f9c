package plan

import (
	"cmp"
	"fmt"
	"time"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/disks"
	"ingot/reconcile/plan/proposal"
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
	case s.awaitsOff(model.PurposeCleanup):
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
	case s.rec.Boot.Ticket.MayBoot(s.progress()):
		return cleanupReady
	}
	return cleanupToArm
}

// cleanup wipes the server's disks and waits for the outcome of each.
func (s *server) cleanup() Step {
	switch s.cleanupStage() {
	case cleanupUnwanted:
		return s.cleaned(nil, s.rec.Disks.Missing)
	case cleanupReported:
		return s.reportedWipe(s.wipeReport())
	case cleanupImageless:
		return s.rest(s.why(model.ReasonNoDiscoveryImage, "neither cleanup.image nor discovery.image is set in Ingot's "+
			"configuration").By(proposal.RackOperator))
	case cleanupLate:
		return s.failLate()
	case cleanupAwaitingOff:
		return s.confirmOff(s.off(s.fleet.in.Policy.PowerOffGrace))
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
	if r == nil || !s.opened(model.PurposeCleanup) || r.Ticket != s.rec.Boot.Ticket.ID {
		return nil
	}
	return r
}

// wipeLate reports whether the server was powered on for its wipe, and the time of that
// is over.
func (s *server) wipeLate() bool {
	t := s.rec.Boot.Ticket
	return s.begun() && t.Purpose == model.PurposeCleanup && !t.Open() && !t.ArmedAt.Before(s.rec.Life.Since) &&
		s.over(s.rec.Power.Asked.At, s.fleet.in.Policy.WipeTimeout(t.CleanupMode))
}

// cleanupImage is the image that wipes, "" if there is none.
func (s *server) cleanupImage() string {
	return cmp.Or(s.fleet.in.Policy.CleanupImage, s.fleet.in.Policy.DiscoveryImage)
}

// armWipe makes a ticket for the wipe.
func (s *server) armWipe() Step {
	b := proposal.Boot{Image: s.cleanupImage()}
	b.Ticket.CleanupMode = s.cleanupMode()
	return s.arm(model.PurposeCleanup, s.untilOff(b))
}

// wipeAnew ends a ticket that was used while no Ingot answered.
func (s *server) wipeAnew() Step {
	s.end(model.TicketSpent)
	s.edit().Power.Asked = nil
	return s.stay()
}

// failLate gives up on a wipe of which nothing came in its time.
func (s *server) failLate() Step {
	rec := s.edit()
	rec.Disks.Wiped, rec.Disks.Missing = nil, disks.Remembered(s.acceptedBefore())
	return s.fail(model.ReasonCleanupFailed, fmt.Sprintf("no wipe result within %s; %s",
		s.fleet.in.Policy.WipeTimeout(s.rec.Boot.Ticket.CleanupMode), s.lastProgress()))
}

// reportedWipe compares what a wipe reported with the drives and volumes as the machine
// has them now.
func (s *server) reportedWipe(report *model.WipeReport) Step {
	if s.reading.InventoryAt.Before(s.notedAt(report.ReceivedAt)) {
		return s.stay(proposal.Inspect{Inventory: true})
	}
	return s.wiped(report.Disks)
}

// wipeSilence is how long nothing may be heard of a wipe, which reports at least every minute that it
// goes on, before a person is asked to look.
const wipeSilence = 5 * time.Minute

// awaitWipe waits for the outcome of the wipe.
func (s *server) awaitWipe() Step {
	w := s.trace().Wiping()
	if w == nil || len(w.Disks) == 0 {
		return s.rest(s.why(model.ReasonWiping, "waiting for the wipe of its disks, "+s.lastStage()))
	}
	quiet := w.ReceivedAt.Add(wipeSilence)
	if s.now().Before(quiet) {
		return s.rest(s.why(model.ReasonWiping, "its disks are being wiped: "+disks.WipeText(w))).wakeBy(quiet)
	}
	return s.rest(s.why(model.ReasonWiping, s.lastProgress()+"; look at its console").By(proposal.RackOperator))
}

// lastProgress says how far the wipe had come when the probe last reported, or else the boot.
func (s *server) lastProgress() string {
	w := s.trace().Wiping()
	if w == nil || len(w.Disks) == 0 {
		return s.lastStage()
	}
	return fmt.Sprintf("last wipe progress at %s: %s", text.Time(w.ReceivedAt), disks.WipeText(w))
}

// cleanupMode is how the server's disks are wiped: as the server's manifest or the
// configuration says, or as its claim asked for if that is stricter.
func (s *server) cleanupMode() string {
	return model.StricterCleanup(cmp.Or(s.annotation(model.AnnotationCleanup), s.fleet.in.Policy.CleanupMode), s.rec.Claim.Cleanup)
}

// noteCleanup has the record say how the claim asks for its disks to be wiped: once that is
// done, the claim is gone. It touches nothing.
func (s *server) noteCleanup() (Step, bool) {
	if s.claim == nil || s.rec.Release != nil || s.fleet.observeOnly.Reason != "" {
		return Step{}, false
	}
	asked := s.claim.Annotations[model.AnnotationCleanup]
	if s.rec.Claim.Cleanup == asked || s.rec.Claim.Name != s.claim.ClaimName() {
		return Step{}, false
	}
	s.edit().Claim.Cleanup = asked
	return s.stay(), true
}
