package plan

import (
	"slices"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// loadClaim finds the claim that a server is recorded to have; at is its place among those in
// Git, nowhere if it is not there. Of two servers of one claim, one that is being released had the
// claim that was called so before; if both are, it goes on with the one that it had last.
func (f *fleet) loadClaim(s *server, at int) {
	name := s.rec.Claim.Name
	if name == "" {
		return
	}
	var claim *model.ServerClaim
	if at != nowhere {
		claim = f.memory.claims[at].claim
	}
	if f.otherTenants(s.rec, claim) || s.isForAnother(claim) {
		return
	}
	other := f.servedElse[name]
	if at != nowhere {
		other = f.served[at]
	}
	if other != nil && s.rec.ReleaseDecided() && (!other.rec.ReleaseDecided() || other.rec.Claim.BoundAt.After(s.rec.Claim.BoundAt)) {
		return
	}
	if other != nil && other.rec.ReleaseDecided() {
		other.claim = nil
	}
	s.claim = claim
	if at == nowhere {
		f.servedElse[name] = s
		return
	}
	f.served[at] = s
}

// isForAnother reports whether a claim that is called as the server's was is a new one, and none that
// is back: the removal was acted upon, and the claim asks for another server, or what was removed
// never got so far as to boot here.
func (s *server) isForAnother(c *model.ServerClaim) bool {
	if c == nil || !s.rec.ReleaseDecided() {
		return false
	}
	ref, sel, t := c.Spec.ServerRef, c.Spec.ServerSelector, s.rec.Boot.Ticket
	return ref != nil && s.fleet.resolve(ref.Name) != s.name || sel != nil && !c.Matches(s.fleet.serverLabels(s)) ||
		s.rec.Install.Digest == "" && !proposal.InstallUnknown(s.rec) && t != nil && t.Claim == s.rec.Claim.Name && s.progress() == nil
}

// serving is the server that a claim is bound to, nil if it has none.
func (f *fleet) serving(name model.ClaimName) *server {
	if i, inGit := f.memory.claimAt(name); inGit {
		return f.served[i]
	}
	return f.servedElse[name]
}

// serve notes the server that a claim is bound to.
func (f *fleet) serve(name model.ClaimName, s *server) {
	if i, inGit := f.memory.claimAt(name); inGit {
		f.served[i] = s
		return
	}
	f.servedElse[name] = s
}

// planClaims notes claims seen for the first time and drops records of claims gone.
func (f *fleet) planClaims(r *Result) {
	if f.observeOnly.Reason != "" {
		return
	}
	known, wanted := f.in.Observed.Claims, 0
	for i, rec := range f.claimRecords() {
		if c := f.memory.claims[i]; rec == nil {
			r.Decided.Claims = append(r.Decided.Claims, f.claimRecord(c.name))
			continue
		}
		wanted++
	}
	if wanted == len(known) {
		return // as good as always: there is no record of another
	}
	for name := range known {
		if f.in.Desired.Claims[name] == nil && f.servedElse[name] == nil && !f.deletionUntrusted(name) {
			r.Decided.DropClaims = append(r.Decided.DropClaims, name)
		}
	}
	slices.Sort(r.Decided.DropClaims)
}

// claimRecords are those of the claims in Git, in their order; nil for one that is new.
func (f *fleet) claimRecords() []*model.ClaimRecord {
	return f.memory.claimRecords.of(f.memory.claimNames, f.in.Observed.Claims)
}

// claimRecord is the claim's record, made now for one that is new.
func (f *fleet) claimRecord(name model.ClaimName) *model.ClaimRecord {
	if rec := f.in.Observed.Claims[name]; rec != nil {
		return rec
	}
	if old := f.in.Observed.Claims[f.formerName(name)]; old != nil {
		rec := *old // its turn is that of the claim that it was
		rec.Name = name
		return &rec
	}
	return &model.ClaimRecord{Name: name, Sequence: f.record.Sequence, FirstRevision: f.in.Desired.Revision, FirstSeen: f.in.Now}
}
