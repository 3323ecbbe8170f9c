package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/model/must"
	"ingot/reconcile/report"
)

// teller is a daemon that tells of changes. It can be stopped and started anew at its
// address.
type teller struct {
	t *testing.T

	mu      sync.Mutex // guards what is below
	address string
	server  *http.Server
	summary report.Summary
	asked   int         // how often for the status
	viewers chan string // of each that connects, the event that it read last
	events  chan string // to the viewer
	first   string      // what a viewer is told first

	explained report.Explanation
}

func newTeller(t *testing.T, s report.Summary) *teller {
	d := &teller{
		t: t, address: "127.0.0.1:0", summary: s, viewers: make(chan string, 100), events: make(chan string),
		first: "id: a-1\nevent: hello\ndata: {}\n\n",
	}
	d.start()
	t.Cleanup(d.stop)
	return d
}

func (d *teller) start() {
	ln := must.Get(net.Listen("tcp", d.address))(d.t)
	d.address = ln.Addr().String()
	d.server = &http.Server{Handler: d, ReadHeaderTimeout: time.Minute}
	go func(s *http.Server) { _ = s.Serve(ln) }(d.server)
}

func (d *teller) stop() { _ = d.server.Close() }

func (d *teller) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	summary, explained, first := d.summary, d.explained, d.first
	if r.URL.Path != "/api/v1/events" {
		d.asked++
	}
	d.mu.Unlock()
	switch {
	case strings.HasPrefix(r.URL.Path, "/api/v1/explain/"):
		_ = json.NewEncoder(w).Encode(explained)
		return
	case r.URL.Path != "/api/v1/events":
		_ = json.NewEncoder(w).Encode(summary)
		return
	}
	d.viewers <- r.Header.Get("Last-Event-ID")
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, "retry: 2000\n\n"+first)
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case e := <-d.events:
			if e == "" {
				return
			}
			fmt.Fprint(w, e)
			_ = http.NewResponseController(w).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

func (d *teller) set(s report.Summary) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.summary = s
}

// looked waits until the status was asked for twice: at first, and again once there is
// somebody who tells of changes.
func (d *teller) looked() {
	d.t.Helper()
	<-d.viewers
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		d.mu.Lock()
		asked := d.asked
		d.mu.Unlock()
		switch {
		case asked > 1:
			return
		case time.Now().After(end):
			d.t.Fatal("it does not look again once it follows")
		}
	}
}

func (d *teller) told(first string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.first = first
}

func (d *teller) explain(x report.Explanation) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.explained = x
}

// printed is what a command prints, for a test to wait for.
type printed struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *printed) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *printed) shown() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return timeOfDay.ReplaceAllString(s.text.String(), "TIME")
}

func (s *printed) until(t *testing.T, text string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !strings.Contains(s.shown(), text); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it does not show %q:\n%s", text, s.shown())
		}
	}
}

func watchFor(t *testing.T, d *teller, args ...string) (s *printed, stop func()) {
	s = &printed{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		c := &console{in: strings.NewReader(""), out: s, err: s}
		ended <- execute(ctx, append(args, "--watch", "--interval", "1h", "--address", d.address), c)
	}()
	return s, func() {
		cancel()
		if code := <-ended; code != exitFine {
			t.Errorf("exit code %d", code)
		}
	}
}

const changeTold = "id: a-2\nevent: change\ndata: {}\n\n"

func TestWatchingIsToldOfChanges(t *testing.T) {
	state := func(s model.ServerState) report.Summary {
		return report.Summary{Revision: "main@sha1:aa", Servers: []report.ServerSummary{{Name: "s1", State: s}}}
	}
	d := newTeller(t, state(model.StateAvailable))
	s, stop := watchFor(t, d, "status")
	d.looked()
	d.set(state(model.StateReserved))
	d.events <- changeTold
	s.until(t, "TIME server s1 Available → Reserved\n")
	stop()
	if d.asked > 3 {
		t.Errorf("for one change the daemon was asked %d times", d.asked)
	}
}

func TestWatchingGoesOnWithARestartedDaemonAndSaysSo(t *testing.T) {
	state := func(s model.ServerState) report.Summary {
		return report.Summary{Revision: "main@sha1:aa", Servers: []report.ServerSummary{{Name: "s1", State: s}}}
	}
	for name, first := range map[string]string{
		"what was missed is told":      changeTold,
		"what was missed is not known": "id: b-1\nevent: reload\ndata: {}\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			d := newTeller(t, state(model.StateAvailable))
			s, stop := watchFor(t, d, "status")
			d.looked()
			d.stop()
			s.until(t, "TIME the connection to the daemon was lost: connecting again\n")
			d.told(first)
			d.set(state(model.StateReserved))
			d.start()
			s.until(t, "TIME it answers again\nTIME server s1 Available → Reserved\n")
			stop()
			const want = `Revision main@sha1:aa

SERVER  STATE      POWER  CLAIM  SINCE  WHY
s1      Available  -      -      -
TIME the connection to the daemon was lost: connecting again
TIME it answers again
TIME server s1 Available → Reserved
`
			if diff := cmp.Diff(want, s.shown()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAStreamThatGoesOnAtOnceIsNoNews(t *testing.T) {
	d := newTeller(t, report.Summary{Revision: "main@sha1:aa"})
	s, stop := watchFor(t, d, "status")
	d.looked()
	d.told("")
	d.events <- "" // the stream ends here
	if last := <-d.viewers; last != "a-1" {
		t.Errorf("it comes again having read %q", last)
	}
	d.set(report.Summary{Revision: "main@sha1:bb"})
	d.events <- changeTold
	s.until(t, "TIME revision main@sha1:bb\n")
	stop()
	if strings.Contains(s.shown(), "lost") || strings.Contains(s.shown(), "answers again") {
		t.Errorf("it says:\n%s", s.shown())
	}
}

func TestADaemonThatWasStartedAnewAtOnceIsSaidToHaveBeen(t *testing.T) {
	d := newTeller(t, report.Summary{Revision: "main@sha1:aa"})
	s, stop := watchFor(t, d, "status")
	d.looked()
	d.told("id: b-1\nevent: reload\ndata: {}\n\n")
	d.set(report.Summary{Revision: "main@sha1:bb"})
	d.events <- "" // the stream ends here
	s.until(t, "TIME the daemon was started anew\nTIME it answers again\nTIME revision main@sha1:bb\n")
	stop()
}

func TestExplainingIsToldOfChangesToo(t *testing.T) {
	d := newTeller(t, report.Summary{})
	d.explained = report.Explanation{Kind: "server", Name: "s1", State: "Available"}
	s, stop := watchFor(t, d, "explain", "server", "s1")
	d.looked()
	d.explain(report.Explanation{Kind: "server", Name: "s1", State: "Reserved"})
	d.events <- changeTold
	s.until(t, "server s1: Reserved\n")
	stop()
	const want = "server s1: Available\n\nTIME\nserver s1: Reserved\n"
	if diff := cmp.Diff(want, s.shown()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
