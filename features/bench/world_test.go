package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ingot/bmc/sim"
	"ingot/bootsvc/oci/ociserver"
	"ingot/features/internal/rig"
	"ingot/gitsource/gitserver"
	"ingot/model"
	"ingot/model/must"
)

// fleet is a simulated rack, the repository that describes it, and the daemon that
// runs it in a process of its own.
type fleet struct {
	testing.TB
	rack       *sim.Rack
	repository *gitserver.Repo
	image      string // that claims ask for
	probe      string // that servers are discovered with

	daemon *exec.Cmd
	admin  string // the daemon's address
	http   *http.Client
}

// newFleet makes a rack of servers, one behind each BMC, and starts a daemon with
// an empty repository. settings are the daemon's, as variables.
func newFleet(tb testing.TB, program string, servers int, settings ...string) *fleet {
	f := &fleet{TB: tb}
	f.startRack(servers)
	f.begin(program, "", append([]string{"--fast"}, settings...)...)
	return f
}

// begin starts a daemon with an empty repository; configuration is added to its file.
func (f *fleet) begin(program, configuration string, settings ...string) {
	f.Helper()
	f.http = &http.Client{Timeout: 30 * time.Second}
	f.Cleanup(f.http.CloseIdleConnections)
	f.makeImages()
	var err error
	if f.repository, err = gitserver.New(f.TempDir(), "fleet"); err != nil {
		f.Fatal(err)
	}
	f.commit(map[string]string{"README.md": "a fleet\n"}, "begin")
	config := filepath.Join(f.TempDir(), "ingot.yaml")
	if err := os.WriteFile(config, []byte("bmc: {networks: [127.0.0.0/8]}\n"+configuration), 0o600); err != nil {
		f.Fatal(err)
	}
	f.startDaemon(program, append([]string{
		"--config=" + config,
		"INGOT_GIT_URL=" + f.repository.URL(), "INGOT_GIT_ALLOW_PLAINTEXT_SECRETS=true",
		"INGOT_STATE_DIR=" + f.TempDir(), "INGOT_DISCOVERY_IMAGE=" + f.probe,
		"INGOT_BOOT_LISTEN=127.0.0.1:0", "INGOT_REGISTRY_LISTEN=127.0.0.1:0", "INGOT_ADMIN_LISTEN=127.0.0.1:0",
		"INGOT_BOOT_BIND_TICKETS=nothing", // all machines have the address of loopback
	}, settings...))
}

func (f *fleet) startRack(servers int) {
	f.Helper()
	var err error
	if f.rack, err = sim.New(sim.Options{BMCs: servers, Delays: sim.FastDelays()}); err != nil {
		f.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		if err := f.rack.Run(context.WithoutCancel(f.Context())); err != nil {
			f.Error(err)
		}
	})
	f.Cleanup(func() {
		f.rack.Close()
		running.Wait()
	})
}

func (f *fleet) makeImages() {
	f.Helper()
	images, err := ociserver.New()
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := images.Close(); err != nil {
			f.Error(err)
		}
	})
	for _, name := range []string{"probe", "linux"} {
		ref, _, err := images.PushBootImage(name, "1", []byte(name+" kernel"), []byte(name+" initrd"), []byte(name+" root"))
		if err != nil {
			f.Fatal(err)
		}
		f.probe, f.image = f.image, ref
	}
}

var listening = regexp.MustCompile(`msg=listening boot=(\S+) .*\badmin=(\S+)`)

// startDaemon runs Ingot with settings, which are flags or variables.
func (f *fleet) startDaemon(program string, settings []string) {
	f.Helper()
	f.daemon = exec.Command(program, "run")
	f.daemon.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "INGOT_") })
	for _, s := range settings {
		if strings.HasPrefix(s, "--") {
			f.daemon.Args = append(f.daemon.Args, s)
		} else {
			f.daemon.Env = append(f.daemon.Env, s)
		}
	}
	stderr, err := f.daemon.StderrPipe()
	if err != nil {
		f.Fatal(err)
	}
	if err := f.daemon.Start(); err != nil {
		f.Fatal(err)
	}
	found := make(chan []string, 1)
	log := &tail{}
	var reading sync.WaitGroup
	reading.Go(func() { log.read(stderr, found) })
	f.Cleanup(func() {
		_ = f.daemon.Process.Signal(syscall.SIGTERM) // it may have ended by itself
		reading.Wait()
		if err := f.daemon.Wait(); err != nil || f.Failed() {
			f.Errorf("the daemon ended: %v; it said last:\n%s", err, strings.Join(log.lines, "\n"))
		}
	})
	select {
	case at := <-found:
		if at == nil {
			f.Fatal("the daemon did not begin to listen")
		}
		f.rack.SetBootURL("http://" + at[1])
		f.admin = "http://" + at[2]
	case <-time.After(30 * time.Second):
		f.Fatal("the daemon did not begin to listen")
	}
	f.await("the daemon reads the repository", time.Minute, func() bool { return f.metric("ingot_store_leading") == 1 })
}

// tail keeps the newest lines of a log.
type tail struct{ lines []string }

// read reads a log to its end and sends the addresses that stand in it, or nil.
func (t *tail) read(from io.Reader, found chan<- []string) {
	defer close(found)
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		if at := listening.FindStringSubmatch(lines.Text()); at != nil {
			found <- at
		}
		if !strings.Contains(lines.Text(), "level=INFO") {
			t.lines = append(t.lines[max(0, len(t.lines)-19):], lines.Text())
		}
	}
}

func (f *fleet) commit(files map[string]string, message string) {
	f.Helper()
	if _, err := f.repository.Commit(files, message); err != nil {
		f.Fatal(err)
	}
	if f.daemon == nil {
		return
	}
	if err := f.daemon.Process.Signal(syscall.SIGHUP); err != nil {
		f.Fatal(err)
	}
}

func (f *fleet) claims(from, to int) map[string]string {
	files := make(map[string]string, to-from)
	for i := from; i < to; i++ {
		name := fmt.Sprintf("web-%04d", i)
		files["claims/"+name+".yaml"] = fmt.Sprintf(`apiVersion: %s
kind: %s
metadata:
  name: %s
  namespace: default
spec:
  power: "On"
  image: %s
`, model.APIVersion, model.KindServerClaim, name, f.image)
	}
	return files
}

func (f *fleet) await(what string, limit time.Duration, done func() bool) {
	f.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(limit); !done(); <-tick.C {
		if time.Now().After(deadline) {
			f.Fatalf("after %s not yet: %s", limit, what)
		}
	}
}

func (f *fleet) count(is func(*sim.Server) bool) int {
	n := 0
	for _, s := range f.rack.Servers() {
		if is(s) {
			n++
		}
	}
	return n
}

func isOn(s *sim.Server) bool { return s.Power() == model.PowerOn }

// wasProbed reports whether a server was on and is off again.
func wasProbed(s *sim.Server) bool { return s.PowerOns() > 0 && s.Power() == model.PowerOff }

func (f *fleet) onboard() time.Duration { return f.onboardWithin(5 * time.Minute) }

func (f *fleet) onboardWithin(limit time.Duration) time.Duration {
	f.Helper()
	began := time.Now()
	f.commit(f.rack.Manifests(), "add the rack")
	all := len(f.rack.Servers())
	// The daemon is asked only when there is hope: what it answers costs it CPU time.
	f.await("all servers are discovered and off", limit, func() bool {
		time.Sleep(time.Duration(all) * 50 * time.Microsecond) // to count them takes CPU time, too
		return f.count(wasProbed) == all
	})
	f.await("all servers are Available", time.Minute, func() bool {
		return f.metric("ingot_servers", `state="Available"`) == float64(all)
	})
	return time.Since(began)
}

func (f *fleet) claim(from, to int) time.Duration {
	f.Helper()
	began := time.Now()
	f.commit(f.claims(from, to), "claim servers")
	f.await("all claimed servers are on", 5*time.Minute, func() bool { return f.count(isOn) == to })
	took := time.Since(began)
	if bound := f.metric("ingot_claims", `phase="Bound"`); bound != float64(to) {
		f.Errorf("%v of %d claims are bound though their servers are on", bound, to)
	}
	return took
}

func (f *fleet) booted(n int) {
	f.Helper()
	f.await("all claimed servers have booted", time.Minute, func() bool {
		return f.count(func(s *sim.Server) bool { return len(s.Installs()) > 0 }) == n
	})
}

func (f *fleet) metric(name string, labels ...string) float64 {
	f.Helper()
	resp, err := f.http.Get(f.admin + "/metrics")
	if err != nil {
		f.Fatal(err)
	}
	defer resp.Body.Close()
	var sum float64
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		sample, value, _ := strings.Cut(lines.Text(), " ")
		found, ofSample, _ := strings.Cut(sample, "{")
		if found == name && containsAll(ofSample, labels) {
			n, _ := strconv.ParseFloat(value, 64)
			sum += n
		}
	}
	if err := lines.Err(); err != nil {
		f.Fatal(err)
	}
	return sum
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

func (f *fleet) statusCommits() int {
	f.Helper()
	if f.repository.Head("status") == "" {
		return 0
	}
	log, err := f.repository.ReadLog("status")
	if err != nil {
		f.Fatal(err)
	}
	return len(log)
}

const programVariable = "FLEET_BENCH_PROGRAM"

func build(tb testing.TB) string {
	tb.Helper()
	if program := os.Getenv(programVariable); program != "" {
		return program
	}
	program := filepath.Join(tb.TempDir(), "ingot")
	must.Do(tb, rig.Build(program, "ingot/cmd/ingot", "-trimpath"))
	return program
}

func startRedis(tb testing.TB) (url string, pid int) {
	tb.Helper()
	free := must.Get(net.Listen("tcp", "127.0.0.1:0"))(tb)
	addr := free.Addr().(*net.TCPAddr)
	free.Close()
	cmd := exec.Command("redis-server", "--bind", "127.0.0.1", "--port", strconv.Itoa(addr.Port), "--appendonly", "yes",
		"--dir", tb.TempDir(), "--save", "", "--maxmemory-policy", "noeviction")
	must.Do(tb, cmd.Start())
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", addr.String())
		if err == nil {
			conn.Close()
			return "redis://" + addr.String() + "/0", cmd.Process.Pid
		}
		if time.Now().After(deadline) {
			tb.Fatalf("redis-server did not begin to listen: %v", err)
		}
	}
}
