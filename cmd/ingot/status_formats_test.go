package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/gitsource/gitserver"
	"ingot/model"
	"ingot/model/must"
	"ingot/reconcile/report"
)

func TestStatusFormats(t *testing.T) {
	rack := map[string]string{"rack": "r7"}
	docs := inFleet("main@sha1:aaaa",
		labelled(server("s1", model.StateReserved, is(report.Summary{
			Power: model.PowerOn, BMC: "b1", Claim: "default/web", Rack: "berlin/r7 U4", Addresses: []string{"192.0.2.9", "2001:db8::9"},
		})), map[string]string{"location": "berlin", "rack": "r7", "shelf": "4", "gpu": ""}),
		labelled(server("s2", model.StateAvailable, is(report.Summary{BMC: "b2", Rack: "r8"})), map[string]string{"rack": "r8"}),
		labelled(claim("default/web", report.ClaimBound, is(report.Summary{Server: "s1", Image: "os:1", Addresses: []string{"192.0.2.9"}, Login: "ssh debian@192.0.2.9"}), waits(report.Waiting{Message: "power"})), rack),
		doc(model.KindBMC, "b1", report.BMCEnabled, is(report.Summary{Addresses: []string{"192.0.2.1:443"}})),
	)
	docs.Fleet.Problems = []model.Problem{{Severity: model.SeverityError, File: "a.yaml", Message: "wrong"}}
	daemon := newFakeDaemon(t, docs)
	for name, tc := range map[string]struct {
		args           []string
		stdout, stderr string
		code           int
	}{
		"names are for other commands": {[]string{"-o", "name"}, "server/s1\nserver/s2\nclaim/default/web\nbmc/b1\n", "", exitFine},
		"wide has more columns": {[]string{"-o", "wide"}, `Revision main@sha1:aaaa

SERVER  STATE      POWER  CLAIM        SINCE  ADDRESSES              BMC  RACK          LABELS                               WAITS FOR
s1      Reserved   On     default/web  -      192.0.2.9,2001:db8::9  b1   berlin/r7 U4  gpu,location=berlin,rack=r7,shelf=4
s2      Available  -      -            -      -                      b2   r8            rack=r8

CLAIM        STATE  SERVER  SINCE  ADDRESSES  LOG IN                IMAGE  LABELS   WAITS FOR
default/web  Bound  s1      -      192.0.2.9  ssh debian@192.0.2.9  os:1   rack=r7  power

BMC  STATE    ADDRESS        SINCE  LABELS  WAITS FOR
b1   Enabled  192.0.2.1:443  -      -

PROBLEMS
a.yaml: wrong
`, "", exitFine},
		"YAML has the documents": {[]string{"-o", "yaml", "-l", "rack=r9"}, `fleet:
  counts: {}
  decided: {}
  fence: 0
  lastAppliedRevision: main@sha1:aaaa
  policy:
    allowPlaintextSecrets: false
    cleanupMode: ""
    guardWindow: ""
    maxDisruptions: 0
    maxPowerDisruptions: 0
  problems:
  - file: a.yaml
    message: wrong
    severity: error
items: []
`, "ingot: no object has the labels rack=r9\n", exitFailed},
		"labels select objects of all kinds":            {[]string{"-o", "name", "-l", "rack=r7"}, "server/s1\nclaim/default/web\n", "", exitFine},
		"a kind and labels":                             {[]string{"-o", "name", "-l", "rack in (r7,r8),!gpu", "server"}, "server/s2\n", "", exitFine},
		"with labels the fleet as a whole is not shown": {[]string{"-l", "gpu", "server"}, "SERVER  STATE     POWER  CLAIM        SINCE  WAITS FOR\ns1      Reserved  On     default/web  -\n", "", exitFine},
		"nothing has the labels":                        {[]string{"-l", "rack=r9"}, "", "ingot: no object has the labels rack=r9\n", exitFailed},
		"with labels only such objects count":           {[]string{"-o", "name", "-l", "rack=r8", "--exit-code"}, "server/s2\n", "", exitFine},
		"an object without the labels":                  {[]string{"-l", "rack=r7", "server", "s2"}, "", "ingot: there is no server s2 with labels rack=r7\n", exitFailed},
		"no selector":                                   {[]string{"-l", "a b"}, "", "ingot: status: --selector: \"a b\" selects by no labels: ", exitUsage},
		"no format":                                     {[]string{"-o", "table"}, "", "ingot: -o table: ingot status prints text, wide, json, yaml, name; see ingot status --help\n", exitUsage},
		"names do not change":                           {[]string{"-o", "name", "--watch"}, "", "ingot: --watch prints text, wide, json or yaml: names do not change\n", exitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := command(t, append([]string{"status", "--address", daemon.server.URL}, tc.args...)...)
			if len(stderr) > len(tc.stderr) && tc.stderr != "" {
				stderr = stderr[:len(tc.stderr)]
			}
			if diff := cmp.Diff(tc.stdout, stdout); diff != "" || stderr != tc.stderr || code != tc.code {
				t.Errorf("exit code %d, standard error %q, standard output (-want +got):\n%s", code, stderr, diff)
			}
		})
	}
}

// The status branch has labels, too: no daemon is needed.
func TestStatusBranchLabels(t *testing.T) {
	repo := must.Get(gitserver.New(t.TempDir(), "fleet"))(t)
	must.Get(repo.CommitTo("status", map[string]string{
		"fleet.yaml":       "lastAppliedRevision: main@sha1:aaaa\ndecided: {}\n",
		"servers/s2.yaml":  "kind: Server\nmetadata: {name: s2, labels: {rack: r7}}\nstatus: {state: Available}\n",
		"servers/s10.yaml": "kind: Server\nmetadata: {name: s10, labels: {rack: r7}}\nstatus: {state: Available}\n",
		"servers/s3.yaml":  "kind: Server\nmetadata: {name: s3, labels: {rack: r8}}\nstatus: {state: Available}\n",
	}, "three servers"))(t)
	stdout, stderr, code := command(t, "status", "--git", repo.Dir, "-l", "rack=r7", "-o", "name")
	if stdout != "server/s2\nserver/s10\n" || stderr != "" || code != exitFine {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}
