package plan_test

import (
	"testing"

	"ingot/model"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/reading"
)

// A BMC that does not say whether its server is on needs a person, and is read at the interval of a
// server at rest.
func TestAPowerStateThatStaysUnknownNeedsAPerson(t *testing.T) {
	minute := policy.Default().PollInterval * 9 / 10
	for name, tt := range map[string]struct {
		power model.Power
		looks int
		actor proposal.Actor
		rests bool
	}{
		"not shown once":              {power: model.PowerUnknown, looks: reading.Unknown - 1, actor: proposal.ActorNone},
		"not shown for a while":       {power: model.PowerUnknown, looks: reading.Unknown, actor: proposal.RackOperator, rests: true},
		"between the two for a while": {power: model.PowerPoweringOff, looks: 9, actor: proposal.ActorNone},
	} {
		t.Run(name, func(t *testing.T) {
			in := bigFleet(1, 0)
			var r reading.State
			for range tt.looks {
				r = r.Saw(tt.power, nil, 3, in.Now)
			}
			in.Readings[first], in.Observed.ServerFacts[first].Power = r, tt.power
			got := plan.Plan(in)
			if rests := !got.Next.Before(in.Now.Add(minute)); got.Servers[0].Why.Actor != tt.actor || rests != tt.rests {
				t.Errorf("it waits until %s for %+v", got.Next, got.Servers[0].Why)
			}
		})
	}
}
