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

var exampleNow = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return exampleNow.Add(-d) }

var exampleSummary = report.Summary{
	Revision: "main@sha1:aaaa", SignedBy: "alice",
	Source:       &model.SourceState{Reason: model.SourceFetchFailed, Message: "connection refused", Since: ago(90 * time.Second)},
	CommitStatus: &report.Trouble{Message: "the forge does not take the token of git.commitStatus.tokenFile (401)", Since: ago(2 * time.Hour)},
	Guard: []model.GuardHold{{
		Revision: "main@sha1:bbbb", Token: "1234abcd", Since: ago(time.Hour), Limit: 3,
		Steps: []model.Disruption{
			{Action: "release", Server: "s1", Claim: "default/web"},
			{Action: "release", Server: "s3", Claim: "default/db"},
		},
	}},
	Servers: []report.ServerSummary{
		{Name: "s1", State: model.StateReserved, Power: model.PowerOn, BMC: "b1", Claim: "default/web", Since: ago(49 * time.Hour)},
		{Name: "server-2", State: model.StateInitial, BMC: "b1", Since: ago(10 * time.Second), Why: "found running\n\x1b[2Jby hand"},
	},
	Claims: []report.ClaimSummary{
		{Name: "default/web", State: report.ClaimBooted, Server: "s1", Since: ago(2 * time.Hour)},
		{
			Name: "team/db", State: report.ClaimUnbound, Since: ago(3 * time.Minute),
			Why: "2 servers: 1 Reserved, 1 Initial (to act: rack operator)",
		},
	},
	BMCs:     []report.BMCSummary{{Name: "b1", State: "Enabled", Address: "10.0.0.1:443"}},
	Problems: []model.Problem{{Severity: model.SeverityError, File: "a.yaml", Line: 3, Column: 5, Message: "unknown field"}},
}

const exampleTables = `Revision main@sha1:aaaa, signed by alice
FetchFailed for 1m: connection refused
No commit status is posted for 2h00m: the forge does not take the token of git.commitStatus.tokenFile (401)

SERVER    STATE     POWER  CLAIM        SINCE  WHY
s1        Reserved  On     default/web  2d01h
server-2  Initial   -      -            10s    found running �[2Jby hand

CLAIM        STATE    SERVER  SINCE  WHY
default/web  Booted   s1      2h00m
team/db      Unbound  -       3m     2 servers: 1 Reserved, 1 Initial (to act: rack operator)

BMC  STATE    ADDRESS       SINCE  WHY
b1   Enabled  10.0.0.1:443  -

PROBLEMS
a.yaml:3:5: unknown field

2 steps wait for approval since 1h00m, with them main@sha1:bbbb would go beyond the guard's limit of 3:
  release s1 of claim default/web
  release s3 of claim default/db
Approve them by ingot approve in a clone, or a commit whose message ends in the line
  Ingot-Approve: 1234abcd
Refuse them by
  git revert bbbb
`

func TestTheStatusIsTables(t *testing.T) {
	var out bytes.Buffer
	printSummary(&console{out: &out}, exampleSummary, true, exampleNow)
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
			printSummary(&tc.c, exampleSummary, true, exampleNow)
			if got := strings.Contains(out.String(), "\x1b["); got != tc.want {
				t.Errorf("coloured is %v:\n%s", got, out.String())
			}
		})
	}
}

func adminServer(t *testing.T, s report.Summary) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/status" {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(s)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestTheStatusOfADaemon(t *testing.T) {
	address := adminServer(t, exampleSummary)
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
		"a kind that is none": {args: []string{"node"}, show: []string{`"node" is no kind that has a status`}, code: 1},
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

func TestTheStatusForPrograms(t *testing.T) {
	stdout, _, code := command(t, "-o", "json", "status", "--address", strings.TrimPrefix(adminServer(t, exampleSummary), "http://"))
	var got report.Summary
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != 0 {
		t.Fatalf("%v, exit code %d:\n%s", err, code, stdout)
	}
	if diff := cmp.Diff(exampleSummary, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAnAddressThatIsNoDaemonIsSaidSo(t *testing.T) {
	other := httptest.NewServer(http.NotFoundHandler())
	address := other.URL
	_, stderr, code := command(t, "status", "--address", address)
	want := "ingot: " + address + "/api/v1/status answered 404 Not Found; is it the admin listener of an Ingot daemon?\n"
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
		"revision.yaml":   "lastAppliedRevision: main@sha1:aaaa\ndecided: {}\n",
		"servers/s1.yaml": "metadata: {name: s1}\nstatus: {state: Available, powerState: \"Off\"}\n",
	}, "s1: Discovery → Available"))(t)
	stdout, stderr, code := command(t, "status", "--git", repo.Dir)
	want = "Revision main@sha1:aaaa\n\nSERVER  STATE      POWER  CLAIM  SINCE  WHY\ns1      Available  Off    -      -\n"
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

func TestABranchThatIsNoStatusBranchIsRefused(t *testing.T) {
	repo := must.Get(gitserver.New(t.TempDir(), "fleet"))(t)
	must.Get(repo.Commit(map[string]string{"README.md": "fleet\n"}, "begin"))(t)
	_, stderr, code := command(t, "status", "--git", repo.Dir, "--branch", "main")
	if code != exitFailed || !strings.Contains(stderr, "branch main: it has no revision.yaml: is it the branch that Ingot writes?") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}

// fullDisk takes nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestAResultThatCannotBePrintedIsAFailure(t *testing.T) {
	var errs bytes.Buffer
	code := execute(t.Context(), []string{"status", "--address", adminServer(t, exampleSummary)}, &console{in: strings.NewReader(""), out: fullDisk{}, err: &errs})
	if code != exitFailed || errs.String() != "ingot: print the result: no space left on device\n" {
		t.Errorf("exit code %d\n%s", code, errs.String())
	}
}

func TestControlCharactersOfAFileNameAreNotPrinted(t *testing.T) {
	if got := withoutControls("a\x1b[2J\a\n.yaml"); got != "a\uFFFD[2J\uFFFD\n.yaml" {
		t.Errorf("got %q", got)
	}
}
