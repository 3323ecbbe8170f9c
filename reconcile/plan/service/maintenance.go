// Package service takes servers out of service, and does once what annotations request. It owns both in a record.
package service

import (
	"cmp"
	"fmt"
	"slices"

	"ingot/model"
	"ingot/reconcile/plan/event"
	"ingot/reconcile/plan/proposal"
)

type server = proposal.Server

// Assign has a ServerMaintenance take a server out of service, or wait for the owner of its claim. Of several, in the
// order of names, it is the one that has begun, else the last.
func Assign(s *server, m *model.ServerMaintenance) {
	why := "under ServerMaintenance " + m.Name
	if m.Spec.Reason != "" {
		why += ": " + m.Spec.Reason
	}
	switch {
	case begunBy(s, s.Service.By):
	case !needsApproval(s, m):
		s.Service.By, s.Service.Why, s.Service.Power = m.Name, why, powerOf(m)
	default:
		s.Service.Awaits = m.Name
		if s.State() == model.StateMaintenance && begunBy(s, m.Name) { // as its user was asked for
			s.Service.By, s.Service.Why, s.Service.Power = m.Name, why, model.PowerOn
		}
	}
}

// Park takes a server out of service whose annotation asks for that, if nothing else does.
func Park(s *server) {
	if name, _ := s.Requested(); name == model.OperationPark && s.Service.By == "" {
		s.Service.By, s.Service.Power = model.OperationPark, model.PowerOff
		s.Service.Why = "parked by annotation " + model.AnnotationOperation + ": park"
	}
}

// begunBy reports whether a ServerMaintenance in force has taken the server out of service, or will.
func begunBy(s *server, name string) bool {
	m := s.Desired.Maintenances[name]
	if m == nil || s.Namesake(m) {
		return false
	}
	return s.State() == model.StateMaintenance && s.Record.Maintenance.By == name ||
		s.State() == model.StateReserved && s.Intends(model.IntentMaintenance, name)
}

// needsApproval reports whether a ServerMaintenance waits for the owner of the server's claim. One that has begun
// asks again only before it switches off what it left on.
func needsApproval(s *server, m *model.ServerMaintenance) bool {
	switch {
	case m.Spec.Policy != model.MaintenanceOwnerApproval || !serves(s):
		return false
	case begunBy(s, m.Name) && (powerOf(m) == model.PowerOn || !leftOn(s, m.Name)):
		return false
	case s.Claim == nil:
		return true
	}
	asShown, anyPower := s.Claim.Approves(m.Name)
	return !anyPower && (!asShown || powerOf(m) == model.PowerOff && slices.Contains(s.Record.Maintenance.ShownOn, m.Name))
}

// serves reports whether the server is a claim's and stays so.
func serves(s *server) bool {
	return s.Record.Settled() == model.StateReserved && s.Record.Release == nil
}

// leftOn reports whether a ServerMaintenance that has begun left the server on, and never had it Off.
func leftOn(s *server, name string) bool {
	if s.State() == model.StateMaintenance {
		p := broughtTo(s)
		return p.Want == model.PowerOn && !p.WasOff
	}
	return slices.Contains(s.Record.Maintenance.ShownOn, name)
}

// NoteApproval records which ServerMaintenance waits for the claim's owner, and what names do not approve.
func NoteApproval(s *server) (p proposal.Proposal, ok bool) {
	name, noted := s.Service.Awaits, ""
	if a := s.Record.Maintenance.Awaits; a != nil {
		noted = a.Maintenance
	}
	on := shownOn(s)
	if name == noted && slices.Equal(on, s.Record.Maintenance.ShownOn) {
		return p, false
	}
	return s.Change(func(rec *model.ServerRecord) {
		rec.Maintenance.ShownOn = on
		switch name {
		case noted:
		case "":
			rec.Maintenance.Awaits = nil
		default:
			rec.Maintenance.Awaits = &model.AwaitedApproval{Maintenance: name, Since: s.Now}
		}
	}).Stay(proposal.Note), true
}

// shownOn are the ServerMaintenances whose approval lets them take the server out of service, but not switch it off.
func shownOn(s *server) (names []string) {
	if !serves(s) {
		return nil
	}
	all := []string{s.Service.Awaits, s.Record.Maintenance.By}
	if s.Claim != nil {
		approved := s.Claim.Approvals()
		all = append(all, approved[:]...)
	}
	slices.Sort(all)
	for _, name := range slices.Compact(all) {
		m := s.Desired.Maintenances[name]
		shown := m != nil && m.Spec.Policy == model.MaintenanceOwnerApproval && s.Resolve(m.Spec.ServerRef.Name) == s.Name &&
			powerOf(m) == model.PowerOn && (s.State() != model.StateMaintenance || leftOn(s, name))
		if shown || slices.Contains(s.Record.Maintenance.ShownOn, name) {
			names = append(names, name)
		}
	}
	return names
}

func powerOf(m *model.ServerMaintenance) model.Power {
	return cmp.Or(m.Spec.ServerPower, model.PowerOff)
}

// ApprovalWhy says that a ServerMaintenance waits for the owner of the server's claim, and what it will do.
func ApprovalWhy(s *server) proposal.Why {
	a, name := s.Record.Maintenance.Awaits, s.Service.Awaits
	if a == nil || name == "" || name != a.Maintenance {
		return proposal.Why{}
	}
	m := s.Desired.Maintenances[name]
	what := "ServerMaintenance " + m.Name
	if m.Spec.Reason != "" {
		what += " (" + m.Spec.Reason + ")"
	}
	value := m.Name
	if powerOf(m) == model.PowerOff && slices.Contains(s.Record.Maintenance.ShownOn, m.Name) {
		what, value = what+", which was to leave it on,", value+model.ApprovesOff
	}
	return proposal.Why{Reason: model.ReasonApprovalAwaited, Message: fmt.Sprintf("%s of server %s waits for the approval of the owner of claim %s: set annotation "+
		"%s: %s on the %s, or \"true\" for any maintenance; it %s", what, s.Name, s.Record.Claim.Name, model.AnnotationMaintenanceApproved, value,
		s.Record.Claim.Name.Identity().Kind, EffectText(m)), Since: a.Since, Actor: proposal.Tenant}
}

// EffectText says what a ServerMaintenance does to a server that runs.
func EffectText(m *model.ServerMaintenance) string {
	if powerOf(m) == model.PowerOn {
		return "will leave the server on, or switch it on once, and its power is not restored until it ends"
	}
	return "will power off the server until it ends"
}

// DecideMaintenance decides to take a bound server out of service when Git asks for it.
func DecideMaintenance(s *server) (p proposal.Proposal, ok bool) {
	by := s.Service.By
	if s.State() != model.StateReserved || by == "" || s.Record.Release != nil || s.Intends(model.IntentMaintenance, by) {
		return p, false
	}
	return s.Change(func(rec *model.ServerRecord) {
		if s.Service.Power != model.PowerOn { // which waits until what is going off is off
			event.ForgetOff(&rec.Power)
		}
		event.Announce(s, rec, model.IntentMaintenance, by)
	}).Stay(proposal.Decide).Taking(proposal.StepMaintenance, by)
}

// Maintenance begins a decided maintenance. A decided release waits for its end.
func Maintenance(s *server) (p proposal.Proposal, ok bool) {
	bound, asked := s.State() == model.StateReserved, s.Service
	i := s.Record.Intent
	switch {
	case bound && i != nil && i.Kind == model.IntentMaintenance && i.Value != asked.By:
		return s.Change(func(rec *model.ServerRecord) {
			event.ForgetOff(&rec.Power)
			rec.Intent = nil // it is decided again if it is asked for again
		}).Stay(proposal.Note), true
	case asked.By == "" || !bound && s.State() != model.StateAvailable:
		return p, false
	case bound && s.Record.Release == nil && !s.Intends(model.IntentMaintenance, asked.By):
		return p, false // it goes on as it did
	case asked.Power != model.PowerOn && !s.IsOff():
		return s.ToOff(s.Policy.PowerOffGrace), true
	}
	return event.After(s, event.Event{Kind: event.MaintenanceBegun, Value: asked.By, Power: asked.Power}).Stay(proposal.Act).As(proposal.StepMaintenance), true
}

// DecideOff decides that a maintenance switches a claim's server off that it left On.
func DecideOff(s *server) (p proposal.Proposal, ok bool) {
	if s.State() != model.StateMaintenance || s.Record.Life.Back != model.StateReserved || s.Service.By == "" ||
		s.Service.By != s.Record.Maintenance.By || s.Service.Power != model.PowerOff || broughtTo(s).Want != model.PowerOn {
		return p, false
	}
	return bring(s).Taking(proposal.StepPowerOff, s.Service.By)
}

// bring notes that a maintenance has another power state.
func bring(s *server) proposal.Proposal {
	was := broughtTo(s)
	return s.Change(func(rec *model.ServerRecord) {
		if s.Service.Power != model.PowerOn {
			event.ForgetOff(&rec.Power)
		}
		if rec.Life.Back == model.StateReserved {
			event.Announce(s, rec, model.IntentMaintenance, s.Service.By)
		}
		rec.Maintenance.Power = &model.MaintenancePower{Want: s.Service.Power, Due: true, WasOff: was.WasOff || was.Want == model.PowerOff}
	}).Stay(proposal.Decide)
}

// Maintained leaves the server alone during maintenance, except for the power state that Git requests.
func Maintained(s *server) (p proposal.Proposal, ok bool) {
	if s.State() != model.StateMaintenance {
		return p, false
	}
	asked, power := s.Service, broughtTo(s)
	switch {
	case asked.By != "" && asked.By != s.Record.Maintenance.By:
		return s.Change(func(rec *model.ServerRecord) { rec.Maintenance.By = asked.By }).Stay(proposal.Note), true
	case asked.By == "" && over(s):
		return event.After(s, event.Event{Kind: event.MaintenanceEnded}).Stay(proposal.Look, proposal.Inspect{Inventory: true}).As(proposal.StepReturn), true
	case asked.By == "":
		return s.Rest(s.WhyBy(model.ReasonMaintenance, "kept out of service, for no commit took away what asked for it: it cannot be "+
			"read, or is absent; see "+model.ReportFleet, proposal.RackOperator)), true
	case asked.Power != power.Want && (asked.Power != model.PowerOff || s.Record.Life.Back != model.StateReserved):
		return bring(s), true
	case asked.Power == power.Want && power.Due:
		return bringPower(s, power), true
	}
	return s.Rest(s.WhyBy(model.ReasonMaintenance, asked.Why, proposal.RackOperator)), true
}

// broughtTo is the power state that the maintenance was last seen to ask for.
func broughtTo(s *server) model.MaintenancePower {
	if p := s.Record.Maintenance.Power; p != nil {
		return *p
	}
	return model.MaintenancePower{Want: model.PowerOff}
}

// bringPower brings a server under maintenance to a power state once, and then leaves it, whatever its BMC says.
func bringPower(s *server, power model.MaintenancePower) proposal.Proposal {
	power.Due = false
	done := func(rec *model.ServerRecord) { rec.Maintenance.Power = &power }
	asked := s.Record.Power.Asked
	lost := asked != nil && asked.Want == power.Want && asked.Unsure && !s.Reached()
	if lost && asked.Tries < s.Policy.UnsureTries {
		// If a former process powered it on, a technician may have switched it off since, and work in it.
		lost = asked.Want == model.PowerOn && asked.At.Before(s.Started) && !asked.At.Before(s.Record.Life.Since)
	}
	switch {
	case lost:
	case power.Want == model.PowerOff && !s.IsOff():
		return s.ToOff(s.Policy.PowerOffGrace)
	case power.Want == model.PowerOff:
	case s.Power() == model.PowerOff:
		return s.ToOn(proposal.Act, proposal.FromDisk, done)
	case s.GoingOff() && !s.Over(asked.At, s.Policy.PowerOffGrace):
		return s.Watch(proposal.NextLook(s), s.Why(model.ReasonWaitingForPowerOff, "it was asked to power off before: that is awaited first"))
	}
	return s.Change(done).Stay(proposal.Act)
}

// over reports whether a commit ended the maintenance. A manifest that is merely absent still asks.
func over(s *server) bool {
	by := s.Record.Maintenance.By
	if by == model.OperationPark {
		return s.Manifest != nil || s.Removed(s.Name.Identity())
	}
	if m := s.Desired.Maintenances[by]; m != nil && !s.Namesake(m) {
		return s.Resolve(m.Spec.ServerRef.Name) != s.Name
	}
	return s.Removed(model.MaintenanceIdentity(by))
}
