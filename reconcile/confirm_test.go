package reconcile

import (
	"testing"
	"testing/synctest"
	"time"

	"ingot/model"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/world"
)

// serving is a world with a server that serves a claim.
func serving(t *testing.T) *loopWorld {
	w := newLoopWorld(t, 1)
	w.start()
	w.expect(time.Minute, 0, "Available Off")
	w.commit(func(d *model.Desired) { d.Add(claim("web")) })
	w.expect(time.Minute, 0, "Reserved On default/web")
	return w
}

// refresh lets time pass until the server's BMC is read once more, and returns once it
// was.
func (w *loopWorld) refresh() {
	w.t.Helper()
	before := w.discoveries()
	for range 2 * 3600 {
		if w.discoveries() > before {
			return
		}
		pass(time.Second)
	}
	w.t.Fatal("the BMC was not read")
}

// discoveries is how often BMCs were read.
func (w *loopWorld) discoveries() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asks
}

// What a BMC leaves out of one reading is looked for again within seconds, and the
// server behind it is kept as it is.
func TestASystemThatIsMissingOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := serving(t)
		defer w.stop()
		w.change(0, func(m *machine) { m.hidden = 1 })
		w.refresh()
		read := w.discoveries()
		if why := w.why(0); why != "" {
			t.Errorf("after one reading without it: %s", why)
		}
		pass(10 * time.Second)
		if again := w.discoveries() - read; again != 1 {
			t.Errorf("the BMC was read %d times within 10 s, want once", again)
		}
		w.change(0, func(m *machine) { m.power = model.PowerOff })
		w.expect(2*time.Minute, 0, "Reserved On default/web")
	})
}

// A system that is missing is looked for every minute, so that its server is served
// again soon after it is back.
func TestASystemThatIsMissingForLong(t *testing.T) {
	for reason, change := range map[string]func(m *machine, gone bool){
		"SystemMissing":    func(m *machine, gone bool) { m.hidden = map[bool]int{true: 1 << 30}[gone] },
		"SystemUnreadable": func(m *machine, gone bool) { m.unread = gone },
	} {
		t.Run(reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := serving(t)
				defer w.stop()
				w.change(0, func(m *machine) { change(m, true) })
				w.refresh()
				pass(10 * time.Second)
				if why := w.why(0); why != reason {
					t.Errorf("after two readings without it: %q", why)
				}
				read := w.discoveries()
				w.change(0, func(m *machine) { m.power = model.PowerOff })
				w.expect(10*time.Minute, 0, "Reserved Off default/web")
				if n := w.discoveries() - read; n < 9 || n > 11 {
					t.Errorf("the BMC was read %d times in 10 minutes", n)
				}
				w.change(0, func(m *machine) { change(m, false) })
				w.expect(3*time.Minute, 0, "Reserved On default/web")
			})
		})
	}
}

// A retry that Git asks for is one of the credentials, too.
func TestARetryOfABMC(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, asked := range []bool{false, true} {
		w := newLoopWorld(t, 1)
		w.observed.BMCs["bmc00"] = &model.BMCRecord{
			Name: "bmc00", BMCScratch: model.BMCScratch{Reason: model.ReasonAuthenticationFailed, NotBefore: now.Add(time.Minute)},
		}
		if asked {
			w.desired.BMCs["bmc00"].Annotations = map[string]string{model.AnnotationOperation: "retry#1"}
		}
		r := plan.Plan(&world.Input{Desired: w.desired, Observed: w.observed, Policy: policy.Default(), Now: now})
		if m := r.Readings["bmc00"]; (m != nil) != asked || asked && !m.Target.Retry {
			t.Errorf("asked for: %t, and the move is %+v", asked, m)
		}
	}
}
