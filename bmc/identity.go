package bmc

import (
	"context"
	"fmt"
	"net/http"

	"ingot/model"
)

// identify reads a machine, whatever its ETag says, and returns what it shows if it is
// the one that is meant: blades are swapped, and BMCs given other addresses, between one
// request and the next.
func (c *reader) identify(ctx context.Context, t model.SystemTarget) (SystemState, error) {
	sys, _, err := c.readSystem(ctx, t.URI)
	if err != nil {
		return SystemState{}, err
	}
	shown := sys.shown()
	return shown, c.meant(t, shown)
}

// identity returns what the machine shows if it is the one that is meant, as identify does. An answer that came less
// than freshFor ago counts if a change may still be sent over its connection: so it is of the same BMC, and blades
// are not swapped in two seconds. A machine that may only have a power button is read, because a press has another
// effect in each power state.
func (c *reader) identity(ctx context.Context, t model.SystemTarget) (SystemState, error) {
	if s := c.state(t.URI); s.known && !s.mayPress() && c.counts(s.seen, c.opts.freshFor) && c.meant(t, s.shown) == nil {
		return s.shown, nil
	}
	return c.identify(ctx, t)
}

// identityOfWrite returns what the machine showed after its boot override was written a moment ago, else it reads the machine.
func (c *reader) identityOfWrite(ctx context.Context, t model.SystemTarget) (SystemState, error) {
	if !c.state(t.URI).seen.written {
		return c.identify(ctx, t)
	}
	return c.identity(ctx, t)
}

// meant returns why what was read at t is not the machine that is meant, nil if it is.
// One that does not say now what it said before may be any.
func (c *reader) meant(t model.SystemTarget, s SystemState) error {
	want, got, what := t.UUID, s.UUID, "UUID"
	if t.UUID == "" {
		want, got, what = t.Board.SerialNumber, s.Board.SerialNumber, "serial number"
		if want == got {
			want, got, what = t.Board.Model, s.Board.Model, "model"
		}
	}
	switch {
	case want == "" || want == got:
		return nil
	case got == "":
		return c.notMeant(t.URI, ErrNoIdentity, fmt.Sprintf("it shows no %s, and that of the server is %s", what, want))
	}
	return c.notMeant(t.URI, ErrOtherMachine, fmt.Sprintf("its %s is %s, and that of the server is %s", what, got, want))
}

func (c *reader) notMeant(uri string, kind error, detail string) error {
	return &Error{BMC: c.name, Method: http.MethodGet, URI: uri, Kind: kind, Detail: detail}
}

// lockSystem waits until no other call changes the system.
func (c *client) lockSystem(ctx context.Context, uri string) (unlock func(), err error) {
	c.mu.Lock()
	turn := c.turns[uri]
	if turn == nil {
		turn = make(chan struct{}, 1)
		c.turns[uri] = turn
	}
	c.mu.Unlock()
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// identification is how a machine is identified before a change.
type identification = func(*reader, context.Context, model.SystemTarget) (SystemState, error)

// changeSystem changes a machine by do, if it is the one that is meant. Other changes of it wait meanwhile. do receives
// the state that read, which is identify or identity, returns.
func (p *Pool) changeSystem(ctx context.Context, t model.SystemTarget, read identification, do func(context.Context, *client, SystemState) error) error {
	c, err := p.client(ctx, t.BMC)
	if err != nil {
		return err
	}
	unlock, err := c.lockSystem(ctx, t.URI)
	if err != nil {
		return err
	}
	defer unlock()
	ctx, judge := changing(ctx, func(ctx context.Context) error {
		_, err := c.identify(ctx, t)
		return err
	})
	s, err := read(c.reader, ctx, t)
	if err == nil {
		err = do(ctx, c, s)
	}
	return judge(err)
}
