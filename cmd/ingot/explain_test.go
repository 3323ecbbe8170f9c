package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/gitsource/gitserver"
	"ingot/model"
	"ingot/model/must"
	"ingot/reconcile/report"
)

var exampleExplanation = report.Explanation{
	Kind: "server", Name: "s1", State: "Discovery", Since: ago(3 * time.Minute), Why: "waits for the probe's report",
	Actor: "rack operator", Next: "look at its console", BootHint: "its boot loader is lost",
	Facts: []report.Fact{{Name: "power", Value: "On"}, {Name: "taint", Value: "a\x1b[2J"}},
	Boot:  []model.BootStep{{Stage: "DHCP", At: ago(2 * time.Minute)}, {Stage: "TFTP", At: ago(2*time.Minute - 1500*time.Millisecond)}},
	Conditions: []metav1.Condition{
		{Type: "Ready", Status: metav1.ConditionFalse, Reason: "WaitingForReport", LastTransitionTime: metav1.NewTime(ago(time.Minute))},
		{Type: "Identified", Status: metav1.ConditionTrue, Reason: "SinceNobodyKnowsWhen"},
	},
	Related: []report.Explanation{{Kind: "bmc", Name: "b1", State: "Enabled"}},
}

const exampleExplained = `server s1: Discovery for 3m
  waits: waits for the probe's report
  to act: rack operator
  next: look at its console
  power: On
  taint: a�[2J
  newest boot, as far as it was seen:
    07:58:00Z  DHCP         2m ago
    07:58:01Z  TFTP         +1.5s
    if it comes no further: its boot loader is lost
  Ready: no for 1m, WaitingForReport
  Identified: yes, SinceNobodyKnowsWhen

bmc b1: Enabled
`

func TestAnExplanationIsForPeople(t *testing.T) {
	var out bytes.Buffer
	printExplanation(&console{out: &out}, exampleExplanation, exampleNow)
	if diff := cmp.Diff(exampleExplained, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestExplainReadsTheStatusBranch(t *testing.T) {
	repo := must.Get(gitserver.New(t.TempDir(), "fleet"))(t)
	must.Get(repo.CommitTo("status", map[string]string{
		"revision.yaml":   "fence: 1\n",
		"servers/s1.yaml": "metadata: {name: s1}\nspec: {bmcRef: {name: b1}}\nstatus: {state: Available, powerState: \"Off\"}\n",
		"bmcs/b1.yaml":    "metadata: {name: b1}\nstatus: {state: Enabled}\n",
	}, "s1: Discovery → Available"))(t)
	stdout, stderr, code := command(t, "explain", "--git", repo.Dir, "server", "s1")
	if want := "server s1: Available\n  power: Off\n\nbmc b1: Enabled\n"; stdout != want || code != exitFine {
		t.Errorf("exit code %d, %s\ngot\n%swant\n%s", code, stderr, stdout, want)
	}
	_, stderr, code = command(t, "explain", "--git", repo.Dir, "bmc", "b2")
	if want := "ingot: bmc b2 is not known, did you mean b1?\n"; stderr != want || code != exitFailed {
		t.Errorf("exit code %d\ngot  %swant %s", code, stderr, want)
	}
}

func TestExplainAsksTheDaemon(t *testing.T) {
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		switch r.URL.Path {
		case "/api/v1/explain/server/s1":
			_ = json.NewEncoder(w).Encode(exampleExplanation)
		case "/api/v1/explain/claim/default/web":
			_ = json.NewEncoder(w).Encode(report.Explanation{Kind: "claim", Name: "default/web"})
		default:
			http.Error(w, "server s2 is not known, did you mean s1?", http.StatusNotFound)
		}
	}))
	defer admin.Close()
	for name, tc := range map[string]struct {
		args         []string
		code         int
		stdout, errs string
	}{
		"as text": {args: []string{"explain", "server", "s1"}, code: exitFine, stdout: "server s1: Discovery"},
		"a path":  {args: []string{"explain", "claim", "../x"}, code: exitFailed, errs: `"../x" is not a name of a claim`},
		"a claim": {args: []string{"explain", "claim", "default/web"}, code: exitFine, stdout: "claim default/web\n"},
		"as JSON": {args: []string{"-o", "json", "explain", "server", "s1"}, code: exitFine, stdout: `"stage": "TFTP"`},
		"what is unknown": {
			args: []string{"explain", "server", "s2"}, code: exitFailed,
			errs: "ingot: server s2 is not known, did you mean s1?\n",
		},
		"a wrong kind": {
			args: []string{"explain", "secret", "s2"}, code: exitFailed,
			errs: `"secret" is no kind that can be explained: it is bmc, boot-configuration, claim, endpoint, server`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := command(t, append(tc.args, "--address", admin.URL)...)
			if code != tc.code || !strings.Contains(stdout, tc.stdout) || !strings.Contains(stderr, tc.errs) {
				t.Errorf("exit code %d, want %d\nstdout %s\nstderr %s", code, tc.code, stdout, stderr)
			}
		})
	}
}
