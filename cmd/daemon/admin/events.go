package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"ingot/reconcile/report/query"
)

// Limits of events.
const (
	maxViewers = 1000
	// eventPause is how long changes are gathered before they are told, and how long at least
	// viewers share rows, however much changes.
	eventPause = 300 * time.Millisecond
	rowsKept   = eventPause
	// heartbeat is how often a viewer hears something whatever happens, so that proxies keep
	// the connection and a viewer that is gone is noticed.
	heartbeat = 15 * time.Second
	// eventTimeout is how long a viewer may take to read what it is sent.
	eventTimeout = 10 * time.Second
	// streamLife is how long one stream lasts. A viewer comes again, one that does not read
	// though its connection takes what it is sent does not keep its place for ever.
	streamLife = time.Hour
	// maxTold is how many changes one event tells of; with more, all is looked at anew.
	maxTold = 500
	// maxKeptEvents is how many events are kept for others who were told of the same: viewers
	// may say that they were told of anything.
	maxKeptEvents = 64
	// viewersRetry is when those for whom there is no room may come again.
	viewersRetry = 30 * time.Second
)

// The kinds of events.
const (
	eventHello  = "hello"  // the stream begins here
	eventChange = "change" // what changed since the event before
	eventReload = "reload" // look at all anew: what changed is not known, or too much
)

// events tells viewers what changes, as server-sent events. A viewer is no more than the
// generation that it was told of: there is no queue, and each is told in its own request,
// so that one that does not read delays nobody.
type events struct {
	rows    func() *query.Rows
	changed func() <-chan struct{}
	closing <-chan struct{} // nil = never
	process string
	viewers chan struct{} // one for each

	mu       sync.Mutex // guards what is below
	shared   *query.Rows
	made     time.Time         // just before shared was
	outdated <-chan struct{}   // closed once shared may be
	told     map[uint64][]byte // events that lead to shared, by the generation from which
}

// changes is what an event says.
type changes struct {
	Changes []query.Change `json:"changes"`
}

func (h *handler) serveEvents(mux *http.ServeMux, closing <-chan struct{}) {
	e := &events{
		rows: h.fleet.Rows, changed: h.fleet.Changed, closing: closing, process: h.process, viewers: make(chan struct{}, maxViewers),
	}
	mux.Handle("GET /api/v1/events", e)
}

// ServeHTTP answers GET /api/v1/events.
func (e *events) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case e.viewers <- struct{}{}:
		defer func() { <-e.viewers }()
	default:
		w.Header().Set("Retry-After", strconv.Itoa(int(viewersRetry.Seconds())))
		writeText(w, http.StatusServiceUnavailable, fmt.Sprintf("there are %d viewers already, which is the limit: try again later, or poll /api/v1/status\n", maxViewers))
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

// seen returns the generation that a viewer was told of last: 0 for one that comes for the
// first time, unknown for what another process said.
func (e *events) seen(id string) uint64 {
	if id == "" {
		return 0
	}
	process, number, _ := strings.Cut(id, "-")
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil || process != e.process || n == 0 {
		return unknown
	}
	return n
}

// unknown is no generation that there is.
const unknown = ^uint64(0)

// current returns the newest rows, and a channel that is closed once there are newer ones.
// All viewers share them, for as long as nothing changes and a while longer: with a thousand
// viewers there are not more reports made than with one. Where the channel is closed already
// the viewer comes back after its pause, and they are made anew.
func (e *events) current(now time.Time) (*query.Rows, <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	kept := heartbeat
	if isClosed(e.outdated) {
		kept = rowsKept
	}
	if e.shared != nil && now.Sub(e.made) < kept {
		return e.shared, e.outdated
	}
	e.made, e.outdated = now, e.changed() // before it is looked, or what comes between would be missed
	if rows := e.rows(); rows != e.shared {
		e.shared, e.told = rows, make(map[uint64][]byte)
	}
	return e.shared, e.outdated
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// event returns the event that leads from a generation to that of rows.
func (e *events) event(rows *query.Rows, from uint64) []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.shared != rows {
		return e.write(rows, from)
	}
	text := e.told[from]
	if text == nil {
		text = e.write(rows, from)
		if len(e.told) < maxKeptEvents {
			e.told[from] = text
		}
	}
	return text
}

// write writes the event that leads from a generation to that of rows.
func (e *events) write(rows *query.Rows, from uint64) []byte {
	kind, told := eventReload, changes{Changes: []query.Change{}}
	if from == 0 {
		kind = eventHello
	} else if all, known := rows.Since(from); known && len(all) <= maxTold {
		kind, told.Changes = eventChange, all
	}
	data, err := json.Marshal(told)
	if err != nil {
		kind, data = eventReload, []byte(`{"changes":[]}`)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "id: %s-%d\nevent: %s\ndata: %s\n\n", e.process, rows.Generation, kind, data)
	return b.Bytes()
}

// viewer is one who is told of changes.
type viewer struct {
	*events
	w  http.ResponseWriter
	c  *http.ResponseController
	at uint64 // generation that it was told of
}

// watch tells of changes until ctx ends, the listener closes, or the viewer does not read.
func (v *viewer) watch(ctx context.Context) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	if !v.send([]byte("retry: 2000\n\n")) {
		return
	}
	for {
		rows, outdated := v.current(time.Now())
		if rows.Generation > 0 && rows.Generation != v.at {
			if !v.send(v.event(rows, v.at)) {
				return
			}
			v.at = rows.Generation
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

// send sends to the viewer, and reports whether it went out in time.
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
