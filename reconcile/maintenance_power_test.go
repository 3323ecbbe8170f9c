package reconcile

import (
	"fmt"
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan/policy"
)

// maintainedWith has a maintenance of the first server ask for a power state.
func maintainedWith(p model.Power) func(d *model.Desired) {
	return func(d *model.Desired) {
		m := fleettest.MaintenanceOf("m", 0)
		m.Spec.ServerPower = p
		d.Add(m)
	}
}

// poweredBy is how often a machine was asked to go on and off.
func (m machine) poweredBy() [2]int { return [2]int{m.ons, m.offs} }

func TestServerPowerIsWhatAMaintenanceBeginsWith(t *testing.T) {
	const on, off = model.PowerOn, model.PowerOff
	for name, tt := range map[string]struct {
		claim  model.Power // "" = there is none
		asks   model.Power
		begins string
		wants  [2]int // requests to go on and off until it has begun
		ends   string
	}{
		"a server that runs is switched off":          {on, off, "Maintenance Off default/web", [2]int{0, 1}, "Reserved On default/web"},
		"it is by default":                            {on, "", "Maintenance Off default/web", [2]int{0, 1}, "Reserved On default/web"},
		"or left on":                                  {on, on, "Maintenance On default/web", [2]int{0, 0}, "Reserved On default/web"},
		"one that is off is switched on":              {off, on, "Maintenance On default/web", [2]int{1, 0}, "Reserved Off default/web"},
		"or left off":                                 {off, off, "Maintenance Off default/web", [2]int{0, 0}, "Reserved Off default/web"},
		"one without a claim is switched on":          {"", on, "Maintenance On", [2]int{1, 0}, "Available Off"},
		"one without a claim is left off, by default": {"", "", "Maintenance Off", [2]int{0, 0}, "Available Off"},
	} {
		t.Run(name, func(t *testing.T) {
			published(t, 1, func(w *loopWorld, _ *branch) {
				w.expect(2*time.Minute, 0, "Available Off")
				if tt.claim != "" {
					w.commit(func(d *model.Desired) { d.Add(claim("web")) })
					w.expect(2*time.Minute, 0, "Reserved On default/web")
					w.commit(func(d *model.Desired) { d.Add(claim("web", func(c *model.ServerClaim) { c.Spec.Power = tt.claim })) })
					w.expect(10*time.Minute, 0, "Reserved "+string(tt.claim)+" default/web")
				}
				before := w.seen(0)
				w.commit(maintainedWith(tt.asks))
				w.expect(10*time.Minute, 0, tt.begins)
				now := w.seen(0)
				if got := [2]int{now.ons - before.ons, now.offs - before.offs}; got != tt.wants {
					t.Errorf("asked %v to go on and off, want %v", got, tt.wants)
				}
				if now.asked > before.asked {
					t.Errorf("it asked the network: %v", now.boots)
				}
				for _, p := range []model.Power{off, on, off, on} { // a technician
					w.set(w.machine(0), p)
					pass(time.Hour)
				}
				if got := w.seen(0).poweredBy(); got != now.poweredBy() {
					t.Errorf("a technician's hand was not left alone: %v, before it %v", got, now.poweredBy())
				}
				w.commit(endMaintenance)
				w.expect(10*time.Minute, 0, tt.ends)
				if m := w.seen(0); m.installs != before.installs {
					t.Errorf("installed %d times, before it %d", m.installs, before.installs)
				}
			}, func(w *loopWorld) { w.mirror = true })
		})
	}
}

func TestServerPowerMayChangeDuringAMaintenance(t *testing.T) {
	published(t, 1, func(w *loopWorld, b *branch) {
		w.serve("web")
		w.commit(maintainedWith(model.PowerOn))
		w.expect(10*time.Minute, 0, "Maintenance On default/web")
		b.fail(true)
		w.commit(maintainedWith(model.PowerOff))
		w.expect(time.Hour, 0, "Maintenance On default/web") // it is shown first
		b.fail(false)
		w.expect(time.Hour, 0, "Maintenance Off default/web")
		w.commit(maintainedWith(model.PowerOn))
		w.expect(time.Hour, 0, "Maintenance On default/web")
		w.commit(maintainedWith("")) // Off
		w.expect(time.Hour, 0, "Maintenance Off default/web")
		before := w.seen(0).poweredBy()
		w.loseStore(w.files())
		w.set(w.machine(0), model.PowerOn)
		w.expect(24*time.Hour, 0, "Maintenance On default/web")
		if got := w.seen(0).poweredBy(); got != before {
			w.t.Errorf("asked %v to go on and off after the store was lost, want %v", got, before)
		}
		w.commit(endMaintenance)
		w.expect(10*time.Minute, 0, "Reserved On default/web")
		if m := w.seen(0); m.installs != 1 || m.asked != 2 { // for discovery, and the install
			w.t.Errorf("installed %d times, asked the network %d times", m.installs, m.asked)
		}
		if p := w.Observed().Servers[w.machine(0).name].Maintenance.Power; p != nil {
			w.t.Errorf("nothing maintains it, but %+v is asked for", p)
		}
	}, func(w *loopWorld) { w.mirror = true })
}

// What a BMC did not answer during a maintenance is asked for anew after it.
func TestAMaintenanceThatCouldNotSwitchOnLeavesNothingBehind(t *testing.T) {
	live(t, 1, func(_ *testing.T, w *loopWorld) {
		w.serve("web")
		w.commit(maintainedWith(model.PowerOff))
		w.expect(10*time.Minute, 0, "Maintenance Off default/web")
		w.change(0, func(m *machine) { m.mute = true })
		w.commit(maintainedWith(model.PowerOn))
		w.expect(time.Hour, 0, "Maintenance Off default/web")
		w.change(0, func(m *machine) { m.mute = false })
		w.commit(endMaintenance)
		w.expect(10*time.Minute, 0, "Reserved On default/web")
	})
}

// A shutdown that was asked for before is awaited, or the server would be off in the end.
func TestAMaintenanceSwitchesOnWhatIsGoingOff(t *testing.T) {
	live(t, 1, func(_ *testing.T, w *loopWorld) {
		w.serve("web")
		w.delay = time.Minute
		w.commit(func(d *model.Desired) {
			d.Add(claim("web", func(c *model.ServerClaim) { c.Spec.Power = model.PowerOff }))
		})
		pass(10 * time.Second)
		w.commit(maintainedWith(model.PowerOn))
		w.expect(20*time.Second, 0, "Maintenance On default/web")
		w.expect(40*time.Second, 0, "Maintenance Off default/web")
		w.expect(5*time.Minute, 0, "Maintenance On default/web")
	})
}

// What is not installed yet is not installed under the hands of whoever works at the server.
func TestNothingIsInstalledDuringAMaintenanceThatLeavesItOn(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.expect(2*time.Minute, 0, "Available Off")
		w.change(0, func(m *machine) { m.liar, m.netFirst = true, true }) // its ticket stays Armed
		w.delay = 5 * time.Minute
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		w.untilArmed(0)
		w.commit(maintainedWith(model.PowerOn))
		w.expect(20*time.Minute, 0, "Maintenance On default/web")
		w.set(w.machine(0), model.PowerOff)
		pass(time.Hour)
		w.boot(w.machine(0)) // a technician
		pass(time.Hour)
		rec := w.Observed().Servers[w.machine(0).name]
		if m := w.seen(0); m.installs > 0 || rec.Boot.Ticket.MayBoot(w.Observed().Progress[rec.Name]) {
			t.Errorf("installed %d times during maintenance, and its ticket is %+v", m.installs, rec.Boot.Ticket)
		}
		w.change(0, func(m *machine) { m.liar, m.netFirst = false, false })
		w.commit(endMaintenance)
		w.expect(time.Hour, 0, "Reserved On default/web")
		if m := w.seen(0); m.installs != 1 {
			t.Errorf("installed %d times after it", m.installs)
		}
	})
}

// A machine that does not come on is not asked for ever: it is why somebody works at it.
func TestAMaintenanceSwitchesOnOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(m *machine)
		asked  int
	}{
		"it does not come on":        {func(m *machine) { m.dark = true }, 1},
		"its BMC answers no request": {func(m *machine) { m.mute = true }, policy.Default().UnsureTries},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, 1, func(t *testing.T, w *loopWorld) {
				w.expect(2*time.Minute, 0, "Available Off")
				w.change(0, tt.change)
				before := w.seen(0).ons
				w.commit(maintainedWith(model.PowerOn))
				w.expect(24*time.Hour, 0, "Maintenance Off")
				if n := w.seen(0).ons - before; n != tt.asked {
					t.Errorf("it was asked %d times to power on, want %d", n, tt.asked)
				}
			})
		})
	}
}

// Ingot is killed after it had the server switched on, and before it noted that. Meanwhile somebody
// switches it off and opens it.
func TestAMaintenanceDoesNotSwitchOnAgainAfterARestart(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.expect(2*time.Minute, 0, "Available Off")
		w.commit(maintainedWith(model.PowerOn))
		w.expect(10*time.Minute, 0, "Maintenance On")
		before := w.seen(0).ons
		w.restartWith(func(rec *model.ServerRecord) {
			asked := *rec.Power.Asked
			asked.Unsure, asked.Reached = true, false
			rec.Power.Asked, rec.Maintenance.Power = &asked, &model.MaintenancePower{Want: model.PowerOn, Due: true}
			w.machine(0).power = model.PowerOff
		})
		w.expect(24*time.Hour, 0, "Maintenance Off")
		if n := w.seen(0).ons - before; n > 0 {
			t.Errorf("it was switched on %d times under somebody's hands", n)
		}
	})
}

func TestWhatLeftServersOnSwitchesNoMoreOfThemOffThanTheGuardLets(t *testing.T) {
	live(t, 12, func(t *testing.T, w *loopWorld) {
		var names []string
		for i := range 12 {
			names = append(names, fmt.Sprintf("c%02d", i))
		}
		w.serve(names...)
		m := func(i int, p model.Power) *model.ServerMaintenance {
			m := fleettest.MaintenanceOf(fmt.Sprint("m", i), i)
			m.Spec.ServerPower = p
			return m
		}
		for i := range 12 {
			w.commit(func(d *model.Desired) { d.Add(m(i, model.PowerOn)) })
			pass(70 * time.Minute)
			w.expect(0, i, "Maintenance On default/"+names[i])
		}
		pass(2 * time.Hour)
		w.commit(func(d *model.Desired) {
			for i := range 12 {
				d.Add(m(i, model.PowerOff))
			}
		})
		pass(30 * time.Minute)
		off := 0
		for i := range 12 {
			if w.seen(i).power == model.PowerOff {
				off++
			}
		}
		tokens := w.tokens()
		if off > 0 || len(tokens) != 1 {
			t.Errorf("%d servers of claims were switched off by one commit, want none and one list that is held: %v", off, tokens)
		}
		w.commit(func(d *model.Desired) { d.Approvals = tokens })
		for i := range 12 {
			w.expect(10*time.Minute, i, "Maintenance Off default/"+names[i])
		}
	})
}
