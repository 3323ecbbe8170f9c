package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/gitsource/gitserver"
	"ingot/model"
	"ingot/model/must"
	"ingot/reconcile/report"
)

func command(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = execute(t.Context(), args, &console{in: strings.NewReader(""), out: &out, err: &errs})
	return out.String(), errs.String(), code
}

var exampleDocs = report.NewDocuments(&report.Fleet{
	Source: report.Source{
		Applied: "main@sha1:aaaa", Verified: &report.Verified{Revision: "main@sha1:aaaa", SignedBy: "alice"},
		Trouble: &report.Trouble{Reason: model.SourceFetchFailed, Message: "connection refused", Since: ago(90 * time.Second)},
	},
	CommitStatus: &report.Trouble{Message: "the forge does not take the token of git.commitStatus.tokenFile (401)", Since: ago(2 * time.Hour)},
	Holds: []report.Hold{{
		Subject: "2 steps held by the guard", Message: "2 steps exceed the limit of 3 per hour", Since: ago(time.Hour),
		Approve: "Ingot-Approve: 1234abcd", Revert: "git revert bbbb",
		Effects: []report.Effect{
			{Server: "s1", Text: "server s1 is taken from claim default/web"},
			{Server: "s3", Text: "server s3 is taken from claim default/db", Approve: "Ingot-Approve: 5678"},
		},
	}, {Message: "1 object is absent without a commit", Approve: "Ingot-Approve: cccc", LeftOut: 1, Until: exampleNow}},
	Problems: []model.Problem{{Severity: model.SeverityError, File: "a.yaml", Line: 3, Column: 5, Message: "unknown field"}}, ProblemsLeftOut: 4,
}, []*report.Document{
	server("s1", model.StateReserved, is(report.Summary{Power: model.PowerOn, BMC: "b1", Claim: "default/web", Since: ago(49 * time.Hour)})),
	server("server-2", model.StateInitial, is(report.Summary{BMC: "b1", Since: ago(10 * time.Second)}),
		waits(report.Waiting{Reason: "FoundRunning", Message: "found running\n\x1b[2Jby hand"})),
	claim("default/web", report.ClaimBooted, is(report.Summary{Server: "s1", Since: ago(2 * time.Hour)})),
	claim("team/db", report.ClaimUnbound, is(report.Summary{Since: ago(3 * time.Minute)}),
		waits(report.Waiting{Message: "2 servers: 1 Reserved, 1 Initial", Actor: "rack operator"})),
	doc(model.KindBMC, "b1", report.BMCEnabled, is(report.Summary{Addresses: []string{"10.0.0.1:443"}})),
})

const exampleTables = `Revision main@sha1:aaaa, signed by alice
FetchFailed for 1m: connection refused
No commit status is posted for 2h00m: the forge does not take the token of git.commitStatus.tokenFile (401)

SERVER    STATE     POWER  CLAIM        SINCE  WAITS FOR
s1        Reserved  On     default/web  2d01h
server-2  Initial   -      -            10s    found running �[2Jby hand

CLAIM        STATE    SERVER  SINCE  WAITS FOR
default/web  Booted   s1      2h00m
team/db      Unbound  -       3m     2 servers: 1 Reserved, 1 Initial (to act: rack operator)

BMC  STATE    ADDRESS       SINCE  WAITS FOR
b1   Enabled  10.0.0.1:443  -

PROBLEMS
a.yaml:3:5: unknown field
and 4 more, shown once these are corrected

Waiting for approval for 1h00m: 2 steps exceed the limit of 3 per hour.
  server s1 is taken from claim default/web
  server s3 is taken from claim default/db (alone: --token 5678)
Approve: ingot approve --token 1234abcd
     or: a commit whose message ends with the line
         Ingot-Approve: 1234abcd
 Refuse: git revert bbbb

Waiting for approval: 1 object is absent without a commit.
  and 1 more
Without an approval this happens at 2026-11-21T08:00:00Z.
Approve: ingot approve --token cccc
     or: a commit whose message ends with the line
         Ingot-Approve: cccc
`

func TestTheStatusIsTables(t *testing.T) {
	var out bytes.Buffer
	printStatus(&console{out: &out}, exampleDocs, true, exampleNow)
	if diff := cmp.Diff(exampleTables, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestColourIsForTerminalsWhoseUserWantsIt(t *testing.T) {
	for name, tc := range map[string]struct {
		c    console
		want bool
	}{
		"a terminal":                       {c: console{terminal: true}, want: true},
		"a file":                           {c: console{}},
		"a terminal whose user wants none": {c: console{terminal: true, env: []string{"NO_COLOR=1"}}},
		"NO_COLOR that is empty":           {c: console{terminal: true, env: []string{"NO_COLOR="}}, want: true},
		"a terminal that knows no colour":  {c: console{terminal: true, env: []string{"TERM=dumb"}}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			tc.c.out = &out
			printStatus(&tc.c, exampleDocs, true, exampleNow)
			if got := strings.Contains(out.String(), "\x1b["); got != tc.want {
				t.Errorf("coloured is %v:\n%s", got, out.String())
			}
		})
	}
}

func TestTheStatusOfADaemon(t *testing.T) {
	address := newFakeDaemon(t, exampleDocs).server.URL
	for name, tc := range map[string]struct {
		args       []string
		show, hide []string
		code       int
	}{
		"all of it": {show: []string{"server-2", "team/db", "10.0.0.1:443", "a.yaml:3:5", "Ingot-Approve: 1234abcd"}},
		"servers":   {args: []string{"server"}, show: []string{"server-2", "s1"}, hide: []string{"team/db", "a.yaml"}},
		"a server":  {args: []string{"server", "s1"}, show: []string{"s1"}, hide: []string{"server-2"}},
		"a claim":   {args: []string{"claim", "team/db"}, show: []string{"team/db"}, hide: []string{"default/web  Booted"}},
		"a claim without its namespace": {
			args: []string{"claim", "web"}, show: []string{"default/web"}, hide: []string{"team/db"},
		},
		"a BMC": {args: []string{"bmc"}, show: []string{"10.0.0.1:443"}, hide: []string{"team/db"}},
		"a server that is not there": {
			args: []string{"server", "s9"}, show: []string{"ingot: there is no server s9"}, code: 1,
		},
		"a kind that is none": {args: []string{"node"}, show: []string{`"node" has no status: use server, claim or bmc`}, code: exitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := command(t, append([]string{"status", "--address", address}, tc.args...)...)
			got := stdout + stderr
			for _, s := range tc.show {
				if !strings.Contains(got, s) {
					t.Errorf("%q is missing in\n%s", s, got)
				}
			}
			for _, s := range tc.hide {
				if strings.Contains(got, s) {
					t.Errorf("%q is in\n%s", s, got)
				}
			}
			if code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
		})
	}
}

func TestStatusJSON(t *testing.T) {
	stdout, _, code := command(t, "-o", "json", "status", "--address", strings.TrimPrefix(newFakeDaemon(t, exampleDocs).server.URL, "http://"))
	var got struct {
		Fleet *report.Fleet
		Items []json.RawMessage
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != 0 {
		t.Fatalf("%v, exit code %d:\n%s", err, code, stdout)
	}
	if diff := cmp.Diff(exampleDocs.Fleet, got.Fleet); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for i, want := range listed(exampleDocs) {
		if d := must.Get(report.ParseDocument(got.Items[i]))(t); !cmp.Equal(d.Overview(), want.Overview()) || d.Path() != want.Path() {
			t.Errorf("got %+v", d)
		}
	}
}

func TestAddressWithoutDaemon(t *testing.T) {
	other := httptest.NewServer(http.NotFoundHandler())
	address := other.URL
	_, stderr, code := command(t, "status", "--address", address)
	want := "ingot: " + address + "/api/v1/fleet answered 404 Not Found; is it the admin listener of an Ingot daemon?\n"
	if stderr != want || code != 1 {
		t.Errorf("exit code %d\ngot  %swant %s", code, stderr, want)
	}
	other.Close()
	_, stderr, code = command(t, "status", "--address", address)
	want = "ingot: no daemon listens at " + address + "; name another with --address, or read the status branch with --git\n"
	if stderr != want || code != 1 {
		t.Errorf("exit code %d\ngot  %swant %s", code, stderr, want)
	}
}

func TestTheStatusBranchIsRead(t *testing.T) {
	repo := must.Get(gitserver.New(t.TempDir(), "fleet"))(t)
	_, stderr, code := command(t, "status", "--git", repo.Dir)
	want := "ingot: " + repo.Dir + " has no branch status: the daemon writes it once it runs with this repository\n"
	if stderr != want || code != 1 {
		t.Errorf("exit code %d\ngot  %swant %s", code, stderr, want)
	}
	must.Get(repo.CommitTo("status", map[string]string{
		"fleet.yaml":      "lastAppliedRevision: main@sha1:aaaa\ndecided: {}\n",
		"servers/s1.yaml": "kind: Server\nmetadata: {name: s1}\nstatus: {state: Available, powerState: \"Off\", summary: {state: Available, power: \"Off\"}}\n",
	}, "s1: Discovery → Available"))(t)
	stdout, stderr, code := command(t, "status", "--git", repo.Dir)
	want = "Revision main@sha1:aaaa\n\nSERVER  STATE      POWER  CLAIM  SINCE  WAITS FOR\ns1      Available  Off    -      -\n"
	if stdout != want || code != 0 {
		t.Errorf("exit code %d, %s\ngot\n%swant\n%s", code, stderr, stdout, want)
	}
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 59 * time.Second: "59s", time.Minute: "1m", 59 * time.Minute: "59m", 61 * time.Minute: "1h01m",
		23*time.Hour + 59*time.Minute: "23h59m", 24 * time.Hour: "1d00h", 400 * 24 * time.Hour: "400d00h",
	} {
		if got := age(exampleNow.Add(-d), exampleNow); got != want {
			t.Errorf("%s: got %s, want %s", d, got, want)
		}
	}
	if got := age(time.Time{}, exampleNow); got != "-" {
		t.Errorf("never: got %s", got)
	}
}

func TestAnotherBranchIsNotAStatusBranch(t *testing.T) {
	repo := must.Get(gitserver.New(t.TempDir(), "fleet"))(t)
	must.Get(repo.Commit(map[string]string{"README.md": "fleet\n"}, "begin"))(t)
	_, stderr, code := command(t, "status", "--git", repo.Dir, "--branch", "main")
	if code != exitFailed || !strings.Contains(stderr, "branch main: it has no fleet.yaml: is it the branch that Ingot writes?") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}

// fullDisk takes nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestAResultThatCannotBePrintedIsAFailure(t *testing.T) {
	var errs bytes.Buffer
	code := execute(t.Context(), []string{"status", "--address", newFakeDaemon(t, exampleDocs).server.URL}, &console{in: strings.NewReader(""), out: fullDisk{}, err: &errs})
	if code != exitFailed || errs.String() != "ingot: print the result: no space left on device\n" {
		t.Errorf("exit code %d\n%s", code, errs.String())
	}
}

func TestControlCharactersOfAFileNameAreNotPrinted(t *testing.T) {
	if got := withoutControls("a\x1b[2J\a\n.yaml"); got != "a\uFFFD[2J\uFFFD\n.yaml" {
		t.Errorf("got %q", got)
	}
}
