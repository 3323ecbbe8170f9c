package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/proposal"
)

// noteOrphaned has the record say since when a commit has taken the server's BMC away.
func (s *server) noteOrphaned() (Step, bool) {
	gone := s.bmc == nil && s.fleet.bmcRemoved(s.rec)
	if s.fleet.observeOnly.Reason != "" || gone == !s.rec.Orphaned.IsZero() {
		return Step{}, false
	}
	rec := s.edit()
	rec.Orphaned = time.Time{}
	if gone {
		rec.Orphaned = s.now()
	}
	return s.stay(), true
}

// bmcRemoved reports whether a commit took a server's BMC away, or the Server that describes it
// within itself, and neither is back in a way that cannot be used.
func (f *fleet) bmcRemoved(rec *model.ServerRecord) bool {
	bmc, within := rec.BMC.Identity(), model.ServerName(rec.BMC).Identity()
	if f.in.Desired.IsQuarantined(bmc) || f.in.Desired.IsQuarantined(within) {
		return false
	}
	return !rec.Orphaned.IsZero() || f.removed(bmc) || f.removed(within)
}

// forget drops the record of a server whose BMC is gone from Git: of one that is nobody's once it
// was remembered for long enough, of any other when a person says so. The status branch shows that
// before, so that whoever finds the record there alone drops it as well.
func (s *server) forget() (Step, bool) {
	f := s.fleet
	name, value := s.requested()
	asked := name == model.OperationForget && !proposal.WasHandled(s.rec, proposal.AskedOperation, value)
	switch {
	case f.observeOnly.Reason != "", f.in.Desired.KeptOverRestart:
		return Step{}, false
	case asked && s.unforgettable() != "":
		return s.refuseOperation(value, s.unforgettable()), true
	case asked && !s.releaseAwaited():
	case s.blocked.Reason != model.ReasonDecommissioned:
		return s.remember()
	case s.now().Before(s.rememberedUntil()):
		return Step{Why: s.blocked, Wake: s.rememberedUntil()}, true
	default:
		value = string(s.rec.BMC)
	}
	switch why := s.unannounced(); {
	case why.Reason != "": // or what was decided before would count as shown
		return Step{Why: why}, true
	case !s.intends(model.IntentForget, value):
		s.announce(model.IntentForget, value)
		return s.stay(), true
	case f.in.BusyBMCs[s.rec.BMC], !asked && slices.ContainsFunc(f.bmcs, (*bmcView).unasked):
		return Step{Why: s.blocked}, true // one of them may be about to show it
	}
	return Step{Why: s.blocked, Forget: true}, true
}

// remember takes back that a server is to be forgotten.
func (s *server) remember() (Step, bool) {
	if i := s.rec.Intent; i == nil || i.Kind != model.IntentForget {
		return Step{}, false
	}
	s.edit().Intent = nil
	return s.stay(), true
}

// rememberedUntil is when a server that is nobody's is forgotten.
func (s *server) rememberedUntil() time.Time {
	return s.notedAt(s.rec.Orphaned).Add(s.fleet.in.Policy.RememberFor)
}

// unforgettable says why a person cannot have the server forgotten, "" if it can be.
func (s *server) unforgettable() string {
	again := ": remove that first, then give the annotation a new value"
	switch {
	case s.bmc != nil && s.bmc.found:
		return fmt.Sprintf("its BMC %s was found on the network, and is still known", s.rec.BMC)
	case s.bmc != nil:
		return fmt.Sprintf("its BMC %s is in Git (%s)%s", s.rec.BMC, s.bmc.spec.Source, again)
	case s.rec.Claim.Name != "" && !s.claimGone() || s.claimQuarantined():
		return fmt.Sprintf("claim %s has it%s", s.rec.Claim.Name, again)
	}
	return ""
}

// claimGone reports whether a commit took away the claim that the server has, or had.
func (s *server) claimGone() bool {
	return s.claim == nil && (s.rec.ReleaseDecided() || s.fleet.claimRemoved(s.rec))
}

// releaseAwaited reports whether the guard has still to let the server be taken from its claim.
func (s *server) releaseAwaited() bool {
	return s.rec.Claim.Name != "" && s.rec.Life.State == model.StateReserved && !s.rec.ReleaseDecided()
}

// refuseOperation notes that an operation is not done.
func (s *server) refuseOperation(value, why string) Step {
	rec := s.edit()
	proposal.MarkHandled(rec, proposal.AskedOperation, value)
	rec.Requests.Operation = &model.Operation{Value: value, NotedAt: s.now(), Outcome: model.OutcomeRefused, Message: why}
	return s.stay()
}

// forget notes that a server is forgotten, if its step says so.
func forget(c *proposal.Changes, rec *model.ServerRecord, st Step) {
	if !st.Forget {
		return
	}
	c.DropServers = append(c.DropServers, rec.Name)
	if !slices.Contains(c.DropBMCFacts, rec.BMC) {
		c.DropBMCFacts = append(c.DropBMCFacts, rec.BMC)
	}
}

// orphaned says why a server whose BMC is no longer described is left as it is.
func (s *server) orphaned() proposal.Why {
	bmc, since := s.rec.BMC, cmp.Or(s.rec.Orphaned, s.rec.Life.Since)
	if v := s.fleet.endpointBy[string(bmc)]; v != nil && v.by != "" {
		return proposal.Why{Reason: model.ReasonOrphaned, Message: fmt.Sprintf("BMC %s in Git describes the device that was discovered as BMC %s: the server is taken "+
			"over once that BMC shows it", v.by, bmc), Since: since, Actor: proposal.RackOperator}
	}
	why := s.notForgotten()
	if why == "" {
		return proposal.Why{Reason: model.ReasonDecommissioned, Message: fmt.Sprintf("a commit took its BMC %s away, so it is left as it is, and forgotten after %s unless "+
			"a BMC shows it again", bmc, text.Time(s.rememberedUntil())), Since: since, Actor: proposal.ActorNone}
	}
	first, name := "", string(s.name)
	if s.rec.Claim.Name != "" && !s.claimGone() {
		first = "remove the claim, and then "
	}
	if s.spec != nil {
		name = s.spec.Name
	}
	return proposal.Why{Reason: model.ReasonOrphaned, Message: fmt.Sprintf("its BMC %s is not in Git, so it is left as it is, and not forgotten, because %s: commit its BMC "+
		"again or, if the machine will not come back, %sgive Server %s annotation %s: %s",
		bmc, why, first, name, model.AnnotationOperation, s.newOperation(model.OperationForget)), Since: since, Actor: proposal.RackOperator}
}

// notForgotten says why a server whose BMC is gone from Git is not forgotten by itself, "" if it is.
func (s *server) notForgotten() string {
	f, rec := s.fleet, *s.rec
	if s.intends(model.IntentForget, string(rec.BMC)) {
		rec.Doubt = nil // the status branch shows that it is to be forgotten
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
	case s.spec != nil:
		return "a Server in Git describes it"
	case f.namedBy(s.name) != "":
		return f.namedBy(s.name) + " names it"
	case f.maybeUnreadable(model.KindBMC, ""), f.maybeUnreadable(model.KindServer, ""):
		return "a BMC or a Server in Git cannot be read, and may describe it"
	}
	return ""
}

// namedBy is the claim or ServerMaintenance in Git that names a server, "" if none does.
func (f *fleet) namedBy(server model.ServerName) string {
	if f.named == nil {
		f.named = make(map[model.ServerName]string)
		for _, c := range f.memory.claims {
			if ref := c.claim.Spec.ServerRef; !c.plain && ref != nil {
				f.named[f.resolve(ref.Name)] = c.claim.Identity().String()
			}
		}
		for _, name := range slices.Sorted(maps.Keys(f.in.Desired.Maintenances)) {
			m := f.in.Desired.Maintenances[name]
			f.named[f.resolve(m.Spec.ServerRef.Name)] = m.Identity().String()
		}
	}
	return f.named[server]
}
