package plan

import (
	"testing"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
)

// What asks for an install in Git may be what was installed before the store was lost.
func TestWhatMayHaveBeenInstalledIsNotAskedForAgain(t *testing.T) {
	in := bigFleet(1, 1)
	var name model.ClaimName
	fleettest.ChangeRecord(in.Observed, 0, func(r *model.ServerRecord) {
		r.Doubt, r.Install.Digest, name = &model.Doubt{Reason: model.DoubtInstallUnknown}, "", r.Claim.Name
	})
	c := *in.Desired.Claims[name]
	c.Annotations = map[string]string{model.AnnotationReprovision: "1", model.AnnotationOverwrite: "yes"}
	in.Desired.Add(&c)
	m := Plan(in).Moves[fleettest.ServerName(0)]
	if m == nil || m.Then.Requests.HandledReprovision != "1" || m.Then.Requests.HandledOverwrite != "yes" || m.Then.Install.Reprovision != "" {
		t.Errorf("the move is %+v", m)
	}
}

// A file of the status branch that somebody edited stops nothing but its server.
func TestARecordThatAwaitsTheApprovalOfNoMaintenanceIsPlanned(t *testing.T) {
	in := bigFleet(1, 1)
	fleettest.ChangeRecord(in.Observed, 0, func(r *model.ServerRecord) { r.Maintenance.Awaits = &model.AwaitedApproval{} })
	if s := Plan(in).Servers[0]; s.Why.Reason == model.ReasonApprovalAwaited {
		t.Errorf("it waits for %+v", s.Why)
	}
}
