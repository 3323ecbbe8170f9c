package reconcile

import (
	"testing"
	"time"

	"ingot/model"
)

// aYear is how far the clock was ahead when Ingot ran last.
const aYear = 365 * 24 * time.Hour

func TestAClockThatWentBackDoesNotStopAServer(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		w.restartWith(func(rec *model.ServerRecord) {
			rec.Asked = &model.PowerAsked{Reset: model.ResetOn, Want: model.PowerOn, At: time.Now().Add(1000 * time.Hour)}
			w.machine(0).power = model.PowerOff
		})
		w.expect(time.Hour, 0, "Reserved On default/web")
	})
}

func TestAPauseOfAServerNotedByAClockThatWasAheadIsNone(t *testing.T) {
	live(t, 2, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		w.restartWith(func(rec *model.ServerRecord) {
			rec.Failures, rec.LastError, rec.NotBefore = 1, "BMC refused", time.Now().Add(aYear)
			w.machine(0).power = model.PowerOff
		})
		w.expect(24*time.Hour, 0, "Reserved On default/web")
	})
}

func TestAPauseOfABMCNotedByAClockThatWasAheadIsNone(t *testing.T) {
	live(t, 2, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		w.stop()
		w.mu.Lock()
		rec := *w.observed.BMCs["bmc00"]
		rec.Failures, rec.Reason, rec.LastError = 1, model.ReasonConnectionFailed, "no route"
		rec.NotBefore = time.Now().Add(aYear)
		w.observed.BMCs[rec.Name] = &rec
		w.machine(0).power = model.PowerOff
		w.mu.Unlock()
		w.start()
		w.expect(24*time.Hour, 0, "Reserved On default/web")
	})
}

func TestATicketArmedByAClockThatWasAheadEndsInTime(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		w.restartWith(func(rec *model.ServerRecord) {
			ticket := *rec.Ticket
			ticket.ID, ticket.Ended, ticket.IgnitionAt, ticket.ArmedAt = "x", "", time.Time{}, time.Now().Add(aYear)
			rec.Ticket, rec.Installed, rec.Unconfirmed = &ticket, "", time.Time{}
			rec.Asked = &model.PowerAsked{Reset: model.ResetOn, Want: model.PowerOn, At: ticket.ArmedAt.Add(time.Minute), Reached: true, Tries: 1}
			w.machine(0).disk = ""
		})
		pass(24 * time.Hour)
		if w.Observed().Servers["bmc00-system-0"].Installed == "" {
			t.Errorf("not installed after a day: %s, %s", w.state(0), w.why(0))
		}
	})
}

func TestAMachineIsAskedToShutDownThoughAClockThatWasAheadSaysThatItCannot(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		w.restartWith(func(rec *model.ServerRecord) { rec.NoShutdown = time.Now().Add(aYear) })
		pass(time.Minute)
		before := w.seen(0).forced
		w.commit(func(d *model.Desired) {
			d.Add(claim("web", func(c *model.ServerClaim) { c.Spec.Power = model.PowerOff }))
		})
		w.expect(time.Hour, 0, "Reserved Off default/web")
		if got := w.seen(0).forced - before; got > 0 {
			t.Errorf("forced off %d times, without being asked to shut down", got)
		}
	})
}
