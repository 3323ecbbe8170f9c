package features

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"ingot/features/internal/rig"
)

// redisServer is a redis-server of one scenario, which keeps what it is told.
type redisServer struct {
	command *exec.Cmd
	address string
}

func startRedis(dir string) (*redisServer, error) {
	var failures error
	host := ownHost()
	for range 3 { // the free port may be taken before redis-server has it
		s, err := tryRedis(dir, freeAddress(host))
		if err == nil {
			return s, nil
		}
		failures = errors.Join(failures, err)
	}
	return nil, failures
}

// hosts counts the addresses of ownHost.
var hosts atomic.Uint32

// ownHost is an address of this machine that nobody else here is given. What goes down there
// and comes back finds its port free: those of clients are on 127.0.0.1.
func ownHost() string {
	n := hosts.Add(1)
	return fmt.Sprintf("127.65.%d.%d", n>>8&0xff, n&0xff)
}

// freeAddress is an address on which nobody listens, for now.
func freeAddress(host string) string {
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return net.JoinHostPort(host, "0") // redis-server will say why that is no good
	}
	defer l.Close()
	return l.Addr().String()
}

// tryRedis starts a redis-server on what dir holds.
func tryRedis(dir, address string) (*redisServer, error) {
	host, port, _ := net.SplitHostPort(address)
	s := &redisServer{address: address, command: exec.Command("redis-server",
		"--bind", host, "--port", port, "--dir", dir, "--appendonly", "yes", "--save", "", "--daemonize", "no")}
	s.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.command.Start(); err != nil {
		return nil, fmt.Errorf("start redis-server: %w", err)
	}
	if err := rig.Within(startLimit, func() error { return s.do("PING", "+PONG") }); err != nil {
		return nil, errors.Join(err, s.end())
	}
	return s, nil
}

// do sends an inline command and compares the first line of the answer.
func (s *redisServer) do(command, want string) error {
	c, err := net.DialTimeout("tcp", s.address, time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(c, "%s\r\n", command); err != nil {
		return err
	}
	answer, err := bufio.NewReader(c).ReadString('\n')
	if err == nil && strings.TrimSpace(answer) != want {
		err = fmt.Errorf("redis-server answers %q to %s", answer, command)
	}
	return err
}

func (s *redisServer) end() error {
	_ = s.command.Process.Kill()
	_ = s.command.Wait() // it was killed
	return nil
}
