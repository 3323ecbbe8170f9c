package bmc

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"ingot/model"
)

// auth is how requests are signed. It does not change; a new login makes a new one.
type auth struct {
	token   string      // of the session
	session string      // its URI
	basic   bool        // HTTP Basic instead
	until   time.Time   // of HTTP Basic: when to ask for a session again
	proven  atomic.Bool // it was accepted
}

func (a *auth) sign(req *http.Request, c *sender) {
	switch {
	case a == nil:
	case a.token != "":
		req.Header["X-Auth-Token"] = []string{a.token}
	case a.basic:
		req.SetBasicAuth(c.target.Username, c.target.Password.Reveal())
	}
}

// expired reports whether it is time to ask for a session again.
func (a *auth) expired(now time.Time) bool { return !a.until.IsZero() && now.After(a.until) }

// A BMC that opens no session is asked for one after sessionFails, because a BMC that starts opens none either. After
// noToken it is asked again if its sessions have no token: that ends with an update of its firmware, and each such session
// may stay open.
const (
	sessionFails = 10 * time.Minute
	noToken      = time.Hour
)

// sessionFull is how long no further session is asked for when the BMC has no
// more and does not say when it will.
const sessionFull = time.Minute

// defaultSessions is where sessions are made (DSP0266 §13.3.4.3).
const defaultSessions = "/redfish/v1/SessionService/Sessions"

// authorized returns the credentials to use, after logging in if need be. A session goes on
// whatever becomes of the password.
func (c *connection) authorized(ctx context.Context) (*auth, error) {
	if a := c.auth.Load(); a != nil && (a.token != "" || !c.isBroken()) && !a.expired(c.opts.Clock()) {
		return a, nil
	}
	return c.authorizedAfter(ctx, nil)
}

// authorizedAfter returns credentials other than stale, which were refused. There
// is one login at a time; who waited for another's uses what came of it.
func (c *connection) authorizedAfter(ctx context.Context, stale *auth) (*auth, error) {
	unlock, err := c.lockLogin(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if c.isBroken() {
		return nil, c.circuitOpen()
	}
	a := c.auth.Load()
	switch expired := a != nil && a.expired(c.opts.Clock()); {
	case a != nil && a != stale && !expired:
		return a, nil
	case stale != nil && stale.basic && !expired:
		return stale, nil
	case stale != nil || expired:
		c.auth.Store(nil)
		c.service.Store(nil) // the BMC may have come back with another firmware, or was starting
	}
	a, err = c.logIn(ctx)
	if errors.Is(err, ErrBusy) && c.makeRoom(ctx, stale) {
		a, err = c.logIn(ctx)
	}
	if errors.Is(err, ErrSessionsFull) && statusOf(err) != 0 {
		a, err = c.byPassword(ctx, c.service.Load(), err)
	}
	if err != nil {
		return nil, err
	}
	c.auth.Store(a)
	if stale != nil && stale.session != a.session {
		c.endStale(ctx, stale)
	}
	return a, nil
}

// makeRoom ends a session that was refused, on a BMC that has none free, and reports whether it
// may have one now.
func (c *connection) makeRoom(ctx context.Context, stale *auth) bool {
	asked := c.quiet.Swap(0) // it asks to be left alone, which this helps
	if !c.endStale(ctx, stale) {
		c.quiet.CompareAndSwap(0, asked)
		return false
	}
	c.full.until = time.Time{}
	return true
}

// endStale deletes a session that was refused, and reports whether that was tried and nothing
// spoke against it. Some BMCs answer 401 now and then to one that is still open (B14), which would
// take up one of the few that they have. It is deleted by its own token: a BMC that was restarted
// may have given its name to a session of somebody else.
func (c *connection) endStale(ctx context.Context, stale *auth) bool {
	if stale == nil || stale.session == "" {
		return false
	}
	err := c.logOut(ctx, stale.session, stale)
	if err != nil {
		c.log.Debug("a session that was refused may be left open on the BMC", "err", err)
	}
	return err == nil
}

// lockLogin waits until no other call logs in or reads the service root.
func (c *connection) lockLogin(ctx context.Context) (unlock func(), err error) {
	select {
	case c.login <- struct{}{}:
		return func() { <-c.login }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// logIn opens a session, or settles for HTTP Basic where there are none. The
// caller holds the login lock.
func (c *connection) logIn(ctx context.Context) (*auth, error) {
	svc, err := c.rootLocked(ctx)
	if err != nil {
		return nil, err
	}
	if svc.sessions == "" {
		c.log.Info("the BMC has no sessions; every request carries the password")
		return c.basicFor(sessionFails), nil
	}
	if rest := c.full.until.Sub(c.opts.Clock()); rest > 0 {
		return nil, &Error{BMC: c.name, Method: http.MethodPost, URI: svc.sessions, Kind: c.full.kind, RetryAfter: rest, Detail: "no login is tried yet"}
	}
	if a, err := c.resume(ctx, svc); a != nil || err != nil {
		return a, err
	}
	if !c.target.Default && !c.acceptance().Here {
		end, err := c.breaker.turn(ctx, c.creds)
		if err != nil {
			return nil, err
		}
		defer end()
		if c.isBroken() { // for what another BMC said meanwhile
			return nil, c.circuitOpen()
		}
	}
	a, err := c.openSession(ctx, svc)
	if errors.Is(err, ErrBusy) && c.deleteKept(ctx, c.kept(), nil) > 0 {
		a, err = c.openSession(ctx, svc) // there is room now
	}
	switch {
	case err == nil:
		if !c.resumed {
			c.resumed = true
			c.deleteKept(ctx, c.kept(), nil)
		}
		c.keep(ctx, a)
		return a, nil
	case errors.Is(err, ErrPasswordChange), errors.Is(err, ErrUpdating):
		return nil, err
	case refusedLogin(err):
		c.refused()
		asError(err).Kind = c.refusalKind(asError(err).Kind)
	case errors.Is(err, ErrBusy):
		after, ok := RetryAfter(err)
		if !ok {
			after = sessionFull
		}
		c.full.until, c.full.kind = c.opts.Clock().Add(after), asError(err).Kind
	case statusOf(err)/100 == 4 || statusOf(err) == http.StatusNotImplemented:
		c.log.Info("the BMC opens no session; every request carries the password for a while", "err", err)
		return c.basicFor(sessionFails), nil
	case statusOf(err) == http.StatusInternalServerError:
		return c.byPassword(ctx, svc, err)
	}
	return nil, err
}

func (c *connection) basicFor(d time.Duration) *auth {
	return &auth{basic: true, until: c.opts.Clock().Add(d)}
}

// byPassword returns HTTP Basic for a while if the BMC takes that, else the error of the login. A refusal does not mean that the
// password is wrong, because the BMC may not support HTTP Basic. It is not tried again for a while, because a wrong password
// locks the account.
func (c *connection) byPassword(ctx context.Context, svc *service, failed error) (*auth, error) {
	now := c.opts.Clock()
	if now.Before(c.noBasic) {
		return nil, failed
	}
	asked := c.quiet.Swap(0) // a BMC without a free session asks to be left alone, although this needs none
	a := c.basicFor(sessionFails)
	_, err := c.get(context.WithValue(ctx, loginKey{}, a), cmp.Or(svc.systems, svc.managers, "/redfish/v1/Systems"))
	if err == nil {
		c.log.Info("the BMC fails to open a session; every request carries the password for a while", "err", failed)
		return a, nil
	}
	c.quiet.CompareAndSwap(0, asked)
	switch {
	case !refusedLogin(err):
	case c.acceptance().Here:
		c.noBasic = now.Add(model.RefusedPause)
	default:
		c.noBasic = a.until
	}
	return nil, failed
}

// openSession asks for a session, and once more to be sure that it is refused.
func (c *connection) openSession(ctx context.Context, svc *service) (*auth, error) {
	// Where each attempt counts, one request has everything that any BMC requires.
	trial := c.trial.Load() || c.acceptance().Refused.Count > 0
	a, err := c.postSession(ctx, svc, trial)
	if refusedLogin(err) && !trial {
		// Confirm: some answer 401 now and then (B14), and some want the password
		// in the header of this request too.
		a, err = c.postSession(ctx, svc, true)
	}
	return a, err
}

// refusedLogin reports whether a login failed because of the credentials.
func refusedLogin(err error) bool {
	e := asError(err)
	if e == nil || errors.Is(err, ErrSessionsFull) || errors.Is(err, ErrPasswordChange) {
		return false
	}
	switch e.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return true
	case http.StatusBadRequest: // iLO 4
		return e.says("UnauthorizedLoginAttempt")
	}
	return false
}

func (c *connection) isBroken() bool {
	return c.breaker.open(c.creds, c.target.Name, c.target.Default)
}

// acceptance returns what the BMC answered before to the credentials, if it accepted them last.
func (c *connection) acceptance() model.Acceptance {
	return c.breaker.acceptance(c.creds, c.target.Name)
}

// refusalKind is ErrRefusedForNow for credentials that the BMC accepted before, otherwise kind.
func (c *connection) refusalKind(kind error) error {
	if c.acceptance().Here {
		return ErrRefusedForNow
	}
	return kind
}

func (c *connection) circuitOpen() error {
	return &Error{BMC: c.name, Method: http.MethodPost, URI: defaultSessions, Kind: c.refusalKind(ErrCircuitOpen)}
}

// refused opens the circuit breaker: the BMC refused the credentials for certain.
func (c *connection) refused() {
	c.auth.Store(nil)
	c.service.Store(nil) // of a BMC that starts it may lack the sessions
	until := c.breaker.refuse(c.creds, c.target.Name, c.target.Default)
	c.log.Warn("the BMC refuses the credentials; they are not tried again for a while", "until", until)
}

// postSession opens a session. An answer without a token means that requests are
// signed otherwise.
func (c *connection) postSession(ctx context.Context, svc *service, signed bool) (*auth, error) {
	body := map[string]any{"UserName": c.target.Username, "Password": c.target.Password.Reveal()}
	if svc.huawei {
		body["Oem"] = map[string]any{"Huawei": map[string]any{"Domain": "LocaliBMC"}}
	}
	var sign *auth
	if signed {
		sign = &auth{basic: true}
	}
	// The session of a login that was begun would be left open if its answer were not awaited.
	lasting, cancel := outlasting(ctx, logoutWithin)
	defer cancel()
	a, err := c.do(context.WithValue(lasting, loginKey{}, sign), http.MethodPost, svc.sessions, body)
	if err != nil {
		return nil, err
	}
	token := a.header.Get("X-Auth-Token")
	if token == "" {
		if uri := sessionURI(a); uri != "" { // it would take up one of the few that there are
			if err := c.logOut(ctx, uri, &auth{basic: true}); err != nil {
				c.log.Warn("a session without a token is left open on the BMC", "err", err)
			}
		}
		c.log.Info("the BMC opens sessions without a token; every request carries the password")
		return c.basicFor(noToken), nil
	}
	c.counted.sessions.Add(1)
	c.metrics.sessions.Inc()
	c.breaker.accept(c.creds, c.target.Name)
	return &auth{token: token, session: sessionURI(a)}, nil
}

// outlasting returns a context that ends so much later than ctx does.
func outlasting(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(by, cancel) })
	return lasting, func() { stop(); cancel() }
}

// sessionURI returns where the session is deleted: the header Location, or for
// services that leave it out the resource that was answered.
func sessionURI(a *answer) string {
	location := a.header.Get("Location")
	if location == "" {
		session, _, err := decode[link](a.body)
		if err != nil {
			return ""
		}
		return path(session.ID)
	}
	u, err := url.Parse(location)
	if err != nil || !strings.HasPrefix(u.Path, "/") {
		return ""
	}
	return u.RequestURI()
}
