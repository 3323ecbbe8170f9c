package rig

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Patience is how long what is promised may take, on a busy machine.
const Patience = 20 * time.Second

// Process is a program that runs in a namespace.
type Process struct {
	what    string
	command *exec.Cmd
	Output  Output
	Ended   chan struct{} // closed once it has ended
	Err     error         // how it ended, once it has
}

// Start runs a program in the namespace until it ends, or t does.
func (n *Namespace) Start(t testing.TB, what string, command ...string) *Process {
	t.Helper()
	return n.StartWith(t, what, nil, command...)
}

// StartWith is start with more in the environment.
func (n *Namespace) StartWith(t testing.TB, what string, environment []string, command ...string) *Process {
	t.Helper()
	p := &Process{what: what, Ended: make(chan struct{})}
	p.command = n.Command(command...)
	p.command.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, environment...)
	p.command.Stdout, p.command.Stderr = &p.Output, &p.Output
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	p.command.WaitDelay = time.Second // children that it left may hold its output
	if err := p.command.Start(); err != nil {
		t.Fatalf("start %s: %v", what, err)
	}
	go func() {
		p.Err = p.command.Wait()
		close(p.Ended)
	}()
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("%s %s: %s", n.name, what, p.Output.Tail(60))
		}
	})
	return p
}

// Run runs a program in the namespace to its end, and returns its output.
func (n *Namespace) Run(t testing.TB, limit time.Duration, command ...string) (string, error) {
	t.Helper()
	p := n.Start(t, command[0], command...)
	select {
	case <-p.Ended:
		return p.Output.String(), p.Err
	case <-time.After(limit):
		p.Kill()
		return p.Output.String(), fmt.Errorf("%s did not end within %s", command[0], limit)
	}
}

// Signal is for the program, not for its children.
func (p *Process) Signal(s syscall.Signal) error { return p.command.Process.Signal(s) }

// Kill ends the program and its children at once.
func (p *Process) Kill() {
	_ = syscall.Kill(-p.command.Process.Pid, syscall.SIGKILL)
	<-p.Ended
}

// Stop asks the program to end, and kills it if it does not.
func (p *Process) Stop(limit time.Duration) error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop %s: %w", p.what, err)
	}
	select {
	case <-p.Ended:
		return p.Err
	case <-time.After(limit):
		p.Kill()
		return fmt.Errorf("%s did not end within %s of being asked to", p.what, limit)
	}
}

// Running reports whether the program has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.Ended:
		return false
	default:
		return true
	}
}

// Output keeps what a program writes.
type Output struct {
	mu   sync.Mutex
	text []byte
}

// outputLimit bounds what is kept of one program.
const outputLimit = 8 << 20

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.text) < outputLimit {
		o.text = append(o.text, p...)
	}
	return len(p), nil
}

// String is all that was written.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.text)
}

// Tail returns the last lines.
func (o *Output) Tail(lines int) string {
	all := strings.Split(strings.TrimRight(o.String(), "\n"), "\n")
	return "\n\t" + strings.Join(all[max(0, len(all)-lines):], "\n\t")
}

// Within tries until check finds nothing wrong, for limit at most.
func Within(limit time.Duration, check func() error) error {
	pause := 10 * time.Millisecond
	for end := time.Now().Add(limit); ; time.Sleep(pause) {
		pause = min(pause*5/4, 100*time.Millisecond)
		err := check()
		if err == nil {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("not so after %s: %w", limit, err)
		}
	}
}

// Eventually is Within, and ends the test if it is never so.
func Eventually(t testing.TB, limit time.Duration, check func() error) {
	t.Helper()
	if err := Within(limit, check); err != nil {
		t.Fatal(err)
	}
}
