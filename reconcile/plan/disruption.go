package plan

import (
	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/proposal"
)

// EffectText says what a disruption does to its server.
func EffectText(d model.Disruption) string {
	server, claim := "server "+string(d.Server), "claim "+string(d.Claim)
	switch d.Action {
	case proposal.StepRelease:
		return server + " is taken from " + claim + ", powered off, wiped and free for others"
	case proposal.StepRetain:
		return server + " is taken from " + claim + " and powered off; its disks stay as they are"
	case proposal.StepWipe:
		return server + ", which " + claim + " had, is wiped and free for others"
	case proposal.StepReprovision:
		return server + " is installed anew for " + claim + ": what is on its disks is lost"
	case proposal.StepMaintenance:
		return server + " of " + claim + " is taken out of service by ServerMaintenance " + d.Value
	case proposal.StepPowerOff:
		if by := MaintenanceOf(d); by != "" {
			return server + " of " + claim + ", which is out of service, is powered off by ServerMaintenance " + by
		}
		return server + " is powered off, as " + claim + " asks for"
	case proposal.StepOperation:
		return server + " of " + claim + " has its operation: " + d.Value
	case proposal.StepDiscover:
		return "what runs on " + server + " is asked to shut down, and the server is discovered"
	}
	return server + " of " + claim + ": " + d.Action
}

// MaintenanceOf is the ServerMaintenance, or OperationPark, that has a server powered off; "" if its
// claim has, or for another step.
func MaintenanceOf(d model.Disruption) string {
	if d.Action != proposal.StepPowerOff || d.Value == string(model.PowerOff) {
		return ""
	}
	return d.Value
}

// disruptions lists what Git asks for that takes something from users of servers, and
// that was not decided yet, in the order of servers.
func (f *fleet) disruptions() []model.Disruption {
	var steps []model.Disruption
	for _, s := range f.servers {
		if s.foundInGap() || s.justRecovered() {
			continue
		}
		for _, d := range s.disruptions() {
			d.Server, d.Claim = s.name, s.rec.Claim.Name
			steps = append(steps, d)
		}
	}
	return steps
}

// bound reports whether the server is in use: a claim has it, or had it and left its
// disks.
func (s *server) bound() bool {
	switch s.rec.Life.State {
	case model.StateReserved, model.StateReleased:
		return true
	case model.StateMaintenance, model.StateError:
		return s.rec.Life.Back == model.StateReserved || s.rec.Life.Back == model.StateReleased
	case model.StateInitial, model.StateDiscovery, model.StateAvailable, model.StateCleanup:
	}
	return false
}

// disruptions is what Git asks for that takes something from the server's user, one
// step after the other.
func (s *server) disruptions() []model.Disruption {
	switch {
	case s.rec.Life.State == model.StateInitial:
		return s.discoverSteps()
	case !s.bound() || s.rec.Life.State == model.StateReserved && s.rec.Release != nil:
		return nil
	}
	var steps []model.Disruption
	if m := s.fleet.maintenance(s); s.powerOffAsked(m) {
		steps = append(steps, model.Disruption{Action: proposal.StepPowerOff, Value: m.by})
	}
	if action := s.endAsked(); action != "" {
		return append(steps, model.Disruption{Action: action, Value: text.Time(s.rec.Claim.BoundAt)})
	}
	if s.rec.Life.State == model.StateReserved {
		steps = s.reservedSteps()
	}
	name, value := s.requested()
	if reset, known := resets[name]; known && reset != model.ResetOn && !proposal.WasHandled(s.rec, proposal.AskedOperation, value) && s.mayOperate() {
		steps = append(steps, model.Disruption{Action: proposal.StepOperation, Value: value})
	}
	return steps
}

// discoverSteps is that Git asks for a server to be discovered that was found running.
func (s *server) discoverSteps() []model.Disruption {
	value := s.annotation(model.AnnotationDiscover)
	if s.power() != model.PowerOn || !s.discoverAsked() || s.opened(model.PurposeDiscovery) || s.intends(model.IntentDiscover, value) {
		return nil
	}
	return []model.Disruption{{Action: proposal.StepDiscover, Value: value}}
}

// reservedSteps are what Git asks for that a Reserved server's claim has to bear.
func (s *server) reservedSteps() (steps []model.Disruption) {
	if m := s.fleet.maintenance(s); m.by != "" && !s.intends(model.IntentMaintenance, m.by) {
		steps = append(steps, model.Disruption{Action: proposal.StepMaintenance, Value: m.by})
	}
	if s.claim == nil {
		return steps
	}
	if s.claim.Spec.Power == model.PowerOff && s.rec.Claim.Power == model.PowerOn {
		steps = append(steps, model.Disruption{Action: proposal.StepPowerOff, Value: string(model.PowerOff)})
	}
	if s.reprovisionAsked() && (s.rec.Install.Digest != "" || proposal.InstallUnknown(s.rec)) {
		steps = append(steps, model.Disruption{Action: proposal.StepReprovision, Value: s.claim.Annotations[model.AnnotationReprovision]})
	}
	return steps
}
