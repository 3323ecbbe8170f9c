package plan

import (
	"cmp"
	"fmt"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// observeIfOutdated has nothing done while the revision in force is one kept over a
// restart that is not the one last acted upon: it may lack claims that are bound.
func (f *fleet) observeIfOutdated() {
	if why := cmp.Or(f.in.ObserveOnly, f.in.HealOnly); why != "" {
		f.observeOnly = proposal.Why{Reason: model.ReasonObserveOnly, Message: why, Since: f.in.Started, Actor: proposal.RackOperator}
	}
	if f.outdated() {
		f.observeOnly = proposal.Why{
			Reason: model.ReasonRevisionOutdated, Message: fmt.Sprintf("Git has not been read since the restart, and the stored revision is older than "+
				"%s, which was applied last", f.record.Applied.Revision().Short()),
			Since: f.record.At, Actor: proposal.RackOperator,
		}
	}
}

// outdated reports whether the revision in force is one kept over a restart that is
// not the one last acted upon.
func (f *fleet) outdated() bool {
	applied := f.in.Observed.Fleet.Applied.Revision()
	return f.in.Desired.KeptOverRestart && applied != "" && applied != f.in.Desired.Revision
}

// observe leaves the server as it is while nothing may be decided, but for the power of
// what is bound where that may be brought back.
func (s *server) observe() (Step, bool) {
	f := s.fleet
	if f.observeOnly.Reason == "" {
		return Step{}, false
	}
	lost := s.rec.Life.State == model.StateReserved && s.rec.Install.Digest != "" && s.rec.Release == nil &&
		s.rec.Claim.Power == model.PowerOn && s.power() == model.PowerOff && f.maintenance(s).by == ""
	if f.in.HealOnly != "" && f.in.ObserveOnly == "" && lost {
		return s.heals(s.diskBoot), true
	}
	return s.rest(f.observeOnly), true
}

// noteRevision counts revisions: claims are served in the order of the count.
func (f *fleet) noteRevision() {
	if f.record.Applied == f.in.Desired.Applied() || f.observeOnly.Reason != "" || f.renameWaits() {
		return
	}
	f.record.Applied, f.record.Tips, f.record.At = f.in.Desired.Applied(), f.in.Desired.Tips, f.in.Now
	f.record.Sequence++
}

// deletionUntrusted reports whether a claim's absence from Desired is no deletion.
func (f *fleet) deletionUntrusted(name model.ClaimName) bool {
	return f.in.Desired.IsQuarantined(name.Identity())
}

// maybeUnreadable reports whether an object of this kind may stand in Git though Desired
// has none: an object of that name, or any if name is "", is quarantined.
func (f *fleet) maybeUnreadable(kind model.Kind, name string) bool {
	for id := range f.in.Desired.Quarantined {
		if id.Kind == kind && (name == "" || id.Name == name) {
			return true
		}
	}
	return false
}
