package reconcile

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ingot/model"
)

// A server that says nothing runs on: it is not switched off, installed anew or handed on
// but by a commit, and starts from its disk.
func TestTheLifeOfAServerThatSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLoopWorld(t, 1)
		w.change(0, func(m *machine) { m.noNotice = true })
		w.start()
		defer func() { w.stop() }()
		w.expect(time.Minute, 0, "Available Off")
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		w.expect(10*time.Minute, 0, "Reserved On default/web")
		if why := w.why(0); why != model.ReasonWaitingForBoot {
			t.Errorf("before its time is over it waits for %s", why)
		}
		w.expect(30*time.Minute, 0, "Reserved On default/web")
		if why := w.why(0); why != model.ReasonUnconfirmed {
			t.Errorf("it is %s, want %s", why, model.ReasonUnconfirmed)
		}
		before := w.seen(0)
		w.expect(48*time.Hour, 0, "Reserved On default/web")
		w.stop()
		w.start()
		w.expect(time.Hour, 0, "Reserved On default/web")
		if now := w.seen(0); now.ons != before.ons || now.offs != before.offs || now.installs != 1 {
			t.Errorf("it was switched on %d times, off %d times and installed %d times; before %d, %d and 1",
				now.ons, now.offs, now.installs, before.ons, before.offs)
		}
		w.change(0, func(m *machine) { m.power = model.PowerOff })
		w.expect(10*time.Minute, 0, "Reserved On default/web")
		now := w.seen(0)
		if last := now.boots[len(now.boots)-1]; !strings.HasPrefix(last, "disk sha256") || now.installs != 1 {
			t.Errorf("after a power cut it boots from %s, and was installed %d times", last, now.installs)
		}
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		w.expect(30*time.Minute, 0, "Available Off")
		if rec := w.Observed().Servers[w.machine(0).name]; !rec.Install.Unconfirmed.IsZero() {
			t.Errorf("a server that is free is still Unconfirmed: %+v", rec)
		}
	})
}
