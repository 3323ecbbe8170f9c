package bmc

import (
	"context"
	"net/http"
	"sync"
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
	meant func(context.Context) error // nil if the machine is still the one that is meant

	mu     sync.Mutex
	mayHad bool // one of them was written and not refused
}

// effortKey holds, in a context, the *effort that requests belong to; those with it
// that are no reads change a machine.
type effortKey struct{}

// changing returns a context for the requests of one call, and what says, when the
// call has failed, whether that is certain to have changed nothing.
func changing(ctx context.Context, meant func(context.Context) error) (context.Context, func(error) error) {
	e := &effort{meant: meant}
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

// notPermitted is why Options.Permit refused a change.
type notPermitted struct{ error }

// Unwrap returns what Options.Permit said.
func (e *notPermitted) Unwrap() error { return e.error }

func changes(req *http.Request) bool {
	_, login := req.Context().Value(loginKey{}).(*auth)
	return effortOf(req) != nil && req.Method != http.MethodGet && !login
}

func effortOf(req *http.Request) *effort {
	e, _ := req.Context().Value(effortKey{}).(*effort)
	return e
}

// transmit sends a change at most once and records whether it may have been carried out.
func (c *sender) transmit(req *http.Request) (*http.Response, error) {
	conn, err := c.wire.take(req, c.opts.freshFor)
	if err != nil {
		return nil, err
	}
	if err := c.permit(req); err != nil {
		c.wire.put(conn)
		return nil, err
	}
	fault.Point(fault.BeforeBMC)
	resp, err := c.wire.exchange(conn, req)
	fault.Point(fault.AfterBMC)
	effortOf(req).add(err != nil || !refusesChange(resp.StatusCode))
	return resp, err
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
