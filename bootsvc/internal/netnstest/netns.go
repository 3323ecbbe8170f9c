//go:build linux

// Package netnstest runs tests in network namespaces of their own.
package netnstest

import (
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"ingot/model/testtool"
)

// Rack is a link with the address 10.9.0.1/16, on which only 10.9.0.2 answers.
var Rack = [][]string{
	{"link", "add", "rack", "type", "veth", "peer", "name", "far"},
	{"address", "add", "10.9.0.1/16", "dev", "rack"},
	{"link", "set", "far", "up"},
	{"link", "set", "rack", "up"},
	{"neighbour", "add", "10.9.0.2", "lladdr", "02:00:00:00:00:02", "dev", "rack"},
}

// Run runs a test in a network namespace of its own, in which commands are what ip(8) is told
// first; ip tells it more. The thread is given up with it. Without root or ip the test is
// skipped, or fails in continuous integration, see testtool.
func Run(t *testing.T, commands [][]string, test func(ip func(args ...string))) {
	t.Helper()
	testtool.Root(t, "make a network namespace")
	testtool.Path(t, "ip")
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked, so nobody else comes to be in there
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Errorf("no network namespace: %v", err)
			return
		}
		ip := func(args ...string) {
			if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
				t.Errorf("ip %v: %v: %s", args, err, out)
			}
		}
		for _, args := range commands {
			ip(args...)
		}
		test(ip)
	}()
	<-done
}
