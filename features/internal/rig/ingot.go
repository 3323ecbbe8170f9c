package rig

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ingot/gitsource/gitserver"
)

// Where Ingot is to be found, and what it writes.
const (
	adminURL     = "http://127.0.0.1:8080"
	BootURL      = "http://" + ServerAddress + ":8082" // as Ingot derives it
	BootURL6     = "http://[" + ServerAddress6 + "]:8082"
	StatusBranch = "status"
)

// Ingot is the ingot program in a namespace, its repository and what it keeps.
type Ingot struct {
	On      *Namespace
	Repo    *gitserver.Repo
	Config  string   // what the test adds to the configuration
	Process *Process // once it was launched
	// Paced has Ingot wait as it does for users; without it, hidden flags shorten the waits between readings and pushes.
	Paced bool

	dir     string
	commits sync.Mutex // one follows the other
}

// NewIngot makes a repository and a place for state. Ingot does not run yet.
func NewIngot(t testing.TB, on *Namespace, config string) *Ingot {
	t.Helper()
	repo, err := gitserver.New(t.TempDir(), "fleet")
	if err != nil {
		t.Fatal(err)
	}
	i := &Ingot{On: on, dir: t.TempDir(), Repo: repo, Config: config}
	// Ingot takes nothing over from a repository without a manifest.
	i.Commit(t, "elsewhere.yaml", Endpoint("elsewhere", MAC(0xff), "192.0.2.1"))
	return i
}

// Commit adds or replaces a file in the repository.
func (i *Ingot) Commit(t testing.TB, path, content string) {
	t.Helper()
	i.commits.Lock()
	defer i.commits.Unlock()
	if _, err := i.Repo.Commit(map[string]string{path: content}, "change "+path); err != nil {
		t.Fatal(err)
	}
}

// Remove removes a file from the repository.
func (i *Ingot) Remove(t testing.TB, path string) {
	t.Helper()
	i.commits.Lock()
	defer i.commits.Unlock()
	if _, err := i.Repo.Remove("remove "+path, path); err != nil {
		t.Fatal(err)
	}
}

// configuration returns the shipped defaults, except for
//   - git.interval: no webhook announces the commits of a test;
//   - git.allowPlaintextSecrets: the passwords of simulated BMCs are not encrypted;
//   - bmc.networks: the simulated BMCs listen on loopback;
//   - bmc.powerOffGrace: the small systems of features/life ignore the power button, so each release would take five minutes.
func (i *Ingot) configuration() string {
	return fmt.Sprintf(`git: {url: %q, interval: 200ms, allowPlaintextSecrets: true}
state: {dir: %q}
bmc: {networks: ["127.0.0.0/8", "0.0.0.0/0", "::/0"], powerOffGrace: 5s}
`, i.Repo.URL(), filepath.Join(i.dir, "state")) + i.Config
}

// Program returns where the program under test is.
func Program(t testing.TB) string {
	t.Helper()
	program, err := builtIngot()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// Launch runs Ingot and does not wait for anything.
func (i *Ingot) Launch(t testing.TB) {
	t.Helper()
	program := Program(t)
	file := filepath.Join(i.dir, "ingot.yaml")
	if err := os.WriteFile(file, []byte(i.configuration()), 0o600); err != nil {
		t.Fatal(err)
	}
	command := []string{program, "--log-format", "json", "--log-level", "debug", "run", "--config", file}
	if !i.Paced {
		command = append(command, "--fast", "--poll-interval=1s", "--status-interval=200ms")
	}
	i.Process = i.On.Start(t, "ingot", command...)
}

// Start runs Ingot and waits until it says that all its parts are ready.
func (i *Ingot) Start(t testing.TB) {
	t.Helper()
	i.Launch(t)
	i.AwaitReady(t)
}

// AwaitReady waits until Ingot says that all its parts are ready.
func (i *Ingot) AwaitReady(t testing.TB) {
	t.Helper()
	Eventually(t, Patience, i.Ready)
}

// Ready is nil if Ingot says that all its parts are ready.
func (i *Ingot) Ready() error {
	if !i.Process.Running() {
		return fmt.Errorf("ingot ended: %w", i.Process.Err)
	}
	_, err := i.On.Get(adminURL + "/readyz")
	return err
}

// Stop asks Ingot to end, which it must do without an error.
func (i *Ingot) Stop(t testing.TB) {
	t.Helper()
	if err := i.Process.Stop(Patience); err != nil {
		t.Fatal(err)
	}
}

// Kill ends Ingot at once.
func (i *Ingot) Kill() { i.Process.Kill() }

// Refuses waits until Ingot, just launched, ends with an error, and returns what
// it wrote.
func (i *Ingot) Refuses(t testing.TB) string {
	t.Helper()
	select {
	case <-i.Process.Ended:
	case <-time.After(Patience):
		t.Fatal("Ingot runs, though it cannot do what it is told to")
	}
	if i.Process.Err == nil {
		t.Fatal("Ingot ended without an error")
	}
	return i.Process.Output.String()
}

// CommitRack commits what a user would for a simulated rack.
func (i *Ingot) CommitRack(t testing.TB, facts SimulatedRack) {
	t.Helper()
	for _, b := range facts.BMCs {
		host, port, _ := strings.Cut(b.Address, ":")
		i.Commit(t, "bmcs/"+b.Name+".yaml", fmt.Sprintf(`apiVersion: metal.ironcore.dev/v1alpha1
kind: BMC
metadata: {name: %[1]s}
spec:
  access: {macAddress: %[2]q, ip: %[3]s}
  bmcSecretRef: {name: %[1]s}
  protocol: {name: Redfish, scheme: https, port: %[4]s}
---
apiVersion: metal.ironcore.dev/v1alpha1
kind: BMCSecret
metadata: {name: %[1]s}
stringData: {username: admin, password: ingot-sim}
`, b.Name, b.MAC, host, port))
	}
}

// Metric returns the lines of /metrics that begin with name.
func (i *Ingot) Metric(name string) (string, error) {
	all, err := i.On.Get(adminURL + "/metrics")
	var found []string
	for line := range strings.Lines(all) {
		if strings.HasPrefix(line, name) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return strings.Join(found, "\n"), err
}

// Status returns a file of the status branch, or an error that lists what there is.
func (i *Ingot) Status(path string) (string, error) {
	files, err := i.Repo.ReadBranch(StatusBranch)
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

// StatusHas waits until a file of the status branch has all of the words.
func (i *Ingot) StatusHas(t testing.TB, limit time.Duration, path string, words ...string) string {
	t.Helper()
	return has(t, limit, path, words, func() (string, error) { return i.Status(path) })
}

// APIHas waits until the answer of the API for a path has all of the words.
func (i *Ingot) APIHas(t testing.TB, limit time.Duration, path string, words ...string) {
	t.Helper()
	has(t, limit, path, words, func() (string, error) { return i.On.Get(adminURL + "/api/v1/" + path) })
}

func has(t testing.TB, limit time.Duration, path string, words []string, get func() (string, error)) string {
	t.Helper()
	var content string
	Eventually(t, limit, func() (err error) {
		if content, err = get(); err != nil {
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
