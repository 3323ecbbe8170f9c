package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	maxViewers = 1000
	// eventPause is how long changes are gathered before they are sent. All viewers share the
	// documents of that time.
	eventPause = 300 * time.Millisecond
	// heartbeat is how often each viewer gets a comment, so that proxies keep the connection and a
	// viewer that is gone is noticed.
	heartbeat = 15 * time.Second
	// eventTimeout is how long a viewer may take to read an event.
	eventTimeout = 10 * time.Second
	// streamLife is how long one stream lasts. Clients reconnect; one that does not read, though its
	// connection takes the data, does not keep its place for ever.
	streamLife = time.Hour
	// viewersRetry is when a client may come again if there are too many.
	viewersRetry = 30 * time.Second
)

const (
	eventHello  = "hello"  // the stream begins here
	eventChange = "change" // the changes since the event before
	eventReload = "reload" // load everything again: the changes are unknown, or too many
)

// events sends changes as server-sent events. The state of a viewer is only the generation that it
// was sent: there is no queue, and a viewer that does not read delays no other.
type events struct {
	index   *Index
	changed func() <-chan struct{}
	closing <-chan struct{} // nil = never
	viewers chan struct{}   // one for each

	mu       sync.Mutex // guards the fields below
	looked   time.Time  // just before the index was read last
	at       uint64     // the generation then
	outdated <-chan struct{}
	written  map[uint64][]byte // events that lead to at, by the generation from which
}

func newEvents(index *Index, changed func() <-chan struct{}, closing <-chan struct{}) *events {
	return &events{index: index, changed: changed, closing: closing, viewers: make(chan struct{}, maxViewers)}
}

// ServeHTTP answers GET /api/v1/events.
func (e *events) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case e.viewers <- struct{}{}:
		defer func() { <-e.viewers }()
	default:
		w.Header().Set("Retry-After", strconv.Itoa(int(viewersRetry.Seconds())))
		writeText(w, http.StatusServiceUnavailable, fmt.Sprintf("%d clients read events, which is the limit: try again later, or poll /api/v1/fleet\n", maxViewers))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // of nginx, which would gather events
	if r.Method == http.MethodHead {
		return
	}
	v := &viewer{w: w, c: http.NewResponseController(w), events: e, at: e.seen(r.Header.Get("Last-Event-ID"))}
	ctx, cancel := context.WithTimeout(r.Context(), streamLife)
	defer cancel()
	v.watch(ctx)
}

// seen returns the generation that a client got last: 0 for a new client, unknown for an event of
// another process.
func (e *events) seen(id string) uint64 {
	if id == "" {
		return 0
	}
	process, number, _ := strings.Cut(id, "-")
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil || process != e.index.process || n == 0 {
		return unknown
	}
	return n
}

// unknown is a generation that never exists.
const unknown = ^uint64(0)

// current returns the newest generation, and a channel that is closed once there may be a newer one.
// All viewers share it for eventPause: a thousand viewers cause as many reports as one.
func (e *events) current(now time.Time) (uint64, <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	kept := heartbeat
	if isClosed(e.outdated) {
		kept = eventPause
	}
	if e.at != 0 && now.Sub(e.looked) < kept {
		return e.at, e.outdated
	}
	e.looked, e.outdated = now, e.changed() // first, or a change in between would be missed
	if _, at := e.index.Now(); at != e.at {
		e.at, e.written = at, make(map[uint64][]byte)
	}
	return e.at, e.outdated
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// event returns the event that leads from one generation to another.
func (e *events) event(from, to uint64) []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.at != to {
		return e.write(from, to)
	}
	text := e.written[from]
	if text == nil {
		text = e.write(from, to)
		if len(e.written) < maxHistory { // clients may claim any generation
			e.written[from] = text
		}
	}
	return text
}

func (e *events) write(from, to uint64) []byte {
	kind, changes := eventReload, []change{}
	if from == 0 {
		kind = eventHello
	} else if all, known := e.index.since(from, to); known {
		kind, changes = eventChange, all
	}
	data, err := json.Marshal(map[string][]change{"changes": changes})
	if err != nil {
		kind, data = eventReload, []byte(`{"changes":[]}`)
	}
	return fmt.Appendf(nil, "id: %s\nevent: %s\ndata: %s\n\n", strings.Trim(e.index.tag(to), `"`), kind, data)
}

type viewer struct {
	*events
	w  http.ResponseWriter
	c  *http.ResponseController
	at uint64 // generation that it got last
}

// watch sends events until ctx ends, the listener closes, or the client does not read.
func (v *viewer) watch(ctx context.Context) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	if !v.send([]byte("retry: 2000\n\n")) {
		return
	}
	for {
		now, outdated := v.current(time.Now())
		if now != v.at {
			if !v.send(v.event(v.at, now)) {
				return
			}
			v.at = now
		}
		select {
		case <-outdated:
			if !pause(ctx, v.closing, eventPause) {
				return
			}
		case <-beat.C:
			if !v.send([]byte(": still here\n\n")) {
				return
			}
		case <-ctx.Done():
			return
		case <-v.closing:
			return
		}
	}
}

// send sends to the client, and reports whether it was sent in time.
func (v *viewer) send(text []byte) bool {
	if err := v.c.SetWriteDeadline(time.Now().Add(eventTimeout)); err != nil {
		return false
	}
	if _, err := v.w.Write(text); err != nil {
		return false
	}
	return v.c.Flush() == nil
}

// pause waits, and reports whether it waited to the end.
func pause(ctx context.Context, closing <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-closing:
	}
	return false
}
