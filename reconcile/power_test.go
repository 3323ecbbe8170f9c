package reconcile

import (
	"testing"
	"testing/synctest"
	"time"

	"ingot/model"
)

// A restart of a server that is off switches it on where its BMC cannot restart what is
// off: that stands on record, and the status says so.
func TestARestartThatBecameAPowerOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLoopWorld(t, 1)
		w.start()
		defer w.stop()
		w.expect(time.Minute, 0, "Available Off")
		w.commit(func(d *model.Desired) {
			d.Add(claim("web", func(c *model.ServerClaim) { c.Spec.Power = model.PowerOff }))
		})
		w.expect(time.Minute, 0, "Reserved Off default/web")
		w.commit(func(d *model.Desired) {
			d.Add(serverFile(0, operation1("hard-restart-server#1")))
		})
		pass(time.Second)
		rec := w.Observed().Servers["bmc00-system-0"]
		if op := rec.Operation; op == nil || op.Outcome != model.OutcomeDone || op.Message != "it was off, so it was switched on instead" {
			t.Errorf("the operation is %+v", op)
		}
		if a := rec.Asked; a == nil || a.Reset != model.ResetOn || a.Before != model.PowerOff {
			t.Errorf("the request was %+v", a)
		}
		want := "True OutcomeDone: hard-restart-server#1: it was off, so it was switched on instead"
		if got := conditionOf(w.shown("servers/bmc00-system-0.yaml").Status.Conditions, "Operation"); got != want {
			t.Errorf("the condition is %s, want %s", got, want)
		}
	})
}
