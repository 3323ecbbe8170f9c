package service

import (
	"slices"

	"ingot/model"
	"ingot/reconcile/plan/event"
	"ingot/reconcile/plan/proposal"
)

// operationAttempts is how often an operation is tried that the BMC refuses.
const operationAttempts = 3

var resets = map[string]model.ResetKind{
	model.OperationGracefulRestart: model.ResetGracefulRestart,
	model.OperationHardRestart:     model.ResetForceRestart,
	model.OperationPowerCycle:      model.ResetPowerCycle,
	model.OperationForceOff:        model.ResetForceOff,
	model.OperationForceOn:         model.ResetOn,
}

// DecideOperation notes each new value of the operation annotation, in the states in which it disturbs nothing.
func DecideOperation(s *server) (p proposal.Proposal, ok bool) {
	name, value := s.Requested()
	reset, known := resets[name]
	op := s.Record.Requests.Operation
	if !known || proposal.WasHandled(s.Record, proposal.AskedOperation, value) || s.Record.Release != nil || !mayOperate(s) || op != nil && op.Outcome == "" {
		return p, false
	}
	p = s.Change(func(rec *model.ServerRecord) {
		proposal.MarkHandled(rec, proposal.AskedOperation, value)
		rec.Requests.Operation = &model.Operation{Value: value, Reset: reset, NotedAt: s.Now}
		event.Announce(s, rec, model.IntentOperation, value)
	}).Stay(proposal.Decide).As(proposal.StepOperation)
	if s.IsBound() && reset != model.ResetOn {
		p.Takes = &model.Disruption{Action: proposal.StepOperation, Value: value}
	}
	return p, true
}

// mayOperate reports whether a power operation disturbs nothing of Ingot's own. Elsewhere it is deferred.
func mayOperate(s *server) bool {
	return slices.Contains([]model.ServerState{model.StateAvailable, model.StateReserved, model.StateReleased, model.StateError}, s.State())
}

// Operation carries on with the recorded operation. One whose answer was lost may have been done: it is not repeated.
func Operation(s *server) (p proposal.Proposal, ok bool) {
	op := s.Record.Requests.Operation
	if op == nil || op.Outcome != "" || s.Record.Release != nil || !mayOperate(s) {
		return p, false
	}
	next := *op
	switch {
	case !op.AskedAt.IsZero():
		next.Outcome, next.Message = model.OutcomeUnknown, "Ingot was stopped while the BMC was asked"
	case withdrawn(s, op.Value):
		next.Outcome, next.Message = model.OutcomeWithdrawn, "Git does not ask for it any more, and it was not begun"
	case s.Record.Life.Failures >= operationAttempts:
		next.Outcome, next.Message = model.OutcomeRefused, s.Record.Life.LastError
	case s.Over(op.NotedAt, s.Policy.OperationExpiry):
		next.Outcome, next.Message = model.OutcomeExpired, "it could not be begun in time; give the annotation a new value to ask for it again"
	default:
		next.AskedAt = s.Now
		goal := &proposal.Goal{Reset: op.Reset}
		if boots(s, op.Reset) && onDisk(s) {
			goal.From = proposal.FromDisk
		}
		s = s.Change(func(rec *model.ServerRecord) { rec.Requests.Operation = &next })
		return proposal.Proposal{Of: s, Kind: proposal.Act, Goal: goal}, true
	}
	return s.Change(func(rec *model.ServerRecord) { // so that it holds nothing else up
		rec.Requests.Operation, rec.Life.Failures, rec.Life.LastError, rec.Life.LastReason = &next, 0, "", ""
	}).Stay(proposal.Look), true
}

// withdrawn reports whether Git no longer asks for it: not if its manifest is unreadable, nor by a retry.
func withdrawn(s *server, value string) bool {
	name, now := s.Requested()
	if s.Manifest == nil {
		return s.Removed(s.Name.Identity())
	}
	return now != value && name != model.OperationRetry
}

func boots(s *server, reset model.ResetKind) bool {
	restarts := []model.ResetKind{model.ResetGracefulRestart, model.ResetForceRestart, model.ResetPowerCycle}
	return slices.Contains(restarts, reset) || reset == model.ResetOn && s.Power() == model.PowerOff
}

// onDisk reports whether the server should start from its disk next: its image is, or is being, installed there.
func onDisk(s *server) bool {
	state, t := s.State(), s.Ticket()
	if state == model.StateError {
		state = s.Record.Life.Back
	}
	switch {
	case state != model.StateReserved && state != model.StateReleased:
		return false
	case t != nil && t.Always && t.MayBoot(s.Progress()):
		return false
	}
	return s.HasInstall() || s.AwaitsOff(model.PurposeClaim) ||
		s.Opened(model.PurposeClaim) && s.TicketState() == model.TicketIgnitionServed
}
