package reconcile

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ingot/model"
)

// saved are the tickets that were saved so far, each as it was last.
func (w *loopWorld) saved() []*model.Ticket {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.tickets)
}

func TestAClaimsTicketThatIsNotUsedIsSpentAndArmedAgain(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.expect(time.Minute, 0, "Available Off")
		w.change(0, func(m *machine) { m.liar = true }) // it boots from its disk
		ons, first := w.seen(0).ons, len(w.saved())
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		w.expect(14*time.Minute, 0, "Reserved On default/web")
		w.expect(2*time.Minute, 0, "Reserved On default/web")
		why := w.plan().Servers[0].Why
		if got := w.seen(0).ons - ons; got != 2 ||
			!strings.Contains(why.Message, "attempt 2 of 3; in the last one it did not boot within 15m0s, it has not asked for its boot script") {
			t.Errorf("after the first ticket it was powered on %d times and says %+v", got, why)
		}
		w.expect(2*24*time.Hour, 0, "Reserved On default/web")
		tickets := w.saved()[first:]
		for i, ticket := range tickets[1:] {
			if before := tickets[i]; before.Ended != model.TicketSpent || ticket.ArmedAt.Sub(before.ArmedAt) > 7*time.Hour {
				t.Errorf("ticket %d was %q when the next was armed %v after it", i, before.Ended, ticket.ArmedAt.Sub(before.ArmedAt))
			}
		}
		if got, n := w.seen(0).ons-ons, len(tickets); got != 3 || n < 10 || n > 18 {
			t.Errorf("powered on %d times with %d tickets in two days; want 3 times, and ever longer pauses up to 6 hours", got, n)
		}
		if got := w.Observed().Servers["bmc00-system-0"].Boot.Serial; got != first+len(tickets) {
			t.Errorf("%d tickets are counted, want %d", got, first+len(tickets))
		}
		why = w.plan().Servers[0].Why
		const givenUp = "given up on booting os:1: it did not boot within 15m0s, it has not asked for its boot script; " +
			"nothing was seen of it"
		if why.Reason != model.ReasonBootFailed || !strings.HasPrefix(why.Message, givenUp) {
			t.Errorf("it says %+v", why)
		}

		w.untilArmed(0) // and somebody asks for it to be tried again
		w.change(0, func(m *machine) { m.liar = false })
		w.commit(func(d *model.Desired) { d.Add(serverFile(0, operation1("retry#1"))) })
		w.expect(time.Minute, 0, "Reserved On default/web")
		if m := w.seen(0); m.ons-ons != 4 || m.installs != 1 {
			t.Errorf("after the retry powered on %d times and installed %d times, want 4 and 1", m.ons-ons, m.installs)
		}
	})
}

func TestAServerThatIsBootedByHandIsInstalledThoughItWasGivenUp(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.expect(time.Minute, 0, "Available Off")
		w.change(0, func(m *machine) { m.liar = true })
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		pass(time.Hour)
		w.untilArmed(0)
		w.change(0, func(m *machine) { m.liar, m.override = false, true })
		w.boot(w.machine(0))
		w.expect(time.Minute, 0, "Reserved On default/web")
		m, rec := w.seen(0), w.Observed().Servers["bmc00-system-0"]
		if m.installs != 1 || rec.Boot.Attempts != 0 || rec.Boot.Problem != nil {
			t.Errorf("installed %d times, on record are %d attempts and %+v", m.installs, rec.Boot.Attempts, rec.Boot.Problem)
		}
	})
}

func TestAChangedManifestEndsTheWaitForAServerThatWasGivenUp(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.expect(time.Minute, 0, "Available Off")
		w.change(0, func(m *machine) { m.liar = true })
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		pass(5 * time.Hour)
		ons := w.seen(0).ons
		w.change(0, func(m *machine) { m.liar = false })
		w.commit(func(d *model.Desired) { d.Add(claim("web", image("os:2"))) })
		w.expect(7*time.Minute, 0, "Reserved On default/web") // what it runs may shut down first
		if m := w.seen(0); m.ons != ons+1 || m.installs != 1 {
			t.Errorf("powered on %d times and installed %d times for the new image, want once", m.ons-ons, m.installs)
		}
	})
}

func TestNothingBootsWithATicketBeforeTheServerIsOff(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		w.mu.Lock()
		w.delay = time.Minute // of the shutdown
		w.mu.Unlock()
		w.commit(func(d *model.Desired) {
			d.Add(claim("web", image("os:2"), annotated(model.AnnotationReprovision, "1")))
		})
		pass(30 * time.Second)
		m, rec := w.seen(0), w.Observed().Servers["bmc00-system-0"]
		if !rec.Boot.Ticket.Open() || !rec.Boot.Ticket.AwaitingOff || rec.Boot.Ticket.MayBoot(nil) || m.power != model.PowerOn {
			t.Errorf("while it still runs, power %s, its ticket is %+v", m.power, rec.Boot.Ticket)
		}
		w.expect(10*time.Minute, 0, "Reserved On default/web")
		if m, rec := w.seen(0), w.Observed().Servers["bmc00-system-0"]; rec.Boot.Ticket.AwaitingOff || m.installs != 2 {
			t.Errorf("installed %d times with %+v", m.installs, rec.Boot.Ticket)
		}
	})
}
