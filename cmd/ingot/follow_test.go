package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/report"
)

// printed is the output of a command, for a test to wait for.
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
	eventually(t, func() error {
		if got := s.shown(); !strings.Contains(got, text) {
			return fmt.Errorf("it does not show %q:\n%s", text, got)
		}
		return nil
	})
}

func eventually(t *testing.T, try func() error) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if err := try(); err == nil {
			return
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// fullLook is how many requests read everything: the fleet and four lists.
const fullLook = 5

// looked waits until so many requests were made. A command that follows looks twice: at first, and
// once events are sent.
func (d *fakeDaemon) looked(t *testing.T, requests int) {
	t.Helper()
	eventually(t, func() error {
		if got := d.asked(); len(got) < requests {
			return fmt.Errorf("requested %q", got)
		}
		return nil
	})
}

func inBackground(ctx context.Context, args ...string) (s *printed, ended <-chan int) {
	s, code := &printed{}, make(chan int, 1)
	go func() { code <- execute(ctx, args, &console{in: strings.NewReader(""), out: s, err: s}) }()
	return s, code
}

// watchFor watches in the background until stop is called.
func watchFor(t *testing.T, d *fakeDaemon, args ...string) (s *printed, stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	s, ended := inBackground(ctx, append(args, "--watch", "--interval", "1h", "--address", d.server.URL)...)
	return s, func() {
		cancel()
		if code := <-ended; code != exitFine {
			t.Errorf("exit code %d", code)
		}
	}
}

// following watches a fleet of three servers.
func following(t *testing.T) (d *fakeDaemon, s *printed, stop func()) {
	d = newFakeDaemon(t)
	d.show(threeServers("main@sha1:aa", model.StateAvailable))
	s, stop = watchFor(t, d, "status")
	d.looked(t, 2*fullLook)
	return d, s, stop
}

var others = []*report.Document{server("s2", model.StateAvailable), server("s3", model.StateAvailable)}

func threeServers(r model.Revision, first model.ServerState) *report.Documents {
	return inFleet(r, append([]*report.Document{server("s1", first)}, others...)...)
}

func TestWatchReadsOnlyChangedDocuments(t *testing.T) {
	d, s, stop := following(t)
	defer stop()
	d.show(threeServers("main@sha1:bb", model.StateReserved))
	s.until(t, "TIME revision main@sha1:bb\nTIME server s1 Available → Reserved\n")
	if diff := cmp.Diff([]string{"/api/v1/fleet", "/api/v1/servers/s1"}, d.asked()); diff != "" {
		t.Errorf("requests -want +got:\n%s", diff)
	}
	d.show(report.NewDocuments(d.docs.Fleet, append([]*report.Document{claim("a/new", "Unbound")}, others...)))
	s.until(t, "TIME claim a/new Unbound\n")
	if diff := cmp.Diff([]string{"/api/v1/serverclaims/a/new", "/api/v1/servers/s1"}, d.asked()); diff != "" {
		t.Errorf("a removed server: requests -want +got:\n%s", diff)
	}
}

func TestWatchReadsEverythingAfterManyChanges(t *testing.T) {
	d, s, stop := following(t)
	defer stop()
	var all []*report.Document
	for i := range maxPaths + 1 {
		all = append(all, server(fmt.Sprintf("s%d", i), model.StateError))
	}
	d.show(report.NewDocuments(d.docs.Fleet, all))
	s.until(t, "TIME server s100 Error\n")
	if got := d.asked(); len(got) != fullLook {
		t.Errorf("requested %q", got)
	}
}

// A document that cannot be read is read again, without another event.
func TestWatchRetriesAfterAnError(t *testing.T) {
	d := newFakeDaemon(t)
	d.show(inFleet("main@sha1:aa"))
	ctx, cancel := context.WithCancel(t.Context())
	s, ended := inBackground(ctx, "status", "--watch", "--interval", "100ms", "--address", d.server.URL)
	d.looked(t, 2*fullLook)
	d.mu.Lock()
	d.next = []*report.Documents{nil}
	d.mu.Unlock()
	d.show(inFleet("main@sha1:bb"))
	s.until(t, "503 Service Unavailable; is it the admin listener of an Ingot daemon?\nTIME it answers again\nTIME revision main@sha1:bb\n")
	cancel()
	<-ended
}

func TestWatchContinuesWithARestartedDaemon(t *testing.T) {
	for name, restart := range map[string]func(*fakeDaemon){
		"the same process":    func(*fakeDaemon) {},
		"a different process": (*fakeDaemon).restart,
	} {
		t.Run(name, func(t *testing.T) {
			d, s, stop := following(t)
			d.setDown(true)
			s.until(t, "TIME the connection to the daemon was lost: connecting again\n")
			d.show(threeServers("main@sha1:aa", model.StateReserved))
			restart(d)
			d.setDown(false)
			s.until(t, "TIME it answers again\nTIME server s1 Available → Reserved\n")
			stop()
			const want = `Revision main@sha1:aa

SERVER  STATE      POWER  CLAIM  SINCE  WAITS FOR
s1      Available  -      -      -
s2      Available  -      -      -
s3      Available  -      -      -
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

func TestAStreamThatContinuesAtOnceIsNotReported(t *testing.T) {
	d, s, stop := following(t)
	d.setDown(false) // the stream ends
	d.show(threeServers("main@sha1:bb", model.StateAvailable))
	s.until(t, "TIME revision main@sha1:bb\n")
	stop()
	if got := s.shown(); strings.Contains(got, "lost") || strings.Contains(got, "again") || strings.Contains(got, "restarted") {
		t.Errorf("it prints:\n%s", got)
	}
	if diff := cmp.Diff([]string{"/api/v1/fleet", "/api/v1/servers/s1"}, d.asked()); diff != "" {
		t.Errorf("requests -want +got:\n%s", diff)
	}
}

func TestAQuickRestartIsReported(t *testing.T) {
	d, s, stop := following(t)
	d.restart()
	d.show(threeServers("main@sha1:bb", model.StateAvailable))
	d.setDown(false)
	s.until(t, "TIME the daemon was restarted\nTIME it answers again\nTIME revision main@sha1:bb\n")
	stop()
}

func TestExplainWatchesItsOwnDocuments(t *testing.T) {
	d := newFakeDaemon(t)
	first := server("s1", model.StateAvailable, is(report.Summary{BMC: "b1"}))
	d.show(inFleet("main@sha1:aa", first))
	s, stop := watchFor(t, d, "explain", "server", "s1")
	defer stop()
	d.looked(t, 2*3)
	d.show(report.NewDocuments(d.docs.Fleet, append([]*report.Document{first}, others...)))
	eventually(t, func() error { // until this change is an event of its own
		d.mu.Lock()
		defer d.mu.Unlock()
		if !d.read {
			return errors.New("no event")
		}
		return nil
	})
	second := server("s1", model.StateReserved, is(report.Summary{BMC: "b1"}))
	if got := d.show(report.NewDocuments(d.docs.Fleet, append([]*report.Document{second}, others...))); len(got) > 0 {
		t.Errorf("after a change of others it requests %q", got)
	}
	s.until(t, "server s1: Reserved\n")
	if got := d.asked(); len(got) != 3 {
		t.Errorf("requested %q", got)
	}
	const want = "server s1: Available\n\nTIME\nserver s1: Reserved\n"
	if diff := cmp.Diff(want, s.shown()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	d.show(inFleet("main@sha1:aa", second, doc(model.KindBMC, "b1", report.BMCEnabled))) // was missing
	s.until(t, "\nbmc b1: Enabled\n")
}
