package features

import (
	"bufio"
	"crypto/tls"
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
	command  *exec.Cmd
	address  string
	password string
	tls      *tls.Config // nil = it is spoken with in the clear
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

func tryRedis(dir, address string) (*redisServer, error) {
	_, port, _ := net.SplitHostPort(address)
	return tryRedisWith(dir, address, nil, "--port", port)
}

// tryRedisWith starts a redis-server that is spoken with by TLS, or in the clear without.
func tryRedisWith(dir, address string, client *tls.Config, settings ...string) (*redisServer, error) {
	host, _, _ := net.SplitHostPort(address)
	settings = append(settings, "--bind", host, "--dir", dir, "--appendonly", "yes", "--save", "", "--daemonize", "no")
	s := &redisServer{address: address, tls: client, command: exec.Command("redis-server", settings...)}
	s.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.command.Start(); err != nil {
		return nil, fmt.Errorf("start redis-server: %w", err)
	}
	if err := rig.Within(startLimit, func() error { return s.do("PING", "+PONG") }); err != nil {
		return nil, errors.Join(err, s.end())
	}
	return s, nil
}

func (s *redisServer) do(command, want string) error {
	answer, err := s.ask(command)
	if err == nil && answer != want {
		err = fmt.Errorf("redis-server answers %q to %s", answer, command)
	}
	return err
}

func (s *redisServer) ask(command string) (string, error) {
	c, err := net.DialTimeout("tcp", s.address, time.Second)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	if s.tls != nil {
		conf := s.tls.Clone()
		conf.ServerName, _, _ = net.SplitHostPort(s.address)
		c = tls.Client(c, conf)
	}
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	answers := bufio.NewReader(c)
	commands := []string{command}
	if s.password != "" {
		commands = []string{"AUTH " + s.password, command}
	}
	answer := ""
	for _, command := range commands {
		if _, err := fmt.Fprintf(c, "%s\r\n", command); err != nil {
			return "", err
		}
		if answer, err = answers.ReadString('\n'); err != nil {
			return "", err
		}
	}
	return strings.TrimSpace(answer), nil
}

func (s *redisServer) url() string {
	scheme := "redis"
	if s.tls != nil {
		scheme = "rediss"
	}
	return scheme + "://" + s.address + "/0"
}

func (s *redisServer) use(password string) error {
	s.password = password
	return s.do("PING", "+PONG")
}

func (s *redisServer) hangUp() error {
	for _, kind := range []string{"normal", "pubsub"} {
		answer, err := s.ask("CLIENT KILL TYPE " + kind)
		if err != nil || !strings.HasPrefix(answer, ":") {
			return fmt.Errorf("redis-server answers %q as connections are to be ended: %w", answer, err)
		}
	}
	return nil
}

func (s *redisServer) end() error {
	_ = s.command.Process.Kill()
	_ = s.command.Wait() // it was killed
	return nil
}
