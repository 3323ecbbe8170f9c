package world

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/life"
	"ingot/reconcile/plan/proposal"
)

// BMCRemoved reports whether a commit took a server's BMC away, or the Server that describes it
// within itself, and neither is back in a way that cannot be used.
func (f *World) BMCRemoved(rec *model.ServerRecord) bool {
	bmc, within := rec.BMC.Identity(), model.ServerName(rec.BMC).Identity()
	if f.In.Desired.IsQuarantined(bmc) || f.In.Desired.IsQuarantined(within) {
		return false
	}
	return !rec.Orphaned.IsZero() || f.Moment.Removed(bmc) || f.Moment.Removed(within)
}

// RememberedUntil is when an unclaimed server is forgotten.
func (s *Server) RememberedUntil() time.Time {
	return s.NotedAt(s.Record.Orphaned).Add(s.Policy.RememberFor)
}

// Unforgettable says why a person cannot have the server forgotten, "" if it can be.
func (s *Server) Unforgettable() string {
	again := ": remove that first, then give the annotation a new value"
	switch {
	case s.Behind != nil && s.Behind.Found:
		return fmt.Sprintf("its BMC %s was found on the network, and is still known", s.Record.BMC)
	case s.Behind != nil:
		return fmt.Sprintf("its BMC %s is in Git (%s)%s", s.Record.BMC, s.Behind.Manifest.Source, again)
	case s.Record.Claim.Name != "" && !s.claimGone() || life.ClaimQuarantined(s.Server):
		return fmt.Sprintf("claim %s has it%s", s.Record.Claim.Name, again)
	}
	return ""
}

// claimGone reports whether a commit took away the claim that the server has, or had.
func (s *Server) claimGone() bool {
	_, removed := s.ClaimRemoval(s.Record)
	return s.Claim == nil && (s.Record.ReleaseDecided() || removed)
}

// ReleaseAwaited reports whether the guard has still to let the server be taken from its claim.
func (s *Server) ReleaseAwaited() bool {
	return s.Record.Claim.Name != "" && s.Record.Life.State == model.StateReserved && !s.Record.ReleaseDecided()
}

// orphaned says why a server whose BMC is no longer described is left as it is.
func (s *Server) orphaned() proposal.Why {
	bmc, since := s.Record.BMC, cmp.Or(s.Record.Orphaned, s.Record.Life.Since)
	if by := s.World.BMCs.DescribedBy(string(bmc)); by != "" {
		return proposal.Why{Reason: model.ReasonOrphaned, Message: fmt.Sprintf("BMC %s in Git describes the device that was discovered as BMC %s: the server is taken "+
			"over once that BMC shows it", by, bmc), Since: since, Actor: proposal.RackOperator}
	}
	why := s.notForgotten()
	if why == "" {
		return proposal.Why{Reason: model.ReasonDecommissioned, Message: fmt.Sprintf("a commit took its BMC %s away, so it is left as it is, and forgotten after %s unless "+
			"a BMC shows it again", bmc, text.Time(s.RememberedUntil())), Since: since, Actor: proposal.ActorNone}
	}
	first, name := "", string(s.Name)
	if s.Record.Claim.Name != "" && !s.claimGone() {
		first = "remove the claim, and then "
	}
	if s.Manifest != nil {
		name = s.Manifest.Name
	}
	return proposal.Why{Reason: model.ReasonOrphaned, Message: fmt.Sprintf("its BMC %s is not in Git, so it is left as it is, and not forgotten, because %s: commit its BMC "+
		"again or, if the machine will not come back, %sgive Server %s annotation %s: %s",
		bmc, why, first, name, model.AnnotationOperation, proposal.NewOperation(s.Server, model.OperationForget)), Since: since, Actor: proposal.RackOperator}
}

// notForgotten says why a server whose BMC is gone from Git is not forgotten by itself, "" if it is.
func (s *Server) notForgotten() string {
	f, rec := s.World, *s.Record
	if s.Intends(model.IntentForget, string(rec.BMC)) {
		rec.Doubt = nil // the status branch shows that it will be forgotten
	}
	switch {
	case rec.Claim.Name != "" && s.claimGone():
		return fmt.Sprintf("its disks may hold what claim %s left there", rec.Claim.Name)
	case rec.Claim.Name != "":
		return fmt.Sprintf("claim %s has it", rec.Claim.Name)
	case !rec.Life.FoundRunning.IsZero():
		return "it was found running"
	case rec.Doubt != nil:
		return "its record may not be what was decided last"
	case !free(&rec):
		return fmt.Sprintf("its disks may hold data of its last user (%s)", rec.Life.State)
	case rec.Orphaned.IsZero():
		return "no commit is known that took its BMC away"
	case s.Manifest != nil:
		return "a Server in Git describes it"
	case f.namedBy(s.Name) != "":
		return f.namedBy(s.Name) + " names it"
	case f.Moment.MaybeUnreadable(model.KindBMC, ""), f.Moment.MaybeUnreadable(model.KindServer, ""):
		return "a BMC or a Server in Git cannot be read, and may describe it"
	}
	return ""
}

// namedBy is the claim or ServerMaintenance in Git that names a server, "" if none does.
func (f *World) namedBy(server model.ServerName) string {
	if f.named == nil {
		f.named = make(map[model.ServerName]string)
		for i := range f.Claims {
			if c := f.Claims[i].Manifest; c.Spec.ServerRef != nil {
				f.named[f.Moment.Resolve(c.Spec.ServerRef.Name)] = c.Identity().String()
			}
		}
		for _, name := range slices.Sorted(maps.Keys(f.In.Desired.Maintenances)) {
			m := f.In.Desired.Maintenances[name]
			f.named[f.Moment.Resolve(m.Spec.ServerRef.Name)] = m.Identity().String()
		}
	}
	return f.named[server]
}
