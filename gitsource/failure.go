package gitsource

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// failureKind says who has to act when an operation failed. Its values are the
// values of the label "result" of the fetch and push counters.
type failureKind string

const (
	failureAuth       failureKind = "auth"       // credentials are missing or refused
	failureHostKey    failureKind = "host_key"   // the SSH host key is not the known one
	failureTLS        failureKind = "tls"        // the certificate is not trusted
	failureNetwork    failureKind = "network"    // cannot be reached, or fell silent
	failureLocal      failureKind = "local"      // this machine has no room, or may open no more files
	failureRepository failureKind = "repository" // there is no such repository
	failureBranch     failureKind = "branch"     // there is no such branch
	failureBusy       failureKind = "throttled"  // asked too often
	failureEmpty      failureKind = "empty"      // a repository without a commit
	failureRejected   failureKind = "rejected"   // a push was refused by rule
	failureFenced     failureKind = "fenced"     // somebody newer writes the status branch
	failureKey        failureKind = "signing"    // there is no key to sign a commit with
	failureOther      failureKind = "error"
)

var failureKinds = []failureKind{
	failureAuth, failureHostKey, failureTLS, failureNetwork, failureLocal, failureRepository, failureBranch, failureBusy, failureEmpty,
	failureRejected, failureFenced, failureKey, failureOther,
}

// failure is an operation that failed, of a kind.
type failure struct {
	kind failureKind
	err  error
}

// Error implements error.
func (f *failure) Error() string { return f.err.Error() }

// Unwrap returns the error itself.
func (f *failure) Unwrap() error { return f.err }

var errEmptyRepository error = &failure{kind: failureEmpty, err: errors.New("the repository is empty: it holds no commit yet")}

func kindOf(err error) failureKind {
	if f, ok := errors.AsType[*failure](err); ok {
		return f.kind
	}
	return failureOther
}

// Refused reports whether the server refused an operation, and will refuse it until somebody
// changes something: credentials, their rights, a rule for a branch.
func Refused(err error) bool {
	switch kindOf(err) {
	case failureAuth, failureRepository, failureRejected:
		return true
	default:
		return false
	}
}

// explain says in words what went wrong between us and the server, and who has
// to act. The text does not vary while the cause stays the same, so that it is
// fit for a status.
func (r *remote) explain(ctx context.Context, err error) error {
	if known, ok := errors.AsType[*failure](err); ok {
		return known
	}
	if cause := context.Cause(ctx); cause != nil {
		return &failure{kind: failureNetwork, err: cause}
	}
	err = bare(err)
	kind, text := diagnose(err)
	if kind == failureAuth {
		r.installation.refused.Store(true)
	}
	err = &told{r.tell(steady(err).Error()), steady(err)}
	switch {
	case text == "":
		return &failure{kind: kind, err: err}
	case kind == failureBusy:
		if away := time.Duration(r.away.Load()); away > 0 {
			text += fmt.Sprintf(". It asks for no request for %s", max(away.Round(time.Minute), time.Minute))
		}
		return &failure{kind: kind, err: &told{text, err}}
	}
	return &failure{kind: kind, err: fmt.Errorf("%s: %w", text, err)}
}

// told is an error whose text may be shown.
type told struct {
	text string
	err  error
}

// Error implements error.
func (t *told) Error() string { return t.text }

// Unwrap returns the error itself.
func (t *told) Unwrap() error { return t.err }

// tell returns a text of the server as it may be shown: in one line, not too long, and without
// the credentials that the server was sent, which some servers and proxies repeat.
func (r *remote) tell(text string) string {
	if sent := r.sent.Load(); sent != nil {
		text = strings.NewReplacer(sent.secrets()...).Replace(text)
	}
	return shorten(oneLine(strings.Map(func(c rune) rune {
		if unicode.IsGraphic(c) {
			return c
		}
		return ' '
	}, text)))
}

type credentials struct{ user, password string }

// secrets are what tells the password, each with what is shown in its place.
func (c *credentials) secrets() []string {
	const shown = "[redacted]"
	if len(c.password) <= 3 { // any text may have it
		return nil
	}
	return []string{base64.StdEncoding.EncodeToString([]byte(c.user + ":" + c.password)), shown, c.password, shown}
}

// explained is explain for an operation that may have succeeded.
func (r *remote) explained(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return r.explain(ctx, err)
}

func diagnose(err error) (failureKind, string) {
	var (
		network    net.Error
		unknownCA  x509.UnknownAuthorityError
		hostname   x509.HostnameError
		badCert    x509.CertificateInvalidError
		operation  *net.OpError
		notInstall *exec.Error
		unknown    *net.DNSError
	)
	if local := diagnoseHere(err); local != "" { // an error of the system calls itself one of the network, too
		return failureLocal, local
	}
	text := err.Error()
	switch {
	case errors.As(err, &unknown) && (unknown.IsNotFound || strings.Contains(unknown.Err, "no such host")):
		return failureNetwork, fmt.Sprintf("the server cannot be reached: there is no host %s (DNS); check the spelling of git.url, and the resolver of this machine", unknown.Name)
	case errors.As(err, &unknown):
		return failureNetwork, fmt.Sprintf("the server cannot be reached: the DNS server does not answer for %s; check the resolver of this machine", unknown.Name)
	case errors.Is(err, syscall.ECONNREFUSED):
		return failureNetwork, "the server cannot be reached: it refuses connections, nothing listens at that port; check host and port of git.url, and that the Git host runs"
	case errors.Is(err, transport.ErrAuthenticationRequired):
		return failureAuth, "the server wants other credentials than it was given (401); look at auth.usernameFile and auth.passwordFile"
	case errors.Is(err, transport.ErrAuthorizationFailed):
		return failureAuth, "the server knows the credentials, but they do not allow this (403); give them read access to the repository, and write access for the status branch"
	case strings.Contains(text, "unable to authenticate"):
		return failureAuth, "the server does not accept the key of auth.sshKeyFile"
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return failureRepository, "there is no such repository, or the credentials do not show it (404); check the path of git.url, and git.auth"
	case errors.As(err, &unknownCA), errors.As(err, &hostname), errors.As(err, &badCert):
		return failureTLS, "the server's certificate is not trusted; look at auth.caFile"
	case strings.Contains(text, "status code: 429"):
		return failureBusy, "the server was asked too often (429); a longer git.interval, or a webhook, needs fewer requests"
	case strings.Contains(text, "invalid pkt-len found") || strings.Contains(text, "invalid advertisement"):
		return failureRepository, "the server sent something else than Git, such as a web page; check that git.url is the URL for cloning, and that no login page or proxy is before it"
	case strings.Contains(text, "hash size") || strings.Contains(text, "object-format") || strings.Contains(text, "object format"):
		return failureRepository, "the repository has the object format SHA-256, which Ingot does not support; create it with git init --object-format=sha1"
	case strings.Contains(text, "detected dubious ownership"):
		return failureRepository, "git reads a repository of another user only where it is told to: have it belong to the user that Ingot runs as, " +
			"or run git config --system --add safe.directory with its path"
	case errors.As(err, &notInstall):
		return failureOther, "a repository on this machine needs the program git"
	case errors.As(err, &operation), errors.As(err, &network), strings.Contains(text, "EOF"), strings.Contains(text, "i/o timeout"):
		return failureNetwork, "the server cannot be reached or broke off"
	}
	return failureOther, ""
}

// diagnoseHere says what this machine lacks; "" = nothing that is known.
func diagnoseHere(err error) string {
	is := func(causes ...error) bool {
		return slices.ContainsFunc(causes, func(cause error) bool { return errors.Is(err, cause) })
	}
	switch {
	case is(syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS):
		return "the repository cannot be written to state.dir; look at the space that is free there"
	case is(syscall.EMFILE, syscall.ENFILE):
		return "no more files can be opened; look at what has them open, and raise the limit (LimitNOFILE= of a unit)"
	}
	return ""
}

// bare sees through go-git's wrappers, which do not implement Unwrap.
func bare(err error) error {
	var (
		unexpected *plumbing.UnexpectedError
		permanent  *plumbing.PermanentError
	)
	switch {
	case errors.As(err, &unexpected):
		return bare(unexpected.Err)
	case errors.As(err, &permanent):
		return bare(permanent.Err)
	}
	return err
}

// steady takes away what differs each time: our own port.
func steady(err error) error {
	var (
		request   *url.Error
		operation *net.OpError
	)
	switch {
	case errors.As(err, &operation) && operation.Op == "dial" && operation.Addr != nil: // which a name that is not known has not
		return fmt.Errorf("dial %s: %w", operation.Addr, operation.Err)
	case errors.As(err, &operation):
		return fmt.Errorf("%s: %w", operation.Op, operation.Err)
	case errors.As(err, &request):
		return request.Err
	}
	return err
}

// maxMessage bounds what is shown of an error, in bytes: servers answer with
// whole pages.
const maxMessage = 500

// message is err for a status: its first lines, in one.
func message(err error) string {
	return shorten(oneLine(err.Error()))
}

func shorten(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage], "") + "…"
}
