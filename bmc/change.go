package bmc

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"ingot/model/fault"
)

// Requests that change a machine are sent at most once each: nobody can tell a
// restart whose answer was lost from one that was never begun, so neither net/http
// nor this package repeats one that may have been received. What is known of it in
// the end is all that the caller has to go by; see notCarriedOut.

// freshFor is how long a connection may have been idle for a change to be sent on it.
// A BMC closes idle ones without a word (some after 5 s), and a change that meets such
// a connection is lost in the way that leaves its outcome unknown.
const freshFor = 2 * time.Second

// effort is what one call asked of a machine, in one or more requests.
type effort struct {
	mu     sync.Mutex
	mayHad bool // one of them was written and not refused
}

// effortKey holds, in a context, the *effort that requests belong to; those with it
// that are no reads change a machine.
type effortKey struct{}

// changing returns a context for the requests of one call, and what says, when the
// call has failed, whether that is certain to have changed nothing.
func changing(ctx context.Context) (context.Context, func(error) error) {
	e := new(effort)
	return context.WithValue(ctx, effortKey{}, e), e.judge
}

func (e *effort) judge(err error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil || e.mayHad {
		return err
	}
	return &notCarriedOut{err}
}

func (e *effort) add(mayHad bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mayHad = e.mayHad || mayHad
}

// notCarriedOut is an error of a call that changed nothing.
type notCarriedOut struct{ error }

// Unwrap returns the error itself.
func (e *notCarriedOut) Unwrap() error { return e.error }

// NotCarriedOut says that the call is certain to have changed nothing: nothing was sent, for
// want of a connection, a login or the permission to, or the BMC refused it with a status
// from 400 on, but for 408. After any other error, such as no answer in time, a connection
// that broke, or a status from 500 on, the outcome is unknown: the machine has to be looked
// at before it is asked again.
func (*notCarriedOut) NotCarriedOut() bool { return true }

// refusesChange reports whether an answer says that nothing was done (RFC 9110 §15.5).
// After a 408 the BMC may have had all of the request.
func refusesChange(status int) bool {
	return status/100 == 4 && status != http.StatusRequestTimeout
}

// change is one request that changes a machine, on its way to the connection.
type change struct {
	permit func() error

	mu      sync.Mutex
	stage   changeStage
	refused error // why it was not written
}

// changeStage is how far a change has come.
type changeStage int

const (
	changeWaits   changeStage = iota
	changeOver                // it was not written and will not be
	changeWritten             // at least its beginning may have been
)

// errOver stops a change from being written once no caller waits for its answer.
var errOver = errors.New("the request was given up before it was sent")

// errStale keeps a change from being written on a connection that the BMC may have
// closed already.
var errStale = errors.New("the connection was idle for too long")

// notPermitted is why Options.Permit refused a change.
type notPermitted struct{ error }

// Unwrap returns what Options.Permit said.
func (e *notPermitted) Unwrap() error { return e.error }

// changes reports whether the request changes a machine.
func changes(req *http.Request) bool {
	_, login := req.Context().Value(loginKey{}).(*auth)
	return effortOf(req) != nil && req.Method != http.MethodGet && !login
}

func effortOf(req *http.Request) *effort {
	e, _ := req.Context().Value(effortKey{}).(*effort)
	return e
}

// transmit sends a change at most once and notes whether it may have been carried out.
func (c *sender) transmit(req *http.Request) (*http.Response, error) {
	for {
		ch := &change{permit: func() error { return c.permit(req) }}
		resp, err := c.transmitOnce(req, ch)
		written, refused := ch.end()
		switch {
		case errors.Is(refused, errStale) && req.Context().Err() == nil:
			c.wire.CloseIdleConnections() // of which there are few, so this ends
			continue
		case refused != nil:
			return nil, refused
		}
		if written {
			fault.Point(fault.AfterBMC)
		}
		effortOf(req).add(written && (err != nil || !refusesChange(resp.StatusCode)))
		return resp, err
	}
}

// permit returns why a change that has its connection is not to be written after all.
func (c *sender) permit(req *http.Request) error {
	ctx := req.Context()
	if c.opts.Permit != nil {
		if err := c.opts.Permit(ctx, c.target, req.URL.RequestURI()); err != nil {
			return &notPermitted{err}
		}
	}
	return context.Cause(ctx) // nobody may wait any more
}

// transmitOnce has the connection that net/http chooses ask ch before it writes the
// first byte. Without GetBody, net/http repeats no request that has a body.
func (c *sender) transmitOnce(req *http.Request, ch *change) (*http.Response, error) {
	req = req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			if info.WasIdle && info.IdleTime > c.opts.freshFor {
				ch.giveUp(errStale)
			}
			info.Conn.(*guarded).next.Store(ch)
		},
	}))
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		req.Body, req.GetBody = body, nil
	}
	return c.exchange(req)
}

// begin is called before the first byte is written. An error keeps it from being.
func (ch *change) begin() error {
	if err := ch.waits(); err != nil {
		return err
	}
	if err := ch.permit(); err != nil {
		ch.giveUp(err)
		return err
	}
	fault.Point(fault.BeforeBMC)
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.stage != changeWaits { // while it was waiting for permission
		return errOver
	}
	ch.stage = changeWritten
	return nil
}

// waits returns nil while the change may still be written.
func (ch *change) waits() error {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.stage != changeWaits {
		return cmp.Or(ch.refused, errOver)
	}
	return nil
}

// giveUp keeps the change from being written, for the reason given.
func (ch *change) giveUp(why error) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.stage == changeWaits {
		ch.stage, ch.refused = changeOver, why
	}
}

// end keeps the change from being written from now on, and returns whether it may
// have been, or else why it was refused, if it was.
func (ch *change) end() (written bool, refused error) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.stage == changeWaits { // the connection may still be about to write it
		ch.stage = changeOver
	}
	return ch.stage == changeWritten, ch.refused
}

// guarded is a connection to a BMC. Where it is one with TLS, net/http does not know
// it for one: what it would note of each is not used here and large.
type guarded struct {
	net.Conn
	next atomic.Pointer[change] // which the next write begins, nil = none
}

// Write implements net.Conn.
func (g *guarded) Write(b []byte) (int, error) {
	if ch := g.next.Swap(nil); ch != nil {
		if err := ch.begin(); err != nil {
			return 0, err
		}
	}
	return g.Conn.Write(b)
}
