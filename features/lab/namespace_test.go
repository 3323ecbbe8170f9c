package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// namespaceFolder is where ip(8) keeps the namespaces that it made.
const namespaceFolder = "/run/netns"

const namespaceWord = "ingot-lab-"

func namespacePrefix() string { return fmt.Sprintf("%s%d-", namespaceWord, os.Getpid()) }

// sweep deletes the namespaces of runs that are no more.
func sweep() {
	left, _ := filepath.Glob(filepath.Join(namespaceFolder, namespaceWord+"*"))
	for _, path := range left {
		name := filepath.Base(path)
		pid, _, _ := strings.Cut(strings.TrimPrefix(name, namespaceWord), "-")
		if n, err := strconv.Atoi(pid); err == nil && !alive(n) {
			_ = exec.Command("ip", "netns", "del", name).Run()
		}
	}
}

func alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

var namespaces atomic.Int64

// namespace is a machine as far as its network is concerned.
type namespace struct {
	t    *testing.T
	name string
	mac  string // of a rack's host
}

// newNamespace makes a namespace that ends, with all that runs in it, with t.
func newNamespace(t *testing.T, what string) *namespace {
	t.Helper()
	n := &namespace{t: t, name: fmt.Sprintf("%s%d-%s", namespacePrefix(), namespaces.Add(1), what)}
	mustRun(t, "ip", "netns", "add", n.name)
	t.Cleanup(n.delete)
	n.setting("net/ipv6/conf/default/accept_dad", "0") // a link-local address is good at once
	n.setting("net/ipv6/conf/default/accept_ra", "0")
	n.ip("link", "set", "lo", "up")
	return n
}

// delete ends what still runs in the namespace, and then the namespace.
func (n *namespace) delete() {
	out, _ := exec.Command("ip", "netns", "pids", n.name).Output()
	for field := range strings.FieldsSeq(string(out)) {
		if pid, err := strconv.Atoi(field); err == nil && pid != os.Getpid() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if out, err := exec.Command("ip", "netns", "del", n.name).CombinedOutput(); err != nil {
		n.t.Errorf("delete namespace %s: %v: %s", n.name, err, out)
	}
}

// mustRun runs a program that has no reason to fail.
func mustRun(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// ip runs ip(8) in the namespace.
func (n *namespace) ip(args ...string) {
	n.t.Helper()
	mustRun(n.t, "ip", append([]string{"-n", n.name}, args...)...)
}

// setting writes a setting of the namespace's network, as sysctl(8).
func (n *namespace) setting(path, value string) {
	n.t.Helper()
	if err := n.do(func() error { return os.WriteFile("/proc/sys/"+path, []byte(value), 0o644) }); err != nil {
		n.t.Fatal(err)
	}
}

// bridge makes a bridge that forwards from the start, and gives it addresses. Its
// MAC address is its own: else it would change as interfaces are plugged in.
func (n *namespace) bridge(name string, addresses ...string) {
	n.t.Helper()
	n.ip("link", "add", "name", name, "address", fmt.Sprintf("52:54:00:77:b0:%02x", namespaces.Add(1)&0xff), "type", "bridge", "stp_state", "0", "forward_delay", "0", "mcast_snooping", "0")
	n.address(name, addresses...)
	n.ip("link", "set", name, "up")
}

func (n *namespace) address(device string, addresses ...string) {
	n.t.Helper()
	for _, a := range addresses {
		n.ip("address", "add", a, "dev", device)
	}
}

// plug puts a cable between a new interface of n and a bridge of another
// namespace.
func (n *namespace) plug(device, mac string, into *namespace, bridge string) {
	n.t.Helper()
	far := fmt.Sprintf("p%d", namespaces.Add(1))
	n.ip("link", "add", "name", device, "address", mac, "type", "veth", "peer", "name", far, "netns", into.name)
	into.ip("link", "set", far, "master", bridge, "up")
	n.ip("link", "set", device, "up")
}

// do calls f on a thread that is in the namespace. Sockets that f opens are of
// the namespace for good; goroutines that it starts are not in it.
func (n *namespace) do(f func() error) error {
	// The thread comes back: were it ended with its namespace, every process that it
	// happened to have started would die with it (PR_SET_PDEATHSIG of prctl(2)).
	away, err := os.Open(filepath.Join(namespaceFolder, n.name))
	if err != nil {
		return fmt.Errorf("enter %s: %w", n.name, err)
	}
	defer away.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return fmt.Errorf("enter %s: %w", n.name, err)
	}
	defer home.Close()
	if err := unix.Setns(int(away.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter %s: %w", n.name, err)
	}
	defer func() {
		if err := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); err != nil {
			panic(fmt.Sprintf("leave %s: %v", n.name, err)) // the thread is of no use to anybody else
		}
	}()
	return f()
}

// web is an HTTP client in the namespace, without connections that outlive a
// request.
func (n *namespace) web() *http.Client {
	dial := func(ctx context.Context, network, address string) (c net.Conn, err error) {
		err = n.do(func() (err error) {
			var d net.Dialer
			c, err = d.DialContext(ctx, network, address)
			return err
		})
		return c, err
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: 5 * time.Second}
}

// get returns what is at a URL, as seen from the namespace, and an error if the
// answer is not 200.
func (n *namespace) get(url string) (string, error) {
	resp, err := n.web().Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %s", url, resp.Status, body)
	}
	return string(body), err
}

// process is a program that runs in a namespace.
type process struct {
	what    string
	command *exec.Cmd
	output  output
	ended   chan struct{} // closed once it has ended
	err     error         // how it ended
}

// start runs a program in the namespace until it ends, or t does.
func (n *namespace) start(t *testing.T, what string, command ...string) *process {
	t.Helper()
	return n.startWith(t, what, nil, command...)
}

// startWith is start with more in the environment.
func (n *namespace) startWith(t *testing.T, what string, environment []string, command ...string) *process {
	t.Helper()
	p := &process{what: what, ended: make(chan struct{})}
	p.command = exec.Command("ip", append([]string{"netns", "exec", n.name}, command...)...)
	p.command.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, environment...)
	p.command.Stdout, p.command.Stderr = &p.output, &p.output
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	p.command.WaitDelay = time.Second // children that it left may hold its output
	if err := p.command.Start(); err != nil {
		t.Fatalf("start %s: %v", what, err)
	}
	go func() {
		p.err = p.command.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s %s: %s", n.name, what, p.output.tail(60))
		}
	})
	return p
}

// run runs a program in the namespace to its end, and returns its output.
func (n *namespace) run(t *testing.T, limit time.Duration, command ...string) (string, error) {
	t.Helper()
	p := n.start(t, command[0], command...)
	select {
	case <-p.ended:
		return p.output.String(), p.err
	case <-time.After(limit):
		p.kill()
		return p.output.String(), fmt.Errorf("%s did not end within %s", command[0], limit)
	}
}

// signal is for the program, not for its children.
func (p *process) signal(s syscall.Signal) error { return p.command.Process.Signal(s) }

// kill ends the program and its children at once.
func (p *process) kill() {
	_ = syscall.Kill(-p.command.Process.Pid, syscall.SIGKILL)
	<-p.ended
}

// stop asks the program to end, and kills it if it does not.
func (p *process) stop(limit time.Duration) error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop %s: %w", p.what, err)
	}
	select {
	case <-p.ended:
		return p.err
	case <-time.After(limit):
		p.kill()
		return fmt.Errorf("%s did not end within %s of being asked to", p.what, limit)
	}
}

func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// output keeps what a program writes.
type output struct {
	mu   sync.Mutex
	text []byte
}

// outputLimit bounds what is kept of one program.
const outputLimit = 8 << 20

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.text) < outputLimit {
		o.text = append(o.text, p...)
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.text)
}

// tail returns the last lines.
func (o *output) tail(lines int) string {
	all := strings.Split(strings.TrimRight(o.String(), "\n"), "\n")
	return "\n\t" + strings.Join(all[max(0, len(all)-lines):], "\n\t")
}

// within tries until check finds nothing wrong, for limit at most.
func within(limit time.Duration, check func() error) error {
	for end := time.Now().Add(limit); ; time.Sleep(50 * time.Millisecond) {
		err := check()
		if err == nil {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("not so after %s: %w", limit, err)
		}
	}
}

// eventually is within, and ends the test if it is never so.
func eventually(t *testing.T, limit time.Duration, check func() error) {
	t.Helper()
	if err := within(limit, check); err != nil {
		t.Fatal(err)
	}
}
