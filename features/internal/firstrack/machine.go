package firstrack

import (
	"bufio"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ingot/features/internal/rig"
)

//go:embed machine.sh
var machineScript string

// machine is the machine on which the commands of the page are typed.
type machine struct {
	t       testing.TB
	keys    io.Writer
	answers chan answer
	output  rig.Output // what is on the screen
}

// answer is how a command ended.
type answer struct {
	text string // of one that was asked
	code string
	err  error
}

// newMachine starts a machine with a network that is not that of the servers. It ends with t.
func newMachine(t testing.TB, repository string) *machine {
	t.Helper()
	elsewhere, on := rig.NewNamespace(t, "elsewhere"), rig.NewNamespace(t, "first-rack")
	elsewhere.Bridge("br0", "192.0.2.1/24")
	on.Plug("eth0", rig.MAC(0xee), elsewhere, "br0")
	on.Address("eth0", "192.0.2.10/24")

	args := append([]string{"unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-c", machineScript, "machine.sh", t.TempDir()},
		directories(t, repository)...)
	cmd := on.Command(args...)
	m := &machine{t: t, answers: make(chan answer)}
	cmd.Env = environment()
	cmd.Stdout, cmd.Stderr = &m.output, &m.output
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second // what it left running may hold its output
	reading, replying := pipe(t), pipe(t)
	cmd.ExtraFiles = []*os.File{replying.w, reading.r}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	replying.w.Close()
	reading.r.Close()
	m.keys = reading.w
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the screen: %s", m.output.Tail(80))
		}
	})
	go m.listen(replying.r)
	return m
}

type ends struct{ r, w *os.File }

func pipe(t testing.TB) ends {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.Close()
		w.Close()
	})
	return ends{r, w}
}

// environment is that of a person who has just logged in, with what Go builds by.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return slices.ContainsFunc([]string{"INGOT_", "GIT_", "MAKE", "MFLAGS", "TMPDIR"}, func(begins string) bool {
			return strings.HasPrefix(entry, begins)
		})
	})
}

// directories are what commands need of this machine: the repository, and what Go and
// the builder of images have fetched and built.
func directories(t testing.TB, repository string) []string {
	t.Helper()
	all := []string{repository}
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOROOT"} {
		out, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, strings.TrimSpace(string(out)))
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return append(all, filepath.Join(cache, "ingot"))
}

// listen passes on how commands end, until the machine does.
func (m *machine) listen(from io.Reader) {
	in := bufio.NewReader(from)
	for {
		text, err := in.ReadString(0)
		if err != nil {
			m.answers <- answer{err: fmt.Errorf("the machine has ended: %w", err)}
			return
		}
		code, err := in.ReadString('\n')
		m.answers <- answer{strings.TrimSuffix(text, "\x00"), strings.TrimSpace(code), err}
	}
}

// run types a command, and waits for its end. A command that is put into the background is
// waited for until it shows something, unless that goes to a file.
func (m *machine) run(command string, limit time.Duration) error {
	if !strings.HasSuffix(command, "&") || strings.Contains(command, ">") {
		_, err := m.wait(command, limit)
		return err
	}
	// What was shown before may still be on its way to us.
	const line = "--- what comes now is of the next command"
	if _, err := m.wait("echo '"+line+"'", limit); err != nil {
		return err
	}
	if _, err := m.wait(command, limit); err != nil {
		return err
	}
	return rig.Within(limit, func() error {
		_, shown, _ := strings.Cut(m.output.String(), line+"\n")
		if shown == "" {
			return fmt.Errorf("%s shows nothing", command)
		}
		return nil
	})
}

// ask runs a command that nobody types, and returns what it prints.
func (m *machine) ask(command string) (string, error) { return m.wait("?"+command, rig.Patience) }

func (m *machine) wait(command string, limit time.Duration) (string, error) {
	if _, err := io.WriteString(m.keys, command+"\x00"); err != nil {
		return "", err
	}
	select {
	case a := <-m.answers:
		if a.err == nil && a.code != "0" {
			a.err = fmt.Errorf("%s: exit code %s\n%s", strings.TrimPrefix(command, "?"), a.code, a.text)
		}
		return a.text, a.err
	case <-time.After(limit):
		return "", fmt.Errorf("%s: not done after %s", command, limit)
	}
}
