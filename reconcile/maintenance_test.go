package reconcile

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
)

const approved = model.AnnotationMaintenanceApproved

// asking is a maintenance of the first server that asks the owner of its claim.
func asking(name string) *model.ServerMaintenance {
	m := fleettest.MaintenanceOf(name, 0)
	m.Spec.Policy, m.Spec.Reason = model.MaintenanceOwnerApproval, "new fans"
	return m
}

// approve has the claim "web" approve maintenance; "" takes it back.
func approve(value string) func(d *model.Desired) {
	return func(d *model.Desired) {
		d.Add(claim("web", func(c *model.ServerClaim) { c.Annotations = map[string]string{approved: value} }))
	}
}

func endMaintenance(d *model.Desired) { clear(d.Maintenances) }

func TestMaintenanceWaitsForTheOwnerOfTheClaim(t *testing.T) {
	label := func(d *model.Desired) {
		d.Add(claim("web", func(c *model.ServerClaim) { c.Labels = map[string]string{approved: "true"} }))
	}
	for name, tt := range map[string]struct {
		approve func(d *model.Desired)
		begins  bool
	}{
		"nothing is said":                   {func(*model.Desired) {}, false},
		"any is approved":                   {approve("true"), true},
		"any is approved by a label":        {label, true},
		"this one is approved by name":      {approve("m"), true},
		"another one is approved by name":   {approve("n"), false},
		"the value is none that is allowed": {approve("yes"), false},
		"it no longer asks": {func(d *model.Desired) {
			m := asking("m")
			m.Spec.Policy = model.MaintenanceEnforced
			d.Add(m)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, 1, func(t *testing.T, w *loopWorld) {
				w.serve("web")
				w.commit(func(d *model.Desired) { d.Add(asking("m")) })
				w.expect(time.Hour, 0, "Reserved On default/web")
				w.commit(tt.approve)
				if !tt.begins {
					w.expect(time.Hour, 0, "Reserved On default/web")
					return
				}
				w.expect(time.Minute, 0, "Maintenance Off default/web")
				w.commit(approve(""))
				w.expect(time.Hour, 0, "Maintenance Off default/web") // what has begun ends with its manifest
				if why := w.plan().Servers[0].Why; why.Message != "under ServerMaintenance m: new fans" {
					t.Errorf("it is said to be %s", why.Message)
				}
				w.commit(endMaintenance)
				w.expect(2*time.Minute, 0, "Reserved On default/web")
				w.commit(func(d *model.Desired) { d.Add(asking("m")) })
				w.expect(time.Hour, 0, "Reserved On default/web") // and is asked for anew
			})
		})
	}
}

// Whoever waits for an approval says so, with what it will do: and what runs is as ready as before.
func TestAnAwaitedApprovalIsShown(t *testing.T) {
	published(t, 1, func(w *loopWorld, b *branch) {
		w.serve("web")
		pass(time.Minute)
		since := time.Now().UTC().Format(time.RFC3339)
		w.commit(func(d *model.Desired) { d.Add(asking("m")) })
		pass(time.Hour)
		const want = "ServerMaintenance m (new fans) of server bmc00-system-0 waits for the approval of the owner of claim default/web: " +
			"set annotation " + approved + `: m on the ServerClaim, ` +
			`or "true" for any maintenance; it will power off the server until it ends (to act: tenant)`
		for _, path := range []string{"servers/bmc00-system-0.yaml", "serverclaims/default/web.yaml"} {
			conds := w.shown(path).Status.Conditions
			if got := conditionOf(conds, "MaintenanceApproved"); got != "False ApprovalAwaited: "+want {
				w.t.Errorf("%s says %s", path, got)
			}
			if got := conditionOf(conds, "Ready"); !strings.HasPrefix(got, "True ") {
				w.t.Errorf("%s: Ready is %s", path, got)
			}
		}
		doc := w.document("servermaintenances/m.yaml")
		for _, says := range []string{"state: Pending", "reason: ApprovalAwaited", "since: \"" + since + "\""} {
			if !strings.Contains(doc, says) {
				w.t.Errorf("the maintenance does not say %q:\n%s", says, doc)
			}
		}
		if page := w.document(model.ReportReadme); strings.Count(page, "waits for the approval") != 2 {
			w.t.Errorf("the page does not say twice what is awaited:\n%s", page)
		}
		commits := b.taken()
		pass(24 * time.Hour)
		if n := b.taken() - commits; n > 0 {
			w.t.Errorf("waiting cost %d commits", n)
		}
		w.loseStore(w.files())
		pass(time.Minute)
		if doc := w.document("servermaintenances/m.yaml"); !strings.Contains(doc, "since: \""+since+"\"") {
			w.t.Errorf("once the store was lost it waits since another time:\n%s", doc)
		}
		w.commit(endMaintenance)
		pass(time.Minute)
		if rec := w.Observed().Servers[w.machine(0).name]; rec.Maintenance.Awaits != nil {
			w.t.Errorf("nothing asks any more, but %+v is awaited", rec.Maintenance.Awaits)
		}
	})
}

func TestWhatAsksForNoApproval(t *testing.T) {
	t.Run("a server without a claim", func(t *testing.T) {
		live(t, 1, func(_ *testing.T, w *loopWorld) {
			w.expect(2*time.Minute, 0, "Available Off")
			w.commit(func(d *model.Desired) { d.Add(asking("m")) })
			w.expect(time.Minute, 0, "Maintenance Off")
		})
	})
	t.Run("beside one that is enforced", func(t *testing.T) {
		live(t, 1, func(t *testing.T, w *loopWorld) {
			w.serve("web")
			w.commit(func(d *model.Desired) {
				d.Add(fleettest.MaintenanceOf("a", 0))
				d.Add(asking("m"))
			})
			w.expect(time.Minute, 0, "Maintenance Off default/web")
			w.commit(func(d *model.Desired) { d.Add(fleettest.MaintenanceOf("z", 0)) })
			pass(time.Minute)
			if by := w.Observed().Servers[w.machine(0).name].Maintenance.By; by != "a" {
				t.Errorf("it is in Maintenance for %s, want what has begun", by)
			}
			w.commit(func(d *model.Desired) { delete(d.Maintenances, "a") })
			w.expect(time.Minute, 0, "Maintenance Off default/web")
			w.commit(func(d *model.Desired) { delete(d.Maintenances, "z") })
			w.expect(2*time.Minute, 0, "Reserved On default/web") // the other still waits
		})
	})
}

// What is awaited is shown as its manifest says it now.
func TestAnAwaitedApprovalIsShownAsItIsNow(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		sink, end := publishing(w)
		defer end()
		w.serve("web")
		w.commit(func(d *model.Desired) { d.Add(asking("m")) })
		pass(time.Minute)
		w.commit(func(d *model.Desired) {
			m := asking("m")
			m.Spec.Reason = "old fans"
			d.Add(m)
		})
		pass(time.Minute)
		synctest.Wait()
		if s := sink.stale(w); len(s) > 0 {
			t.Errorf("%d documents are stale, first %s", len(s), s[0])
		}
	})
}

// What was decided and taken back before it was done is decided anew if it is asked for again.
func TestAMaintenanceThatWasTakenBackAsksAgain(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		w.commit(approve("true"))
		w.change(0, func(m *machine) { m.deaf = true })
		w.commit(func(d *model.Desired) { d.Add(asking("m")) })
		w.expect(time.Minute, 0, "Reserved On default/web")
		w.commit(func(d *model.Desired) {
			endMaintenance(d)
			approve("")(d)
		})
		pass(time.Minute)
		w.commit(func(d *model.Desired) { d.Add(asking("m")) })
		w.expect(time.Hour, 0, "Reserved On default/web")
		if n := w.seen(0).forced; n > 0 {
			t.Errorf("it was forced off %d times", n)
		}
	})
}

// An approval is no leave of the guard's: that bounds how many servers go at once.
func TestTheGuardCountsWhatOwnersApprove(t *testing.T) {
	live(t, 6, func(t *testing.T, w *loopWorld) {
		w.serve(names6()...)
		w.commit(func(d *model.Desired) {
			for i, n := range names6() {
				m := fleettest.MaintenanceOf("m"+n, i)
				m.Spec.Policy = model.MaintenanceOwnerApproval
				d.Add(m)
				d.Add(claim(n, func(c *model.ServerClaim) { c.Annotations = map[string]string{approved: "true"} }))
			}
		})
		w.expect(time.Minute, 0, "Reserved On default/a")
		if holds := w.Observed().Fleet.Holds; len(holds) != 1 || len(holds[0].Steps) != 6 {
			t.Errorf("the guard holds %+v, want 6 steps", holds)
		}
	})
}

// askingWith has a maintenance of the first server, which asks the owner of its claim, ask for a
// power state.
func askingWith(p model.Power) func(d *model.Desired) {
	return func(d *model.Desired) {
		m := asking("m")
		m.Spec.ServerPower = p
		d.Add(m)
	}
}

// An approval covers what was shown when it was given.
func TestAnApprovalByNameCoversWhatWasShown(t *testing.T) {
	const on, off = model.PowerOn, model.PowerOff
	const leftOn, asBefore, isOff = "Maintenance On default/web", "Reserved On default/web", "Maintenance Off default/web"
	type step struct {
		does func(d *model.Desired)
		then string
	}
	both := func(a, b func(d *model.Desired)) func(d *model.Desired) {
		return func(d *model.Desired) {
			a(d)
			b(d)
		}
	}
	enforced := func(d *model.Desired) {
		m := asking("m")
		m.Spec.Policy = model.MaintenanceEnforced
		d.Add(m)
	}
	for name, steps := range map[string][]step{
		"it is shut down where that was shown": {{askingWith(off), asBefore}, {approve("m"), isOff}, {askingWith(on), leftOn}, {askingWith(off), isOff}},
		"what left it on asks anew before it is shut down": {
			{askingWith(on), asBefore}, {approve("m"), leftOn}, {askingWith(off), leftOn}, {approve("m#Off"), isOff},
			{approve(""), isOff}, {askingWith(on), leftOn}, {askingWith(off), isOff},
		},
		"or goes on leaving it on":               {{askingWith(on), asBefore}, {approve("m"), leftOn}, {askingWith(off), leftOn}, {askingWith(on), leftOn}, {endMaintenance, asBefore}},
		"it is no longer approved":               {{askingWith(on), asBefore}, {approve("m"), leftOn}, {approve(""), leftOn}, {askingWith(off), leftOn}, {endMaintenance, asBefore}},
		"an approval of any covers it":           {{askingWith(on), asBefore}, {approve("true"), leftOn}, {askingWith(off), isOff}},
		"what no longer asks is not asked about": {{askingWith(on), asBefore}, {approve("m"), leftOn}, {enforced, isOff}},
		"it changes before it is approved":       {{askingWith(on), asBefore}, {askingWith(off), asBefore}, {approve("m"), asBefore}, {approve("m#Off"), isOff}},
		"it changes together with the approval":  {{askingWith(on), asBefore}, {both(askingWith(off), approve("m")), asBefore}},
		"it changes while it is being begun":     {{both(askingWith(on), approve("m")), leftOn}, {askingWith(off), leftOn}},
		"it comes again while its approval stands": {
			{both(askingWith(on), approve("m")), leftOn}, {endMaintenance, asBefore}, {askingWith(off), asBefore}, {approve("m#Off"), isOff},
		},
		"it comes again and was approved as such": {{both(askingWith(off), approve("m")), isOff}, {endMaintenance, asBefore}, {askingWith(off), isOff}},
		"another begins with what it is told": {
			{both(askingWith(on), approve("m")), leftOn}, {endMaintenance, asBefore}, {approve(""), asBefore}, {askingWith(off), asBefore}, {approve("m"), isOff},
		},
	} {
		t.Run(name, func(t *testing.T) {
			published(t, 1, func(w *loopWorld, _ *branch) {
				w.serve("web")
				for _, s := range steps {
					w.commit(s.does)
					w.expect(10*time.Minute, 0, s.then)
				}
				if m := w.seen(0); m.installs != 1 {
					w.t.Errorf("installed %d times", m.installs)
				}
			}, func(w *loopWorld) { w.mirror = true })
		})
	}
}

// What left a server on and waits to shut it down says so, and what approves that.
func TestAMaintenanceThatWaitsToShutDownSaysSo(t *testing.T) {
	published(t, 1, func(w *loopWorld, _ *branch) {
		w.serve("web")
		w.commit(func(d *model.Desired) {
			askingWith(model.PowerOn)(d)
			approve("m")(d)
		})
		w.expect(time.Minute, 0, "Maintenance On default/web")
		w.commit(askingWith(model.PowerOff))
		pass(time.Minute)
		says := func() {
			const want = "ServerMaintenance m (new fans), which was to leave it on, of server bmc00-system-0 waits for the approval of the owner " +
				"of claim default/web: set annotation " + approved + `: m#Off on the ServerClaim, or "true" for any maintenance; it will power ` +
				"off the server until it ends (to act: tenant)"
			if got := conditionOf(w.shown("serverclaims/default/web.yaml").Status.Conditions, "MaintenanceApproved"); got != "False ApprovalAwaited: "+want {
				w.t.Errorf("the claim says %s", got)
			}
			doc := w.document("servermaintenances/m.yaml")
			for _, says := range []string{"state: InMaintenance", "reason: ApprovalAwaited", "m#Off"} {
				if !strings.Contains(doc, says) {
					w.t.Errorf("the maintenance does not say %q:\n%s", says, doc)
				}
			}
		}
		says()
		w.loseStore(w.files())
		w.expect(time.Hour, 0, "Maintenance On default/web")
		says()
	}, func(w *loopWorld) { w.mirror = true })
}
