package world

import (
	"fmt"
	"slices"

	"ingot/model"
	"ingot/reconcile/plan/bind"
	"ingot/reconcile/plan/laws"
	"ingot/reconcile/plan/proposal"
)

// loadClaim finds the claim that a server is recorded to have. Of two servers of one claim, one that is being
// released had the claim that was called so before; if both are, it goes on with the one that it had last.
func (w *World) loadClaim(s *Server) {
	name := s.Record.Claim.Name
	if name == "" {
		return
	}
	claim, other := w.Desired.Claims[name], w.Served[name]
	switch {
	case s.isForAnother(claim) || s.ClaimNow(s.Record) != name:
		return
	case other == nil:
	case s.Record.ReleaseDecided() && (!other.Record.ReleaseDecided() || other.Record.Claim.BoundAt.After(s.Record.Claim.BoundAt)):
		return
	case other.Record.ReleaseDecided():
		other.Claim = nil
	}
	s.Claim = claim
	w.Served[name] = s
}

// isForAnother reports whether a claim that is called as the server's was is another tenant's, or a new one: its removal
// was acted upon, and it asks for another server, or what was removed never got so far as to boot here.
func (s *Server) isForAnother(c *model.ServerClaim) bool {
	switch {
	case c == nil:
		return false
	case s.isOtherTenants(c):
		return true
	case !s.Record.ReleaseDecided():
		return false
	}
	ref, sel, t := c.Spec.ServerRef, c.Spec.ServerSelector, s.Record.Boot.Ticket
	return ref != nil && s.Resolve(ref.Name) != s.Name || sel != nil && !c.Matches(s.Labels) ||
		s.Record.Install.Digest == "" && !s.InstallUnknown() && t != nil && t.Claim == s.Record.Claim.Name && s.Observed.ProgressOf(s.Record) == nil
}

// isOtherTenants reports whether a claim is another tenant's than that of the server's record, which was removed.
func (s *Server) isOtherTenants(c *model.ServerClaim) bool {
	rec := s.Record
	if rec.Claim.Tenant == "" || c.Tenant == rec.Claim.Tenant {
		return false
	}
	if c.Tenant != "" && (rec.Release != nil || rec.Life.State == model.StateReleased) {
		return true // the removal was acted upon, and may be forgotten since
	}
	r, removed := s.ClaimRemoval(rec)
	return removed && r.Tenant == rec.Claim.Tenant
}

// followRenames finds the servers whose claim has another name now, and keeps them for it.
func (w *World) followRenames() {
	if len(w.Desired.Renamed) == 0 {
		return
	}
	for _, s := range w.Servers {
		old := s.Record.Claim.Name
		if old == "" || s.Claim != nil {
			continue
		}
		name := s.ClaimNow(s.Record)
		c := w.Desired.Claims[name]
		if c == nil || name == old || s.isForAnother(c) {
			continue
		}
		if other := w.Served[name]; other != nil && !other.Record.ReleaseDecided() {
			w.Outrun[old] = true // that name has a server: this one is merely given up
			continue
		} else if other != nil { // it was of the claim that had this name before, and goes on being released
			other.Claim, other.Renamed = nil, nil
		}
		s.Renamed = c
		w.Served[name] = s
	}
}

// NewRecord is the record of a claim that has none. One that was renamed keeps its turn.
func (w *World) NewRecord(name model.ClaimName) *model.ClaimRecord {
	for _, r := range w.Desired.Renamed {
		for old := range r.Names {
			if rec := w.Observed.Claims[old]; rec != nil && w.Desired.NameNow(old, "") == name {
				return proposal.Changed(rec, func(rec *model.ClaimRecord) { rec.Name = name })
			}
		}
	}
	return &model.ClaimRecord{Name: name, Sequence: w.Record.Sequence, FirstRevision: w.Desired.Revision, FirstSeen: w.Now}
}

// Unbindable says why a claim must not be bound, whatever servers are free.
func (w *World) Unbindable(c *bind.Claim) proposal.Why {
	for _, u := range w.Record.Unreadable {
		if u.Claim == c.Name {
			return proposal.Why{Reason: string(model.DoubtUnreadable), Message: fmt.Sprintf("the record of server %s, which serves it, cannot be read: approve by %s "+
				"that it is given up", u.Server, proposal.ApproveLine(u.Token)), Since: u.Since, Actor: proposal.RackOperator}
		}
	}
	if why := w.boundInGap(c.Record); why.Reason != "" {
		return why
	}
	if a, listed := w.Desired.Absence(c.Name.Identity()); listed && a.Blob == "" {
		return laws.AbsentWhy("claim "+string(c.Name), a)
	}
	if c.Record.Sequence > 1 {
		return proposal.Why{}
	}
	return w.unknownFleet
}

// boundInGap returns why a claim waits that may have been bound by a lost decision, to a server that runs unexpectedly.
func (w *World) boundInGap(rec *model.ClaimRecord) proposal.Why {
	held := slices.IndexFunc(w.Record.Holds, func(h model.GuardHold) bool { return h.Gap })
	if held >= 0 && !rec.FirstSeen.After(w.Record.Holds[held].Since) {
		h := w.Record.Holds[held]
		return proposal.Why{Reason: model.ReasonGuardHeld, Message: "no Ingot had run for long, and steps on servers that run wait for an approval; " +
			"one of them may serve this claim: approve the list by a commit whose message ends with " + proposal.ApproveLine(h.Token) +
			", or refuse it with " + proposal.Refuse(h.Revision),
			Since: h.Since, Actor: proposal.RackOperator}
	}
	if s := w.gapFound; s != nil && !rec.FirstSeen.After(s.Record.Life.FoundRunning) {
		return proposal.Why{Reason: model.ReasonFoundRunning, Message: fmt.Sprintf("server %s was found running after no Ingot had run for long, and may serve this claim: "+
			"see what it runs, then make a commit whose message ends with %s", s.Name, proposal.ApproveLine(w.Record.GapToken)), Since: s.Record.Life.FoundRunning, Actor: proposal.RackOperator}
	}
	if s := w.gapUnread; s != nil && (rec.FirstRevision == w.In.First || rec.FirstSeen.Before(w.Started)) {
		return proposal.Why{Reason: model.ReasonInProgress, Message: fmt.Sprintf("waiting until server %s shows whether it runs: it may serve this claim", s.Name), Since: w.Started, Actor: proposal.ActorNone}
	}
	return proposal.Why{}
}
