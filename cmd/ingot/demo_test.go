package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"ingot/model"
	"ingot/model/must"
	"ingot/reconcile/report"
)

// screen is what a command prints, and cancels it once it has printed until.
type screen struct {
	until string
	then  func()

	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(p)
	if s.until != "" && strings.Contains(s.text.String(), s.until) {
		s.then()
	}
	return len(p), nil
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func interrupted(t *testing.T, until string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, errs := &screen{until: until, then: cancel}, &screen{}
	code = execute(ctx, args, &console{in: strings.NewReader(""), out: out, err: errs})
	return out.String(), errs.String(), code
}

// The test user has no Git identity, and makes a mistake once the claim is Booted.
func TestDemoCommandsWorkWhenPasted(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("NOT TESTED: the demo, for which this test needs the program git")
	}
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, errs, end := &screen{}, &screen{}, "Ctrl-C ends the demo."
	pasted := make(chan error, 1)
	out.until, out.then = end, sync.OnceFunc(func() { // the screen is locked
		var script strings.Builder
		for line := range strings.Lines(out.text.String()) {
			if line, is := strings.CutPrefix(line, "  "); is && !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "http") {
				if len(line) > 79 && !strings.HasPrefix(line, "cd ") {
					t.Errorf("%d columns are printed: %s", len(line)+1, line)
				}
				if strings.Contains(line, "ingot approve") { // refused when the status branch has moved on since the pull
					line = "until " + strings.TrimSpace(line) + "; do :; done\n"
				}
				script.WriteString(line)
			}
		}
		script.WriteString("sed s/power:/powr:/ web-1.yaml >fleet/claims/wrong.yaml; git -C fleet add .; git -C fleet commit -qm wrong; git -C fleet push -q")
		go func() {
			cmd := exec.CommandContext(ctx, "sh", "-ec", script.String())
			cmd.Env = append(os.Environ(), "HOME="+tmp, "XDG_CONFIG_HOME="+tmp, "GIT_CONFIG_NOSYSTEM=1")
			cmd.Stdout, cmd.Stderr = errs, errs
			pasted <- cmd.Run()
		}()
	})
	ended := make(chan int, 1)
	go func() {
		ended <- execute(ctx, []string{"demo", "--fast", "--servers", "3"}, &console{in: strings.NewReader(""), out: out, err: errs})
	}()
	if err := <-pasted; err != nil {
		t.Errorf("pasted commands: %v\n%s", err, errs)
		cancel()
	}
	for !strings.Contains(out.String(), "claims/wrong.yaml:7:3: ") && ctx.Err() == nil {
		runtime.Gosched()
	}
	cancel()
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{
		"Starting a simulated rack", "3 servers behind 3 BMCs, in " + filepath.Join(tmp, "ingot-demo"), "Discovery → Available",
		"Web page: http://127.0.0.1:", "Bound → Booted", "claims/wrong.yaml:7:3: ",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	for _, want := range []string{"default/web-1  Booted", "Nothing happens to any machine", "server rack1-bmc-01-system-0: ", "Nothing waits for an approval"} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("%q is missing in what the commands print:\n%s", want, errs)
		}
	}
	if _, err := os.Stat(filepath.Join(tmp, "ingot-demo")); !os.IsNotExist(err) {
		t.Errorf("the folder of the demo is left: %v", err)
	}
}

func TestTheDemoInstallsADiskImage(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("NOT TESTED: the demo, for which this test needs the program git")
	}
	dir := filepath.Join(t.TempDir(), "demo")
	stdout, stderr, code := command(t, "demo", "--script", "--fast", "--servers", "2", "--dir", dir)
	if code != 0 {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	log := must.Get(exec.Command("git", "-C", filepath.Join(dir, "fleet.git"), "log", "-p", "status").Output())(t)
	for _, want := range []string{"demo/linux:1", "format: raw", "its system runs on disk nvme0n1"} {
		if !strings.Contains(string(log), want) {
			t.Errorf("the status branch never said %q", want)
		}
	}
}

// showOf returns a show whose daemon has the documents in turn.
func showOf(t *testing.T, servers int, docs ...*report.Documents) (*demoShow, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	return &demoShow{
		demoCommand: demoCommand{Servers: servers, Timeout: time.Second}, console: &console{out: &out},
		fleet: must.Get(newAdminClient(newFakeDaemon(t, docs...).server.URL, daemonFlags{}))(t), began: time.Now(), progress: &out,
	}, &out
}

func TestADemoStepThatTakesTooLong(t *testing.T) {
	s, _ := showOf(t, 2, inFleet("", server("s1", model.StateAvailable),
		server("s2", model.StateDiscovery, waits(report.Waiting{Message: "waiting for the probe's report"}))))
	_, err := s.step(t.Context(), "all servers are Available", nil, s.allAvailable)
	want := "wait until all servers are Available: not so after 1s: 1 of 2 servers are Available; s2 is Discovery: waiting for the " +
		"probe's report"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestADemoStepEnds(t *testing.T) {
	s, out := showOf(t, 1, inFleet(""), inFleet("", server("s1", model.StateDiscovery)), inFleet("", server("s1", model.StateAvailable)))
	done := false
	if _, err := s.step(t.Context(), "", func() error { done = true; return nil }, s.allAvailable); err != nil || !done {
		t.Fatalf("done is %v, %v", done, err)
	}
	if !strings.Contains(out.String(), "s1                   Discovery\n") || !strings.Contains(out.String(), "Discovery → Available") {
		t.Errorf("printed\n%s", out)
	}
}

func TestWhenADemoClaimIsBootedAndReleased(t *testing.T) {
	web := func(state string) *report.Document {
		return claim(string(claimName), state, is(report.Summary{Server: "s1"}))
	}
	one := func(state model.ServerState, claim model.ClaimName) *report.Document {
		return server("s1", state, is(report.Summary{Claim: claim}))
	}
	for name, tc := range map[string]struct {
		now              *report.Documents
		booted, released bool
	}{
		"before the commit is seen": {now: inFleet("", one(model.StateAvailable, "")), released: true},
		"unbound":                   {now: inFleet("", one(model.StateAvailable, ""), web(report.ClaimUnbound))},
		"bound":                     {now: inFleet("", one(model.StateReserved, claimName), web(report.ClaimBound))},
		"booted":                    {now: inFleet("", one(model.StateReserved, claimName), web(report.ClaimBooted)), booted: true},
		"not yet released":          {now: inFleet("", one(model.StateReserved, claimName))},
		"being wiped":               {now: inFleet("", one(model.StateCleanup, ""))},
		"the server is gone":        {now: inFleet("")},
	} {
		t.Run(name, func(t *testing.T) {
			var who model.ServerName
			if got, _ := claimBooted(tc.now, &who); got != tc.booted {
				t.Errorf("booted is %v", got)
			}
			if len(tc.now.List(report.Claims)) > 0 && who != "s1" {
				t.Errorf("the server is %q", who)
			}
			if got, _ := released(tc.now, "s1"); got != tc.released {
				t.Errorf("released is %v", got)
			}
		})
	}
}

func TestTheRackOfTheDemo(t *testing.T) {
	for servers, want := range map[int][2]int{1: {1, 1}, 2: {1, 2}, 6: {3, 2}, 7: {7, 1}, 100: {50, 2}} {
		bmcs, perBMC := (&demoCommand{Servers: servers}).layout()
		if bmcs != want[0] || perBMC != want[1] {
			t.Errorf("%d servers: got %d BMCs with %d each, want %v", servers, bmcs, perBMC, want)
		}
	}
	if bmcs, perBMC := (&demoCommand{Servers: 12, BMCs: 3}).layout(); bmcs != 3 || perBMC != 4 {
		t.Errorf("12 servers behind 3 BMCs: got %d with %d each", bmcs, perBMC)
	}
}

func TestTheRackAlonePrintsItsAddressesAndWritesItsManifests(t *testing.T) {
	dir := t.TempDir()
	stdout, stderr, code := interrupted(t, "]\n", "sim", "--bmcs", "2", "--systems", "3", "--fast", "-o", "json",
		"--write-manifests", dir, "--control", "127.0.0.1:0")
	var got []simulated
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != 0 {
		t.Fatalf("exit code %d, %v: %s%s", code, err, stdout, stderr)
	}
	if len(got) != 2 || len(got[0].Servers) != 3 || !strings.HasPrefix(got[0].URL, "https://127.0.0.1:") {
		t.Errorf("got %+v", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "bmcs", string(got[1].BMC)+".yaml")); err != nil {
		t.Error(err)
	}
	if stdout, _, code := command(t, "validate", dir); code != 0 || !strings.Contains(stdout, "4 files, 4 objects: 0 errors") {
		t.Errorf("its manifests are wrong:\n%s", stdout)
	}
}

func TestARackThatCannotBeIsRefused(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "password")
	must.Do(t, os.WriteFile(empty, []byte("\n"), 0o600))
	for name, tc := range map[string]struct{ args, want string }{
		"no BMCs":           {"--bmcs=-1", "-1 BMCs: 1 to 8192 are possible"},
		"a vendor unheard":  {"--personality=acme", `personality "acme": known are`},
		"a vendor misspelt": {"--personality=lenvo", "did you mean lenovo?"},
		"a fault misspelt":  {"--fault=slwo", "did you mean slow?"},
		"a fault of nobody": {"--fault=slow,on=x", `there is no BMC or server "x"`},
		"an empty password": {"--password-file=" + empty, "is empty"},
		"no such control":   {"--control=nowhere", "--control: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, stderr, code := command(t, "sim", tc.args)
			if code != 1 || !strings.Contains(stderr, tc.want) {
				t.Errorf("exit code %d, %s", code, stderr)
			}
		})
	}
}
