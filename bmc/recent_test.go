package bmc

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"ingot/model"
	"ingot/model/must"
)

// The answer to the write of a boot override identifies the machine for a reset that follows at once over the same connection, and
// for no other.
func TestRecentIdentity(t *testing.T) {
	swap := func(f *fake) {
		f.change(func() { f.resources[sysURI]["UUID"] = "11111111-7742-3448-3784-823347823834" })
	}
	tests := map[string]struct {
		meanwhile func(*Pool, *fake, *clock)
		reads     int // of the system, before the change or the refusal
		refused   bool
	}{
		"of a moment ago counts": {meanwhile: func(*Pool, *fake, *clock) {}},
		"that only a poll showed does not": {meanwhile: func(p *Pool, f *fake, _ *clock) {
			_, _ = p.Power(context.Background(), machine(f))
			f.requests()
			swap(f)
		}, reads: 1, refused: true},
		"of two seconds ago does not": {meanwhile: func(_ *Pool, f *fake, now *clock) { swap(f); now.add(2 * time.Second) }, reads: 1, refused: true},
		"does not count after another connection": {meanwhile: func(p *Pool, f *fake, _ *clock) {
			swap(f)
			p.clients["bmc-1"].wire.closeIdle()
			p.Power(context.Background(), other(f))
		}, reads: 1, refused: true},
		"does not count after another login": {meanwhile: func(p *Pool, f *fake, _ *clock) { swap(f); p.clients["bmc-1"].auth.Store(nil) }, reads: 1, refused: true},
		"does not count after a change of power": {meanwhile: func(p *Pool, f *fake, _ *clock) {
			_, _ = p.Reset(context.Background(), machine(f), model.ResetOn, "")
			f.requests()
		}, reads: 1},
		"does not count where a power button may be pressed": {meanwhile: func(p *Pool, f *fake, _ *clock) {
			p.clients["bmc-1"].learn(sysURI, func(s *systemState) { s.resets = []string{pushButton, "ForceOff"} })
		}, reads: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f, now := newFake(t, plain), newClock()
			p := newPool(t, Options{Clock: now.Now})
			must.Get(p.Discover(t.Context(), f.target()))(t)
			must.Get(p.BootOnce(t.Context(), machine(f), model.BootPXE))(t)
			f.requests()
			tt.meanwhile(p, f, now)
			_, err := p.Reset(t.Context(), machine(f), model.ResetForceOff, "")
			if (err != nil) != tt.refused {
				t.Errorf("got %v", err)
			}
			if n := counted(f.requests(), http.MethodGet+" "+sysURI); n != tt.reads {
				t.Errorf("%d readings, want %d", n, tt.reads)
			}
		})
	}
}

// machine is the fake's system with its UUID.
func machine(f *fake) model.SystemTarget {
	s := f.system1()
	s.UUID = "38947555-7742-3448-3784-823347823834"
	return s
}

// other is a system that the fake does not have.
func other(f *fake) model.SystemTarget {
	s := f.system1()
	s.URI = "/redfish/v1/Systems/2"
	return s
}

// A write whose answer is the system is read back by that.
func TestWriteAnsweredWithTheSystem(t *testing.T) {
	for name, tt := range map[string]struct {
		shown string
		reads int
	}{
		"as asked for is not read again": {shown: "Once", reads: 0},
		"otherwise is read":              {shown: "Disabled", reads: 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, plain)
			p := newPool(t, Options{})
			must.Get(p.Discover(t.Context(), f.target()))(t)
			must.Get(p.Power(t.Context(), machine(f)))(t)
			f.requests()
			f.answers(func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodPatch {
					return false
				}
				f.change(func() {
					f.resources[sysURI]["Boot"].(object)["BootSourceOverrideEnabled"] = "Once"
					f.resources[sysURI]["Boot"].(object)["BootSourceOverrideTarget"] = "Pxe"
				})
				json.NewEncoder(w).Encode(object{"@odata.id": sysURI, "PowerState": "Off", "UUID": "38947555-7742-3448-3784-823347823834",
					"Boot": object{"BootSourceOverrideEnabled": tt.shown, "BootSourceOverrideTarget": "Pxe"}})
				return true
			})
			if variant, err := p.BootOnce(t.Context(), machine(f), model.BootPXE); variant != variantDefault || err != nil {
				t.Errorf("got %q, %v", variant, err)
			}
			if n := counted(f.requests(), http.MethodGet+" "+sysURI); n != tt.reads {
				t.Errorf("%d readings, want %d", n, tt.reads)
			}
		})
	}
}
