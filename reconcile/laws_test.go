package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan"
)

func retain(s *model.Server) { s.Spec.ReclaimPolicy = model.ReclaimRetain }

func operation1(v string) func(*model.Server) {
	return func(s *model.Server) { s.Annotations[model.AnnotationOperation] = v }
}

func TestAnAdoptedServerCanBeReprovisioned(t *testing.T) {
	for name, restarts := range map[string]bool{"while Ingot runs": false, "while it does not": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newLoopWorld(t, 1)
				w.machine(0).power = model.PowerOn
				w.desired.Add(claim("web"))
				w.desired.Add(serverFile(0, func(s *model.Server) {
					s.Spec.ServerClaimRef = &model.ObjectRef{Namespace: "default", Name: "web"}
				}))
				w.start()
				defer func() { w.stop() }()
				w.expect(time.Hour, 0, "Reserved On default/web")
				if m := w.seen(0); m.installs != 0 || m.offs != 0 {
					t.Errorf("before it is asked for it was installed %d times and switched off %d times", m.installs, m.offs)
				}
				if restarts {
					w.stop()
				}
				w.commit(func(d *model.Desired) { d.Add(claim("web", annotated(model.AnnotationReprovision, "1"))) })
				if restarts {
					w.start()
				}
				w.expect(time.Hour, 0, "Reserved On default/web")
				m, rec := w.seen(0), w.Observed().Servers[w.machine(0).name]
				if m.installs != 1 || m.disk != fleettest.DigestOf("os:1") || rec.Requests.HandledReprovision != "1" {
					t.Errorf("it was installed %d times, its disk holds %q, and on record is %+v", m.installs, m.disk, rec)
				}
			})
		})
	}
}

func TestAnAdoptedClaimIsNotBoundToAnotherServerToo(t *testing.T) {
	prepared(t, 2, func(w *loopWorld) { w.machine(1).power = model.PowerOn }, func(t *testing.T, w *loopWorld) {
		w.expect(time.Minute, 0, "Available Off")
		w.commit(func(d *model.Desired) {
			d.Add(claim("web"))
			d.Add(serverFile(1, func(s *model.Server) { s.Spec.ServerClaimRef = &model.ObjectRef{Namespace: "default", Name: "web"} }))
		})
		w.expect(time.Minute, 1, "Reserved On default/web")
		w.expect(0, 0, "Available Off")
	})
}

// serves has the manifest of a server say that claim web has it.
func serves(s *model.Server) {
	s.Spec.ServerClaimRef = &model.ObjectRef{Namespace: "default", Name: "web"}
}

// Until the Secret is there, nobody knows what the claim asks for, and so whether the server
// runs that.
func TestAServerIsAdoptedOnceItIsKnownWhatItsClaimAsksFor(t *testing.T) {
	prepared(t, 1, func(w *loopWorld) {
		w.machine(0).power = model.PowerOn
		w.desired.Add(claim("web", func(c *model.ServerClaim) { c.Spec.IgnitionSecretRef = &model.LocalRef{Name: "ign"} }))
		w.desired.Add(serverFile(0, serves))
	}, func(t *testing.T, w *loopWorld) {
		w.expect(time.Hour, 0, "Initial On")
		if why := w.plan().Servers[0].Why; why.Reason != model.ReasonSecretMissing {
			t.Errorf("it says %+v", why)
		}
		w.commit(func(d *model.Desired) {
			d.Add(&model.Secret{
				Meta: model.Meta{Name: "ign", Namespace: "default"}, Values: map[string]model.Sensitive{"ignition": model.NewSensitive("{}")},
			})
		})
		w.expect(time.Hour, 0, "Reserved On default/web")
		if why := w.plan().Servers[0].Why; why.Reason != "" {
			t.Errorf("it says %+v", why)
		}
		if m := w.seen(0); m.installs != 0 || m.offs != 0 || m.ons != 0 {
			t.Errorf("it was installed %d times, switched off %d times and on %d times", m.installs, m.offs, m.ons)
		}
	})
}

func TestAnAdoptedServerThatWasReleasedServesAClaimOfTheSameNameAgain(t *testing.T) {
	prepared(t, 1, func(w *loopWorld) {
		w.machine(0).power = model.PowerOn
		w.desired.Add(claim("web"))
		w.desired.Add(serverFile(0, serves))
	}, func(t *testing.T, w *loopWorld) {
		w.expect(time.Hour, 0, "Reserved On default/web")
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		w.expect(time.Hour, 0, "Error Off") // nobody ever looked what disks it has
		w.commit(func(d *model.Desired) {
			d.Add(serverFile(0, serves, func(s *model.Server) { s.Annotations[model.AnnotationDisksAccepted] = model.DisksAsReported }))
		})
		w.expect(time.Hour, 0, "Available Off")
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		w.expect(time.Hour, 0, "Reserved On default/web")
		if m := w.seen(0); m.installs != 1 {
			t.Errorf("it was installed %d times, want once, for the second claim", m.installs)
		}
	})
}

func TestARetainedDiskSurvivesTheRemovalOfTheServersFile(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.commit(func(d *model.Desired) { d.Add(serverFile(0, retain)) })
		w.serve("web")
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		w.expect(time.Hour, 0, "Released Off default/web")
		w.rewrite(func(d *model.Desired) { delete(d.Servers, "bmc00-system-0") })
		w.expect(time.Hour, 0, "Released Off default/web")
	})
}

func TestAReleaseWaitsWhileTheServersFileIsQuarantined(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.commit(func(d *model.Desired) { d.Add(serverFile(0, retain)) })
		w.serve("web")
		w.commit(func(d *model.Desired) {
			delete(d.Claims, "default/web")
			delete(d.Servers, "bmc00-system-0")
			d.Quarantined[model.Identity{Kind: model.KindServer, Name: "bmc00-system-0"}] = []string{""}
		})
		pass(time.Hour)
		if w.machine(0).disk == "" {
			t.Fatal("wiped though its manifest, which says Retain, stands in Git but cannot be read")
		}
	})
}

func TestTheGuardCountsWipesOfRetainedServers(t *testing.T) {
	live(t, 5, func(t *testing.T, w *loopWorld) {
		w.commit(func(d *model.Desired) {
			for i := range 5 {
				d.Add(serverFile(i, retain))
			}
		})
		names := []string{"a", "b", "c", "d", "e"}
		w.serve(names...)
		for _, n := range names {
			w.commit(func(d *model.Desired) { delete(d.Claims, model.ClaimName("default/"+n)) })
			pass(70 * time.Minute) // longer than the guard's window
		}
		w.expect(time.Minute, 4, "Released Off default/e")
		w.commit(func(d *model.Desired) {
			for i := range 5 {
				d.Add(serverFile(i))
			}
		})
		w.expect(time.Hour, 4, "Released Off default/e")
	})
}

func TestMaintenanceLastsUntilACommitEndsIt(t *testing.T) {
	for how, gone := range map[string]func(w *loopWorld, change func(d *model.Desired)){
		"quarantined": func(w *loopWorld, change func(d *model.Desired)) {
			w.commit(func(d *model.Desired) {
				change(d)
				d.Quarantined[model.MaintenanceIdentity("m")] = []string{""}
			})
		},
		"absent": (*loopWorld).rewrite,
	} {
		t.Run(how, func(t *testing.T) {
			live(t, 1, func(t *testing.T, w *loopWorld) {
				w.serve("web")
				w.commit(func(d *model.Desired) {
					d.Add(fleettest.MaintenanceOf("m", 0))
				})
				w.expect(time.Minute, 0, "Maintenance Off default/web")
				gone(w, func(d *model.Desired) { delete(d.Maintenances, "m") })
				w.expect(time.Hour, 0, "Maintenance Off default/web")
			})
		})
	}
}

func TestAServerThatNeverBootsIsNotPowerCycledForEver(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.expect(time.Minute, 0, "Available Off")
		w.machine(0).liar = true
		ons := w.machine(0).ons
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		pass(24 * time.Hour)
		synctest.Wait()
		if got := w.machine(0).ons - ons; got > 3 {
			t.Errorf("powered on %d times in a day, want BootAttempts = 3 at most", got)
		}
	})
}

func TestOneFalseOffDoesNotTakeARunningServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLoopWorld(t, 1)
		m := w.machine(0)
		m.power = model.PowerOn
		w.start()
		defer w.stop()
		w.expect(time.Hour, 0, "Initial On")
		w.mu.Lock()
		m.lies = 1
		w.mu.Unlock()
		pass(2 * time.Hour)
		synctest.Wait()
		if m.forced > 0 || m.override || len(m.boots) > 0 {
			t.Errorf("forced off %d times, override %v, boots %v", m.forced, m.override, m.boots)
		}
	})
}

func TestOneFalseOnDoesNotHaveAServerSwitchedOff(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.expect(time.Minute, 0, "Available Off")
		before := w.seen(0)
		w.change(0, func(m *machine) { m.lies = 1 })
		w.expect(time.Hour, 0, "Available Off")
		if m := w.seen(0); m.lies > 0 || m.offs != before.offs {
			t.Errorf("it was asked to go off %d times, with %d readings to come that are wrong", m.offs-before.offs, m.lies)
		}
		w.set(w.machine(0), model.PowerOn) // and now it is
		w.expect(time.Hour, 0, "Available Off")
	})
}

func TestAMachineWithoutGracefulShutdownIsForcedOff(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		w.machine(0).refuses = map[model.ResetKind]bool{model.ResetGracefulOff: true}
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		w.expect(2*time.Hour, 0, "Available Off")
	})
}

func TestAnOperationThatTheMachineRefusesDoesNotHoldUpARelease(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		w.machine(0).refuses = map[model.ResetKind]bool{model.ResetGracefulRestart: true}
		w.commit(func(d *model.Desired) { d.Add(serverFile(0, operation1(model.OperationGracefulRestart))) })
		pass(time.Minute)
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		w.expect(2*time.Hour, 0, "Available Off")
	})
}

func TestALostStoreReinstallsNothingThatTookItsIgnition(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.expect(time.Minute, 0, "Available Off")
		w.machine(0).noNotice = true
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		w.expect(5*time.Minute, 0, "Reserved On default/web")
		if w.machine(0).installs != 1 {
			t.Fatal("not installed")
		}
		files := w.files()
		w.stop()
		w.mu.Lock()
		w.observed = model.NewObserved()
		w.observed.Records, _ = restored(files)
		w.mu.Unlock()
		w.start()
		pass(3 * time.Hour)
		synctest.Wait()
		if m := w.machine(0); m.installs != 1 || m.forced > 0 {
			t.Errorf("installed %d times, forced off %d times after the loss", m.installs, m.forced)
		}
	})
}

// lastReport is a Sink that keeps the newest report.
type lastReport struct {
	t    *testing.T
	docs map[string]string
	n    int
}

func (l *lastReport) Publish(_ context.Context, r *model.Report) (Publication, error) {
	files := make(map[string]string)
	for p, b := range rendered(l.t, r) {
		files[p] = string(b)
	}
	same := len(files) == len(l.docs)
	for p, b := range files {
		same = same && l.docs[p] == b
	}
	l.docs = files
	if !same {
		l.n++
	}
	return Publication{Head: fmt.Sprint("c", l.n), Committed: !same}, nil
}

func publishing(w *loopWorld) (*lastReport, func()) {
	sink := &lastReport{t: w.t}
	ctx, cancel := context.WithCancel(w.t.Context())
	p := &Publisher{
		Reporter: &Reporter{Loop: w.loop, Fence: func() uint64 { return 1 }}, Sink: sink, Interval: 10 * time.Second,
		Log: slog.New(slog.DiscardHandler),
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = p.Run(ctx) }()
	return sink, func() { cancel(); <-done }
}

// stale lists the documents on the status branch that say something else than
// would be said now.
func (l *lastReport) stale(w *loopWorld) []string {
	var out []string
	for p, b := range w.files() {
		if l.docs[p] != string(b) {
			out = append(out, p+":\n"+l.docs[p]+"\nis now:\n"+string(b))
		}
	}
	return out
}

func TestTheStatusBranchSaysWhenABMCAnswersAgain(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		sink, end := publishing(w)
		defer end()
		w.serve("web")
		dead := func(b bool) { w.mu.Lock(); w.machine(0).dead = b; w.mu.Unlock() }
		dead(true)
		pass(3 * time.Minute)
		dead(false)
		pass(30 * time.Minute)
		synctest.Wait()
		if s := sink.stale(w); len(s) > 0 {
			t.Errorf("%d documents are stale, first %s", len(s), s[0])
		}
	})
}

func TestTheStatusBranchSaysWhenABindingIsMirrored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLoopWorld(t, 1)
		w.mirror = true
		w.start()
		_, end := publishing(w)
		w.serve("web")
		end()
		w.stop()
		w.start()
		defer w.stop()
		sink, end := publishing(w)
		defer end()
		w.loop.changed()
		pass(30 * time.Minute)
		synctest.Wait()
		if s := sink.stale(w); len(s) > 0 {
			t.Errorf("%d documents are stale, first %s", len(s), s[0])
		}
	})
}

func names6() []string { return []string{"a", "b", "c", "d", "e", "f"} }

func TestAnApprovalHoldsForServersThatAreBusy(t *testing.T) {
	live(t, 10, func(t *testing.T, w *loopWorld) {
		names := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}
		w.serve(names...)
		w.commit(func(d *model.Desired) {
			for _, n := range names {
				delete(d.Claims, model.ClaimName("default/"+n))
			}
		})
		pass(time.Minute)
		w.stop()
		held := len(w.Observed().Fleet.Holds[0].Steps)
		tokens := w.tokens()
		w.commit(func(d *model.Desired) { d.Approvals = tokens })
		in := w.loop.Input(time.Now())
		for _, i := range []int{0, 1, 2, 3, 4} {
			in.Busy[model.ServerName(fmt.Sprintf("bmc%02d-system-0", i))] = true
		}
		r := plan.Plan(in)
		for n, m := range r.Moves {
			if len(m.Do) == 0 {
				w.observed.Servers[n] = m.Then
			}
		}
		if r.Decided.Fleet != nil {
			w.observed.Fleet = *r.Decided.Fleet
		}
		r = w.plan()
		if r.Decided.Fleet != nil && len(r.Decided.Fleet.Holds) > 0 {
			t.Errorf("after the approval of %d steps the guard holds %d of them again", held, len(r.Decided.Fleet.Holds[0].Steps))
		}
		w.start()
	})
}

func TestMaintenanceOfAHeldServerDoesNotLetTheOthersPass(t *testing.T) {
	live(t, 4, func(t *testing.T, w *loopWorld) {
		w.serve("a", "b", "c", "d")
		w.commit(func(d *model.Desired) {
			for _, n := range names6() {
				delete(d.Claims, model.ClaimName("default/"+n))
			}
		})
		w.expect(10*time.Minute, 0, "Reserved On default/a")
		w.commit(func(d *model.Desired) { d.Add(serverFile(3, operation1(model.OperationPark))) })
		w.expect(10*time.Minute, 0, "Reserved On default/a")
	})
}

func TestServersThatSwapBMCsAreFound(t *testing.T) {
	live(t, 2, func(t *testing.T, w *loopWorld) {
		w.serve("a", "b")
		w.mu.Lock()
		a, b := w.machine(0), w.machine(1)
		// The machines change places: URI and BMC stay, the rest moves.
		ua, ub := "/redfish/v1/Systems/0", "/redfish/v1/Systems/1"
		w.machines[ua], w.machines[ub] = b, a
		a.bmc, b.bmc = b.bmc, a.bmc
		w.mu.Unlock()
		pass(3 * time.Hour)
		synctest.Wait()
		for n, rec := range w.Observed().Servers {
			if m := w.machines[rec.SystemURI]; m.uuid != rec.UUID {
				t.Errorf("%s is still looked for at %s", n, rec.SystemURI)
			}
		}
	})
}

func TestACleanupWaitsForABMCThatIsAway(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		w.mu.Lock()
		w.slow = time.Minute // the BMC is gone before the boot override is set
		w.mu.Unlock()
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		w.expect(30*time.Second, 0, "Cleanup Off")
		dead := func(b bool) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.machine(0).dead, w.slow = b, 0
		}
		dead(true)
		pass(time.Hour)
		dead(false)
		w.expect(time.Hour, 0, "Available Off")
	})
}

func TestAReprovisionAskedForBeforeTheInstallIsPartOfIt(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.expect(time.Minute, 0, "Available Off")
		w.machine(0).dead = true
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		w.expect(time.Minute, 0, "Reserved Off default/web")
		w.commit(func(d *model.Desired) {
			d.Add(claim("web", annotated(model.AnnotationReprovision, "1"), func(c *model.ServerClaim) { c.Spec.Image = "os:2" }))
		})
		pass(time.Minute)
		w.change(0, func(m *machine) { m.dead = false })
		w.expect(2*time.Hour, 0, "Reserved On default/web")
		if n := w.machine(0).installs; n != 1 {
			t.Errorf("installed %d times, want 1", n)
		}
	})
}

func TestAReprovisionOfAServerThatIsOffHoldsUpNobody(t *testing.T) {
	live(t, 2, func(t *testing.T, w *loopWorld) {
		w.serve("a", "b")
		off := func(c *model.ServerClaim) { c.Spec.Power = model.PowerOff }
		w.commit(func(d *model.Desired) { d.Add(claim("a", off)) })
		w.expect(10*time.Minute, 0, "Reserved Off default/a")
		w.commit(func(d *model.Desired) {
			d.Add(claim("a", off, annotated(model.AnnotationReprovision, "1")))
			d.Add(claim("b", annotated(model.AnnotationReprovision, "1")))
		})
		pass(3 * time.Hour)
		synctest.Wait()
		if n := w.machine(1).installs; n != 2 {
			t.Errorf("b was installed %d times in all, want 2", n)
		}
	})
}

func TestAServerWhoseInventoryFailsMakesNoNoise(t *testing.T) {
	prepared(t, 1, func(w *loopWorld) { w.machine(0).noParts = true }, func(t *testing.T, w *loopWorld) {
		pass(10 * time.Minute)
		a := w.files()
		pass(10 * time.Minute)
		b := w.files()
		for p := range b {
			if string(a[p]) != string(b[p]) {
				t.Errorf("%s changed though nothing did:\n%s\nthen:\n%s", p, a[p], b[p])
			}
		}
	})
}

func TestAManifestWithTheUUIDOfAnotherMachineIsNotApplied(t *testing.T) {
	live(t, 2, func(t *testing.T, w *loopWorld) {
		w.serve("a", "b")
		boots := len(w.machine(0).boots)
		w.commit(func(d *model.Desired) {
			d.Add(serverFile(0, operation1(model.OperationPowerCycle), func(s *model.Server) { s.Spec.SystemUUID = w.machine(1).uuid }))
		})
		pass(10 * time.Minute)
		synctest.Wait()
		if len(w.machine(0).boots) != boots {
			t.Error("the machine with another UUID was power-cycled")
		}
	})
}

func TestWhoLosesTheLeadDoesNoFurtherStep(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.expect(time.Minute, 0, "Available Off")
		w.mu.Lock()
		w.slow = 20 * time.Second
		ons := w.machine(0).ons
		w.mu.Unlock()
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		pass(10 * time.Second)
		w.deposed.Store(true)
		pass(time.Minute)
		synctest.Wait()
		if w.machine(0).ons != ons {
			t.Error("powered on after the lead was lost")
		}
	})
}

func TestAClaimThatCameBackStillBootsAlways(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.expect(time.Minute, 0, "Available Off")
		always := annotated(model.AnnotationBoot, "always")
		w.commit(func(d *model.Desired) { d.Add(claim("web", always)) })
		w.expect(time.Minute, 0, "Reserved On default/web")
		w.machine(0).dead = true
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		pass(time.Minute)
		w.commit(func(d *model.Desired) { d.Add(claim("web", always)) })
		pass(time.Minute)
		w.change(0, func(m *machine) { m.dead = false })
		w.expect(10*time.Minute, 0, "Reserved On default/web")
		w.set(w.machine(0), model.PowerOff)
		w.expect(10*time.Minute, 0, "Reserved On default/web")
		m := w.machine(0)
		if last := m.boots[len(m.boots)-1]; last != "network os:1" {
			t.Errorf("booted from %q, want the network", last)
		}
	})
}

// The annotation is no part of what is installed, so to take it away asks for no new boot.
func TestAClaimThatBootsAlwaysNoMoreBootsFromDisk(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.expect(time.Minute, 0, "Available Off")
		w.commit(func(d *model.Desired) { d.Add(claim("web", annotated(model.AnnotationBoot, "always"))) })
		w.expect(time.Minute, 0, "Reserved On default/web")
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		w.expect(10*time.Minute, 0, "Reserved On default/web")
		w.set(w.machine(0), model.PowerOff)
		w.expect(10*time.Minute, 0, "Reserved On default/web")
		m := w.machine(0)
		if last := m.boots[len(m.boots)-1]; last != "disk "+fleettest.DigestOf("os:1") {
			t.Errorf("booted from %q, want its disk", last)
		}
	})
}

func TestNothingIsServedDuringMaintenance(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.expect(time.Minute, 0, "Available Off")
		w.machine(0).liar = true // its ticket stays Armed
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		w.expect(time.Minute, 0, "Reserved On default/web")
		w.commit(func(d *model.Desired) { d.Add(serverFile(0, operation1(model.OperationPark))) })
		w.expect(10*time.Minute, 0, "Maintenance Off default/web")
		if rec := w.Observed().Servers["bmc00-system-0"]; rec.Boot.Ticket.MayBoot(w.Observed().Progress[rec.Name]) {
			t.Error("its boot ticket may be used during maintenance")
		}
	})
}

func TestAReprovisionWaitsForItsIgnition(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		secret := fleettest.IgnitionSecret("{}")
		with := func(c *model.ServerClaim) { c.Spec.IgnitionSecretRef = &model.LocalRef{Name: "ign"} }
		w.expect(time.Minute, 0, "Available Off")
		w.commit(func(d *model.Desired) { d.Add(secret); d.Add(claim("web", with)) })
		w.expect(time.Minute, 0, "Reserved On default/web")
		w.commit(func(d *model.Desired) {
			delete(d.Secrets, "default/ign")
			d.Add(claim("web", with, annotated(model.AnnotationReprovision, "1")))
		})
		pass(10 * time.Minute)
		w.set(w.machine(0), model.PowerOff)
		w.expect(10*time.Minute, 0, "Reserved On default/web")
	})
}

func TestARecordOfAnUnknownStateStopsNobody(t *testing.T) {
	live(t, 2, func(t *testing.T, w *loopWorld) {
		w.serve("a")
		w.stop()
		w.mu.Lock()
		rec := *w.observed.Servers["bmc00-system-0"]
		rec.Life.State = "Tainted"
		w.observed.Servers[rec.Name] = &rec
		w.mu.Unlock()
		in := w.loop.Input(time.Now())
		plan.Plan(in)
		w.start()
	})
}

func TestAnIgnoredClaimIsLeftAlone(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		w.commit(func(d *model.Desired) {
			d.Add(claim("web", annotated(model.AnnotationOperation, "ignore"), func(c *model.ServerClaim) {
				c.Spec.Power = model.PowerOff
			}))
		})
		w.expect(time.Hour, 0, "Reserved On default/web")
	})
}

func TestOneIgnoredServerDoesNotKeepTheFleetObserving(t *testing.T) {
	live(t, 2, func(t *testing.T, w *loopWorld) {
		w.serve("a")
		w.commit(func(d *model.Desired) { d.Add(serverFile(0, operation1(model.OperationIgnore))) })
		pass(time.Minute)
		files := w.files()
		w.stop()
		w.mu.Lock()
		p := w.observed.Progress
		w.observed = model.NewObserved()
		w.observed.Records, _ = restored(files)
		w.observed.Progress = p
		w.mu.Unlock()
		w.start()
		w.commit(func(d *model.Desired) { d.Add(claim("db")) })
		w.expect(time.Hour, 1, "Reserved On default/db")
	})
}

func TestABMCThatHangsIsAskedEverMoreSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLoopWorld(t, 1)
		w.hangs = true
		w.start()
		pass(2 * time.Hour)
		rec := w.Observed().BMCs["bmc00"]
		if rec == nil || rec.Reason == "" {
			t.Errorf("record %+v after %d readings that were given up, want a reason", rec, w.asks)
		}
		w.stop()
	})
}

func TestAStoreThatRefusesIsNoReasonToHammerBMCs(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.expect(time.Minute, 0, "Available Off")
		m := w.machine(0)
		w.mu.Lock()
		w.cut = 50
		w.mu.Unlock()
		w.set(m, model.PowerOn)
		pass(time.Minute + 6*time.Second)
		synctest.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		if done := 50 - w.cut; done > 10 {
			t.Errorf("%d moves in the seconds in which none could be saved", done)
		}
		w.cut = 0
	})
}

func TestPowerOnsUnderWayCountWhereverTheServerStands(t *testing.T) {
	prepared(t, 4, func(w *loopWorld) { w.limit = 1 }, func(t *testing.T, w *loopWorld) {
		w.expect(5*time.Minute, 3, "Available Off")
		w.mu.Lock()
		w.slow, w.most = 20*time.Second, 0
		w.mu.Unlock()
		to := func(i int) func(*model.ServerClaim) {
			return func(c *model.ServerClaim) {
				c.Spec.ServerRef = &model.LocalRef{Name: fmt.Sprintf("bmc%02d-system-0", i)}
			}
		}
		w.commit(func(d *model.Desired) { d.Add(claim("z", to(3))) })
		pass(5 * time.Second)
		w.commit(func(d *model.Desired) { d.Add(claim("a", to(0))) })
		pass(10 * time.Minute)
		synctest.Wait()
		if w.most > 1 {
			t.Errorf("%d servers were being powered on at once, want 1", w.most)
		}
	})
}

func TestAnApprovalIsGoodForOneTime(t *testing.T) {
	live(t, 4, func(t *testing.T, w *loopWorld) {
		names := []string{"a", "b", "c", "d"}
		release := func(d *model.Desired) {
			for _, n := range names {
				delete(d.Claims, model.ClaimName("default/"+n))
			}
		}
		w.serve(names...)
		w.commit(release)
		pass(time.Minute)
		tokens := w.tokens()
		w.commit(func(d *model.Desired) { d.Approvals = tokens })
		w.expect(10*time.Minute, 0, "Available Off")
		w.commit(func(*model.Desired) {})
		w.serve(names...)
		w.commit(release)
		w.expect(10*time.Minute, 0, "Reserved On default/a")
	})
}

func TestARevisionKeptOverARestartThatIsTooOldReleasesNobody(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.expect(time.Minute, 0, "Available Off")
		old := w.Desired()
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		w.expect(time.Minute, 0, "Reserved On default/web")
		newest := w.Desired()
		w.stop()
		kept := *old
		kept.KeptOverRestart = true
		w.mu.Lock()
		w.desired = &kept
		w.mu.Unlock()
		w.start()
		w.expect(time.Hour, 0, "Reserved On default/web")
		w.mu.Lock()
		w.desired = newest
		w.mu.Unlock()
		signal(w.changed)
		w.expect(time.Minute, 0, "Reserved On default/web")
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		w.expect(2*time.Minute, 0, "Available Off")
	})
}

func TestARevertToAFormerValueAsksForNothing(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.expect(time.Minute, 0, "Available Off")
		ask := func(reprovision, operation string) {
			w.commit(func(d *model.Desired) {
				d.Add(claim("web", func(c *model.ServerClaim) {
					c.Annotations = map[string]string{model.AnnotationReprovision: reprovision}
				}))
				d.Add(&model.Server{Meta: model.Meta{
					Name: "bmc00-system-0", Annotations: map[string]string{model.AnnotationOperation: operation},
				}})
			})
			w.expect(5*time.Minute, 0, "Reserved On default/web")
		}
		ask("1", "power-cycle-server#1")
		ask("2", "power-cycle-server#2")
		m := w.machine(0)
		installs, boots := m.installs, len(m.boots)
		ask("1", "power-cycle-server#1")
		if m.installs != installs || len(m.boots) != boots {
			t.Errorf("a revert installed %d times and booted %d times", m.installs-installs, len(m.boots)-boots)
		}
	})
}
