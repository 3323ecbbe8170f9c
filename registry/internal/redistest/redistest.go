// Package redistest runs a real redis-server for the tests of the stores.
package redistest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server is a real redis-server.
type Server struct {
	Dir  string // where it keeps its files
	args []string
	cmd  *exec.Cmd
}

// New starts a redis-server on a unix socket, or skips the test.
func New(t testing.TB, args ...string) *Server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("REAL REDIS NOT TESTED: there is no redis-server on PATH; install Debian's redis-server")
	}
	dir, err := os.MkdirTemp("", "ingot-redis-") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Dir: dir, args: args}
	t.Cleanup(func() {
		s.Stop()
		_ = os.RemoveAll(dir)
	})
	s.Start(t)
	return s
}

// Socket is the path of the socket that it listens on.
func (s *Server) Socket() string { return filepath.Join(s.Dir, "s") }

// URL is how a registry finds it.
func (s *Server) URL() string { return "unix://" + s.Socket() }

// Start starts it, again after Stop, with what it kept on disk.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	args := append([]string{"--port", "0", "--unixsocket", s.Socket(), "--dir", s.Dir, "--save", "", "--daemonize", "no"}, s.args...)
	s.cmd = exec.Command("redis-server", args...)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := s.Client(t)
	for deadline := time.Now().Add(30 * time.Second); c.Ping(t.Context()).Err() != nil; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("redis-server does not answer")
		}
	}
}

// Stop kills the server.
func (s *Server) Stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// Client connects to it for the time of the test.
func (s *Server) Client(t testing.TB) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Network: "unix", Addr: s.Socket(), MaxRetries: -1})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Durable are the arguments that make a Redis write down what it is told.
var Durable = []string{"--appendonly", "yes", "--appendfsync", "everysec"}
