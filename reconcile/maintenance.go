package reconcile

import (
	"fmt"
	"time"

	"ingot/model"
)

// maintenance takes a server out of service when Git asks for it.
func (s *server) maintenance() (Step, bool) {
	asked, _ := s.fleet.maintenance(s)
	if !asked || s.rec.Release != nil ||
		s.rec.State != model.StateAvailable && s.rec.State != model.StateReserved {
		return Step{}, false
	}
	st, done := s.off(s.fleet.in.Policy.PowerOffGrace)
	if !done {
		return st, true
	}
	rec := s.edit()
	rec.Back = rec.State
	if s.opened(model.PurposeClaim) && s.rec.Ticket.State(s.progress()) != model.TicketIgnitionServed {
		s.end(model.TicketSpent)
	}
	return s.enter(model.StateMaintenance), true
}

// maintained keeps hands off until Git no longer asks for maintenance.
func (s *server) maintained() Step {
	asked, why := s.fleet.maintenance(s)
	switch {
	case asked:
		return s.rest(s.whySince("Maintenance", why, RackOperator))
	case s.fleet.mayHide(model.KindServerMaintenance, "") || s.spec == nil && s.fleet.mayHide(model.KindServer, string(s.name)):
		return s.rest(s.whySince("Maintenance", "kept out of service, for a manifest that cannot be read may say so; see "+model.ReportProblems, RackOperator))
	}
	rec := s.edit()
	back := rec.Back
	rec.Back = ""
	return s.enter(back, Inspect{Inventory: true})
}

// retry leaves Error, or drops the pause after a failure, when Git asks anew.
func (s *server) retry() (Step, bool) {
	name, value := s.requested()
	if name != model.OperationRetry || wasHandled(s.rec, askedOperation, value) {
		return Step{}, false
	}
	rec := s.edit()
	handle(rec, askedOperation, value)
	if failedBoot(rec.BootProblem) && rec.Ticket.State(s.progress()) != model.TicketIgnitionServed {
		s.end(model.TicketSpent) // the next is one that the server is powered on for
	}
	rec.Attempts, rec.Failures, rec.LastError, rec.BootProblem, rec.NoDiskBoot = 0, 0, "", nil, nil
	rec.NotBefore = time.Time{}
	if rec.State != model.StateError {
		return s.stay(), true
	}
	back := rec.Back
	rec.Back, rec.Missing = "", letGo(rec.Missing)
	return s.enter(back), true
}

// newRetry is a value of the operation annotation that asks anew for a retry.
func (s *server) newRetry() string {
	for n := 1; ; n++ {
		v := fmt.Sprintf("%s#%d", model.OperationRetry, n)
		if !wasHandled(s.rec, askedOperation, v) {
			return v
		}
	}
}

// operationAttempts is how often a refused operation is tried.
const operationAttempts = 3

// resets are the operations that ask for one power request.
var resets = map[string]model.ResetKind{
	model.OperationGracefulRestart: model.ResetGracefulRestart,
	model.OperationHardRestart:     model.ResetForceRestart,
	model.OperationPowerCycle:      model.ResetPowerCycle,
	model.OperationForceOff:        model.ResetForceOff,
	model.OperationForceOn:         model.ResetOn,
}

// operation does what the operation annotation asks for, once for each new
// value, in the states in which it disturbs nothing of Ingot's own.
func (s *server) operation() (Step, bool) {
	name, value := s.requested()
	reset, known := resets[name]
	if !known || wasHandled(s.rec, askedOperation, value) || s.rec.Release != nil {
		return Step{}, false
	}
	switch s.rec.State {
	case model.StateInitial, model.StateDiscovery, model.StateCleanup, model.StateMaintenance:
		return Step{}, false // deferred
	case model.StateAvailable, model.StateReserved, model.StateReleased, model.StateError:
	}
	rec := s.edit()
	handle(rec, askedOperation, value)
	if rec.Failures >= operationAttempts {
		rec.Failures = 0 // given up, so that it holds nothing else up
		return s.stay(), true
	}
	if s.boots(reset) && s.onDisk() {
		return s.ask(reset, s.diskOnce()...), true
	}
	return s.ask(reset), true
}

// requested is the operation that Git asks for, and the annotation's whole value.
func (s *server) requested() (name, value string) {
	if s.spec == nil {
		return "", ""
	}
	return s.spec.Operation()
}

// adoptable reports whether Git says that this server serves a claim already.
func (s *server) adoptable() bool {
	c := s.adopter()
	return c != nil && s.fleet.served[c.ClaimName()] == ""
}

// adopter is the claim that the server's manifest names in serverClaimRef.
func (s *server) adopter() *model.ServerClaim {
	if s.spec == nil || s.spec.Spec.ServerClaimRef == nil {
		return nil
	}
	ref := s.spec.Spec.ServerClaimRef
	return s.fleet.in.Desired.Claims[model.Named[model.ClaimName](ref.Namespace, ref.Name)]
}

// adopt takes over a server as it runs, without touching it (L01).
func (s *server) adopt() Step {
	s.claim = s.adopter()
	s.fleet.served[s.claim.ClaimName()] = s.name
	rec := s.edit()
	rec.Claim, rec.ClaimedAt = s.claim.ClaimName(), s.now()
	handleAnew(rec, askedReprovision, s.claim.Annotations[model.AnnotationReprovision])
	boot, _ := s.claimBoot()
	rec.Installed = bootDigest(boot)
	return s.enter(model.StateReserved)
}

// restored is the first step of a server whose record was read back from the
// status branch: its BMC has answered now. The branch may lag behind what the
// lost store knew, so a server that runs though it should be off, or of which
// nothing shows that it runs what we booted, may run a tenant's system and is
// left alone.
func (s *server) restored() Step {
	runs, ours := s.power() != model.PowerOff, true
	switch s.rec.State {
	case model.StateAvailable, model.StateInitial:
		ours = false
	case model.StateDiscovery:
		r := s.fleet.in.Observed.Probes[s.name]
		ours = r != nil && s.opened(model.PurposeDiscovery) && r.Ticket == s.rec.Ticket.ID
	case model.StateCleanup:
		r := s.fleet.in.Observed.Wipes[s.name]
		ours = r != nil && s.opened(model.PurposeCleanup) && r.Ticket == s.rec.Ticket.ID
	case model.StateReserved, model.StateReleased, model.StateMaintenance, model.StateError:
	}
	if runs && !ours && !s.discoverAsked() {
		return s.rest(s.foundRunning())
	}
	rec := s.edit()
	rec.Restored = false
	if runs && s.opened(model.PurposeClaim) && !rec.Ticket.Held && rec.Ticket.State(s.progress()) == model.TicketArmed {
		s.leaveBooting()
	}
	handle(rec, askedDiscover, s.annotation(model.AnnotationDiscover))
	return s.stay()
}

// leaveBooting has a server that was booting for its claim when the store was lost go
// on with that, and not be powered off should nothing more be heard of it: it may have
// been installed meanwhile.
func (s *server) leaveBooting() {
	rec := s.edit()
	rec.Attempts = max(rec.Attempts, s.fleet.in.Policy.BootAttempts)
	rec.Asked = &model.PowerAsked{Reset: model.ResetOn, Want: model.PowerOn, At: s.now(), Reached: true}
}
