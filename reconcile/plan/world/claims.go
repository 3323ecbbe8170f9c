package world

import (
	"maps"
	"slices"

	"ingot/model"
	"ingot/reconcile/plan/bind"
	"ingot/reconcile/plan/proposal"
)

// loadClaim finds the claim that a server is recorded to have. Of two servers of one claim, one that is
// being released had the claim that was called so before; if both are, it goes on with the one that
// it had last.
func (f *World) loadClaim(s *Server) {
	name := s.Record.Claim.Name
	if name == "" {
		return
	}
	claim := f.In.Desired.Claims[name]
	if f.otherTenants(s.Record, claim) || s.isForAnother(claim) {
		return
	}
	other := f.Served[name]
	if other != nil && s.Record.ReleaseDecided() && (!other.Record.ReleaseDecided() || other.Record.Claim.BoundAt.After(s.Record.Claim.BoundAt)) {
		return
	}
	if other != nil && other.Record.ReleaseDecided() {
		other.Claim = nil
	}
	s.Claim = claim
	f.Served[name] = s
}

// isForAnother reports whether a claim that is called as the server's was is a new one, and none that
// is back: the removal was acted upon, and the claim asks for another server, or what was removed
// never got so far as to boot here.
func (s *Server) isForAnother(c *model.ServerClaim) bool {
	if c == nil || !s.Record.ReleaseDecided() {
		return false
	}
	ref, sel, t := c.Spec.ServerRef, c.Spec.ServerSelector, s.Record.Boot.Ticket
	return ref != nil && s.Resolve(ref.Name) != s.Name || sel != nil && !c.Matches(s.labels()) ||
		s.Record.Install.Digest == "" && !proposal.InstallUnknown(s.Record) && t != nil && t.Claim == s.Record.Claim.Name && s.Observed.ProgressOf(s.Record) == nil
}

// loadClaims lists the claims in Git.
func (f *World) loadClaims() {
	names := slices.Sorted(maps.Keys(f.In.Desired.Claims))
	f.Claims = make([]bind.Claim, len(names))
	for i, name := range names {
		f.Claims[i] = bind.Claim{Name: name, Manifest: f.In.Desired.Claims[name]}
	}
}

// ClaimRecord is the claim's record, made now for one that is new.
func (f *World) ClaimRecord(name model.ClaimName) *model.ClaimRecord {
	if rec := f.In.Observed.Claims[name]; rec != nil {
		return rec
	}
	if old := f.In.Observed.Claims[f.formerName(name)]; old != nil {
		rec := *old // its turn is that of the claim that it was
		rec.Name = name
		return &rec
	}
	return &model.ClaimRecord{Name: name, Sequence: f.Record.Sequence, FirstRevision: f.In.Desired.Revision, FirstSeen: f.In.Now}
}

// otherTenants reports whether a claim is not the one that the record is of, though it is
// called the same: that one was removed, and this one is another tenant's.
func (f *World) otherTenants(rec *model.ServerRecord, c *model.ServerClaim) bool {
	if rec.Claim.Tenant == "" || c == nil || c.Tenant == rec.Claim.Tenant {
		return false
	}
	if c.Tenant != "" && (rec.Release != nil || rec.Life.State == model.StateReleased) {
		return true // the removal was acted upon, and may be forgotten since
	}
	r, removed := f.Moment.ClaimRemoval(rec)
	return removed && r.Tenant == rec.Claim.Tenant
}

// followRenames finds the servers whose claim has another name now, and keeps them
// for it.
func (f *World) followRenames() {
	if len(f.In.Desired.Renamed) == 0 {
		return
	}
	for _, s := range f.Servers {
		if s.Record.Claim.Name == "" || s.Claim != nil {
			continue
		}
		name := f.newName(s.Record.Claim.Name)
		c := f.In.Desired.Claims[name]
		if c == nil || f.otherTenants(s.Record, c) || s.isForAnother(c) {
			continue
		}
		if other := f.Served[name]; other != nil && !other.Record.ReleaseDecided() {
			f.Moment.Outrun[s.Record.Claim.Name] = true // that name has a server: this one is merely given up
			continue
		} else if other != nil { // it was of the claim that had this name before, and goes on being released
			other.Claim = nil
			delete(f.renamed, other.Name)
		}
		f.renamed[s.Name] = c
		f.Served[name] = s
	}
}

// newName is what a claim is called now.
func (f *World) newName(name model.ClaimName) model.ClaimName {
	for range len(f.In.Desired.Renamed) {
		next, ok := f.In.Desired.Renamed[name]
		if !ok {
			break
		}
		name = next
	}
	return name
}

// formerName is the recorded claim that became this one, "" if none did.
func (f *World) formerName(name model.ClaimName) model.ClaimName {
	for old := range f.In.Desired.Renamed {
		if f.In.Observed.Claims[old] != nil && f.newName(old) == name {
			return old
		}
	}
	return ""
}

// renameWaits reports whether a server's claim is to get another name and cannot yet:
// the revision that says so is not applied before, or it would be forgotten.
func (f *World) renameWaits() bool {
	for name := range f.renamed {
		if f.In.Busy[name] {
			return true
		}
	}
	return false
}
