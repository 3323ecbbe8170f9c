package plan_test

import (
	"testing"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan"
)

// What asks for an install in Git may be what was installed before the store was lost.
func TestADoubtfulInstallIsNotRepeated(t *testing.T) {
	in := bigFleet(1, 1)
	var name model.ClaimName
	fleettest.ChangeRecord(in.Observed, 0, func(r *record) {
		r.Doubt, r.Install.Digest, name = &model.Doubt{Reason: model.DoubtInstallUnknown}, "", r.Claim.Name
	})
	c := *in.Desired.Claims[name]
	c.Annotations = map[string]string{model.AnnotationReprovision: "1", model.AnnotationOverwrite: "yes"}
	in.Desired.Add(&c)
	m := plan.Plan(in).Moves[fleettest.ServerName(0)]
	if m == nil || m.Then.Requests.HandledReprovision != "1" || m.Then.Requests.HandledOverwrite != "yes" || m.Then.Install.Reprovision != "" {
		t.Errorf("the move is %+v", m)
	}
}

// An edited file of the status branch affects its own server alone.
func TestAnEmptyAwaitedApprovalIsIgnored(t *testing.T) {
	in := bigFleet(1, 1)
	fleettest.ChangeRecord(in.Observed, 0, func(r *record) { r.Maintenance.Awaits = &model.AwaitedApproval{} })
	if s := plan.Plan(in).Servers[0]; s.Why.Reason == model.ReasonApprovalAwaited {
		t.Errorf("it waits for %+v", s.Why)
	}
}
