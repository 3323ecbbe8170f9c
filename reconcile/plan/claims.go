package plan

import (
	"slices"

	"ingot/model"
)

// loadClaim finds the claim that a server is recorded to have. Of two servers of one
// claim, one that is being released had the claim that was called so before.
func (f *fleet) loadClaim(s *server) {
	name := s.rec.Claim
	if name == "" {
		return
	}
	claim := f.in.Desired.Claims[name]
	if f.otherTenants(s.rec, claim) {
		return
	}
	other := f.byName[f.served[name]]
	if other != nil && s.rec.Release != nil && other.rec.Release == nil {
		return
	}
	if other != nil && other.rec.Release != nil {
		other.claim = nil
	}
	s.claim, f.served[name] = claim, s.name
}

// planClaims notes claims seen for the first time and drops records of claims gone.
func (f *fleet) planClaims(r *Result) {
	if f.observeOnly.Reason != "" {
		return
	}
	known, wanted := f.in.Observed.Claims, 0
	for _, c := range f.memory.claims {
		if known[c.name] == nil {
			r.Decided.Claims = append(r.Decided.Claims, f.claimRecord(c.name))
			continue
		}
		wanted++
	}
	if wanted == len(known) {
		return // as good as always: there is no record of another
	}
	for name := range known {
		if f.in.Desired.Claims[name] == nil && f.served[name] == "" && !f.deletionUntrusted(name) {
			r.Decided.DropClaims = append(r.Decided.DropClaims, name)
		}
	}
	slices.Sort(r.Decided.DropClaims)
}

// claimRecord is the claim's record, made now for one that is new.
func (f *fleet) claimRecord(name model.ClaimName) *model.ClaimRecord {
	if rec := f.in.Observed.Claims[name]; rec != nil {
		return rec
	}
	if old := f.in.Observed.Claims[f.formerName(name)]; old != nil {
		rec := *old // its turn is that of the claim that it was
		rec.Name, rec.Version = name, model.Version{}
		return &rec
	}
	return &model.ClaimRecord{Name: name, Sequence: f.record.Sequence, FirstRevision: f.in.Desired.Revision, FirstSeen: f.in.Now}
}
