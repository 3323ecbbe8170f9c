package plan

import (
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// A BMC that does not say whether its server is on is a person's to look at, and is not asked
// more often than that of a server at rest.
func TestAPowerStateThatStaysUnknownIsSomebodys(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	step := func(power model.Power, looks int) Step {
		var r proposal.Reading
		for range looks {
			r = r.Saw(power, nil, 3, now)
		}
		in := Input{Now: now, Policy: proposal.DefaultPolicy()}
		st, _ := (&server{
			fleet: &fleet{in: &in}, name: "s1", reading: &r,
			facts: &model.ServerFacts{Power: power}, rec: &model.ServerRecord{RecordIdentity: model.RecordIdentity{Name: "s1"}},
		}).awaitSettled()
		return st
	}
	minute := proposal.DefaultPolicy().PollInterval * 9 / 10
	for name, tt := range map[string]struct {
		power model.Power
		looks int
		actor proposal.Actor
		rests bool
	}{
		"not shown once":              {power: model.PowerUnknown, looks: proposal.PowerUnknown - 1, actor: proposal.ActorNone},
		"not shown for a while":       {power: model.PowerUnknown, looks: proposal.PowerUnknown, actor: proposal.RackOperator, rests: true},
		"between the two for a while": {power: model.PowerPoweringOff, looks: 9, actor: proposal.ActorNone},
	} {
		t.Run(name, func(t *testing.T) {
			st := step(tt.power, tt.looks)
			if rests := !st.Wake.Before(now.Add(minute)); st.Why.Actor != tt.actor || rests != tt.rests {
				t.Errorf("it waits until %s for %+v", st.Wake, st.Why)
			}
		})
	}
}
