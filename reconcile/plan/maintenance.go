package plan

import (
	"maps"
	"slices"
	"time"

	"ingot/model"
)

// maintained is what takes a server out of service.
type maintained struct {
	by  string // the ServerMaintenance, or OperationPark
	why string
}

func (f *fleet) loadMaintenances() {
	for _, name := range slices.Sorted(maps.Keys(f.in.Desired.Maintenances)) {
		m := f.in.Desired.Maintenances[name]
		why := "under ServerMaintenance " + name
		if m.Spec.Reason != "" {
			why += ": " + m.Spec.Reason
		}
		if server := f.resolve(m.Spec.ServerRef.Name); f.mayMaintain(m, server) {
			f.maintained[server] = maintained{name, why}
		}
	}
}

// maintenance is what Git takes a server out of service by; by is "" when nothing does.
func (f *fleet) maintenance(s *server) maintained {
	if m, ok := f.maintained[s.name]; ok {
		return m
	}
	if name, _ := s.requested(); name == model.OperationPark {
		return maintained{model.OperationPark, "parked by annotation " + model.AnnotationOperation + ": park"}
	}
	return maintained{}
}

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

// maintenanceOver reports whether a commit took away what the server is in Maintenance
// for, or has it ask for something else. A manifest that is merely absent still asks.
func (s *server) maintenanceOver() bool {
	f, by := s.fleet, s.rec.MaintainedBy
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
