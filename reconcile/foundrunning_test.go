package reconcile

import (
	"testing"
	"testing/synctest"
	"time"

	"ingot/model"
)

// running is a world with a machine that runs somebody's work.
func running(t *testing.T) *loopWorld {
	w := newLoopWorld(t, 1)
	w.machine(0).power = model.PowerOn
	w.start()
	w.expect(10*time.Minute, 0, "Initial On")
	return w
}

// discover has Git ask for a server that was found running to be discovered.
func (w *loopWorld) discover() {
	w.commit(func(d *model.Desired) {
		d.Add(&model.Server{Meta: model.Meta{Name: "bmc00-system-0", Annotations: map[string]string{model.AnnotationDiscover: "1"}}})
	})
}

// untouched fails unless the machine's power and boot settings are as they were.
func (w *loopWorld) untouched() {
	w.t.Helper()
	if m := w.seen(0); m.offs+m.ons+m.sets > 0 {
		w.t.Errorf("it was asked %d times to go off and %d times to go on, and got %d boot overrides", m.offs, m.ons, m.sets)
	}
}

// BMCs say Off of machines that run, for seconds after a reset of theirs.
func TestFalseOffsOfAServerThatWasFoundRunning(t *testing.T) {
	for name, restarted := range map[string]bool{
		"that is running": false,
		"that ran when Ingot was stopped, of a version that did not record it": true,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := running(t)
				if restarted {
					w.stop()
					w.mu.Lock()
					rec := *w.observed.Servers["bmc00-system-0"]
					rec.Life.FoundRunning = time.Time{}
					w.observed.Servers[rec.Name] = &rec
					w.mu.Unlock()
					w.start()
				}
				defer func() { w.stop() }()
				w.change(0, func(m *machine) { m.lies = 4 })
				w.expect(time.Hour, 0, "Initial On")
				w.untouched()
				if why := w.why(0); why != model.ReasonFoundRunning {
					t.Errorf("it says %s", why)
				}
			})
		})
	}
}

// A server that was found running is discovered once it has been Off for minutes.
func TestAServerThatWasFoundRunningGoesOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := running(t)
		defer w.stop()
		w.change(0, func(m *machine) { m.power = model.PowerOff })
		w.expect(5*time.Minute, 0, "Initial Off")
		w.untouched()
		w.expect(3*time.Minute, 0, "Available Off")
	})
}

// What a BMC says while it restarts counts for nothing.
func TestABMCThatRestartsMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := running(t)
		defer w.stop()
		w.change(0, func(m *machine) { m.bmcReset, m.lies = time.Now(), 1<<30 })
		pass(8 * time.Minute)
		w.change(0, func(m *machine) { m.lies = 0 })
		w.expect(time.Hour, 0, "Initial On")
		w.untouched()
		if arms := w.arms; arms > 0 {
			t.Errorf("%d boot tickets were armed", arms)
		}
	})
}

// A machine that renews its lease runs, whatever its BMC says.
func TestAServerThatIsReadOffAndRenewsItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLoopWorld(t, 1)
		m := w.machine(0)
		m.power, m.nics = model.PowerOn, []string{"02:00:00:00:00:01"}
		w.leases = map[string]time.Time{}
		w.start()
		defer w.stop()
		w.expect(10*time.Minute, 0, "Initial On")
		w.change(0, func(m *machine) { m.lies = 1 << 30 })
		for range 10 {
			pass(4 * time.Minute)
			w.mu.Lock()
			w.leases["02:00:00:00:00:01"] = time.Now()
			w.mu.Unlock()
		}
		w.untouched()
		w.change(0, func(m *machine) { m.lies, m.power = 0, model.PowerOff })
		w.expect(12*time.Minute, 0, "Available Off")
	})
}

// A machine that a person switches on while Ingot has a boot ticket for it is somebody's.
func TestAMachineThatAPersonSwitchesOn(t *testing.T) {
	prepared(t, 1, func(w *loopWorld) {
		w.change(0, func(m *machine) { m.refuses = map[model.ResetKind]bool{model.ResetOn: true} })
	}, func(t *testing.T, w *loopWorld) {
		w.expect(10*time.Second, 0, "Initial Off")
		if !w.Observed().Servers["bmc00-system-0"].Boot.Ticket.Open() {
			t.Fatal("there is no open ticket")
		}
		w.change(0, func(m *machine) { m.power = model.PowerOn })
		w.expect(10*time.Minute, 0, "Initial On")
		rec := w.Observed().Servers["bmc00-system-0"]
		if why := w.why(0); why != model.ReasonFoundRunning || rec.Boot.Ticket.Open() || rec.Boot.Attempts != 0 {
			t.Errorf("it says %s, after %d attempts, with ticket %+v", why, rec.Boot.Attempts, rec.Boot.Ticket)
		}
		w.expect(3*time.Hour, 0, "Initial On")
		if m := w.seen(0); m.offs > 0 {
			t.Errorf("it was switched off %d times", m.offs)
		}
	})
}

// A machine that comes on while its boot override is set is not Ingot's.
func TestAMachineThatComesOnMeanwhile(t *testing.T) {
	prepared(t, 1, func(w *loopWorld) { w.slow = 10 * time.Second }, func(t *testing.T, w *loopWorld) {
		for w.seen(0).sets == 0 && w.settings() == 0 {
			pass(100 * time.Millisecond)
		}
		w.change(0, func(m *machine) { m.power = model.PowerOn })
		w.expect(3*time.Hour, 0, "Initial On")
		rec := w.Observed().Servers["bmc00-system-0"]
		if m := w.seen(0); m.offs+m.ons > 0 || rec.Boot.Attempts != 0 || rec.Life.FoundRunning.IsZero() {
			t.Errorf("switched off %d times and on %d times, after %d attempts, found running %v",
				m.offs, m.ons, rec.Boot.Attempts, rec.Life.FoundRunning)
		}
	})
}

// settings is how many boot overrides are being set.
func (w *loopWorld) settings() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.setting
}

// A discovery that comes to nothing ends with what is served: a machine that asked for
// nothing may have booted from its disk.
func TestADiscoveryOfWhichNothingWasServed(t *testing.T) {
	prepared(t, 1, func(w *loopWorld) { w.machine(0).liar = true }, func(t *testing.T, w *loopWorld) {
		w.expect(20*time.Minute, 0, "Discovery On")
		w.expect(3*time.Hour, 0, "Initial On")
		if m := w.seen(0); m.offs > 0 || w.why(0) != model.ReasonFoundRunning {
			t.Errorf("it was switched off %d times, and says %s", m.offs, w.why(0))
		}
		w.change(0, func(m *machine) { m.liar, m.power = false, model.PowerOff })
		w.expect(10*time.Minute, 0, "Available Off")
	})
}

// What runs on a server that Git asks to be discovered is asked to shut down, and not
// forced to.
func TestADiscoveryForcesNobodyOff(t *testing.T) {
	for name, make := range map[string]func(*machine){
		"that does not hear":               func(m *machine) { m.deaf = true },
		"that knows no graceful shutdown":  func(m *machine) { m.rude = true },
		"whose BMC refuses the request":    func(m *machine) { m.refuses = map[model.ResetKind]bool{model.ResetGracefulOff: true} },
		"whose BMC says Off while it runs": func(m *machine) { m.deaf, m.lies = true, 4 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := running(t)
				defer w.stop()
				w.change(0, make)
				w.discover()
				w.expect(4*time.Hour, 0, "Initial On")
				if m := w.seen(0); m.forced+m.ons > 0 {
					t.Errorf("it was forced off %d times, and switched on %d times", m.forced, m.ons)
				}
				w.change(0, func(m *machine) { m.power = model.PowerOff })
				w.expect(20*time.Minute, 0, "Available Off")
			})
		})
	}
}

// Nor is it asked again each time that its BMC, which is wrong for a while after a request, says On.
func TestADiscoveryBesideFlappingReadings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := running(t)
		defer w.stop()
		w.change(0, func(m *machine) { m.flaps = 20 * time.Second })
		w.discover()
		w.expect(20*time.Minute, 0, "Available Off")
		if m := w.seen(0); m.offs > 2 || m.forced > 0 {
			t.Errorf("it was asked to go off %d times, and forced off %d times", m.offs, m.forced)
		}
	})
}

// A machine of Ingot's own that knows no graceful shutdown is switched off all the same.
func TestAMachineWithoutGracefulShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := serving(t)
		defer w.stop()
		w.change(0, func(m *machine) { m.rude = true })
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		pass(2 * time.Second)
		if m := w.seen(0); m.forced != 1 {
			t.Errorf("forced off %d times", m.forced)
		}
		w.expect(10*time.Minute, 0, "Available Off")
	})
}
