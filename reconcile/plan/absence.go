package plan

import (
	"cmp"
	"slices"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// removal is the commit that took an object away, if one did: what Git merely lacks
// stays in force (law 1).
func (f *fleet) removal(id model.Identity) (model.Removal, bool) { return f.removalOf(id, "") }

// claimRemoval is the commit that took a server's claim away, if one did: not one that
// took away another tenant's of that name.
func (f *fleet) claimRemoval(rec *model.ServerRecord) (model.Removal, bool) {
	return f.removalOf(rec.Claim.Name.Identity(), rec.Claim.Tenant)
}

// claimRemoved reports whether a commit took a server's claim away.
func (f *fleet) claimRemoved(rec *model.ServerRecord) bool {
	_, removed := f.claimRemoval(rec)
	return removed
}

// removalOf is the commit that took a tenant's object away, if one did and it was not put back since
// in a way that cannot be used; "" is whoever's.
func (f *fleet) removalOf(id model.Identity, tenant string) (model.Removal, bool) {
	r, ok := f.lastRemoval(id, tenant)
	return r, ok && !f.in.Desired.IsQuarantinedOf(id, cmp.Or(tenant, r.Tenant))
}

// lastRemoval is the commit that took a tenant's object away last, whatever became of it since.
func (f *fleet) lastRemoval(id model.Identity, tenant string) (model.Removal, bool) {
	if r, ok := f.in.Desired.RemovalOf(id, tenant); ok {
		return r, true
	}
	if id.Kind == model.KindServerClaim && f.outrun[id.ClaimName()] {
		return model.Removal{Revision: f.in.Desired.Revision, At: f.in.Now}, true
	}
	for _, r := range f.in.Observed.Fleet.Removed {
		if r.Identity == id && r.IsOf(tenant) {
			return r.Removal, true
		}
	}
	return model.Removal{}, false
}

// removed reports whether a commit took an object away.
func (f *fleet) removed(id model.Identity) bool {
	_, ok := f.removal(id)
	return ok
}

// noteRemovals records, with the revision applied, which commits took away what
// servers depend on. What was noted is forgotten once nothing depends on it, or it is
// back.
func (f *fleet) noteRemovals() {
	if f.observeOnly.Reason != "" {
		return
	}
	var noted []model.RemovedObject
	note := func(id model.Identity, tenant string) {
		same := func(n model.RemovedObject) bool { return n.Identity == id && n.IsOf(tenant) }
		if r, ok := f.lastRemoval(id, tenant); ok && !slices.ContainsFunc(noted, same) {
			noted = append(noted, model.RemovedObject{Identity: id, Removal: r})
		}
	}
	for _, s := range f.servers {
		s.eachMissing(note)
	}
	slices.SortFunc(noted, func(a, b model.RemovedObject) int {
		return cmp.Or(cmp.Compare(a.Identity.String(), b.Identity.String()), cmp.Compare(a.Tenant, b.Tenant))
	})
	f.record.Removed = noted
}

// eachMissing calls do for each object that the server depends on and that Desired lacks,
// with its tenant if that is known.
func (s *server) eachMissing(do func(id model.Identity, tenant string)) {
	f := s.fleet
	if s.rec.Claim.Name != "" && s.claim == nil && !s.rec.ReleaseDecided() { // else a claim of that name may be another server's by now
		do(s.rec.Claim.Name.Identity(), s.rec.Claim.Tenant)
	}
	by := s.rec.Maintenance.By
	m := f.in.Desired.Maintenances[by]
	if by != "" && by != model.OperationPark && (m == nil || f.namesake(m)) {
		do(model.MaintenanceIdentity(by), "")
	}
	for _, rule := range s.rec.Life.BootstrapCompleted {
		if f.in.Desired.ReadinessRules[rule] == nil {
			do(model.ReadinessRuleIdentity(rule), "")
		}
	}
	if s.bmc == nil && s.rec.Orphaned.IsZero() { // until that is noted
		do(s.rec.BMC.Identity(), "")
		do(model.ServerName(s.rec.BMC).Identity(), "")
	}
	if s.spec == nil && (s.rec.Claim.Name != "" || s.rec.Maintenance.By == model.OperationPark) {
		do(s.name.Identity(), "")
	}
}

// noteAbsences records what the source keeps in force though Git lacks it, with the
// tokens that people approve it by.
func (f *fleet) noteAbsences() {
	if f.observeOnly.Reason != "" {
		return
	}
	absent := f.in.Desired.Absent
	f.record.AbsentMore = max(0, len(absent)-model.MaxAbsent)
	f.record.AbsentToken = f.in.Desired.AbsentToken
	f.record.Absent = absent[:min(len(absent), model.MaxAbsent)]
}

// AbsentWhy says that an object is absent without a commit, and what to do.
func AbsentWhy(what string, a model.Absence) proposal.Why {
	text := what + " is not in Git, and no commit that follows on the revision applied took it away"
	if a.Blob != "" {
		text = what + " stands otherwise in Git, and no commit that follows on the revision applied says so"
	}
	switch a.Cause {
	case model.AbsentHistoryRewritten:
		text += " (the history of the branch was rewritten)"
	case model.AbsentSourceChanged:
		text += " (git.url, git.branch or git.path is another)"
	case model.AbsentAppliedUnknown:
		text += " (the revision applied cannot be had any more)"
	}
	text += ": it stays in force; put it back, or make a commit whose message ends with Ingot-Approve: " + a.Token
	return proposal.Why{Reason: model.ReasonAbsentWithoutCommit, Message: text, Since: a.Since, Actor: proposal.RackOperator}
}
