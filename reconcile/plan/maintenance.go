package plan

import (
	"fmt"
	"time"

	"ingot/model"
)

// maintenance takes a server out of service when Git asks for it.
func (s *server) maintenance() (Step, bool) {
	asked, bound := s.fleet.maintenance(s), s.rec.State == model.StateReserved
	switch {
	case asked.by == "" || s.rec.Release != nil || !bound && s.rec.State != model.StateAvailable:
		return Step{}, false
	case bound && !s.intends(model.IntentMaintenance, asked.by):
		if !s.may(stepMaintenance) {
			return Step{}, false // it goes on as it did
		}
		s.announce(model.IntentMaintenance, asked.by)
		return s.stay(), true
	}
	st, done := s.off(s.fleet.in.Policy.PowerOffGrace)
	if !done {
		return st, true
	}
	rec := s.edit()
	rec.Back, rec.MaintainedBy = rec.State, asked.by
	if s.opened(model.PurposeClaim) && s.rec.Ticket.State(s.progress()) != model.TicketIgnitionServed {
		s.end(model.TicketSpent)
	}
	return s.enter(model.StateMaintenance), true
}

// maintained keeps hands off until Git no longer asks for maintenance.
func (s *server) maintained() Step {
	asked := s.fleet.maintenance(s)
	switch {
	case asked.by != "" && asked.by != s.rec.MaintainedBy:
		s.edit().MaintainedBy = asked.by
		return s.stay()
	case asked.by != "":
		return s.rest(s.whySince(model.ReasonMaintenance, asked.why, RackOperator))
	case !s.maintenanceOver():
		return s.rest(s.whySince(model.ReasonMaintenance, "kept out of service, for no commit took away what asked for it: it cannot be read, or is absent; see "+model.ReportProblems+" and "+model.ReportRevision, RackOperator))
	}
	rec := s.edit()
	back := rec.Back
	if by := rec.MaintainedBy; by != "" && by != model.OperationPark {
		rec.ServicedAt = s.now()
	}
	rec.Back, rec.MaintainedBy, rec.Intent = "", "", nil
	return s.enter(back, Inspect{Inventory: true})
}

// servicedLimit is how long a BMC may take to show what a ServerMaintenance changed.
const servicedLimit = 15 * time.Minute

// serviced looks what a ServerMaintenance changed, before anything else is done. Of a
// BMC that does not show it in time nothing counts as changed.
func (s *server) serviced() (Step, bool) {
	switch {
	case s.rec.ServicedAt.IsZero():
		return Step{}, false
	case s.over(s.rec.ServicedAt, servicedLimit):
		s.edit().ServicedAt = time.Time{}
		return s.stay(), true
	case s.facts.Inventory == nil || s.reading.InventoryAt.Before(s.rec.ServicedAt):
		return s.stay(Inspect{Inventory: true}), true
	}
	s.noteReplaced()
	return s.stay(), true
}

// maintenanceOver reports whether a commit took away what the server is in Maintenance
// for, or has it ask for something else. A manifest that is merely absent still asks.
func (s *server) maintenanceOver() bool {
	f, by := s.fleet, s.rec.MaintainedBy
	switch by {
	case "": // of before it was recorded
		return !f.mayHide(model.KindServerMaintenance, "") && (s.spec != nil || !f.mayHide(model.KindServer, string(s.name)))
	case model.OperationPark:
		return s.spec != nil || f.removed(s.name.Identity())
	}
	if m := f.in.Desired.Maintenances[by]; m != nil && !f.namesake(m) {
		return f.resolve(m.Spec.ServerRef.Name) != s.name
	}
	return f.removed(model.MaintenanceIdentity(by))
}

// retry leaves Error, or drops the pause after a failure, when Git asks anew.
func (s *server) retry() (Step, bool) {
	name, value := s.requested()
	if name != model.OperationRetry || WasHandled(s.rec, AskedOperation, value) {
		return Step{}, false
	}
	rec := s.edit()
	handle(rec, AskedOperation, value)
	if FailedBoot(rec.BootProblem) && rec.Ticket.State(s.progress()) != model.TicketIgnitionServed {
		s.end(model.TicketSpent) // the next is one that the server is powered on for
	}
	rec.Attempts, rec.Failures, rec.LastError, rec.BootProblem, rec.NoDiskBoot = 0, 0, "", nil, nil
	s.forgetThefts()
	if installUnknown(rec) {
		rec.Doubt = nil // a person says that it is not installed
		s.end(model.TicketSpent)
	}
	if a := rec.Asked; a != nil && a.Unsure {
		rec.Asked = nil
	}
	rec.NotBefore = time.Time{}
	if rec.State != model.StateError {
		return s.stay(), true
	}
	back := rec.Back
	rec.Back = ""
	return s.enter(back), true
}

// newRetry is a value of the operation annotation that asks anew for a retry.
func (s *server) newRetry() string {
	for n := 1; ; n++ {
		v := fmt.Sprintf("%s#%d", model.OperationRetry, n)
		if !WasHandled(s.rec, AskedOperation, v) {
			return v
		}
	}
}

// operationAttempts is how often an operation is tried that the BMC refuses.
const operationAttempts = 3

// resets are the operations that ask for one power request.
var resets = map[string]model.ResetKind{
	model.OperationGracefulRestart: model.ResetGracefulRestart,
	model.OperationHardRestart:     model.ResetForceRestart,
	model.OperationPowerCycle:      model.ResetPowerCycle,
	model.OperationForceOff:        model.ResetForceOff,
	model.OperationForceOn:         model.ResetOn,
}

// operation does what the operation annotation asks for, at most once for each new
// value, in the states in which it disturbs nothing of Ingot's own: it is recorded as
// handled first, shown on the status branch, recorded as asked for, and only then asked
// for. Of a request whose answer was lost nobody knows whether it was carried out, and
// it is not repeated.
func (s *server) operation() (Step, bool) {
	if st, ok := s.operate(); ok {
		return st, true
	}
	name, value := s.requested()
	reset, known := resets[name]
	if !known || WasHandled(s.rec, AskedOperation, value) || s.rec.Release != nil || !s.mayOperate() {
		return Step{}, false
	}
	if s.bound() && reset != model.ResetOn && !s.may(stepOperation) {
		return Step{}, false
	}
	rec := s.edit()
	handle(rec, AskedOperation, value)
	rec.Operation = &model.Operation{Value: value, Reset: reset, NotedAt: s.now()}
	s.announce(model.IntentOperation, value)
	return s.stay(), true
}

// mayOperate reports whether a power operation disturbs nothing of Ingot's own.
func (s *server) mayOperate() bool {
	switch s.rec.State {
	case model.StateInitial, model.StateDiscovery, model.StateCleanup, model.StateMaintenance:
		return false // deferred
	case model.StateAvailable, model.StateReserved, model.StateReleased, model.StateError:
	}
	return true
}

// operate carries on with the operation that was recorded last.
func (s *server) operate() (Step, bool) {
	op := s.rec.Operation
	if op == nil || op.Outcome != "" || s.rec.Release != nil || !s.mayOperate() {
		return Step{}, false
	}
	next := *op
	switch {
	case !op.AskedAt.IsZero():
		next.Outcome, next.Message = model.OutcomeUnknown, "Ingot was stopped while the BMC was asked"
	case s.rec.Failures >= operationAttempts:
		next.Outcome, next.Message = model.OutcomeRefused, s.rec.LastError
	case s.over(op.NotedAt, s.fleet.in.Policy.OperationExpiry):
		next.Outcome, next.Message = model.OutcomeExpired, "it could not be begun in time; give the annotation a new value to ask for it again"
	default:
		next.AskedAt = s.now()
		s.edit().Operation = &next
		if s.boots(op.Reset) && s.onDisk() {
			return s.ask(op.Reset, s.diskOnce()...), true
		}
		return s.ask(op.Reset), true
	}
	rec := s.edit()
	rec.Operation, rec.Failures, rec.LastError = &next, 0, "" // so that it holds nothing else up
	return s.stay(), true
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
	rec.Claim, rec.ClaimedAt, rec.WantPower = s.claim.ClaimName(), s.now(), s.claim.Spec.Power
	rec.Tenant = s.claim.Tenant
	s.announce(model.IntentAdopt, string(rec.Claim))
	handleAnew(rec, AskedReprovision, s.claim.Annotations[model.AnnotationReprovision])
	rec.FoundRunning = time.Time{}
	boot, _ := s.claimBoot()
	rec.Installed, rec.Unconfirmed = s.digest(&boot), time.Time{}
	return s.enter(model.StateReserved)
}
