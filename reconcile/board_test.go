package reconcile

import (
	"testing"
	"testing/synctest"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
)

// unnamed is a world of one server whose BMC shows no UUID.
func unnamed(t *testing.T) (*loopWorld, *machine) {
	w := newLoopWorld(t, 1)
	m := w.machine(0)
	m.name, m.uuid, m.board = "s", "", model.Board{SerialNumber: "S1", Model: "M"}
	return w, m
}

// A machine whose BMC never shows a UUID has the one that Git gives it, and is told by its
// serial number and model.
func TestAMachineWithoutAUUID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := unnamed(t)
		w.start()
		defer w.stop()
		pass(time.Minute)
		if n := len(w.Observed().Servers); n > 0 {
			t.Fatalf("%d servers came to be of what cannot be told from others", n)
		}
		w.commit(func(d *model.Desired) { d.Add(fleettest.UUIDOf("s", "bmc00", "", fleettest.GivenUUID)) })
		w.refresh()
		w.expect(10*time.Minute, 0, "Available Off")
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		w.expect(10*time.Minute, 0, "Reserved On default/web")
		rec := w.Observed().Servers["s"]
		if rec.UUID != fleettest.GivenUUID || rec.Board == nil || *rec.Board != m.board {
			t.Errorf("recorded as %s, %+v", rec.UUID, rec.Board)
		}

		w.change(0, func(m *machine) { m.board.SerialNumber = "S2" })
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		pass(10 * time.Minute)
		if why, is := w.why(0), w.seen(0); why != model.ReasonIdentityMismatch || is.power != model.PowerOn || is.disk == "" {
			t.Errorf("with another board in its place: %q, %s, disk %q", why, is.power, is.disk)
		}
		w.change(0, func(m *machine) { m.board.SerialNumber = "S1" })
		w.expect(20*time.Minute, 0, "Available Off")
	})
}
