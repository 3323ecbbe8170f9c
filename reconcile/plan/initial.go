package plan

import (
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// initial adopts a server, or discovers it once nothing of anybody's runs on it.
func (s *server) initial() Step {
	switch {
	case s.facts.Inventory == nil:
		return s.stay(proposal.Inspect{Inventory: true})
	case s.adoptable() && s.duplicate().Reason != "":
		return s.rest(s.duplicate())
	case s.adoptable() && s.unreadyToAdopt().Reason != "":
		return s.rest(s.unreadyToAdopt())
	case s.adoptable():
		return s.adopt()
	}
	if st, ok := s.found(); ok {
		return st
	}
	return s.beginDiscovery()
}

// found is the step of a server that runs, or may run, what Ingot did not start.
func (s *server) found() (Step, bool) {
	awaitingOff, running := s.awaitsOff(model.PurposeDiscovery), !s.rec.Life.FoundRunning.IsZero()
	switch {
	case awaitingOff && running:
		return s.confirmOff(s.shutDown()), true
	case s.power() == model.PowerOn:
		return s.foundOn()
	case awaitingOff:
		return s.confirmOff(s.off(s.fleet.in.Policy.PowerOffGrace)), true
	case running && s.keptForClaims():
		return s.rest(s.foundRunning()), true
	case running && !s.surelyOff():
		return s.awaitSurelyOff(), true
	}
	return Step{}, false
}

// foundOn is the step of a server in Initial that is on.
func (s *server) foundOn() (Step, bool) {
	opened := s.opened(model.PurposeDiscovery)
	switch {
	case opened && !s.rec.Boot.Ticket.AwaitingOff && s.ours():
		return s.enter(model.StateDiscovery), true // powered on by us, and then cut off
	case opened || s.rec.Life.FoundRunning.IsZero() || !s.discoverAsked():
		return s.leaveRunning(), true
	case !s.intends(model.IntentDiscover, s.annotation(model.AnnotationDiscover)):
		return s.decideDiscover(), true
	case s.stuckOn():
		return s.rest(s.foundRunning()), true
	}
	return Step{}, false
}

// beginDiscovery boots the probe on a server, as often as is tried.
func (s *server) beginDiscovery() Step {
	p := s.fleet.in.Policy
	switch {
	case s.power() != model.PowerOn && s.reading.Offs < p.OffReadings && !s.starting():
		return s.look(s.reading.At.Add(p.ConfirmEvery), s.why(model.ReasonWaitingForPowerOff, "making sure that the server is off"))
	case s.rec.Boot.Attempts >= p.DiscoveryAttempts:
		return s.fail(model.ReasonDiscoveryFailed, s.discoveryFailure())
	case p.DiscoveryImage == "":
		return s.rest(s.why(model.ReasonNoDiscoveryImage, "discovery.image is not set in Ingot's configuration").By(proposal.RackOperator))
	case !s.opened(model.PurposeDiscovery):
		return s.arm(model.PurposeDiscovery, s.untilOff(proposal.Boot{Image: p.DiscoveryImage}))
	}
	return s.netBoot(s.discover)
}

// discover notes that the server is powered on to be discovered.
func (s *server) discover(rec *model.ServerRecord) {
	proposal.MarkHandled(rec, proposal.AskedDiscover, s.annotation(model.AnnotationDiscover))
	rec.Life.State, rec.Life.Since, rec.Boot.Problem = model.StateDiscovery, s.now(), nil
	rec.Life.FoundRunning, rec.Life.Message = time.Time{}, ""
	rec.Boot.Attempts++
}

// discoverAsked reports whether Git asks anew for a running server to be discovered.
func (s *server) discoverAsked() bool {
	v := s.annotation(model.AnnotationDiscover)
	return v != "" && !proposal.WasHandled(s.rec, proposal.AskedDiscover, v)
}
