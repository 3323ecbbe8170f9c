package plan

import (
	"fmt"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

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
// for. Whether a request whose answer was lost was carried out is not known,
// and it is not repeated.
func (s *server) operation() (Step, bool) {
	if st, ok := s.operate(); ok {
		return st, true
	}
	name, value := s.requested()
	reset, known := resets[name]
	if !known || proposal.WasHandled(s.rec, proposal.AskedOperation, value) || s.rec.Release != nil || !s.mayOperate() {
		return Step{}, false
	}
	if s.bound() && reset != model.ResetOn && !s.may(proposal.StepOperation) {
		return Step{}, false
	}
	rec := s.edit()
	proposal.MarkHandled(rec, proposal.AskedOperation, value)
	rec.Requests.Operation = &model.Operation{Value: value, Reset: reset, NotedAt: s.now()}
	s.announce(model.IntentOperation, value)
	return s.stay(), true
}

// mayOperate reports whether a power operation disturbs nothing of Ingot's own.
func (s *server) mayOperate() bool {
	switch s.rec.Life.State {
	case model.StateInitial, model.StateDiscovery, model.StateCleanup, model.StateMaintenance:
		return false // deferred
	case model.StateAvailable, model.StateReserved, model.StateReleased, model.StateError:
	}
	return true
}

// operate carries on with the operation that was recorded last.
func (s *server) operate() (Step, bool) {
	op := s.rec.Requests.Operation
	if op == nil || op.Outcome != "" || s.rec.Release != nil || !s.mayOperate() {
		return Step{}, false
	}
	next := *op
	switch {
	case !op.AskedAt.IsZero():
		next.Outcome, next.Message = model.OutcomeUnknown, "Ingot was stopped while the BMC was asked"
	case s.operationWithdrawn(op.Value):
		next.Outcome, next.Message = model.OutcomeWithdrawn, "Git does not ask for it any more, and it was not begun"
	case s.rec.Life.Failures >= operationAttempts:
		next.Outcome, next.Message = model.OutcomeRefused, s.rec.Life.LastError
	case s.over(op.NotedAt, s.fleet.in.Policy.OperationExpiry):
		next.Outcome, next.Message = model.OutcomeExpired, "it could not be begun in time; give the annotation a new value to ask for it again"
	default:
		next.AskedAt = s.now()
		s.edit().Requests.Operation = &next
		if s.boots(op.Reset) && s.onDisk() {
			return s.ask(op.Reset, s.diskOnce()...), true
		}
		return s.ask(op.Reset), true
	}
	rec := s.edit()
	rec.Requests.Operation, rec.Life.Failures, rec.Life.LastError = &next, 0, "" // so that it holds nothing else up
	return s.stay(), true
}

// operationWithdrawn reports whether Git asks for something else by now, or for nothing: not where its
// word cannot be read. Who asks for a retry has what failed tried again.
func (s *server) operationWithdrawn(value string) bool {
	name, now := s.requested()
	if s.spec == nil {
		return s.fleet.removed(s.name.Identity())
	}
	return now != value && name != model.OperationRetry
}

// requested is the operation that Git asks for, and the annotation's whole value.
func (s *server) requested() (name, value string) {
	if s.spec == nil {
		return "", ""
	}
	return s.spec.Operation()
}

// retry leaves Error, or drops the pause after a failure, when Git asks anew.
func (s *server) retry() (Step, bool) {
	name, value := s.requested()
	if name != model.OperationRetry || proposal.WasHandled(s.rec, proposal.AskedOperation, value) {
		return Step{}, false
	}
	rec := s.edit()
	proposal.MarkHandled(rec, proposal.AskedOperation, value)
	if proposal.FailedBoot(rec.Boot.Problem) && rec.Boot.Ticket.State(s.progress()) != model.TicketIgnitionServed {
		s.end(model.TicketSpent) // the next is one that the server is powered on for
	}
	rec.Boot.Attempts, rec.Life.Failures, rec.Life.LastError, rec.Boot.Problem, rec.Boot.NoDiskBoot = 0, 0, "", nil, nil
	rec.Settings.IndicatorProblem, rec.Settings.BootOrderProblem = nil, nil
	s.forgetThefts()
	s.forgetAgain()
	if proposal.InstallUnknown(rec) {
		rec.Doubt = nil // a person says that it is not installed
		s.end(model.TicketSpent)
	}
	if a := rec.Power.Asked; a != nil && a.Unsure {
		rec.Power.Asked = nil
	}
	rec.Life.NotBefore = time.Time{}
	if rec.Life.State != model.StateError {
		return s.stay(), true
	}
	back := rec.Life.Back
	rec.Life.Back = ""
	return s.enter(back), true
}

// newRetry is a value of the operation annotation that asks anew for a retry.
func (s *server) newRetry() string { return s.newOperation(model.OperationRetry) }

// newOperation is a value of the operation annotation that asks anew for an operation.
func (s *server) newOperation(name string) string {
	for n := 1; ; n++ {
		v := fmt.Sprintf("%s#%d", name, n)
		if !proposal.WasHandled(s.rec, proposal.AskedOperation, v) {
			return v
		}
	}
}
