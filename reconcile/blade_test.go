package reconcile

import (
	"testing"
	"testing/synctest"
	"time"
)

// A blade that is put in before those that are there becomes a server without anybody's doing.
func TestABladeThatIsPutInLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLoopWorld(t, 2)
		first, second := w.machine(0), w.machine(1)
		second.bmc, second.name = "bmc00", "bmc00-system-0"
		delete(w.desired.BMCs, "bmc01")
		delete(w.machines, "/redfish/v1/Systems/0")
		w.start()
		defer w.stop()
		w.expect(3*time.Minute, 1, "Available Off")
		w.mu.Lock()
		first.name = "bmc00-system-1"
		w.machines["/redfish/v1/Systems/0"] = first
		w.mu.Unlock()
		w.refresh()
		w.expect(5*time.Minute, 0, "Available Off")
		w.expect(0, 1, "Available Off")
		if rec := w.Observed().Servers["bmc00-system-0"]; rec.UUID != second.uuid || len(w.Observed().Servers) != 2 {
			t.Errorf("the first server is now %s, of %d", rec.UUID, len(w.Observed().Servers))
		}
	})
}

// A BMC that shows another UUID each time makes no more servers than it has systems.
func TestUUIDsThatChangeMakeNoServersWithoutEnd(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.expect(2*time.Minute, 0, "Available Off")
		for _, uuid := range []string{"00000000-0000-4000-8000-0000000000fa", "00000000-0000-4000-8000-0000000000fb", "00000000-0000-4000-8000-0000000000fc"} {
			w.change(0, func(m *machine) { m.uuid = uuid })
			pass(2 * time.Hour)
		}
		if n := len(w.Observed().Servers); n > 1 {
			t.Errorf("%d servers are known", n)
		}
	})
}
