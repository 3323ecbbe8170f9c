package admin

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ingot/model"
	"ingot/model/must"
)

const nothing = `{"changes":[]}`

// serverChange is the change of a server, with the ETag that the API gives to it.
func serverChange(i int, state model.ServerState) string {
	return fmt.Sprintf(`{"path":"servers/s%d.yaml","etag":%q}`, i, etagOf(serverDocument(i, state)))
}

func told(changes ...string) string { return `{"changes":[` + strings.Join(changes, ",") + `]}` }

func TestViewersGetChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fleet := newLive(12)
		p, shutDown := served(t, fleet)
		v := view(t, p, "")
		if got := v.resp.Header.Get("Content-Type"); v.resp.StatusCode != http.StatusOK || got != "text/event-stream" {
			t.Errorf("got %s, %s", v.resp.Status, got)
		}
		first := v.want("hello", nothing)
		fleet.set(3, model.StateError)
		second := v.want("change", told(serverChange(3, "Error")))
		fleet.set(11, model.StateError) // changes within a pause are one event
		fleet.set(2, model.StateError)
		fleet.set(3, model.StateReserved)
		third := v.want("change", told(serverChange(2, "Error"), serverChange(3, "Reserved"), serverChange(11, "Error")))
		fleet.remove(11)
		v.want("change", told(`{"path":"servers/s11.yaml"}`))
		if first == second || second == third {
			t.Errorf("the numbers of events are %s, %s, %s", first, second, third)
		}
		v.conn.Close()
		shutDown()
	})
}

func TestReconnectedViewersGetMissedChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fleet := newLive(3)
		p, shutDown := served(t, fleet)
		v := view(t, p, "")
		id := v.want("hello", nothing)
		v.conn.Close()
		fleet.set(1, model.StateError)
		again := view(t, p, id)
		last := again.want("change", told(serverChange(1, "Error")))
		again.conn.Close()
		for name, tc := range map[string]struct{ id, kind string }{
			"another process":            {"ABCDEFGH-1", "reload"},
			"what never was told":        {last + "7", "reload"},
			"no number":                  {"x", "reload"},
			"a number beyond all bounds": {strings.Split(id, "-")[0] + "-99999999999999999999", "reload"},
		} {
			t.Log(name)
			v := view(t, p, tc.id)
			v.want(tc.kind, nothing)
			v.conn.Close()
		}
		shutDown()
	})
}

func TestTooManyChangesAreAReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fleet := newLive(maxChanges + 1)
		p, shutDown := served(t, fleet)
		v := view(t, p, "")
		v.want("hello", nothing)
		for i := range maxChanges + 1 {
			fleet.set(i, model.StateError)
		}
		v.want("reload", nothing)
		fleet.set(1, model.StateReserved)
		v.want("change", told(serverChange(1, "Reserved")))
		v.conn.Close()
		shutDown()
	})
}

func TestViewersThatNeverReadDelayNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fleet := newLive(3)
		p, shutDown := served(t, fleet)
		v := view(t, p, "")
		v.want("hello", nothing)
		for range maxViewers - 1 {
			must.Get(fmt.Fprint(p.dial(), "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"))(t)
		}
		synctest.Wait()
		refused := view(t, p, "")
		if code, after := refused.resp.StatusCode, refused.resp.Header.Get("Retry-After"); code != http.StatusServiceUnavailable || after != "30" {
			t.Errorf("one viewer too many got %d, to come again after %q", code, after)
		}
		refused.conn.Close()
		before := fleet.readCount()
		for n := range 10 {
			begun := time.Now()
			fleet.set(1, []model.ServerState{model.StateError, model.StateReserved}[n%2])
			if took := time.Since(begun); took > 0 {
				t.Errorf("what changes the fleet waited %s for viewers", took)
			}
			v.want("change", told(serverChange(1, []model.ServerState{"Error", "Reserved"}[n%2])))
		}
		if looks := fleet.readCount() - before; looks > 20 {
			t.Errorf("for 10 changes the fleet was looked at %d times", looks)
		}
		time.Sleep(eventTimeout)
		synctest.Wait()
		room := view(t, p, "") // those that did not read were dropped
		room.want("hello", nothing)
		room.conn.Close()
		v.conn.Close()
		shutDown()
	})
}

func TestViewersShareReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fleet := newLive(3)
		p, shutDown := served(t, fleet)
		var viewers []*stream
		connect := func() {
			v := view(t, p, "")
			v.want("hello", nothing)
			viewers = append(viewers, v)
		}
		for range 100 {
			connect()
		}
		time.Sleep(heartbeat / 2)
		connect() // nothing has changed since
		if looks := fleet.readCount(); looks != 1 {
			t.Errorf("nothing changed, and the fleet was looked at %d times", looks)
		}
		fleet.set(1, model.StateError)
		for _, v := range viewers {
			v.want("change", told(serverChange(1, "Error")))
		}
		if looks := fleet.readCount(); looks != 2 {
			t.Errorf("with one change the fleet was looked at %d times", looks)
		}
		var readers sync.WaitGroup
		for _, v := range viewers {
			readers.Go(func() { _, _ = io.Copy(io.Discard, v.body) })
		}
		for n := range 300 { // for 3 s
			fleet.set(1, []model.ServerState{model.StateReserved, model.StateError}[n%2])
			time.Sleep(10 * time.Millisecond)
		}
		if looks, most := fleet.readCount()-2, int(3*time.Second/eventPause)+2; looks > most {
			t.Errorf("while the fleet changed for 3 s it was looked at %d times, want at most %d", looks, most)
		}
		for _, v := range viewers {
			v.conn.Close()
		}
		readers.Wait()
		shutDown()
	})
}

func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, shutDown := served(t, newLive(1))
		v := view(t, p, "")
		v.want("hello", nothing)
		for range 4 { // also after the time that a request may take
			begun := time.Now()
			line, err := v.body.ReadString('\n')
			if err != nil || line != ": still here\n" || time.Since(begun) != heartbeat {
				t.Fatalf("after %s: %q, %v", time.Since(begun), line, err)
			}
			must.Get(v.body.ReadString('\n'))(t)
		}
		v.conn.Close()
		shutDown()
	})
}

func TestAStreamEndsAndAnotherGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, shutDown := served(t, newLive(1))
		v := view(t, p, "")
		id := v.want("hello", nothing)
		begun := time.Now()
		if _, err := v.next(); !errors.Is(err, io.EOF) || time.Since(begun) != streamLife {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
		v.conn.Close()
		again := view(t, p, id)
		begun = time.Now()
		if line, err := again.body.ReadString('\n'); err != nil || line != "retry: 2000\n" || time.Since(begun) > 0 {
			t.Errorf("got %q, %v", line, err)
		}
		again.conn.Close()
		shutDown()
	})
}

func TestViewersAreLetGoWhenTheListenerCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, shutDown := served(t, newLive(1))
		v := view(t, p, "")
		v.want("hello", nothing)
		begun := time.Now()
		ended := make(chan error, 1)
		go func() {
			_, err := v.next()
			ended <- err
		}()
		shutDown()
		if err := <-ended; !errors.Is(err, io.EOF) || time.Since(begun) > time.Second {
			t.Errorf("it ended after %s with %v", time.Since(begun), err)
		}
		v.conn.Close()
	})
}

func TestWithoutViewersNoReportIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fleet := newLive(1)
		_, shutDown := served(t, fleet)
		for range 10 {
			fleet.set(0, model.StateError)
			time.Sleep(time.Minute)
		}
		if n := fleet.readCount(); n != 0 {
			t.Errorf("it was looked at %d times", n)
		}
		shutDown()
	})
}
