package reconcile

import (
	"time"

	"ingot/model"
)

// withheld says why a server whose claim is gone is not released.
func (s *server) withheld() Why {
	switch {
	case s.fleet.held[s.name]:
		return s.whySince("GuardHeld", "the guard holds its release back until a commit approves it; see "+model.ReportRevision, RackOperator)
	case s.fleet.in.Desired.Incomplete:
		return s.whySince("SourceIncomplete", "its claim is not in Git, but a file that cannot be read may hold it; see "+model.ReportProblems, Tenant)
	}
	return s.whySince("ClaimQuarantined", "its claim stands in Git but cannot be used; see "+model.ReportProblems, Tenant)
}

// decideRelease takes the decision to release, which needs no BMC: the boot
// ticket is revoked at once, whatever else the server waits for.
func (s *server) decideRelease() (Step, bool) {
	switch {
	case s.rec.State != model.StateReserved || s.fleet.observeOnly.Reason != "" || s.rec.Restored:
		return Step{}, false
	case s.rec.Release != nil && s.claim != nil && s.rec.Installed != "":
		s.edit().Release = nil // the claim is back before anything was done
		return s.stay(), true
	case s.rec.Release != nil || !s.fleet.toRelease[s.name]:
		return Step{}, false
	}
	rec := s.edit()
	rec.Release = &model.Release{Revision: s.fleet.in.Desired.Revision, At: s.now(), Claim: rec.Claim}
	s.end(model.TicketSpent)
	if rec.Ticket != nil {
		t := *rec.Ticket
		t.Always = false
		rec.Ticket = &t
	}
	rec.NotBefore, rec.Failures, rec.LastError = time.Time{}, 0, ""
	return s.stay(), true
}

// releasing powers the server off and hands it on.
func (s *server) releasing() Step {
	st, done := s.off(s.fleet.in.Policy.PowerOffGrace)
	if !done {
		return st
	}
	rec := s.edit()
	rec.Installed, rec.Reprovision, rec.Attempts = "", "", 0
	if s.spec != nil && s.spec.Spec.ReclaimPolicy == model.ReclaimRetain {
		rec.Installed = "retained"
		return s.enter(model.StateReleased)
	}
	rec.Claim = ""
	return s.enter(model.StateCleanup)
}

// released keeps a server as it was until a person acts.
func (s *server) released() Step {
	switch {
	case s.claim != nil:
		return s.enter(model.StateReserved)
	case s.spec == nil || s.spec.Spec.ReclaimPolicy != model.ReclaimRetain:
		s.edit().Claim = ""
		return s.enter(model.StateCleanup)
	}
	return s.rest(s.whySince("Retained", "kept as it is by reclaimPolicy Retain; set Recycle to have it wiped", RackOperator))
}
