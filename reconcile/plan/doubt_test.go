package plan

import (
	"testing"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
)

func TestABoundServerOfTheStatusBranchMayBeInstalledAlready(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*model.ServerRecord)
		want   model.DoubtReason // "" = its record counts again
	}{
		"nothing shows that it was installed": {func(r *model.ServerRecord) { r.Installed = "" }, model.DoubtInstallUnknown},
		"it was to be installed again":        {func(r *model.ServerRecord) { r.Reprovision = "1" }, model.DoubtInstallUnknown},
		"nor of one in Maintenance": {func(r *model.ServerRecord) {
			r.Installed, r.State, r.Back, r.MaintainedBy = "", model.StateMaintenance, model.StateReserved, "m"
		}, model.DoubtInstallUnknown},
		"nor of one in Error": {func(r *model.ServerRecord) {
			r.Installed, r.State, r.Back = "", model.StateError, model.StateReserved
		}, model.DoubtInstallUnknown},
		"it was installed": {func(*model.ServerRecord) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := bigFleet(1, 1)
			in.Desired.Add(fleettest.MaintenanceOf("m", 0))
			fleettest.ChangeRecord(in.Observed, 0, func(r *model.ServerRecord) {
				r.Doubt = &model.Doubt{Reason: model.DoubtFromStatusBranch, Since: in.Now}
				tt.change(r)
			})
			m := Plan(in).Moves["bmc00000-system-0"]
			if m == nil || len(m.Do) > 0 {
				t.Fatalf("the move is %+v, want a change of the record alone", m)
			}
			var got model.DoubtReason
			if m.Then.Doubt != nil {
				got = m.Then.Doubt.Reason
			}
			if got != tt.want {
				t.Errorf("its doubt is %q, want %q", got, tt.want)
			}
		})
	}
}

func TestWhatIsChosenIsWipedAsItWasAskedFor(t *testing.T) {
	for name, tt := range map[string]struct {
		choose model.Alternative
		want   string
	}{
		"a wipe of the claim's server": {model.Alternative{Token: "t", State: model.StateCleanup}, model.CleanupSecure},
		"the same claim":               {model.Alternative{Token: "t", State: model.StateReserved, Claim: "its own"}, model.CleanupSecure},
		"another claim":                {model.Alternative{Token: "t", State: model.StateReserved, Claim: "default/other"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := bigFleet(1, 1)
			in.Desired.Approvals = []string{"t"}
			fleettest.ChangeRecord(in.Observed, 0, func(r *model.ServerRecord) {
				if tt.choose.Claim == "its own" {
					tt.choose.Claim = r.Claim
				}
				r.ClaimCleanup = model.CleanupSecure
				r.Doubt = &model.Doubt{Reason: model.DoubtDisputed, Since: in.Now, Alternatives: []model.Alternative{tt.choose}}
			})
			m := Plan(in).Moves["bmc00000-system-0"]
			if m == nil || m.Then.State != tt.choose.State || m.Then.ClaimCleanup != tt.want {
				t.Errorf("the move is %+v, want one to %s with cleanup %q", m, tt.choose.State, tt.want)
			}
		})
	}
}

// What asks for an install in Git may be what was installed before the store was lost.
func TestWhatMayHaveBeenInstalledIsNotAskedForAgain(t *testing.T) {
	in := bigFleet(1, 1)
	var name model.ClaimName
	fleettest.ChangeRecord(in.Observed, 0, func(r *model.ServerRecord) {
		r.Doubt, r.Installed, name = &model.Doubt{Reason: model.DoubtFromStatusBranch, Since: in.Now}, "", r.Claim
	})
	c := *in.Desired.Claims[name]
	c.Annotations = map[string]string{model.AnnotationReprovision: "1", model.AnnotationOverwrite: "yes"}
	in.Desired.Add(&c)
	m := Plan(in).Moves[fleettest.ServerName(0)]
	if m == nil || m.Then.HandledReprovision != "1" || m.Then.HandledOverwrite != "yes" || m.Then.Reprovision != "" {
		t.Errorf("the move is %+v", m)
	}
}

// A file of the status branch that somebody edited stops nothing but its server.
func TestARecordThatAwaitsTheApprovalOfNoMaintenanceIsPlanned(t *testing.T) {
	in := bigFleet(1, 1)
	fleettest.ChangeRecord(in.Observed, 0, func(r *model.ServerRecord) { r.AwaitedApproval = &model.AwaitedApproval{} })
	if s := Plan(in).Servers[0]; s.Why.Reason == model.ReasonApprovalAwaited {
		t.Errorf("it waits for %+v", s.Why)
	}
}
