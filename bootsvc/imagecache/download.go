package imagecache

import (
	"context"
	"os"
	"sync"

	"ingot/bootsvc/cachedir"
)

// holdback is how much of a blob's end is given out only when all of it is verified.
// A client that lacks it knows that its copy is incomplete.
const holdback = 64 << 10

// download is one blob on its way from its registry to the disk, however many want it.
type download struct {
	key    Key
	refs   *refs
	cancel context.CancelCauseFunc

	started chan struct{} // closed when it waits for its turn no more
	ready   chan struct{} // closed when its first bytes can come, or it has ended
	ended   chan struct{} // closed when it has ended

	mu       sync.Mutex
	part     *os.File      // what it writes; nil until it fetches
	arrived  int64         // how many bytes of part are there
	verified bool          // all bytes are there and are right
	err      error         // why it ended, or nil
	changed  chan struct{} // closed when any of these has changed; nil when nobody waits
}

func newDownload(key Key, e *cachedir.Entry) *download {
	e.Users.Add(1)
	return &download{
		key:     key,
		refs:    &refs{entry: e, n: 1}, // itself, until it ends
		started: make(chan struct{}),
		ready:   make(chan struct{}),
		ended:   make(chan struct{}),
	}
}

// refs counts the readers of one download or open file, guarded by Cache.mu. The file that a download writes stays
// open as long as it has readers.
type refs struct {
	entry *cachedir.Entry
	n     int
	part  *os.File
}

func (f *download) begin(part *os.File) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.part = part
}

func (f *download) advance(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.arrived += int64(n)
	f.notify()
}

func (f *download) verify() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.verified = true
	f.notify()
}

// end says how the download ended. What the disk failed to keep is not vouched for.
func (f *download) end(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
	f.verified = f.verified && err == nil
	f.notify()
	close(f.ended) // first, so that whom open lets in knows that there is nothing to follow
	f.markReady()
}

// markReady lets those in who wait for the first bytes. It is called by the download's own
// goroutine alone.
func (f *download) markReady() {
	select {
	case <-f.ready:
	default:
		close(f.ready)
	}
}

// isReady reports whether the first bytes could come.
func (f *download) isReady() bool {
	select {
	case <-f.ready:
		return true
	default:
		return false
	}
}

// notify wakes those who wait for a change; mu is held.
func (f *download) notify() {
	if f.changed != nil {
		close(f.changed)
		f.changed = nil
	}
}

// state returns up to where the blob may be read, what signals a change, and why there
// will be no more.
func (f *download) state() (upTo int64, changed <-chan struct{}, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	upTo = max(0, min(f.arrived, f.key.Size-holdback))
	if f.verified {
		upTo = f.key.Size
	}
	if f.changed == nil {
		f.changed = make(chan struct{})
	}
	return upTo, f.changed, f.err
}

// await returns how many bytes may be read from pos on, once there are any. It gives
// up when left is closed.
func (f *download) await(pos int64, left <-chan struct{}) (int64, error) {
	for {
		upTo, changed, err := f.state()
		switch {
		case pos < upTo:
			return upTo - pos, nil
		case err != nil:
			return 0, err
		}
		select {
		case <-changed:
		case <-left:
			return 0, errLeft
		}
	}
}

// readAt reads from pos on as soon as there is something.
func (f *download) readAt(p []byte, pos int64, left <-chan struct{}) (int, error) {
	n, err := f.await(pos, left)
	if err != nil {
		return 0, err
	}
	return f.part.ReadAt(p[:min(n, int64(len(p)))], pos)
}

// fetching reports whether it came to fetch, rather than find the blob on disk.
func (f *download) fetching() bool {
	select {
	case <-f.started:
		return true
	default:
		return false
	}
}

func (f *download) progress() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.arrived
}
