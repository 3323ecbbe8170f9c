package main

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ingot/cmd/daemon/admin"
	"ingot/model"
	"ingot/reconcile/report"
)

// fakeDaemon is the admin listener over documents that a test sets.
type fakeDaemon struct {
	server *httptest.Server
	leases []report.LeaseRow
	card   report.Card

	mu        sync.Mutex // guards the fields below
	docs      *report.Documents
	next      []*report.Documents // shown one after the other, each from the next look on; nil: the daemon answers 503
	lastLook  func()              // called for the look after the last of next
	polled    bool                // it has no events
	down      bool                // it answers 503
	endStream func()              // of events
	admin     http.Handler
	changed   chan struct{}
	read      bool     // the documents were read since they were set
	requests  []string // since then
}

// newFakeDaemon shows documents: the first ones, and others from each further look on.
func newFakeDaemon(t *testing.T, docs ...*report.Documents) *fakeDaemon {
	d := &fakeDaemon{docs: inFleet(""), next: docs, changed: make(chan struct{}), lastLook: func() {}}
	d.restart()
	d.server = httptest.NewServer(d)
	t.Cleanup(d.server.Close)
	return d
}

// restart makes it another process.
func (d *fakeDaemon) restart() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.admin = admin.NewHandler(admin.Options{Metrics: prometheus.NewRegistry(), Fleet: d, Index: admin.NewIndex(d), Log: slog.New(slog.DiscardHandler)})
}

func (d *fakeDaemon) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	handler, down := d.admin, d.down
	switch path := r.URL.Path; {
	case path == "/api/v1/events":
		down = down || d.polled
		var ctx context.Context
		ctx, d.endStream = context.WithCancel(r.Context())
		defer d.endStream()
		r = r.WithContext(ctx)
	case path == "/api/v1/fleet" && len(d.next) > 0: // a look begins
		down = d.next[0] == nil
		d.requests = append(d.requests, path)
		if !down {
			d.docs = d.next[0]
		}
		d.next = d.next[1:]
	default:
		if d.requests = append(d.requests, path); path == "/api/v1/fleet" {
			d.lastLook()
		}
	}
	d.mu.Unlock()
	if down {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("X-Content-Type-Options", "nosniff") // as package access does
	handler.ServeHTTP(w, r)
}

func (d *fakeDaemon) Documents() *report.Documents {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.read = true
	return d.docs
}

func (d *fakeDaemon) Changed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed
}

func (d *fakeDaemon) Card(mac string) (report.Card, bool) { return d.card, mac == d.card.MAC }
func (d *fakeDaemon) Leases() []report.LeaseRow           { return d.leases }
func (d *fakeDaemon) Pools() []report.PoolRow             { return nil }
func (d *fakeDaemon) Images() []report.ImageRow           { return nil }

// show shows other documents and announces them. It returns the paths that were requested before.
func (d *fakeDaemon) show(docs *report.Documents) (before []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before = d.requests
	d.docs, d.requests, d.read = docs, nil, false
	close(d.changed)
	d.changed = make(chan struct{})
	return before
}

// setDown ends the event stream. If it is down, it answers 503 from now on.
func (d *fakeDaemon) setDown(down bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.down = down
	d.endStream()
}

// asked are the paths that were requested since the documents were set, sorted.
func (d *fakeDaemon) asked() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(slices.Values(d.requests))
}

// polled is a daemon without events. It cancels its context when all documents were shown.
func polled(t *testing.T, docs ...*report.Documents) (d *fakeDaemon, stop <-chan struct{}) {
	d = newFakeDaemon(t, docs...)
	end := make(chan struct{})
	d.polled, d.lastLook = true, sync.OnceFunc(func() { close(end) })
	return d, end
}

func inFleet(r model.Revision, docs ...*report.Document) *report.Documents {
	return report.NewDocuments(&report.Fleet{Source: report.Source{Applied: r}}, docs)
}

func doc(kind model.Kind, name, state string, change ...func(*report.Overview)) *report.Document {
	d := &report.Document{APIVersion: model.APIVersion, Kind: string(kind), Metadata: report.Metadata{Name: name}}
	if namespace, short, namespaced := strings.Cut(name, "/"); namespaced {
		d.Metadata.Namespace, d.Metadata.Name = namespace, short
	}
	o := report.Overview{Summary: report.Summary{State: state}}
	for _, c := range change {
		c(&o)
	}
	switch kind {
	case model.KindServer:
		d.Spec, d.Status = report.ServerSpec{}, report.ServerStatus{Overview: o, State: model.ServerState(state), PowerState: o.Summary.Power}
	case model.KindServerClaim:
		d.Status = report.ClaimStatus{Overview: o}
	case model.KindBMC:
		d.Spec, d.Status = report.BMCSpec{}, report.BMCStatus{Overview: o, State: state}
	default:
		panic("no test needs a " + string(kind))
	}
	return d
}

func server(name string, state model.ServerState, change ...func(*report.Overview)) *report.Document {
	return doc(model.KindServer, name, string(state), change...)
}

func claim(name, state string, change ...func(*report.Overview)) *report.Document {
	return doc(model.KindServerClaim, name, state, change...)
}

func waits(w report.Waiting) func(*report.Overview) {
	return func(o *report.Overview) { o.Waiting = append(o.Waiting, w) }
}

// is sets the columns of lists, except for the state.
func is(s report.Summary) func(*report.Overview) {
	return func(o *report.Overview) { s.State = o.Summary.State; o.Summary = s }
}

func labelled(d *report.Document, labels map[string]string) *report.Document {
	d.Metadata.Labels = labels
	return d
}

var exampleNow = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return exampleNow.Add(-d) }
