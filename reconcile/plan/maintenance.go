package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// maintained is what takes a server out of service.
type maintained struct {
	by    string // the ServerMaintenance, or OperationPark
	why   string
	power model.Power // that it begins with
}

// loadMaintenances finds what takes each server out of service: of several ServerMaintenances
// the one that has begun, else the last by name; and what waits for the owner of its claim.
func (f *fleet) loadMaintenances() {
	for _, name := range slices.Sorted(maps.Keys(f.in.Desired.Maintenances)) {
		m := f.in.Desired.Maintenances[name]
		server := f.resolve(m.Spec.ServerRef.Name)
		s := f.server(server)
		if s == nil || !f.mayMaintain(m, server) {
			continue
		}
		why := "under ServerMaintenance " + name
		if m.Spec.Reason != "" {
			why += ": " + m.Spec.Reason
		}
		switch {
		case s.begunBy(f.maintained[server].by):
		case !s.needsApproval(m):
			f.maintained[server] = maintained{name, why, maintenancePower(m)}
		case s.rec.Life.State == model.StateMaintenance && s.begunBy(name):
			f.maintained[server] = maintained{name, why, model.PowerOn} // as its user was asked for
			fallthrough
		default:
			f.awaiting[server] = name
		}
	}
}

// begunBy reports whether a ServerMaintenance that is in force has taken the server out of
// service, or that is decided.
func (s *server) begunBy(name string) bool {
	m := s.fleet.in.Desired.Maintenances[name]
	if m == nil || s.fleet.namesake(m) {
		return false
	}
	return s.rec.Life.State == model.StateMaintenance && s.rec.Maintenance.By == name ||
		s.rec.Life.State == model.StateReserved && s.intends(model.IntentMaintenance, name)
}

// needsApproval reports whether a ServerMaintenance waits for the owner of the server's claim.
// One that has begun ends with its manifest, not with the approval; before it switches off what
// it left on it asks anew.
func (s *server) needsApproval(m *model.ServerMaintenance) bool {
	switch {
	case m.Spec.Policy != model.MaintenanceOwnerApproval || !s.serves():
		return false
	case s.begunBy(m.Name) && (maintenancePower(m) == model.PowerOn || !s.leftOn(m.Name)):
		return false
	case s.claim == nil:
		return true
	}
	asShown, anyPower := s.claim.Approves(m.Name)
	return !anyPower && (!asShown || maintenancePower(m) == model.PowerOff && slices.Contains(s.rec.Maintenance.ShownOn, m.Name))
}

// serves reports whether the server is a claim's and stays so.
func (s *server) serves() bool {
	return s.rec.Settled() == model.StateReserved && s.rec.Release == nil
}

// leftOn reports whether a ServerMaintenance that has begun did so with leaving the server on, and
// never had it Off.
func (s *server) leftOn(name string) bool {
	if s.rec.Life.State == model.StateMaintenance {
		p := s.maintenancePower()
		return p.Want == model.PowerOn && !p.WasOff
	}
	return slices.Contains(s.rec.Maintenance.ShownOn, name)
}

// noteApproval has the record say which ServerMaintenance waits for the claim's owner, and
// since when, and what approvals by name do not cover. It touches nothing.
func (s *server) noteApproval() (Step, bool) {
	name, noted := s.fleet.awaiting[s.name], ""
	if a := s.rec.Maintenance.Awaits; a != nil {
		noted = a.Maintenance
	}
	on := s.shownOn()
	if name == noted && slices.Equal(on, s.rec.Maintenance.ShownOn) || s.fleet.observeOnly.Reason != "" {
		return Step{}, false
	}
	rec := s.edit()
	rec.Maintenance.ShownOn = on
	switch name {
	case noted:
	case "":
		rec.Maintenance.Awaits = nil
	default:
		rec.Maintenance.Awaits = &model.AwaitedApproval{Maintenance: name, Since: s.now()}
	}
	return s.stay(), true
}

// shownOn are the ServerMaintenances whose names approve no more than that they leave the server
// on, for so the owner of its claim was shown them: of those that wait, are begun or are approved.
func (s *server) shownOn() (names []string) {
	if !s.serves() {
		return nil
	}
	for _, name := range s.askedOf() {
		m := s.fleet.in.Desired.Maintenances[name]
		shown := m != nil && m.Spec.Policy == model.MaintenanceOwnerApproval && s.fleet.resolve(m.Spec.ServerRef.Name) == s.name &&
			maintenancePower(m) == model.PowerOn && (s.rec.Life.State != model.StateMaintenance || s.leftOn(name))
		if shown || slices.Contains(s.rec.Maintenance.ShownOn, name) {
			names = append(names, name)
		}
	}
	return names
}

// askedOf are the ServerMaintenances that wait for the owner of the server's claim, are begun, or
// are approved by name.
func (s *server) askedOf() (names []string) {
	add := func(name string) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	add(s.fleet.awaiting[s.name])
	add(s.rec.Maintenance.By)
	if s.claim != nil {
		for _, v := range s.claim.Approvals() {
			add(v)
		}
	}
	slices.Sort(names)
	return names
}

// maintenancePower is the power state that a ServerMaintenance asks for.
func maintenancePower(m *model.ServerMaintenance) model.Power {
	return cmp.Or(m.Spec.ServerPower, model.PowerOff)
}

// approvalWhy says that a ServerMaintenance waits for the owner of the server's claim, and
// what it will do.
func (s *server) approvalWhy() proposal.Why {
	a, name := s.rec.Maintenance.Awaits, s.fleet.awaiting[s.name]
	if a == nil || name == "" || name != a.Maintenance {
		return proposal.Why{}
	}
	m := s.fleet.in.Desired.Maintenances[name]
	what := "ServerMaintenance " + m.Name
	if m.Spec.Reason != "" {
		what += " (" + m.Spec.Reason + ")"
	}
	value := m.Name
	if maintenancePower(m) == model.PowerOff && slices.Contains(s.rec.Maintenance.ShownOn, m.Name) {
		what, value = what+", which was to leave it on,", value+model.ApprovesOff
	}
	return proposal.Why{Reason: model.ReasonApprovalAwaited, Message: fmt.Sprintf("%s of server %s waits for the approval of the owner of claim %s: set annotation "+
		"%s: %s on the %s, or \"true\" for any maintenance; it %s", what, s.name, s.rec.Claim.Name, model.AnnotationMaintenanceApproved, value,
		s.rec.Claim.Name.Identity().Kind, maintenanceEffect(m)), Since: a.Since, Actor: proposal.Tenant}
}

// maintenanceEffect says what a ServerMaintenance does to a server that runs.
func maintenanceEffect(m *model.ServerMaintenance) string {
	if maintenancePower(m) == model.PowerOn {
		return "will leave the server on, or switch it on once, and its power is not restored until it ends"
	}
	return "will power off the server until it ends"
}

// maintenance is what Git takes a server out of service by; by is "" when nothing does.
func (f *fleet) maintenance(s *server) maintained {
	if m, ok := f.maintained[s.name]; ok {
		return m
	}
	if name, _ := s.requested(); name == model.OperationPark {
		return maintained{model.OperationPark, "parked by annotation " + model.AnnotationOperation + ": park", model.PowerOff}
	}
	return maintained{}
}

// maintenance takes a server out of service when Git asks for it.
func (s *server) maintenance() (Step, bool) {
	asked, bound := s.fleet.maintenance(s), s.rec.Life.State == model.StateReserved
	switch i := s.rec.Intent; {
	case bound && i != nil && i.Kind == model.IntentMaintenance && i.Value != asked.by:
		s.edit().Intent = nil // should it be asked for again, that is decided anew
		return s.stay(), true
	case asked.by == "" || s.rec.Release != nil || !bound && s.rec.Life.State != model.StateAvailable:
		return Step{}, false
	case bound && !s.intends(model.IntentMaintenance, asked.by):
		if !s.may(proposal.StepMaintenance) {
			return Step{}, false // it goes on as it did
		}
		s.announce(model.IntentMaintenance, asked.by)
		return s.stay(), true
	case asked.power == model.PowerOn:
		return s.beginMaintenance(asked), true
	}
	if st, done := s.off(s.fleet.in.Policy.PowerOffGrace); !done {
		return st, true
	}
	return s.beginMaintenance(asked), true
}

// beginMaintenance takes the server out of service. What was to be installed is of no use
// meanwhile.
func (s *server) beginMaintenance(asked maintained) Step {
	rec := s.edit()
	rec.Life.Back, rec.Maintenance.By = rec.Life.State, asked.by
	if asked.power == model.PowerOn {
		rec.Maintenance.Power = &model.MaintenancePower{Want: model.PowerOn, Due: true}
	}
	if s.opened(model.PurposeClaim) && s.rec.Boot.Ticket.State(s.progress()) != model.TicketIgnitionServed {
		s.end(model.TicketSpent)
	}
	return s.enter(model.StateMaintenance)
}

// maintained leaves the server alone until Git no longer asks for maintenance.
func (s *server) maintained() Step {
	asked := s.fleet.maintenance(s)
	switch {
	case asked.by != "" && asked.by != s.rec.Maintenance.By:
		s.edit().Maintenance.By = asked.by
		return s.stay()
	case asked.by != "":
		return s.maintainedWith(asked)
	case !s.maintenanceOver():
		return s.rest(s.whySince(model.ReasonMaintenance, "kept out of service, for no commit took away what asked for it: it cannot be "+
			"read, or is absent; see "+model.ReportProblems+" and "+model.ReportRevision, proposal.RackOperator))
	}
	rec := s.edit()
	back := rec.Life.Back
	if by := rec.Maintenance.By; by != "" && by != model.OperationPark {
		rec.Maintenance.ServicedAt = s.now()
	}
	rec.Life.Back, rec.Maintenance.By, rec.Maintenance.Power, rec.Intent = "", "", nil, nil
	if a := rec.Power.Asked; a != nil && a.Unsure {
		rec.Power.Asked = nil // the maintenance has settled it
	}
	return s.enter(back, proposal.Inspect{Inventory: true})
}

// maintainedWith brings the server to the power that its maintenance asks for by now, and else leaves
// it alone.
func (s *server) maintainedWith(asked maintained) Step {
	switch power := s.maintenancePower(); {
	case s.powerOffAsked(asked) && !s.may(proposal.StepPowerOff):
		return s.rest(proposal.Why{}) // the guard says why
	case asked.power != power.Want:
		if s.rec.Life.Back == model.StateReserved {
			s.announce(model.IntentMaintenance, asked.by)
		}
		s.edit().Maintenance.Power = &model.MaintenancePower{Want: asked.power, Due: true, WasOff: power.WasOff || power.Want == model.PowerOff}
		return s.stay()
	case power.Due:
		return s.bringPower(power.Want)
	}
	return s.rest(s.whySince(model.ReasonMaintenance, asked.why, proposal.RackOperator))
}

// powerOffAsked reports whether what left a claim's server On is to switch it off now: its user was
// asked for less.
func (s *server) powerOffAsked(asked maintained) bool {
	return s.rec.Life.State == model.StateMaintenance && s.rec.Life.Back == model.StateReserved &&
		asked.by != "" && asked.power == model.PowerOff && s.maintenancePower().Want == model.PowerOn
}

// maintenancePower is the power state that the maintenance was last seen to ask for.
func (s *server) maintenancePower() model.MaintenancePower {
	if p := s.rec.Maintenance.Power; p != nil {
		return *p
	}
	return model.MaintenancePower{Want: model.PowerOff}
}

// bringPower brings a server under maintenance to a power state once, On from its disk, and
// gives up where its BMC does not say what it did: then hands off, however it is.
func (s *server) bringPower(want model.Power) Step {
	wasOff := s.maintenancePower().WasOff
	done := func(rec *model.ServerRecord) {
		rec.Maintenance.Power = &model.MaintenancePower{Want: want, WasOff: wasOff}
	}
	asked, goingOff := s.rec.Power.Asked, s.goingOff()
	switch {
	case asked != nil && asked.Want == want && asked.Unsure && !s.reached() && (asked.Tries >= s.fleet.in.Policy.UnsureTries || s.askedOnBefore()):
	case want == model.PowerOff:
		if st, isOff := s.off(s.fleet.in.Policy.PowerOffGrace); !isOff {
			return st
		}
	case s.power() == model.PowerOff:
		return s.powerOn(done, s.fromDisk()...)
	case goingOff && !s.over(asked.At, s.fleet.in.Policy.PowerOffGrace):
		return s.look(s.nextLook(), s.why(model.ReasonWaitingForPowerOff, "it was asked to power off before: that is awaited first"))
	}
	done(s.edit())
	return s.stay()
}

// askedOnBefore reports whether a former process asked for the power-on of the maintenance: if that
// took effect, somebody may have switched the server off since, and work in it.
func (s *server) askedOnBefore() bool {
	asked := s.rec.Power.Asked
	return asked.Want == model.PowerOn && asked.At.Before(s.fleet.in.Started) && !asked.At.Before(s.rec.Life.Since)
}

// maintenanceOver reports whether a commit took away what the server is in Maintenance
// for, or has it ask for something else. A manifest that is merely absent still asks.
func (s *server) maintenanceOver() bool {
	f, by := s.fleet, s.rec.Maintenance.By
	switch by {
	case "": // of before it was recorded
		return !f.maybeUnreadable(model.KindServerMaintenance, "") && (s.spec != nil || !f.maybeUnreadable(model.KindServer, string(s.name)))
	case model.OperationPark:
		return s.spec != nil || f.removed(s.name.Identity())
	}
	if m := f.in.Desired.Maintenances[by]; m != nil && !f.namesake(m) {
		return f.resolve(m.Spec.ServerRef.Name) != s.name
	}
	return f.removed(model.MaintenanceIdentity(by))
}

// servicedLimit is how long a BMC may take to show what a ServerMaintenance changed.
const servicedLimit = 15 * time.Minute

// serviced looks what a ServerMaintenance changed, before anything else is done. Of a
// BMC that does not show it in time nothing counts as changed.
func (s *server) serviced() (Step, bool) {
	switch {
	case s.rec.Maintenance.ServicedAt.IsZero():
		return Step{}, false
	case s.over(s.rec.Maintenance.ServicedAt, servicedLimit):
		s.edit().Maintenance.ServicedAt = time.Time{}
		return s.stay(), true
	case s.facts.Inventory == nil || s.reading.InventoryAt.Before(s.notedAt(s.rec.Maintenance.ServicedAt)):
		return s.stay(proposal.Inspect{Inventory: true}), true
	}
	s.noteReplaced()
	return s.stay(), true
}
