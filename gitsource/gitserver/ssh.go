package gitserver

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// SSHServer serves one repository over SSH by git upload-pack and receive-pack.
// It offers an Ed25519 and an ECDSA host key and knows one client key.
type SSHServer struct {
	URL       string // ssh://git@127.0.0.1:port/path
	Addr      string // host:port
	ClientKey []byte // PEM of the private key that is let in
	Ed25519   ssh.PublicKey
	ECDSA     ssh.PublicKey

	repo     string
	listener net.Listener
	config   *ssh.ServerConfig
	wg       sync.WaitGroup
	mu       sync.Mutex
	conns    map[net.Conn]bool
}

// ServeSSH serves the repository on a loopback port until Close.
func (r *Repo) ServeSSH() (*SSHServer, error) {
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	clientPublic, clientKey, err := newClientKey()
	if err != nil {
		return nil, err
	}
	config := &ssh.ServerConfig{
		PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if bytes.Equal(key.Marshal(), clientPublic.Marshal()) {
				return nil, nil
			}
			return nil, errors.New("unknown key")
		},
	}
	s := &SSHServer{ClientKey: clientKey, repo: r.Dir, config: config, conns: make(map[net.Conn]bool)}
	if s.ECDSA, err = addHostKey(config, ecKey); err != nil {
		return nil, err
	}
	if s.Ed25519, err = addHostKey(config, edKey); err != nil {
		return nil, err
	}
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	s.Addr = s.listener.Addr().String()
	s.URL = "ssh://git@" + s.Addr + "/" + filepath.Base(r.Dir)
	s.wg.Go(s.accept)
	return s, nil
}

// KnownHosts returns a known_hosts file that holds keys for the server.
func (s *SSHServer) KnownHosts(keys ...ssh.PublicKey) []byte {
	var b bytes.Buffer
	for _, key := range keys {
		fmt.Fprintln(&b, knownhosts.Line([]string{knownhosts.Normalize(s.Addr)}, key))
	}
	return b.Bytes()
}

// Close stops the server and its connections.
func (s *SSHServer) Close() {
	_ = s.listener.Close()
	s.mu.Lock()
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

func newClientKey() (ssh.PublicKey, []byte, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		return nil, nil, err
	}
	key, err := ssh.NewPublicKey(public)
	return key, pem.EncodeToMemory(block), err
}

func addHostKey(config *ssh.ServerConfig, key crypto.Signer) (ssh.PublicKey, error) {
	signer, err := ssh.NewSignerFromSigner(key)
	if err != nil {
		return nil, err
	}
	config.AddHostKey(signer)
	return signer.PublicKey(), nil
}

func (s *SSHServer) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns[conn] = true
		s.mu.Unlock()
		s.wg.Go(func() {
			defer func() {
				_ = conn.Close()
				s.mu.Lock()
				delete(s.conns, conn)
				s.mu.Unlock()
			}()
			s.serve(conn)
		})
	}
}

func (s *SSHServer) serve(conn net.Conn) {
	_, channels, requests, err := ssh.NewServerConn(conn, s.config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		if offered.ChannelType() != "session" {
			_ = offered.Reject(ssh.UnknownChannelType, "only sessions")
			continue
		}
		channel, requests, err := offered.Accept()
		if err != nil {
			return
		}
		for request := range requests {
			var body struct{ Command string }
			ok := request.Type == "exec" && ssh.Unmarshal(request.Payload, &body) == nil
			_ = request.Reply(ok, nil)
			if ok {
				s.exec(channel, body.Command)
				break
			}
		}
		_ = channel.Close()
	}
}

// exec runs the one of git's two services that command asks for, on the one
// repository there is, whatever path it names.
func (s *SSHServer) exec(channel ssh.Channel, command string) {
	service, _, _ := strings.Cut(command, " ")
	service = strings.TrimPrefix(service, "git-")
	status := uint32(1)
	if service == "upload-pack" || service == "receive-pack" {
		cmd := exec.Command("git", service, s.repo) //nolint:gosec // one of two words and a path of ours
		cmd.Stdin, cmd.Stdout, cmd.Stderr = channel, channel, channel.Stderr()
		if cmd.Run() == nil {
			status = 0
		}
	}
	_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
}
