package bmc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/model/must"
)

func executed(f *fake, answer http.HandlerFunc) *atomic.Int64 {
	var n atomic.Int64
	f.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/Actions/ComputerSystem.Reset") {
			return false
		}
		if !f.knows(r) {
			return false
		}
		_, _ = io.Copy(io.Discard, r.Body)
		n.Add(1)
		answer(w, r)
		return true
	}
	return &n
}

func (f *fake) knows(r *http.Request) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.authorized(r)
}

func drop(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// raw answers with bytes that may be no HTTP, and closes the connection.
func raw(bytes string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(conn, bytes)
		_ = conn.Close()
	}
}

func failing(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fail(w, code, "Base.1.0.InternalError") }
}

// A reset whose answer does not come, or cannot be understood, may have been carried
// out, so it is neither repeated nor taken for one that was not.
func TestUnknownOutcome(t *testing.T) {
	answers := map[string]http.HandlerFunc{
		"500":                        failing(http.StatusInternalServerError),
		"501":                        failing(http.StatusNotImplemented),
		"502":                        failing(http.StatusBadGateway),
		"503":                        failing(http.StatusServiceUnavailable),
		"408":                        failing(http.StatusRequestTimeout),
		"no answer but a closed one": drop,
		"a reset connection": func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				panic(err)
			}
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
		},
		"no answer in time": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"garbage":           raw("What?\r\n\r\n"),
		"half an answer":    raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"),
		"a 4xx cut short":   raw("HTTP/1.1 400 Bad Request\r\nContent-Length: 100\r\n\r\n{"),
	}
	timeouts := map[string]time.Duration{"no answer in time": 2 * time.Second}
	for name, answer := range answers {
		for _, kind := range []model.ResetKind{model.ResetForceRestart, model.ResetOn, model.ResetForceOff, model.ResetGracefulRestart} {
			t.Run(fmt.Sprintf("%s after %s", name, kind), func(t *testing.T) {
				t.Parallel()
				f := newFake(t, plain)
				f.resources[sysURI]["PowerState"] = "On"
				if kind == model.ResetOn {
					f.resources[sysURI]["PowerState"] = "Off"
				}
				n := executed(f, answer)
				p := newPool(t, Options{Timeout: timeouts[name]})
				if _, err := p.Power(t.Context(), f.system1()); err != nil { // a connection is kept
					t.Fatal(err)
				}
				err := errOf(p.Reset(t.Context(), f.system1(), kind, ""))
				if err == nil || NotCarriedOut(err) {
					t.Errorf("got %v, not carried out %t; want an error with an unknown outcome", err, NotCarriedOut(err))
				}
				if got := n.Load(); got != 1 {
					t.Errorf("the machine was reset %d times, want once", got)
				}
			})
		}
	}
}

// What was certainly not carried out is known for it, so that it may be asked again.
func TestNotCarriedOut(t *testing.T) {
	refusal := errors.New("another Ingot leads")
	tests := map[string]struct {
		prepare func(*fake) // before the first request
		later   func(*fake) // after a first request
		opts    Options
		is      error
		posts   int // that reached the BMC
	}{
		"no permission":    {opts: Options{Permit: func(context.Context, model.BMCTarget, string) error { return refusal }}, is: refusal},
		"400":              {later: refusing(http.StatusBadRequest, "Base.1.0.GeneralError"), posts: 1},
		"403":              {later: refusing(http.StatusForbidden, "Base.1.0.InsufficientPrivilege"), is: ErrReadOnly, posts: 1},
		"404":              {later: refusing(http.StatusNotFound, "Base.1.0.ResourceMissingAtURI"), is: ErrNotFound, posts: 1},
		"409":              {later: refusing(http.StatusConflict, "Base.1.0.ResourceInUse"), is: ErrBusy, posts: 1},
		"429":              {later: refusing(http.StatusTooManyRequests, "Base.1.0.ServiceTemporarilyUnavailable"), is: ErrBusy, posts: 1},
		"a closed port":    {later: func(f *fake) { f.Close() }, is: ErrUnreachable},
		"a wrong password": {prepare: func(f *fake) { f.password = "changed" }, is: ErrCircuitOpen},
		"credentials that are no longer accepted": {later: func(f *fake) {
			f.answer = func(w http.ResponseWriter, _ *http.Request) bool {
				fail(w, http.StatusUnauthorized, "Base.1.0.NoValidSession")
				return true
			}
		}, is: ErrRefusedForNow},
		"a BMC that wants to be left alone": {later: func(f *fake) {
			f.answer = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodGet {
					w.Header().Set("Retry-After", "60")
					fail(w, http.StatusServiceUnavailable, "Base.1.0.ServiceTemporarilyUnavailable")
				}
				return r.Method == http.MethodGet
			}
		}, is: ErrBusy},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, plain)
			f.resources[sysURI]["PowerState"] = "On"
			if tt.prepare != nil {
				tt.prepare(f)
			}
			p := newPool(t, tt.opts)
			if _, err := p.Power(t.Context(), f.system1()); (err != nil) != (tt.prepare != nil) {
				t.Fatal(err)
			}
			if _, err := p.Inventory(t.Context(), f.system1()); (err != nil) != (tt.prepare != nil) {
				t.Fatal(err)
			}
			if tt.later != nil {
				tt.later(f)
				_, _ = p.Power(t.Context(), f.system1())
			}
			f.requests()
			err := errOf(p.Reset(t.Context(), f.system1(), model.ResetForceRestart, ""))
			if !NotCarriedOut(err) || !errors.Is(err, tt.is) && tt.is != nil {
				t.Errorf("got %v, not carried out %t; want one that was not, for %v", err, NotCarriedOut(err), tt.is)
			}
			if got := counted(f.requests(), "POST "+sysURI); got != tt.posts {
				t.Errorf("%d requests reached the BMC, want %d", got, tt.posts)
			}
		})
	}
	t.Run("a certificate that has changed", func(t *testing.T) {
		f := newFake(t, secure)
		s := f.system1()
		s.BMC.Fingerprint = strings.Repeat("0", 64)
		if err := errOf(newPool(t, Options{}).Reset(t.Context(), s, model.ResetOn, "")); !NotCarriedOut(err) ||
			!errors.Is(err, ErrCertificateChanged) {
			t.Errorf("got %v, not carried out %t", err, NotCarriedOut(err))
		}
	})
	t.Run("of no error", func(t *testing.T) {
		if NotCarriedOut(nil) || NotCarriedOut(errors.New("something else")) {
			t.Error("nothing is known of it")
		}
	})
}

// Of several requests of one call each may have changed something, not the last alone.
func TestOneOfSeveralRequestsMayHaveHadAnEffect(t *testing.T) {
	f := newFake(t, plain)
	patches := 0
	f.store = func(string, object) int { // the first is accepted, but not kept
		if patches++; patches == 1 {
			return http.StatusNoContent
		}
		return http.StatusBadRequest
	}
	_, err := newPool(t, Options{}).BootOnce(t.Context(), f.system1(), model.BootPXE)
	if !errors.Is(err, ErrOverrideNotKept) || NotCarriedOut(err) || patches < 2 {
		t.Errorf("got %v after %d requests, not carried out %t", err, patches, NotCarriedOut(err))
	}
}

// Another type of reset is tried only where the first was certainly refused.
func TestNoOtherResetAfterAnUnknownOutcome(t *testing.T) {
	for status, want := range map[int]int{http.StatusBadRequest: 3, http.StatusRequestTimeout: 1, http.StatusInternalServerError: 1} {
		f := newFake(t, plain)
		f.resources[sysURI]["PowerState"] = "On"
		reset := f.resources[sysURI]["Actions"].(object)["#ComputerSystem.Reset"].(object)
		delete(reset, "ResetType@Redfish.AllowableValues")
		refusing(status, "Base.1.0.ActionParameterNotSupported")(f)
		err := errOf(newPool(t, Options{}).Reset(t.Context(), f.system1(), model.ResetForceRestart, ""))
		if got := counted(f.requests(), "POST "+sysURI); err == nil || got != want || NotCarriedOut(err) != (want > 1) {
			t.Errorf("%d: %d requests, want %d; got %v, not carried out %t", status, got, want, err, NotCarriedOut(err))
		}
	}
}

func refusing(code int, id string) func(*fake) {
	return func(f *fake) { f.change(func() { f.reset = func(string) (int, string) { return code, id } }) }
}

// A request that is answered with 401 was not processed: it is repeated once with a
// new session, and asked for permission again.
func TestResetWithAnEndedSession(t *testing.T) {
	f := newFake(t, plain)
	asked := 0
	p := newPool(t, Options{Permit: func(context.Context, model.BMCTarget, string) error { asked++; return nil }})
	must.Get(p.Power(t.Context(), f.system1()))(t)
	n := executed(f, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	carryOut := f.answer
	f.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/Actions/ComputerSystem.Reset") && asked == 1 {
			f.dropSessions()
		}
		return carryOut(w, r)
	})
	f.dropSessions()
	must.Get(p.Inventory(t.Context(), f.system1()))(t)
	f.dropSessions()
	if err := errOf(p.Reset(t.Context(), f.system1(), model.ResetForceRestart, "")); err != nil || n.Load() != 1 || asked != 2 {
		t.Errorf("got %v, %d resets and %d requests for permission; want 1 and 2", err, n.Load(), asked)
	}
}

// The machine is identified again before a change is repeated with a new session.
func TestNoResetOfAnotherMachineWithANewSession(t *testing.T) {
	f := newFake(t, plain)
	p := newPool(t, Options{})
	must.Get(p.Inventory(t.Context(), f.system1()))(t)
	n := executed(f, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	carryOut := f.answer
	f.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/Actions/ComputerSystem.Reset") {
			f.dropSessions()
			f.change(func() { f.resources[sysURI]["UUID"] = "11111111-aaaa-4bbb-8ccc-222222222222" })
		}
		return carryOut(w, r)
	})
	meant := f.system1()
	meant.UUID = "38947555-7742-3448-3784-823347823834"
	err := errOf(p.Reset(t.Context(), meant, model.ResetForceRestart, ""))
	if !errors.Is(err, ErrOtherMachine) || n.Load() != 0 {
		t.Errorf("%d resets, %v", n.Load(), err)
	}
}

// Permission is the last thing before a request is written: it is asked for each
// request that changes a machine, and no other, once that has its turn and its
// connection.
func TestPermit(t *testing.T) {
	f := newFake(t, plain)
	var p *Pool
	var asked []string
	p = NewPool(Options{Networks: loopback, Permit: func(_ context.Context, target model.BMCTarget, uri string) error {
		p.mu.Lock()
		c := p.clients[target.Name]
		p.mu.Unlock()
		asked = append(asked, fmt.Sprintf("%s %s, %d under way, %d connections", target.Name, uri, len(c.slots), c.counted.connections.Load()))
		for _, r := range f.requests() {
			if strings.HasPrefix(r, "PATCH") || strings.HasPrefix(r, "POST "+sysURI) {
				asked = append(asked, "after "+r)
			}
		}
		return nil
	}})
	for _, do := range []func() error{
		func() error { _, err := p.Discover(t.Context(), f.target()); return err },
		func() error { _, err := p.BootOnce(t.Context(), f.system1(), model.BootPXE); return err },
		func() error { f.requests(); return errOf(p.Reset(t.Context(), f.system1(), model.ResetOn, "")) },
		func() error { f.requests(); return p.ClearBootOverride(t.Context(), f.system1()) },
		func() error { return p.Close(t.Context()) },
	} {
		must.Do(t, do())
	}
	want := []string{
		"bmc-1 " + sysURI + ", 1 under way, 1 connections",
		"bmc-1 " + sysURI + "/Actions/ComputerSystem.Reset, 1 under way, 1 connections",
		"bmc-1 " + sysURI + ", 1 under way, 1 connections",
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("asked for permission (-want +got):\n%s", diff)
	}
}

// Nothing is written once nobody waits any more, though permission came late.
func TestLatePermission(t *testing.T) {
	f := newFake(t, plain)
	n := executed(f, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	ctx, cancel := context.WithCancel(t.Context())
	p := newPool(t, Options{Permit: func(context.Context, model.BMCTarget, string) error {
		cancel()
		return nil
	}})
	err := errOf(p.Reset(ctx, f.system1(), model.ResetForceRestart, ""))
	if !errors.Is(err, context.Canceled) || !NotCarriedOut(err) {
		t.Errorf("got %v, not carried out %t", err, NotCarriedOut(err))
	}
	if _, err := p.Power(t.Context(), f.system1()); err != nil || n.Load() != 0 {
		t.Errorf("got %v; the machine was reset %d times, want never", err, n.Load())
	}
}

// A connection that was idle is not trusted with a change: the BMC may have closed it,
// and then nobody knows what became of the request.
func TestChangeOnAFreshConnection(t *testing.T) {
	f := newFake(t, secure)
	asked := 0
	p := newPool(t, Options{
		freshFor: time.Nanosecond,
		Permit:   func(context.Context, model.BMCTarget, string) error { asked++; return nil },
	})
	must.Get(p.Inventory(t.Context(), f.system1()))(t)
	before := p.Stats("bmc-1").Connections
	must.Do(t, errOf(p.Reset(t.Context(), f.system1(), model.ResetOn, "")))
	if now := p.Stats("bmc-1").Connections; now != before+1 || asked != 1 {
		t.Errorf("%d connections where there were %d, %d requests for permission; want one more, and one", now, before, asked)
	}
}

// A boot override that the BMC keeps and answers 500 to is not written in other ways.
func TestOverrideKeptWithAnError(t *testing.T) {
	f := newFake(t, plain)
	f.store = func(path string, b object) int {
		f.keep(path, b)
		return http.StatusInternalServerError
	}
	p := newPool(t, Options{})
	variant, err := p.BootOnce(t.Context(), f.system1(), model.BootPXE)
	if variant != variantDefault || err != nil {
		t.Errorf("got %q, %v", variant, err)
	}
	if n := counted(f.requests(), "PATCH"); n != 1 {
		t.Errorf("%d PATCHes, want 1", n)
	}
}

// One that the BMC fails at and does not keep is told of as what it is.
func TestOverrideFailed(t *testing.T) {
	f := newFake(t, plain)
	f.store = func(string, object) int { return http.StatusInternalServerError }
	_, err := newPool(t, Options{}).BootOnce(t.Context(), f.system1(), model.BootPXE)
	if !errors.Is(err, ErrOverrideNotKept) || NotCarriedOut(err) ||
		!strings.Contains(err.Error(), variantDefault+": asked Once Pxe, refused with 500") {
		t.Errorf("got %v, not carried out %t", err, NotCarriedOut(err))
	}
}

// What is accepted and done later is read back once it is done.
func TestOverrideByTask(t *testing.T) {
	const monitor = "/redfish/v1/TaskMonitors/1"
	for name, accept := range map[string]http.HandlerFunc{
		"that the header names": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", monitor)
			w.WriteHeader(http.StatusAccepted)
		},
		"that the body names": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(w, `{"TaskMonitor": "`+monitor+`", "TaskState": "New"}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, plain)
			left := 3
			f.answer = func(w http.ResponseWriter, r *http.Request) bool {
				switch {
				case r.Method == http.MethodPatch:
					accept(w, r)
				case r.URL.Path == monitor && left > 0:
					left--
					w.WriteHeader(http.StatusAccepted)
				case r.URL.Path == monitor:
					f.change(func() { f.keep(sysURI, object{"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": "Pxe"}) })
					w.WriteHeader(http.StatusNoContent)
				default:
					return false
				}
				return true
			}
			p := newPool(t, Options{taskPoll: time.Millisecond})
			if variant, err := p.BootOnce(t.Context(), f.system1(), model.BootPXE); variant != variantDefault || err != nil {
				t.Errorf("got %q, %v", variant, err)
			}
			if n := counted(f.requests(), "PATCH"); n != 1 {
				t.Errorf("%d PATCHes, want 1", n)
			}
		})
	}
	t.Run("that waits for the next start is not waited for", func(t *testing.T) {
		f := newFake(t, plain)
		f.answer = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPatch {
				return false
			}
			f.change(func() { f.keep(sysURI, object{"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": "Pxe"}) })
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(w, `{"TaskMonitor": "`+monitor+`", "TaskState": "Pending"}`)
			return true
		}
		variant, err := newPool(t, Options{taskPoll: time.Millisecond}).BootOnce(t.Context(), f.system1(), model.BootPXE)
		if asked := counted(f.requests(), "GET "+monitor); variant != variantDefault || err != nil || asked != 0 {
			t.Errorf("got %q, %v, asked %d times for the task", variant, err, asked)
		}
	})
}
