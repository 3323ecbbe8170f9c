package reconcile

import (
	"testing"
	"time"

	"ingot/model"
)

func TestALifeFromDiscoveryToReleaseAndBack(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		if m := w.machine(0); m.installs != 1 || m.ons != 2 {
			t.Errorf("installed %d times with %d power-ons in all, want 1 and 2", m.installs, m.ons)
		}
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		w.expect(2*time.Minute, 0, "Available Off")
		if m := w.machine(0); m.disk != "" || m.ons != 3 {
			t.Errorf("disk %q after %d power-ons, want an empty disk after 3", m.disk, m.ons)
		}
	})
}

func TestAChangedImageWaitsForReprovision(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		newImage := func(c *model.ServerClaim) { c.Spec.Image = "os:2" }
		w.commit(func(d *model.Desired) { d.Add(claim("web", newImage)) })
		w.expect(time.Hour, 0, "Reserved On default/web")
		if n := w.machine(0).installs; n != 1 {
			t.Fatalf("installed %d times before it was asked for, want 1", n)
		}
		w.commit(func(d *model.Desired) {
			d.Add(claim("web", newImage, func(c *model.ServerClaim) {
				c.Annotations = map[string]string{model.AnnotationReprovision: "1"}
			}))
		})
		w.expect(2*time.Minute, 0, "Reserved On default/web")
		if n := w.machine(0).installs; n != 2 {
			t.Errorf("installed %d times after it was asked for, want 2", n)
		}
	})
}

func TestRetainKeepsTheDiskUntilAPersonActs(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		retain := &model.Server{Meta: model.Meta{Name: "bmc00-system-0"}, Spec: model.ServerSpec{ReclaimPolicy: model.ReclaimRetain}}
		w.commit(func(d *model.Desired) { d.Add(retain) })
		w.serve("web")
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		w.expect(time.Hour, 0, "Released Off default/web")
		if w.machine(0).disk == "" {
			t.Fatal("the disk of a retained server was wiped")
		}
		w.commit(func(d *model.Desired) { delete(d.Servers, "bmc00-system-0") })
		w.expect(time.Hour, 0, "Released Off default/web") // a file that is gone wipes nothing
		w.commit(func(d *model.Desired) {
			d.Add(&model.Server{Meta: model.Meta{Name: "bmc00-system-0"}, Spec: model.ServerSpec{ReclaimPolicy: model.ReclaimRecycle}})
		})
		w.expect(2*time.Minute, 0, "Available Off")
	})
}

func TestAnUnreachableBMCIsNotTakenForPoweredOff(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		w.change(0, func(m *machine) { m.dead = true })
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		w.expect(time.Hour, 0, "Reserved On default/web")
		w.change(0, func(m *machine) { m.dead = false })
		w.expect(10*time.Minute, 0, "Available Off")
	})
}

func TestALostStoreChangesNoHands(t *testing.T) {
	live(t, 2, func(t *testing.T, w *loopWorld) {
		w.expect(time.Minute, 0, "Available Off")
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		w.expect(time.Minute, 0, "Reserved On default/web")
		files := w.files()
		w.stop()

		w.mu.Lock()
		ons, boots := w.machine(0).ons+w.machine(1).ons, len(w.machine(0).boots)
		w.observed = model.NewObserved()
		recs, problems := restored(files)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		w.observed.Records = recs
		w.machine(0).dead = true
		w.mu.Unlock()
		w.start()
		w.commit(func(d *model.Desired) { d.Add(claim("db")) })
		w.expect(time.Hour, 1, "Reserved On default/db") // the Reserved server's BMC is silent, which is its own matter
		w.change(0, func(m *machine) { m.dead = false })
		w.expect(10*time.Minute, 0, "Reserved On default/web")
		w.expect(0, 1, "Reserved On default/db")
		if got := w.machine(0).ons + w.machine(1).ons - ons; got != 1 || len(w.machine(0).boots) != boots {
			t.Errorf("%d power-ons after the loss and %d boots of the bound server, want 1 for the new claim and none", got,
				len(w.machine(0).boots)-boots)
		}
	})
}

func TestAnOperationIsDoneOncePerValue(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		cycle := func(v string) {
			w.commit(func(d *model.Desired) {
				d.Add(&model.Server{Meta: model.Meta{Name: "bmc00-system-0", Annotations: map[string]string{model.AnnotationOperation: v}}})
			})
		}
		boots := len(w.machine(0).boots)
		for i, v := range []string{"power-cycle-server", "power-cycle-server", "power-cycle-server#2"} {
			cycle(v)
			w.expect(10*time.Minute, 0, "Reserved On default/web")
			if got, want := len(w.machine(0).boots)-boots, []int{1, 1, 2}[i]; got != want {
				t.Errorf("%d restarts after commit %d, want %d", got, i, want)
			}
		}
		if n := w.machine(0).installs; n != 1 {
			t.Errorf("installed %d times, want 1", n)
		}
	})
}

func TestAnUnchangedFleetIsLeftAlone(t *testing.T) {
	live(t, 4, func(t *testing.T, w *loopWorld) {
		w.expect(2*time.Minute, 3, "Available Off")
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		w.expect(2*time.Minute, 0, "Reserved On default/web")
		w.mu.Lock()
		before := w.saves
		w.mu.Unlock()
		w.expect(50*time.Minute, 0, "Reserved On default/web")
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.saves != before {
			t.Errorf("%d writes in 50 minutes in which nothing changed, want none", w.saves-before)
		}
	})
}

func TestWhoDoesNotLeadActsNot(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.expect(time.Minute, 0, "Available Off")
		w.deposed.Store(true)
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		w.expect(time.Hour, 0, "Available Off")
		w.deposed.Store(false)
		w.expect(time.Minute, 0, "Reserved On default/web")
	})
}

func TestAnOverrideThatDoesNotEndIsTakenBackOnceBooted(t *testing.T) {
	prepared(t, 1, func(w *loopWorld) { w.machine(0).stubborn = true }, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		if w.machine(0).override {
			t.Error("the server would still ask the network at its next boot")
		}
	})
}
