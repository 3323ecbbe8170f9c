package reconcile

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
)

// What was put back in a way that cannot be used is no removal any more, whatever was noted of that.
func TestAHeldReleaseOfAClaimThatIsBackAndBrokenDoesNotGo(t *testing.T) {
	live(t, 6, func(t *testing.T, w *loopWorld) {
		w.serve(names6()...)
		w.commit(func(d *model.Desired) {
			for _, n := range names6()[:3] {
				delete(d.Claims, model.ClaimName("default/"+n))
			}
		})
		pass(30 * time.Minute)
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/d") })
		pass(time.Minute)
		w.expect(0, 3, "Reserved On default/d")
		if len(w.tokens()) != 1 {
			t.Fatal("not held")
		}
		// put back, but its file cannot be used: what Git is then read as
		w.commit(func(d *model.Desired) {
			id := model.ClaimName("default/d").Identity()
			d.Quarantined[id] = []string{""}
			delete(d.Removed, id)
		})
		pass(3 * time.Hour) // the window has room by then
		w.expect(0, 3, "Reserved On default/d")
		w.commit(func(d *model.Desired) { clear(d.Quarantined) }) // its file is removed, too
		w.expect(3*time.Hour, 3, "Available Off")
	})
}

func TestAReleaseWaitsWhileItsClaimIsBackAndBroken(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		w.change(0, func(m *machine) { m.dead = true })
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		pass(time.Hour)
		w.commit(func(d *model.Desired) {
			id := model.ClaimName("default/web").Identity()
			d.Quarantined[id] = []string{""}
			delete(d.Removed, id)
		})
		w.change(0, func(m *machine) { m.dead = false })
		pass(3 * time.Hour)
		w.expect(0, 0, "Reserved On default/web")
		w.commit(func(d *model.Desired) { clear(d.Quarantined); d.Add(claim("web")) })
		pass(time.Hour)
		if w.expect(0, 0, "Reserved On default/web"); w.seen(0).installs > 1 {
			t.Errorf("it was installed %d times", w.seen(0).installs)
		}
	})
}

func TestARetainedServerIsNotWipedBecauseItsFileIsRemoved(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.commit(func(d *model.Desired) { d.Add(serverFile(0, retain)) })
		w.serve("web")
		w.change(0, func(m *machine) { m.dead = true })
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		pass(time.Hour)
		w.commit(func(d *model.Desired) { delete(d.Servers, "bmc00-system-0") })
		pass(time.Hour)
		w.change(0, func(m *machine) { m.dead = false })
		pass(time.Hour)
		if w.seen(0).disk == "" {
			t.Errorf("server 0 is %q, want it kept as it is, for so it was released", w.state(0))
		}
	})
}

func TestServersThatWereRetainedAreWipedByTheGuardOnly(t *testing.T) {
	live(t, 6, func(t *testing.T, w *loopWorld) {
		w.commit(func(d *model.Desired) {
			for i := range 6 {
				d.Add(serverFile(i, retain))
			}
		})
		w.serve(names6()...)
		for i, n := range names6() {
			w.change(i, func(m *machine) { m.dead = true })
			w.commit(func(d *model.Desired) { delete(d.Claims, model.ClaimName("default/"+n)) })
			pass(70 * time.Minute)
		}
		w.commit(func(d *model.Desired) {
			for i := range 6 {
				d.Add(serverFile(i))
			}
		})
		pass(70 * time.Minute)
		for i := range 6 {
			w.change(i, func(m *machine) { m.dead = false })
		}
		pass(50 * time.Minute)
		wiped := 0
		for i := range 6 {
			if w.seen(i).disk == "" {
				wiped++
			}
		}
		if wiped > 3 {
			t.Errorf("%d of 6 wiped at once, the guard's limit is 3; holds %+v", wiped, w.Observed().Fleet.Holds)
		}
	})
}

func TestAKeptServerIsNotWipedWhileItsClaimIsBackAndBroken(t *testing.T) {
	live(t, 2, func(t *testing.T, w *loopWorld) {
		keptFirst(w)
		w.commit(func(d *model.Desired) {
			d.Quarantined[model.ClaimName("default/web").Identity()] = []string{""}
			d.Add(serverFile(0))
		})
		w.expect(time.Hour, 0, "Released Off default/web")
		if why := w.why(0); why != model.ReasonClaimQuarantined {
			t.Errorf("it is said to be %s", why)
		}
		w.commit(func(d *model.Desired) { clear(d.Quarantined) })
		w.expect(time.Hour, 0, "Available Off")
	})
}

// keptFirst has claim web on the first server, and removes it: its disks stay as they are.
func keptFirst(w *loopWorld) {
	w.commit(func(d *model.Desired) { d.Add(serverFile(0, retain)); d.Add(serverFile(1, labelled("second"))) })
	w.serve("web")
	w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
	w.expect(time.Hour, 0, "Released Off default/web")
}

func onSecond(c *model.ServerClaim) { c.Spec.ServerRef = &model.LocalRef{Name: "bmc01-system-0"} }

func labelled(label string) func(s *model.Server) {
	return func(s *model.Server) { s.Labels = map[string]string{"which": label} }
}

// A claim that is removed, acted upon and made anew is another one, if it asks for another server.
func TestAReleasedServerIsNotForANewClaimThatAsksForAnother(t *testing.T) {
	for name, asks := range map[string]func(c *model.ServerClaim){
		"by its name": onSecond,
		"by its labels": func(c *model.ServerClaim) {
			c.Spec.ServerRef, c.Spec.ServerSelector = nil, &metav1.LabelSelector{MatchLabels: map[string]string{"which": "second"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, 2, func(t *testing.T, w *loopWorld) {
				keptFirst(w)
				ons := w.seen(0).ons
				w.commit(func(d *model.Desired) {
					d.Add(claim("web", asks, func(c *model.ServerClaim) { c.Spec.Image = "other:9" }))
				})
				w.expect(time.Hour, 1, "Reserved On default/web")
				if w.expect(0, 0, "Released Off default/web"); w.seen(0).ons != ons {
					t.Errorf("the first was switched on %d times", w.seen(0).ons-ons)
				}
			})
		})
	}
}

func TestAServerThatIsBeingReleasedIsNotForANewClaimThatNamesAnother(t *testing.T) {
	live(t, 3, func(t *testing.T, w *loopWorld) {
		w.commit(func(d *model.Desired) { d.Add(serverFile(0)); d.Add(serverFile(1)) })
		w.serve("web")
		w.change(0, func(m *machine) { m.dead = true })
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		pass(time.Hour)
		w.commit(func(d *model.Desired) {
			d.Add(claim("web", onSecond))
		})
		pass(time.Hour)
		if w.state(1) != "Reserved On default/web" {
			t.Errorf("claim web names bmc01-system-0; server 0 is %q, server 1 %q", w.state(0), w.state(1))
		}
	})
}

func TestANewClaimDoesNotWaitForTheReleaseOfAServerThatNeverRanIt(t *testing.T) {
	live(t, 2, func(t *testing.T, w *loopWorld) {
		w.expect(2*time.Minute, 1, "Available Off")
		w.change(0, func(m *machine) { m.dark = true })
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		pass(30 * time.Second)
		w.change(0, func(m *machine) { m.dead = true })
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		pass(10 * time.Minute)
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		pass(24 * time.Hour)
		if w.state(1) != "Reserved On default/web" {
			t.Errorf("server 1 is %q, want it to have the claim, which server 0 never ran", w.state(1))
		}
	})
}

// Of two servers that the claim of a name was taken from, it goes on with the one that it had last.
func TestAClaimThatIsBackHasTheServerThatItHadLast(t *testing.T) {
	live(t, 2, func(t *testing.T, w *loopWorld) {
		w.commit(func(d *model.Desired) { d.Add(serverFile(1, retain)) })
		w.serve("a", "web")
		w.commit(func(d *model.Desired) { clear(d.Claims) })
		w.expect(time.Hour, 0, "Available Off")
		w.expect(0, 1, "Released Off default/web")
		w.commit(func(d *model.Desired) {
			d.Add(claim("web", func(c *model.ServerClaim) { c.Spec.ServerRef = &model.LocalRef{Name: "bmc00-system-0"} }))
		})
		w.expect(time.Hour, 0, "Reserved On default/web")
		before := w.seen(0)
		w.change(0, func(m *machine) { m.dead = true })
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		pass(time.Hour)
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		pass(time.Minute)
		w.change(0, func(m *machine) { m.dead = false })
		w.expect(time.Hour, 0, "Reserved On default/web")
		w.expect(0, 1, "Released Off default/web")
		if m := w.seen(0); m.offs != before.offs || m.installs != before.installs {
			t.Errorf("it was touched: %+v, and was %+v", m, before)
		}
	})
}

// Of a removal that was acted upon nothing counts any more: the claim of that name is another server's by then.
func TestARemovalThatWasActedUponReleasesNoOtherServer(t *testing.T) {
	live(t, 2, func(t *testing.T, w *loopWorld) {
		keptFirst(w)
		w.commit(func(d *model.Desired) { d.Add(claim("web", onSecond)) })
		w.expect(time.Hour, 1, "Reserved On default/web")
		w.rewrite(func(d *model.Desired) { delete(d.Claims, "default/web") }) // absent, by no commit that says so
		pass(2 * time.Hour)
		w.expect(0, 1, "Reserved On default/web")
		w.expect(0, 0, "Released Off default/web")
	})
}
