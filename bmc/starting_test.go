package bmc

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/model/must"
)

// loginTimes polls a BMC every 10 s, and returns the times after the first poll at which it got logins.
func loginTimes(t *testing.T, p *Pool, now *clock, f *fake, s model.SystemTarget, during time.Duration) (times []time.Duration) {
	for after := time.Duration(0); after <= during; after += 10 * time.Second {
		_, _ = p.Power(t.Context(), s)
		for range counted(f.requests(), login) {
			times = append(times, after)
		}
		now.add(10 * time.Second)
	}
	return times
}

func TestRefusalOfAcceptedCredentials(t *testing.T) {
	const pause, last = model.RefusedPause, model.RefusedPauseMax
	every := []time.Duration{0}
	for i := range time.Duration(model.RefusedTries + 1) {
		every = append(every, i*pause)
	}
	every = append(every, model.RefusedTries*pause+last)
	for name, tc := range map[string]struct {
		refusals int           // on record
		ago      time.Duration // of the last of them
		want     []time.Duration
	}{
		"is asked again ten times":            {want: every},
		"goes on after a restart":             {refusals: 9, ago: 40 * time.Second, want: []time.Duration{pause - 40*time.Second, 2*pause - 40*time.Second, 2*pause + last - 40*time.Second}},
		"is asked seldom after a restart":     {refusals: 11, ago: time.Minute, want: []time.Duration{last - time.Minute}},
		"is asked at once after a long stop":  {refusals: 11, ago: time.Hour, want: []time.Duration{0, last}},
		"is asked at once if a clock was off": {refusals: 11, ago: -time.Hour, want: []time.Duration{0, last}},
	} {
		t.Run(name, func(t *testing.T) {
			f, now := newFake(t, plain), newClock()
			p := newPool(t, Options{Clock: now.Now})
			f.password = "changed"
			s := f.system1()
			s.BMC.Accepted = model.Acceptance{Here: true, Refused: model.Refusals{Count: tc.refusals, At: now.Now().Add(-tc.ago)}}
			got := loginTimes(t, p, now, f, s, tc.want[len(tc.want)-1]+5*time.Second)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("logins (-want +got):\n%s", diff)
			}
			_, err := p.Power(t.Context(), s)
			if !errors.Is(err, ErrRefusedForNow) || errors.Is(err, ErrUnauthorized) || strings.Contains(err.Error(), "BMCSecret") {
				t.Errorf("got %v", err)
			}
			f.change(func() { f.password = password })
			now.add(last)
			must.Get(p.Power(t.Context(), s))(t)
		})
	}
}

// Refusals count against the credentials themselves only if no BMC ever accepted them.
func TestRefusalsThatConcernOtherBMCs(t *testing.T) {
	here, elsewhere, never := model.Acceptance{Here: true}, model.Acceptance{Elsewhere: true}, model.Acceptance{}
	for name, tc := range map[string]struct {
		refusing, third model.Acceptance
		want            error
	}{
		"by BMCs that start, one that accepted them": {here, here, nil},
		"by BMCs that start, a new one":              {here, never, nil},
		"by new BMCs, one that accepted them":        {never, here, nil},
		"by new BMCs, if another accepted them":      {elsewhere, elsewhere, nil},
		"by new BMCs, if no BMC accepted them":       {never, never, ErrCircuitOpen},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPool(t, Options{}) // of an Ingot that was restarted a moment ago
			for i, bmc := range []model.BMCName{"bmc-1", "bmc-2", "bmc-3"} {
				f := newFake(t, plain)
				s := f.system1()
				s.BMC.Name, s.BMC.Accepted = bmc, tc.refusing
				if i == 2 {
					s.BMC.Accepted = tc.third
				} else {
					f.password = "changed"
				}
				if _, err := p.Power(t.Context(), s); i == 2 && !errors.Is(err, tc.want) || i < 2 && err == nil {
					t.Errorf("%s: got %v", bmc, err)
				}
			}
		})
	}
}

func TestSessionTableFull(t *testing.T) {
	for _, id := range []string{"Base.1.8.SessionLimitExceeded", "IDRAC.2.8.RAC0218"} {
		for _, status := range []int{http.StatusServiceUnavailable, http.StatusBadRequest, http.StatusForbidden, http.StatusInternalServerError} {
			for _, basic := range []bool{true, false} {
				t.Run(fmt.Sprintf("%d %s, HTTP Basic %t", status, id, basic), func(t *testing.T) {
					f, now := newFake(t, plain), newClock()
					f.basic = basic
					f.answers(func(w http.ResponseWriter, r *http.Request) bool {
						if r.Method != http.MethodPost {
							return false
						}
						w.Header().Set("Retry-After", "30")
						fail(w, status, id)
						return true
					})
					p := newPool(t, Options{Clock: now.Now})
					_, err := p.Power(t.Context(), f.system1())
					if basic == (err != nil) || !basic && (!errors.Is(err, ErrSessionsFull) || errors.Is(err, ErrUnauthorized)) {
						t.Fatalf("HTTP Basic %t: %v", basic, err)
					}
					f.answers(nil)
					now.add(sessionFails + time.Second)
					must.Get(p.Power(t.Context(), f.system1()))(t)
					if f.open() != 1 {
						t.Errorf("%d sessions once there is room, want 1", f.open())
					}
				})
			}
		}
	}
}

// endings are how BMCs answer a request of a session that has ended.
var endings = map[string]func(http.ResponseWriter, *http.Request){
	"401": func(w http.ResponseWriter, _ *http.Request) {
		fail(w, http.StatusUnauthorized, "Base.1.0.NoValidSession")
	},
	"403": func(w http.ResponseWriter, _ *http.Request) { fail(w, http.StatusForbidden, "Base.1.0.NoValidSession") },
	"302": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login.html", http.StatusFound) },
	"200": func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "\n<!DOCTYPE html><html>Log in</html>")
	},
}

func TestSessionThatEnds(t *testing.T) {
	reset := "POST " + sysURI + "/Actions/ComputerSystem.Reset"
	for name, ends := range endings {
		start := func(t *testing.T, accepts func(r *http.Request) bool) (*fake, *Pool) {
			f := newFake(t, plain)
			f.resources[sysURI]["PowerState"] = "On"
			p := newPool(t, Options{})
			must.Get(p.Discover(t.Context(), f.target()))(t)
			f.requests()
			f.answers(func(w http.ResponseWriter, r *http.Request) bool {
				switch {
				case r.URL.Path == "/login.html":
					endings["200"](w, r)
				case r.URL.Path == "/redfish/v1/" || strings.HasSuffix(r.URL.Path, "/Sessions") || accepts(r):
					return false
				default:
					ends(w, r)
				}
				return true
			})
			return f, p
		}
		t.Run(name+" is renewed once", func(t *testing.T) {
			f, p := start(t, func(r *http.Request) bool { return r.Header.Get("X-Auth-Token") != "token-2" })
			must.Get(p.Power(t.Context(), f.system1()))(t)
			if asked := f.requests(); counted(asked, login) != 1 || counted(asked, poll) != 2 {
				t.Errorf("asked %v", asked)
			}
		})
		t.Run(name+" that goes on is the reason", func(t *testing.T) {
			f, p := start(t, func(*http.Request) bool { return false })
			for range 3 {
				_, err := p.Power(t.Context(), f.system1())
				if !errors.Is(err, ErrUnauthorized) && !errors.Is(err, ErrHalfAnswer) {
					t.Errorf("got %v", err)
				}
			}
			if n := counted(f.requests(), login); n != 1 {
				t.Errorf("%d logins of three polls, want one", n)
			}
		})
		t.Run(name+" before a write", func(t *testing.T) {
			ended := false
			f, p := start(t, func(r *http.Request) bool {
				ended = ended || r.Method == http.MethodPost
				return !ended || r.Header.Get("X-Auth-Token") != "token-2"
			})
			refused := name == "401" || name == "403" // for certain, so it is repeated
			err := errOf(p.Reset(t.Context(), f.system1(), model.ResetForceOff, ""))
			if refused != (err == nil) || NotCarriedOut(err) {
				t.Errorf("got %v, not carried out %t", err, NotCarriedOut(err))
			}
			if n, want := counted(f.requests(), reset), map[bool]int{true: 2, false: 1}[refused]; n != want {
				t.Errorf("%d requests for the reset, want %d", n, want)
			}
			must.Get(p.Power(t.Context(), f.system1()))(t)
		})
	}
}

// A BMC is usable two minutes after its start at the latest, and used with sessions and queries after ten more.
func TestStartOfABMC(t *testing.T) {
	at := func(method, path string, answer func(http.ResponseWriter, *http.Request)) func(*fake) {
		return func(f *fake) {
			f.answers(func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != method || !strings.HasPrefix(r.URL.Path, path) || r.URL.Path == "/redfish/v1/" && path != r.URL.Path {
					return false
				}
				answer(w, r)
				return true
			})
		}
	}
	status := func(code int, id string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Retry-After", "900"); fail(w, code, id) }
	}
	resource := func(uri string, change func(object)) func(*fake) {
		return func(f *fake) {
			whole := f.resources[uri]
			part := maps.Clone(whole)
			change(part)
			f.resources[uri] = part
			f.ready = func() { f.resources[uri] = whole }
		}
	}
	const sessions, all = "/redfish/v1/SessionService/Sessions", "/redfish/v1/"
	for name, starts := range map[string]func(*fake){
		"connections that are closed": at("GET", all, drop),
		"a root with 404":             at("GET", "/redfish/v1/", status(404, "Base.1.0.ResourceMissingAtURI")),
		"a root that is a page":       at("GET", "/redfish/v1/", endings["200"]),
		"503 that asks for much time": at("GET", all, status(503, "Base.1.0.ServiceTemporarilyUnavailable")),
		"a login with 401":            at("POST", sessions, endings["401"]),
		"a login with 403":            at("POST", sessions, status(403, "Base.1.0.InsufficientPrivilege")),
		"a login with 404":            at("POST", sessions, status(404, "Base.1.0.ResourceMissingAtURI")),
		"a login with 405":            at("POST", sessions, status(405, "Base.1.0.OperationNotAllowed")),
		"a login with 503":            at("POST", sessions, status(503, "Base.1.0.ServiceTemporarilyUnavailable")),
		"a login that is a page":      at("POST", sessions, endings["200"]),
		"a full session table":        at("POST", sessions, status(503, "Base.1.0.SessionLimitExceeded")),
		"systems with 401":            at("GET", "/redfish/v1/Systems", endings["401"]),
		"systems with 404":            at("GET", "/redfish/v1/Systems", status(404, "Base.1.0.ResourceMissingAtURI")),
		"systems that are a page":     at("GET", "/redfish/v1/Systems", endings["200"]),
		"systems with a redirect":     at("GET", "/redfish/v1/Systems", endings["302"]),
		"a root without sessions":     resource("/redfish/v1/", func(o object) { delete(o, "Links") }),
		"a root without systems":      resource("/redfish/v1/", func(o object) { delete(o, "Systems") }),
		"a root without queries":      resource("/redfish/v1/", func(o object) { delete(o, "ProtocolFeaturesSupported") }),
		"no systems":                  resource("/redfish/v1/Systems", func(o object) { o["Members"] = []any{} }),
		"one of two systems":          resource("/redfish/v1/Systems", func(o object) { o["Members@odata.count"] = 2 }),
		"a system without UUID":       resource(sysURI, func(o object) { delete(o, "UUID") }),
		"a system without reset":      resource(sysURI, func(o object) { delete(o, "Actions") }),
	} {
		for _, basic := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, HTTP Basic %t", name, basic), func(t *testing.T) {
				f, now := newFake(t, plain), newClock()
				f.basic = basic
				p := newPool(t, Options{Clock: now.Now})
				target := f.target()
				target.Accepted.Here = true
				starts(f)
				for range 3 { // as the plan does
					facts, err := p.Discover(t.Context(), target)
					if err == nil && !facts.Starting && !basic && !strings.HasSuffix(name, "queries") {
						t.Errorf("it is usable, with %+v", facts)
					}
					now.add(model.RefusedPause)
				}
				f.answers(nil)
				f.change(func() {
					if f.ready != nil {
						f.ready()
					}
				})
				facts, err := p.Discover(t.Context(), target)
				if err != nil || facts.Starting || len(facts.Systems) != 1 {
					t.Fatalf("%v after it started: %+v, %v", model.RefusedPause, facts, err)
				}
				must.Get(p.Power(t.Context(), f.system1()))(t)
				now.add(sessionFails + time.Second)
				f.requests()
				must.Get(p.Discover(t.Context(), target))(t)
				if asked := f.requests(); f.open() != 1 || !slices.ContainsFunc(asked, func(r string) bool { return strings.Contains(r, "$expand") }) {
					t.Errorf("10 minutes later %d sessions are open, and it was asked %v", f.open(), asked)
				}
			})
		}
	}
}

// A path that was refused to a fresh session is no reason to stay without one after a restart of the BMC.
func TestDeniedPathAfterARestart(t *testing.T) {
	f, now := newFake(t, plain), newClock()
	p := newPool(t, Options{Clock: now.Now})
	at := func() error { _, err := p.Power(t.Context(), f.system1()); return err }
	must.Do(t, at())
	f.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == sysURI {
			endings["401"](w, r)
		}
		return r.URL.Path == sysURI
	})
	if err := at(); !errors.Is(err, ErrUnauthorized) {
		t.Fatalf("got %v", err)
	}
	f.answers(nil)
	f.dropSessions()
	now.add(model.RefusedPause)
	must.Do(t, at())
}

// Reset types that could not be read while the BMC started are read again.
func TestResetTypesAfterAStart(t *testing.T) {
	const info = sysURI + "/ResetActionInfo"
	f := newFake(t, plain)
	f.resources[sysURI]["Actions"] = object{"#ComputerSystem.Reset": object{
		"target": sysURI + "/Actions/ComputerSystem.Reset", "@Redfish.ActionInfo": info,
	}}
	f.resources[info] = object{"Name": "Reset", "Parameters": []any{object{"Name": "ResetType", "AllowableValues": []any{"PushPowerButton"}}}}
	f.reset = func(resetType string) (int, string) {
		if resetType != "PushPowerButton" {
			return http.StatusBadRequest, "Base.1.0.ActionParameterNotSupported"
		}
		f.setPower(resetType)
		return http.StatusNoContent, ""
	}
	p := newPool(t, Options{})
	on := func() error { return errOf(p.Reset(t.Context(), f.system1(), model.ResetOn, "")) }
	f.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == info {
			fail(w, http.StatusServiceUnavailable, "Base.1.0.ServiceTemporarilyUnavailable")
		}
		return r.URL.Path == info
	})
	if on() == nil {
		t.Fatal("it is on")
	}
	f.answers(nil)
	must.Do(t, on())
}
