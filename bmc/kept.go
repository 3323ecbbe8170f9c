package bmc

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"ingot/model"
)

// A Session is a Redfish session that is open on a BMC.
type Session struct {
	URI   string
	Token model.Sensitive
}

// Sessions remembers sessions over a restart. A process that is killed cannot log out,
// and after as many kills as a BMC has sessions nobody could log in for half an hour.
type Sessions interface {
	// Kept returns the sessions kept of a BMC, the oldest first.
	Kept(bmc model.BMCName) []Session
	Keep(ctx context.Context, bmc model.BMCName, s Session) error
	// Drop forgets a session. That it is not kept is no error.
	Drop(ctx context.Context, bmc model.BMCName, uri string) error
}

// maxKept bounds the sessions that are looked at, and maxDeleted those that are deleted
// at once. A BMC has some 4 to 64 of them.
const (
	maxKept    = 16
	maxDeleted = 8
)

func (c *connection) kept() []Session {
	if c.opts.Sessions == nil {
		return nil
	}
	var newest []Session
	all := c.opts.Sessions.Kept(c.target.Name)
	for i := len(all) - 1; i >= 0 && len(newest) < maxKept; i-- {
		if s := all[i]; path(s.URI) != "" && s.Token.Reveal() != "" {
			newest = append(newest, s)
		}
	}
	return newest
}

// auth is how requests are signed within the session. It says nothing of the password.
func (s Session) auth() *auth {
	a := &auth{token: s.Token.Reveal(), session: path(s.URI)}
	a.proven.Store(true)
	return a
}

// resume returns the newest kept session that the BMC still knows, after deleting the
// others, or nil if there is none. Only credentials that the BMC accepted before are resumed
// with, because a session does not prove others. The caller holds the login lock.
func (c *connection) resume(ctx context.Context, svc *service) (*auth, error) {
	if c.resumed || c.trial.Load() || !c.target.Accepted.Here {
		return nil, nil
	}
	all := c.kept()
	for i, s := range all {
		_, err := c.get(context.WithValue(ctx, loginKey{}, s.auth()), cmp.Or(svc.systems, path(s.URI)))
		switch {
		case err == nil:
			c.resumed = true
			c.log.Debug("a kept session is used again", "uri", s.URI)
			c.deleteKept(ctx, all[i+1:], s.auth())
			return s.auth(), nil
		case statusOf(err) == http.StatusUnauthorized:
			c.drop(ctx, s.URI)
		case statusOf(err) == 0 && !errors.Is(err, ErrHalfAnswer): // there is no answer
			return nil, err
		}
	}
	c.resumed = true
	return nil, nil
}

func gone(err error) bool {
	status := statusOf(err)
	return status == http.StatusUnauthorized || status == http.StatusNotFound || status == http.StatusGone
}

// deleteKept deletes sessions, as well as that can be had in a short time, and returns
// how many. They are deleted by a, or each by itself if that is nil.
func (c *connection) deleteKept(ctx context.Context, sessions []Session, a *auth) (deleted int) {
	ctx, cancel := context.WithTimeout(ctx, logoutWithin)
	defer cancel()
	if len(sessions) > 0 {
		c.quiet.Store(0) // one that has no session free asks to be left alone, which this helps
	}
	for _, s := range sessions[:min(len(sessions), maxDeleted)] {
		by := a
		if by == nil {
			by = s.auth()
		}
		_, err := c.do(context.WithValue(ctx, loginKey{}, by), http.MethodDelete, path(s.URI), nil)
		switch {
		case err == nil:
			deleted++
			c.drop(ctx, s.URI)
		case gone(err):
			c.drop(ctx, s.URI)
		case ctx.Err() != nil:
			return deleted
		}
	}
	return deleted
}

func (c *connection) keep(ctx context.Context, a *auth) {
	if c.opts.Sessions == nil || a.session == "" || a.token == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), logoutWithin)
	defer cancel()
	if err := c.opts.Sessions.Keep(ctx, c.target.Name, Session{URI: a.session, Token: model.NewSensitive(a.token)}); err != nil {
		c.log.Warn("a session is not remembered; if this process is killed it stays open on the BMC", "err", err)
	}
}

func (c *connection) drop(ctx context.Context, uri string) {
	if c.opts.Sessions == nil || uri == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), logoutWithin)
	defer cancel()
	if err := c.opts.Sessions.Drop(ctx, c.target.Name, uri); err != nil {
		c.log.Warn("a closed session is not forgotten", "err", err)
	}
}
