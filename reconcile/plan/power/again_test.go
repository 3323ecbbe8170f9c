package power_test

import (
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/plantest"
	"ingot/reconcile/plan/power"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/reading"
)

func TestTimesInARowThatPowerIsRestored(t *testing.T) {
	const on, off = model.PowerOn, model.PowerOff
	for name, tt := range map[string]struct {
		asked *model.PowerAsked // its At is set from ago
		ago   time.Duration
		want  model.Power
		times int
	}{
		"nothing was asked before":                {want: on},
		"the other state was asked for before":    {asked: &model.PowerAsked{Want: off, Reached: true, Again: 3}, want: on},
		"it was switched on for another reason":   {asked: &model.PowerAsked{Want: on, Reached: true}, ago: time.Minute, want: on, times: 1},
		"it was brought back before":              {asked: &model.PowerAsked{Want: on, Reached: true, Again: 1}, ago: time.Minute, want: on, times: 2},
		"and stayed so for a while":               {asked: &model.PowerAsked{Want: on, Reached: true, Again: 3}, ago: 14 * time.Minute, want: on, times: 1},
		"and did not":                             {asked: &model.PowerAsked{Want: on, Reached: true, Again: 3}, ago: 13 * time.Minute, want: on, times: 4},
		"it did not come on":                      {asked: &model.PowerAsked{Want: on, Again: 2}, ago: 5 * time.Minute, want: on, times: 3},
		"its BMC did not answer the last request": {asked: &model.PowerAsked{Want: on, Again: 2, Unsure: true, Reset: model.ResetOn, Tries: 1}, ago: 5 * time.Minute, want: on, times: 2},
		"it is forced off after it did not shut down": {
			asked: &model.PowerAsked{Want: off, Again: 2, Reset: model.ResetGracefulOff}, ago: 5 * time.Minute, want: off, times: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := plantest.BigFleet(1, 1)
			s := plantest.ServerOf(in, "bmc00000-system-0")
			*s.Reading, s.Facts.Power = reading.State{At: in.Now}, model.PowerOff
			if tt.want == off {
				s.Facts.Power = model.PowerOn
			}
			if s.Record.Power.Asked = tt.asked; tt.asked != nil {
				tt.asked.At = in.Now.Add(-tt.ago)
			}
			p := power.Toward(proposal.Proposal{Of: s, Goal: &proposal.Goal{Want: tt.want, Again: true, Grace: time.Minute}}, nil)
			if len(p.Do) != 1 || p.Of.Record.Power.Asked.Want != tt.want {
				t.Fatalf("it is not asked to go %s: %+v, %+v", tt.want, p.Do, p.Why)
			}
			if got := p.Of.Record.Power.Asked.Again; got != tt.times {
				t.Errorf("it is the time %d in a row, want %d", got, tt.times)
			}
		})
	}
}
