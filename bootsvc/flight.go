package bootsvc

import (
	"context"
	"sync"
)

// flights lets callers that want the same thing at the same time share one
// answer. The work is done in the first caller's goroutine; the zero value is
// ready to use.
type flights[K comparable, V any] struct {
	mu    sync.Mutex
	under map[K]*flight[V]
}

type flight[V any] struct {
	done      chan struct{}
	value     V
	err       error
	abandoned bool // the leader's own context ended, which says nothing of the work
}

// do returns what work returns, its own or that of a call under way. A caller
// whose leader gave up because its context ended takes over.
func (f *flights[K, V]) do(ctx context.Context, key K, work func() (V, error)) (V, error) {
	for {
		leader, lead := f.join(key)
		if lead {
			return f.lead(ctx, key, leader, work)
		}
		select {
		case <-ctx.Done():
			var none V
			return none, ctx.Err()
		case <-leader.done:
		}
		if !leader.abandoned {
			return leader.value, leader.err
		}
	}
}

// lead does the work and lands the flight, also when the work panics.
func (f *flights[K, V]) lead(ctx context.Context, key K, own *flight[V], work func() (V, error)) (V, error) {
	own.abandoned = true
	defer f.leave(key, own)
	own.value, own.err = work()
	own.abandoned = ctx.Err() != nil
	return own.value, own.err
}

// join returns the flight for key, and whether the caller is to do the work.
func (f *flights[K, V]) join(key K) (*flight[V], bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if under, ok := f.under[key]; ok {
		return under, false
	}
	if f.under == nil {
		f.under = make(map[K]*flight[V])
	}
	f.under[key] = &flight[V]{done: make(chan struct{})}
	return f.under[key], true
}

func (f *flights[K, V]) leave(key K, under *flight[V]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.under, key)
	close(under.done)
}
