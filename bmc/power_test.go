package bmc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/model/must"
)

func TestPower(t *testing.T) {
	ctx := context.Background()
	poll := func(t *testing.T, p *Pool, f *fake) model.Power {
		t.Helper()
		f.requests()
		power := must.Get(p.Power(ctx, f.system1()))(t)
		if n := counted(f.requests(), "GET "+sysURI); n != 1 {
			t.Errorf("%d GETs for a poll, want 1", n)
		}
		return power
	}
	answered := func(f *fake) *[]int { // If-None-Match seen
		var conditional []int
		f.answer = func(_ http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == sysURI {
				conditional = append(conditional, len(r.Header["If-None-Match"]))
			}
			return false
		}
		return &conditional
	}
	set := func(f *fake, power string) { f.change(func() { f.resources[sysURI]["PowerState"] = power }) }

	t.Run("is asked for with the ETag, and a change is seen", func(t *testing.T) {
		f, now := newFake(t, plain), newClock()
		conditional := answered(f)
		f.etag = func(o object) string { return fmt.Sprintf(`W/"%s"`, o["PowerState"]) }
		p := newPool(t, Options{Clock: now.Now})
		got := []model.Power{poll(t, p, f)}
		now.add(time.Minute)
		got = append(got, poll(t, p, f))
		set(f, "On")
		got = append(got, poll(t, p, f))
		now.add(time.Second) // a confirmation does not depend on the ETag
		got = append(got, poll(t, p, f))
		if diff := cmp.Diff([]model.Power{"Off", "Off", "On", "On"}, got); diff != "" {
			t.Errorf("power (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]int{0, 1, 1, 0}, *conditional); diff != "" {
			t.Errorf("conditional polls (-want +got):\n%s", diff)
		}
	})
	t.Run("is not believed for ever of a BMC whose ETag stays", func(t *testing.T) {
		f, now := newFake(t, plain), newClock()
		f.etag = func(object) string { return `"same"` }
		p := newPool(t, Options{Clock: now.Now})
		poll(t, p, f)
		set(f, "On")
		now.add(trustETag)
		if got := poll(t, p, f); got != model.PowerOn {
			t.Errorf("after five minutes got %s, want On", got)
		}
		set(f, "Off")
		if got := poll(t, p, f); got != model.PowerOff {
			t.Errorf("once the ETag is known to stay got %s, want Off", got)
		}
	})
	t.Run("is read whole for a while after a reset (B08)", func(t *testing.T) {
		f := newFake(t, plain)
		f.etag = func(object) string { return `"same"` }
		p := newPool(t, Options{})
		poll(t, p, f)
		f.reset = func(resetType string) (int, string) {
			f.setPower(resetType)
			f.lag = 1
			return http.StatusNoContent, ""
		}
		must.Do(t, errOf(p.Reset(ctx, f.system1(), model.ResetOn, "")))
		got := []model.Power{poll(t, p, f), poll(t, p, f)}
		if diff := cmp.Diff([]model.Power{"Off", "On"}, got); diff != "" {
			t.Errorf("power (-want +got):\n%s", diff)
		}
	})
	t.Run("that is in no schema is unknown", func(t *testing.T) {
		f := newFake(t, plain)
		set(f, "Sleepwalking")
		if got := poll(t, newPool(t, Options{}), f); got != model.PowerUnknown {
			t.Errorf("got %s", got)
		}
	})
	t.Run("that cannot be read is an error", func(t *testing.T) {
		f := newFake(t, plain)
		f.answer = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == sysURI {
				w.Write([]byte("{"))
			}
			return r.URL.Path == sysURI
		}
		if got, err := newPool(t, Options{}).Power(ctx, f.system1()); err == nil {
			t.Errorf("got %s", got)
		}
	})
}

func TestReset(t *testing.T) {
	allow := func(types ...any) func(*fake) {
		return func(f *fake) {
			action(f)["ResetType@Redfish.AllowableValues"] = types
		}
	}
	refuse := func(status int, id string) func(*fake) {
		return func(f *fake) { f.reset = func(string) (int, string) { return status, id } }
	}
	tests := map[string]struct {
		power   string
		prepare func(*fake)
		kind    model.ResetKind
		want    []string // reset types that were asked for
		err     error
	}{
		"On":                          {power: "Off", kind: model.ResetOn, want: []string{"On"}},
		"GracefulShutdown":            {power: "On", kind: model.ResetGracefulOff, want: []string{"GracefulShutdown"}},
		"ForceOff":                    {power: "On", kind: model.ResetForceOff, want: []string{"ForceOff"}},
		"GracefulRestart":             {power: "On", kind: model.ResetGracefulRestart, want: []string{"GracefulRestart"}},
		"ForceRestart":                {power: "On", kind: model.ResetForceRestart, want: []string{"ForceRestart"}},
		"PowerCycle falls back (B10)": {power: "On", kind: model.ResetPowerCycle, want: []string{"ForceRestart"}},
		"ForceRestart of an iDRAC (B10)": {
			power: "On", prepare: allow("On", "ForceOff", "GracefulRestart", "PushPowerButton", "Nmi"),
			kind: model.ResetForceRestart, want: []string{"GracefulRestart"},
		},
		"a graceful shutdown by the button (B10)": {
			power: "On", prepare: allow("On", "ForceOff", "PushPowerButton"),
			kind: model.ResetGracefulOff, want: []string{"PushPowerButton"},
		},
		"the button is not pressed on a machine that is off (B10)": {
			power: "Off", prepare: allow("On", "ForceOff", "PushPowerButton"), kind: model.ResetGracefulOff,
		},
		"the button is not pressed on a machine that changes (B08)": {
			power: "PoweringOff", prepare: allow("On", "ForceOff", "PushPowerButton"), kind: model.ResetGracefulOff, err: ErrBusy,
		},
		"a graceful shutdown of a Cray": {
			power: "On", prepare: allow("Off", "On", "ForceOff"), kind: model.ResetGracefulOff, want: []string{"Off"},
		},
		"a graceful shutdown is never made one by force": {
			power: "On", prepare: allow("On", "ForceOff"), kind: model.ResetGracefulOff, err: ErrUnsupported,
		},
		"two types without a comma between them": {
			power: "On", prepare: allow("On", "ForceOff", "GracefulShutdownGracefulRestart"), kind: model.ResetGracefulOff,
			want: []string{"GracefulShutdown"},
		},
		"types that are described elsewhere (B10)": {power: "On", kind: model.ResetForceRestart, want: []string{"PowerCycle"},
			prepare: func(f *fake) {
				delete(action(f), "ResetType@Redfish.AllowableValues")
				action(f)["@Redfish.ActionInfo"] = sysURI + "/ResetActionInfo"
				f.resources[sysURI+"/ResetActionInfo"] = object{
					"Parameters": []any{object{"Name": "ResetType", "AllowableValues": []any{"On", "PowerCycle"}}},
				}
			}},
		"types that are described nowhere are tried (B10)": {power: "On", kind: model.ResetForceRestart,
			want: []string{"ForceRestart", "PowerCycle"}, prepare: func(f *fake) {
				delete(action(f), "ResetType@Redfish.AllowableValues")
				action(f)["@Redfish.ActionInfo"] = sysURI + "/Missing"
				f.reset = func(resetType string) (int, string) {
					if resetType == "ForceRestart" {
						return http.StatusBadRequest, "Base.1.0.ActionParameterNotSupported"
					}
					return http.StatusNoContent, ""
				}
			}},
		"a machine without a reset action": {power: "On", kind: model.ResetForceOff, err: ErrUnsupported, prepare: func(f *fake) {
			f.resources[sysURI]["Actions"] = object{}
		}},
		"On of a machine that is on is not asked for": {power: "On", kind: model.ResetOn},
		"On of a machine that has come on is no error": {
			power: "On", kind: model.ResetOn, want: []string{"On"}, prepare: func(f *fake) {
				f.lag = 1
				f.reset = func(string) (int, string) {
					return http.StatusBadRequest, "iLO.2.25.InvalidOperationForSystemState"
				}
			},
		},
		"ForceOff of a machine that is off is no error": {
			power: "Off", kind: model.ResetForceOff, want: []string{"ForceOff"}, prepare: refuse(http.StatusConflict, "IDRAC.2.8.PSU502"),
		},
		"a machine in the middle of another reset is busy (B12)": {
			power: "Off", kind: model.ResetOn, want: []string{"On"},
			prepare: refuse(http.StatusConflict, "Base.1.0.ResourceInUse"), err: ErrBusy,
		},
		"a restart of a machine that is off switches it on (B11)": {power: "Off", kind: model.ResetForceRestart,
			want: []string{"ForceRestart", "On"}, prepare: func(f *fake) {
				f.reset = func(resetType string) (int, string) {
					if resetType != "On" {
						return http.StatusConflict, "Base.1.0.InvalidOperationForSystemState"
					}
					return http.StatusNoContent, ""
				}
			}},
		"what the account may not do": {
			power: "Off", kind: model.ResetOn, want: []string{"On"},
			prepare: refuse(http.StatusForbidden, "Base.1.0.InsufficientPrivilege"), err: ErrReadOnly,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, plain)
			f.resources[sysURI]["PowerState"] = tt.power
			if tt.prepare != nil {
				tt.prepare(f)
			}
			var asked []string
			inner := f.reset
			f.reset = func(resetType string) (int, string) { asked = append(asked, resetType); return inner(resetType) }
			err := errOf(newPool(t, Options{}).Reset(context.Background(), f.system1(), tt.kind, ""))
			if !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
				t.Errorf("got %v, want %v", err, tt.err)
			}
			if diff := cmp.Diff(tt.want, asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

func action(f *fake) object {
	return f.resources[sysURI]["Actions"].(object)["#ComputerSystem.Reset"].(object)
}

func TestBusyResetSaysWhen(t *testing.T) {
	f := newFake(t, plain)
	f.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "Reset") {
			return false
		}
		w.Header().Set("Retry-After", "7")
		fail(w, http.StatusConflict, "Base.1.0.ResourceInUse")
		return true
	}
	err := errOf(newPool(t, Options{}).Reset(context.Background(), f.system1(), model.ResetOn, ""))
	if after, ok := RetryAfter(err); !errors.Is(err, ErrBusy) || !ok || after != 7*time.Second {
		t.Errorf("got %v, want ErrBusy for 7 s (B12)", err)
	}
}
