package reconcile

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// takeBMC takes a BMC out of Git.
func takeBMC(name model.BMCName) func(d *model.Desired) {
	return func(d *model.Desired) { delete(d.BMCs, name) }
}

func (w *loopWorld) knows() (names []model.ServerName) {
	o := w.Observed()
	add := func(n model.ServerName) {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	for n := range o.Servers {
		add(n)
	}
	for n := range o.ServerFacts {
		add(n)
	}
	for n := range o.Probes {
		add(n)
	}
	for n := range o.Progress {
		add(n)
	}
	slices.Sort(names)
	return names
}

func TestAServerThatIsNobodysIsForgottenADayAfterItsBMCLeftGit(t *testing.T) {
	live(t, 2, func(t *testing.T, w *loopWorld) {
		w.expect(2*time.Minute, 1, "Available Off")
		w.commit(takeBMC("bmc00"))
		pass(time.Minute)
		if why := w.whyText(0); !strings.HasPrefix(why, "Decommissioned: a commit took its BMC bmc00 away, so it is left as it is, and forgotten after ") ||
			proposal.HasActor(why) {
			t.Errorf("it is said: %s", why)
		}
		w.stop() // it is remembered over a restart since when
		w.start()
		w.expect(23*time.Hour, 0, "Available Off")
		w.expect(2*time.Hour, 0, "unknown")
		if got := w.knows(); !slices.Equal(got, []model.ServerName{"bmc01-system-0"}) {
			t.Errorf("what is known is of %v", got)
		}
		if facts := w.Observed().BMCFacts["bmc00"]; facts != nil {
			t.Errorf("what was read of its BMC is kept: %+v", facts)
		}
		w.mu.Lock()
		w.onSave = func(c proposal.Changes) {
			if c.Fleet != nil || len(c.Servers)+len(c.DropServers)+len(c.DropBMCFacts) > 0 {
				t.Errorf("after that there is saved: %+v", c)
			}
		}
		w.mu.Unlock()
		pass(2 * time.Hour)
		w.mu.Lock()
		w.onSave = nil
		w.mu.Unlock()
		w.commit(func(d *model.Desired) { d.Add(worldBMC(0)) })
		w.expect(5*time.Minute, 0, "Available Off") // as a new one
		if n := w.seen(0).ons; n != 2 {
			t.Errorf("it was switched on %d times, want once for each discovery", n)
		}
	})
}

// Whatever may be somebody's is remembered for ever, and the rack operator is told.
func TestAServerThatMayBeSomebodysIsNotForgottenByItself(t *testing.T) {
	const own = "00000000-0000-4000-8000-000000000001"
	for name, tc := range map[string]struct {
		record func(rec *model.ServerRecord)
		commit func(d *model.Desired)
		says   string
	}{
		"of a claim":         {commit: func(d *model.Desired) { d.Add(claim("web")) }, says: "claim default/web has it"},
		"that a claim names": {commit: func(d *model.Desired) { d.Add(waitingFor("db", 0)) }, says: "ServerClaim default/db names it"},
		"with a manifest":    {commit: func(d *model.Desired) { d.Add(serverFile(0)) }, says: "a Server in Git describes it"},
		"with one of another name": {commit: func(d *model.Desired) {
			d.Add(&model.Server{Meta: model.Meta{Name: "x"}, Spec: model.ServerSpec{SystemUUID: own}})
		}, says: "a Server in Git describes it"},
		"under maintenance": {commit: func(d *model.Desired) {
			d.Add(&model.ServerMaintenance{Meta: model.Meta{Name: "m"}, Spec: model.ServerMaintenanceSpec{ServerRef: model.LocalRef{Name: "bmc00-system-0"}}})
		}, says: "ServerMaintenance m names it"},
		"whose BMC may be in a file that cannot be read": {commit: func(d *model.Desired) {
			d.Quarantined[model.BMCName("bmc09").Identity()] = []string{""}
		}, says: "cannot be read"},
		"whose wipe failed": {record: func(rec *model.ServerRecord) {
			rec.Life.State, rec.Life.Back, rec.Life.Reason = model.StateError, model.StateCleanup, model.ReasonCleanupFailed
		}, says: "its disks may hold data of its last user (Error)"},
		"that was being wiped": {record: func(rec *model.ServerRecord) { rec.Life.State = model.StateCleanup },
			says: "its disks may hold data of its last user (Cleanup)"},
		"that is kept": {record: func(rec *model.ServerRecord) { rec.Life.State, rec.Claim.Name = model.StateReleased, "default/old" },
			says: "its disks may hold what claim default/old left there"},
		"that was found running": {record: func(rec *model.ServerRecord) {
			rec.Life.State, rec.Life.FoundRunning = model.StateInitial, rec.Life.Since
		}, says: "it was found running"},
		"that may be installed": {record: func(rec *model.ServerRecord) {
			rec.Doubt = &model.Doubt{Reason: model.DoubtInstallUnknown, Since: rec.Life.Since}
		}, says: "its record may not be what was decided last"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newLoopWorld(t, 1)
				w.start()
				defer func() { w.stop() }()
				w.expect(2*time.Minute, 0, "Available Off")
				if tc.commit != nil {
					w.commit(tc.commit)
				}
				pass(time.Minute)
				w.stop()
				w.mu.Lock()
				rec := *w.observed.Servers["bmc00-system-0"]
				if tc.record != nil {
					tc.record(&rec)
				}
				w.observed.Servers[rec.Name] = &rec
				w.mu.Unlock()
				before := rec.Life.State
				w.commit(takeBMC("bmc00"))
				w.start()
				pass(72 * time.Hour)
				got := w.Observed().Servers["bmc00-system-0"]
				if got == nil || got.Life.State != before || got.Claim.Name != rec.Claim.Name && got.Claim.Name != "default/web" {
					t.Fatalf("it is %+v", got)
				}
				why := w.whyText(0)
				if !strings.HasPrefix(why, "Orphaned: its BMC bmc00 is not in Git, so it is left as it is, and not forgotten, because ") ||
					!strings.Contains(why, tc.says) || !strings.Contains(why, "metal.ironcore.dev/operation: forget#1") {
					t.Errorf("it is said: %s", why)
				}
			})
		})
	}
}

// waitingFor is a claim for machine i that it does not get.
func waitingFor(name string, i int) *model.ServerClaim {
	return claim(name, func(c *model.ServerClaim) {
		c.Spec.ServerRef = &model.LocalRef{Name: string(serverFile(i).Name)}
		c.Annotations = map[string]string{model.AnnotationOperation: model.OperationIgnore} // so that it gets none
	})
}

// What is absent, or cannot be read, is not taken away.
func TestAServerIsNotForgottenForWhatNoCommitTookAway(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.expect(2*time.Minute, 0, "Available Off")
		w.rewrite(takeBMC("bmc00"))
		w.expect(72*time.Hour, 0, "Available Off")
		if why := w.whyText(0); !strings.Contains(why, "no commit is known that took its BMC away") {
			t.Errorf("it is said: %s", why)
		}
	})
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.expect(2*time.Minute, 0, "Available Off")
		w.commit(takeBMC("bmc00"))
		pass(23 * time.Hour)
		w.commit(func(d *model.Desired) { d.Quarantined[model.BMCName("bmc00").Identity()] = []string{""} })
		pass(48 * time.Hour)
		w.commit(func(d *model.Desired) { clear(d.Quarantined) })
		w.expect(23*time.Hour, 0, "Available Off") // the day begins anew
		w.expect(2*time.Hour, 0, "unknown")
	})
}

// In one commit the BMC of a claim's server, and that of one that is nobody's, get other names.
func TestABMCThatIsRenamedKeepsItsServers(t *testing.T) {
	live(t, 2, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		w.mu.Lock()
		w.machine(0).bmc, w.machine(1).bmc = "new00", "new01"
		w.mu.Unlock()
		w.commit(func(d *model.Desired) {
			for i, name := range []model.BMCName{"new00", "new01"} {
				b := *worldBMC(i)
				delete(d.BMCs, model.BMCName(b.Name))
				b.Name = string(name)
				d.Add(&b)
			}
		})
		w.expect(72*time.Hour, 0, "Reserved On default/web")
		w.expect(0, 1, "Available Off")
		for _, rec := range w.Observed().Servers {
			if !rec.Orphaned.IsZero() || rec.Intent != nil && rec.Intent.Kind == model.IntentForget || !strings.HasPrefix(string(rec.BMC), "new") {
				t.Errorf("server %s is %+v", rec.Name, rec)
			}
		}
		if n := w.seen(0).installs; n != 1 || len(w.Observed().Servers) != 2 {
			t.Errorf("claim web was installed %d times, servers are %v", n, w.knows())
		}
	})
}

// A BMC that is back within a day ends it, and one that leaves again has a day again.
func TestABMCThatIsBackEndsThatItsServerIsForgotten(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.expect(2*time.Minute, 0, "Available Off")
		back := worldBMC(0)
		for range 2 {
			w.commit(takeBMC("bmc00"))
			w.expect(20*time.Hour, 0, "Available Off")
			w.commit(func(d *model.Desired) { d.Add(back) })
			pass(time.Hour)
		}
		if rec := w.Observed().Servers["bmc00-system-0"]; rec == nil || !rec.Orphaned.IsZero() || w.why(0) != "" {
			t.Errorf("it is %+v, for %s", rec, w.why(0))
		}
	})
}

func TestAPersonHasAServerForgotten(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		operation := func() string {
			op := w.Observed().Servers["bmc00-system-0"].Requests.Operation
			if op == nil {
				return ""
			}
			return string(op.Outcome) + " " + op.Value + ": " + op.Message
		}
		ask := func(value string) func(d *model.Desired) {
			return func(d *model.Desired) { d.Add(serverFile(0, operation1(value))) }
		}
		before := w.seen(0)
		w.commit(ask("forget"))
		pass(time.Minute)
		if got := operation(); !strings.HasPrefix(got, "Refused forget: its BMC bmc00 is in Git (") {
			t.Errorf("with its BMC in Git: %s", got)
		}
		back := worldBMC(0)
		w.commit(takeBMC("bmc00"))
		w.expect(time.Hour, 0, "Reserved On default/web") // what was refused is not done later
		w.commit(ask("forget#2"))
		pass(time.Minute)
		if got := operation(); got != "Refused forget#2: claim default/web has it: remove that first, then give the annotation a new value" {
			t.Errorf("with its claim: %s", got)
		}
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		w.expect(48*time.Hour, 0, "Reserved On default/web")
		if why := w.whyText(0); !strings.Contains(why, "its disks may hold what claim default/web left there") || !strings.Contains(why, "forget#1") {
			t.Errorf("it is said: %s", why)
		}
		w.commit(ask("forget#3"))
		w.expect(time.Minute, 0, "unknown")
		if got, readings := w.knows(), w.loop.Input(time.Now()).Readings; len(got)+len(readings) > 0 {
			t.Errorf("what is known is of %v, what was read is %+v", got, readings)
		}
		w.change(0, func(m *machine) { m.power = model.PowerOff })
		w.commit(func(d *model.Desired) { d.Add(back) })
		w.expect(10*time.Minute, 0, "Available Off") // and is not forgotten by what stands in Git
		w.commit(takeBMC("bmc00"))
		w.expect(time.Hour, 0, "Available Off")
		if now := w.seen(0); now.offs != before.offs+1 { // of its discovery
			t.Errorf("it was switched off %d times", now.offs-before.offs)
		}
	})
}

// The status branch shows it before; who finds the record there alone carries on.
func TestForgettingIsShownFirstAndSurvivesAnyRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLoopWorld(t, 2)
		w.mirror = true
		w.start()
		defer func() { w.stop() }()
		show := func() { w.loop.Announced(intents(w.Observed().Servers, nil)) }
		for range 20 {
			pass(10 * time.Second)
			show()
		}
		w.expect(0, 1, "Available Off")
		w.commit(takeBMC("bmc00"))
		pass(time.Minute)
		show()
		w.expect(72*time.Hour, 0, "Available Off") // the branch takes nothing
		rec := w.Observed().Servers["bmc00-system-0"]
		if rec.Intent == nil || rec.Intent.Kind != model.IntentForget || w.why(0) != model.ReasonWaitingForStatusBranch {
			t.Fatalf("it is %+v, for %s", rec, w.why(0))
		}
		w.stop() // between the decision and what it decides
		w.start()
		w.expect(time.Hour, 0, "Available Off")
		shown := w.files()
		show()
		w.expect(time.Minute, 0, "unknown")
		w.loseStore(shown) // the branch shows it still
		show()
		pass(time.Minute)
		show()
		w.expect(time.Minute, 0, "unknown")
		w.expect(0, 1, "Available Off")
		w.loseStore(w.files())
		pass(time.Minute)
		if w.Observed().Servers["bmc00-system-0"] != nil {
			t.Error("it is back")
		}
	})
}

// TestABMCThatLeavesGitIsLoggedOutOf: once, and no other; one that is there is not.
func TestABMCThatLeavesGitIsLoggedOutOf(t *testing.T) {
	live(t, 2, func(t *testing.T, w *loopWorld) {
		w.expect(time.Minute, 0, "Available Off")
		gone := func() []model.BMCName {
			w.mu.Lock()
			defer w.mu.Unlock()
			return slices.Clone(w.forgotten)
		}
		if got := gone(); len(got) > 0 {
			t.Errorf("%v were logged out of, and all are in Git", got)
		}
		w.commit(func(d *model.Desired) { delete(d.BMCs, "bmc00") })
		pass(time.Hour)
		if got := gone(); !slices.Equal(got, []model.BMCName{"bmc00"}) {
			t.Errorf("%v were logged out of, want bmc00 once", got)
		}
	})
}
