package qemu

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Limits of a QEMU process: how long it may take to quit before it is killed,
// and how much is kept of what it says.
const (
	quitGrace = 3 * time.Second
	maxWords  = 4 << 10
)

// process is a running qemu. It ends with us, however we end.
type process struct {
	cmd     *exec.Cmd
	monitor *monitor
	words   tail          // what it writes to standard error
	gone    chan struct{} // closed once it has been waited for
	err     error         // of the wait; to be read once gone is closed
}

// startProcess runs QEMU, which waits for the command to go on.
func startProcess(command, args []string) (*process, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, fmt.Errorf("monitor: %w", err)
	}
	defer theirs.Close()
	p := &process{gone: make(chan struct{})}
	p.cmd = exec.Command(command[0], append(command[1:len(command):len(command)], args...)...)
	p.cmd.Stderr = &p.words
	p.cmd.ExtraFiles = []*os.File{theirs} // becomes monitorFD
	p.cmd.WaitDelay = time.Second
	// A signal from the terminal is for us alone: we end the machines in order.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := p.start(); err != nil {
		ours.Close()
		return nil, err
	}
	p.monitor = newMonitor(ours)
	return p, nil
}

// start starts the command on a thread that lives for as long as the process:
// Pdeathsig is the death of the thread that started it, see prctl(2).
func (p *process) start() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
			close(p.gone)
		}
	}()
	return <-started
}

// socketPair returns the two ends of a socket. It has no name in the file system,
// so nobody else can speak with the monitor.
func socketPair() (ours net.Conn, theirs *os.File, err error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	theirs = os.NewFile(uintptr(fds[1]), "qemu monitor")
	file := os.NewFile(uintptr(fds[0]), "monitor")
	defer file.Close() // FileConn takes a copy
	if ours, err = net.FileConn(file); err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return ours, theirs, nil
}

// stop ends the process, politely at first, and waits until it is gone.
func (p *process) stop() {
	quit, cancel := context.WithTimeout(context.Background(), quitGrace)
	defer cancel()
	_ = p.monitor.do(quit, "quit", nil) // whether it heard is seen below
	select {
	case <-p.gone:
	case <-quit.Done():
		_ = p.cmd.Process.Kill() // it may be gone by now
		<-p.gone
	}
	p.monitor.close()
}

// death is how the process ended and its last words; it is gone.
func (p *process) death() string {
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	words := p.words.lastLine()
	if words == "" {
		return how
	}
	return how + ": " + words + hint(words)
}

// hints say what to do about common errors of QEMU.
var hints = []struct{ mark, what string }{
	{"romfile", "apt-get install ipxe-qemu"},
	{"Device or resource busy", "a tap interface serves one machine at a time"},
	{"/dev/net/tun", "taps need root, or CAP_NET_ADMIN and /dev/net/tun"},
	{`Failed to get "write" lock`, "another qemu has that disk"},
}

// hint says what to do about an error of QEMU, if that is known.
func hint(words string) string {
	for _, h := range hints {
		if strings.Contains(words, h.mark) {
			return " (" + h.what + ")"
		}
	}
	return ""
}

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	end []byte
}

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = append(t.end, b...)
	if len(t.end) > maxWords {
		t.end = append(t.end[:0], t.end[len(t.end)-maxWords:]...)
	}
	return len(b), nil
}

func (t *tail) lastLine() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := bytes.Split(bytes.TrimSpace(t.end), []byte("\n"))
	return strings.ToValidUTF8(string(bytes.TrimSpace(lines[len(lines)-1])), "?")
}
