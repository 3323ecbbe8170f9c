package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/internal/plantest"
)

func TestWhatTheBootConfigurationSaysWasFetched(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	both := &model.Progress{Ticket: "t", ScriptAt: at, IgnitionAt: at}
	const (
		script    = "True IPXEScriptDelivered: IPXE script has been successfully delivered to the client."
		ignition  = "True IgnitionDataDelivered: Ignition data has been successfully delivered to the client."
		cloudInit = "True CloudInitDataDelivered: cloud-init data has been successfully delivered to the client."
	)
	tests := map[string]struct {
		config   model.TicketThing
		progress *model.Progress
		want     [3]string // script, Ignition, cloud-init
		stages   []model.BootStage
	}{
		"nothing yet": {stages: []model.BootStage{model.StageArmed}},
		"a script": {
			progress: &model.Progress{Ticket: "t", ScriptAt: at}, want: [3]string{script},
			stages: []model.BootStage{model.StageArmed, model.StageScript},
		},
		"Ignition": {
			progress: both, want: [3]string{script, ignition},
			stages: []model.BootStage{model.StageArmed, model.StageScript, model.StageIgnition},
		},
		"cloud-init's data": {
			config: model.ThingCloudInit, progress: both, want: [3]string{script, "", cloudInit},
			stages: []model.BootStage{model.StageArmed, model.StageScript, model.StageIgnition},
		},
		"the claim's script": {
			config: model.ThingScript, progress: both, want: [3]string{script},
			stages: []model.BootStage{model.StageArmed, model.StageScript},
		},
		"with another ticket": {
			progress: &model.Progress{Ticket: "old", ScriptAt: at, IgnitionAt: at}, stages: []model.BootStage{model.StageArmed},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in, rec := plantest.Ticketed(model.StateReserved, model.PurposeClaim)
			rec.Boot.Ticket.Config = tc.config
			in.Observed.Progress[rec.Name] = tc.progress
			conds := bootConfigurationOf(in, rec.Claim.Name).Conditions
			var got [3]string
			for i, kind := range []string{"IPXEScriptFetched", "IgnitionDataFetched", "CloudInitDataFetched"} {
				got[i] = fleettest.ConditionOf(conds, kind)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			var stages []model.BootStage
			for _, st := range in.Observed.BootOf(rec).Steps() {
				stages = append(stages, st.Stage)
			}
			if diff := cmp.Diff(tc.stages, stages); diff != "" {
				t.Errorf("timeline (-want +got):\n%s", diff)
			}
		})
	}
}

func TestABootThatFailedIsAnErrorOfItsConfiguration(t *testing.T) {
	in, rec := plantest.Ticketed(model.StateReserved, model.PurposeClaim)
	rec.Boot.Ticket.Ended, rec.Boot.Attempts = model.TicketSpent, 1
	rec.Boot.Problem = &model.BootProblem{
		Digest: rec.Boot.Ticket.Digest, Reason: model.ReasonBootTimeout, Message: "it did not boot", Image: "os:1",
	}
	st := bootConfigurationOf(in, rec.Claim.Name)
	if got := fleettest.ConditionOf(st.Conditions, "Booted"); st.State != "Error" ||
		got != "False BootTimeout: it did not boot; it is tried again (to act: rack operator)" {
		t.Errorf("%s, Booted %s", st.State, got)
	}
	if got := fleettest.ConditionOf(st.Conditions, "ImageValidation"); got[:5] != "True " {
		t.Errorf("the image, which was fetched, is %s", got)
	}
}
