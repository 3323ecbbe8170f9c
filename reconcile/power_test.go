package reconcile

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// A restart of a server that is off switches it on where its BMC cannot restart what is
// off: that stands on record, and the status says so.
func TestARestartThatBecameAPowerOn(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
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
		if op := rec.Requests.Operation; op == nil || op.Outcome != model.OutcomeDone || op.Message != "it was off, so it was switched on instead" {
			t.Errorf("the operation is %+v", op)
		}
		if a := rec.Power.Asked; a == nil || a.Reset != model.ResetOn || a.Before != model.PowerOff {
			t.Errorf("the request was %+v", a)
		}
		want := "True OutcomeDone: hard-restart-server#1: it was off, so it was switched on instead"
		if got := conditionOf(w.shown("servers/bmc00-system-0.yaml").Status.Conditions, "Operation"); got != want {
			t.Errorf("the condition is %s, want %s", got, want)
		}
	})
}

// A machine whose BMC says On whatever is asked of it is told of, and not forced off without end.
func TestAMachineThatDoesNotGoOff(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		w.change(0, func(m *machine) { m.stuck = true })
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		w.expect(24*time.Hour, 0, "Reserved On default/web")
		if n := w.seen(0).forced; n < 3 || n > 160 {
			t.Errorf("it was forced off %d times in a day", n)
		}
		why := w.plan().Servers[0].Why
		if !strings.Contains(why.Message, "still says that it is On") || why.Actor != proposal.RackOperator {
			t.Errorf("it is said to be %+v", why)
		}
		w.change(0, func(m *machine) { m.stuck = false })
		w.expect(20*time.Minute, 0, "Available Off")
	})
}

// Nor is one switched on without end that does not come on, for whatever it is to.
func TestAMachineThatDoesNotComeOn(t *testing.T) {
	for name, tt := range map[string]struct {
		begin func(w *loopWorld)
		then  string // once it comes on
	}{
		"to be installed": {
			begin: func(w *loopWorld) {
				w.expect(2*time.Minute, 0, "Available Off")
				w.change(0, func(m *machine) { m.dark = true })
				w.commit(func(d *model.Desired) { d.Add(claim("web")) })
			},
			then: "Reserved On default/web",
		},
		"to be wiped": {
			begin: func(w *loopWorld) {
				w.serve("web")
				w.change(0, func(m *machine) { m.dark = true })
				w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
			},
			then: "Available Off",
		},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, 1, func(t *testing.T, w *loopWorld) {
				tt.begin(w)
				before := w.seen(0).ons
				pass(24 * time.Hour)
				if n := w.seen(0).ons - before; n < 3 || n > 160 {
					t.Errorf("it was switched on %d times in a day", n)
				}
				for why := (proposal.Why{}); why.Reason != string(model.ReasonPowerOnRefused); why = w.plan().Servers[0].Why {
					pass(time.Minute)
				}
				if why := w.plan().Servers[0].Why; !strings.Contains(why.Message, "and stays Off") || why.Actor != proposal.RackOperator {
					t.Errorf("it is said to be %+v", why)
				}
				w.change(0, func(m *machine) { m.dark = false })
				w.expect(20*time.Minute, 0, tt.then)
			})
		})
	}
}

// Some BMCs say On and Off in turn after a request: who asks again each time they say On asks
// for ever.
func TestABMCWhosePowerReadingsFlap(t *testing.T) {
	claimOff := func(w *loopWorld) {
		w.commit(func(d *model.Desired) {
			d.Add(claim("web", func(c *model.ServerClaim) { c.Spec.Power = model.PowerOff }))
		})
	}
	for name, tt := range map[string]struct {
		begin func(w *loopWorld)
		then  string
		offs  int // requests to go off at most, that at the end of its discovery included
	}{
		"of a server that is claimed to be off": {
			begin: claimOff,
			then:  "Reserved Off default/web",
			offs:  2,
		},
		"of one that is switched off": {
			begin: func(w *loopWorld) {
				w.serve("web")
				claimOff(w)
			},
			then: "Reserved Off default/web",
			offs: 2,
		},
		"of one that is released": {
			begin: func(w *loopWorld) {
				w.serve("web")
				w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
			},
			then: "Available Off",
			offs: 4,
		},
	} {
		for _, flaps := range []time.Duration{3 * time.Second, 40 * time.Second} {
			t.Run(fmt.Sprintf("%s, for %s", name, flaps), func(t *testing.T) {
				live(t, 1, func(t *testing.T, w *loopWorld) {
					w.expect(time.Minute, 0, "Available Off")
					w.change(0, func(m *machine) { m.flaps, m.requested = flaps, time.Now() })
					tt.begin(w)
					w.expect(20*time.Minute, 0, tt.then)
					if m := w.seen(0); m.offs > tt.offs || m.ons > 3 || m.forced > 1 {
						t.Errorf("it was asked %d times to go off, %d times to go on, and forced off %d times", m.offs, m.ons, m.forced)
					}
				})
			})
		}
	}
}

// A wish to go off that is withdrawn is over: the next one, hours later, begins with a shutdown of its own.
func TestAWithdrawnShutdownForcesNothingLater(t *testing.T) {
	for name, tt := range map[string]struct{ off, on func(d *model.Desired) }{
		"power Off":     {power(model.PowerOff), power(model.PowerOn)},
		"a release":     {func(d *model.Desired) { delete(d.Claims, "default/web") }, power(model.PowerOn)},
		"a maintenance": {maintainedWith(model.PowerOff), func(d *model.Desired) { delete(d.Maintenances, "m") }},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, 1, func(t *testing.T, w *loopWorld) {
				w.serve("web")
				before := w.seen(0)
				w.change(0, func(m *machine) { m.deaf = true })
				w.commit(tt.off)
				pass(time.Minute)
				w.commit(tt.on)
				pass(time.Minute)
				w.change(0, func(m *machine) { m.deaf = false })
				pass(3 * time.Hour)
				if m := w.seen(0); m.offs != before.offs+1 || m.power != model.PowerOn {
					t.Fatalf("it was asked to go off %d times, and is %s", m.offs-before.offs, m.power)
				}
				w.commit(tt.off)
				pass(10 * time.Second)
				if m := w.seen(0); m.offs < before.offs+2 || m.forced != before.forced {
					t.Errorf("it was asked to go off %d times, %d of them by force", m.offs-before.offs, m.forced-before.forced)
				}
			})
		})
	}
}
