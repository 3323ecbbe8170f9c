package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"ingot/model"
)

// removal is the commit that took an object away, if one did: what Git merely lacks
// stays in force (law 1).
func (f *fleet) removal(id model.Identity) (model.Removal, bool) { return f.removalOf(id, "") }

// claimRemoval is the commit that took a server's claim away, if one did: not one that
// took away another tenant's of that name.
func (f *fleet) claimRemoval(rec *model.ServerRecord) (model.Removal, bool) {
	return f.removalOf(rec.Claim.Identity(), rec.Tenant)
}

// removalOf is the commit that took a tenant's object away, if one did; "" is whoever's.
func (f *fleet) removalOf(id model.Identity, tenant string) (model.Removal, bool) {
	if r, ok := f.in.Desired.RemovalOf(id, tenant); ok {
		return r, true
	}
	if name := model.Named[model.ClaimName](id.Namespace, id.Name); id.Kind == model.KindServerClaim && f.outrun[name] {
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
		if r, ok := f.removalOf(id, tenant); ok && !slices.ContainsFunc(noted, same) {
			noted = append(noted, model.RemovedObject{Identity: id, Removal: r})
		}
	}
	for _, s := range f.servers {
		if s.rec.Claim != "" && s.claim == nil {
			note(s.rec.Claim.Identity(), s.rec.Tenant)
		}
		if by := s.rec.MaintainedBy; by != "" && by != model.OperationPark && (f.in.Desired.Maintenances[by] == nil || f.namesake(f.in.Desired.Maintenances[by])) {
			note(model.MaintenanceIdentity(by), "")
		}
		if s.spec == nil && (s.rec.Claim != "" || s.rec.MaintainedBy == model.OperationPark) {
			note(s.name.Identity(), "")
		}
	}
	slices.SortFunc(noted, func(a, b model.RemovedObject) int {
		return cmp.Or(cmp.Compare(a.Identity.String(), b.Identity.String()), cmp.Compare(a.Tenant, b.Tenant))
	})
	f.record.Removed = noted
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
func AbsentWhy(what string, a model.Absence) Why {
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
	return Why{model.ReasonAbsentWithoutCommit, text, a.Since, RackOperator}
}

// followRenames finds the servers whose claim has another name now, and keeps them
// for it.
func (f *fleet) followRenames() {
	if len(f.in.Desired.Renamed) == 0 {
		return
	}
	for _, s := range f.servers {
		if s.rec.Claim == "" || s.claim != nil {
			continue
		}
		name := f.newName(s.rec.Claim)
		c := f.in.Desired.Claims[name]
		if c == nil || f.otherTenants(s.rec, c) {
			continue
		}
		if other := f.byName[f.served[name]]; other != nil && other.rec.Release == nil {
			f.outrun[s.rec.Claim] = true // that name has a server: this one is merely given up
			continue
		} else if other != nil {
			other.claim = nil // it was of the claim that had this name before, and goes on being released
		}
		f.renamed[s.name], f.served[name] = c, s.name
	}
}

// newName is what a claim is called now.
func (f *fleet) newName(name model.ClaimName) model.ClaimName {
	for range len(f.in.Desired.Renamed) {
		next, ok := f.in.Desired.Renamed[name]
		if !ok {
			break
		}
		name = next
	}
	return name
}

// formerName is the recorded claim that became this one, "" if none did.
func (f *fleet) formerName(name model.ClaimName) model.ClaimName {
	for old := range f.in.Desired.Renamed {
		if f.in.Observed.Claims[old] != nil && f.newName(old) == name {
			return old
		}
	}
	return ""
}

// renameWaits reports whether a server's claim is to get another name and cannot yet:
// the revision that says so is not applied before, or it would be forgotten.
func (f *fleet) renameWaits() bool {
	for name := range f.renamed {
		if f.in.Busy[name] {
			return true
		}
	}
	return false
}

// rename has the record say what the claim is called now. It touches nothing.
func (s *server) rename() (Step, bool) {
	c := s.fleet.renamed[s.name]
	if c == nil || s.fleet.observeOnly.Reason != "" || s.claim != nil {
		return Step{}, false
	}
	rec, old := s.edit(), s.rec.Claim
	rec.Claim, s.claim = c.ClaimName(), c
	if i := rec.Intent; i != nil && i.Value == string(old) {
		renamed := *i
		renamed.Value = string(rec.Claim)
		rec.Intent = &renamed
	}
	if rec.Ticket != nil && rec.Ticket.Claim != "" {
		t := *rec.Ticket
		t.Claim = rec.Claim
		rec.Ticket = &t
	}
	return s.stay(), true
}

// unknownFleet says why a claim of the very first revision waits: nothing is known of
// the fleet, though some of its servers run, and perhaps for it.
func (f *fleet) unknownFleet(name model.ClaimName) Why {
	if f.record.UnknownToken == "" || f.claimRecord(name).Sequence > 1 {
		return Why{}
	}
	if f.unknown == nil {
		f.unknown = new(f.unknownWhy())
	}
	return *f.unknown
}

// unknownWhy is what the claims of the very first revision wait for.
func (f *fleet) unknownWhy() Why {
	why := Why{Reason: model.ReasonFleetUnknown, Since: f.record.Unknown, Actor: RackOperator}
	for _, b := range f.bmcs {
		if b.target.Address != "" && b.facts == nil && b.rec.Reason == "" {
			why.Message, why.Actor = "waiting for every BMC to show its servers, for nothing is known of the fleet yet; next "+string(b.name), ActorNone
			return why
		}
	}
	for _, s := range f.servers {
		if s.rec.State == model.StateInitial && s.power() == model.PowerOn && !s.opened(model.PurposeDiscovery) {
			why.Message = fmt.Sprintf("neither the store nor the status branch knows the fleet, and server %s was found running: it may serve this claim already. Adopt it by spec.serverClaimRef, or make a commit whose message ends with Ingot-Approve: %s", s.name, f.in.Observed.Fleet.UnknownToken)
			return why
		}
	}
	return Why{}
}

// noteUnknown has the claims of the first revision of all wait for the servers that
// may serve them already, until all were seen and none ran, or somebody approves.
func (f *fleet) noteUnknown() {
	switch {
	case f.observeOnly.Reason != "":
	case f.record.Applied.IsZero() && f.record.UnknownToken == "" && len(f.in.Desired.Claims) > 0:
		f.record.Unknown, f.record.UnknownToken = f.in.Now, Token(f.in.Nonce, "fleet", TokenLength)
	case f.record.UnknownToken == "":
	case slices.Contains(f.in.Desired.Approvals, f.record.UnknownToken), !f.record.Applied.IsZero() && f.allOff():
		f.record.Unknown, f.record.UnknownToken = time.Time{}, ""
	}
}

// allOff reports whether every BMC has shown its servers, and none was found running.
func (f *fleet) allOff() bool {
	for _, b := range f.bmcs {
		if b.facts == nil {
			return false
		}
	}
	for _, s := range f.servers {
		if s.rec.State == model.StateInitial && s.power() != model.PowerOff && !s.opened(model.PurposeDiscovery) {
			return false
		}
	}
	return len(f.servers) > 0
}
