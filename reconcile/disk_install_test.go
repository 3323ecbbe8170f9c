package reconcile

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
)

const diskOS = "disk/debian:13"

// diskClaim is a claim with a disk image.
func diskClaim(change ...func(*model.ServerClaim)) *model.ServerClaim {
	c := claim("web", change...)
	if !strings.HasPrefix(c.Spec.Image, "disk/") {
		c.Spec.Image = diskOS
	}
	return c
}

// claimDisk has a claim ask for a disk image on a free server.
func (w *loopWorld) claimDisk(change ...func(*model.ServerClaim)) {
	w.t.Helper()
	w.expect(2*time.Minute, 0, "Available Off")
	w.commit(func(d *model.Desired) { d.Add(diskClaim(change...)) })
}

func (w *loopWorld) record() *model.ServerRecord { return w.Observed().Servers[w.machine(0).name] }

// installedOnce complains unless the server runs from its disk what was installed so many times.
func (w *loopWorld) installedTimes(n int) {
	w.t.Helper()
	m, rec := w.seen(0), w.record()
	last := ""
	if len(m.boots) > 0 {
		last = m.boots[len(m.boots)-1]
	}
	if m.installs != n || rec.Install.Digest == "" || !rec.Install.Unconfirmed.IsZero() || last != "disk "+m.disk || m.disk == "" {
		w.t.Errorf("installed %d times, on record %q (unconfirmed %v), last boot %q of disk %q: want %d installs that run from disk; %+v",
			m.installs, rec.Install.Digest, rec.Install.Unconfirmed, last, m.disk, n, w.plan().Servers[0].Why)
	}
}

func TestADiskImageIsInstalledAndRunsFromItsDisk(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.preparing = 3
		w.claimDisk()
		pass(12 * time.Second)
		why := w.plan().Servers[0].Why
		if want := "preparing image disk/debian:13: fetching, 30 % of 600 MB; it is not powered on before"; why.Reason != model.ReasonImagePreparing ||
			why.Message != want || why.Actor != "" {
			t.Errorf("it waits for %+v, want %q", why, want)
		}
		if rec, m := w.record(), w.seen(0); rec.Boot.Attempts != 0 || rec.Life.Failures != 0 || rec.Boot.Problem.Failures != 0 || m.ons != 1 {
			t.Errorf("while the image is prepared it has %d attempts, %d failures, and was powered on %d times", rec.Boot.Attempts, rec.Life.Failures, m.ons)
		}
		pass(70 * time.Second)
		why = w.plan().Servers[0].Why
		if want := "installing disk/debian:13: 30 % of 600 MB written to sda (serial S1), 12 MB/s, done at about "; why.Reason != model.ReasonInstalling ||
			!strings.HasPrefix(why.Message, strings.Replace(want, "30", why.Message[len("installing disk/debian:13: "):][:2], 1)) || why.Actor != "" {
			t.Errorf("while it is written it says %+v, want %q", why, want)
		}
		pass(2 * time.Minute)
		w.installedTimes(1)
		if d := w.record().Install.RootDisk; d == nil || d.Serial != "S1" || d.VerifiedAt.IsZero() {
			t.Errorf("root disk on record %+v", d)
		}
		w.set(w.machine(0), model.PowerOff)
		w.expect(3*time.Minute, 0, "Reserved On default/web")
		w.installedTimes(1)
		w.commit(func(d *model.Desired) {
			d.Add(diskClaim(fleettest.Annotated(model.AnnotationReprovision, "2"), func(c *model.ServerClaim) { c.Spec.Image = "disk/debian:14" }))
		})
		pass(5 * time.Minute)
		w.installedTimes(2)
		if to := w.record().Boot.Ticket.Target; to.Previous == nil || to.Previous.Serial != "S1" || to.Overwrite != "" {
			t.Errorf("reprovision may go to %+v, want the same disk and nothing else overwritten", to)
		}
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		w.expect(5*time.Minute, 0, "Available Off")
		if rec := w.record(); rec.Install.RootDisk != nil {
			t.Errorf("after cleanup the root disk is %+v", rec.Install.RootDisk)
		}
		w.commit(func(d *model.Desired) { d.Add(diskClaim()) })
		pass(5 * time.Minute)
		w.installedTimes(3)
		if to := w.record().Boot.Ticket.Target; to.Previous != nil || to.Overwrite != "" {
			t.Errorf("after a wipe, which the probe sees for itself, it may go to %+v", to)
		}
	})
}

func TestAPowerCutInAnInstall(t *testing.T) {
	for _, stage := range model.DiskInstallStages {
		for _, comesOn := range []bool{false, true} {
			t.Run(fmt.Sprint(stage, ", comes on by itself ", comesOn), func(t *testing.T) {
				live(t, 1, func(t *testing.T, w *loopWorld) {
					w.change(0, func(m *machine) { m.cut, m.cuts, m.comesOn, m.netFirst = stage, 1, comesOn, comesOn })
					w.claimDisk()
					pass(12 * time.Minute)
					w.installedTimes(1)
					if m := w.seen(0); m.untaken > 0 || w.record().Boot.Attempts > 0 {
						t.Errorf("%d reports were refused, %d attempts", m.untaken, w.record().Boot.Attempts)
					}
				})
			})
		}
	}
	t.Run("after it was verified, and before that was reported", func(t *testing.T) {
		live(t, 1, func(t *testing.T, w *loopWorld) {
			w.change(0, func(m *machine) { m.unsaid = true })
			w.claimDisk()
			pass(10 * time.Minute)
			w.installedTimes(1)
			if m := w.seen(0); m.writes != 1 {
				t.Errorf("it was written to %d times", m.writes)
			}
		})
	})
	t.Run("again and again", func(t *testing.T) {
		live(t, 1, func(t *testing.T, w *loopWorld) {
			w.change(0, func(m *machine) { m.cut, m.cuts = model.DiskWriting, 1000 })
			w.claimDisk()
			pass(24 * time.Hour)
			m, why := w.seen(0), w.plan().Servers[0].Why
			if m.writes != 9 || m.power != model.PowerOff || why.Reason != model.ReasonInstallFailed {
				t.Errorf("written to %d times, power %s, %+v; want 3 times for each of 3 tickets, and to be left off", m.writes, m.power, why)
			}
		})
	})
}

func TestAnInstallThatFails(t *testing.T) {
	const busy = model.ReasonDiskBusy
	for name, tc := range map[string]struct {
		change func(*machine)
		reason model.Reason
		ons    int // beside discovery
	}{
		"is given up after three attempts": {
			func(m *machine) { m.fails = map[model.DiskInstallStage]model.Reason{model.DiskChosen: busy} }, busy, 3},
		"for a reason that is not known is InstallFailed": {
			func(m *machine) { m.fails = map[model.DiskInstallStage]model.Reason{model.DiskChosen: "Nonsense"} }, model.ReasonInstallFailed, 3},
		"is given up when the probe stops three times": {
			func(m *machine) { m.stalls = model.DiskWriting }, model.ReasonInstallFailed, 3},
		"may fail after something was written": {
			func(m *machine) {
				m.fails = map[model.DiskInstallStage]model.Reason{model.DiskVerified: model.ReasonDiskLies}
			}, model.ReasonDiskLies, 3},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, 1, func(t *testing.T, w *loopWorld) {
				w.change(0, tc.change)
				w.claimDisk()
				pass(time.Hour)
				why, m := w.plan().Servers[0].Why, w.seen(0)
				if why.Reason != tc.reason || m.ons-1 != tc.ons || m.power != model.PowerOff || m.installs != 0 {
					t.Errorf("powered on %d times, power %s, %d installs: %+v; want %d, Off, none, %s", m.ons-1, m.power, m.installs, why, tc.ons, tc.reason)
				}
				pass(24 * time.Hour)
				if now := w.seen(0); now.ons != m.ons {
					t.Errorf("it was powered on again %d times", now.ons-m.ons)
				}
				w.change(0, func(m *machine) { m.fails, m.stalls = nil, "" })
				w.commit(func(d *model.Desired) { d.Add(serverFile(0, operation1("retry#1"))) })
				pass(10 * time.Minute)
				w.installedTimes(1)
			})
		})
	}
}

// What a probe finds to be something else is read again where it is kept before the next attempt.
func TestAnImageThatRottedIsMadeAnew(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.rotten = true
		w.claimDisk()
		pass(time.Hour)
		w.installedTimes(1)
		if m := w.seen(0); m.ons-1 != 3 { // discovery aside: an attempt, another, and its start from the disk
			t.Errorf("it was powered on %d times, want 3", m.ons-1)
		}
	})
}

func TestOverwriteIsAskedForOnce(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.change(0, func(m *machine) {
			m.fails = map[model.DiskInstallStage]model.Reason{model.DiskChosen: model.ReasonRootDeviceNotBlank}
		})
		w.claimDisk()
		pass(time.Hour)
		if why := w.plan().Servers[0].Why; why.Reason != model.ReasonRootDeviceNotBlank || why.Actor != "tenant" {
			t.Fatalf("it waits for %+v", why)
		}
		if to := w.record().Boot.Ticket.Target; to.Overwrite != "" {
			t.Errorf("it may go to %+v", to)
		}
		w.change(0, func(m *machine) { m.fails = nil })
		w.commit(func(d *model.Desired) { d.Add(diskClaim(fleettest.Annotated(model.AnnotationOverwrite, "1"))) })
		pass(10 * time.Minute)
		w.installedTimes(1)
		rec := w.record()
		if to := rec.Boot.Ticket.Target; to.Overwrite != "1" || rec.Requests.HandledOverwrite != "1" {
			t.Errorf("it might go to %+v, and %q is handled", to, rec.Requests.HandledOverwrite)
		}
		w.commit(func(d *model.Desired) {
			d.Add(diskClaim(fleettest.Annotated(model.AnnotationOverwrite, "1"), fleettest.Annotated(model.AnnotationReprovision, "2")))
		})
		pass(10 * time.Minute)
		w.installedTimes(2)
		if to := w.record().Boot.Ticket.Target; to.Overwrite != "" {
			t.Errorf("at the second install it may go to %+v", to)
		}
	})
}

func TestAnInstalledImageThatIsNotHeardOfIsNotInstalledAgain(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.change(0, func(m *machine) { m.noNotice = true })
		w.claimDisk()
		pass(25 * time.Minute)
		if why := w.why(0); why != model.ReasonWaitingForBoot {
			t.Errorf("before its time is over it waits for %s", why)
		}
		pass(20 * time.Minute)
		why := w.plan().Servers[0].Why
		if why.Reason != model.ReasonInstalledNotSeen {
			t.Errorf("it waits for %+v", why)
		}
		for _, says := range []string{"disk sda (serial S1)", "disk reboot", "may lack a driver" /* N17 */, "not be signed for its Secure Boot" /* N54 */} {
			if !strings.Contains(why.Message, says) {
				t.Errorf("%q does not say %q", why.Message, says)
			}
		}
		for range 3 {
			w.set(w.machine(0), model.PowerOff)
			pass(20 * time.Minute)
		}
		if m := w.seen(0); m.writes != 1 || m.power != model.PowerOn || m.boots[len(m.boots)-1] != "disk "+m.disk {
			t.Errorf("written to %d times, power %s, boots %q", m.writes, m.power, m.boots)
		}
	})
}

func TestWhatComesInTheWayOfAnInstall(t *testing.T) {
	begun := func(w *loopWorld) {
		w.claimDisk()
		pass(45 * time.Second)
		if why := w.why(0); why != model.ReasonInstalling {
			w.t.Fatalf("it waits for %s", why)
		}
	}
	power := func(p model.Power) func(d *model.Desired) {
		return func(d *model.Desired) { d.Add(diskClaim(func(c *model.ServerClaim) { c.Spec.Power = p })) }
	}
	for name, do := range map[string]func(w *loopWorld){
		"a restart":                 func(w *loopWorld) { w.stop(); pass(time.Minute); w.start() },
		"a restart that takes long": func(w *loopWorld) { w.stop(); pass(30 * time.Minute); w.start() },
		"a lost store":              func(w *loopWorld) { w.loseStore(w.files()) },
		"a claim that wants it off": func(w *loopWorld) {
			w.commit(power(model.PowerOff))
			w.expect(10*time.Minute, 0, "Reserved Off default/web")
			if t := w.record().Boot.Ticket; t.Open() {
				w.t.Errorf("its ticket is open: %+v", t)
			}
			w.commit(power(model.PowerOn))
		},
		"a maintenance": func(w *loopWorld) {
			w.commit(func(d *model.Desired) { d.Add(fleettest.MaintenanceOf("m", 0)) })
			w.expect(10*time.Minute, 0, "Maintenance Off default/web")
			w.commit(func(d *model.Desired) { delete(d.Maintenances, "m") })
		},
		"another image": func(w *loopWorld) {
			w.commit(func(d *model.Desired) {
				d.Add(diskClaim(func(c *model.ServerClaim) { c.Spec.Image = "disk/other:1" }, fleettest.Annotated(model.AnnotationReprovision, "2")))
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, 1, func(t *testing.T, w *loopWorld) {
				begun(w)
				do(w)
				pass(time.Hour)
				if m := w.seen(0); m.writes > 2 {
					t.Errorf("written to %d times", m.writes)
				}
				w.installedTimes(w.seen(0).installs)
			})
		})
	}
	t.Run("a release", func(t *testing.T) {
		live(t, 1, func(t *testing.T, w *loopWorld) {
			begun(w)
			w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
			w.expect(10*time.Minute, 0, "Available Off")
			if m := w.seen(0); m.disk != "" || m.installs != 0 {
				t.Errorf("its disk holds %q, installed %d times", m.disk, m.installs)
			}
		})
	})
}

// A store and a status branch may both be of while a disk was written: what was reported then says
// nothing of now.
func TestAnOldReportHasNothingWrittenAgain(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.claimDisk()
		pass(45 * time.Second)
		if why := w.why(0); why != model.ReasonInstalling {
			t.Fatalf("it waits for %s", why)
		}
		files, name := w.files(), w.machine(0).name
		old := *w.Observed().Progress[name]
		pass(10 * time.Minute)
		w.installedTimes(1)
		w.loseStore(files)
		w.mu.Lock()
		w.observed.Progress[name] = &old
		delete(w.observed.BootStates, name)
		w.mu.Unlock()
		pass(3 * time.Hour)
		if m := w.seen(0); m.writes != 1 || m.power != model.PowerOn {
			t.Errorf("its disk was written to %d times, and its power is %s: want one time, and On; %+v", m.writes, m.power, w.plan().Servers[0].Why)
		}
	})
}

// A power request whose answer is lost may have had its effect: what was verified before stays so.
func TestALostPowerAnswerHasNothingWrittenAgain(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		w.claimDisk()
		for range 600 {
			if t := w.record().Boot.Ticket; t != nil && !t.IgnitionAt.IsZero() {
				break
			}
			pass(time.Second)
		}
		w.change(0, func(m *machine) { m.mute = true })
		pass(30 * time.Minute)
		if rec := w.record(); rec.Life.State != model.StateError || rec.Life.Reason != model.ReasonPowerOutcomeUnknown {
			t.Fatalf("its record says %s %s (ticket served at %v, writes %d)", rec.Life.State, rec.Life.Reason, rec.Boot.Ticket.IgnitionAt, w.seen(0).writes)
		}
		w.change(0, func(m *machine) { m.mute = false })
		w.set(w.machine(0), model.PowerOn)
		pass(3 * time.Hour)
		if rec, m := w.record(), w.seen(0); m.writes != 1 || m.power != model.PowerOn || rec.Life.State != model.StateReserved {
			t.Errorf("its disk was written to %d times, it is %s and %s: want one time, On and Reserved; %+v", m.writes, m.power, rec.Life.State, w.plan().Servers[0].Why)
		}
	})
}

// What a Server says of the disk counts until it is served, as what its claim says does.
func TestAHintOfTheServerThatChangesIsFollowed(t *testing.T) {
	live(t, 1, func(t *testing.T, w *loopWorld) {
		hint := func(value string) func(d *model.Desired) {
			name := w.machine(0).name
			return func(d *model.Desired) {
				s := &model.Server{}
				s.Name, s.Annotations = string(name), map[string]string{model.AnnotationRootDevice: value}
				d.Servers[name] = s
			}
		}
		w.expect(2*time.Minute, 0, "Available Off")
		w.commit(hint("serial=S2"))
		w.change(0, func(m *machine) { m.dark = true })
		w.commit(func(d *model.Desired) { d.Add(diskClaim()) })
		pass(30 * time.Second)
		first := w.record().Boot.Ticket
		if first == nil || first.Target == nil || len(first.Target.Hints) != 1 || first.Target.Hints[0] != "serial=S2" {
			t.Fatalf("its ticket is %+v", first)
		}
		w.commit(hint("serial=S1"))
		pass(time.Minute)
		if now := w.record().Boot.Ticket; now.ID == first.ID || len(now.Target.Hints) != 1 || now.Target.Hints[0] != "serial=S1" {
			t.Errorf("its ticket is still %+v", now)
		}
	})
}
