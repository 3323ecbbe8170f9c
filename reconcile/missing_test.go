package reconcile

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
)

// releasedWithout is a server with two disks that has served a claim, of which the
// probe does not see the second any more when they are to be wiped.
func releasedWithout(t *testing.T, test func(t *testing.T, w *loopWorld, b *branch), change ...func(w *loopWorld)) {
	two := func(w *loopWorld) { w.machine(0).disks = []model.ProbeDisk{drive("sda", "S1"), drive("sdb", "S2")} }
	published(t, 1, func(w *loopWorld, b *branch) {
		w.serve("web")
		w.change(0, func(m *machine) { m.disks = m.disks[:1] })
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		test(t, w, b)
	}, append([]func(w *loopWorld){two}, change...)...)
}

// retry asks for the n-th retry of the first server.
func (w *loopWorld) retry(n int) {
	w.commit(func(d *model.Desired) { d.Add(serverFile(0, operation1(fmt.Sprint("retry#", n)))) })
}

// accept accepts disks of the first server.
func (w *loopWorld) accept(value string) {
	w.commit(func(d *model.Desired) {
		d.Add(serverFile(0, func(s *model.Server) { s.Annotations[model.AnnotationDisksAccepted] = value }))
	})
}

// lacks compares the disks that the first server's record says are missing.
func (w *loopWorld) lacks(want ...model.MissingDisk) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.Observed().Servers[w.machine(0).name].Disks.Missing); diff != "" {
		w.t.Errorf("missing disks (-want +got):\n%s", diff)
	}
}

func TestADiskThatIsMissingFromAWipeIsAnErrorUntilAPersonHasLooked(t *testing.T) {
	releasedWithout(t, func(t *testing.T, w *loopWorld, _ *branch) {
		w.expect(time.Hour, 0, "Error Off")
		w.lacks(sdbMissing)
		doc := w.shown("servers/bmc00-system-0.yaml").Status
		what := "disk sdb (serial S2, model M) was there before and is not in the wipe's report"
		if got := conditionOf(doc.Conditions, "Ready"); !strings.HasPrefix(got, "False CleanupFailed: "+what) ||
			!strings.Contains(got, `ingot/disks-accepted: "S2"`) {
			t.Errorf("Ready is %s", got)
		}
		if got := conditionOf(doc.Conditions, "Wiped"); got != "False DiskMissing: "+what {
			t.Errorf("Wiped is %s", got)
		}
		w.retry(1) // wipes again, and finds no more
		w.expect(2*time.Minute, 0, "Error Off")
		w.accept("S2")
		w.expect(2*time.Minute, 0, "Available Off")
		w.lacks(sdbGone)
		doc = w.shown("servers/bmc00-system-0.yaml").Status
		const wiped = "True WipeDone: 1 disk done; accepted without a wipe: sdb (serial S2, model M)"
		if got := conditionOf(doc.Conditions, "Wiped"); got != wiped {
			t.Errorf("Wiped is %s", got)
		}
		if n := w.seen(0).ons; n != 5 {
			t.Errorf("%d power-ons, want 5: for the discovery, the claim and three wipes", n)
		}
	})
}

func TestADiskThatIsThereAgainAfterARetryIsWiped(t *testing.T) {
	releasedWithout(t, func(t *testing.T, w *loopWorld, _ *branch) {
		w.expect(2*time.Minute, 0, "Error Off")
		w.change(0, func(m *machine) { m.disks = append(m.disks[:1:1], drive("sdb", "s2 ")) })
		w.retry(1)
		w.expect(2*time.Minute, 0, "Available Off")
		w.lacks()
		if n := len(w.Observed().Servers[w.machine(0).name].Disks.Wiped); n != 2 {
			t.Errorf("%d disks wiped, want 2", n)
		}
	})
}

func TestADiskThatIsGoneForGoodIsAskedForOnce(t *testing.T) {
	releasedWithout(t, func(t *testing.T, w *loopWorld, _ *branch) {
		w.expect(2*time.Minute, 0, "Error Off")
		w.accept("S2")
		w.expect(2*time.Minute, 0, "Available Off")
		w.serve("db")
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/db") })
		w.expect(2*time.Minute, 0, "Available Off")
		w.lacks(sdbGone)

		w.serve("db")
		w.change(0, func(m *machine) { m.disks = nil })
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/db") })
		w.expect(2*time.Minute, 0, "Error Off")
		w.lacks(model.MissingDisk{Name: "sda", Serial: "S1", Model: "M"}, sdbGone)
		w.accept("S2, S1")
		w.expect(2*time.Minute, 0, "Available Off")
	})
}

func TestADriveThatAMaintenanceReplacedIsNotAskedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		now      []string // the serial numbers of the drives in its bays afterwards
		replaced bool
		then     string // its state once it was released
	}{
		"another drive is where it was":         {[]string{"S1", "S9"}, true, "Available"},
		"another drive is elsewhere":            {[]string{"S1", "", "S9"}, false, "Error"},
		"one that it had is where it was":       {[]string{"S2"}, false, "Error"}, // the BMC counts those that are there
		"it is elsewhere itself":                {[]string{"S1", "S9", "S2"}, false, "Available"},
		"none is where it was":                  {[]string{"S1"}, false, "Error"},
		"nothing is known of what is there now": {[]string{"S1", " "}, false, "Error"},
	} {
		t.Run(name, func(t *testing.T) {
			has := func(serials ...string) func(*machine) {
				return func(m *machine) {
					var all model.Storage
					m.disks = nil
					for i, serial := range serials {
						if serial != "" {
							m.disks = append(m.disks, drive(fmt.Sprint("sd", i), serial))
							all.Drives = append(all.Drives, model.Drive{
								Name: "Drive", SerialNumber: strings.TrimSpace(serial), Model: "M", Bay: fmt.Sprint("/", i), Bytes: 1 << 40,
							})
						}
					}
					m.storages = []model.Storage{all}
				}
			}
			published(t, 1, func(w *loopWorld, _ *branch) {
				w.serve("web")
				w.commit(func(d *model.Desired) { d.Add(fleettest.MaintenanceOf("m", 0)) })
				w.expect(2*time.Minute, 0, "Maintenance Off default/web")
				w.change(0, has(tc.now...))
				w.commit(func(d *model.Desired) { delete(d.Maintenances, "m") })
				w.expect(2*time.Minute, 0, "Reserved On default/web")
				for _, d := range w.Observed().Servers[w.machine(0).name].Disks.Known {
					if is := d.ReplacedBy == "S9"; is != (tc.replaced && d.Serial == "S2") {
						t.Errorf("%+v is replaced: %t", d, is)
					}
				}
				w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
				w.expect(time.Hour, 0, tc.then+" Off")
				for _, m := range w.Observed().Servers[w.machine(0).name].Disks.Missing {
					if tc.replaced && (m.Serial != "S2" || m.ReplacedBy != "S9") {
						t.Errorf("%+v is missing, too", m)
					}
				}
			}, func(w *loopWorld) { w.change(0, has("S1", "S2")) })
		})
	}
}

func TestAWipeThatIsNotHeardOfIsNoMatterOfDisks(t *testing.T) {
	releasedWithout(t, func(t *testing.T, w *loopWorld, _ *branch) {
		w.accept("as-reported")
		w.expect(2*time.Minute, 0, "Error Off") // nobody was told of anything when that was said
		w.accept("S2")
		w.expect(2*time.Minute, 0, "Available Off")
		w.serve("db")
		w.change(0, func(m *machine) { m.wipeHangs = true })
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/db") })
		w.expect(time.Hour, 0, "Error On")
		ons := w.seen(0).ons
		w.accept("as-reported#2")
		pass(8 * time.Hour)
		if n := w.seen(0).ons - ons; n > 0 {
			t.Errorf("it was powered on %d times more, though nobody asked for another wipe", n)
		}
		w.change(0, func(m *machine) { m.wipeHangs = false })
		w.retry(1)
		w.expect(2*time.Minute, 0, "Available Off")
	})
}

// What a BMC showed while the machine was off may be nothing, and volumes are made anew.
func TestAWipeIsJudgedByWhatTheBMCShowsThen(t *testing.T) {
	behind := func(volumes ...model.DiskVolume) []model.Storage {
		return []model.Storage{{Drives: []model.Drive{{Name: "bay 1", SerialNumber: "D1", Bytes: 1 << 40, Volumes: volumes}}}}
	}
	volume := model.DiskVolume{Name: "system", Bytes: 1 << 40}
	tests := map[string]struct {
		first, then []model.Storage
		want        string
	}{
		"a drive that is part of a volume by now":   {behind(), behind(volume), "Available Off"},
		"a drive that is part of a volume no more":  {behind(volume), behind(), "Error Off"},
		"a drive that was not there":                {nil, behind(), "Error Off"},
		"a drive that the BMC does not show by now": {behind(), nil, "Error Off"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			published(t, 1, func(w *loopWorld, _ *branch) {
				w.serve("web")
				w.change(0, func(m *machine) { m.storages = tc.then })
				w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
				w.expect(2*time.Minute, 0, tc.want)
			}, func(w *loopWorld) {
				w.machine(0).disks, w.machine(0).storages = []model.ProbeDisk{drive("sda", "logical")}, tc.first
			})
		})
	}
}

// A spare may hold what its next tenant writes: it is asked for at each release.
func TestADriveThatWasAcceptedIsAskedForAgain(t *testing.T) {
	published(t, 1, func(w *loopWorld, _ *branch) {
		for n, accepts := range []string{"D1", "D1#2"} {
			w.serve(fmt.Sprint("web", n))
			w.commit(func(d *model.Desired) { clear(d.Claims) })
			w.expect(2*time.Minute, 0, "Error Off")
			w.accept(accepts)
			w.expect(2*time.Minute, 0, "Available Off")
		}
	}, func(w *loopWorld) {
		w.machine(0).disks = []model.ProbeDisk{drive("sda", "S1")}
		w.machine(0).storages = []model.Storage{{Drives: []model.Drive{{Name: "bay 1", SerialNumber: "D1", Bytes: 1 << 40}}}}
	})
}

func TestAWipeThatIsNotHeardOfNamesNoDiskToAccept(t *testing.T) {
	releasedWithout(t, func(t *testing.T, w *loopWorld, _ *branch) {
		w.expect(2*time.Minute, 0, "Error Off")
		w.change(0, func(m *machine) { m.wipeHangs = true })
		w.retry(1)
		w.expect(time.Hour, 0, "Error On")
		ons := w.seen(0).ons
		w.accept("as-reported")
		pass(time.Hour)
		if n := w.seen(0).ons - ons; n > 0 {
			t.Errorf("it was powered on %d times more, though its message names no disk", n)
		}
	})
}

func TestAsReportedAcceptsWhatWasToldOfAlone(t *testing.T) {
	releasedWithout(t, func(t *testing.T, w *loopWorld, _ *branch) {
		w.expect(2*time.Minute, 0, "Error Off")
		w.change(0, func(m *machine) { m.disks = nil })
		w.accept("as-reported")
		w.expect(2*time.Minute, 0, "Error Off")
		w.lacks(model.MissingDisk{Name: "sda", Serial: "S1", Model: "M"}, sdbGone)
	})
}

func TestADiskThatCameBackMayNotBeMissingAgain(t *testing.T) {
	releasedWithout(t, func(t *testing.T, w *loopWorld, _ *branch) {
		w.expect(2*time.Minute, 0, "Error Off")
		w.change(0, func(m *machine) { m.disks, m.wipeFail = append(m.disks[:1:1], drive("sdb", "S2")), true })
		w.retry(1)
		w.expect(2*time.Minute, 0, "Error Off") // sda failed
		w.lacks()
		w.change(0, func(m *machine) { m.disks, m.wipeFail = m.disks[:1], false })
		w.retry(2)
		w.expect(2*time.Minute, 0, "Error Off")
		w.lacks(sdbMissing)
	})
}

func TestMissingDisksOutliveALostStore(t *testing.T) {
	releasedWithout(t, func(t *testing.T, w *loopWorld, _ *branch) {
		lose := func() {
			files := w.files()
			w.stop()
			recs, problems := restored(files)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			w.mu.Lock()
			o := model.NewObserved()
			o.Records = recs // the probe's reports are lost
			w.observed = o
			w.mu.Unlock()
			w.start()
		}
		w.expect(2*time.Minute, 0, "Error Off")
		lose()
		w.expect(time.Hour, 0, "Error Off")
		w.lacks(sdbMissing)
		w.accept("S2")
		w.expect(2*time.Minute, 0, "Available Off")
		lose()
		w.expect(10*time.Minute, 0, "Available Off")
		w.lacks(sdbGone)
		w.serve("db")
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/db") })
		w.expect(2*time.Minute, 0, "Available Off")
		w.lacks(sdbGone)
	})
}

func TestCleanupModeNoneMissesNoDisk(t *testing.T) {
	none := func(s *model.Server) { s.Annotations[model.AnnotationCleanup] = model.CleanupNone }
	releasedWithout(t, func(_ *testing.T, w *loopWorld, _ *branch) {
		w.expect(2*time.Minute, 0, "Available Off")
		w.lacks()
	}, func(w *loopWorld) { w.desired.Add(serverFile(0, none)) })
}
