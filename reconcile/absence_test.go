package reconcile

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/internal/plantest"
	"ingot/reconcile/plan/proposal"
)

// rewrite makes a new revision that does not descend from the one before: what it lacks
// is merely absent.
func (w *loopWorld) rewrite(change func(d *model.Desired)) {
	w.mu.Lock()
	d := w.desired.Clone()
	d.Revision += "1"
	change(d)
	w.desired = d
	w.mu.Unlock()
	signal(w.changed)
}

func TestAClaimThatIsMerelyAbsentKeepsItsServerAndItsPower(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		w.rewrite(func(d *model.Desired) { delete(d.Claims, "default/web") })
		w.expect(time.Hour, 0, "Reserved On default/web")
		w.set(w.machine(0), model.PowerOff) // power cut
		w.expect(10*time.Minute, 0, "Reserved On default/web")
		if m := w.seen(0); m.installs != 1 || m.forced > 0 {
			t.Errorf("installed %d times, forced off %d times", m.installs, m.forced)
		}
		if why := w.plan().Servers[0].Why; why.Reason != model.ReasonAbsentWithoutCommit {
			t.Errorf("it says %+v", why)
		}
		// A later commit that says nothing of it changes nothing; its removal does.
		w.commit(func(*model.Desired) {})
		w.expect(time.Hour, 0, "Reserved On default/web")
		w.commit(func(d *model.Desired) {
			d.Removed[model.ClaimName("default/web").Identity()] = []model.Removal{{Revision: d.Revision, Approved: true}}
		})
		w.expect(10*time.Minute, 0, "Available Off")
	})
}

// begin has Ingot start anew, and its source with the revision applied.
func (w *loopWorld) begin() {
	w.stop()
	w.mu.Lock()
	d := w.desired.Clone()
	d.Removed = nil
	w.desired = d
	w.mu.Unlock()
	w.start()
}

func TestARemovalIsRememberedOverARestart(t *testing.T) {
	t.Run("of claims whose releases the guard holds", func(t *testing.T) {
		live(t, 5, func(t *testing.T, w *loopWorld) {
			w.serve("a", "b", "c", "d", "e")
			w.commit(func(d *model.Desired) { clear(d.Claims) })
			w.expect(2*time.Minute, 4, "Reserved On default/e")
			w.begin()
			tokens := w.tokens()
			w.commit(func(d *model.Desired) { d.Approvals = tokens })
			for i := range 5 {
				w.expect(20*time.Minute, i, "Available Off")
			}
			if noted := w.Observed().Fleet.Removed; len(noted) > 0 {
				t.Errorf("nothing depends on them any more, and noted are %v", noted)
			}
		})
	})
	for name, ask := range map[string]model.Object{
		"of a maintenance":                fleettest.MaintenanceOf("m", 0),
		"of a server that is kept parked": serverFile(0, operation1(model.OperationPark)),
	} {
		t.Run(name, func(t *testing.T) {
			live(t, 1, func(t *testing.T, w *loopWorld) {
				w.serve("web")
				w.commit(func(d *model.Desired) { d.Add(ask) })
				w.expect(10*time.Minute, 0, "Maintenance Off default/web")
				w.change(0, func(m *machine) { m.dead = true })
				w.commit(func(d *model.Desired) {
					clear(d.Maintenances)
					clear(d.Servers)
				})
				pass(time.Minute)
				w.begin()
				w.change(0, func(m *machine) { m.dead = false })
				w.expect(20*time.Minute, 0, "Reserved On default/web")
			})
		})
	}
}

func TestARemovalThatWasTakenBackIsForgotten(t *testing.T) {
	live(t, 5, func(t *testing.T, w *loopWorld) {
		w.serve("a", "b", "c", "d", "e")
		claims := w.Desired().Claims
		w.commit(func(d *model.Desired) { d.Claims = map[model.ClaimName]*model.ServerClaim{} })
		w.expect(2*time.Minute, 4, "Reserved On default/e")
		w.commit(func(d *model.Desired) { d.Claims["default/e"] = claims["default/e"] })
		w.begin()
		w.rewrite(func(d *model.Desired) { delete(d.Claims, "default/e") }) // and this time no commit takes it away
		w.expect(2*time.Hour, 4, "Reserved On default/e")
	})
}

func TestAClaimIsRenamedToANameThatWasUsed(t *testing.T) {
	t.Run("and has a server: the other one is released", func(t *testing.T) {
		live(t, 2, func(t *testing.T, w *loopWorld) {
			w.serve("shop", "web")
			before := w.seen(0)
			w.commit(fleettest.Renamed("web", "shop"))
			w.expect(10*time.Minute, 1, "Available Off")
			w.expect(time.Hour, 0, "Reserved On default/shop")
			if m := w.seen(0); len(m.boots) != len(before.boots) || m.offs != before.offs {
				t.Errorf("the server of that name was touched: %+v, and was %+v", m, before)
			}
		})
	})
	t.Run("and whose server is being released: that goes on", func(t *testing.T) {
		live(t, 2, func(t *testing.T, w *loopWorld) {
			w.serve("shop", "web")
			before := w.seen(1)
			w.change(0, func(m *machine) { m.dead = true })
			w.commit(func(d *model.Desired) { delete(d.Claims, "default/shop") })
			pass(time.Minute)
			w.commit(fleettest.Renamed("web", "shop"))
			pass(time.Minute)
			w.change(0, func(m *machine) { m.dead = false })
			w.expect(20*time.Minute, 0, "Available Off")
			w.expect(0, 1, "Reserved On default/shop")
			if m := w.seen(1); len(m.boots) != len(before.boots) || m.offs != before.offs {
				t.Errorf("the renamed claim's server was touched: %+v, and was %+v", m, before)
			}
		})
	})
}

func TestAClaimThatIsRenamedKeepsItsServer(t *testing.T) {
	live(t, 2, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		before := w.seen(0)
		w.commit(fleettest.Renamed("web", "shop"))
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

func TestClaimsThatExchangeNamesKeepTheirServers(t *testing.T) {
	live(t, 3, func(t *testing.T, w *loopWorld) {
		w.serve("a", "b", "c")
		before := []machine{w.seen(0), w.seen(1), w.seen(2)}
		names := map[model.ClaimName]model.ClaimName{"default/a": "default/b", "default/b": "default/c", "default/c": "default/d"}
		w.commit(func(d *model.Desired) {
			old := maps.Clone(d.Claims)
			clear(d.Claims)
			for from, to := range names {
				c := *old[from]
				_, c.Name = model.SplitName(to)
				d.Add(&c)
			}
			d.Renamed = append(slices.Clip(d.Renamed), model.Renaming{Revision: "main@sha1:chain", Names: names})
		})
		for i, name := range []string{"b", "c", "d"} {
			w.expect(time.Hour, i, "Reserved On default/"+name)
			if m := w.seen(i); m.installs != before[i].installs || m.offs != before[i].offs || len(m.boots) != len(before[i].boots) {
				t.Errorf("server %d was touched: %+v, and was %+v", i, m, before[i])
			}
		}
		w.begin() // the revision applied has the new names
		w.expect(time.Hour, 0, "Reserved On default/b")
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/c") })
		w.expect(time.Hour, 1, "Available Off")
		w.expect(0, 2, "Reserved On default/d")
	})
}

func TestAClaimThatIsChangedAlongWithItsNameKeepsItsServer(t *testing.T) {
	live(t, 2, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		before := w.seen(0)
		w.commit(func(d *model.Desired) {
			fleettest.Renamed("web", "shop")(d)
			d.Add(claim("shop", image("os:2"), func(c *model.ServerClaim) {
				c.Spec.Tolerations = []model.Toleration{{Operator: "Exists"}}
				c.Annotations = map[string]string{model.AnnotationCleanup: model.CleanupSecure}
			}))
		})
		w.expect(time.Hour, 0, "Reserved On default/shop")
		w.expect(0, 1, "Available Off")
		if why := w.why(0); why != model.ReasonPendingReprovision {
			t.Errorf("the server is said to be %s", why)
		}
		if m := w.seen(0); m.installs != before.installs || len(m.boots) != len(before.boots) || m.offs != before.offs {
			t.Errorf("it was touched: %+v, and was %+v", m, before)
		}
		w.commit(func(d *model.Desired) {
			fleettest.Renamed("shop", "mall")(d)
			d.Add(claim("mall", image("os:2"), func(c *model.ServerClaim) { c.Spec.Power = model.PowerOff }))
		})
		w.expect(10*time.Minute, 0, "Reserved Off default/mall") // the commit says so, and no more
		w.commit(func(d *model.Desired) {
			d.Add(claim("mall", image("os:2"), annotated(model.AnnotationReprovision, "1")))
		})
		w.expect(10*time.Minute, 0, "Reserved On default/mall")
		if m := w.seen(0); m.installs != before.installs+1 {
			t.Errorf("installed %d times, want once more", m.installs)
		}
	})
}

func TestClaimsOfTheFirstRevisionWaitWhileAnUnknownServerRuns(t *testing.T) {
	prepared(t, 2, func(w *loopWorld) {
		w.machine(1).power = model.PowerOn
		w.desired.Add(claim("web"))
	}, func(t *testing.T, w *loopWorld) {
		w.expect(time.Hour, 0, "Available Off")
		w.commit(func(d *model.Desired) { d.Add(claim("db")) }) // later ones bind
		w.expect(5*time.Minute, 0, "Reserved On default/db")
		token := w.Observed().Fleet.UnknownToken
		why := plantest.ClaimWhy(w.loop.Input(time.Now()), "default/web")
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

// A server that ran when nothing was known of the fleet may hold the disks of a claim, also
// once its power was cut: for no claim it is discovered, until somebody says so.
func TestAServerOfAnUnknownFleetIsNobodysOnceItsPowerWasCut(t *testing.T) {
	const name = "bmc00-system-0"
	for how, released := range map[string]func(w *loopWorld){
		"approved": func(w *loopWorld) {
			token := w.Observed().Fleet.UnknownToken
			w.commit(func(d *model.Desired) { d.Approvals = []string{token} })
			w.expect(time.Hour, 0, "Reserved On default/web")
		},
		"asked for by annotation": func(w *loopWorld) {
			w.discover()
			w.expect(time.Hour, 0, "Reserved On default/web") // the last that was unknown
		},
		"adopted": func(w *loopWorld) {
			w.commit(func(d *model.Desired) {
				d.Add(&model.Server{Meta: model.Meta{Name: name}, Spec: model.ServerSpec{
					ServerClaimRef: &model.ObjectRef{Namespace: "default", Name: "web"},
				}})
			})
			w.expect(time.Hour, 0, "Reserved On default/web")
			if n := w.seen(0).installs; n != 0 {
				w.t.Errorf("it was installed %d times", n)
			}
		},
	} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newLoopWorld(t, 1)
				w.machine(0).power = model.PowerOn
				w.desired.Add(claim("web"))
				w.start()
				defer func() { w.stop() }()
				pass(2 * time.Second) // it was seen twice
				w.change(0, func(m *machine) { m.power = model.PowerOff })
				w.expect(time.Hour, 0, "Initial Off")
				w.commit(func(d *model.Desired) { d.Add(claim("db")) })
				w.expect(time.Hour, 0, "Initial Off")
				w.untouched()
				w.stop()
				w.start()
				w.expect(time.Hour, 0, "Initial Off")
				w.untouched()
				for what, why := range map[string]string{"the server": w.whyText(0), "the claim": plantest.ClaimWhy(w.loop.Input(time.Now()), "default/web").Message} {
					if !strings.Contains(why, proposal.ApproveLine(w.Observed().Fleet.UnknownToken)) {
						t.Errorf("%s says %s", what, why)
					}
				}
				w.commit(func(d *model.Desired) { delete(d.Claims, "default/db") })
				released(w)
			})
		})
	}
}

func TestTheUnknownFleetEndsOnceAllOfItWasSeenOff(t *testing.T) {
	in := plantest.Waiting(plantest.BigFleet(2, 0), 1, nil)
	in.Observed.Fleet = model.FleetRecord{Unknown: in.Now, UnknownToken: "t"}
	delete(in.Observed.BMCFacts, "bmc00001")
	delete(in.Observed.Servers, "bmc00001-system-0")
	claim := in.Desired.Claims["default/w00000"]
	if why := plantest.ClaimWhy(in, "default/w00000"); why.Reason != "FleetUnknown" || !strings.Contains(why.Message, "bmc00001") {
		t.Errorf("while a BMC was not read, it says %+v", why)
	}
	prepared(t, 2, func(w *loopWorld) { w.desired.Add(claim) }, func(t *testing.T, w *loopWorld) {
		pass(2 * time.Minute)
		o := w.Observed()
		if s := o.Servers; s["bmc00-system-0"].Claim.Name == "" && s["bmc01-system-0"].Claim.Name == "" {
			t.Error("the claim has no server")
		}
		if f := o.Fleet; f.UnknownToken != "" || !f.Unknown.IsZero() {
			t.Errorf("it is still unknown since %s, by token %s", f.Unknown, f.UnknownToken)
		}
	})
}

func TestNothingIsTouchedBeforeTheFirstPublication(t *testing.T) {
	published(t, 1, func(w *loopWorld, b *branch) {
		w.expect(time.Hour, 0, "Initial Off")
		b.fail(false)
		w.expect(10*time.Minute, 0, "Available Off")
		b.set(func(b *branch) { b.skips = []model.ServerName{w.machine(0).name} })
		before := w.seen(0)
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		w.expect(time.Hour, 0, "Reserved Off default/web")
		if m := w.seen(0); m.ons != before.ons {
			t.Error("it was powered on though the branch does not show its record")
		}
	}, func(w *loopWorld) { w.mirror, w.protected = true, true })
}

func TestNothingIsDoneWhileObserving(t *testing.T) {
	for name, st := range map[string]State{
		"nothing at all":         {ObserveOnly: "the status branch cannot be read"},
		"nothing but power back": {HealOnly: "the status branch cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, 2, func(t *testing.T, w *loopWorld) {
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
		"a maintenance": func(d *model.Desired) { d.Add(fleettest.MaintenanceOf("m", 0)) },
		"a power-off": func(d *model.Desired) {
			d.Add(claim("web", func(c *model.ServerClaim) { c.Spec.Power = model.PowerOff }))
		},
		"a reprovision": func(d *model.Desired) { d.Add(claim("web", annotated(model.AnnotationReprovision, "1"))) },
		"a restart":     func(d *model.Desired) { d.Add(serverFile(0, operation1("power-cycle-server#1"))) },
	} {
		t.Run(name, func(t *testing.T) {
			published(t, 1, func(w *loopWorld, b *branch) {
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
			}, func(w *loopWorld) { w.mirror = true })
		})
	}
}
