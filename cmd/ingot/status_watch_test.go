package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/report"
)

const longWhy = "waiting for the server to shut down, which takes as long as what runs on it needs: image " +
	"registry.example.com/operating-systems/flatcar-container-linux-with-a-very-long-name:4081.2.0-stable (to act: tenant)"

func TestTablesFitATerminal(t *testing.T) {
	wide := report.Summary{
		Servers: []report.ServerSummary{{Name: "rack1-bmc-01-system-0", State: model.StateReserved, Claim: "default/web-1", Why: longWhy}},
		Claims:  []report.ClaimSummary{{Name: "a/b", State: report.ClaimBound, Server: "s1", Why: longWhy}},
		Problems: []model.Problem{{
			File: "claims/default/web-1.yaml", Line: 3, Column: 5, Message: "unknown field " + longWhy,
		}},
	}
	const want = `Revision none yet

SERVER                 STATE     POWER  CLAIM          SINCE
    WHY
rack1-bmc-01-system-0  Reserved  -      default/web-1  -
    waiting for the server to shut down, which takes as long as what runs on it
    needs: image
    registry.example.com/operating-systems/flatcar-container-linux-with-a-very-l
    ong-name:4081.2.0-stable (to act: tenant)

CLAIM  STATE  SERVER  SINCE  WHY
a/b    Bound  s1      -      waiting for the server to shut down, which takes as
                             long as what runs on it needs: image
                             registry.example.com/operating-systems/flatcar-cont
                             ainer-linux-with-a-very-long-name:4081.2.0-stable
                             (to act: tenant)

PROBLEMS
claims/default/web-1.yaml:3:5: unknown field waiting for the server to shut
  down, which takes as long as what runs on it needs: image
  registry.example.com/operating-systems/flatcar-container-linux-with-a-very-lon
  g-name:4081.2.0-stable (to act: tenant)
`
	var out bytes.Buffer
	c := &console{out: &out, terminal: true, env: []string{"NO_COLOR=1"}}
	printSummary(c, wide, true, exampleNow)
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
	if printSummary(c, wide, true, exampleNow); strings.Count(out.String(), "\n") != 10 {
		t.Errorf("for programs an object is one line:\n%s", out.String())
	}
}

// watched is a daemon that answers with one summary after the other, and cancels the last
// time.
func watched(t *testing.T, all ...*report.Summary) (ctx context.Context, address string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	next := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/status" {
			http.NotFound(w, r) // there is no event stream, so it is polled
			return
		}
		if next == len(all) {
			cancel()
			next--
		}
		if all[next] == nil {
			http.Error(w, "", http.StatusServiceUnavailable)
		} else {
			_ = json.NewEncoder(w).Encode(*all[next])
		}
		next++
	}))
	t.Cleanup(server.Close)
	t.Cleanup(cancel)
	return ctx, server.URL
}

var timeOfDay = regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d`)

func watchOf(ctx context.Context, c *console, address string, args ...string) (string, int) {
	var out bytes.Buffer
	c.in, c.out, c.err = strings.NewReader(""), &out, &out
	code := execute(ctx, append([]string{"status", "--watch", "--interval", "100ms", "--address", address}, args...), c)
	return strings.ReplaceAll(timeOfDay.ReplaceAllString(out.String(), "TIME"), address, "ADDRESS"), code
}

func TestWatchingSaysWhatChanges(t *testing.T) {
	before := &report.Summary{Revision: "main@sha1:aa", Servers: []report.ServerSummary{{Name: "s1", State: model.StateAvailable}}}
	after := &report.Summary{
		Revision: "main@sha1:bb", Guard: []model.GuardHold{{}}, Problems: []model.Problem{{}, {}},
		Servers: []report.ServerSummary{{Name: "s1", State: model.StateReserved, Claim: "default/web"}},
	}
	ctx, address := watched(t, before, before, after, nil, nil, after)
	got, code := watchOf(ctx, &console{}, address)
	const want = `Revision main@sha1:aa

SERVER  STATE      POWER  CLAIM  SINCE  WHY
s1      Available  -      -      -
TIME revision main@sha1:bb
TIME 1 list held by the guard
TIME 2 problems
TIME server s1 Available → Reserved for default/web
TIME ADDRESS/api/v1/status answered 503 Service Unavailable; is it the admin listener of an Ingot daemon?
TIME it answers again
`
	if diff := cmp.Diff(want, got); diff != "" || code != exitFine {
		t.Errorf("exit code %d, -want +got:\n%s", code, diff)
	}
	ctx, address = watched(t, before, before, after)
	got, _ = watchOf(ctx, &console{}, address, "-o", "json")
	if lines := strings.Split(strings.TrimSpace(got), "\n"); len(lines) != 2 || !strings.HasPrefix(lines[1], `{"revision":"main@sha1:bb"`) {
		t.Errorf("as JSON:\n%s", got)
	}
}

func TestWatchingDrawsATerminalAnew(t *testing.T) {
	s := &report.Summary{Revision: "main@sha1:aa"}
	for i := range 9 {
		s.Servers = append(s.Servers, report.ServerSummary{Name: model.ServerName("s" + string(rune('0'+i))), State: model.StateAvailable})
	}
	ctx, address := watched(t, s, nil)
	c := &console{terminal: true, env: []string{"NO_COLOR=1"}, dimensions: func() (int, int) { return 80, 9 }}
	got, code := watchOf(ctx, c, address)
	screens := strings.Split(got, "\x1b[H")
	if len(screens) != 3 || code != exitFine {
		t.Fatalf("exit code %d, %d screens:\n%q", code, len(screens)-1, got)
	}
	const want = `, every 100ms
Revision main@sha1:aa

SERVER  STATE      POWER  CLAIM  SINCE  WHY
s0      Available  -      -      -
s1      Available  -      -      -
s2      Available  -      -      -
… 6 lines more; a kind and a name show less
`
	_, shown, _ := strings.Cut(screens[1], ",")
	if diff := cmp.Diff(want, ","+strings.NewReplacer("\x1b[K", "", "\x1b[J", "").Replace(shown)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !strings.Contains(screens[2], "\nnot so any more, perhaps: ADDRESS/api/v1/status answered 503") || !strings.Contains(screens[2], "s0 ") {
		t.Errorf("what was seen last is not shown on:\n%s", screens[2])
	}
}

func TestTheExitCodeSaysWhetherSomebodyHasToAct(t *testing.T) {
	fine := report.Summary{
		Servers:  []report.ServerSummary{{Name: "s1", State: model.StateReserved, Claim: "default/web"}},
		Claims:   []report.ClaimSummary{{Name: "default/web", State: report.ClaimBooted}, {Name: "default/db", State: report.ClaimBooted}},
		Problems: []model.Problem{{Severity: model.SeverityWarning}},
	}
	with := func(change func(*report.Summary)) report.Summary {
		s := fine
		s.Claims, s.Servers = slices.Clone(fine.Claims), slices.Clone(fine.Servers)
		change(&s)
		return s
	}
	for name, tc := range map[string]struct {
		summary report.Summary
		args    []string
		want    int
	}{
		"all is well": {summary: fine},
		"a claim waits for its server": {
			summary: with(func(s *report.Summary) { s.Claims[0].Why = "waiting for power" }), want: int(exitUnderWay),
		},
		"and is not asked about": {
			summary: with(func(s *report.Summary) { s.Claims[0].Why = "waiting for power" }), args: []string{"claim", "db"},
		},
		"a claim waits for somebody": {
			summary: with(func(s *report.Summary) { s.Claims[0].Why = "no server is free (to act: rack operator)" }), want: int(exitActs),
		},
		"a server is in Error": {
			summary: with(func(s *report.Summary) { s.Servers[0].State = model.StateError }), want: int(exitActs),
		},
		"a server is to be forgotten": {summary: with(func(s *report.Summary) {
			s.Servers[0].State, s.Servers[0].Why, s.Servers[0].Decommissioned = model.StateError, "a commit took its BMC away", true
		})},
		"a manifest is wrong": {
			summary: with(func(s *report.Summary) { s.Problems = []model.Problem{{Severity: model.SeverityError}} }), want: int(exitActs),
		},
		"the guard holds something":     {summary: with(func(s *report.Summary) { s.Guard = []model.GuardHold{{}} }), want: int(exitActs)},
		"which is no claim's":           {summary: with(func(s *report.Summary) { s.Guard = []model.GuardHold{{}} }), args: []string{"claim"}},
		"something is absent":           {summary: with(func(s *report.Summary) { s.Absent = &report.AbsentSummary{} }), want: int(exitActs)},
		"the repository cannot be read": {summary: exampleSummary, want: int(exitActs)},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"status", "--exit-code", "--address", adminServer(t, tc.summary)}, tc.args...)
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
		if code != exitFailed || stdout != "" || !strings.HasSuffix(stderr, "\ningot: read branch main: it has no revision.yaml: is it the branch that Ingot writes?\n") {
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

func TestTheStatusBranchOfACloneIsThatWhichWasFetched(t *testing.T) {
	w := newApproveWorld(t, heldRevision)
	if stdout, stderr, code := command(t, "status", "--git", w.dir, "server"); code != exitFine || !strings.Contains(stdout, "s3") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}
