package main

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/report"
)

func waitOf(ctx context.Context, address string, args ...string) (out, errs string, code int) {
	var o, e bytes.Buffer
	c := &console{in: strings.NewReader(""), out: &o, err: &e}
	code = execute(ctx, append([]string{"status", "--wait", "--interval", "100ms", "--address", address}, args...), c)
	return o.String(), strings.ReplaceAll(timeOfDay.ReplaceAllString(e.String(), "TIME"), address, "ADDRESS"), code
}

func TestWaitingEndsWhenAllIsAsGitSays(t *testing.T) {
	claim := func(state report.ClaimState, why string) *report.Summary {
		return &report.Summary{Revision: "main@sha1:aa", Claims: []report.ClaimSummary{{Name: "default/web", State: state, Why: why}}}
	}
	none := &report.Summary{Revision: "main@sha1:aa"}
	waits, acts := claim(report.ClaimUnbound, "no server is free"), claim(report.ClaimUnbound, "no server is free (to act: rack operator)")
	_, address := watched(t, nil, &report.Summary{}, none, waits, waits, acts, claim(report.ClaimBooted, ""))
	out, errs, code := waitOf(t.Context(), address, "claim", "web")
	const want = `TIME ADDRESS/api/v1/status answered 503 Service Unavailable; is it the admin listener of an Ingot daemon?
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

func TestADaemonThatHasReadNothingYetIsWaitedFor(t *testing.T) {
	_, address := watched(t, &report.Summary{}, &report.Summary{Revision: "main@sha1:aa"})
	_, errs, code := waitOf(t.Context(), address)
	if want := "TIME the daemon has not read the repository yet\n"; errs != want || code != exitFine {
		t.Errorf("exit code %d, %q, want %q", code, errs, want)
	}
}

func TestWaitingIsGivenUp(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + ln.Addr().String()
	ln.Close()
	waits := report.Summary{Revision: "main@sha1:aa", Servers: []report.ServerSummary{{Name: "s1", State: model.StateDiscovery, Why: "waiting for the probe"}}}
	for name, tc := range map[string]struct {
		address string
		want    int
	}{
		"while something is under way": {adminServer(t, waits), int(exitUnderWay)},
		"while nobody answers":         {nobody, exitFailed},
	} {
		if _, errs, code := waitOf(t.Context(), tc.address, "--timeout", "250ms"); code != tc.want {
			t.Errorf("%s: exit code %d, want %d\n%s", name, code, tc.want, errs)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, errs, code := waitOf(ctx, adminServer(t, waits)); code != int(exitUnderWay) {
		t.Errorf("interrupted: exit code %d\n%s", code, errs)
	}
	if _, errs, code := command(t, "status", "--timeout", "5s"); code != exitFailed || !strings.Contains(errs, "--timeout: a positive time, with --wait") {
		t.Errorf("without --wait: exit code %d\n%s", code, errs)
	}
}
