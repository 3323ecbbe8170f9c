package access

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Options are the options of New.
type Options struct {
	// Listener is where the listener listens.
	Listener net.Addr
	// Hosts are names that it answers to, beside its own and those of its certificate.
	Hosts []string
	// CertFile and KeyFile are for TLS; "" = none.
	CertFile, KeyFile string
	// UsersFile has the users, as htpasswd -B writes them; "" = none.
	UsersFile string
	// Header names the user where a proxy at one of the addresses From knows who that is;
	// "" = no proxy does.
	Header string
	From   []netip.Prefix
	// OpenMetrics shows metrics to everybody.
	OpenMetrics bool

	Log        *slog.Logger
	Registerer prometheus.Registerer
	Clock      func() time.Time
}

// Access lets those through who may look.
type Access struct {
	opts      Options
	loopback  bool
	hostname  string
	pair      *reread[*tls.Certificate] // nil = no TLS
	passwords *passwords                // nil = there are no users
	refusals  *prometheus.CounterVec
}

// New returns what guards a listener. It fails if a file cannot be used.
func New(o Options) (*Access, error) {
	a := &Access{opts: o, loopback: IsLoopback(o.Listener)}
	a.hostname, _ = os.Hostname() // without one, it answers to one name less
	if o.CertFile != "" {
		a.pair = &reread[*tls.Certificate]{
			setting: "admin.tls", names: []string{o.CertFile, o.KeyFile}, parse: parsePair, log: o.Log, clock: o.Clock,
		}
		if err := a.pair.open(); err != nil {
			return nil, fmt.Errorf("admin.tls: %w", err)
		}
	}
	if o.UsersFile != "" {
		file := &reread[*users]{
			setting: "admin.users", names: []string{o.UsersFile}, log: o.Log, clock: o.Clock,
			parse: func(content [][]byte) (*users, error) { return parseUsers(o.UsersFile, content[0]) },
		}
		if err := file.open(); err != nil {
			return nil, fmt.Errorf("admin.users: %w", err)
		}
		a.passwords = newPasswords(file, o.Clock)
	}
	a.warn()
	a.count(o.Registerer)
	return a, nil
}

// warn says what of the settings shows more than one may think.
func (a *Access) warn() {
	for _, file := range []string{a.opts.KeyFile, a.opts.UsersFile} {
		if info, err := os.Stat(file); file != "" && err == nil && info.Mode().Perm()&0o006 != 0 {
			a.opts.Log.Warn("an access control file can be read or changed by anybody on this machine: chmod o-rwx", "file", file)
		}
	}
	switch {
	case a.loopback:
	case a.pair == nil && a.passwords != nil:
		a.opts.Log.Warn("the passwords of admin.users cross the network in plain text: set admin.tls, or listen on loopback behind a proxy with TLS")
	case !a.asksWho():
		a.opts.Log.Warn("anybody who reaches the admin listener can read everything: set admin.users or admin.trustedHeader", "address", a.opts.Listener.String())
	}
}

// Listen returns ln, with TLS if that is set up.
func (a *Access) Listen(ln net.Listener) net.Listener {
	if a.pair == nil {
		return ln
	}
	return tls.NewListener(ln, &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return a.pair.get(), nil },
	})
}

// asksWho reports whether a client has to say who it is.
func (a *Access) asksWho() bool { return a.passwords != nil || a.opts.Header != "" }

// Wrap returns next for those who may look, with the headers that every answer has.
func (a *Access) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setHeaders(w.Header())
		v := a.judge(r)
		switch {
		case v.refusal != "":
			a.refuse(w, v)
		case v.brief && r.URL.Path == readyPath:
			next.ServeHTTP(&briefWriter{ResponseWriter: w}, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// refusal is why a request was refused, the label of a counter.
type refusal string

const (
	refusedHost      refusal = "host"             // under a name that is not the listener's
	refusedNobody    refusal = "unauthenticated"  // does not say who it is
	refusedPassword  refusal = "wrong_password"   // or there is no such user
	refusedBusy      refusal = "busy"             // too many passwords are being checked
	refusedHeader    refusal = "untrusted_header" // from an address that is no proxy's
	refusedAmbiguous refusal = "ambiguous_header" // the proxy names nobody, or several
)

var allRefusals = []refusal{
	refusedHost, refusedNobody, refusedPassword, refusedBusy, refusedHeader, refusedAmbiguous,
}

type verdict struct {
	refusal refusal // "" = it is answered
	code    int
	text    string
	brief   bool // it is answered without details, because the client is unknown
}

// judge decides what becomes of a request.
//
// A page from elsewhere can have its own name resolve to this listener, and then read what
// the browser is answered (DNS rebinding). So the name that was asked for has to be the
// listener's, unless the request shows a password: a browser sends a password only to the
// name that its user gave it to.
func (a *Access) judge(r *http.Request) verdict {
	open := a.isOpen(r.URL.Path)
	claims := a.opts.Header != "" && len(r.Header.Values(a.opts.Header)) > 0
	name, password, shows := r.BasicAuth()
	switch {
	case !a.asksWho():
		return a.answersTo(r.Host, verdict{})
	case claims:
		if v := a.proxied(r); v.refusal != "" {
			return v
		}
		return a.answersTo(r.Host, verdict{})
	case shows && a.passwords != nil:
		return verdictOf(a.passwords.check(r.Context(), name, password))
	case open:
		return a.answersTo(r.Host, verdict{brief: true})
	case a.passwords != nil:
		return verdict{refusal: refusedNobody, code: http.StatusUnauthorized, text: "a user and a password are needed"}
	}
	return verdict{
		refusal: refusedNobody, code: http.StatusForbidden,
		text: "this listener answers to those whom its proxy names in " + a.opts.Header + ": ask through the proxy",
	}
}

// The paths that probes and Prometheus ask for.
const (
	healthPath  = "/healthz"
	readyPath   = "/readyz"
	metricsPath = "/metrics"
)

// isOpen reports whether a path is for everybody. That Ingot is alive and ready is: what
// watches over it has no password, and learns nothing of the fleet.
func (a *Access) isOpen(path string) bool {
	return path == healthPath || path == readyPath || path == metricsPath && a.opts.OpenMetrics
}

// proxied judges a request in which somebody is named by the header.
func (a *Access) proxied(r *http.Request) verdict {
	client := clientOf(r)
	if !slices.ContainsFunc(a.opts.From, func(p netip.Prefix) bool { return p.Contains(client) }) {
		return verdict{
			refusal: refusedHeader, code: http.StatusForbidden,
			text: a.opts.Header + " is believed from the addresses of admin.trustedHeader.from alone, and this came from " + client.String(),
		}
	}
	if values := r.Header.Values(a.opts.Header); len(values) != 1 || values[0] == "" {
		return verdict{
			refusal: refusedAmbiguous, code: http.StatusForbidden,
			text: a.opts.Header + " has to name one user: have the proxy set it, in place of whatever the client sent",
		}
	}
	return verdict{}
}

func verdictOf(answer answer) verdict {
	switch answer {
	case answerRight:
		return verdict{}
	case answerBusy:
		return verdict{refusal: refusedBusy, code: http.StatusServiceUnavailable, text: "too many passwords are being checked"}
	case answerWrong:
	}
	return verdict{refusal: refusedPassword, code: http.StatusUnauthorized, text: "there is no such user, or the password is wrong"}
}

func (a *Access) refuse(w http.ResponseWriter, v verdict) {
	a.refusals.WithLabelValues(string(v.refusal)).Inc()
	h := w.Header()
	if v.code == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Basic realm="Ingot", charset="UTF-8"`)
	}
	if v.code == http.StatusServiceUnavailable {
		h.Set("Retry-After", "1")
	}
	h.Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(v.code)
	_, _ = w.Write([]byte(v.text + "\n")) // the client may be gone
}

func clientOf(r *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap().WithZone("")
}
