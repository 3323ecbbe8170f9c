package bmc

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/model/must"
)

// Nothing is done to another machine than the one that is meant, nor to one that does
// not say which it is, however lately it was the right one.
func TestNothingIsDoneToAnotherMachine(t *testing.T) {
	const here, other = "38947555-7742-3448-3784-823347823834", "4c4c4544-0059-3110-8035-b4c04f4d4232"
	changes := map[string]func(*Pool, model.SystemTarget) error{
		"reset": func(p *Pool, t model.SystemTarget) error {
			return errOf(p.Reset(context.Background(), t, model.ResetForceOff, ""))
		},
		"boot override": func(p *Pool, t model.SystemTarget) error {
			_, err := p.BootOnce(context.Background(), t, model.BootPXE)
			return err
		},
		"clear override": func(p *Pool, t model.SystemTarget) error { return p.ClearBootOverride(context.Background(), t) },
		"indicator": func(p *Pool, t model.SystemTarget) error {
			_, err := p.SetIndicator(context.Background(), t, model.IndicatorLit)
			return err
		},
		"power state": func(p *Pool, t model.SystemTarget) error { _, err := p.Power(context.Background(), t); return err },
		"inventory":   func(p *Pool, t model.SystemTarget) error { _, err := p.Inventory(context.Background(), t); return err },
	}
	tests := map[string]struct {
		meant model.SystemTarget
		now   object
		err   error
	}{
		"the one that is meant": {meant: model.SystemTarget{UUID: here}, now: object{}, err: nil},
		"a swapped one": {
			meant: model.SystemTarget{UUID: here}, now: object{"UUID": strings.ToUpper(other)}, err: ErrOtherMachine,
		},
		"one without a UUID": {meant: model.SystemTarget{UUID: here}, now: object{"UUID": nil}, err: ErrNoIdentity},
		"one with a UUID of zeros": {
			meant: model.SystemTarget{UUID: here}, now: object{"UUID": "00000000-0000-0000-0000-000000000000"},
			err: ErrNoIdentity,
		},
		"one that never had a UUID": {
			meant: model.SystemTarget{Board: model.Board{SerialNumber: "437XR1138R2", Model: "3500"}},
			now:   object{"UUID": nil}, err: nil,
		},
		"one with another serial": {
			meant: model.SystemTarget{Board: model.Board{SerialNumber: "437XR1138R2", Model: "3500"}},
			now:   object{"SerialNumber": "437XR1138R3"}, err: ErrOtherMachine,
		},
		"one of another model": {
			meant: model.SystemTarget{Board: model.Board{SerialNumber: "437XR1138R2", Model: "3500"}},
			now:   object{"Model": "3501"}, err: ErrOtherMachine,
		},
		"one without a serial number": {
			meant: model.SystemTarget{Board: model.Board{SerialNumber: "437XR1138R2", Model: "3500"}},
			now:   object{"SerialNumber": ""}, err: ErrNoIdentity,
		},
		"whichever is there": {meant: model.SystemTarget{}, now: object{"UUID": other}, err: nil},
	}
	for change, do := range changes {
		for name, tt := range tests {
			t.Run(change+" of "+name, func(t *testing.T) {
				f := newFake(t, plain)
				boot := f.resources[sysURI]["Boot"].(object)
				boot["BootSourceOverrideEnabled"], boot["BootSourceOverrideTarget"] = "Continuous", "Pxe"
				f.resources[sysURI]["PowerState"] = "On"
				p := newPool(t, Options{})
				must.Get(p.Power(t.Context(), f.system1()))(t)
				f.change(func() { maps.Copy(f.resources[sysURI], tt.now) })
				target := tt.meant
				target.BMC, target.URI = f.target(), sysURI
				f.requests()
				err := do(p, target)
				if !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
					t.Errorf("got %v, want %v", err, tt.err)
				}
				if tt.err == nil {
					return
				}
				if diff := cmp.Diff([]string{"GET " + sysURI}, f.requests()); diff != "" {
					t.Errorf("requests (-want +got):\n%s", diff)
				}
				if change != "power state" && change != "inventory" && !NotCarriedOut(err) {
					t.Errorf("%v is not known for having changed nothing", err)
				}
			})
		}
	}
}

// An ETag that stays does not hide that the machine is another one.
func TestIdentityIsReadAnew(t *testing.T) {
	f := newFake(t, plain)
	f.etag = func(object) string { return `"same"` }
	p := newPool(t, Options{})
	target := f.system1()
	target.UUID = "38947555-7742-3448-3784-823347823834"
	must.Get(p.Power(t.Context(), target))(t)
	f.change(func() { f.resources[sysURI]["UUID"] = "4c4c4544-0059-3110-8035-b4c04f4d4232" })
	if err := errOf(p.Reset(t.Context(), target, model.ResetForceOff, "")); !errors.Is(err, ErrOtherMachine) {
		t.Errorf("got %v", err)
	}
}

// A machine that is swapped while its override is being written is left at that.
func TestSwappedMeanwhile(t *testing.T) {
	f := newFake(t, plain)
	patches := 0
	f.store = func(string, object) int {
		patches++
		f.resources[sysURI]["UUID"] = "4c4c4544-0059-3110-8035-b4c04f4d4232"
		return http.StatusNoContent // and nothing is kept
	}
	target := f.system1()
	target.UUID = "38947555-7742-3448-3784-823347823834"
	_, err := newPool(t, Options{}).BootOnce(t.Context(), target, model.BootPXE)
	if !errors.Is(err, ErrOtherMachine) || patches != 1 {
		t.Errorf("got %v after %d PATCHes, want ErrOtherMachine after one", err, patches)
	}
}

// What is read before a change is still so when it is made, as far as this process goes:
// a second one waits until the first is done.
func TestOneChangesAMachineAtATime(t *testing.T) {
	f := newFake(t, plain)
	p := newPool(t, Options{})
	must.Get(p.Power(t.Context(), f.system1()))(t)
	c, err := p.client(t.Context(), f.target())
	if err != nil {
		t.Fatal(err)
	}
	unlock := must.Get(c.lockSystem(t.Context(), sysURI))(t)
	f.requests()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err = errOf(p.Reset(ctx, f.system1(), model.ResetForceRestart, ""))
	if asked := f.requests(); !errors.Is(err, context.DeadlineExceeded) || len(asked) > 0 {
		t.Errorf("got %v, and asked %v, while another changes it", err, asked)
	}
	unlock()
	if err := errOf(p.Reset(t.Context(), f.system1(), model.ResetForceRestart, "")); err != nil {
		t.Error(err)
	}
}

// What was read before a reset, and what the BMC was asked for in the end, is told.
func TestResetResult(t *testing.T) {
	tests := map[string]struct {
		power string
		kind  model.ResetKind
		want  model.ResetResult
	}{
		"a power-on": {
			power: "Off", kind: model.ResetOn, want: model.ResetResult{Before: model.PowerOff, Did: model.ResetOn},
		},
		"a power-on of what is on": {power: "On", kind: model.ResetOn, want: model.ResetResult{Before: model.PowerOn}},
		"a restart": {
			power: "On", kind: model.ResetForceRestart,
			want: model.ResetResult{Before: model.PowerOn, Did: model.ResetForceRestart},
		},
		"a restart that became a power-on": {
			power: "Off", kind: model.ResetForceRestart,
			want: model.ResetResult{Before: model.PowerOff, Did: model.ResetOn},
		},
		"a power-off of a machine that is on": {
			power: "On", kind: model.ResetForceOff,
			want: model.ResetResult{Before: model.PowerOn, Did: model.ResetForceOff},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, plain)
			f.resources[sysURI]["PowerState"] = tt.power
			f.reset = func(resetType string) (int, string) {
				if resetType == "ForceRestart" && tt.power == "Off" {
					return http.StatusConflict, "Base.1.0.InvalidOperationForSystemState"
				}
				return http.StatusNoContent, ""
			}
			got, err := newPool(t, Options{}).Reset(t.Context(), f.system1(), tt.kind, "")
			if err != nil || got != tt.want {
				t.Errorf("got %+v, %v; want %+v", got, err, tt.want)
			}
		})
	}
}

// A request for a machine that is Off is not made of one that is not.
func TestResetFromAnotherPower(t *testing.T) {
	for _, power := range []string{"On", "PoweringOn", "Sleepwalking"} {
		f := newFake(t, plain)
		f.resources[sysURI]["PowerState"] = power
		n := executed(f, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
		r, err := newPool(t, Options{}).Reset(t.Context(), f.system1(), model.ResetOn, model.PowerOff)
		if !errors.Is(err, ErrOtherPower) || !NotCarriedOut(err) || r.Before != powerOf(power) || n.Load() != 0 {
			t.Errorf("of a machine that is %s: got %+v, %v and %d resets", power, r, err, n.Load())
		}
	}
}
