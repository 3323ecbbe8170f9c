package bmc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"ingot/model"
)

// A client changes the machines behind one BMC. The types below it read, keep the session, and
// send the requests.
type client struct{ *reader }

// A reader reads what is behind one BMC, and remembers what it learned of each system.
type reader struct {
	*connection

	mu      sync.Mutex
	systems map[string]*systemState  // by URI
	turns   map[string]chan struct{} // by URI; held by the request that changes the system
	plain   map[string]time.Time     // collections that are empty where they are expanded, until when they are not
}

// A connection sends requests with the session of one BMC, and logs in where that is needed.
type connection struct {
	*sender
	creds   digest
	breaker *breaker
	trial   atomic.Bool  // BMCTarget.Trial, of the newest caller
	http    *http.Client // over transport

	login   chan struct{} // held while logging in or reading the service root
	service atomic.Pointer[service]
	full    struct { // guarded by login
		until time.Time // when a session is asked for again
		kind  error     // why not before
	}
	noBasic time.Time // until when HTTP Basic, which was refused, is not tried where sessions fail; guarded by login
	resumed bool      // the sessions kept of an earlier process were looked at; guarded by login

	deniedMu sync.Mutex
	denied   map[string]time.Time // paths that answer 401 to a fresh session, until when that is believed
}

// A sender sends requests to one BMC, few at a time, and reads whole answers.
type sender struct {
	name    string
	target  model.BMCTarget
	opts    Options
	log     *slog.Logger
	metrics *metrics
	counted counters

	pin   pin
	wire  wire
	base  string                  // scheme and host
	safer atomic.Pointer[url.URL] // to speak with instead: the BMC redirects http to https

	slots chan struct{} // one for each request under way
	pace  *pace         // nil = unlimited
	quiet atomic.Int64  // Unix nanoseconds until which the BMC asked for peace
	auth  atomic.Pointer[auth]
}

// counters count what was asked of one BMC.
type counters struct {
	requests, connections, sessions atomic.Uint64
}

// Sizes that keep a thousand idle BMCs small.
const (
	maxDenied  = 64
	maxSystems = 64
)

func newClient(p *Pool, t model.BMCTarget) *client {
	c := &connection{
		sender: newSender(p, t), creds: digestOf(t), breaker: p.breaker,
		login: make(chan struct{}, 1), denied: make(map[string]time.Time),
	}
	p.breaker.learn(c.creds, t.Name, t.Accepted)
	c.http = &http.Client{Transport: (*transport)(c), CheckRedirect: sameHost}
	return &client{&reader{connection: c, systems: make(map[string]*systemState), turns: make(map[string]chan struct{}), plain: make(map[string]time.Time)}}
}

func newSender(p *Pool, t model.BMCTarget) *sender {
	c := &sender{
		name:    string(t.Name),
		target:  t,
		base:    t.Scheme + "://" + strings.Replace(t.Address, "%", "%25", 1), // of a zone (RFC 6874)
		opts:    p.opts,
		log:     p.opts.Log.With("bmc", t.Name),
		metrics: p.metrics,
		slots:   make(chan struct{}, min(p.opts.MaxInFlight, 2)),
		pace:    newPace(p.opts.RequestsPerSecond),
	}
	secure := c.pin.tlsConfig(p.opts.CA, t)
	c.wire.plain = c.dial(c.dialer("http"))
	c.wire.secure = dialTLS(c.dial(c.dialer("https")), secure, min(p.opts.Timeout, 30*time.Second))
	return c
}

// serves reports whether the client still speaks with the BMC as t says.
func (c *connection) serves(t model.BMCTarget) bool {
	return c.target.Scheme == t.Scheme && c.target.Address == t.Address && c.target.Hostname == t.Hostname &&
		c.target.TLSMinimum == t.TLSMinimum && c.target.Default == t.Default && c.creds == digestOf(t)
}

// errForeignRedirect refuses to be sent elsewhere.
var errForeignRedirect = errors.New("refused to follow a redirect to another host")

// sameHost follows redirects within the BMC, and from http to https on it. A
// write is not followed where that would make it a read.
func sameHost(req *http.Request, via []*http.Request) error {
	first := via[0]
	same := req.URL.Host == first.URL.Host && req.URL.Scheme == first.URL.Scheme
	safer := req.URL.Hostname() == first.URL.Hostname() && first.URL.Scheme == "http" && req.URL.Scheme == "https"
	switch {
	case !same && !safer:
		return errForeignRedirect
	case len(via) > 3 || req.Method != first.Method:
		return http.ErrUseLastResponse
	}
	return nil
}

type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a *answer) etag(fromBody string) string {
	if tag := a.header.Get("ETag"); tag != "" {
		return tag
	}
	return fromBody
}

type header struct{ key, value string }

// get reads a resource. An answer that is none, though its status says that it is, is
// an error.
func (c *connection) get(ctx context.Context, uri string, headers ...header) (*answer, error) {
	a, err := c.do(ctx, http.MethodGet, uri, nil, headers...)
	switch {
	case err != nil || a.status == http.StatusNotModified:
		return a, err
	case isError(a.body):
		return nil, c.refusal(http.MethodGet, uri, a)
	case !isObject(a.body):
		return nil, c.halfAnswer(uri, "no JSON object")
	}
	return a, nil
}

// do sends one request and returns the answer, or an *Error when it is not 2xx or
// 304. body, unless nil, is sent as JSON.
func (c *connection) do(ctx context.Context, method, uri string, body any, headers ...header) (*answer, error) {
	if !strings.HasPrefix(uri, "/") { // or it would end up in the host part of the URL
		return nil, &Error{BMC: c.name, Method: method, URI: printable(uri, 100), Kind: ErrNotFound, Detail: "a Redfish URI starts with a slash"}
	}
	req, err := c.request(ctx, method, uri, body)
	if err != nil {
		return nil, &Error{BMC: c.name, Method: method, URI: printable(uri, 100), Kind: ErrNotFound, Detail: "not a URI", Err: err}
	}
	for _, h := range headers {
		req.Header.Set(h.key, h.value)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.noAnswer(ctx, method, uri, err)
	}
	a := &answer{resp.StatusCode, resp.Header, bodyOf(resp)}
	switch {
	case method != http.MethodGet && a.status/100 == 2 && isHTML(a.body): // a login page, so the outcome is unknown
		return nil, &Error{BMC: c.name, Method: method, URI: uri, Kind: ErrHalfAnswer, Detail: "no JSON object"}
	case a.status/100 == 2 || a.status == http.StatusNotModified:
		return a, nil
	}
	e := c.refusal(method, uri, a)
	if a.status == http.StatusUnauthorized && c.isBroken() {
		e.Kind = c.refusalKind(e.Kind)
	}
	return nil, e
}

func (c *sender) request(ctx context.Context, method, uri string, body any) (*http.Request, error) {
	if body == nil {
		req, err := http.NewRequestWithContext(ctx, method, c.base+uri, nil)
		if err == nil {
			setCommon(req)
		}
		return req, err
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+uri, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	setCommon(req)
	req.Header.Set("Content-Type", "application/json")
	return req, nil
}

func setCommon(req *http.Request) {
	req.Header["Accept"] = []string{"application/json"}
	req.Header["User-Agent"] = []string{"ingot"}
}

// path returns what a URI of an answer names on this BMC: its path and query.
// Some services answer with absolute URLs, or leave out the slash in front.
func path(uri string) string {
	if u, err := url.Parse(uri); err == nil && u.Host != "" && u.Scheme != "" {
		return u.RequestURI()
	}
	if relative := "redfish/"; len(uri) > len(relative) && strings.EqualFold(uri[:len(relative)], relative) {
		uri = "/" + uri
	}
	if !strings.HasPrefix(uri, "/") || strings.HasPrefix(uri, "//") {
		return ""
	}
	// What is within a resource is named behind "#/" (DSP0266 §6.5). Names of resources with
	// such a mark in them have it as it is.
	if at, inner, found := strings.Cut(uri, "#"); found && !strings.HasPrefix(inner, "/") {
		return at + "%23" + inner
	}
	return uri
}

// close logs out and drops the connections. A logout that fails is tried again after each of
// the waits, until stop is closed.
func (c *connection) close(ctx context.Context, waits []time.Duration, stop <-chan struct{}) error {
	defer c.wire.closeIdle()
	a := c.auth.Swap(nil)
	if a == nil || a.session == "" {
		return nil
	}
	err := c.logOut(ctx, a.session, a)
	for _, wait := range waits {
		if err == nil || !pauseUntil(stop, wait) {
			break
		}
		err = c.logOut(ctx, a.session, a)
	}
	if err != nil {
		return fmt.Errorf("log out: %w", err)
	}
	return nil
}

// logOut deletes a session by the credentials of a, and forgets it once it is gone. It ends in
// a short time, even if ctx has ended.
func (c *connection) logOut(ctx context.Context, session string, a *auth) error {
	ctx, cancel := context.WithTimeout(context.WithValue(context.WithoutCancel(ctx), loginKey{}, a), logoutWithin)
	defer cancel()
	if _, err := c.do(ctx, http.MethodDelete, session, nil); err != nil && !gone(err) {
		return err
	}
	c.drop(ctx, session)
	return nil
}

// pauseUntil waits for d, and reports whether it was not stopped meanwhile.
func pauseUntil(stop <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-stop:
		return false
	case <-timer.C:
		return true
	}
}

// pace is a token bucket that fills no faster than the BMC answers.
type pace struct {
	most    rate.Limit
	limiter *rate.Limiter

	mu      sync.Mutex
	average time.Duration // of the time to answer, newer ones weighing more
}

func newPace(perSecond float64) *pace {
	if perSecond <= 0 {
		return nil
	}
	burst := max(1, int(2*perSecond))
	return &pace{most: rate.Limit(perSecond), limiter: rate.NewLimiter(rate.Limit(perSecond), burst)}
}

func (p *pace) wait(ctx context.Context) error {
	if p == nil {
		return nil
	}
	return p.limiter.Wait(ctx)
}

func (p *pace) answered(took time.Duration) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.average == 0 {
		p.average = took
	}
	p.average = (4*p.average + took) / 5
	limit := min(p.most, rate.Every(p.average))
	if limit != p.limiter.Limit() {
		p.limiter.SetLimit(limit)
	}
}
