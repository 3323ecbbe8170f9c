package reconcile

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// How many moves are begun at once, and how many of those that failed when last tried. A move
// that takes long gives its worker to others, so that a BMC that hangs delays only its own
// servers: the sooner, the more of them fail, because many of those that are tried first may hang, too.
const (
	maxWorkers     = 24
	workerLimit    = 2 * time.Second
	workerLimitMin = 250 * time.Millisecond
)

// workers limit how many moves are under way.
type workers struct {
	first   chan struct{} // one entry for each move
	retries chan struct{} // one entry for each move after a failure
	failing atomic.Int64  // servers and BMCs that failed when last tried, as of the last plan
}

func newWorkers() workers {
	return workers{first: make(chan struct{}, maxWorkers), retries: make(chan struct{}, maxWorkers)}
}

// acquire waits for a worker, which is released by the caller or after some time,
// whichever is first. A retry does not wait for first attempts.
func (w *workers) acquire(ctx context.Context, again bool) (release func()) {
	slots := w.first
	if again {
		slots = w.retries
	}
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return func() {}
	}
	var once sync.Once
	done := func() { once.Do(func() { <-slots }) }
	timer := time.AfterFunc(w.yieldAfter(), done)
	return func() {
		timer.Stop()
		done()
	}
}

// yieldAfter is how long a move keeps its worker.
func (w *workers) yieldAfter() time.Duration {
	failing := time.Duration(w.failing.Load())
	return max(workerLimit*maxWorkers/(maxWorkers+failing), workerLimitMin)
}
