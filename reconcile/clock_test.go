package reconcile

import (
	"testing"
	"time"

	"ingot/model"
)

// aYear is how far the clock was ahead when Ingot ran last.
const aYear = 365 * 24 * time.Hour

func TestPowerIsRestoredAfterAClockThatWasAhead(t *testing.T) {
	asked := func(rec *model.ServerRecord) {
		rec.Power.Asked = &model.PowerAsked{Reset: model.ResetOn, Want: model.PowerOn, At: time.Now().Add(aYear)}
	}
	for name, tt := range map[string]struct {
		limit  int // of servers that power on at a time, 0 = the usual one
		within time.Duration
		record func(rec *model.ServerRecord)
	}{
		"a server that was asked to power on":                {0, time.Hour, asked},
		"a server that was asked to power on, one at a time": {1, time.Hour, asked},
		"a server that has a pause": {0, 24 * time.Hour, func(rec *model.ServerRecord) {
			rec.Life.Failures, rec.Life.LastError, rec.Life.NotBefore = 1, "BMC refused", time.Now().Add(aYear)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			prepared(t, 1, func(w *loopWorld) { w.limit = tt.limit }, func(t *testing.T, w *loopWorld) {
				w.serve("web")
				w.restartWith(func(rec *model.ServerRecord) {
					tt.record(rec)
					w.machine(0).power = model.PowerOff
				})
				w.expect(tt.within, 0, "Reserved On default/web")
			})
		})
	}
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
			ticket := *rec.Boot.Ticket
			ticket.ID, ticket.Ended, ticket.IgnitionAt, ticket.ArmedAt = "x", "", time.Time{}, time.Now().Add(aYear)
			rec.Boot.Ticket, rec.Install.Digest, rec.Install.Unconfirmed = &ticket, "", time.Time{}
			rec.Power.Asked = &model.PowerAsked{Reset: model.ResetOn, Want: model.PowerOn, At: ticket.ArmedAt.Add(time.Minute), Reached: true, Tries: 1}
			w.machine(0).disk = ""
		})
		pass(24 * time.Hour)
		if w.Observed().Servers["bmc00-system-0"].Install.Digest == "" {
			t.Errorf("not installed after a day: %s, %s", w.state(0), w.why(0))
		}
	})
}

func TestAMachineIsAskedToShutDownThoughAClockThatWasAheadSaysThatItCannot(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		w.restartWith(func(rec *model.ServerRecord) { rec.Power.NoShutdown = time.Now().Add(aYear) })
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

func TestAWipeReportedToAClockThatWasAheadIsJudgedAfterOneReading(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		w.change(0, func(m *machine) { m.wipeHangs = true })
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		w.expect(2*time.Minute, 0, "Cleanup On")
		var before int
		w.restartWith(func(rec *model.ServerRecord) {
			before = w.machine(0).readings
			w.observed.Wipes[rec.Name] = &model.WipeReport{
				Ticket: rec.Boot.Ticket.ID, ReceivedAt: time.Now().Add(aYear),
				Disks: []model.DiskWipe{{Name: "sda", Serial: "S1", SizeBytes: 1 << 40, Result: model.WipeDone}},
			}
		})
		w.expect(10*time.Minute, 0, "Available Off")
		if n := w.seen(0).readings - before; n != 1 {
			t.Errorf("all its parts were read %d times, want once", n)
		}
	})
}

func TestWhatAMaintenanceChangedIsLookedAtThoughAClockThatWasAheadEndedIt(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		before := w.seen(0).readings
		w.restartWith(func(rec *model.ServerRecord) { rec.Maintenance.ServicedAt = time.Now().Add(aYear) })
		pass(10 * time.Minute)
		if rec, n := w.record(), w.seen(0).readings-before; n > 2 || !rec.Maintenance.ServicedAt.IsZero() {
			t.Errorf("all its parts were read %d times; %+v", n, w.plan().Servers[0].Why)
		}
	})
}

func TestAMachineThatDoesNotShutDownIsForcedOffThoughAClockThatWasAheadAskedIt(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		w.change(0, func(m *machine) { m.deaf = true })
		w.commit(func(d *model.Desired) {
			d.Add(claim("web", func(c *model.ServerClaim) { c.Spec.Power = model.PowerOff }))
		})
		w.expect(time.Minute, 0, "Reserved On default/web")
		w.restartWith(func(rec *model.ServerRecord) {
			asked := *rec.Power.Asked
			asked.At = asked.At.Add(aYear)
			rec.Power.Asked = &asked
		})
		w.expect(4*time.Minute, 0, "Reserved On default/web")
		w.expect(10*time.Minute, 0, "Reserved Off default/web")
	})
}

func TestWhatAClockThatWasAheadSawServedCountsAsInstalledInTime(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.change(0, func(m *machine) { m.noNotice = true })
		w.serve("web")
		w.restartWith(func(rec *model.ServerRecord) {
			ticket := *rec.Boot.Ticket
			ticket.IgnitionAt = time.Now().Add(aYear)
			rec.Boot.Ticket = &ticket
		})
		pass(time.Hour)
		if rec := w.record(); rec.Install.Digest == "" {
			t.Errorf("it does not count as installed after an hour: %+v", w.plan().Servers[0].Why)
		}
	})
}

func TestADiskImageIsWrittenToItsEndThoughAClockThatWasAheadBeganIt(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.installStep = 3 * time.Minute
		w.claimDisk()
		pass(20 * time.Minute)
		w.restartWith(func(rec *model.ServerRecord) {
			ticket, asked := *rec.Boot.Ticket, *rec.Power.Asked
			ticket.ArmedAt, asked.At = ticket.ArmedAt.Add(aYear), asked.At.Add(aYear)
			rec.Boot.Ticket, rec.Power.Asked = &ticket, &asked
			progress := *w.observed.Progress[rec.Name]
			told := *progress.Install
			told.ReportedAt = told.ReportedAt.Add(aYear)
			progress.Install = &told
			w.observed.Progress[rec.Name] = &progress
		})
		pass(2 * time.Hour)
		w.installedTimes(1)
	})
}
