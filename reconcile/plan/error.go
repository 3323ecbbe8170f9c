package plan

import (
	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// erroneous leaves a server alone until its cause is gone or a person says so.
func (s *server) erroneous() Step {
	if s.rec.Life.Reason == model.ReasonPowerOutcomeUnknown && s.reached() {
		rec := s.edit()
		back := rec.Life.Back
		rec.Life.Back, rec.Life.LastError = "", ""
		return s.enter(back)
	}
	if s.rec.Life.Reason == model.ReasonMachineAmbiguous && s.identified() {
		rec := s.edit()
		rec.Life.Back, rec.Boot.Attempts = "", 0
		return s.enter(model.StateInitial)
	}
	if st, ok := s.accept(); ok {
		return st
	}
	return s.rest(s.whySince(s.rec.Life.Reason, s.rec.Life.Message, proposal.RackOperator))
}
