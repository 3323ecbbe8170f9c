package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/model/must"
	"ingot/reconcile/report"
)

const longMessage = "waiting for the server to shut down, which takes as long as what runs on it needs: image " +
	"registry.example.com/operating-systems/flatcar-container-linux-with-a-very-long-name:4081.2.0-stable"

func TestTablesFitATerminal(t *testing.T) {
	long := waits(report.Waiting{Message: longMessage, Actor: "tenant"})
	wide := inFleet("", server("rack1-bmc-01-system-0", model.StateReserved, is(report.Summary{Claim: "default/web-1"}), long),
		claim("a/b", report.ClaimBound, is(report.Summary{Server: "s1"}), long))
	wide.Fleet.Problems = []model.Problem{{File: "claims/default/web-1.yaml", Line: 3, Column: 5, Message: "unknown field " + longMessage}}
	const want = `Revision none yet

SERVER                 STATE     POWER  CLAIM          SINCE
    WAITS FOR
rack1-bmc-01-system-0  Reserved  -      default/web-1  -
    waiting for the server to shut down, which takes as long as what runs on it
    needs: image
    registry.example.com/operating-systems/flatcar-container-linux-with-a-very-l
    ong-name:4081.2.0-stable (to act: tenant)

CLAIM  STATE  SERVER  SINCE  WAITS FOR
a/b    Bound  s1      -      waiting for the server to shut down, which takes as
                             long as what runs on it needs: image
                             registry.example.com/operating-systems/flatcar-cont
                             ainer-linux-with-a-very-long-name:4081.2.0-stable
                             (to act: tenant)

PROBLEMS
claims/default/web-1.yaml:3:5: unknown field waiting for the server to shut
  down, which takes as long as what runs on it needs: image
  registry.example.com/operating-systems/flatcar-container-linux-with-a-very-lon
  g-name:4081.2.0-stable
`
	var out bytes.Buffer
	c := &console{out: &out, terminal: true, env: []string{"NO_COLOR=1"}}
	printStatus(c, wide, true, exampleNow)
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	out.Reset()
	c.terminal = false
	if printStatus(c, wide, true, exampleNow); strings.Count(out.String(), "\n") != 10 {
		t.Errorf("for programs an object is one line:\n%s", out.String())
	}
}

var timeOfDay = regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d`)

// watchOf watches until all documents of a daemon were shown.
func watchOf(t *testing.T, c *console, docs []*report.Documents, args ...string) (string, int) {
	var out bytes.Buffer
	c.in, c.out, c.err = strings.NewReader(""), &out, &out
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	d, end := polled(t, docs...)
	go func() {
		<-end
		cancel()
	}()
	code := execute(ctx, append([]string{"status", "--watch", "--interval", "100ms", "--address", d.server.URL}, args...), c)
	return strings.ReplaceAll(timeOfDay.ReplaceAllString(out.String(), "TIME"), d.server.URL, "ADDRESS"), code
}

func TestWatchPrintsChanges(t *testing.T) {
	before := inFleet("main@sha1:aa", server("s1", model.StateAvailable))
	after := inFleet("main@sha1:bb", server("s1", model.StateReserved, is(report.Summary{Claim: "default/web"})))
	after.Fleet.Holds, after.Fleet.Problems = []report.Hold{{}}, []model.Problem{{}, {}}
	got, code := watchOf(t, &console{}, []*report.Documents{before, before, after, nil, nil, after})
	const want = `Revision main@sha1:aa

SERVER  STATE      POWER  CLAIM  SINCE  WAITS FOR
s1      Available  -      -      -
TIME revision main@sha1:bb
TIME 1 list waiting for approval
TIME 2 problems
TIME server s1 Available → Reserved for default/web
TIME ADDRESS/api/v1/fleet answered 503 Service Unavailable; is it the admin listener of an Ingot daemon?
TIME it answers again
`
	if diff := cmp.Diff(want, got); diff != "" || code != exitFine {
		t.Errorf("exit code %d, -want +got:\n%s", code, diff)
	}
	got, _ = watchOf(t, &console{}, []*report.Documents{before, before, after}, "-o", "json")
	if lines := strings.Split(strings.TrimSpace(got), "\n"); len(lines) != 2 || !strings.HasPrefix(lines[1], `{"fleet":{"lastAppliedRevision":"main@sha1:bb"`) {
		t.Errorf("as JSON:\n%s", got)
	}
}

func TestWatchRedrawsTerminal(t *testing.T) {
	var servers []*report.Document
	for i := range 9 {
		servers = append(servers, server(fmt.Sprintf("s%d", i), model.StateAvailable))
	}
	c := &console{terminal: true, env: []string{"NO_COLOR=1"}, dimensions: func() (int, int) { return 80, 9 }}
	got, code := watchOf(t, c, []*report.Documents{inFleet("main@sha1:aa", servers...), nil})
	screens := strings.Split(got, "\x1b[H")
	if len(screens) != 3 || code != exitFine {
		t.Fatalf("exit code %d, %d screens:\n%q", code, len(screens)-1, got)
	}
	const want = `, every 100ms
Revision main@sha1:aa

SERVER  STATE      POWER  CLAIM  SINCE  WAITS FOR
s0      Available  -      -      -
s1      Available  -      -      -
s2      Available  -      -      -
… 6 lines more; a kind and a name show less
`
	_, shown, _ := strings.Cut(screens[1], ",")
	if diff := cmp.Diff(want, ","+strings.NewReplacer("\x1b[K", "", "\x1b[J", "").Replace(shown)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !strings.Contains(screens[2], "\nmay be outdated: ADDRESS/api/v1/fleet answered 503") || !strings.Contains(screens[2], "s0 ") {
		t.Errorf("what was seen last is not shown on:\n%s", screens[2])
	}
}

func TestStatusExitCode(t *testing.T) {
	db := claim("default/db", report.ClaimBooted)
	with := func(change func(*report.Fleet), docs ...*report.Document) *report.Documents {
		all := inFleet("main@sha1:aa", docs...)
		all.Fleet.Problems = []model.Problem{{Severity: model.SeverityWarning}}
		change(all.Fleet)
		return all
	}
	same := func(*report.Fleet) {}
	waiting := with(same, db, claim("default/web", report.ClaimBooted, waits(report.Waiting{Message: "waiting for power"})))
	held := with(func(f *report.Fleet) { f.Holds = []report.Hold{{}} }, db)
	for name, tc := range map[string]struct {
		docs *report.Documents
		args []string
		want int
	}{
		"nothing waits":                       {docs: with(same, db, server("s1", model.StateReserved))},
		"a claim waits for its server":        {docs: waiting, want: int(exitUnderWay)},
		"a claim that is not asked for waits": {docs: waiting, args: []string{"claim", "db"}},
		"a claim needs action": {
			docs: with(same, claim("default/web", report.ClaimBooted, waits(report.Waiting{Message: "no server is free", Actor: "rack operator"}))), want: int(exitActs),
		},
		"a server is in Error": {docs: with(same, server("s1", model.StateError)), want: int(exitActs)},
		"a server is decommissioned": {
			docs: with(same, server("s1", model.StateError, waits(report.Waiting{Reason: model.ReasonDecommissioned}))),
		},
		"a manifest is wrong": {
			docs: with(func(f *report.Fleet) { f.Problems = []model.Problem{{Severity: model.SeverityError}} }), want: int(exitActs),
		},
		"a list waits for approval":              {docs: held, want: int(exitActs)},
		"a list waits, and a claim is asked for": {docs: held, args: []string{"claim"}},
		"the repository cannot be read": {
			docs: with(func(f *report.Fleet) { f.Trouble = &report.Trouble{Reason: model.SourceFetchFailed} }), want: int(exitActs),
		},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"status", "--exit-code", "--address", newFakeDaemon(t, tc.docs).server.URL}, tc.args...)
			if _, stderr, code := command(t, args...); code != tc.want || stderr != "" {
				t.Errorf("exit code %d, want %d\n%s", code, tc.want, stderr)
			}
			args = slices.DeleteFunc(args, func(a string) bool { return a == "--exit-code" })
			if _, _, code := command(t, args...); code != exitFine {
				t.Errorf("exit code %d though none was asked for", code)
			}
		})
	}
}

func TestWithoutADaemonTheCloneIsRead(t *testing.T) {
	nobody := httptest.NewServer(http.NotFoundHandler())
	nobody.Close()
	w := newApproveWorld(t, "lastAppliedRevision: main@sha1:COMMIT\ndecided: {}\n")
	inside := func(dir string, args ...string) (stdout, stderr string, code int) {
		t.Chdir(dir)
		var out, errs bytes.Buffer
		code = execute(t.Context(), args, &console{in: strings.NewReader(""), out: &out, err: &errs, daemon: nobody.URL})
		return out.String(), errs.String(), code
	}
	said := "ingot: no daemon listens at " + nobody.URL + ": this is origin/status of the clone here, written "
	for _, args := range [][]string{{"status", "server", "s3"}, {"explain", "server", "s3"}} {
		stdout, stderr, code := inside(w.dir, args...)
		if code != exitFine || !strings.HasPrefix(stderr, said) || !strings.Contains(stdout, "s3") {
			t.Errorf("%v: exit code %d\n%s%s", args, code, stdout, stderr)
		}
	}
	for _, args := range [][]string{{"status", "--branch", "main"}, {"explain", "--branch", "main", "server", "s3"}} {
		stdout, stderr, code := inside(w.dir, args...)
		if code != exitFailed || stdout != "" || !strings.HasSuffix(stderr, "\ningot: read branch main: it has no fleet.yaml: is it the branch that Ingot writes?\n") {
			t.Errorf("%v: exit code %d\n%s%s", args, code, stdout, stderr)
		}
	}
	for name, tc := range map[string]struct {
		dir  string
		args []string
	}{
		"a folder that is no clone":          {dir: t.TempDir(), args: []string{"status"}},
		"a clone without a status branch":    {dir: w.dir, args: []string{"status", "--branch", "other"}},
		"a daemon that is named":             {dir: w.dir, args: []string{"status", "--address", nobody.URL}},
		"a daemon that is named, to explain": {dir: w.dir, args: []string{"explain", "--address", nobody.URL, "server", "s3"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, stderr, code := inside(tc.dir, tc.args...)
			want := "ingot: no daemon listens at " + nobody.URL + "; name another with --address, or read the status branch with --git\n"
			if code != exitFailed || stderr != want {
				t.Errorf("exit code %d\n%s", code, stderr)
			}
		})
	}
}

func TestWaitFetchesStatusBranchOfClone(t *testing.T) {
	nobody := httptest.NewServer(http.NotFoundHandler())
	nobody.Close()
	w := newApproveWorld(t, "lastAppliedRevision: main@sha1:COMMIT\ndecided: {}\n")
	must.Get(w.repo.CommitTo("status", map[string]string{"servers/s4.yaml": "kind: Server\nmetadata: {name: s4}\nstatus: {state: Available}\n"}, "s4"))(t)
	t.Chdir(w.dir)
	var out, errs bytes.Buffer
	args := []string{"status", "--wait", "--interval", "100ms", "--timeout", "10s", "server", "s4"}
	code := execute(t.Context(), args, &console{in: strings.NewReader(""), out: &out, err: &errs, daemon: nobody.URL})
	if code != exitFine || !strings.Contains(out.String(), "s4") || !strings.Contains(errs.String(), "; it is fetched each time\n") {
		t.Errorf("exit code %d\n%s%s", code, out.String(), errs.String())
	}
}

func TestStatusBranchOfAClone(t *testing.T) {
	w := newApproveWorld(t, heldRevision)
	if stdout, stderr, code := command(t, "status", "--git", w.dir, "server"); code != exitFine || !strings.Contains(stdout, "s3") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}
