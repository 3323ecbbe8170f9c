package plan

import "ingot/model"

// followRenames finds the servers whose claim has another name now, and keeps them
// for it.
func (f *fleet) followRenames() {
	if len(f.in.Desired.Renamed) == 0 {
		return
	}
	for _, s := range f.servers {
		if s.rec.Claim.Name == "" || s.claim != nil {
			continue
		}
		name := f.newName(s.rec.Claim.Name)
		c := f.in.Desired.Claims[name]
		if c == nil || f.otherTenants(s.rec, c) || s.isForAnother(c) {
			continue
		}
		if other := f.serving(name); other != nil && !other.rec.ReleaseDecided() {
			f.outrun[s.rec.Claim.Name] = true // that name has a server: this one is merely given up
			continue
		} else if other != nil { // it was of the claim that had this name before, and goes on being released
			other.claim = nil
			delete(f.renamed, other.name)
		}
		f.renamed[s.name] = c
		f.serve(name, s)
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
	rec, old := s.edit(), s.rec.Claim.Name
	rec.Claim.Name, s.claim = c.ClaimName(), c
	if i := rec.Intent; i != nil && i.Value == string(old) {
		renamed := *i
		renamed.Value = string(rec.Claim.Name)
		rec.Intent = &renamed
	}
	if rec.Boot.Ticket != nil && rec.Boot.Ticket.Claim != "" {
		t := *rec.Boot.Ticket
		t.Claim = rec.Claim.Name
		rec.Boot.Ticket = &t
	}
	return s.stay(), true
}
