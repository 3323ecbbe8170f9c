package bench

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ingot/features/internal/rig"
	"ingot/model/must"
)

func need(b *testing.B, tools ...rig.Tool) {
	b.Helper()
	if os.Geteuid() != 0 {
		b.Skip("NOT MEASURED: it takes network namespaces, and so root")
	}
	if hint := rig.Lacking(append(tools, rig.ToolIP)...); hint != "" {
		b.Skip("NOT MEASURED: " + hint)
	}
}

// The two ends of a link, and what is on them.
const (
	serverDevice, clientDevice = "srv0", "cli0"
	serverAddress              = "10.9.0.1"
	clientAddress              = "10.9.0.2"
	serverAddress6             = "fd09::1"
	clientAddress6             = "fd09::2"
)

var links atomic.Int64

// link is a machine that serves and a machine of clients, joined by a cable: a
// network namespace each. All that runs there ends with the benchmark.
type link struct {
	testing.TB
	server, client string // namespaces
	dir            string
}

func newLink(b *testing.B) *link {
	b.Helper()
	n := links.Add(1)
	l := &link{
		TB: b, dir: diskDir(b),
		server: fmt.Sprintf("ingot-bench-%d-%d-server", os.Getpid(), n),
		client: fmt.Sprintf("ingot-bench-%d-%d-client", os.Getpid(), n),
	}
	for _, name := range []string{l.server, l.client} {
		if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
			b.Skipf("NOT MEASURED: no network namespace can be made here: %v: %s", err, out)
		}
		b.Cleanup(func() { l.must("ip", "netns", "del", name) })
		// a link-local address is good at once
		l.must("ip", "netns", "exec", name, "sh", "-c", "echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad")
	}
	l.must("ip", "-n", l.server, "link", "add", serverDevice, "type", "veth", "peer", "name", clientDevice, "netns", l.client)
	l.plug(l.server, serverDevice, serverAddress, serverAddress6)
	l.plug(l.client, clientDevice, clientAddress, clientAddress6)
	l.await("both ends have link-local addresses", "", func() bool {
		return l.isUp(l.server, serverDevice) && l.isUp(l.client, clientDevice)
	})
	return l
}

// diskDir returns a folder on a disk: on a tmpfs, as a temporary folder may be, nothing waits for the disk.
func diskDir(b *testing.B) string {
	b.Helper()
	dir := must.Get(os.MkdirTemp("/var/tmp", "ingot-bench"))(b)
	b.Cleanup(func() { must.Do(b, os.RemoveAll(dir)) })
	var on unix.Statfs_t
	must.Do(b, unix.Statfs(dir, &on))
	if on.Type == unix.TMPFS_MAGIC {
		b.Skip("NOT MEASURED: /var/tmp is not on a disk")
	}
	return dir
}

// syncing returns a yardstick for the disk: the 99th percentile of the time for two short writes, each of which waits
// for the disk, while do runs. A commit of the store waits as often.
func (l *link) syncing(do func()) time.Duration {
	l.Helper()
	f := must.Get(os.Create(filepath.Join(l.dir, "syncs")))(l)
	defer f.Close()
	done := make(chan struct{})
	var took []time.Duration
	var measuring sync.WaitGroup
	measuring.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			began := time.Now()
			for at := range int64(2) {
				_, err := f.WriteAt(make([]byte, 4096), 4096*at)
				if err := errors.Join(err, unix.Fdatasync(int(f.Fd()))); err != nil {
					l.Error(err)
					return
				}
			}
			took = append(took, time.Since(began))
		}
	})
	do()
	close(done)
	measuring.Wait()
	return percentile(took, 99)
}

func (l *link) plug(namespace, device, v4, v6 string) {
	l.Helper()
	l.must("ip", "-n", namespace, "link", "set", "lo", "up")
	l.must("ip", "-n", namespace, "address", "add", v4+"/16", "dev", device)
	l.must("ip", "-n", namespace, "address", "add", v6+"/64", "dev", device, "nodad")
	l.must("ip", "-n", namespace, "link", "set", device, "up")
}

// isUp reports whether IPv6 can be spoken at one end.
func (l *link) isUp(namespace, device string) bool {
	l.Helper()
	out, err := exec.Command("ip", "-n", namespace, "-6", "address", "show", "dev", device, "scope", "link").Output()
	return err == nil && strings.Contains(string(out), "fe80:") && !strings.Contains(string(out), "tentative")
}

func (l *link) must(program string, args ...string) {
	l.Helper()
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		l.Errorf("%s %s: %v: %s", program, strings.Join(args, " "), err, out)
	}
}

// priority is that of all that is measured, and of what measures it: on a machine
// that has other work, too, the figures are less of that.
const priority = "-20"

func command(namespace string, args ...string) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", namespace, "nice", "-n", priority}, args...)...)
}

func (l *link) serve(until string, environment []string, args ...string) *exec.Cmd {
	l.Helper()
	name := filepath.Join(l.dir, filepath.Base(args[0])+".log")
	log, err := os.Create(name)
	if err != nil {
		l.Fatal(err)
	}
	defer log.Close()
	cmd := command(l.server, args...)
	cmd.Env = append(os.Environ(), environment...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { l.end(cmd, name) })
	l.await(args[0]+" serves", name, func() bool {
		text, _ := os.ReadFile(name)
		return strings.Contains(string(text), until)
	})
	return cmd
}

func (l *link) end(cmd *exec.Cmd, log string) {
	l.Helper()
	_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	limit := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
	defer limit.Stop()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || !exit.Sys().(syscall.WaitStatus).Signaled()) || l.Failed() {
		l.Errorf("%s ended: %v; it said last:\n%s", cmd, err, lastOf(log))
	}
}

func (l *link) await(what, log string, done func() bool) {
	l.Helper()
	for deadline := time.Now().Add(30 * time.Second); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			l.Fatalf("after 30 s not yet: %s\n%s", what, lastOf(log))
		}
	}
}

func lastOf(name string) string {
	text, _ := os.ReadFile(name)
	return string(text[max(0, len(text)-2000):])
}

func (l *link) file(name string, content []byte) string {
	l.Helper()
	path := filepath.Join(l.dir, name)
	if err := os.WriteFile(path, content, 0o644); err != nil { //nolint:gosec // servers that are no longer root read it
		l.Fatal(err)
	}
	return path
}
