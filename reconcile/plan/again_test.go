package plan

import (
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan/proposal"
)

func TestHowOftenInARowAServerIsBroughtBack(t *testing.T) {
	const on, off = model.PowerOn, model.PowerOff
	for name, tt := range map[string]struct {
		asked *model.PowerAsked // its At is how long ago
		ago   time.Duration
		want  model.Power
		times int
	}{
		"nothing was asked before":                   {nil, 0, on, 0},
		"the other state was asked for before":       {&model.PowerAsked{Want: off, Reached: true, Again: 3}, 0, on, 0},
		"it was switched on for another reason":      {&model.PowerAsked{Want: on, Reached: true}, time.Minute, on, 1},
		"it was brought back before":                 {&model.PowerAsked{Want: on, Reached: true, Again: 1}, time.Minute, on, 2},
		"and stayed so for a while":                  {&model.PowerAsked{Want: on, Reached: true, Again: 3}, 14 * time.Minute, on, 1},
		"and did not":                                {&model.PowerAsked{Want: on, Reached: true, Again: 3}, 13 * time.Minute, on, 4},
		"it did not come on":                         {&model.PowerAsked{Want: on, Again: 2}, 3 * time.Minute, on, 3},
		"it is asked again, for nobody answered":     {&model.PowerAsked{Want: on, Again: 2, Unsure: true}, time.Minute, on, 2},
		"it is forced off, for it did not shut down": {&model.PowerAsked{Want: off, Again: 2}, 5 * time.Minute, off, 2},
	} {
		t.Run(name, func(t *testing.T) {
			in := bigFleet(1, 1)
			in.Readings["bmc00000-system-0"] = proposal.Reading{}
			fleettest.ChangeRecord(in.Observed, 0, func(r *model.ServerRecord) {
				if r.Power.Asked = tt.asked; tt.asked != nil {
					r.Power.Asked.At = in.Now.Add(-tt.ago)
				}
			})
			s := newFleet(in).servers[0]
			s.bringsBack = true
			if got := s.timesAgain(tt.want); got != tt.times {
				t.Errorf("it would be the time %d in a row, want %d", got, tt.times)
			}
		})
	}
}
