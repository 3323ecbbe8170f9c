package world

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/bmcs"
	"ingot/reconcile/plan/life"
	"ingot/reconcile/plan/proposal"
)

// observeOnly says why nothing may be done, or nothing but to heal. An Outdated revision may lack claims that are bound.
func (w *World) observeOnly() (why proposal.Why) {
	if w.Outdated() {
		return proposal.Why{Reason: model.ReasonRevisionOutdated, Message: fmt.Sprintf("Git has not been read since the restart, and the stored revision is older than "+
			"%s, which was applied last", w.Record.Applied.Revision().Short()), Since: w.Record.At, Actor: proposal.RackOperator}
	}
	if says := cmp.Or(w.In.ObserveOnly, w.In.HealOnly); says != "" {
		why = proposal.Why{Reason: model.ReasonObserveOnly, Message: says, Since: w.Started, Actor: proposal.RackOperator}
	}
	return why
}

// Outdated reports whether the revision in force is one kept over a restart that is not the one last acted upon.
func (w *World) Outdated() bool {
	applied := w.Observed.Fleet.Applied.Revision()
	return w.Desired.KeptOverRestart && applied != "" && applied != w.Desired.Revision
}

// noteRevision counts revisions: claims are served in the order of the count. A revision that renames the claim of a
// server is not applied before that can follow, or the new name would be forgotten.
func (w *World) noteRevision() {
	waits := func(s *Server) bool { return s.Renamed != nil && s.Busy }
	if w.Record.Applied == w.Desired.Applied() || slices.ContainsFunc(w.Servers, waits) {
		return
	}
	w.Record.Applied, w.Record.Tips, w.Record.At = w.Desired.Applied(), w.Desired.Tips, w.Now
	w.Record.Sequence++
}

// noteUnknown has the claims of the very first revision wait for the servers that may serve them already, until all
// were seen and none ran, or a commit approves them.
func (w *World) noteUnknown() {
	rec := w.Record
	switch {
	case rec.Applied.IsZero() && rec.UnknownToken == "" && len(w.Desired.Claims) > 0:
		rec.Unknown, rec.UnknownToken = w.Now, proposal.Token(w.In.Nonce, "fleet", proposal.TokenLength)
	case rec.UnknownToken == "":
	case slices.Contains(w.Desired.Approvals, rec.UnknownToken), !rec.Applied.IsZero() && w.allOff():
		rec.Unknown, rec.UnknownToken = time.Time{}, ""
	}
	if rec.UnknownToken != "" {
		w.unknownFleet = w.unknownWhy()
	}
}

// unknownWhy is what the claims of the very first revision wait for.
func (w *World) unknownWhy() proposal.Why {
	why := proposal.Why{Reason: model.ReasonFleetUnknown, Since: w.Record.Unknown, Actor: proposal.RackOperator}
	unread := func(b *bmcs.BMC) bool { return b.Target.Address != "" && b.Facts == nil && b.Record.Reason == "" }
	if i := slices.IndexFunc(w.BMCs.BMCs, unread); i >= 0 {
		why.Message, why.Actor = "waiting for every BMC to show its servers, because nothing is known of the fleet yet; "+
			"next "+string(w.BMCs.BMCs[i].Name), proposal.ActorNone
		return why
	}
	i := slices.IndexFunc(w.Servers, func(s *Server) bool { return life.MayServe(s.Server) })
	if i < 0 {
		return proposal.Why{}
	}
	why.Message = fmt.Sprintf("neither the store nor the status branch knows the fleet, and server %s was found running: it may "+
		"serve this claim already. Adopt it by spec.serverClaimRef, or make a commit whose message ends with %s",
		w.Servers[i].Name, proposal.ApproveLine(w.Record.UnknownToken))
	return why
}

// allOff reports whether every BMC has shown its servers, and none was found running.
func (w *World) allOff() bool {
	unread := func(b *bmcs.BMC) bool { return b.Facts == nil }
	mayRun := func(s *Server) bool {
		return life.MayServe(s.Server) || s.State() == model.StateInitial && s.Power() != model.PowerOff && !s.Opened(model.PurposeDiscovery)
	}
	return len(w.Servers) > 0 && !slices.ContainsFunc(w.BMCs.BMCs, unread) && !slices.ContainsFunc(w.Servers, mayRun)
}

// noteGap has a token for the servers that were found running after a gap, while there are any.
func (w *World) noteGap() {
	for _, s := range w.Servers {
		switch {
		case life.FoundInGap(s.Server) && (w.gapFound == nil || s.Record.Life.FoundRunning.After(w.gapFound.Record.Life.FoundRunning)):
			w.gapFound = s
		case w.LongGap && life.ShouldBeOff(s.Server) && !life.FoundInGap(s.Server) && !s.Reading.WasOff && s.Reading.Failures == 0:
			w.gapUnread = s
		}
	}
	switch {
	case w.gapFound == nil:
		w.Record.GapToken = ""
	case w.Record.GapToken == "":
		w.Record.GapToken = proposal.Token(w.In.Nonce, "gap", proposal.TokenLength)
	}
}

// noteAbsences records what the source keeps in force though Git lacks it. The records that cannot be read are
// forgotten once a person says so, or the server is known again.
func (w *World) noteAbsences() {
	absent, shown := w.Desired.Absent, min(len(w.Desired.Absent), model.MaxAbsent)
	w.Record.Absent, w.Record.AbsentMore, w.Record.AbsentToken = absent[:shown], len(absent)-shown, w.Desired.AbsentToken
	w.Record.Unreadable = slices.DeleteFunc(slices.Clone(w.Record.Unreadable), func(u model.UnreadableRecord) bool {
		return w.Observed.Servers[u.Server] != nil || slices.Contains(w.Desired.Approvals, u.Token)
	})
}

// noteRemovals records, with the revision applied, which commits removed objects that servers depend on. An entry is
// dropped once nothing depends on the object, or it is back.
func (w *World) noteRemovals() {
	var noted []model.RemovedObject
	note := func(id model.Identity, tenant string, r model.Removal, removed bool) {
		same := func(n model.RemovedObject) bool { return n.Identity == id && n.IsOf(tenant) }
		if removed && !slices.ContainsFunc(noted, same) {
			noted = append(noted, model.RemovedObject{Identity: id, Removal: r})
		}
	}
	for _, s := range w.Servers {
		claim := s.Record.Claim
		if claim.Name != "" && s.Claim == nil && !s.Record.ReleaseDecided() { // else a claim of that name may be another server's by now
			r, removed := s.LastClaimRemoval(s.Record)
			note(claim.Name.Identity(), claim.Tenant, r, removed)
		}
		s.eachMissing(func(id model.Identity) {
			r, removed := s.LastRemoval(id, "")
			note(id, "", r, removed)
		})
	}
	slices.SortFunc(noted, func(a, b model.RemovedObject) int {
		return cmp.Or(cmp.Compare(a.Identity.String(), b.Identity.String()), cmp.Compare(a.Tenant, b.Tenant))
	})
	w.Record.Removed = noted
}

// eachMissing calls do for each object, other than a claim, that the server depends on and that Desired lacks.
func (s *Server) eachMissing(do func(model.Identity)) {
	rec := s.Record
	if by := rec.Maintenance.By; by != "" && by != model.OperationPark {
		if m := s.Desired.Maintenances[by]; m == nil || s.Namesake(m) {
			do(model.MaintenanceIdentity(by))
		}
	}
	for _, rule := range rec.Life.BootstrapCompleted {
		if s.Desired.ReadinessRules[rule] == nil {
			do(model.ReadinessRuleIdentity(rule))
		}
	}
	if s.Behind == nil && rec.Orphaned.IsZero() { // until that is noted
		do(rec.BMC.Identity())
		do(model.ServerName(rec.BMC).Identity())
	}
	if s.Manifest == nil && (rec.Claim.Name != "" || rec.Maintenance.By == model.OperationPark) {
		do(s.Name.Identity())
	}
}
