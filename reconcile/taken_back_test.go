package reconcile

import (
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
)

// What was decided and not begun is not done once Git does not ask for it any more.
func TestAReprovisionThatIsTakenBackBeforeItBeganIsNotDone(t *testing.T) {
	asked := func(c *model.ServerClaim) {
		c.Spec.Image = "os:2"
		c.Annotations = map[string]string{model.AnnotationReprovision: "1"}
	}
	for name, test := range map[string]struct{ wait, goOn func(w *loopWorld) }{
		"while its power is Off": {
			func(w *loopWorld) {
				w.commit(func(d *model.Desired) {
					d.Add(claim("web", asked, func(c *model.ServerClaim) { c.Spec.Power = model.PowerOff }))
				})
			},
			func(*loopWorld) {},
		},
		"while its image cannot be booted": {
			func(w *loopWorld) {
				w.mu.Lock()
				w.broken = true
				w.mu.Unlock()
				w.commit(func(d *model.Desired) { d.Add(claim("web", asked)) })
			},
			func(w *loopWorld) {
				w.mu.Lock()
				w.broken = false
				w.mu.Unlock()
			},
		},
		"while its BMC does not answer": {
			func(w *loopWorld) {
				w.change(0, func(m *machine) { m.dead = true })
				w.commit(func(d *model.Desired) { d.Add(claim("web", asked)) })
			},
			func(w *loopWorld) { w.change(0, func(m *machine) { m.dead = false }) },
		},
		"during maintenance": {
			func(w *loopWorld) {
				w.commit(func(d *model.Desired) { d.Add(fleettest.MaintenanceOf("m", 0)); d.Add(claim("web", asked)) })
			},
			func(w *loopWorld) { w.commit(func(d *model.Desired) { clear(d.Maintenances) }) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, 1, func(t *testing.T, w *loopWorld) {
				w.serve("web")
				test.wait(w)
				pass(time.Hour)
				w.commit(func(d *model.Desired) { d.Add(claim("web")) })
				pass(time.Hour)
				test.goOn(w)
				pass(2 * time.Hour)
				if w.expect(0, 0, "Reserved On default/web"); w.seen(0).installs != 1 {
					t.Errorf("installed %d times, want once", w.seen(0).installs)
				}
				w.commit(func(d *model.Desired) { d.Add(claim("web", asked, annotated(model.AnnotationReprovision, "2"))) })
				if w.expect(time.Hour, 0, "Reserved On default/web"); w.seen(0).installs != 2 {
					t.Errorf("installed %d times, want once more as it is asked for anew", w.seen(0).installs)
				}
			})
		})
	}
}

// Until the server is booted for it, a reprovision that has begun has changed nothing on its disks.
func TestAReprovisionThatIsTakenBackBeforeItsServerBootsIsNotDone(t *testing.T) {
	dies := func(w *loopWorld) { w.change(0, func(m *machine) { m.dead = true }) }
	for name, test := range map[string]struct{ begun, takenBack func(w *loopWorld) }{
		"while it shuts down":                {func(*loopWorld) {}, func(*loopWorld) {}},
		"while it shuts down, and goes off":  {func(*loopWorld) {}, func(w *loopWorld) { w.set(w.machine(0), model.PowerOff) }},
		"while its BMC is away":              {dies, func(w *loopWorld) { w.change(0, func(m *machine) { m.dead = false }) }},
		"while its BMC is away, and it off":  {dies, func(w *loopWorld) { w.change(0, func(m *machine) { m.dead, m.power = false, model.PowerOff }) }},
		"while no Ingot runs, and it is off": {func(w *loopWorld) { w.stop(); w.set(w.machine(0), model.PowerOff) }, func(w *loopWorld) { w.start() }},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, 1, func(t *testing.T, w *loopWorld) {
				w.serve("web")
				w.change(0, func(m *machine) { m.deaf = true })
				asked := annotated(model.AnnotationReprovision, "1")
				w.commit(func(d *model.Desired) { d.Add(claim("web", image("os:2"), asked)) })
				for range 60 {
					if w.record().Install.Digest != "" {
						pass(time.Second)
					}
				}
				if rec := w.record(); rec.Install.Digest != "" || rec.Install.Reprovision != "1" || w.seen(0).power != model.PowerOn {
					t.Fatalf("it has not begun: %s, %+v", w.state(0), w.why(0))
				}
				test.begun(w)
				w.commit(func(d *model.Desired) { d.Add(claim("web")) })
				pass(time.Second)
				test.takenBack(w)
				pass(3 * time.Hour)
				if w.expect(0, 0, "Reserved On default/web"); w.seen(0).installs != 1 {
					t.Errorf("installed %d times, want once", w.seen(0).installs)
				}
				w.commit(func(d *model.Desired) {
					d.Add(claim("web", image("os:2"), annotated(model.AnnotationReprovision, "2")))
				})
				if w.expect(time.Hour, 0, "Reserved On default/web"); w.seen(0).installs != 2 {
					t.Errorf("installed %d times, want once more as it is asked for anew", w.seen(0).installs)
				}
			})
		})
	}
}

func TestAnOperationThatIsTakenBackBeforeItBeganIsNotDone(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		w.change(0, func(m *machine) { m.dead = true })
		w.commit(func(d *model.Desired) { d.Add(serverFile(0, operation1("power-cycle-server#1"))) })
		pass(20 * time.Minute)
		w.commit(func(d *model.Desired) { d.Add(serverFile(0)) })
		pass(time.Minute)
		w.change(0, func(m *machine) { m.dead = false })
		pass(20 * time.Minute)
		if n := w.seen(0).disturbed; n != 0 {
			t.Errorf("it was disturbed %d times, and Git does not ask for that any more", n)
		}
	})
}

func TestAWipeOfAKeptServerThatIsTakenBackBeforeItIsShownIsNotDone(t *testing.T) {
	published(t, 1, func(w *loopWorld, b *branch) {
		w.commit(func(d *model.Desired) { d.Add(serverFile(0, retain)) })
		w.serve("web")
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		w.expect(10*time.Minute, 0, "Released Off default/web")
		b.fail(true)
		w.commit(func(d *model.Desired) { d.Add(serverFile(0)) })
		pass(time.Hour)
		w.commit(func(d *model.Desired) { d.Add(serverFile(0, retain)) })
		pass(time.Hour)
		b.fail(false)
		if w.expect(time.Hour, 0, "Released Off default/web"); w.seen(0).disk == "" {
			t.Error("its disk was wiped")
		}
		w.commit(func(d *model.Desired) { d.Add(serverFile(0)) })
		w.expect(time.Hour, 0, "Available Off")
	}, func(w *loopWorld) { w.mirror = true })
}

// A claim that is back is a binding like any other: the status branch shows it first.
func TestAKeptServerIsInstalledForItsClaimOnlyOnceTheStatusBranchShowsIt(t *testing.T) {
	published(t, 1, func(w *loopWorld, b *branch) {
		w.commit(func(d *model.Desired) { d.Add(serverFile(0, retain)) })
		w.expect(2*time.Minute, 0, "Available Off")
		w.commit(func(d *model.Desired) { d.Add(claim("web", image("broken:1"))) })
		w.expect(10*time.Minute, 0, "Reserved Off default/web")
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		w.expect(10*time.Minute, 0, "Released Off default/web")
		b.fail(true)
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		pass(time.Hour)
		if m := w.seen(0); m.installs != 0 || m.power != model.PowerOff {
			t.Errorf("it was installed %d times and is %s, and the status branch says that it is kept", m.installs, m.power)
		}
		b.fail(false)
		w.expect(time.Hour, 0, "Reserved On default/web")
	}, func(w *loopWorld) { w.mirror = true })
}

// The disks that one claim left are not for another one that took over its name.
func TestAKeptServerDoesNotFollowANewClaimsRename(t *testing.T) {
	live(t, 2, func(t *testing.T, w *loopWorld) {
		keptFirst(w)
		w.commit(func(d *model.Desired) { d.Add(claim("web", onSecond)) })
		w.expect(time.Hour, 1, "Reserved On default/web")
		w.commit(func(d *model.Desired) {
			fleettest.Renamed("web", "shop")(d)
			d.Add(claim("shop", onSecond))
		})
		w.expect(time.Hour, 1, "Reserved On default/shop")
		w.expect(0, 0, "Released Off default/web")
	})
}

// maybeInstalled has Ingot start anew, with a record that was read back: nothing shows whether the first
// server was installed, which it was.
func (w *loopWorld) maybeInstalled() {
	w.restartWith(func(rec *model.ServerRecord) {
		rec.Install.Digest, rec.Doubt = "", &model.Doubt{Reason: model.DoubtInstallUnknown}
		rec.Boot.Ticket = &model.Ticket{ID: "t", Server: rec.Name, Purpose: model.PurposeClaim, Claim: rec.Claim.Name, Ended: model.TicketSpent}
		clear(w.observed.Progress)
	})
	if pass(10 * time.Minute); w.why(0) != string(model.DoubtInstallUnknown) {
		w.t.Fatalf("it is said to be %s", w.why(0))
	}
}

func TestWhatMayBeInstalledIsKeptForItsClaimThatIsBack(t *testing.T) {
	t.Run("before its BMC could be asked to release it", func(t *testing.T) {
		live(t, 1, func(t *testing.T, w *loopWorld) {
			w.serve("web")
			w.maybeInstalled()
			w.change(0, func(m *machine) { m.dead = true })
			w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
			pass(time.Hour)
			w.commit(func(d *model.Desired) { d.Add(claim("web")) })
			pass(time.Hour)
			w.change(0, func(m *machine) { m.dead = false })
			if w.expect(time.Hour, 0, "Reserved On default/web"); w.seen(0).installs != 1 {
				t.Errorf("installed %d times", w.seen(0).installs)
			}
		})
	})
	t.Run("after its disks were kept", func(t *testing.T) {
		live(t, 1, func(t *testing.T, w *loopWorld) {
			w.commit(func(d *model.Desired) { d.Add(serverFile(0, retain)) })
			w.serve("web")
			w.maybeInstalled()
			w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
			w.expect(time.Hour, 0, "Released Off default/web")
			w.loseStore(w.files())
			w.expect(time.Hour, 0, "Released Off default/web")
			w.commit(func(d *model.Desired) { d.Add(claim("web")) })
			if w.expect(time.Hour, 0, "Reserved On default/web"); w.seen(0).installs != 1 {
				t.Errorf("installed %d times", w.seen(0).installs)
			}
			w.commit(func(d *model.Desired) { delete(d.Claims, "default/web"); d.Add(serverFile(0)) })
			w.expect(time.Hour, 0, "Available Off")
		})
	})
}

// What was served may be on the disk, though nothing has said so yet.
func TestWhatWasServedIsKeptForItsClaimThatIsBack(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.commit(func(d *model.Desired) { d.Add(serverFile(0, retain)) })
		w.change(0, func(m *machine) { m.noNotice = true })
		w.serve("web")
		w.commit(func(d *model.Desired) {
			d.Add(claim("web", func(c *model.ServerClaim) { c.Spec.Power = model.PowerOff }))
		})
		w.expect(30*24*time.Hour, 0, "Reserved Off default/web")
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		w.expect(time.Hour, 0, "Released Off default/web")
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		if w.expect(time.Hour, 0, "Reserved On default/web"); w.seen(0).installs != 1 {
			t.Errorf("installed %d times", w.seen(0).installs)
		}
	})
}
