package rig

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

// Namespace is a machine as far as its network is concerned.
type Namespace struct {
	t    testing.TB
	name string
	MAC  string // of its interface, where it is a rack's host
}

// NewNamespace makes a namespace that ends, with all that runs in it, with t.
func NewNamespace(t testing.TB, what string) *Namespace {
	t.Helper()
	n := &Namespace{t: t, name: fmt.Sprintf("%s%d-%s", namespacePrefix(), namespaces.Add(1), what)}
	MustRun(t, "ip", "netns", "add", n.name)
	t.Cleanup(n.delete)
	n.Setting("net/ipv6/conf/default/accept_dad", "0") // a link-local address is good at once
	n.Setting("net/ipv6/conf/default/accept_ra", "0")
	n.IP("link", "set", "lo", "up")
	return n
}

// delete ends what still runs in the namespace, and then the namespace.
func (n *Namespace) delete() {
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

// MustRun runs a program that has no reason to fail.
func MustRun(t testing.TB, program string, args ...string) string {
	t.Helper()
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// IP runs ip(8) in the namespace.
func (n *Namespace) IP(args ...string) {
	n.t.Helper()
	MustRun(n.t, "ip", append([]string{"-n", n.name}, args...)...)
}

// Command is a program that will run in the namespace. Its caller starts it, and waits for it.
func (n *Namespace) Command(command ...string) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", n.name}, command...)...)
}

// Setting writes a setting of the namespace's network, as sysctl(8).
func (n *Namespace) Setting(path, value string) {
	n.t.Helper()
	if err := n.Do(func() error { return os.WriteFile("/proc/sys/"+path, []byte(value), 0o644) }); err != nil {
		n.t.Fatal(err)
	}
}

// Bridge makes a bridge that forwards from the start, and gives it addresses. Its
// MAC address is its own: else it would change as interfaces are plugged in.
func (n *Namespace) Bridge(name string, addresses ...string) {
	n.t.Helper()
	n.IP("link", "add", "name", name, "address", fmt.Sprintf("52:54:00:77:b0:%02x", namespaces.Add(1)&0xff), "type", "bridge", "stp_state", "0", "forward_delay", "0", "mcast_snooping", "0")
	n.Address(name, addresses...)
	n.IP("link", "set", name, "up")
}

// Address gives an interface addresses.
func (n *Namespace) Address(device string, addresses ...string) {
	n.t.Helper()
	for _, a := range addresses {
		n.IP("address", "add", a, "dev", device)
	}
}

// Plug puts a cable between a new interface of n and a bridge of another
// namespace.
func (n *Namespace) Plug(device, mac string, into *Namespace, bridge string) {
	n.t.Helper()
	far := fmt.Sprintf("p%d", namespaces.Add(1))
	n.IP("link", "add", "name", device, "address", mac, "type", "veth", "peer", "name", far, "netns", into.name)
	into.IP("link", "set", far, "master", bridge, "up")
	n.IP("link", "set", device, "up")
}

// Do calls f on a thread that is in the namespace. Sockets that f opens are of
// the namespace for good; goroutines that it starts are not in it.
func (n *Namespace) Do(f func() error) error {
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

// Web is an HTTP client in the namespace, without connections that outlive a
// request.
func (n *Namespace) Web() *http.Client {
	dial := func(ctx context.Context, network, address string) (c net.Conn, err error) {
		err = n.Do(func() (err error) {
			var d net.Dialer
			c, err = d.DialContext(ctx, network, address)
			return err
		})
		return c, err
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: 5 * time.Second}
}

// Get returns what is at a URL, as seen from the namespace, and an error if the
// answer is not 200.
func (n *Namespace) Get(url string) (string, error) {
	return answered(n.Web().Get(url))
}

// answered returns the body of an answer, and an error if it is not 200.
func answered(resp *http.Response, err error) (string, error) {
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s: %s", resp.Request.Method, resp.Request.URL, resp.Status, body)
	}
	return string(body), err
}

// Tap makes a tap that is plugged into a bridge.
func (n *Namespace) Tap(name, bridge string) {
	n.t.Helper()
	n.IP("tuntap", "add", name, "mode", "tap")
	n.IP("link", "set", name, "master", bridge, "up")
}
