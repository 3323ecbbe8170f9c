package plan

import "ingot/model"

// erroneous leaves a server alone until its cause is gone or a person says so.
func (s *server) erroneous() Step {
	if s.rec.Reason == model.ReasonPowerOutcomeUnknown && s.reached() {
		rec := s.edit()
		back := rec.Back
		rec.Back, rec.LastError = "", ""
		return s.enter(back)
	}
	if s.rec.Reason == model.ReasonMachineAmbiguous && s.identified() {
		rec := s.edit()
		rec.Back, rec.Attempts = "", 0
		return s.enter(model.StateInitial)
	}
	if st, ok := s.accept(); ok {
		return st
	}
	return s.rest(s.whySince(s.rec.Reason, s.rec.Message, RackOperator))
}
