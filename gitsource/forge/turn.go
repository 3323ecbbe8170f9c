package forge

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"ingot/model"
)

const (
	// maxBodies is how many bodies are read at the same time: of strangers too, because a
	// signature is of the whole body.
	maxBodies = 32
	// maxClientBodies is how many of them are of one client, so that a stranger who sends
	// nothing does not keep the forge waiting.
	maxClientBodies = maxBodies / 4
	// busyTimeout is how long a request waits for its turn.
	busyTimeout = 5 * time.Second
)

// turns says when a body may be read.
type turns struct {
	all chan struct{} // has one element for each body that is read

	mu       sync.Mutex
	byClient map[netip.Addr]*share
}

// share is what one client has of all turns.
type share struct {
	taken    chan struct{} // has one element for each of its bodies that is or will soon be read
	requests int           // that use or wait for it
}

func newTurns() *turns {
	return &turns{all: make(chan struct{}, maxBodies), byClient: make(map[netip.Addr]*share)}
}

// take waits until a body of a client may be read. It returns false if that takes too long.
func (t *turns) take(ctx context.Context, client netip.Addr) (done func(), ok bool) {
	ctx, cancel := context.WithTimeout(ctx, busyTimeout)
	defer cancel()
	client = model.OneClient(client)
	limit := maxClientBodies
	if client.IsLoopback() {
		limit = maxBodies // a proxy on this machine acts for many clients
	}
	mine := t.join(client, limit)
	if !enter(ctx, mine.taken) {
		t.leave(client)
		return nil, false
	}
	if !enter(ctx, t.all) {
		<-mine.taken
		t.leave(client)
		return nil, false
	}
	return func() {
		<-t.all
		<-mine.taken
		t.leave(client)
	}, true
}

// enter waits for room in a channel. It returns false if ctx ends before.
func enter(ctx context.Context, room chan<- struct{}) bool {
	select {
	case room <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// join returns the share of a client, which is kept until all its requests have left.
func (t *turns) join(client netip.Addr, limit int) *share {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.byClient[client]
	if s == nil {
		s = &share{taken: make(chan struct{}, limit)}
		t.byClient[client] = s
	}
	s.requests++
	return s
}

func (t *turns) leave(client netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.byClient[client]
	if s.requests--; s.requests == 0 {
		delete(t.byClient, client)
	}
}
