package report

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
)

// branch are the files of a status branch with an object of each kind.
var branch = map[string][]byte{
	"README.md": []byte("# a fleet\n"),
	"revision.yaml": []byte(`
observedRevision: main@sha1:bbbb
lastAppliedRevision: main@sha1:aaaa
verified: {revision: "main@sha1:aaaa", signedBy: alice}
source: {reason: FetchFailed, message: connection refused, since: "2026-11-21T08:00:00Z"}
guard: [{message: 4 steps wait, approve: "Ingot-Approve: 1234", limit: 3, since: "2026-11-21T07:00:00Z"}]
decided:
  holds:
  - revision: main@sha1:bbbb
    token: "1234"
    since: "2026-11-21T07:00:00Z"
    limit: 3
    steps: [{action: release, server: s1, claim: default/web}]
`),
	"problems.yaml": []byte(`
problems: [{severity: error, file: a.yaml, line: 3, column: 5, message: wrong}]
`),
	"servers/s1.yaml": []byte(`
kind: Server
metadata: {name: s1}
spec: {systemUUID: u1, bmcRef: {name: b1}, serverClaimRef: {namespace: default, name: web}}
status:
  state: Reserved
  powerState: "On"
  networkInterfaces: [{name: eth0, ips: [10.0.0.2]}]
  conditions: [{type: Ready, status: "True", reason: Reserved, lastTransitionTime: "2026-11-21T06:00:00Z"}]
decided: {life: {since: "2026-11-21T06:00:00Z"}, claim: {name: default/web}}
`),
	"servers/s2.yaml": []byte(`
kind: Server
metadata: {name: s2}
spec: {bmcRef: {name: b1}}
status:
  state: Initial
  conditions:
    - type: Ready
      status: "False"
      reason: FoundRunning
      message: "found running (to act: rack operator)"
      lastTransitionTime: "2026-11-21T06:00:00Z"
decided: {life: {since: "2026-11-21T06:30:00Z"}}
`),
	"bmcs/b1.yaml": []byte(`
kind: BMC
metadata: {name: b1}
spec: {access: {ip: 10.0.0.1}, protocol: {name: Redfish, port: 443}}
status:
  state: Enabled
  conditions: [{type: Ready, status: "True", reason: Connected, lastTransitionTime: "2026-11-21T05:00:00Z"}]
`),
	"serverclaims/default/web.yaml": []byte(`
kind: ServerClaim
metadata: {name: web, namespace: default}
status:
  phase: Bound
  server: s1
  conditions:
    - {type: Bound, status: "True", reason: Bound, lastTransitionTime: "2026-11-21T06:00:00Z"}
    - {type: Ready, status: "True", reason: Booted, lastTransitionTime: "2026-11-21T06:10:00Z"}
`),
	"serverclaims/team/booting.yaml": []byte(`
kind: ServerClaim
metadata: {name: booting, namespace: team}
status:
  phase: Bound
  server: s3
  conditions:
    - {type: Bound, status: "True", reason: Bound, lastTransitionTime: "2026-11-21T06:00:00Z"}
    - {type: Ready, status: "False", reason: WaitingForBoot, message: it boots, lastTransitionTime: "2026-11-21T06:10:00Z"}
`),
	"serverclaims/team/waiting.yaml": []byte(`
kind: ServerClaim
metadata: {name: waiting, namespace: team}
status:
  phase: Unbound
  conditions:
    - type: Bound
      status: "False"
      reason: NoServerFree
      message: "2 servers: 1 Reserved, 1 Initial"
      lastTransitionTime: "2026-11-21T06:00:00Z"
`),
	"serverbootconfigurations/default/web.yaml": []byte("kind: ServerBootConfiguration\n"),
}

func today(hour, minute int) time.Time {
	return time.Date(2026, 11, 21, hour, minute, 0, 0, time.UTC)
}

func TestTheStatusBranchIsSummedUp(t *testing.T) {
	got, err := ReadSummary(branch)
	if err != nil {
		t.Fatal(err)
	}
	want := Summary{
		Revision: "main@sha1:aaaa", SignedBy: "alice",
		Source: &model.SourceState{Reason: model.SourceFetchFailed, Message: "connection refused", Since: today(8, 0)},
		Guard: []model.GuardHold{{
			Revision: "main@sha1:bbbb", Token: "1234", Since: today(7, 0), Limit: 3,
			Steps: []model.Disruption{{Action: "release", Server: "s1", Claim: "default/web"}},
		}},
		Servers: []ServerSummary{
			{Name: "s1", State: model.StateReserved, Power: model.PowerOn, BMC: "b1", Claim: "default/web", Since: today(6, 0)},
			{Name: "s2", State: model.StateInitial, BMC: "b1", Since: today(6, 30), Why: "found running (to act: rack operator)"},
		},
		Claims: []ClaimSummary{
			{Name: "default/web", State: ClaimBooted, Server: "s1", Since: today(6, 10)},
			{Name: "team/booting", State: ClaimBound, Server: "s3", Since: today(6, 0), Why: "it boots"},
			{Name: "team/waiting", State: ClaimUnbound, Since: today(6, 0), Why: "2 servers: 1 Reserved, 1 Initial"},
		},
		BMCs:     []BMCSummary{{Name: "b1", State: "Enabled", Address: "10.0.0.1:443", Since: today(5, 0)}},
		Problems: []model.Problem{{Severity: model.SeverityError, File: "a.yaml", Line: 3, Column: 5, Message: "wrong"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAReportIsSummedUpLikeTheBranch(t *testing.T) {
	server := &Document{
		Metadata: Metadata{Name: "s1"}, Status: ServerStatus{State: model.StateAvailable, PowerState: model.PowerOff},
		Decided: &model.ServerRecord{Life: model.RecordLife{Since: today(6, 0)}},
	}
	got := SummaryOf(&model.Report{Documents: map[string]*model.Document{
		"README.md":       {Text: "# a fleet"},
		"servers/s1.yaml": {Object: server},
	}})
	want := Summary{Servers: []ServerSummary{{Name: "s1", State: model.StateAvailable, Power: model.PowerOff, Since: today(6, 0)}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAFileThatCannotBeReadIsNamedAndTheOthersAreShown(t *testing.T) {
	got, err := ReadSummary(map[string][]byte{
		"servers/s1.yaml": []byte("metadata: [\n"),
		"servers/s2.yaml": branch["servers/s2.yaml"],
	})
	if err == nil || !strings.HasPrefix(err.Error(), "servers/s1.yaml:1:1: ") {
		t.Errorf("got error %v", err)
	}
	if len(got.Servers) != 1 || got.Servers[0].Name != "s2" {
		t.Errorf("got %+v", got.Servers)
	}
}
