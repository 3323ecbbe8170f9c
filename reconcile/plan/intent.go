package plan

import (
	"fmt"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/proposal"
)

// announce notes a decision that the status branch has to show before it is acted upon.
func (s *server) announce(kind model.IntentKind, value string) {
	s.edit().Intent = &model.Intent{Kind: kind, Value: value, Revision: s.fleet.in.Desired.Revision}
}

// intends reports whether this decision is noted.
func (s *server) intends(kind model.IntentKind, value string) bool {
	i := s.rec.Intent
	return i != nil && i.Kind == kind && i.Value == value
}

// mustWait says why the machine must not be touched yet by a move; no reason = it may.
func (s *server) mustWait(m *Move) proposal.Why {
	if m.Heals {
		return proposal.Why{}
	}
	return s.unannounced()
}

// unannounced says why the server's newest decision is not to be acted upon yet; no reason = it may.
func (s *server) unannounced() proposal.Why {
	in := s.fleet.in
	switch {
	case !in.Policy.ShowFirst:
		return proposal.Why{}
	case in.Shown == nil:
		return s.waitsForBranch("waiting for this Ingot's first commit to the status branch")
	case !s.shown():
		return s.waitsToBeShown()
	}
	return proposal.Why{}
}

// shown reports whether the status branch shows the server's newest decision.
func (s *server) shown() bool {
	i := s.rec.Intent
	return i == nil || s.fleet.in.Shown[s.name] == *i
}

// meanwhile is the step of a bound server for which something disruptive was decided
// that the status branch does not show yet: it goes on as it did.
func (s *server) meanwhile() (Step, bool) {
	if !s.fleet.in.Policy.ShowFirst || s.rec.Life.State != model.StateReserved || s.shown() {
		return Step{}, false
	}
	i := s.rec.Intent
	switch i.Kind {
	case model.IntentBind, model.IntentAdopt, model.IntentWipe, model.IntentDiscover:
		return Step{}, false // nothing runs that could go on
	case model.IntentPower:
		if i.Value == string(model.PowerOn) {
			return Step{}, false
		}
	case model.IntentRelease, model.IntentReprovision, model.IntentMaintenance, model.IntentOperation, model.IntentForget:
	}
	ran := s.rec.Claim.Power == model.PowerOn || i.Kind == model.IntentPower
	if ran && s.rec.Install.Digest != "" && s.power() == model.PowerOff {
		return s.heals(s.diskBoot), true
	}
	return s.rest(s.waitsToBeShown()), true
}

func (s *server) waitsToBeShown() proposal.Why {
	i := s.rec.Intent
	return s.waitsForBranch(fmt.Sprintf("waiting for the status branch to show it: %s %s", i.Kind, i.Value))
}

func (s *server) waitsForBranch(message string) proposal.Why {
	why := s.why(model.ReasonWaitingForStatusBranch, message)
	if since := s.fleet.in.Unannounced; !since.IsZero() {
		why.Message += ", which cannot be pushed since " + text.Time(since) + "; see the check status of /readyz"
		why.Since, why.Actor = since, proposal.RackOperator
	}
	return why
}
