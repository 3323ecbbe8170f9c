package bmc

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"ingot/model"
	"ingot/model/must"
)

const poll = "GET " + sysURI

func TestSessionIsKeptAndReused(t *testing.T) {
	f := newFake(t, secure)
	p := newPool(t, Options{})
	for range 5 {
		must.Get(p.Power(context.Background(), f.system1()))(t)
	}
	want := []string{"GET /redfish/v1/", login, poll, poll, poll, poll, poll}
	if diff := cmp.Diff(want, f.requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if f.opened != 1 {
		t.Errorf("%d connections, want 1", f.opened)
	}
}

func TestSessionLost(t *testing.T) {
	tests := map[string]struct {
		do   func(*Pool, *fake) error
		want []string
	}{
		"a poll logs in once and is repeated (B15)": {
			do:   func(p *Pool, f *fake) error { _, err := p.Power(context.Background(), f.system1()); return err },
			want: []string{poll, "GET /redfish/v1/", login, logout, poll},
		},
		"a write keeps its body (B15)": {
			do: func(p *Pool, f *fake) error {
				f.answers(func(_ http.ResponseWriter, r *http.Request) bool {
					if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "Reset") {
						f.answers(nil)
						f.dropSessions()
					}
					return false
				})
				return errOf(p.Reset(context.Background(), f.system1(), model.ResetForceOff, ""))
			},
			want: []string{
				poll, "GET /redfish/v1/", login, logout, poll,
				"POST " + sysURI + "/Actions/ComputerSystem.Reset", "GET /redfish/v1/", login, logout,
				"GET " + sysURI, "POST " + sysURI + "/Actions/ComputerSystem.Reset",
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, plain)
			f.resources[sysURI]["PowerState"] = "On"
			p := newPool(t, Options{})
			must.Get(p.Discover(context.Background(), f.target()))(t)
			f.requests()
			f.dropSessions()
			must.Do(t, tt.do(p, f))
			got := f.requests()
			for i := range got {
				if strings.HasPrefix(got[i], logout) { // of whatever session
					got[i] = logout
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

const logout = "DELETE /redfish/v1/SessionService/Sessions/"

// A session that the BMC refuses once, or now and then, and that is open all the same does
// not take up one of the few that it has, not even where it has only one.
func TestARefusedSessionIsNotLeftOpen(t *testing.T) {
	for name, most := range map[string]int{"of many": 16, "of one": 1} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, plain)
			p := newPool(t, Options{})
			must.Get(p.Power(context.Background(), f.system1()))(t)
			for range 6 {
				refused := false
				f.answers(func(w http.ResponseWriter, r *http.Request) bool {
					f.mu.Lock()
					defer f.mu.Unlock()
					switch {
					case r.URL.Path == sysURI && !refused:
						refused = true
						fail(w, http.StatusUnauthorized, "Base.1.0.NoValidSession")
						return true
					case r.Method == http.MethodPost && len(f.sessions) >= most:
						w.Header().Set("Retry-After", "60")
						fail(w, http.StatusServiceUnavailable, "Base.1.0.SessionLimitExceeded")
						return true
					}
					return false
				})
				must.Get(p.Power(context.Background(), f.system1()))(t)
				if f.mu.Lock(); len(f.sessions) != 1 || !refused {
					t.Errorf("%d sessions are open, refused %t", len(f.sessions), refused)
				}
				f.mu.Unlock()
			}
		})
	}
}

func TestASessionWithoutATokenIsClosed(t *testing.T) {
	f := newFake(t, plain)
	f.basic = true
	f.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost {
			return false
		}
		f.change(func() { f.sessions["7"] = true })
		w.Header().Set("Location", "/redfish/v1/SessionService/Sessions/7")
		w.WriteHeader(http.StatusCreated)
		return true
	})
	must.Get(newPool(t, Options{}).Power(context.Background(), f.system1()))(t)
	f.change(func() {
		if len(f.sessions) > 0 {
			t.Errorf("%d sessions are left open", len(f.sessions))
		}
	})
}

// Nobody thinks later of a session on a BMC that is no longer wanted, so that its logout is
// tried again, but not for longer than the pool is there.
func TestALogoutThatFailsIsTriedAgain(t *testing.T) {
	failFirst := func(f *fake, n int) {
		f.answers(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodDelete || n == 0 {
				return false
			}
			n--
			fail(w, http.StatusInternalServerError, "Base.1.0.InternalError")
			return true
		})
	}
	f := newFake(t, plain)
	p := newPool(t, Options{logOutAgain: []time.Duration{time.Millisecond, time.Millisecond}})
	must.Get(p.Power(context.Background(), f.system1()))(t)
	failFirst(f, 2)
	p.Forget(context.Background(), "bmc-1")
	p.retired.Wait()
	if len(f.sessions) > 0 {
		t.Error("the session is left open")
	}
	p = newPool(t, Options{logOutAgain: []time.Duration{time.Hour}})
	must.Get(p.Power(context.Background(), f.system1()))(t)
	failFirst(f, 1)
	p.Forget(context.Background(), "bmc-1")
	if err := p.Close(context.Background()); err != nil { // which waits for it
		t.Error(err)
	}
}

func TestOneLoginAtATime(t *testing.T) {
	f := newFake(t, plain)
	p := newPool(t, Options{MaxInFlight: 8})
	pollAll := func() {
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				if _, err := p.Power(context.Background(), f.system1()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	pollAll()
	if n := counted(f.requests(), login); n != 1 {
		t.Errorf("%d logins of 16 first requests, want 1", n)
	}
	f.dropSessions()
	pollAll()
	if n := counted(f.requests(), login); n != 1 {
		t.Errorf("%d logins of 16 requests after the session was lost, want 1", n)
	}
}

func TestWhatIsDeniedToAFreshSessionIsNotAskedTwice(t *testing.T) {
	f := newFake(t, plain)
	f.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != sysURI+"/Memory" {
			return false
		}
		fail(w, http.StatusUnauthorized, "Base.1.0.InsufficientPrivilege")
		return true
	}
	p := newPool(t, Options{})
	for range 3 {
		got, err := p.Inventory(context.Background(), f.system1())
		if err != nil || len(got.Inventory.Processors) != 1 || len(got.Inventory.Problems) != 1 {
			t.Fatalf("got %+v, %v", got, err)
		}
	}
	if n := counted(f.requests(), login); n != 2 {
		t.Errorf("%d logins, want 2", n)
	}
}

func TestLogin(t *testing.T) {
	sessions := func(answer func(http.ResponseWriter, *http.Request)) func(*fake) {
		return func(f *fake) {
			f.basic = true
			f.answer = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/Sessions") {
					return false
				}
				answer(w, r)
				return true
			}
		}
	}
	tests := map[string]struct {
		prepare func(*fake)
		logins  int
	}{
		"without session service is by HTTP Basic": {func(f *fake) {
			f.basic = true
			delete(f.resources["/redfish/v1/"], "Links")
		}, 0},
		"without a token in the answer is by HTTP Basic": {sessions(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
		}), 1},
		"that is not allowed is by HTTP Basic": {sessions(func(w http.ResponseWriter, _ *http.Request) {
			fail(w, http.StatusMethodNotAllowed, "Base.1.0.OperationNotAllowed")
		}), 1},
		"that answers 401 now and then is confirmed (B14)": {func(f *fake) {
			once := true
			f.answer = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodPost || !once {
					return false
				}
				once = false
				fail(w, http.StatusUnauthorized, "Base.1.0.NoValidSession")
				return true
			}
		}, 2},
		"that wants HTTP Basic itself gets it": {func(f *fake) {
			f.answer = func(w http.ResponseWriter, r *http.Request) bool {
				_, _, ok := r.BasicAuth()
				if r.Method != http.MethodPost || ok {
					return false
				}
				fail(w, http.StatusUnauthorized, "Base.1.0.NoValidSession")
				return true
			}
		}, 2},
		"at a Huawei names the domain": {func(f *fake) {
			f.resources["/redfish/v1/"]["Oem"] = object{"Huawei": object{}}
			sessions(func(w http.ResponseWriter, r *http.Request) {
				var body struct {
					Oem struct{ Huawei struct{ Domain string } }
				}
				json.NewDecoder(r.Body).Decode(&body)
				if body.Oem.Huawei.Domain != "LocaliBMC" {
					fail(w, http.StatusBadRequest, "Base.1.0.PropertyMissing")
					return
				}
				f.change(func() { f.sessions["h"] = true })
				w.Header().Set("X-Auth-Token", "h")
			})(f)
			f.basic = false
		}, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, plain)
			tt.prepare(f)
			p := newPool(t, Options{})
			for range 2 {
				if power, err := p.Power(context.Background(), f.system1()); err != nil || power != model.PowerOff {
					t.Fatalf("got %s, %v", power, err)
				}
			}
			if n := counted(f.requests(), login); n != tt.logins {
				t.Errorf("%d login requests, want %d", n, tt.logins)
			}
		})
	}
}

func TestNoFreeSession(t *testing.T) {
	tests := map[string]struct {
		retryAfter string
		wait       time.Duration
	}{
		"waits as long as the BMC asks (B13)":     {"30", 30 * time.Second},
		"waits a minute if it does not say (B13)": {"", time.Minute},
		"waits no longer than 100 s":              {"999999", 100 * time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f, now := newFake(t, plain), newClock()
			full := true
			f.answer = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodPost || !full {
					return false
				}
				if tt.retryAfter != "" {
					w.Header().Set("Retry-After", tt.retryAfter)
				}
				fail(w, http.StatusServiceUnavailable, "IDRAC.1.6.RAC0218")
				return true
			}
			p := newPool(t, Options{Clock: now.Now})
			_, err := p.Power(context.Background(), f.system1())
			if !errors.Is(err, ErrBusy) {
				t.Fatalf("got %v, want ErrBusy", err)
			}
			f.requests()
			now.add(tt.wait - time.Second)
			_, err = p.Power(context.Background(), f.system1())
			if after, _ := RetryAfter(err); !errors.Is(err, ErrBusy) || after != time.Second {
				t.Errorf("got %v, want ErrBusy for one more second", err)
			}
			if asked := f.requests(); len(asked) != 0 {
				t.Errorf("asked %v meanwhile", asked)
			}
			f.change(func() { full = false })
			now.add(time.Second)
			if _, err := p.Power(context.Background(), f.system1()); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

func TestWrongPassword(t *testing.T) {
	ctx := context.Background()
	t.Run("is tried twice on two BMCs, then not at all for 15 minutes, on no BMC (B14, D7)", func(t *testing.T) {
		f, other, third, now := newFake(t, plain), newFake(t, plain), newFake(t, plain), newClock()
		reg := prometheus.NewPedanticRegistry()
		f.password, other.password = "changed", "changed"
		p := newPool(t, Options{Clock: now.Now, Registerer: reg})
		_, err := p.Power(ctx, f.system1())
		if !errors.Is(err, ErrUnauthorized) {
			t.Fatalf("got %v, want ErrUnauthorized", err)
		}
		if strings.Contains(err.Error(), password) {
			t.Errorf("the error shows the password: %v", err)
		}
		if n := counted(f.requests(), login); n != 2 {
			t.Errorf("%d logins, want 2", n)
		}
		second, fresh := other.system1(), third.system1()
		second.BMC.Name, fresh.BMC.Name = "bmc-2", "bmc-3"
		if _, err := p.Power(ctx, second); !errors.Is(err, ErrUnauthorized) {
			t.Fatalf("got %v, want ErrUnauthorized", err)
		}
		if n := counted(other.requests(), login); n != 2 {
			t.Errorf("%d logins to the second, want 2", n)
		}
		for _, s := range []model.SystemTarget{f.system1(), second, fresh} {
			if _, err := p.Power(ctx, s); !errors.Is(err, ErrCircuitOpen) {
				t.Errorf("%s: got %v, want ErrCircuitOpen", s.BMC.Name, err)
			}
		}
		if asked := slices.Concat(f.requests(), other.requests(), third.requests()); len(asked) != 0 {
			t.Errorf("asked %v", asked)
		}
		if n := gauge(t, reg, "ingot_redfish_circuit_open"); n != 2 {
			t.Errorf("metric says %v open, want 2", n)
		}
		now.add(breakFor)
		f.change(func() { f.password = password })
		if _, err := p.Power(ctx, f.system1()); err != nil {
			t.Errorf("after 15 minutes: %v", err)
		}
		if n := gauge(t, reg, "ingot_redfish_circuit_open"); n != 0 {
			t.Errorf("metric says %v open, want 0", n)
		}
	})
	t.Run("is forgotten when it changes (D7)", func(t *testing.T) {
		f := newFake(t, plain)
		f.password = "changed"
		p := newPool(t, Options{})
		if _, err := p.Power(ctx, f.system1()); !errors.Is(err, ErrUnauthorized) {
			t.Fatalf("got %v, want ErrUnauthorized", err)
		}
		s := f.system1()
		s.BMC.Password = model.NewSensitive("changed")
		if _, err := p.Power(ctx, s); err != nil {
			t.Errorf("with the new password: %v", err)
		}
	})
	t.Run("at one BMC is no reason to leave those alone that take it", func(t *testing.T) {
		f, good, third := newFake(t, plain), newFake(t, plain), newFake(t, plain)
		f.password = "changed"
		p := newPool(t, Options{})
		must.Get(p.Power(ctx, good.system1()))(t)
		bad := f.system1()
		bad.BMC.Name = "bmc-2"
		if _, err := p.Power(ctx, bad); !errors.Is(err, ErrUnauthorized) {
			t.Fatalf("got %v, want ErrUnauthorized", err)
		}
		fresh := third.system1()
		fresh.BMC.Name = "bmc-3"
		for _, s := range []model.SystemTarget{good.system1(), fresh} {
			if _, err := p.Power(ctx, s); err != nil {
				t.Errorf("%s: %v", s.BMC.Name, err)
			}
		}
		if _, err := p.Power(ctx, bad); !errors.Is(err, ErrCircuitOpen) {
			t.Errorf("got %v, want ErrCircuitOpen", err)
		}
	})
	t.Run("is not so where HTTP Basic took it", func(t *testing.T) {
		f, good := newFake(t, plain), newFake(t, plain)
		f.password, good.basic = "changed", true
		delete(good.resources["/redfish/v1/"], "Links")
		p := newPool(t, Options{})
		bad := f.system1()
		bad.BMC.Name = "bmc-2"
		must.Get(p.Power(ctx, good.system1()))(t)
		if _, err := p.Power(ctx, bad); !errors.Is(err, ErrUnauthorized) {
			t.Fatalf("got %v, want ErrUnauthorized", err)
		}
		if _, err := p.Power(ctx, good.system1()); err != nil {
			t.Errorf("the BMC that takes it: %v", err)
		}
	})
	t.Run("is found with HTTP Basic too", func(t *testing.T) {
		f := newFake(t, plain)
		f.basic, f.password = true, "changed"
		delete(f.resources["/redfish/v1/"], "Links")
		p := newPool(t, Options{})
		if _, err := p.Power(ctx, f.system1()); !errors.Is(err, ErrUnauthorized) {
			t.Fatalf("got %v, want ErrUnauthorized", err)
		}
		if diff := cmp.Diff([]string{"GET /redfish/v1/", poll, poll}, f.requests()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		if _, err := p.Power(ctx, f.system1()); !errors.Is(err, ErrCircuitOpen) {
			t.Errorf("got %v, want ErrCircuitOpen", err)
		}
	})
}

func TestClose(t *testing.T) {
	f := newFake(t, plain)
	p := NewPool(Options{Networks: loopback})
	must.Get(p.Power(context.Background(), f.system1()))(t)
	moved := f.system1()
	moved.BMC.Username = "someone-else"
	if _, err := p.Power(context.Background(), moved); err == nil {
		t.Fatal("another user was let in")
	}
	if _, err := p.Power(context.Background(), f.system1()); !errors.Is(err, ErrCircuitOpen) && err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := p.Close(ctx); err != nil { // with a context that has ended (B16)
		t.Fatal(err)
	}
	if len(f.sessions) != 0 {
		t.Errorf("%d sessions are left", len(f.sessions))
	}
	if _, err := p.Power(context.Background(), f.system1()); !errors.Is(err, errClosed) {
		t.Errorf("a closed pool answers %v", err)
	}
}

func TestForgetLogsOut(t *testing.T) {
	f := newFake(t, plain)
	p := NewPool(Options{Networks: loopback})
	must.Get(p.Power(context.Background(), f.system1()))(t)
	p.Forget(context.Background(), "bmc-1")
	must.Do(t, p.Close(context.Background()))
	if len(f.sessions) != 0 {
		t.Errorf("%d sessions are left", len(f.sessions))
	}
}

func TestMetrics(t *testing.T) {
	f := newFake(t, plain)
	reg := prometheus.NewPedanticRegistry()
	p := newPool(t, Options{Registerer: reg, RequestsPerSecond: 5})
	missing := f.system1()
	missing.URI = "/redfish/v1/Systems/9"
	if _, err := p.Power(context.Background(), missing); !errors.Is(err, ErrNotFound) {
		t.Fatalf("got %v, want ErrNotFound", err)
	}
	want := `
# HELP ingot_redfish_connections_opened_total TCP connections to BMCs opened.
# TYPE ingot_redfish_connections_opened_total counter
ingot_redfish_connections_opened_total 1
# HELP ingot_redfish_requests_per_second_limit Maximum requests per second to one BMC (bmc.requestsPerSecond); ` +
		`a slow BMC is sent fewer. 0 = no limit.
# TYPE ingot_redfish_requests_per_second_limit gauge
ingot_redfish_requests_per_second_limit 5
# HELP ingot_redfish_requests_total Requests sent to BMCs, by HTTP status code ("none" = no answer) and method.
# TYPE ingot_redfish_requests_total counter
ingot_redfish_requests_total{code="200",method="GET"} 1
ingot_redfish_requests_total{code="201",method="POST"} 1
ingot_redfish_requests_total{code="401",method="DELETE"} 0
ingot_redfish_requests_total{code="401",method="GET"} 0
ingot_redfish_requests_total{code="401",method="PATCH"} 0
ingot_redfish_requests_total{code="401",method="POST"} 0
ingot_redfish_requests_total{code="404",method="GET"} 1
ingot_redfish_requests_total{code="none",method="DELETE"} 0
ingot_redfish_requests_total{code="none",method="GET"} 0
ingot_redfish_requests_total{code="none",method="PATCH"} 0
ingot_redfish_requests_total{code="none",method="POST"} 0
# HELP ingot_redfish_sessions_opened_total Redfish sessions opened.
# TYPE ingot_redfish_sessions_opened_total counter
ingot_redfish_sessions_opened_total 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "ingot_redfish_connections_opened_total",
		"ingot_redfish_requests_per_second_limit", "ingot_redfish_requests_total", "ingot_redfish_sessions_opened_total"); err != nil {
		t.Error(err)
	}
	problems, err := testutil.GatherAndLint(reg)
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: %v, %v", problems, err)
	}
}

func gauge(t *testing.T, reg *prometheus.Registry, name string) float64 {
	t.Helper()
	families := must.Get(reg.Gather())(t)
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

// A BMC that was restarted names its sessions anew: the one that was ours may be somebody else's.
func TestTheSessionOfSomebodyElseIsLeftAlone(t *testing.T) {
	f := newFake(t, plain)
	p := newPool(t, Options{})
	must.Get(p.Power(t.Context(), f.system1()))(t)
	f.dropSessions()
	var by []string
	f.answers(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodDelete {
			by = append(by, r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]+" by "+r.Header.Get("X-Auth-Token"))
		}
		return false
	})
	must.Get(p.Power(t.Context(), f.system1()))(t)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(by) != 1 || by[0][:strings.Index(by[0], " ")] != by[0][strings.LastIndex(by[0], " ")+1:] {
		t.Errorf("deleted: %q, want the former session by its own token", by)
	}
}

func TestALoginThatWasBegunIsAwaited(t *testing.T) {
	f := newFake(t, plain)
	p := newPool(t, Options{})
	ctx, stop := context.WithCancel(t.Context())
	f.answers(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost {
			stop() // as Ctrl-C in the middle of it
		}
		return false
	})
	if _, err := p.Power(ctx, f.system1()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.sessions) != 0 {
		t.Errorf("%d sessions are left open", len(f.sessions))
	}
}
