package reconcile

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
)

// A claim that names a Secret which is not there touches no machine, and is served once it
// is (M11).
func TestAClaimWaitsForItsSecretWithoutTouchingAMachine(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.expect(time.Minute, 0, "Available Off")
		sets, ons := w.seen(0).sets, w.seen(0).ons
		w.commit(func(d *model.Desired) {
			d.Add(claim("web", func(c *model.ServerClaim) { c.Spec.IgnitionSecretRef = &model.LocalRef{Name: "ign"} }))
		})
		w.expect(time.Hour, 0, "Available Off")
		if m := w.seen(0); m.sets != sets || m.ons != ons {
			t.Errorf("its boot override was set %d times and it was powered on %d times", m.sets-sets, m.ons-ons)
		}
		if why := w.document("serverclaims/default/web.yaml"); !strings.Contains(why, "Secret default/ign is not in Git") {
			t.Errorf("the claim does not say why it waits:\n%s", why)
		}
		w.commit(func(d *model.Desired) { d.Add(fleettest.IgnitionSecret("{}")) })
		w.expect(time.Minute, 0, "Reserved On default/web")
	})
}

// A claim of a server that serves another waits for that one (C02).
func TestAClaimOfAServerThatServesAnotherGetsItOnceItIsFree(t *testing.T) {
	live(t, 2, func(t *testing.T, w *loopWorld) {
		w.serve("a")
		w.commit(func(d *model.Desired) {
			d.Add(claim("b", func(c *model.ServerClaim) { c.Spec.ServerRef = &model.LocalRef{Name: "bmc00-system-0"} }))
		})
		w.expect(time.Hour, 0, "Reserved On default/a")
		w.expect(0, 1, "Available Off") // it takes no other
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/a") })
		w.expect(5*time.Minute, 0, "Reserved On default/b")
	})
}

// A claim that goes while its server is being installed takes the ticket with it: the server
// is switched off and wiped (C04).
func TestAClaimThatGoesDuringTheInstall(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.expect(time.Minute, 0, "Available Off")
		w.mu.Lock()
		w.delay = time.Minute
		w.mu.Unlock()
		w.commit(func(d *model.Desired) { d.Add(claim("web")) })
		w.untilArmed(0)
		pass(90 * time.Second) // it is On, and has not asked for anything
		ticket := w.Observed().Servers["bmc00-system-0"].Boot.Ticket.ID
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		pass(5 * time.Second)
		rec := w.Observed().Servers["bmc00-system-0"]
		if rec.Boot.Ticket != nil && rec.Boot.Ticket.ID == ticket && rec.Boot.Ticket.MayBoot(w.Observed().Progress[rec.Name]) {
			t.Error("the ticket of the claim may still be used")
		}
		w.expect(30*time.Minute, 0, "Available Off")
		if m := w.seen(0); m.disk != "" {
			t.Errorf("its disk holds %q", m.disk)
		}
	})
}

// Nothing that changes about a bound server takes it from its claim: neither its labels (C08),
// nor a taint (C09), nor that its manifests leave Git (C07), though a bound server is Available
// to no one.
func TestABindingIsSticky(t *testing.T) {
	rackA := func(c *model.ServerClaim) {
		c.Spec.ServerSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"rack": "a"}}
	}
	for name, change := range map[string]func(d *model.Desired){
		"labels": func(d *model.Desired) {
			b := *d.BMCs["bmc00"]
			b.Labels = map[string]string{"rack": "z"}
			d.Add(&b)
		},
		"a taint": func(d *model.Desired) {
			d.Add(serverFile(0, func(s *model.Server) { s.Spec.Taints = []model.Taint{{Key: "broken", Effect: model.TaintNoBind}} }))
		},
		"its Server leaves Git":  func(d *model.Desired) { delete(d.Servers, "bmc00-system-0") },
		"M16 its BMC leaves Git": func(d *model.Desired) { delete(d.BMCs, "bmc00") },
	} {
		t.Run(name, func(t *testing.T) {
			live(t, 1, func(t *testing.T, w *loopWorld) {
				w.commit(func(d *model.Desired) { d.Add(serverFile(0)) })
				w.expect(time.Minute, 0, "Available Off")
				w.commit(func(d *model.Desired) { d.Add(claim("web", rackA)) })
				w.expect(time.Minute, 0, "Reserved On default/web")
				w.commit(change)
				w.expect(3*time.Hour, 0, "Reserved On default/web")
				if m := w.seen(0); m.installs != 1 || m.offs > 1 { // off once: after its discovery
					t.Errorf("it was installed %d times and switched off %d times", m.installs, m.offs)
				}
			})
		})
	}
}

// A Secret that changes is not served with the ticket of before (C11).
func TestAChangedSecretWaitsForReprovision(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		with := func(c *model.ServerClaim) { c.Spec.IgnitionSecretRef = &model.LocalRef{Name: "ign"} }
		w.commit(func(d *model.Desired) { d.Add(fleettest.IgnitionSecret("{}")) })
		w.expect(time.Minute, 0, "Available Off")
		w.commit(func(d *model.Desired) { d.Add(claim("web", with)) })
		w.expect(time.Minute, 0, "Reserved On default/web")
		w.commit(func(d *model.Desired) { d.Add(fleettest.IgnitionSecret(`{"ignition": {"version": "3.4.0"}}`)) })
		w.expect(time.Hour, 0, "Reserved On default/web")
		if m := w.seen(0); m.installs != 1 {
			t.Errorf("installed %d times, want 1", m.installs)
		}
		if d := w.document("serverclaims/default/web.yaml"); !strings.Contains(d, string(model.ReasonPendingReprovision)) {
			t.Errorf("the claim does not say that it is outdated:\n%s", d)
		}
	})
}

// A changed SSH key changes nothing on its server and requests no install: the next one has it.
func TestChangedSSHKeysWaitForTheNextInstall(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		with := func(keys string) func(*model.ServerClaim) {
			return func(c *model.ServerClaim) {
				c.Annotations = map[string]string{model.AnnotationSSHKeys: keys, model.AnnotationReprovision: ""}
			}
		}
		w.expect(time.Minute, 0, "Available Off")
		w.commit(func(d *model.Desired) { d.Add(claim("web", with("ssh-ed25519 AAAA"))) })
		w.expect(time.Minute, 0, "Reserved On default/web")
		const file, says = "serverclaims/default/web.yaml", "SSHKeysChanged"
		if d := w.document(file); strings.Contains(d, says) {
			t.Errorf("keys that are installed count as changed:\n%s", d)
		}
		w.commit(func(d *model.Desired) { d.Add(claim("web", with("ssh-ed25519 BBBB"))) })
		w.expect(time.Hour, 0, "Reserved On default/web")
		if m := w.seen(0); m.installs != 1 {
			t.Errorf("installed %d times, want 1", m.installs)
		}
		if d := w.document(file); !strings.Contains(d, says) || strings.Contains(d, string(model.ReasonPendingReprovision)) {
			t.Errorf("want %s and no install that is waited for:\n%s", says, d)
		}
		w.commit(func(d *model.Desired) {
			d.Add(claim("web", with("ssh-ed25519 BBBB"), func(c *model.ServerClaim) { c.Annotations[model.AnnotationReprovision] = "1" }))
		})
		w.expect(time.Hour, 0, "Reserved On default/web")
		if d := w.document(file); w.seen(0).installs != 2 || strings.Contains(d, says) {
			t.Errorf("installed %d times, want 2:\n%s", w.seen(0).installs, d)
		}
	})
}

// A server that is parked with its claim stands down, whoever switches it on, and says so
// (C15, L02); it may lose its claim meanwhile, and is released once it is back (L03).
func TestAParkedServerStandsDown(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		park := func(d *model.Desired) { d.Add(serverFile(0, operation1(model.OperationPark))) }
		w.commit(park)
		w.expect(10*time.Minute, 0, "Maintenance Off default/web")
		if d := w.document("serverclaims/default/web.yaml"); !strings.Contains(d, "parked") {
			t.Errorf("the claim does not say that its server is parked:\n%s", d)
		}
		w.set(w.machine(0), model.PowerOn)
		w.expect(time.Hour, 0, "Maintenance On default/web")
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		w.expect(time.Hour, 0, "Maintenance On default/web")
		w.commit(func(d *model.Desired) { d.Add(serverFile(0)) })
		w.expect(30*time.Minute, 0, "Available Off")
		if m := w.seen(0); m.disk != "" {
			t.Errorf("its disk holds %q", m.disk)
		}
	})
}

// A server that is to be parked before it is discovered is discovered first (L02).
func TestAServerIsParkedOnceItIsDiscovered(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.commit(func(d *model.Desired) { d.Add(serverFile(0, operation1(model.OperationPark))) })
		w.expect(5*time.Minute, 0, "Maintenance Off")
		if m := w.seen(0); len(m.boots) == 0 {
			t.Error("it was not discovered")
		}
	})
}

// A claim that is switched off writes no boot override (L05).
func TestPowerOffSetsNoBootOverride(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		sets := w.seen(0).sets
		w.commit(func(d *model.Desired) {
			d.Add(claim("web", func(c *model.ServerClaim) { c.Spec.Power = model.PowerOff }))
		})
		w.expect(time.Hour, 0, "Reserved Off default/web")
		if m := w.seen(0); m.sets != sets || m.override {
			t.Errorf("its boot override was set %d times", m.sets-sets)
		}
	})
}

// A wipe that a power cut ends is begun again: nothing is Available without it (L07).
func TestAWipeIsBegunAgainAfterAPowerCut(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		w.change(0, func(m *machine) { m.wipeHangs = true })
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		w.expect(time.Minute, 0, "Cleanup On")
		w.change(0, func(m *machine) { m.power, m.wipeHangs = model.PowerOff, false })
		w.untilState(model.StateAvailable)
		if m := w.seen(0); m.disk != "" {
			t.Errorf("it is Available, and its disk holds %q", m.disk)
		}
	})
}

// While no BMC answers nothing changes its state, and nothing is done to any machine once they
// answer again (L15).
func TestACutNetworkChangesNothing(t *testing.T) {
	live(t, 4, func(t *testing.T, w *loopWorld) {
		w.serve("a", "b", "c")
		cut := func(dead bool) {
			for i := range 4 {
				w.change(i, func(m *machine) { m.dead = dead })
			}
		}
		var before [4]machine
		for i := range before {
			before[i] = w.seen(i)
		}
		states := []string{"Reserved On default/a", "Reserved On default/b", "Reserved On default/c", "Available Off"}
		cut(true)
		pass(3 * time.Hour)
		for i := range states {
			w.expect(0, i, states[i])
		}
		cut(false)
		pass(3 * time.Hour)
		for i := range states {
			w.expect(0, i, states[i])
			if m := w.seen(i); m.ons != before[i].ons || m.offs != before[i].offs || m.installs != before[i].installs {
				t.Errorf("server %d was powered on %d times, off %d times and installed %d times", i,
					m.ons-before[i].ons, m.offs-before[i].offs, m.installs-before[i].installs)
			}
		}
		synctest.Wait()
	})
}

// A reboot that is none of Ingot's, of a firmware update or by a person, installs nothing (L16).
func TestARebootByOthersInstallsNothing(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.serve("web")
		for range 3 {
			w.set(w.machine(0), model.PowerOff)
			pass(20 * time.Second)
			w.boot(w.machine(0))
			w.expect(10*time.Minute, 0, "Reserved On default/web")
		}
		if m := w.seen(0); m.installs != 1 || m.boots[len(m.boots)-1] != "disk "+fleettest.DigestOf("os:1") {
			t.Errorf("installed %d times, booted last from %q", m.installs, m.boots[len(m.boots)-1])
		}
	})
}
