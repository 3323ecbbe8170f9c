package reconcile

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ingot/model"
)

// A machine that shows another UUID than before, for its board was replaced or its firmware
// updated, holds what it held: nobody else gets it before a commit names it (law 1).
func TestAMachineWithAnotherUUIDIsNoNewOne(t *testing.T) {
	const other = "00000000-0000-4000-8000-0000000000ff"
	serve := func(w *loopWorld) {
		w.expect(3*time.Minute, 0, "Available Off")
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		w.expect(2*time.Minute, 0, "Reserved On default/web")
	}
	for name, tt := range map[string]struct {
		before func(w *loopWorld)
		uri    string // of the machine from then on, "" = as before
		says   string
	}{
		"that serves a claim": {before: serve, says: "claim default/web has"},
		"that serves a claim, and stands elsewhere behind its BMC": {
			before: func(w *loopWorld) {
				serve(w)
			},
			uri:  "/redfish/v1/Systems/437XR1138R2",
			says: "claim default/web has",
		},
		"that is to be wiped": {
			before: func(w *loopWorld) {
				serve(w)
				w.change(0, func(m *machine) { m.wipeFail = true })
				w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
				w.expect(time.Hour, 0, "Error Off")
			},
			says: "data of its last user",
		},
		"that was found running": {
			before: func(w *loopWorld) {
				w.expect(3*time.Minute, 0, "Initial On")
			},
			says: "found running",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newLoopWorld(t, 1)
				m := w.machine(0)
				m.name = "s1"
				if tt.says == "found running" {
					m.power = model.PowerOn
				}
				w.desired.Add(&model.Server{Meta: model.Meta{Name: "s1"}, Spec: model.ServerSpec{SystemUUID: m.uuid}})
				w.start()
				defer w.stop()
				tt.before(w)
				before := w.seen(0)
				w.change(0, func(m *machine) {
					m.name, m.uuid, m.power = "bmc00-system-0", other, model.PowerOff
					if tt.uri != "" {
						w.machines[tt.uri] = m
						delete(w.machines, "/redfish/v1/Systems/0")
					}
				})
				w.commit(func(d *model.Desired) { d.Add(claim("db")) })
				pass(3 * time.Hour)
				w.mu.Lock()
				if m.ons != before.ons || m.installs != before.installs || m.disk != before.disk {
					t.Errorf("powered on %d times, installed %d times: before %d and %d", m.ons, m.installs, before.ons, before.installs)
				}
				m.name, m.wipeFail = "s2", false
				w.mu.Unlock()
				if n := len(w.Observed().Servers); n != 1 {
					t.Errorf("%d servers are known, want 1", n)
				}
				if says := strings.Join(w.plan().BMCs[0].Problems, "\n"); !strings.Contains(says, tt.says) {
					t.Errorf("the BMC says %q", says)
				}
				w.commit(func(d *model.Desired) {
					d.Add(&model.Server{Meta: model.Meta{Name: "s2"}, Spec: model.ServerSpec{SystemUUID: other}})
				})
				pass(10 * time.Minute)
				if rec := w.Observed().Servers["s2"]; rec == nil || rec.Claim.Name != "default/db" || rec.Install.Digest == "" {
					t.Errorf("once a commit names it, it is %+v", rec)
				}
			})
		})
	}
}
