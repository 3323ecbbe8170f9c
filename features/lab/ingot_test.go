package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ingot/gitsource/gittest"
)

const (
	adminURL     = "http://127.0.0.1:8080"
	bootURL      = "http://" + serverAddress + ":8082" // as Ingot derives it
	bootURL6     = "http://[" + serverAddress6 + "]:8082"
	statusBranch = "status"
)

// leaser is a DHCP server that can be ended and started again.
type leaser interface {
	start(t *testing.T)
	stop(t *testing.T)
	kill()
}

// ingot is the ingot program in a namespace, its repository and what it keeps.
type ingot struct {
	on      *namespace
	dir     string
	repo    *gittest.Repo
	config  string // what the test adds to the configuration
	process *process
}

// newIngot makes a repository and a place for state. Ingot does not run yet.
func newIngot(t *testing.T, on *namespace, config string) *ingot {
	t.Helper()
	i := &ingot{on: on, dir: t.TempDir(), repo: gittest.NewRepo(t), config: config}
	// Ingot takes nothing over from a repository without a manifest.
	i.commit(t, "elsewhere.yaml", endpoint("elsewhere", macOf(0xff), "192.0.2.1"))
	return i
}

// commit adds or replaces a file in the repository.
func (i *ingot) commit(t *testing.T, path, content string) {
	t.Helper()
	if _, err := i.repo.Commit(map[string]string{path: content}, "change "+path); err != nil {
		t.Fatal(err)
	}
}

// configuration is the whole configuration file.
func (i *ingot) configuration() string {
	return fmt.Sprintf(`git: {url: %q, interval: 200ms, allowPlaintextSecrets: true}
status: {interval: 200ms}
state: {dir: %q}
bmc: {requestsPerSecond: 1000, maxInFlight: 4, pollInterval: 1s, powerOffGrace: 5s}
admin: {listen: "127.0.0.1:8080"}
`, i.repo.URL(), filepath.Join(i.dir, "state")) + i.config
}

// launch runs Ingot and does not wait for anything.
func (i *ingot) launch(t *testing.T) {
	t.Helper()
	program, err := builtIngot()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(i.dir, "ingot.yaml")
	if err := os.WriteFile(file, []byte(i.configuration()), 0o600); err != nil {
		t.Fatal(err)
	}
	i.process = i.on.start(t, "ingot", program, "--log-format", "json", "--log-level", "debug", "run", "--fast", "--config", file)
}

// start runs Ingot and waits until it says that all its parts are ready.
func (i *ingot) start(t *testing.T) {
	t.Helper()
	i.launch(t)
	i.awaitReady(t)
}

func (i *ingot) awaitReady(t *testing.T) {
	t.Helper()
	eventually(t, patience, i.ready)
}

// ready is nil if Ingot says that all its parts are ready.
func (i *ingot) ready() error {
	if !i.process.running() {
		return fmt.Errorf("ingot ended: %w", i.process.err)
	}
	_, err := i.on.get(adminURL + "/readyz")
	return err
}

// stop asks Ingot to end, which it must do without an error.
func (i *ingot) stop(t *testing.T) {
	t.Helper()
	if err := i.process.stop(patience); err != nil {
		t.Fatal(err)
	}
}

func (i *ingot) kill() { i.process.kill() }

// refuses waits until Ingot, just launched, ends with an error, and returns what
// it wrote.
func (i *ingot) refuses(t *testing.T) string {
	t.Helper()
	select {
	case <-i.process.ended:
	case <-time.After(patience):
		t.Fatal("Ingot runs, though it cannot do what it is told to")
	}
	if i.process.err == nil {
		t.Fatal("Ingot ended without an error")
	}
	return i.process.output.String()
}

// metric returns the lines of /metrics that begin with name.
func (i *ingot) metric(name string) (string, error) {
	all, err := i.on.get(adminURL + "/metrics")
	var found []string
	for line := range strings.Lines(all) {
		if strings.HasPrefix(line, name) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return strings.Join(found, "\n"), err
}

// status returns a file of the status branch, or an error that lists what there is.
func (i *ingot) status(path string) (string, error) {
	files, err := i.repo.ReadBranch(statusBranch)
	if err != nil {
		return "", err
	}
	if content, ok := files[path]; ok {
		return content, nil
	}
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	return "", fmt.Errorf("the status branch has no %s, but %s", path, strings.Join(names, ", "))
}

// statusHas waits until a file of the status branch has all of the words.
func (i *ingot) statusHas(t *testing.T, limit time.Duration, path string, words ...string) string {
	t.Helper()
	var content string
	eventually(t, limit, func() (err error) {
		if content, err = i.status(path); err != nil {
			return err
		}
		for _, w := range words {
			if !strings.Contains(content, w) {
				return fmt.Errorf("%s does not say %q:\n%s", path, w, content)
			}
		}
		return nil
	})
	return content
}

// redisServer is a redis-server in a namespace, which keeps what it is told.
type redisServer struct {
	on      *namespace
	dir     string
	process *process
}

func newRedis(t *testing.T, on *namespace) *redisServer {
	t.Helper()
	need(t, toolRedis)
	r := &redisServer{on: on, dir: t.TempDir()}
	r.start(t)
	return r
}

func (r *redisServer) start(t *testing.T) {
	t.Helper()
	r.process = r.on.start(t, "redis-server", "redis-server", "--bind", "127.0.0.1", "--port", "6379", "--dir", r.dir,
		"--appendonly", "yes", "--save", "", "--daemonize", "no")
	eventually(t, patience, func() error {
		if !strings.Contains(r.process.output.String(), "Ready to accept connections") {
			return errors.New("redis-server is not ready")
		}
		return nil
	})
}
