package plan

import (
	"iter"

	"ingot/model"
	"ingot/reconcile/plan/boot"
	"ingot/reconcile/plan/disks"
	"ingot/reconcile/plan/install"
	"ingot/reconcile/plan/life"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/reading"
	"ingot/reconcile/plan/service"
	"ingot/reconcile/plan/world"
)

// A rule proposes one thing that could be done with a server, or nothing.
type rule = func(*proposal.Server) (proposal.Proposal, bool)

// decisions are what Git asks for that takes something from a server's user, in order. The guard counts them.
var decisions = []rule{
	life.DecideRelease, life.DecideWipe, service.DecideOff, service.DecideMaintenance, life.DecidePower,
	install.DecideReprovision, service.DecideOperation, life.DecideDiscover,
}

// notes record what has happened to a server, whatever else it waits for, and decide what needs no BMC.
var notes = []rule{
	install.NoteUnknown, install.Rekey,
	life.Rename, life.NoteMACs, life.NoteClaim, service.NoteApproval,
	life.DecideRelease, life.WithdrawRelease, install.WithdrawReprovision, install.DecideReprovision,
	boot.ForOnce, boot.FollowBootedBy, life.Retry, install.Expire, boot.Disarm,
}

// rules are what else can be done. The first note or rule that no law holds is taken.
var rules = []rule{
	life.NoteRanBefore, readAgain, contradicted, disks.Serviced, life.Gap, awaitSettled, life.ReadCards,

	// Former decisions go on, and the next one is made.
	service.Operation, service.DecideOperation, service.DecideMaintenance, service.Maintenance,
	boot.Theft, life.DecideWipe, life.DecidePower, life.DecideDiscover, service.DecideOff,

	// What the server's state asks for.
	disks.Accept, install.Reprovision, life.Live, install.Unknown, install.Install, install.KeepRunning,
	disks.Cleanup, service.Maintained,

	// If all of that is held, the server stays as it was.
	life.KeepPower, rest,
}

// proposals are what could be done with a server, in the order of precedence.
func (f *planner) proposals(s *world.Server) iter.Seq[proposal.Proposal] {
	of := func(propose func(*world.Server) (proposal.Proposal, bool)) rule {
		return func(*proposal.Server) (proposal.Proposal, bool) { return propose(s) }
	}
	return func(yield func(proposal.Proposal) bool) {
		for _, list := range [][]rule{notes, {of(f.noteBootstrapped), of(f.noteOrphaned), of(f.forget)}, rules} {
			for _, propose := range list {
				if p, ok := propose(s.Server); ok && !yield(p) {
					return
				}
			}
		}
	}
}

// readAgain reads the power state where what is known of it does not count.
func readAgain(s *proposal.Server) (p proposal.Proposal, ok bool) {
	switch {
	case s.Reading.At.IsZero() || s.Reading.Failures > 0:
		return s.Stay(proposal.Look, proposal.Inspect{Inventory: s.Facts.Inventory == nil}), true
	case s.Record.Life.Failures > 0 && s.Reading.At.Before(s.NotBefore()):
		return s.Stay(proposal.Look, proposal.Inspect{}), true // it may be another since that failed
	}
	return p, false
}

// contradicted leaves a server alone that does not match its manifest.
func contradicted(s *proposal.Server) (p proposal.Proposal, ok bool) {
	return s.Rest(s.Contradicted), s.Contradicted.Reason != ""
}

func awaitSettled(s *proposal.Server) (p proposal.Proposal, ok bool) {
	if s.Power().Settled() {
		return p, false
	}
	if s.Reading.Unknowns >= reading.Unknown {
		return s.Rest(s.WhyBy(model.ReasonPowerStateUnknown, "its BMC does not say whether it is on or off; nothing is done to it until it does: "+
			"look at the BMC, and restart that", proposal.RackOperator)), true
	}
	return s.Watch(proposal.NextLook(s), s.Why(model.ReasonWaitingForPower, "power state is "+string(s.Power()))), true
}

func rest(s *proposal.Server) (proposal.Proposal, bool) { return s.Rest(proposal.Why{}), true }
