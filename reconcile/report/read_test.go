package report

import (
	"reflect"
	"testing"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/world"
)

// What Ingot writes is what it reads back.
func TestWhatIsWrittenOnTheBranchIsReadBack(t *testing.T) {
	server := &model.ServerRecord{
		RecordIdentity: model.RecordIdentity{Name: "s1", BMC: "b1", UUID: "u"},
		Life:           model.RecordLife{State: model.StateReserved},
		Claim:          model.RecordClaim{Name: "default/web"},
	}
	in := &world.Input{Desired: model.NewDesired(), Observed: model.NewObserved(), Now: fleettest.Now}
	in.Observed.Servers["s1"] = server
	in.Observed.Fleet = model.FleetRecord{Sequence: 3}
	b, problems := ReadBranch(fleettest.Rendered(t, NewProjector().Report(in, plan.Plan(in), 7, model.Holder{})))
	if len(problems) > 0 || !reflect.DeepEqual(b.Servers["s1"], server) || b.Fleet.Sequence != 3 {
		t.Errorf("got %+v and %+v, %v", b.Servers["s1"], b.Fleet, problems)
	}
}

// What a branch shows of claims names servers also where a record cannot be read.
func TestTheFilesOfClaimsNameTheirServers(t *testing.T) {
	b, _ := ReadBranch(map[string][]byte{
		"serverclaims/default/web.yaml": []byte("record: {name: default/web}\nstatus: {server: s1}\n"),
		"serverclaims/default/db.yaml":  []byte("record: {name: 7}\nstatus: {server: s2}\n"),
		"serverclaims/default/new.yaml": []byte("record: {name: default/new}\nstatus: {phase: Pending}\n"),
		"serverclaims/default/odd.yaml": []byte("record: {name: default/odd}\nstatus: [s4]\n"),
		"servers/s5.yaml":               []byte("status: {server: s5}\n"),
	})
	if len(b.Serves) != 2 || b.Serves["s1"] != "default/web" || b.Serves["s2"] != "default/db" {
		t.Errorf("got %v", b.Serves)
	}
	if b.Claims["default/odd"] == nil {
		t.Error("a claim's record is lost with a status that cannot be read")
	}
}
