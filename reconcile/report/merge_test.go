package report

import (
	"ingot/model"
	"ingot/reconcile/plan"
	"reflect"
	"testing"
	"time"
)

var mergeNow = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// at makes a version.
func at(fence, seq uint64) model.Version { return model.Version{Fence: fence, Seq: seq} }

// copyOf is a copy of server s1's record.
func copyOf(v model.Version, state model.ServerState, claim model.ClaimName, edit ...func(*model.ServerRecord)) *model.ServerRecord {
	r := &model.ServerRecord{Version: v, Name: "s1", State: state, Claim: claim}
	for _, e := range edit {
		e(r)
	}
	return r
}

// What Ingot writes is what it reads back.
func TestWhatIsWrittenOnTheBranchIsReadBack(t *testing.T) {
	server := copyOf(at(7, 20), model.StateReserved, "default/web", func(r *model.ServerRecord) { r.BMC, r.UUID = "b1", "u" })
	in := &plan.Input{Desired: model.NewDesired(), Observed: model.NewObserved(), Now: mergeNow}
	in.Observed.Servers["s1"] = server
	in.Observed.Fleet = model.FleetRecord{Version: at(7, 8), Sequence: 3}
	b, problems := ReadBranch(rendered(t, NewProjector().Report(in, plan.Plan(in), 7, model.Holder{})))
	if len(problems) > 0 || !reflect.DeepEqual(b.Servers["s1"], server) || b.Fleet.Sequence != 3 {
		t.Errorf("got %+v and %+v, %v", b.Servers["s1"], b.Fleet, problems)
	}
}
