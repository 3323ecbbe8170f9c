package report

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/internal/plantest"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/install"
)

func file(kind model.Kind, namespace, name string, status any) *model.Document {
	return &model.Document{Object: &Document{Kind: string(kind), Metadata: Metadata{Namespace: namespace, Name: name}, Status: status}}
}

func readingOf(kind string, status metav1.ConditionStatus, reason string) []metav1.Condition {
	return []metav1.Condition{{Type: kind, Status: status, Reason: reason}}
}

func TestASubjectNamesObjectAndOutcome(t *testing.T) {
	type files = map[string]*model.Document
	inGit := model.NewDesired()
	inGit.Add(&model.Endpoint{Meta: model.Meta{Name: "e", Source: "claims/web.yaml:1"}})
	claim := func(status ClaimStatus) *model.Document {
		return file(model.KindServerClaim, "default", "web-1", status)
	}
	bmc := func(status BMCStatus) *model.Document { return file(model.KindBMC, "", "rack1-bmc-1", status) }
	server := func(name string, status ServerStatus) *model.Document {
		return file(model.KindServer, "", name, status)
	}
	claimed := func(state string, server model.ServerName, reasons ...model.Reason) *model.Document {
		o := Overview{Summary: Summary{State: state, Server: server}}
		for _, reason := range reasons {
			o.Waiting = append(o.Waiting, Waiting{Reason: reason})
		}
		return claim(ClaimStatus{Overview: o})
	}
	enabled := bmc(BMCStatus{Overview: Overview{Summary: Summary{State: BMCEnabled}}})
	lost := bmc(BMCStatus{Overview: Overview{[]Waiting{{Reason: model.ReasonConnectionFailed}}, Summary{State: BMCError}}})
	booting := func(stage model.BootStage) ServerStatus {
		return ServerStatus{BootTimeline: []model.BootStep{{Stage: stage, At: time.Unix(1, 0)}}}
	}
	same := server("a", ServerStatus{})
	for name, tt := range map[string]struct {
		old, now files
		want     string
	}{
		"a claim that booted": {
			old:  files{"serverclaims/default/web-1.yaml": claimed(ClaimBound, "rack1-07")},
			now:  files{"serverclaims/default/web-1.yaml": claimed(ClaimBooted, "rack1-07")},
			want: "default/web-1: Booted on rack1-07",
		},
		"a claim that has another server": {
			old:  files{"serverclaims/default/web-1.yaml": claimed(ClaimBound, "rack1-07")},
			now:  files{"serverclaims/default/web-1.yaml": claimed(ClaimBound, "rack1-08")},
			want: "default/web-1: Bound on rack1-08",
		},
		"a claim that is gone": {
			old:  files{"serverclaims/default/web-1.yaml": claimed(ClaimUnbound, "")},
			want: "default/web-1: gone",
		},
		"a claim that is gone and had a server": {
			old:  files{"serverclaims/default/web-1.yaml": claimed(ClaimBooted, "rack1-07")},
			want: "default/web-1: released rack1-07",
		},
		"a claim that no server matches": {
			now:  files{"serverclaims/default/web-1.yaml": claimed(ClaimUnbound, "", model.ReasonNoServerFree)},
			want: "default/web-1: Unbound, NoServerFree",
		},
		"a BMC that is lost": {
			old: files{"bmcs/rack1-bmc-1.yaml": enabled}, now: files{"bmcs/rack1-bmc-1.yaml": lost},
			want: "BMC rack1-bmc-1: lost (ConnectionFailed)",
		},
		"a BMC that is back": {
			old: files{"bmcs/rack1-bmc-1.yaml": lost}, now: files{"bmcs/rack1-bmc-1.yaml": enabled},
			want: "BMC rack1-bmc-1: back",
		},
		"a new BMC": {
			now:  files{"bmcs/rack1-bmc-1.yaml": enabled},
			want: "BMC rack1-bmc-1: Enabled",
		},
		"a condition that changed and kept its reason": {
			old:  files{"servers/a.yaml": server("a", ServerStatus{Conditions: readingOf("Identified", metav1.ConditionTrue, "BMC")})},
			now:  files{"servers/a.yaml": server("a", ServerStatus{Conditions: readingOf("Identified", metav1.ConditionFalse, "BMC")})},
			want: "a: BMC",
		},
		"what a server was served": {
			old:  files{"servers/rack1-07.yaml": server("rack1-07", booting(model.StageScript))},
			now:  files{"servers/rack1-07.yaml": server("rack1-07", booting(model.StageKernel))},
			want: "rack1-07: kernel served",
		},
		"a server whose install waits for it to be off": {
			old:  files{"servers/rack1-07.yaml": server("rack1-07", ServerStatus{InstallStage: install.ToArm})},
			now:  files{"servers/rack1-07.yaml": server("rack1-07", ServerStatus{InstallStage: install.AwaitingOff})},
			want: "rack1-07: install stage AwaitingOff",
		},
		"what matters most, and how much more there is": {
			old: files{"servers/a.yaml": server("a", ServerStatus{}), "serverclaims/default/web-1.yaml": claimed(ClaimBound, "b")},
			now: files{
				"servers/a.yaml":                  server("a", ServerStatus{Manufacturer: "Contoso"}),
				"servers/b.yaml":                  server("b", ServerStatus{PowerState: model.PowerOn}),
				"serverclaims/default/web-1.yaml": claimed(ClaimBooted, "b"),
			},
			want: "default/web-1: Booted on b, and 2 more",
		},
		"manifests that are wrong": {
			old: files{model.ReportFleet: {Object: &Fleet{}}},
			now: files{model.ReportFleet: {Object: &Fleet{Problems: []model.Problem{
				{File: "claims/web.yaml", Line: 9, Severity: model.SeverityWarning, Message: "deprecated"},
				{File: "claims/web.yaml", Line: 7, Severity: model.SeverityError, Object: "ServerClaim default/web-1", Message: "fixes #1"},
			}}}},
			want: "claims/web.yaml:7: wrong (ServerClaim default/web-1) and 1 more",
		},
		"a manifest that is right again": {
			old:  files{model.ReportFleet: {Object: &Fleet{Problems: []model.Problem{{File: "claims/web.yaml", Line: 7}}}}},
			now:  files{model.ReportFleet: {Object: &Fleet{}}},
			want: "claims/web.yaml: valid",
		},
		"a manifest with an error that is removed": {
			old:  files{model.ReportFleet: {Object: &Fleet{Problems: []model.Problem{{File: "claims/old.yaml", Line: 7}}}}},
			now:  files{model.ReportFleet: {Object: &Fleet{}}},
			want: "claims/old.yaml: removed",
		},
		"a file whose name a forge would act upon": {
			old: files{model.ReportFleet: {Object: &Fleet{}}},
			now: files{model.ReportFleet: {Object: &Fleet{Problems: []model.Problem{
				{File: "fixes #1/@admins\n\nFence: 9.yaml", Severity: model.SeverityError},
			}}}},
			want: "fixes ?1/?admins??Fence? 9.yaml: wrong",
		},
		"what the guard holds": {
			old: files{model.ReportFleet: {Object: &Fleet{}}},
			now: files{model.ReportFleet: {Object: &Fleet{Decided: model.FleetRecord{Holds: []model.GuardHold{{Steps: []model.Disruption{
				{Action: "release", Server: "rack1-07", Claim: "default/web-1"}, {Action: "release", Server: "rack1-08"},
			}}}}}}},
			want: "guard: holds release of rack1-07 for default/web-1 and 1 more",
		},
		"a guard that holds nothing any more": {
			old:  files{model.ReportFleet: {Object: &Fleet{Decided: model.FleetRecord{Holds: []model.GuardHold{{Steps: make([]model.Disruption, 4)}}}}}},
			now:  files{model.ReportFleet: {Object: &Fleet{}}},
			want: "guard: holds nothing any more",
		},
		"what is absent without a commit": {
			old: files{model.ReportFleet: {Object: &Fleet{}}},
			now: files{model.ReportFleet: {Object: &Fleet{Decided: model.FleetRecord{
				Absent: []model.Absence{{Identity: model.ClaimName("default/web-1").Identity()}}, AbsentMore: 1,
			}}}},
			want: "absent without a commit: ServerClaim default/web-1 and 1 more",
		},
		"a branch that cannot be fetched": {
			old:  files{model.ReportFleet: {Object: &Fleet{}}},
			now:  files{model.ReportFleet: {Object: &Fleet{Source: Source{Applied: "main@sha1:1", Trouble: &Trouble{Reason: "FetchFailed"}}}}},
			want: "branch main: FetchFailed",
		},
		"an unchanged fleet": {
			old:  files{"servers/a.yaml": same},
			now:  files{"servers/a.yaml": same},
			want: "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := newsOf(tt.old, tt.now, inGit)
			slices.SortStableFunc(all, byWeight)
			if diff := cmp.Diff(tt.want, subjectOf(all)); diff != "" {
				t.Errorf("subject (-want +got):\n%s", diff)
			}
		})
	}
}

func TestACommitTellsOfClaimsBesideItsTransitions(t *testing.T) {
	in := plantest.BigFleet(2, 1)
	var p Projector
	var story Story
	story.Published(plan.Plan(in), reportBy(&p, in))
	fleettest.ChangeRecord(in.Observed, 1, func(r *model.ServerRecord) { r.Life.State = model.StateError; r.Life.Reason = "CleanupFailed" })
	r := reportBy(&p, in)
	delete(r.Documents, "serverclaims/default/c00000.yaml")
	story.Describe(in.Desired, plan.Plan(in), r)
	if want := "bmc00001-system-0: Available → Error (wipe failed), and 1 more"; r.Subject != want {
		t.Errorf("subject %q, want %q", r.Subject, want)
	}
	if diff := cmp.Diff([]string{"bmc00001-system-0: Available → Error (wipe failed)", "default/c00000: released bmc00000-system-0"}, r.Body); diff != "" {
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

func TestASubjectHasAtMost72LettersAndSaysHowManyMoreThereAre(t *testing.T) {
	for length, want := range map[int]string{
		10: ": Booted, and 3 more",
		52: ": Booted, and 3 more",
		53: ": Booted +3",
		59: ": Booted +3",
		99: "… +3",
	} {
		all := make([]news, 4)
		all[0] = news{name: strings.Repeat("ä", length), outcome: outcome{text: "Booted"}}
		got := subjectOf(all)
		if utf8.RuneCountInString(got) > maxSubject || !strings.HasSuffix(got, want) {
			t.Errorf("a name of %d letters has %d letters: %s", length, utf8.RuneCountInString(got), got)
		}
	}
}
