package reconcile

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ingot/model"
)

// A machine of the same UUID is plugged in at some time of a server's life, and taken
// away again.
func TestATwinHoldsUpWhateverIsUnderWay(t *testing.T) {
	tests := map[string]struct {
		until func(w *loopWorld) // the twin comes
		then  string             // while it is there
		want  string             // some time after it is gone
	}{
		"a discovery": {until: func(w *loopWorld) { w.untilState(model.StateDiscovery) }, then: "Initial Off", want: "Available Off"},
		"a wipe": {until: func(w *loopWorld) {
			w.expect(10*time.Minute, 0, "Available Off")
			w.commit(func(d *model.Desired) { d.Add(claim("web")) })
			w.expect(10*time.Minute, 0, "Reserved On default/web")
			w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
			w.untilState(model.StateCleanup)
		}, then: "Cleanup Off", want: "Available Off"},
		"an install": {until: func(w *loopWorld) {
			w.expect(10*time.Minute, 0, "Available Off")
			w.commit(func(d *model.Desired) { d.Add(claim("web")) })
			w.untilState(model.StateReserved)
			for !w.Observed().Servers["bmc00-system-0"].Boot.Ticket.MayBoot(nil) {
				pass(100 * time.Millisecond)
			}
		}, then: "Reserved On default/web", want: "Reserved On default/web"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newLoopWorld(t, 2)
				twin := w.desired.BMCs["bmc01"]
				delete(w.desired.BMCs, "bmc01")
				w.machine(1).uuid = w.machine(0).uuid
				w.delay = time.Minute
				w.start()
				defer w.stop()
				tc.until(w)
				boots, installs := len(w.seen(0).boots), w.seen(0).installs
				w.commit(func(d *model.Desired) { d.Add(twin) })
				w.expect(20*time.Minute, 0, tc.then) // and not only once its time is over
				w.expect(6*time.Hour, 0, tc.then)
				rec, m := w.Observed().Servers["bmc00-system-0"], w.seen(0)
				for _, b := range m.boots[boots:] {
					if !strings.HasPrefix(b, "disk") {
						t.Errorf("while another has its UUID it booted %q", b)
					}
				}
				if rec.Boot.Ticket.Open() || m.installs != installs || w.state(1) != "unknown" {
					t.Errorf("while another has its UUID its ticket is %+v, it was installed %d times, and the other is %q", rec.Boot.Ticket,
						m.installs-installs, w.state(1))
				}
				if why := w.plan().Servers[0].Why; why.Reason != model.ReasonDuplicateUUID {
					t.Errorf("it says %+v", why)
				}
				w.commit(func(d *model.Desired) { delete(d.BMCs, "bmc01") })
				w.expect(time.Hour, 0, tc.want)
				if rec := w.Observed().Servers["bmc00-system-0"]; rec.Life.State == model.StateReserved && rec.Install.Digest == "" {
					t.Errorf("it was not installed once the twin was gone: %+v", rec)
				}
			})
		})
	}
}
