package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/gitsource/gitserver"
	"ingot/model"
	"ingot/model/must"
	"ingot/reconcile/progress"
	"ingot/reconcile/report"
)

// exampleServer is in its discovery.
func exampleServer() *report.Document {
	d := server("s1", model.StateDiscovery, is(report.Summary{BMC: "b1", Since: ago(3 * time.Minute), Addresses: []string{"192.0.2.9"}}),
		waits(report.Waiting{
			Reason: "WaitingForReport", Message: "no report of the probe yet", Actor: "rack operator", Next: "look at its console",
			Approve: "Ingot-Approve: 1234", Revert: "git revert bbbb",
		}),
		waits(report.Waiting{Reason: "PowerUnknown"}))
	st := d.Status.(report.ServerStatus)
	st.PowerState = model.PowerOn
	st.BootTimeline = []model.BootStep{{Stage: model.StageDHCP, At: ago(2 * time.Minute)}, {Stage: model.StageTFTP, At: ago(2*time.Minute - 1500*time.Millisecond)}}
	st.Conditions = []metav1.Condition{
		{Type: "BootProgress", Status: metav1.ConditionFalse, Reason: "WaitingForReport", LastTransitionTime: metav1.NewTime(ago(time.Minute))},
		{Type: "Identified", Status: metav1.ConditionTrue, Reason: "UUIDMatches"},
	}
	d.Spec, d.Status = report.ServerSpec{Taints: []model.Taint{{Key: "a\x1b[2J"}}}, st
	return d
}

const exampleExplained = `server s1: Discovery for 3m
  waiting (WaitingForReport): no report of the probe yet
  to act: rack operator
  next: look at its console
  approve with: Ingot-Approve: 1234
  refuse with: git revert bbbb
  waiting: PowerUnknown
  next: no action needed
  power: On
  addresses: 192.0.2.9
  taint: a�[2J
  newest boot:
    07:58:00Z  DHCP          2m ago
    07:58:01Z  TFTP          +1.5s
    if it does not continue: HINT
  BootProgress: no for 1m, WaitingForReport
  Identified: yes, UUIDMatches
  uses of its boot ticket:
    kernel at 07:59

bmc b1: Enabled
`

func TestExplanation(t *testing.T) {
	var out bytes.Buffer
	x := explanation{
		Items: []*report.Document{exampleServer(), doc(model.KindBMC, "b1", report.BMCEnabled)},
		Card:  &report.Card{TicketUses: []string{"kernel at 07:59"}},
	}
	printExplanation(&console{out: &out}, x, exampleNow)
	if diff := cmp.Diff(strings.Replace(exampleExplained, "HINT", progress.Hint(model.StageTFTP), 1), out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestExplainReadsTheStatusBranch(t *testing.T) {
	repo := must.Get(gitserver.New(t.TempDir(), "fleet"))(t)
	must.Get(repo.CommitTo("status", map[string]string{
		"fleet.yaml":      "fence: 1\n",
		"servers/s1.yaml": "kind: Server\nmetadata: {name: s1}\nstatus: {powerState: \"Off\", summary: {state: Available, bmc: b1}}\n",
		"bmcs/b1.yaml":    "kind: BMC\nmetadata: {name: b1}\nstatus: {summary: {state: Enabled}}\n",
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
	removed := server("s3", model.StateReserved, is(report.Summary{Claim: "team/db"}))
	removed.Spec = report.ServerSpec{ServerClaimRef: &model.ObjectRef{Namespace: "team", Name: "db"}}
	web := claim("default/web", report.ClaimUnbound)
	address := newFakeDaemon(t, inFleet("main@sha1:aa", exampleServer(), removed, web)).server.URL
	for name, tc := range map[string]struct {
		args         []string
		code         int
		stdout, errs string
	}{
		"as text":                   {args: []string{"explain", "server", "s1"}, code: exitFine, stdout: "server s1: Discovery"},
		"a path":                    {args: []string{"explain", "claim", "../x"}, code: exitFailed, errs: `"../x" is not a name of a claim`},
		"a claim":                   {args: []string{"explain", "claim", "default/web"}, code: exitFine, stdout: "claim default/web: Unbound\n"},
		"as JSON":                   {args: []string{"-o", "json", "explain", "server", "s1"}, code: exitFine, stdout: `"stage": "TFTP"`},
		"a claim by its short name": {args: []string{"explain", "claim", "web"}, code: exitFine, stdout: "claim default/web: Unbound\n"},
		"a claim that Git lacks": {
			args: []string{"explain", "claim", "db"}, code: exitFine,
			stdout: "claim team/db: not in Git, and its server still has it\n\nserver s3: Reserved\n",
		},
		"an unknown server": {
			args: []string{"explain", "server", "s2"}, code: exitFailed,
			errs: "ingot: server s2 is not known, did you mean s1?\n",
		},
		"a wrong kind": {
			args: []string{"explain", "secret", "s2"}, code: exitUsage,
			errs: `unknown kind "secret": use one of bmc, boot-configuration, claim, endpoint, server`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := command(t, append(tc.args, "--address", address)...)
			if code != tc.code || !strings.Contains(stdout, tc.stdout) || !strings.Contains(stderr, tc.errs) {
				t.Errorf("exit code %d, want %d\nstdout %s\nstderr %s", code, tc.code, stdout, stderr)
			}
		})
	}
}
