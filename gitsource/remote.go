package gitsource

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/client"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	gitssh "github.com/go-git/go-git/v5/plumbing/transport/ssh"

	"ingot/gitsource/smallfile"
)

// Auth names the files that hold credentials. They are read again for every
// operation, so a token may be rotated by writing its file.
type Auth struct {
	UsernameFile string
	PasswordFile string // password or token; for SSH the passphrase of the key
	CAFile       string // PEM; trusted besides the system's authorities

	SSHKeyFile     string
	KnownHostsFile string

	GitHubApp *GitHubApp // in place of user and password; nil = none
}

// Limits of what a server may send.
const (
	maxCredential    = 64 << 10  // bytes of a credential file
	maxAdvertisement = 128 << 20 // bytes of the list of refs
	maxPack          = 2 << 30   // bytes of one pack
)

// remote is one branch or tag of one repository elsewhere.
type remote struct {
	url     string // as configured; holds no password
	follows Ref
	auth    Auth
	timeout time.Duration // of one operation

	clock        func() time.Time
	installation installation

	mu        sync.Mutex // guards the HTTP transport
	transport *http.Transport
	ca        []byte // the CA that transport was made for

	received   atomic.Int64                // when the server last sent something, in Unix nanoseconds
	retryAfter func(time.Duration)         // told what a server that is asked too often says
	away       atomic.Int64                // nanoseconds that a server asked for, since it was last read
	sent       atomic.Pointer[credentials] // newest
	redirected atomic.Bool                 // the server sent a request elsewhere, which only one without a body follows
}

// standsAlone reports whether a push needs no request before it, as over HTTP without redirects.
func (r *remote) standsAlone() bool {
	return (strings.HasPrefix(r.url, "http://") || strings.HasPrefix(r.url, "https://")) && !r.redirected.Load()
}

// newRemote checks what can be checked without the network.
func newRemote(rawURL string, follows Ref, auth Auth, timeout time.Duration) (*remote, error) {
	r := &remote{url: rawURL, follows: follows, auth: auth, timeout: timeout, clock: time.Now, retryAfter: func(time.Duration) {}}
	if err := follows.Check(); err != nil {
		return nil, err
	}
	endpoint, err := parseURL(rawURL)
	if err != nil {
		return nil, err
	}
	if endpoint.Protocol == "ssh" && (auth.SSHKeyFile == "" || auth.KnownHostsFile == "") {
		return nil, errors.New("an SSH URL needs auth.sshKeyFile and auth.knownHostsFile: a host key that is not known is never accepted")
	}
	if auth.GitHubApp != nil {
		if field, err := auth.GitHubApp.Check(); err != nil {
			return nil, fmt.Errorf("auth.githubApp.%s %w", field, err)
		}
	}
	return r, nil
}

// validBranch follows git check-ref-format as far as branches need it.
func validBranch(name string) bool {
	ok := name != "" && len(name) <= 200 && name != "@" && !strings.HasPrefix(name, "-") && !strings.HasSuffix(name, ".") &&
		!strings.ContainsAny(name, " ~^:?*[\\\x7f") && !strings.Contains(name, "..") && !strings.Contains(name, "@{")
	for part := range strings.SplitSeq(name, "/") {
		ok = ok && part != "" && !strings.HasPrefix(part, ".") && !strings.HasSuffix(part, ".lock")
	}
	for _, c := range name {
		ok = ok && c >= ' '
	}
	return ok
}

// parseURL accepts https, http, ssh and file URLs, git@host:path and plain paths.
func parseURL(raw string) (*transport.Endpoint, error) {
	if raw == "" {
		return nil, errors.New("no URL: say where the repository is, such as https://git.example.com/infra/metal.git")
	}
	endpoint, err := transport.NewEndpoint(raw)
	if err != nil {
		return nil, errors.New("the URL cannot be read: write https://…, ssh://…, git@host:path, file://… or a path")
	}
	if endpoint.Password != "" {
		return nil, errors.New("the URL holds a password: put it into a file and name that as auth.passwordFile")
	}
	switch endpoint.Protocol {
	case "http", "https", "ssh":
		if endpoint.Host == "" {
			return nil, fmt.Errorf("URL %s names no host", raw)
		}
	case "file":
		if endpoint.Path, err = filepath.Abs(endpoint.Path); err != nil {
			return nil, fmt.Errorf("URL %s: %w", raw, err)
		}
	default:
		return nil, fmt.Errorf("URL scheme %q is not known: use https, http, ssh or file", endpoint.Protocol)
	}
	return endpoint, nil
}

// ref is the branch, or the ref that is written out: what a clone has fetched of a branch
// is refs/remotes/origin/status.
func (r *remote) ref() plumbing.ReferenceName { return branchRef(r.follows.Branch) }

func branchRef(branch string) plumbing.ReferenceName {
	if name := plumbing.ReferenceName(branch); name.IsRemote() {
		return name
	}
	return plumbing.NewBranchReferenceName(branch)
}

func (r *remote) within(ctx context.Context) (context.Context, context.CancelFunc) {
	r.away.Store(0)
	return context.WithTimeoutCause(ctx, r.timeout, fmt.Errorf("no answer within %s: %w", r.timeout, context.DeadlineExceeded))
}

func (r *remote) uploadSession(ctx context.Context) (transport.UploadPackSession, error) {
	c, endpoint, auth, done, err := r.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	s, err := c.NewUploadPackSession(endpoint, auth)
	if err != nil {
		return nil, r.explain(ctx, err)
	}
	return s, nil
}

func (r *remote) receiveSession(ctx context.Context) (transport.ReceivePackSession, error) {
	c, endpoint, auth, done, err := r.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	s, err := c.NewReceivePackSession(endpoint, auth)
	if err != nil {
		return nil, r.explain(ctx, err)
	}
	return s, nil
}

// connect prepares client, endpoint and credentials; done is to be called once
// the session is open.
func (r *remote) connect(ctx context.Context) (transport.Transport, *transport.Endpoint, transport.AuthMethod, func(), error) {
	endpoint, err := parseURL(r.url)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	none := func() {}
	switch endpoint.Protocol {
	case "ssh":
		auth, err := sshAuth(endpoint, r.auth)
		if err != nil {
			return nil, nil, nil, nil, &failure{kind: failureAuth, err: err}
		}
		done := dialWithin(ctx, endpoint, &r.received)
		return gitssh.DefaultClient, endpoint, auth, done, nil
	case "http", "https":
		auth, err := r.httpAuth(ctx, endpoint)
		if err != nil {
			return nil, nil, nil, nil, err
		}
		c, err := r.httpClient()
		if err != nil {
			return nil, nil, nil, nil, &failure{kind: failureTLS, err: err}
		}
		return c, endpoint, auth, none, nil
	default:
		c, err := client.NewClient(endpoint)
		return c, endpoint, nil, none, err
	}
}

// httpAuth returns a nil interface when no credentials are configured.
func (r *remote) httpAuth(ctx context.Context, endpoint *transport.Endpoint) (transport.AuthMethod, error) {
	if r.auth.GitHubApp != nil {
		return r.installationAuth(ctx)
	}
	auth, err := r.basicAuth(endpoint)
	if err != nil {
		return nil, &failure{kind: failureAuth, err: err}
	}
	return auth, nil
}

// basicAuth returns a nil interface when no credentials are configured. A forge
// that takes a token as password does not care for the user's name, but wants one.
func (r *remote) basicAuth(endpoint *transport.Endpoint) (transport.AuthMethod, error) {
	if r.auth.PasswordFile == "" && r.auth.UsernameFile == "" {
		return nil, nil
	}
	user, err := credential(r.auth.UsernameFile)
	if err != nil {
		return nil, err
	}
	password, err := credential(r.auth.PasswordFile)
	if err != nil {
		return nil, err
	}
	if user == "" {
		user = endpoint.User
	}
	if user == "" {
		user = "git"
	}
	return r.basic(user, password), nil
}

// basic notes credentials that are going to be sent.
func (r *remote) basic(user, password string) *githttp.BasicAuth {
	r.sent.Store(&credentials{user, password})
	return &githttp.BasicAuth{Username: user, Password: password}
}

// httpClient returns a client that keeps its connections from one operation to
// the next, for as long as the CA file stays the same.
func (r *remote) httpClient() (transport.Transport, error) {
	t, err := r.roundTripper()
	if err != nil {
		return nil, err
	}
	return githttp.NewClient(&http.Client{Transport: t}), nil
}

func (r *remote) roundTripper() (http.RoundTripper, error) {
	ca, err := r.auth.readCA()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.transport == nil || !bytes.Equal(ca, r.ca) {
		t, err := newTransport(ca)
		if err != nil {
			return nil, fmt.Errorf("CA file %s: %w", r.auth.CAFile, err)
		}
		r.closeIdle()
		r.transport, r.ca = t, ca
	}
	return &guard{next: r.transport, remote: r}, nil
}

// readCA reads the CA file, nil if there is none.
func (a Auth) readCA() ([]byte, error) {
	if a.CAFile == "" {
		return nil, nil
	}
	ca, err := readSmall(a.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read CA file: %w", err)
	}
	return ca, nil
}

// Transport returns a new transport to the host of the repository, which trusts whom the
// CA file says now.
func (a Auth) Transport() (*http.Transport, error) {
	ca, err := a.readCA()
	if err != nil {
		return nil, err
	}
	t, err := newTransport(ca)
	if err != nil {
		return nil, fmt.Errorf("CA file %s: %w", a.CAFile, err)
	}
	return t, nil
}

func (r *remote) closeIdle() {
	if r.transport != nil {
		r.transport.CloseIdleConnections()
	}
}

func (r *remote) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closeIdle()
}

func newTransport(ca []byte) (*http.Transport, error) {
	t := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		TLSHandshakeTimeout: 15 * time.Second,
		IdleConnTimeout:     90 * time.Second,
		MaxIdleConnsPerHost: 2,
		ForceAttemptHTTP2:   true,
	}
	if ca == nil {
		return t, nil
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(ca) {
		return nil, errors.New("it holds no PEM certificate")
	}
	t.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	return t, nil
}

// guard bounds the answers of a server, and notes when it says that it is asked
// too often.
type guard struct {
	next   http.RoundTripper
	remote *remote
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := g.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusServiceUnavailable {
		g.remote.retryAfter(parseRetryAfter(res.Header.Get("Retry-After")))
	}
	// GitHub says so with a 403 too.
	if v := res.Header.Get("Retry-After"); v != "" && res.StatusCode >= http.StatusBadRequest {
		g.remote.away.Store(int64(parseRetryAfter(v)))
	}
	if res.StatusCode >= 300 && res.StatusCode < 400 {
		g.remote.redirected.Store(true)
	}
	limit := int64(maxPack)
	switch {
	case res.StatusCode >= http.StatusBadRequest:
		limit = maxErrorText
	case req.Method == http.MethodGet:
		limit = maxAdvertisement
	}
	body := timedReader{res.Body, &g.remote.received}
	res.Body = &limitedBody{limited: limited{in: body, left: limit}, Closer: res.Body}
	return res, nil
}

// timedReader notes when it received something.
type timedReader struct {
	in io.Reader
	at *atomic.Int64
}

// Read implements io.Reader.
func (t timedReader) Read(p []byte) (int, error) {
	n, err := t.in.Read(p)
	if n > 0 {
		t.at.Store(time.Now().UnixNano())
	}
	return n, err
}

// maxErrorText bounds what is read of an error page.
const maxErrorText = 64 << 10

// maxRetryAfter bounds how long a server may put us off.
const maxRetryAfter = 30 * time.Minute

// parseRetryAfter reads a number of seconds, see RFC 9110 §10.2.3. A date is not
// worth trusting two clocks for: it counts as a minute, as nothing does.
func parseRetryAfter(v string) time.Duration {
	seconds, err := strconv.Atoi(strings.TrimSpace(v))
	if err != nil || seconds < 0 {
		return time.Minute
	}
	return min(time.Duration(seconds)*time.Second, maxRetryAfter)
}

type limitedBody struct {
	limited
	io.Closer
}

// errTooLarge is what a reader returns that was given more than its limit.
var errTooLarge = errors.New("the server sent more than is allowed")

// limited passes on at most left bytes and then fails, where io.LimitReader
// would feign the end.
type limited struct {
	in   io.Reader
	left int64
}

// Read implements io.Reader.
func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		if n, err := l.in.Read(make([]byte, 1)); n == 0 {
			return 0, err
		}
		return 0, errTooLarge
	}
	if int64(len(p)) > l.left {
		p = p[:l.left]
	}
	n, err := l.in.Read(p)
	l.left -= int64(n)
	return n, err
}

// credential reads a file of one line; no file name is no credential.
func credential(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	b, err := readSmall(file)
	if err != nil {
		return "", fmt.Errorf("read credentials: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

func readSmall(file string) ([]byte, error) { return smallfile.Read(file, maxCredential) }

// resolved reads the server's list of refs and returns it with what is followed. An empty
// repository, and a branch or tag that is missing, are errors of their own.
func (r *remote) resolved(ctx context.Context, s transport.Session) (*packp.AdvRefs, target, error) {
	adv, err := s.AdvertisedReferencesContext(ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return nil, target{}, errEmptyRepository
	}
	if err != nil {
		return nil, target{}, r.explain(ctx, err)
	}
	t, err := r.follows.find(adv)
	return adv, t, err
}

// advertised is resolved for a branch, of which the head says all.
func (r *remote) advertised(ctx context.Context, s transport.Session) (*packp.AdvRefs, plumbing.Hash, error) {
	adv, t, err := r.resolved(ctx, s)
	return adv, t.commit, err
}

// hostPort is where an SSH endpoint is dialled.
func hostPort(endpoint *transport.Endpoint) string {
	port := endpoint.Port
	if port <= 0 {
		port = gitssh.DefaultPort
	}
	return strings.TrimSuffix(strings.TrimPrefix(endpoint.Host, "["), "]") + ":" + strconv.Itoa(port)
}
