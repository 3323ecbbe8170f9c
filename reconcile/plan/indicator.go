package plan

import (
	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// indicate has the indicator of a server be as Git says, while there is nothing else to do
// with the server: it disturbs nothing that runs, so its state does not matter, but whether
// it is the machine that is meant does.
func (s *server) indicate(st Step) Step {
	inv, rec := s.facts.Inventory, s.stored
	if st.Queued != nil {
		return st // it may be begun at any time, and one server has one move
	}
	if s.spec == nil || inv == nil || rec == nil || !s.reachable() || s.duplicate().Reason != "" || s.fleet.isContradicted(s) {
		return st
	}
	want, shown := s.spec.Spec.IndicatorLED, model.Indicator{LED: inv.IndicatorLED, OnOff: inv.IndicatorOnOff}
	if want == "" || want == model.IndicatorUnknown || shown.Shows(want) {
		return st
	}
	if until, off := s.postponed(rec.Settings.IndicatorProblem, want); off {
		return st.wakeBy(until)
	}
	st.Move = &Move{Do: []proposal.Action{proposal.SetIndicator{To: want, Firmware: s.bmcFirmware()}}, Then: rec}
	return st
}

// setIndicator notes what the indicator shows, or why it is not as it should be: nothing
// else waits for that.
func (o *outcome) setIndicator(do proposal.SetIndicator, a *proposal.Answer) {
	if a.Failed != nil {
		o.rec.Settings.IndicatorProblem = o.settingProblem(o.rec.Settings.IndicatorProblem, do.To, do.Firmware, a)
		return
	}
	inv := o.learn()
	inv.IndicatorLED, inv.IndicatorOnOff = a.Indicator.LED, a.Indicator.OnOff
	if o.rec.Settings.IndicatorProblem != nil {
		o.rec.Settings.IndicatorProblem, o.decided = nil, true
	}
}
