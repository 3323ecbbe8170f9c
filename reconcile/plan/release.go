package plan

import (
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// endAsked is how Git asks for the server to be taken from its claim, "" if it does not.
func (s *server) endAsked() string {
	gone := s.claim == nil && s.fleet.renamed[s.name] == nil && s.fleet.claimRemoved(s.rec)
	switch {
	case s.rec.Life.State == model.StateReleased && s.claim == nil && s.spec != nil && !s.retains() && !s.claimQuarantined():
		return proposal.StepWipe
	case s.rec.Life.State == model.StateReleased:
		return ""
	case gone && s.retains():
		return proposal.StepRetain
	case gone:
		return proposal.StepRelease
	}
	return ""
}

// retains reports whether Git says that the server's disks stay as they are when it is released.
func (s *server) retains() bool {
	return s.spec != nil && s.spec.Spec.ReclaimPolicy == model.ReclaimRetain
}

// decideRelease takes the decision to release, which needs no BMC: the boot
// ticket is revoked at once, whatever else the server waits for.
func (s *server) decideRelease() (Step, bool) {
	switch {
	case s.rec.Life.State != model.StateReserved || s.fleet.observeOnly.Reason != "":
		return Step{}, false
	case s.rec.Release != nil && s.claim != nil && (s.rec.Install.Digest != "" || proposal.InstallUnknown(s.rec)):
		return s.withdrawRelease(), true
	case s.rec.Release != nil || !s.may(proposal.StepRelease) && !s.may(proposal.StepRetain):
		return Step{}, false
	}
	rec, retain := s.edit(), s.endAsked() == proposal.StepRetain
	s.announce(model.IntentRelease, string(rec.Claim.Name))
	if s.servedUnreported() && !proposal.InstallUnknown(rec) {
		s.noteInstalled()
	}
	rec.Release = &model.Release{Revision: s.fleet.in.Desired.Revision, At: s.now(), Claim: rec.Claim.Name, Retain: retain}
	s.revoke()
	rec.Life.NotBefore, rec.Life.Failures, rec.Life.LastError, rec.Boot.Problem = time.Time{}, 0, "", nil
	return s.stay(), true
}

// withdrawRelease keeps a server for its claim that is back before anything was done. Its
// ticket counts again where that is of use.
func (s *server) withdrawRelease() Step {
	s.edit().Release = nil
	always := s.claim.Annotations[model.AnnotationBoot] == "always"
	if t := s.rec.Boot.Ticket; t != nil && t.Digest == s.rec.Install.Digest && !t.AwaitingOff && (always || s.unconfirmed()) {
		again := *t
		again.Always, again.Ended = always, model.TicketBooted
		if s.unconfirmed() {
			again.Ended = "" // it may yet report
		}
		s.rec.Boot.Ticket = &again
	}
	return s.stay()
}

// releasing powers the server off and hands it on, unless its claim was put back meanwhile in a way
// that cannot be used. Disks that were to stay as they are when that was decided are not wiped for
// what Git says since: that is for the guard.
func (s *server) releasing() Step {
	if s.claim == nil && s.claimQuarantined() {
		return s.rest(s.quarantinedWhy())
	}
	st, done := s.off(s.fleet.in.Policy.PowerOffGrace)
	if !done {
		return st
	}
	retain := s.rec.Release.Retain || s.retains()
	if !retain && s.spec == nil && s.fleet.maybeUnreadable(model.KindServer, string(s.name)) && !s.fleet.removed(s.name.Identity()) {
		return s.rest(s.why(model.ReasonManifestUnreadable, "its manifest may say to retain its disks, but cannot be read; "+
			"see "+model.ReportProblems).By(proposal.RackOperator))
	}
	rec := s.edit()
	rec.Install.Reprovision, rec.Boot.Attempts = "", 0
	if retain {
		return s.enter(model.StateReleased)
	}
	return s.giveUp()
}

// giveUp has the server wiped: what runs on it, or may do so, is to go.
func (s *server) giveUp() Step {
	rec := s.edit()
	rec.Claim.Name, rec.Claim.Tenant, rec.Install.Digest, rec.Install.Unconfirmed, rec.Claim.Power, rec.Doubt = "", "", "", time.Time{}, "", nil
	return s.enter(model.StateCleanup)
}

// released keeps a server as it was until a person acts.
func (s *server) released() Step {
	switch {
	case s.claim != nil:
		s.edit().Release = nil
		s.announce(model.IntentBind, string(s.rec.Claim.Name))
		return s.enter(model.StateReserved)
	case s.endAsked() == proposal.StepWipe && s.may(proposal.StepWipe):
		return s.wipeReleased()
	case s.intends(model.IntentWipe, string(s.rec.Claim.Name)):
		s.edit().Intent = nil // should it be asked for again, that is decided anew
		return s.stay()
	case len(s.fleet.blockedByGuard[s.name]) > 0 || s.claimQuarantined():
		return s.rest(s.notReleased())
	}
	return s.rest(s.whySince(model.ReasonRetained, "kept as it is by reclaimPolicy Retain; set Recycle to have it wiped", proposal.RackOperator))
}

// wipeReleased has a server wiped that was kept as it was, once the status branch shows that: until
// then a commit may take it back.
func (s *server) wipeReleased() Step {
	if !s.intends(model.IntentWipe, string(s.rec.Claim.Name)) {
		s.announce(model.IntentWipe, string(s.rec.Claim.Name))
		return s.stay()
	}
	if why := s.unannounced(); why.Reason != "" {
		return s.rest(why)
	}
	return s.giveUp()
}

// claimQuarantined reports whether the server's claim may stand in Git again, in a way that cannot
// be used.
func (s *server) claimQuarantined() bool {
	return s.rec.Claim.Name != "" && s.fleet.in.Desired.IsQuarantinedOf(s.rec.Claim.Name.Identity(), s.rec.Claim.Tenant)
}

func (s *server) quarantinedWhy() proposal.Why {
	return s.whySince(model.ReasonClaimQuarantined, "its claim is in Git but cannot be used; see "+model.ReportProblems, proposal.Tenant)
}

// notReleased says why a server whose claim is gone is not released.
func (s *server) notReleased() proposal.Why {
	id := s.rec.Claim.Name.Identity()
	absent, listed := s.fleet.in.Desired.Absence(id)
	switch {
	case len(s.fleet.blockedByGuard[s.name]) > 0:
		return s.guardWhy(s.fleet.blockedByGuard[s.name][0])
	case s.fleet.in.Desired.IsQuarantined(id):
		return s.quarantinedWhy()
	case listed:
		return AbsentWhy("its claim "+string(s.rec.Claim.Name), absent)
	}
	return s.whySince(model.ReasonAbsentWithoutCommit, "its claim is not in Git, and no commit took it away: put it back, or remove it "+
		"by a commit", proposal.RackOperator)
}
