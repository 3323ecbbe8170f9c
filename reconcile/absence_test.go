package reconcile

import (
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ingot/model"
)

// vanish has claims be gone from Git without a commit that takes them away.
func (w *world) vanish(names ...model.ClaimName) {
	w.mu.Lock()
	d := w.desired.Clone()
	d.Revision += "1"
	for _, name := range names {
		delete(d.Claims, name)
	}
	w.desired = d
	w.mu.Unlock()
	signal(w.changed)
}

func TestAClaimThatIsMerelyAbsentKeepsItsServerAndItsPower(t *testing.T) {
	live(t, 1, func(t *testing.T, w *world) {
		w.serve("web")
		w.vanish("default/web")
		w.expect(time.Hour, 0, "Reserved On default/web")
		w.set(w.machine(0), model.PowerOff) // power cut
		w.expect(10*time.Minute, 0, "Reserved On default/web")
		if m := w.seen(0); m.installs != 1 || m.forced > 0 {
			t.Errorf("installed %d times, forced off %d times", m.installs, m.forced)
		}
		if why := newView(w.loop.Input(time.Now())).whys[0]; why.Reason != AbsentWithoutCommit {
			t.Errorf("it says %+v", why)
		}
		// A later commit that says nothing of it changes nothing; its removal does.
		w.commit(func(*model.Desired) {})
		w.expect(time.Hour, 0, "Reserved On default/web")
		w.commit(func(d *model.Desired) {
			d.Removed[claimIdentity("default/web")] = model.Removal{Revision: d.Revision, Approved: true}
		})
		w.expect(10*time.Minute, 0, "Available Off")
	})
}

func TestARemovalIsRememberedOverARestart(t *testing.T) {
	live(t, 1, func(t *testing.T, w *world) {
		w.serve("web")
		w.change(0, func(m *machine) { m.dead = true })
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		pass(time.Minute)
		w.stop()
		w.mu.Lock()
		d := w.desired.Clone()
		d.Removed = nil // the source begins anew with the revision applied
		w.desired = d
		w.mu.Unlock()
		w.start()
		w.change(0, func(m *machine) { m.dead = false })
		w.expect(20*time.Minute, 0, "Available Off")
	})
}

func TestAClaimThatIsRenamedKeepsItsServer(t *testing.T) {
	live(t, 2, func(t *testing.T, w *world) {
		w.serve("web")
		before := w.seen(0)
		w.commit(func(d *model.Desired) {
			delete(d.Claims, "default/web")
			d.Add(claim("shop"))
			d.Renamed = map[model.ClaimName]model.ClaimName{"default/web": "default/shop"}
		})
		w.expect(time.Hour, 0, "Reserved On default/shop")
		w.expect(0, 1, "Available Off")
		if m := w.seen(0); m.installs != before.installs || m.ons != before.ons || len(m.boots) != len(before.boots) {
			t.Errorf("it was touched: %+v, and was %+v", m, before)
		}
		if rec := w.Observed().Claims["default/shop"]; rec == nil || rec.Sequence != 2 {
			t.Errorf("the claim's record is %+v, want the turn of the claim that it was", rec)
		}
	})
}

func TestClaimsOfTheFirstRevisionWaitWhileAnUnknownServerRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.machine(1).power = model.PowerOn
		w.desired.Add(claim("web"))
		w.start()
		defer w.stop()
		w.expect(time.Hour, 0, "Available Off")
		w.commit(func(d *model.Desired) { d.Add(claim("db")) }) // later ones bind
		w.expect(5*time.Minute, 0, "Reserved On default/db")
		token := w.Observed().Fleet.UnknownToken
		why := newFleet(w.loop.Input(time.Now())).unbound(w.Desired().Claims["default/web"])
		if why.Reason != "FleetUnknown" || !strings.Contains(why.Message, token) || token == "" {
			t.Fatalf("it says %+v", why)
		}
		w.commit(func(d *model.Desired) {
			delete(d.Claims, "default/db")
			d.Approvals = []string{token}
		})
		w.expect(10*time.Minute, 0, "Reserved On default/web")
	})
}

func TestNothingIsDoneWhileObserving(t *testing.T) {
	for name, st := range map[string]State{
		"nothing at all":         {ObserveOnly: "the status branch cannot be read"},
		"nothing but power back": {HealOnly: "the status branch cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, 2, func(t *testing.T, w *world) {
				w.serve("web")
				w.stop()
				before := w.Observed()
				w.may = st
				w.start()
				w.commit(func(d *model.Desired) {
					delete(d.Claims, "default/web")
					d.Add(claim("db"))
				})
				w.set(w.machine(0), model.PowerOff)
				want := "Reserved Off default/web"
				if st.HealOnly != "" {
					want = "Reserved On default/web"
				}
				w.expect(time.Hour, 0, want)
				w.expect(0, 1, "Available Off")
				if after := w.Observed(); after.Fleet.Applied != before.Fleet.Applied || !maps.Equal(after.Claims, before.Claims) {
					t.Errorf("something was decided: %+v", after.Fleet)
				}
			})
		})
	}
}

func TestNothingIsTouchedBeforeTheStatusBranchShowsIt(t *testing.T) {
	for name, ask := range map[string]func(d *model.Desired){
		"a release":     func(d *model.Desired) { delete(d.Claims, "default/web") },
		"a maintenance": func(d *model.Desired) { d.Add(maintenanceOf("m", 0)) },
		"a power-off": func(d *model.Desired) {
			d.Add(claim("web", func(c *model.ServerClaim) { c.Spec.Power = model.PowerOff }))
		},
		"a reprovision": func(d *model.Desired) { d.Add(claim("web", annotated(model.AnnotationReprovision, "1"))) },
		"a restart":     func(d *model.Desired) { d.Add(serverFile(0, operation1("power-cycle-server#1"))) },
	} {
		t.Run(name, func(t *testing.T) {
			published(t, 1, func(w *world, b *branch) {
				w.serve("web")
				before := w.seen(0)
				b.fail(true)
				w.commit(ask)
				w.expect(30*time.Minute, 0, "Reserved On default/web")
				w.set(w.machine(0), model.PowerOff) // and its power is healed all the same
				w.expect(10*time.Minute, 0, "Reserved On default/web")
				m := w.seen(0)
				if m.installs != before.installs || m.forced > 0 || m.ons != before.ons+1 || len(m.boots) != len(before.boots)+1 {
					t.Errorf("it was touched: %+v, and was %+v", m, before)
				}
				b.fail(false)
				pass(20 * time.Minute)
				if after := w.seen(0); len(after.boots) == len(m.boots) && after.power == m.power {
					t.Errorf("nothing came of it once the branch could be pushed: %+v", after)
				}
			}, func(w *world) { w.mirror = true })
		})
	}
}

func maintenanceOf(name string, i int) *model.ServerMaintenance {
	return &model.ServerMaintenance{
		Meta: model.Meta{Name: name}, Spec: model.ServerMaintenanceSpec{ServerRef: model.LocalRef{Name: serverFile(i).Name}},
	}
}

func TestARenamedClaimIsShownBeforeItsServerSaysSo(t *testing.T) {
	in := bigFleet(1, 1)
	in.Desired.Renamed = map[model.ClaimName]model.ClaimName{"default/c00000": "default/shop"}
	delete(in.Desired.Claims, "default/c00000")
	in.Desired.Add(claim("shop"))
	r := NewProjector().Report(in, 1, model.Holder{})
	shown := string(rendered(t, r)["serverclaims/default/shop.yaml"])
	if !strings.Contains(shown, "phase: Bound") {
		t.Errorf("it shows\n%s", shown)
	}
}
