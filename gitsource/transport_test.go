package gitsource

import (
	"context"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"ingot/gitsource/gitserver"
	"ingot/model"
	"ingot/model/must"
)

func repoWithClaim(t *testing.T) *servedRepo {
	t.Helper()
	repo := newGitRepo(t)
	ok[string](t)(repo.Commit(map[string]string{"web.yaml": claimYAML("web", "a")}, "first"))
	return repo
}

func failsAs(t *testing.T, s *Source, kind failureKind, text ...string) {
	t.Helper()
	err := s.Sync(t.Context())
	if err == nil {
		t.Fatal("no error")
	}
	if got := kindOf(err); got != kind {
		t.Errorf("kind %s (%v), want %s", got, err, kind)
	}
	st := s.State()
	for _, want := range text {
		if st.Reason != model.SourceFetchFailed || !strings.Contains(st.Message, want) {
			t.Errorf("state %s %q, want %q in it", st.Reason, st.Message, want)
		}
	}
	if got := testutil.ToFloat64(s.metrics.fetches.WithLabelValues(string(kind))); got < 1 {
		t.Errorf("no fetch counted as %s", kind)
	}
}

func TestHTTPS(t *testing.T) {
	repo := repoWithClaim(t)
	server := serveHTTP(t, repo, gitserver.HTTPOptions{TLS: true, Username: "ingot", Password: "token-1"})
	user, password := writeFile(t, []byte("ingot\n")), writeFile(t, []byte("token-1\n"))
	ca := writeFile(t, server.CA)
	opts := testOptions(t, server.URL)

	t.Run("no credentials", func(t *testing.T) {
		opts := opts
		opts.Dir, opts.Auth = t.TempDir(), Auth{CAFile: ca}
		failsAs(t, newSource(t, opts), failureAuth, "auth.passwordFile")
	})
	t.Run("a certificate of nobody we know", func(t *testing.T) {
		opts := opts
		opts.Dir, opts.Auth = t.TempDir(), Auth{UsernameFile: user, PasswordFile: password}
		failsAs(t, newSource(t, opts), failureTLS, "auth.caFile")
	})
	t.Run("a credential file that is not there", func(t *testing.T) {
		opts := opts
		opts.Dir, opts.Auth = t.TempDir(), Auth{PasswordFile: "/nonexistent/token", CAFile: ca}
		failsAs(t, newSource(t, opts), failureAuth, "/nonexistent/token")
	})
	t.Run("a repository that is not there", func(t *testing.T) {
		opts := opts
		opts.URL = strings.TrimSuffix(opts.URL, "fleet.git") + "other.git"
		opts.Dir, opts.Auth = t.TempDir(), Auth{UsernameFile: user, PasswordFile: password, CAFile: ca}
		failsAs(t, newSource(t, opts), failureRepository, "no such repository")
	})
	t.Run("G11 a token that rotates is read again", func(t *testing.T) {
		opts := opts
		opts.Dir, opts.Auth = t.TempDir(), Auth{UsernameFile: user, PasswordFile: password, CAFile: ca}
		s := newSource(t, opts)
		mustSync(t, s)
		server.SetPassword("token-2")
		failsAs(t, s, failureAuth, "other credentials")
		if strings.Contains(s.State().Message, "token") {
			t.Errorf("the message holds the token: %s", s.State().Message)
		}
		if d := s.Desired(); d.Source.Reason != model.SourceFetchFailed || len(d.Claims) != 1 {
			t.Errorf("in force: %+v", d)
		}
		must.Do(t, os.WriteFile(password, []byte("token-2"), 0o600))
		if d := mustSync(t, s); d.Source.Reason != "" {
			t.Errorf("state %+v, want none", d.Source)
		}
	})
}

// What is said to the host beside Git trusts the same certificates.
func TestATransportTrustsTheCAFileAsItIsNow(t *testing.T) {
	server := serveHTTP(t, repoWithClaim(t), gitserver.HTTPOptions{TLS: true})
	auth := Auth{CAFile: writeFile(t, nil)}
	ask := func() error {
		transport, err := auth.Transport()
		if err != nil {
			return err
		}
		defer transport.CloseIdleConnections()
		res, err := (&http.Client{Transport: transport}).Get(server.URL + "/HEAD")
		if err != nil {
			return err
		}
		return res.Body.Close()
	}
	if err := ask(); err == nil || !strings.Contains(err.Error(), "PEM") {
		t.Errorf("error %v of an empty file", err)
	}
	must.Do(t, os.WriteFile(auth.CAFile, server.CA, 0o600))
	if err := ask(); err != nil {
		t.Error(err)
	}
	auth.CAFile = ""
	if err := ask(); err == nil {
		t.Error("a certificate that nobody signed is trusted")
	}
}

func TestWhatWasSeenIsKnownBeforeItIsInForce(t *testing.T) {
	repo := repoWithClaim(t)
	opts := testOptions(t, repo.URL())
	var s *Source
	var seen model.Revision
	opts.Decode = func(file string, data []byte) ([]model.Object, []model.Problem) {
		seen = s.Seen()
		return decode(file, data)
	}
	s = newSource(t, opts)
	if r := s.Seen(); r != "" {
		t.Errorf("%s is seen before the first look", r)
	}
	if d := mustSync(t, s); seen != d.Revision {
		t.Errorf("%q is seen while %s is read", seen, d.Revision)
	}
}

func TestThrottled(t *testing.T) { // G12
	repo := repoWithClaim(t)
	server := serveHTTP(t, repo, gitserver.HTTPOptions{Wrap: func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "120")
			http.Error(w, "slow down", http.StatusTooManyRequests)
		})
	}})
	s := newSource(t, testOptions(t, server.URL))
	failsAs(t, s, failureBusy, "asked too often")
	if got := time.Duration(s.retryAfter.Load()); got != 2*time.Minute {
		t.Errorf("stays away for %s, want 2m", got)
	}
}

// Some servers, and proxies before them, repeat what they were sent.
func TestWhatAServerSaysIsShortAndHoldsNoCredentials(t *testing.T) {
	repo := repoWithClaim(t)
	for _, code := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusInternalServerError} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			server := serveHTTP(t, repo, gitserver.HTTPOptions{Wrap: func(http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, password, _ := r.BasicAuth()
					w.WriteHeader(code)
					_, _ = fmt.Fprintf(w, "%s\nno entry\x1b\nfor %s %s", password, r.Header.Get("Authorization"), strings.Repeat("x", maxErrorText/2))
				})
			}})
			auth := Auth{UsernameFile: writeFile(t, []byte("anna")), PasswordFile: writeFile(t, []byte("correct horse"))}
			opts := testOptions(t, server.URL)
			opts.Auth = auth
			_, published := newStatus(t, server.URL, auth).Publish(t.Context(), report(1, fleet))
			for what, err := range map[string]error{"fetch": newSource(t, opts).Sync(t.Context()), "push": published} {
				if err == nil {
					t.Fatalf("%s: no error", what)
				}
				text := err.Error()
				for _, secret := range []string{"correct horse", base64.StdEncoding.EncodeToString([]byte("anna:correct horse")), "\n", "\x1b"} {
					if strings.Contains(text, secret) {
						t.Errorf("%s: %q is in %.300q", what, secret, text)
					}
				}
				if len(text) > 2*maxMessage {
					t.Errorf("%s: %d bytes", what, len(text))
				}
				if quoted := code != http.StatusInternalServerError; quoted != strings.Contains(text, "no entry") {
					t.Errorf("%s: %.300q", what, text)
				}
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	repo := repoWithClaim(t)
	server := serveHTTP(t, repo, gitserver.HTTPOptions{})
	server.Close()
	s := newSource(t, testOptions(t, server.URL))
	failsAs(t, s, failureNetwork, "cannot be reached", "connection refused")
	before := s.State()
	<-s.Changed()
	_ = s.Sync(t.Context())
	select {
	case <-s.Changed():
		t.Errorf("the same failure is told twice: %+v, then %+v", before, s.State())
	default:
	}
}

func TestSilentServer(t *testing.T) { // G19
	hosts := writeFile(t, nil)
	for name, url := range map[string]string{"http": "http://%/x.git", "ssh": "ssh://git@%/x.git"} {
		t.Run(name, func(t *testing.T) {
			opts := testOptions(t, strings.Replace(url, "%", silent(t), 1))
			opts.Timeout = 200 * time.Millisecond
			opts.Auth = sshKeys(t, hosts)
			began := time.Now()
			failsAs(t, newSource(t, opts), failureNetwork, "no answer within 200ms")
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("took %s", took)
			}
			opts.Timeout, opts.Dir = time.Hour, t.TempDir()
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			began = time.Now()
			if err := newSource(t, opts).Sync(ctx); err == nil || time.Since(began) > 5*time.Second {
				t.Errorf("cancelling: %v after %s", err, time.Since(began))
			}
		})
	}
}

func TestSilenceShowsBeforeTheTimeout(t *testing.T) {
	hosts := writeFile(t, nil)
	for name, url := range map[string]string{"http": "http://%/x.git", "ssh": "ssh://git@%/x.git"} {
		t.Run(name, func(t *testing.T) {
			opts := testOptions(t, strings.Replace(url, "%", silent(t), 1))
			opts.Interval, opts.Auth = time.Second, sshKeys(t, hosts)
			s := newSource(t, opts)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			ended := make(chan error, 1)
			go func() { ended <- s.Sync(ctx) }()
			for _, want := range []string{"no answer for 1 s", "no answer for 2 s"} {
				select {
				case <-s.Changed():
				case err := <-ended:
					t.Fatalf("the fetch has ended: %v", err)
				}
				if st := s.State(); st.Reason != model.SourceFetchFailed || st.Message != want {
					t.Errorf("state %s %q, want %q", st.Reason, st.Message, want)
				}
			}
			cancel()
			<-ended
		})
	}
}

func TestSlowServerIsNotSilent(t *testing.T) {
	asked, end := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		_, _ = w.Write([]byte("001e# service=git-upload-pack\n0000fff0")) // a line of 65 kB follows
		for {
			_, _ = w.Write([]byte("a"))
			_ = http.NewResponseController(w).Flush()
			select {
			case <-end:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}))
	defer server.Close()
	opts := testOptions(t, server.URL+"/x.git")
	opts.Interval = 200 * time.Millisecond
	s := newSource(t, opts)
	ended := make(chan error, 1)
	go func() { ended <- s.Sync(t.Context()) }()
	<-asked
	select {
	case <-s.Changed():
		t.Errorf("it announces %+v", s.State())
	case <-time.After(5 * opts.Interval):
	}
	close(end)
	<-ended
}

func sshKeys(t *testing.T, knownHosts string) Auth {
	t.Helper()
	server := must.Get(newGitRepo(t).ServeSSH())(t)
	server.Close()
	return Auth{SSHKeyFile: writeFile(t, server.ClientKey), KnownHostsFile: knownHosts}
}

func TestSSH(t *testing.T) {
	repo := repoWithClaim(t)
	server := must.Get(repo.ServeSSH())(t)
	t.Cleanup(server.Close)
	other := must.Get(newGitRepo(t).ServeSSH())(t)
	t.Cleanup(other.Close)
	key := writeFile(t, server.ClientKey)
	tests := map[string]struct {
		hosts []byte
		key   string
		kind  failureKind // "" = it works
		text  []string
	}{
		"G07 only the Ed25519 key is known": {hosts: server.KnownHosts(server.Ed25519)},
		"G07 only the ECDSA key is known":   {hosts: server.KnownHosts(server.ECDSA)},
		"G08 both keys are known":           {hosts: server.KnownHosts(server.Ed25519, server.ECDSA)},
		"G08 the host is hashed": {
			hosts: []byte(knownhosts.Line([]string{knownhosts.HashHostname(knownhosts.Normalize(server.Addr))}, server.ECDSA)),
		},
		"another key is known": {
			hosts: server.KnownHosts(other.Ed25519), kind: failureHostKey,
			text: []string{ssh.FingerprintSHA256(other.Ed25519), ssh.FingerprintSHA256(server.Ed25519), "somebody may be in between"},
		},
		"the host is not known": {
			hosts: other.KnownHosts(other.Ed25519), kind: failureHostKey, text: []string{"add it there", "SHA256:"},
		},
		"the server does not accept our key": {
			hosts: server.KnownHosts(server.Ed25519), key: writeFile(t, other.ClientKey), kind: failureAuth,
			text: []string{"auth.sshKeyFile"},
		},
		"the key file is no key": {
			hosts: server.KnownHosts(server.Ed25519), key: writeFile(t, []byte("hello")), kind: failureAuth,
			text: []string{"SSH key"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			opts := testOptions(t, server.URL)
			opts.Auth = Auth{SSHKeyFile: key, KnownHostsFile: writeFile(t, tt.hosts)}
			if tt.key != "" {
				opts.Auth.SSHKeyFile = tt.key
			}
			s := newSource(t, opts)
			if tt.kind != "" {
				failsAs(t, s, tt.kind, tt.text...)
				return
			}
			if d := mustSync(t, s); len(d.Claims) != 1 {
				t.Errorf("claims %v", claims(d))
			}
			ok[string](t)(repo.Commit(map[string]string{"web.yaml": claimYAML("web", name)}, "next"))
			if d := mustSync(t, s); claims(d)["web"] != name {
				t.Errorf("claims %v", claims(d))
			}
		})
	}
}

func TestURLs(t *testing.T) {
	tests := map[string]string{ // URL → protocol host path
		"git@host:a/b.git":         "ssh host:22 a/b.git",
		"git@host:2222/a/b.git":    "ssh host:22 2222/a/b.git", // as git reads it
		"ssh://git@host:7/a.git":   "ssh host:7 /a.git",
		"ssh://host/a.git":         "ssh host:22 /a.git",
		"https://host/a.git":       "https host:22 /a.git",
		"file:///srv/a.git":        "file :22 /srv/a.git",
		"/srv/a.git":               "file :22 /srv/a.git",
		"https://me@host/a/b?x":    "https host:22 /a/b?x",
		"https://me:pw@host/a.git": "",
		"gopher://host/a.git":      "",
		"https:///a.git":           "",
		"":                         "",
	}
	for url, want := range tests {
		got := ""
		if e, err := parseURL(url); err == nil {
			got = e.Protocol + " " + hostPort(e) + " " + e.Path
		}
		if got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
}

// As when root made the repository, and Ingot runs as a user of its own.
func TestARepositoryOfAnotherUser(t *testing.T) {
	repo := repoWithClaim(t)
	t.Setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
	failsAs(t, newSource(t, testOptions(t, repo.Dir)), failureRepository, "safe.directory", "dubious ownership")
}

func TestPlainPath(t *testing.T) {
	repo := repoWithClaim(t)
	if d := mustSync(t, newSource(t, testOptions(t, repo.Dir))); len(d.Claims) != 1 {
		t.Errorf("claims %v", claims(d))
	}
	s := newSource(t, testOptions(t, filepath.Join(t.TempDir(), "none.git")))
	failsAs(t, s, failureRepository, "no such repository")
}

func TestTrailers(t *testing.T) {
	tests := map[string]struct {
		message, key string
		want         string
	}{
		"a trailer":                        {"s\n\nIngot-Approve: abc", "ingot-approve", "abc"},
		"several":                          {"s\n\nbody\n\nFence: 1\nfence:  2 \n", "fence", "1 2"},
		"CRLF and blank lines at the end":  {"s\r\n\r\nIngot-Approve: abc\r\n\r\n\r\n", "ingot-approve", "abc"},
		"not in the subject":               {"Ingot-Approve: abc", "ingot-approve", ""},
		"not in an earlier paragraph":      {"s\n\nIngot-Approve: abc\n\nbye", "ingot-approve", ""},
		"a key with a space is no trailer": {"s\n\nsee also: abc", "see also", ""},
		"nothing at all":                   {"", "fence", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(Trailers(tt.message)[tt.key], " "); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestWhatThisMachineLacksIsNotTheServersFault(t *testing.T) {
	r := &remote{}
	for name, tt := range map[string]struct {
		err  error
		want failureKind
		text string
	}{
		"a disk that is full":       {&fs.PathError{Op: "write", Path: "pack", Err: syscall.ENOSPC}, failureLocal, "state.dir"},
		"too many files, of a pipe": {os.NewSyscallError("pipe2", syscall.EMFILE), failureLocal, "LimitNOFILE"},
		"too many files, of a dial": {&net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{}, Err: os.NewSyscallError("socket", syscall.EMFILE)}, failureLocal, "LimitNOFILE"},
		"a server that breaks off":  {&net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, failureNetwork, "broke off"},
		"a name that is not known": {&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "git.example.com"}},
			failureNetwork, "there is no host git.example.com (DNS)"},
		"one that takes no requests": {&net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{}, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, failureNetwork, "cannot be reached"},
	} {
		t.Run(name, func(t *testing.T) {
			err := r.explain(t.Context(), fmt.Errorf("read pack: %w", tt.err))
			if kindOf(err) != tt.want || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%s: %v, want %s: %s", kindOf(err), err, tt.want, tt.text)
			}
		})
	}
}
