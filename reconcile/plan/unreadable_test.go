package plan_test

import (
	"testing"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/policy"
)

func TestAnUnreadableServerThatIsBackIsNotListed(t *testing.T) {
	in := &input{Desired: model.NewDesired(), Observed: model.NewObserved(), Now: fleettest.Now, Policy: policy.Default()}
	in.Observed.Servers["s1"] = &record{RecordIdentity: model.RecordIdentity{Name: "s1"}, Life: model.RecordLife{State: model.StateAvailable}}
	in.Observed.Fleet.Unreadable = []model.UnreadableRecord{{Server: "s1", Token: "one"}, {Server: "s2", Token: "two"}}
	got := plan.Plan(in).Decided.Fleet
	if got == nil || len(got.Unreadable) != 1 || got.Unreadable[0].Server != "s2" {
		t.Errorf("got %+v", got)
	}
	if len(in.Observed.Fleet.Unreadable) != 2 || in.Observed.Fleet.Unreadable[0].Server != "s1" {
		t.Errorf("the record that is in force was changed: %+v", in.Observed.Fleet.Unreadable)
	}
	in.ObserveOnly = "waiting"
	if got := plan.Plan(in).Decided.Fleet; got != nil {
		t.Errorf("one that only observes decided %+v", got)
	}
}
