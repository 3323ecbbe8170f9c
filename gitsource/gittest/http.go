package gittest

import (
	"crypto/subtle"
	"encoding/pem"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"sync"
)

// HTTPOptions say how a repository is served over HTTP.
type HTTPOptions struct {
	TLS                bool
	Username, Password string // basic authentication, none when both are empty
	// Wrap, if set, stands before the server: for faults and for counting.
	Wrap func(http.Handler) http.Handler
}

// HTTPServer serves one repository by git http-backend.
type HTTPServer struct {
	URL string // of the repository
	CA  []byte // PEM of the certificate, with TLS

	server *httptest.Server
	mu     sync.Mutex
	opts   HTTPOptions
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
	handler := s.authenticated(backend)
	if opts.Wrap != nil {
		handler = opts.Wrap(handler)
	}
	s.server = httptest.NewUnstartedServer(handler)
	if opts.TLS {
		s.server.StartTLS()
		s.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.server.Certificate().Raw})
	} else {
		s.server.Start()
	}
	s.URL = s.server.URL + "/" + filepath.Base(r.Dir)
	return s, nil
}

// SetPassword changes the password that is asked for, as when a token rotates.
func (s *HTTPServer) SetPassword(password string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opts.Password = password
}

// Close stops the server.
func (s *HTTPServer) Close() {
	s.server.CloseClientConnections()
	s.server.Close()
}

func (s *HTTPServer) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		wantUser, wantPassword := s.opts.Username, s.opts.Password
		s.mu.Unlock()
		user, password, _ := r.BasicAuth()
		if wantUser+wantPassword != "" && (!same(user, wantUser) || !same(password, wantPassword)) {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "wrong credentials", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
