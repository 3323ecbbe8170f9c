package plan

import (
	"slices"

	"ingot/model"
	"ingot/model/text"
)

// The steps that take something away from a server's user.
const (
	stepRelease     = "release"
	stepRetain      = "retain"
	stepWipe        = "wipe" // of a Released server
	stepReprovision = "reprovision"
	stepMaintenance = "maintenance"
	stepPowerOff    = "power-off"
	stepOperation   = "operation"
	stepDiscover    = "discover" // of a server that was found running
)

// guard decides which disruptive steps may be begun: so many within a window of time,
// whatever commits ask for them, and the others once a commit approves their list
// (law 2). What was decided before does not count again.
func (f *fleet) guard() {
	if f.observeOnly.Reason != "" {
		return
	}
	var asked []model.Disruption
	for _, d := range f.disruptions() {
		if f.endApproved(d) {
			f.allowed[d.Server] = append(f.allowed[d.Server], d)
			continue
		}
		asked = append(asked, d)
	}
	r := judgeWindow(windowInput{
		Asked: asked, Record: f.record, Bound: f.boundByNamespace(), Approvals: f.in.Desired.Approvals,
		Limits: windowLimits{
			MaxDisruptions: f.in.Policy.MaxDisruptions, MaxPowerDisruptions: f.in.Policy.MaxPowerDisruptions, Window: f.in.Policy.GuardWindow,
		},
		Revision: f.in.Desired.Revision, Now: f.in.Now, Seed: f.in.Nonce,
	})
	f.record.Holds, f.record.ApprovedSteps, f.record.Done = r.Holds, r.Letting, r.Done
	f.guardNext = r.Next
	for _, d := range r.Allowed {
		f.allowed[d.Server] = append(f.allowed[d.Server], d)
	}
	for _, d := range asked {
		if _, held := r.Held[keyOf(d)]; held {
			f.held[d.Server] = append(f.held[d.Server], d)
		}
	}
}

// boundByNamespace counts the servers that claims have.
func (f *fleet) boundByNamespace() map[string]int {
	bound := make(map[string]int)
	for _, s := range f.servers {
		if s.bound() {
			ns, _ := model.SplitName(s.rec.Claim)
			bound[ns]++
		}
	}
	return bound
}

// bound reports whether the server is in use: a claim has it, or had it and left its
// disks.
func (s *server) bound() bool {
	switch s.rec.State {
	case model.StateReserved, model.StateReleased:
		return true
	case model.StateMaintenance, model.StateError:
		return s.rec.Back == model.StateReserved || s.rec.Back == model.StateReleased
	case model.StateInitial, model.StateDiscovery, model.StateAvailable, model.StateCleanup:
	}
	return false
}

// disruptions lists what Git asks for that takes something from users of servers, and
// that was not decided yet, in the order of servers.
func (f *fleet) disruptions() []model.Disruption {
	var steps []model.Disruption
	for _, s := range f.servers {
		if s.doubted() {
			continue
		}
		for _, d := range s.disruptions() {
			d.Server, d.Claim = s.name, s.rec.Claim
			steps = append(steps, d)
		}
	}
	return steps
}

// disruptions is what Git asks for that takes something from the server's user, one
// step after the other.
func (s *server) disruptions() []model.Disruption {
	switch {
	case s.rec.State == model.StateInitial:
		return s.discoverSteps()
	case !s.bound() || s.rec.State == model.StateReserved && s.rec.Release != nil:
		return nil
	}
	if action := s.endAsked(); action != "" {
		return []model.Disruption{{Action: action, Value: text.Time(s.rec.ClaimedAt)}}
	}
	var steps []model.Disruption
	if s.rec.State == model.StateReserved {
		steps = s.reservedSteps()
	}
	name, value := s.requested()
	if reset, known := resets[name]; known && reset != model.ResetOn && !WasHandled(s.rec, AskedOperation, value) && s.mayOperate() {
		steps = append(steps, model.Disruption{Action: stepOperation, Value: value})
	}
	return steps
}

// discoverSteps is that Git asks for a server to be discovered that was found running.
func (s *server) discoverSteps() []model.Disruption {
	value := s.annotation(model.AnnotationDiscover)
	if s.power() != model.PowerOn || !s.discoverAsked() || s.opened(model.PurposeDiscovery) || s.intends(model.IntentDiscover, value) {
		return nil
	}
	return []model.Disruption{{Action: stepDiscover, Value: value}}
}

// reservedSteps are what Git asks for that a Reserved server's claim has to bear.
func (s *server) reservedSteps() (steps []model.Disruption) {
	if m := s.fleet.maintenance(s); m.by != "" && !s.intends(model.IntentMaintenance, m.by) {
		steps = append(steps, model.Disruption{Action: stepMaintenance, Value: m.by})
	}
	if s.claim == nil {
		return steps
	}
	if s.claim.Spec.Power == model.PowerOff && s.rec.WantPower == model.PowerOn {
		steps = append(steps, model.Disruption{Action: stepPowerOff, Value: string(model.PowerOff)})
	}
	if s.reprovisionAsked() && (s.rec.Installed != "" || installUnknown(s.rec)) {
		steps = append(steps, model.Disruption{Action: stepReprovision, Value: s.claim.Annotations[model.AnnotationReprovision]})
	}
	return steps
}

// endAsked is how Git asks for the server to be taken from its claim, "" if it does not.
func (s *server) endAsked() string {
	_, removed := s.fleet.claimRemoval(s.rec)
	gone := removed && s.claim == nil && s.fleet.renamed[s.name] == nil
	retained := s.spec != nil && s.spec.Spec.ReclaimPolicy == model.ReclaimRetain
	switch {
	case s.rec.State == model.StateReleased && s.claim == nil && s.spec != nil && !retained:
		return stepWipe
	case s.rec.State == model.StateReleased:
		return ""
	case gone && retained:
		return stepRetain
	case gone:
		return stepRelease
	}
	return ""
}

// endApproved reports whether a step takes a server from a claim of which a person
// approved that it is gone: that is an approval for the guard too.
func (f *fleet) endApproved(d model.Disruption) bool {
	if d.Action != stepRelease && d.Action != stepRetain || f.byName[d.Server].rec.State != model.StateReserved {
		return false
	}
	r, _ := f.claimRemoval(f.byName[d.Server].rec)
	return r.Approved
}

// reprovisionAsked reports whether the claim asks anew to be installed again.
func (s *server) reprovisionAsked() bool {
	v := s.claim.Annotations[model.AnnotationReprovision]
	return v != "" && !WasHandled(s.rec, AskedReprovision, v)
}

// decideReprovisions notes which servers are to be installed again.
func (f *fleet) decideReprovisions() {
	for _, s := range f.servers {
		if !s.may(stepReprovision) {
			continue
		}
		rec := s.edit()
		rec.Reprovision = s.claim.Annotations[model.AnnotationReprovision]
		handle(rec, AskedReprovision, rec.Reprovision)
		s.announce(model.IntentReprovision, rec.Reprovision)
	}
}

// may reports whether the guard lets a step be begun.
func (s *server) may(action string) bool {
	return slices.ContainsFunc(s.fleet.allowed[s.name], func(d model.Disruption) bool { return d.Action == action })
}
