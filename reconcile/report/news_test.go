package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/internal/plantest"
	"ingot/reconcile/plan"
)

// file is a file of the status branch.
func file(kind model.Kind, namespace, name string, status any) *model.Document {
	return &model.Document{Object: &Document{Kind: string(kind), Metadata: Metadata{Namespace: namespace, Name: name}, Status: status}}
}

// reading is one condition.
func reading(kind string, status metav1.ConditionStatus, reason string) []metav1.Condition {
	return []metav1.Condition{{Type: kind, Status: status, Reason: reason}}
}

func TestASubjectNamesObjectAndOutcome(t *testing.T) {
	type files = map[string]*model.Document
	claim := func(status ClaimStatus) *model.Document {
		return file(model.KindServerClaim, "default", "web-1", status)
	}
	bmc := func(status BMCStatus) *model.Document { return file(model.KindBMC, "", "rack1-bmc-1", status) }
	server := func(name string, status ServerStatus) *model.Document {
		return file(model.KindServer, "", name, status)
	}
	booting := func(stage model.BootStage) ServerStatus {
		return ServerStatus{BootTimeline: []model.BootStep{{Stage: stage, At: time.Unix(1, 0)}}}
	}
	bound := append(reading("Bound", metav1.ConditionTrue, "Bound"), reading("Ready", metav1.ConditionFalse, "Booting")...)
	booted := append(reading("Bound", metav1.ConditionTrue, "Bound"), reading("Ready", metav1.ConditionTrue, "Booted")...)
	same := server("a", ServerStatus{})
	for name, tt := range map[string]struct {
		old, now files
		want     string
	}{
		"a claim that booted": {
			old:  files{"serverclaims/default/web-1.yaml": claim(ClaimStatus{Server: "rack1-07", Conditions: bound})},
			now:  files{"serverclaims/default/web-1.yaml": claim(ClaimStatus{Server: "rack1-07", Conditions: booted})},
			want: "default/web-1: Booted on rack1-07",
		},
		"a claim that has another server": {
			old:  files{"serverclaims/default/web-1.yaml": claim(ClaimStatus{Server: "rack1-07", Conditions: bound})},
			now:  files{"serverclaims/default/web-1.yaml": claim(ClaimStatus{Server: "rack1-08", Conditions: bound})},
			want: "default/web-1: Bound on rack1-08",
		},
		"a claim that is gone": {
			old:  files{"serverclaims/default/web-1.yaml": claim(ClaimStatus{})},
			want: "default/web-1: gone",
		},
		"a claim that no server fits": {
			now: files{"serverclaims/default/web-1.yaml": claim(ClaimStatus{
				Conditions: reading("Bound", metav1.ConditionFalse, "NoServerFits"),
			})},
			want: "default/web-1: Unbound",
		},
		"a BMC that is lost": {
			old: files{"bmcs/rack1-bmc-1.yaml": bmc(BMCStatus{
				State: "Enabled", Conditions: reading("Ready", metav1.ConditionTrue, "Connected"),
			})},
			now: files{"bmcs/rack1-bmc-1.yaml": bmc(BMCStatus{
				State: "Error", Conditions: reading("Ready", metav1.ConditionFalse, "ConnectionFailed"),
			})},
			want: "rack1-bmc-1: ConnectionFailed",
		},
		"a condition that changed and kept its reason": {
			old:  files{"servers/a.yaml": server("a", ServerStatus{Conditions: reading("Identified", metav1.ConditionTrue, "BMC")})},
			now:  files{"servers/a.yaml": server("a", ServerStatus{Conditions: reading("Identified", metav1.ConditionFalse, "BMC")})},
			want: "a: BMC",
		},
		"what a server was served": {
			old:  files{"servers/rack1-07.yaml": server("rack1-07", booting(model.StageScript))},
			now:  files{"servers/rack1-07.yaml": server("rack1-07", booting(model.StageKernel))},
			want: "rack1-07: kernel served",
		},
		"a server whose install waits for it to be off": {
			old:  files{"servers/rack1-07.yaml": server("rack1-07", ServerStatus{InstallStage: plan.InstallToArm})},
			now:  files{"servers/rack1-07.yaml": server("rack1-07", ServerStatus{InstallStage: plan.InstallAwaitingOff})},
			want: "rack1-07: install stage AwaitingOff",
		},
		"servers to which the same happened are counted": {
			old: files{"servers/a.yaml": server("a", ServerStatus{}), "servers/b.yaml": server("b", ServerStatus{})},
			now: files{
				"servers/a.yaml": server("a", ServerStatus{Manufacturer: "Contoso"}),
				"servers/b.yaml": server("b", ServerStatus{Manufacturer: "Contoso"}),
				"servers/c.yaml": server("c", ServerStatus{PowerState: model.PowerOn}),
			},
			want: "2 servers: inventory read; c: power On",
		},
		"manifests that are wrong": {
			old:  files{model.ReportProblems: {Object: &Problems{}}},
			now:  files{model.ReportProblems: {Object: &Problems{Problems: make([]model.Problem, 2)}}},
			want: "manifests: 2 problems",
		},
		"what the guard holds": {
			old:  files{model.ReportRevision: {Object: &Revision{}}},
			now:  files{model.ReportRevision: {Object: &Revision{Guard: []Guard{{Steps: make([]model.Disruption, 4)}}}}},
			want: "guard: 4 steps held back",
		},
		"a branch that cannot be fetched": {
			old:  files{model.ReportRevision: {Object: &Revision{}}},
			now:  files{model.ReportRevision: {Object: &Revision{Source: &Source{Reason: "FetchFailed"}}}},
			want: "manifests: FetchFailed",
		},
		"an unchanged fleet": {
			old:  files{"servers/a.yaml": same},
			now:  files{"servers/a.yaml": same},
			want: "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, subjectOf(newsOf(tt.old, tt.now))); diff != "" {
				t.Errorf("subject (-want +got):\n%s", diff)
			}
		})
	}
}

func TestACommitTellsOfClaimsBesideItsTransitions(t *testing.T) {
	in := plantest.BigFleet(2, 1)
	p := NewProjector()
	var story Story
	story.Published(plan.Plan(in), p.Report(in, plan.Plan(in), 1, model.Holder{}))
	fleettest.ChangeRecord(in.Observed, 1, func(r *model.ServerRecord) { r.State = model.StateError; r.Reason = "CleanupFailed" })
	r := p.Report(in, plan.Plan(in), 1, model.Holder{})
	delete(r.Documents, "serverclaims/default/c00000.yaml")
	story.Tell(plan.Plan(in), r)
	if want := "bmc00001-system-0: Available → Error"; r.Subject != want {
		t.Errorf("subject %q, want %q", r.Subject, want)
	}
	if diff := cmp.Diff([]string{"bmc00001-system-0: Available → Error", "default/c00000: gone"}, r.Body); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

func TestEachStageOfABootIsAnOutcome(t *testing.T) {
	for stage := range stageReasons {
		if stageOutcomes[stage] == "" {
			t.Errorf("no commit can say that stage %q was reached", stage)
		}
	}
}
