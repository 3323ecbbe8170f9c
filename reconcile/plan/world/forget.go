package world

import (
	"cmp"
	"fmt"
	"time"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/life"
	"ingot/reconcile/plan/proposal"
)

// BMCRemoved reports whether a commit took a server's BMC away, or the Server that describes it, and none is back.
func (w *World) BMCRemoved(rec *model.ServerRecord) bool {
	bmc, within := rec.BMC.Identity(), model.ServerName(rec.BMC).Identity()
	if w.Desired.IsQuarantined(bmc) || w.Desired.IsQuarantined(within) {
		return false
	}
	return !rec.Orphaned.IsZero() || w.Removed(bmc) || w.Removed(within)
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

// ReleaseAwaited reports whether the guard has still to let the server be taken from its claim.
func (s *Server) ReleaseAwaited() bool {
	return s.Record.Claim.Name != "" && s.Record.Life.State == model.StateReserved && !s.Record.ReleaseDecided()
}

// claimGone reports whether a commit took away the claim that the server has, or had.
func (s *Server) claimGone() bool {
	_, removed := s.ClaimRemoval(s.Record)
	return s.Claim == nil && (s.Record.ReleaseDecided() || removed)
}

// orphaned says why a server whose BMC is no longer described is left as it is.
func (s *Server) orphaned() proposal.Why {
	bmc := s.Record.BMC
	why := proposal.Why{Reason: model.ReasonOrphaned, Since: cmp.Or(s.Record.Orphaned, s.Record.Life.Since), Actor: proposal.RackOperator}
	if by := s.world.BMCs.DescribedBy(string(bmc)); by != "" {
		why.Message = fmt.Sprintf("BMC %s in Git describes the device that was discovered as BMC %s: the server is taken "+
			"over once that BMC shows it", by, bmc)
		return why
	}
	kept := s.notForgotten()
	if kept == "" {
		why.Reason, why.Actor = model.ReasonDecommissioned, proposal.ActorNone
		why.Message = fmt.Sprintf("a commit took its BMC %s away, so it is left as it is, and forgotten after %s unless "+
			"a BMC shows it again", bmc, text.Time(s.RememberedUntil()))
		return why
	}
	first, name := "", string(s.Name)
	if s.Record.Claim.Name != "" && !s.claimGone() {
		first = "remove the claim, and then "
	}
	if s.Manifest != nil {
		name = s.Manifest.Name
	}
	why.Message = fmt.Sprintf("its BMC %s is not in Git, so it is left as it is, and not forgotten, because %s: commit its BMC "+
		"again or, if the machine will not come back, %sgive Server %s annotation %s: %s",
		bmc, kept, first, name, model.AnnotationOperation, proposal.NewOperation(s.Server, model.OperationForget))
	return why
}

// notForgotten says why a server whose BMC is gone from Git is not forgotten by itself, "" if it is.
func (s *Server) notForgotten() string {
	rec := *s.Record
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
	case s.world.namedBy(s.Name) != "":
		return s.world.namedBy(s.Name) + " names it"
	case s.Desired.MaybeUnreadable(model.KindBMC, ""), s.Desired.MaybeUnreadable(model.KindServer, ""):
		return "a BMC or a Server in Git cannot be read, and may describe it"
	}
	return ""
}

// namedBy is the claim or ServerMaintenance in Git that names a server, "" if none does.
func (w *World) namedBy(server model.ServerName) string {
	if w.named == nil {
		w.named = make(map[model.ServerName]string)
		for _, c := range w.Claims {
			if ref := c.Manifest.Spec.ServerRef; ref != nil {
				w.named[w.Resolve(ref.Name)] = c.Manifest.Identity().String()
			}
		}
		for _, name := range sorted(w.Desired.Maintenances) {
			m := w.Desired.Maintenances[name]
			w.named[w.Resolve(m.Spec.ServerRef.Name)] = m.Identity().String()
		}
	}
	return w.named[server]
}
