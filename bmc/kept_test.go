package bmc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"ingot/model"
	"ingot/model/must"
)

// memory keeps sessions as a store does.
type memory struct {
	mu   sync.Mutex
	kept map[model.BMCName][]Session
	err  error // of Keep
}

func newMemory() *memory { return &memory{kept: make(map[model.BMCName][]Session)} }

func (m *memory) Kept(name model.BMCName) []Session {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.kept[name])
}

func (m *memory) Keep(ctx context.Context, name model.BMCName, s Session) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil || ctx.Err() != nil {
		return errors.Join(m.err, ctx.Err())
	}
	m.kept[name] = append(m.kept[name], s)
	return nil
}

func (m *memory) Drop(_ context.Context, name model.BMCName, uri string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept[name] = slices.DeleteFunc(m.kept[name], func(s Session) bool { return s.URI == uri })
	return nil
}

// killed returns a pool that polls the fake once and is not closed before the test ends,
// as one of a process that is killed.
func killed(t *testing.T, f *fake, o Options) *Pool {
	t.Helper()
	o.Networks = loopback
	p := NewPool(o)
	must.Get(p.Power(t.Context(), f.acceptedBefore()))(t)
	t.Cleanup(func() {
		for _, c := range p.clients {
			c.wire.closeIdle()
		}
	})
	return p
}

// acceptedBefore is the system with credentials that its BMC accepted in an earlier process.
func (f *fake) acceptedBefore() model.SystemTarget {
	s := f.system1()
	s.BMC.Accepted.Here = true
	return s
}

func (f *fake) open() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.sessions)
}

func TestKeptSessions(t *testing.T) {
	t.Run("any number of kills leaves one session", func(t *testing.T) {
		f, m := newFake(t, plain), newMemory()
		for range 20 {
			killed(t, f, Options{Sessions: m})
		}
		if n := counted(f.requests(), login); n != 1 || f.open() != 1 || len(m.Kept("bmc-1")) != 1 {
			t.Errorf("%d logins, %d sessions open and %d kept; want one of each", n, f.open(), len(m.Kept("bmc-1")))
		}
	})
	t.Run("one that the BMC has forgotten is dropped, and another opened", func(t *testing.T) {
		f, m := newFake(t, plain), newMemory()
		killed(t, f, Options{Sessions: m})
		old := m.Kept("bmc-1")
		f.dropSessions()
		killed(t, f, Options{Sessions: m})
		if kept := m.Kept("bmc-1"); len(kept) != 1 || kept[0].URI == old[0].URI || f.open() != 1 {
			t.Errorf("kept %v after %v, %d open", kept, old, f.open())
		}
	})
	t.Run("the newest is used and the others are deleted", func(t *testing.T) {
		f, m := newFake(t, plain), newMemory()
		for range 3 { // of processes that did not see each other's
			one := newMemory()
			killed(t, f, Options{Sessions: one})
			m.kept["bmc-1"] = append(m.kept["bmc-1"], one.Kept("bmc-1")...)
		}
		newest := m.Kept("bmc-1")[2]
		f.requests()
		killed(t, f, Options{Sessions: m})
		if kept := m.Kept("bmc-1"); len(kept) != 1 || kept[0].URI != newest.URI || f.open() != 1 {
			t.Errorf("kept %v, want %v; %d open", kept, newest, f.open())
		}
		if asked := f.requests(); counted(asked, login) != 0 || counted(asked, "DELETE") != 2 {
			t.Errorf("asked %v", asked)
		}
	})
	t.Run("a session that ends while it is used is dropped", func(t *testing.T) {
		f, m := newFake(t, plain), newMemory()
		p := newPool(t, Options{Sessions: m})
		for range 3 {
			f.dropSessions()
			must.Get(p.Power(t.Context(), f.system1()))(t)
		}
		if n := len(m.Kept("bmc-1")); n != 1 {
			t.Errorf("%d kept, want 1", n)
		}
	})
	t.Run("who logs out keeps none", func(t *testing.T) {
		f, m := newFake(t, plain), newMemory()
		p := NewPool(Options{Networks: loopback, Sessions: m})
		must.Get(p.Power(t.Context(), f.system1()))(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.Close(ctx); err != nil || len(m.Kept("bmc-1")) != 0 || f.open() != 0 {
			t.Errorf("%v; %d kept, %d open", err, len(m.Kept("bmc-1")), f.open())
		}
	})
	t.Run("when no session is free, kept ones are deleted", func(t *testing.T) {
		f, m := newFake(t, plain), newMemory()
		killed(t, f, Options{Sessions: m})
		f.answer = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPost || f.open() == 0 {
				return false
			}
			w.Header().Set("Retry-After", "30")
			fail(w, http.StatusServiceUnavailable, "Base.1.0.SessionLimitExceeded")
			return true
		}
		s := f.system1()
		s.BMC.Trial = true // a session would not tell whether the password is right
		must.Get(newPool(t, Options{Sessions: m}).Power(t.Context(), s))(t)
		if kept := m.Kept("bmc-1"); len(kept) != 1 || f.open() != 1 {
			t.Errorf("kept %v, %d open", kept, f.open())
		}
	})
	t.Run("credentials that are tried do not use a kept one", func(t *testing.T) {
		f, m := newFake(t, plain), newMemory()
		killed(t, f, Options{Sessions: m})
		s := f.system1()
		s.BMC.Trial, s.BMC.Password = true, model.NewSensitive("wrong")
		if _, err := newPool(t, Options{Sessions: m}).Power(t.Context(), s); !errors.Is(err, ErrUnauthorized) {
			t.Errorf("got %v, want ErrUnauthorized", err)
		}
	})
	t.Run("while the BMC does not answer none is opened and none forgotten", func(t *testing.T) {
		f, m := newFake(t, plain), newMemory()
		killed(t, f, Options{Sessions: m})
		f.requests()
		f.answers(func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/redfish/v1/" || r.Method != http.MethodGet {
				return false
			}
			drop(w, r)
			return true
		})
		p := newPool(t, Options{Sessions: m})
		if _, err := p.Power(t.Context(), f.acceptedBefore()); !errors.Is(err, ErrUnreachable) || len(m.Kept("bmc-1")) != 1 {
			t.Errorf("got %v, kept %v", err, m.Kept("bmc-1"))
		}
		f.answers(nil)
		if _, err := p.Power(t.Context(), f.acceptedBefore()); err != nil || counted(f.requests(), login) != 0 {
			t.Errorf("once it answers: %v, or another session", err)
		}
	})
	t.Run("other credentials do not use a session of the last ones", func(t *testing.T) {
		f, m := newFake(t, plain), newMemory()
		p := newPool(t, Options{Sessions: m})
		must.Get(p.Power(t.Context(), f.system1()))(t)
		other := newMemory()
		killed(t, f, Options{Sessions: other})
		m.kept["bmc-1"] = append(m.kept["bmc-1"], other.Kept("bmc-1")...)
		s := f.system1()
		s.BMC.Password = model.NewSensitive("wrong")
		if _, err := p.Power(t.Context(), s); !errors.Is(err, ErrUnauthorized) {
			t.Errorf("got %v, want ErrUnauthorized", err)
		}
	})
	t.Run("credentials that the BMC has not accepted yet are proven by a login", func(t *testing.T) {
		f, m := newFake(t, plain), newMemory()
		killed(t, f, Options{Sessions: m})
		f.change(func() { f.password = "changed" })
		if _, err := newPool(t, Options{Sessions: m}).Power(t.Context(), f.system1()); !errors.Is(err, ErrUnauthorized) {
			t.Errorf("got %v, want ErrUnauthorized", err)
		}
		f.change(func() { f.password = password })
		must.Get(newPool(t, Options{Sessions: m}).Power(t.Context(), f.system1()))(t)
		if n := f.open(); n != 1 || len(m.Kept("bmc-1")) != 1 {
			t.Errorf("%d sessions are open, %d kept; want the new one alone", n, len(m.Kept("bmc-1")))
		}
	})
	t.Run("one that has ended in another way is not used", func(t *testing.T) {
		f, m := newFake(t, plain), newMemory()
		killed(t, f, Options{Sessions: m})
		f.answers(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("X-Auth-Token") != m.Kept("bmc-1")[0].Token.Reveal() {
				return false
			}
			io.WriteString(w, "<html>Log in</html>")
			return true
		})
		must.Get(newPool(t, Options{Sessions: m}).Power(t.Context(), f.acceptedBefore()))(t)
	})
	t.Run("a store that fails is no reason to fail", func(t *testing.T) {
		f, m := newFake(t, plain), newMemory()
		m.err = errors.New("disk full")
		var log bytes.Buffer
		p := newPool(t, Options{Sessions: m, Log: slog.New(slog.NewTextHandler(&log, nil))})
		must.Get(p.Power(t.Context(), f.system1()))(t)
		if !strings.Contains(log.String(), "disk full") || strings.Contains(log.String(), "token-") {
			t.Errorf("logged %q", log.String())
		}
	})
}
