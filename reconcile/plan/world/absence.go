package world

import (
	"cmp"
	"slices"

	"ingot/model"
)

// noteRemovals records, with the revision applied, which commits removed objects that servers
// depend on. An entry is dropped once nothing depends on the object, or it is back.
func (f *World) noteRemovals() {
	if f.ObserveOnly.Reason != "" {
		return
	}
	var noted []model.RemovedObject
	note := func(id model.Identity, tenant string) {
		same := func(n model.RemovedObject) bool { return n.Identity == id && n.IsOf(tenant) }
		if r, ok := f.Moment.LastRemoval(id, tenant); ok && !slices.ContainsFunc(noted, same) {
			noted = append(noted, model.RemovedObject{Identity: id, Removal: r})
		}
	}
	for _, s := range f.Servers {
		s.eachMissing(note)
	}
	slices.SortFunc(noted, func(a, b model.RemovedObject) int {
		return cmp.Or(cmp.Compare(a.Identity.String(), b.Identity.String()), cmp.Compare(a.Tenant, b.Tenant))
	})
	f.Record.Removed = noted
}

// eachMissing calls do for each object that the server depends on and that Desired lacks,
// with its tenant if that is known.
func (s *Server) eachMissing(do func(id model.Identity, tenant string)) {
	f := s.World
	if s.Record.Claim.Name != "" && s.Claim == nil && !s.Record.ReleaseDecided() { // else a claim of that name may be another server's by now
		do(s.Record.Claim.Name.Identity(), s.Record.Claim.Tenant)
	}
	by := s.Record.Maintenance.By
	m := f.In.Desired.Maintenances[by]
	if by != "" && by != model.OperationPark && (m == nil || f.Moment.Namesake(m)) {
		do(model.MaintenanceIdentity(by), "")
	}
	for _, rule := range s.Record.Life.BootstrapCompleted {
		if f.In.Desired.ReadinessRules[rule] == nil {
			do(model.ReadinessRuleIdentity(rule), "")
		}
	}
	if s.Behind == nil && s.Record.Orphaned.IsZero() { // until that is noted
		do(s.Record.BMC.Identity(), "")
		do(model.ServerName(s.Record.BMC).Identity(), "")
	}
	if s.Manifest == nil && (s.Record.Claim.Name != "" || s.Record.Maintenance.By == model.OperationPark) {
		do(s.Name.Identity(), "")
	}
}

// noteAbsences records what the source keeps in force though Git lacks it, with the
// tokens that people approve it by.
func (f *World) noteAbsences() {
	if f.ObserveOnly.Reason != "" {
		return
	}
	absent := f.In.Desired.Absent
	f.Record.AbsentMore = max(0, len(absent)-model.MaxAbsent)
	f.Record.AbsentToken = f.In.Desired.AbsentToken
	f.Record.Absent = absent[:min(len(absent), model.MaxAbsent)]
}
