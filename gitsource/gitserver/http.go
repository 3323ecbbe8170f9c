package gitserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/cgi"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// HTTPOptions say how a repository is served over HTTP.
type HTTPOptions struct {
	TLS                bool
	Username, Password string // basic authentication, none when both are empty
	// RealGit has the real git answer every request. Without it, the usual requests of
	// go-git are answered in process.
	RealGit bool
	// Wrap, if set, stands before the server: for faults and for counting.
	Wrap func(http.Handler) http.Handler
}

// HTTPServer serves one repository.
type HTTPServer struct {
	URL string // of the repository
	CA  []byte // PEM of the certificate, with TLS

	server  http.Server
	serving sync.WaitGroup // Serve, and its connections
	mu      sync.Mutex
	opts    HTTPOptions
	more    []string // passwords
}

// ServeHTTP serves the repository on a loopback port until Close.
func (r *Repo) ServeHTTP(opts HTTPOptions) (*HTTPServer, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return nil, err
	}
	s := &HTTPServer{opts: opts}
	backend := &cgi.Handler{
		Path: git,
		Args: []string{"http-backend"},
		Env: []string{
			"GIT_PROJECT_ROOT=" + filepath.Dir(r.Dir), "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=test",
			"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		},
	}
	var service http.Handler = backend
	if !opts.RealGit {
		service = smart{r}.inProcess(backend)
	}
	handler := s.authenticated(service)
	if opts.Wrap != nil {
		handler = opts.Wrap(handler)
	}
	s.server.Handler, s.server.ConnState = handler, s.count
	s.server.ErrorLog = log.New(io.Discard, "", 0) // clients that go away are none of its business
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.URL = "http://" + listener.Addr().String() + "/" + filepath.Base(r.Dir)
	if opts.TLS {
		certificate, err := newCertificate()
		if err != nil {
			return nil, errors.Join(err, listener.Close())
		}
		s.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]})
		s.URL = "https" + strings.TrimPrefix(s.URL, "http")
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{certificate}})
	}
	s.serving.Go(func() { _ = s.server.Serve(listener) }) // until Close
	return s, nil
}

// Name is a host name in the server's certificate, for clients of a proxy.
const Name = "git.example.com"

// newCertificate returns a self-signed certificate for 127.0.0.1 and Name.
func newCertificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{Name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, nil
}

// SetPassword changes the password that is asked for, as when a token rotates.
func (s *HTTPServer) SetPassword(password string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opts.Password, s.more = password, nil
}

// AddPassword has another password be taken, too, as tokens are that live beside each other.
// SetPassword ends them all.
func (s *HTTPServer) AddPassword(password string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.more = append(s.more, password)
}

// Close stops the server, its connections and what it runs.
func (s *HTTPServer) Close() {
	_ = s.server.Close()
	s.serving.Wait()
}

// count has Close wait for connections, and so for the requests that are answered.
func (s *HTTPServer) count(_ net.Conn, now http.ConnState) {
	switch now {
	case http.StateNew:
		s.serving.Add(1)
	case http.StateClosed, http.StateHijacked:
		s.serving.Done()
	case http.StateActive, http.StateIdle:
	}
}

func (s *HTTPServer) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		wantUser, wanted := s.opts.Username, append([]string{s.opts.Password}, s.more...)
		s.mu.Unlock()
		user, password, _ := r.BasicAuth()
		right := slices.ContainsFunc(wanted, func(p string) bool { return same(password, p) })
		if wantUser+wanted[0] != "" && (!same(user, wantUser) || !right) {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "wrong credentials", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
