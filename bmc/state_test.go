package bmc

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"ingot/model"
	"ingot/model/must"
)

// One GET says which machine it is, whether it is on and when it was last reset.
func TestState(t *testing.T) {
	const serial, kind = "437XR1138R2", "3500"
	const here, other = "38947555-7742-3448-3784-823347823834", "4c4c4544-0059-3110-8035-b4c04f4d4232"
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		change object
		want   SystemState
	}{
		"without a last reset": {
			change: object{},
			want:   SystemState{Board: model.Board{SerialNumber: serial, Model: kind}, Power: model.PowerOff, UUID: here},
		},
		"with a last reset": {
			change: object{"LastResetTime": "2026-11-21T11:00:00+01:00"},
			want:   SystemState{Board: model.Board{SerialNumber: serial, Model: kind}, Power: model.PowerOff, UUID: here, LastReset: at},
		},
		"of another machine": {
			change: object{"UUID": "4C4C4544-0059-3110-8035-B4C04F4D4232", "PowerState": "On"},
			want:   SystemState{Board: model.Board{SerialNumber: serial, Model: kind}, Power: model.PowerOn, UUID: other},
		},
		"without a UUID": {
			change: object{"UUID": nil},
			want:   SystemState{Board: model.Board{SerialNumber: serial, Model: kind}, Power: model.PowerOff},
		},
		"with a UUID of zeros": {
			change: object{"UUID": "00000000-0000-0000-0000-000000000000"},
			want:   SystemState{Board: model.Board{SerialNumber: serial, Model: kind}, Power: model.PowerOff},
		},
		"in its self-test": {change: object{"BootProgress": object{"LastState": "MemoryInitializationStarted"}, "PowerState": "On"},
			want: SystemState{Board: model.Board{SerialNumber: serial, Model: kind}, Power: model.PowerOn, UUID: here, POST: true}},
		"through with that": {change: object{"BootProgress": object{"LastState": "OSBootStarted"}, "PowerState": "On"},
			want: SystemState{Board: model.Board{SerialNumber: serial, Model: kind}, Power: model.PowerOn, UUID: here}},
		"with odd properties": {
			change: object{"UUID": 7, "LastResetTime": []any{}, "BootProgress": "PCIResourceConfigStarted"},
			want:   SystemState{Board: model.Board{SerialNumber: serial, Model: kind}, Power: model.PowerOff},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, plain)
			f.etag = func(o object) string {
				return fmt.Sprintf(`"%v %v %v"`, o["PowerState"], o["UUID"], o["LastResetTime"])
			}
			p := newPool(t, Options{})
			must.Get(p.Discover(t.Context(), f.target()))(t)
			f.change(func() {
				maps.Copy(f.resources[sysURI], tt.change)
			})
			for range 2 { // the second time the BMC answers 304
				f.requests()
				got, err := p.State(t.Context(), f.system1())
				if err != nil || got != tt.want {
					t.Errorf("got %+v, %v; want %+v", got, err, tt.want)
				}
				if n := len(f.requests()); n != 1 {
					t.Errorf("%d requests for a reading", n)
				}
			}
		})
	}
}

// An ETag that does not change with the machine is believed only until that is seen.
func TestStateOfASwappedMachine(t *testing.T) {
	f := newFake(t, plain)
	f.etag = func(object) string { return `"same"` }
	now := newClock()
	p := newPool(t, Options{Clock: now.Now})
	for range 2 {
		must.Get(p.State(t.Context(), f.system1()))(t)
	}
	const other = "4c4c4544-0059-3110-8035-b4c04f4d4232"
	f.change(func() { f.resources[sysURI]["UUID"] = other })
	now.add(trustETag)
	if got, err := p.State(t.Context(), f.system1()); err != nil || got.UUID != other {
		t.Errorf("got %+v, %v; want %s", got, err, other)
	}
	f.change(func() { f.resources[sysURI]["UUID"] = "38947555-7742-3448-3784-823347823834" })
	if got, err := p.State(t.Context(), f.system1()); err != nil || got.UUID == other {
		t.Errorf("got %+v, %v; want the first machine", got, err)
	}
}
