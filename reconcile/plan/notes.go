package plan

import (
	"slices"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/bmcs"
	"ingot/reconcile/plan/event"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/world"
)

// noteOrphaned has the record say since when a commit has taken the server's BMC away.
func (f *planner) noteOrphaned(s *world.Server) (p proposal.Proposal, ok bool) {
	gone := s.Behind == nil && f.BMCRemoved(s.Record)
	if gone == !s.Record.Orphaned.IsZero() {
		return p, false
	}
	return s.Change(func(rec *model.ServerRecord) {
		rec.Orphaned = time.Time{}
		if gone {
			rec.Orphaned = f.In.Now
		}
	}).Stay(proposal.Note), true
}

// forget drops the record of a server whose BMC is gone from Git: after a while if it is free, else on request. The
// status branch shows that first, so that an Ingot that finds the record only there drops it as well.
func (f *planner) forget(s *world.Server) (p proposal.Proposal, ok bool) {
	v := s.Server
	name, value := v.Requested()
	asked := name == model.OperationForget && !proposal.WasHandled(s.Record, proposal.AskedOperation, value)
	waits := v.Wait(time.Time{}, s.Blocked)
	waits.Kind = proposal.Note
	switch {
	case f.In.Desired.KeptOverRestart:
		return p, false
	case asked && s.Unforgettable() != "":
		return refuse(v, value, s.Unforgettable()), true
	case asked && !s.ReleaseAwaited():
	case s.Blocked.Reason != model.ReasonDecommissioned:
		return remember(v)
	case f.In.Now.Before(s.RememberedUntil()):
		return waits.WakeBy(s.RememberedUntil()), true
	default:
		value = string(s.Record.BMC)
	}
	switch why := f.laws.Unshown(v); {
	case why.Reason != "": // or what was decided before would count as shown
		waits.Why = why
		return waits, true
	case !v.Intends(model.IntentForget, value):
		p = v.Change(func(rec *model.ServerRecord) { event.Announce(v, rec, model.IntentForget, value) }).Stay(proposal.Decide)
		p.Blind = true
		return p, true
	case f.In.BusyBMCs[s.Record.BMC], !asked && slices.ContainsFunc(f.BMCs.BMCs, (*bmcs.BMC).IsUnasked):
		return waits, true // one of them may be about to show it
	}
	return proposal.Proposal{Of: v, Kind: proposal.Act, Waits: true, Blind: true, Why: s.Blocked, What: proposal.StepForget}, true
}

func remember(s *proposal.Server) (p proposal.Proposal, ok bool) {
	if i := s.Record.Intent; i == nil || i.Kind != model.IntentForget {
		return p, false
	}
	return s.Change(func(rec *model.ServerRecord) { rec.Intent = nil }).Stay(proposal.Note), true
}

func refuse(s *proposal.Server, value, why string) proposal.Proposal {
	return s.Change(func(rec *model.ServerRecord) {
		proposal.MarkHandled(rec, proposal.AskedOperation, value)
		rec.Requests.Operation = &model.Operation{Value: value, NotedAt: s.Now, Outcome: model.OutcomeRefused, Message: why}
	}).Stay(proposal.Note).As(proposal.StepOperation)
}

// noteBootstrapped records for which rules the server was ready once, also for rules that cannot be read now.
func (f *planner) noteBootstrapped(s *world.Server) (p proposal.Proposal, ok bool) {
	known := s.Record.Life.BootstrapCompleted
	gone := func(rule string) bool {
		return f.In.Desired.ReadinessRules[rule] == nil && f.Moment.Removed(model.ReadinessRuleIdentity(rule))
	}
	if len(s.Bootstrapped) == 0 && !slices.ContainsFunc(known, gone) {
		return p, false
	}
	all := slices.DeleteFunc(slices.Clone(known), gone)
	all = append(all, s.Bootstrapped[:min(len(s.Bootstrapped), max(0, model.MaxBootstrapCompleted-len(all)))]...)
	slices.Sort(all)
	if slices.Equal(all, known) {
		return p, false // there are more than are remembered: the others are checked each time
	}
	return s.Change(func(rec *model.ServerRecord) { rec.Life.BootstrapCompleted = all }).Stay(proposal.Note), true
}
