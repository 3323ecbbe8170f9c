package main

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/model/must"
	"ingot/reconcile/report"
)

func waitOf(ctx context.Context, address string, args ...string) (out, errs string, code int) {
	var o, e bytes.Buffer
	c := &console{in: strings.NewReader(""), out: &o, err: &e}
	code = execute(ctx, append([]string{"status", "--wait", "--interval", "100ms", "--address", address}, args...), c)
	return o.String(), strings.ReplaceAll(timeOfDay.ReplaceAllString(e.String(), "TIME"), address, "ADDRESS"), code
}

func TestWaitEndsWhenNothingIsWaitedFor(t *testing.T) {
	web := func(state string, change ...func(*report.Overview)) *report.Documents {
		return inFleet("main@sha1:aa", claim("default/web", state, change...))
	}
	noServer := report.Waiting{Message: "no server is free"}
	alone := web(report.ClaimUnbound, waits(noServer))
	noServer.Actor = "rack operator"
	d, _ := polled(t, nil, inFleet(""), inFleet("main@sha1:aa"), alone, alone, web(report.ClaimUnbound, waits(noServer)), web(report.ClaimBooted))
	out, errs, code := waitOf(t.Context(), d.server.URL, "claim", "web")
	const want = `TIME ADDRESS/api/v1/fleet answered 503 Service Unavailable; is it the admin listener of an Ingot daemon?
TIME there is no claim web
TIME claim default/web is Unbound: no server is free
TIME claim default/web is Unbound: no server is free (to act: rack operator)
`
	if diff := cmp.Diff(want, errs); diff != "" || code != exitFine {
		t.Errorf("exit code %d, standard error -want +got:\n%s", code, diff)
	}
	if !strings.Contains(out, "default/web") || !strings.Contains(out, "Booted") {
		t.Errorf("standard output:\n%s", out)
	}
}

func TestWaitForDaemonThatStarts(t *testing.T) {
	d, _ := polled(t, inFleet(""), inFleet("main@sha1:aa"))
	_, errs, code := waitOf(t.Context(), d.server.URL)
	if want := "TIME the daemon has not read the repository yet\n"; errs != want || code != exitFine {
		t.Errorf("exit code %d, %q, want %q", code, errs, want)
	}
}

// The last look reads everything: the fleet of an event may be newer than the documents that are kept.
func TestWaitReadsOnlyChangedDocuments(t *testing.T) {
	d := newFakeDaemon(t)
	other, waiting := claim("default/db", report.ClaimBooted), waits(report.Waiting{Message: "power"})
	d.show(inFleet("main@sha1:aa", other, claim("default/web", report.ClaimBound, waiting)))
	s, ended := inBackground(t.Context(), "status", "--wait", "--interval", "1h", "--address", d.server.URL)
	s.until(t, "is Bound: power\n")
	d.looked(t, 2*fullLook)
	d.show(inFleet("main@sha1:aa", other, claim("default/web", report.ClaimBooted)))
	if code := <-ended; code != exitFine {
		t.Errorf("exit code %d\n%s", code, s.shown())
	}
	if got := d.asked(); len(got) != 2+fullLook || !slices.Contains(got, "/api/v1/serverclaims/default/web") {
		t.Errorf("requested %q", got)
	}
}

func TestWaitingIsGivenUp(t *testing.T) {
	ln := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	nobody := "http://" + ln.Addr().String()
	ln.Close()
	waiting := inFleet("main@sha1:aa", server("s1", model.StateDiscovery, waits(report.Waiting{Message: "waiting for the probe"})))
	address := newFakeDaemon(t, waiting).server.URL
	for name, tc := range map[string]struct {
		address string
		want    int
	}{
		"while something is under way": {address, int(exitUnderWay)},
		"while nobody answers":         {nobody, exitFailed},
	} {
		if _, errs, code := waitOf(t.Context(), tc.address, "--timeout", "250ms"); code != tc.want {
			t.Errorf("%s: exit code %d, want %d\n%s", name, code, tc.want, errs)
		}
	}
	if _, errs, code := waitOf(t.Context(), address, "--timeout", "250ms", "claim", "web"); code != exitFailed || !strings.Contains(errs, "ingot: there is no claim web") {
		t.Errorf("for an object that does not exist: exit code %d\n%s", code, errs)
	}
	if _, errs, code := waitOf(t.Context(), stalling(t, waiting), "--timeout", "250ms"); code != int(exitUnderWay) {
		t.Errorf("while a look is under way: exit code %d\n%s", code, errs)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, errs, code := waitOf(ctx, address); code != int(exitUnderWay) {
		t.Errorf("interrupted: exit code %d\n%s", code, errs)
	}
	if _, errs, code := command(t, "status", "--timeout", "5s"); code != exitUsage || !strings.Contains(errs, "--timeout: a positive time, with --wait") {
		t.Errorf("without --wait: exit code %d\n%s", code, errs)
	}
}

// stalling answers one look.
func stalling(t *testing.T, docs *report.Documents) string {
	d, _ := polled(t, docs)
	d.lastLook = func() {
		d.admin = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	}
	return d.server.URL
}

// A pipeline that has pushed waits for its own commit, and not for the state before it.
func TestACommitIsWaitedFor(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "--quiet")
	var commits []string // the first is in force, the second was pushed, the third follows
	for range 3 {
		git("commit", "--quiet", "--allow-empty", "--message", "change")
		commits = append(commits, git("rev-parse", "HEAD"))
	}
	git("update-ref", "refs/remotes/origin/main", commits[1])
	at := func(commit string) *report.Documents { return inFleet(model.Revision("main@sha1:" + commit)) }
	before := "TIME the daemon acts on main@" + commits[0][:7] + ", and not on " + commits[1][:7] + " yet\n"
	for name, tc := range map[string]struct {
		dir, revision string
		now           string // in force from the second look on
		says          string
		code          int
	}{
		"by what the clone calls it":           {dir, "HEAD~1", commits[1], before, exitFine},
		"by its hash":                          {dir, commits[1], commits[1], before, exitFine},
		"while a later one is in force":        {dir, "HEAD~1", commits[2], before, exitFine},
		"by its hash, without a clone":         {t.TempDir(), commits[1][:10], commits[1], before, exitFine},
		"that never comes":                     {dir, "HEAD~1", commits[0], before, int(exitUnderWay)},
		"that was pushed last":                 {dir, "", commits[1], before, exitFine},
		"that was pushed last and never comes": {dir, "", commits[0], before, int(exitUnderWay)},
		"of no clone":                          {t.TempDir(), "", commits[0], "", exitFine},
		"that nobody knows":                    {dir, "nothing", commits[1], "ingot: --revision nothing is no hash of a commit, and the clone in the working directory has no commit nothing\n", exitFailed},
		"by a name where there is no clone":    {t.TempDir(), "HEAD", commits[1], "is no clone of a repository", exitFailed},
		"by something that git has options of": {dir, "--all", commits[1], "ingot: --revision --all is no hash of a commit", exitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(tc.dir)
			d, _ := polled(t, at(commits[0]), at(tc.now))
			_, errs, code := waitOf(t.Context(), d.server.URL, "--timeout", "700ms", "--revision="+tc.revision)
			if code != tc.code || !strings.Contains(errs, tc.says) {
				t.Errorf("exit code %d, want %d; it says %q, want %q", code, tc.code, errs, tc.says)
			}
		})
	}
	if _, errs, code := command(t, "status", "--revision", "HEAD"); code != exitUsage || !strings.Contains(errs, "--revision is for --wait") {
		t.Errorf("without --wait: exit code %d\n%s", code, errs)
	}
}
