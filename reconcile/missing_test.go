package reconcile

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
)

// drive is a disk as a probe sees it.
func drive(name, serial string, change ...func(*model.ProbeDisk)) model.ProbeDisk {
	d := model.ProbeDisk{Name: name, Serial: serial, Model: "M", SizeBytes: 1 << 40}
	for _, f := range change {
		f(&d)
	}
	return d
}

// wipedDisks are disks with these serial numbers in the report of a wipe.
func wipedDisks(serials ...string) []model.DiskWipe {
	var list []model.DiskWipe
	for i, s := range serials {
		list = append(list, model.DiskWipe{Name: fmt.Sprint("disk", i), Serial: s, Result: model.WipeDone})
	}
	return list
}

func TestWhichDisksAreMissingFromAWipe(t *testing.T) {
	removable := func(d *model.ProbeDisk) { d.Removable = true }
	empty := func(d *model.ProbeDisk) { d.SizeBytes = 0 }
	many := make([]model.ProbeDisk, 2*maxMissing)
	for i := range many {
		many[i] = drive("sd", fmt.Sprint("S", i))
	}
	longSerial := strings.Repeat("é", maxText)
	noSerial := model.MissingDisk{Name: "sdb", Model: "M"}
	tests := map[string]struct {
		inventory []model.ProbeDisk
		reported  []model.DiskWipe
		known     []model.MissingDisk
		want      []model.MissingDisk
	}{
		"none, when all were seen": {inventory: []model.ProbeDisk{drive("sda", "S1"), drive("sdb", "S2")}, reported: wipedDisks("S2", "S1")},
		"one that was not seen": {
			inventory: []model.ProbeDisk{drive("sda", "S1"), drive("sdb", "S2")}, reported: wipedDisks("S1"),
			want: []model.MissingDisk{{Name: "sdb", Serial: "S2", Model: "M"}},
		},
		"all, when the report has none": {
			inventory: []model.ProbeDisk{drive("sda", "S1"), drive("sdb", "")},
			want:      []model.MissingDisk{{Name: "sda", Serial: "S1", Model: "M"}, noSerial},
		},
		"one that was not wiped was seen all the same": {
			inventory: []model.ProbeDisk{drive("sda", "S1"), drive("sdb", "S2")},
			reported:  []model.DiskWipe{{Serial: "S1", Result: model.WipeFailed}, {Serial: "S2", Result: model.WipeSkipped}},
		},
		"blanks and case make no difference":            {inventory: []model.ProbeDisk{drive("sda", " s1a ")}, reported: wipedDisks("S1A  ")},
		"one without serial number is not told apart":   {inventory: []model.ProbeDisk{drive("sda", "S1"), drive("sdb", " ")}, reported: wipedDisks("S1")},
		"nothing is known of what there was":            {reported: wipedDisks("S1")},
		"neither a disk was there nor is one":           {},
		"a removable medium does not count":             {inventory: []model.ProbeDisk{drive("sda", "S1", removable), drive("sdb", "", removable)}},
		"a drive without size does not count":           {inventory: []model.ProbeDisk{drive("sda", "S1", empty), drive("sdb", "", empty)}},
		"a disk that was not there before is no matter": {inventory: []model.ProbeDisk{drive("sda", "S1")}, reported: wipedDisks("S1", "S9")},
		"a disk with two paths is one": {
			inventory: []model.ProbeDisk{drive("sda", "S1"), drive("sdb", "s1 ")},
			want:      []model.MissingDisk{{Name: "sda", Serial: "S1", Model: "M"}},
		},
		"one that is gone for good stays gone": {
			inventory: []model.ProbeDisk{drive("sda", "S1"), drive("sdb", " S2")}, reported: wipedDisks("S1"),
			known: []model.MissingDisk{{Name: "x", Serial: "s2", Gone: true}},
			want:  []model.MissingDisk{{Name: "sdb", Serial: "S2", Model: "M", Gone: true}},
		},
		"one of which nobody was told is not gone": {
			inventory: []model.ProbeDisk{drive("sdb", "S2"), drive("sdc", "S3")}, reported: wipedDisks("S1"),
			known: []model.MissingDisk{{Name: "sdb", Serial: "S2", Gone: true}, {Name: "sdc", Serial: "S3"}},
			want:  []model.MissingDisk{{Name: "sdb", Serial: "S2", Model: "M", Gone: true}, {Name: "sdc", Serial: "S3", Model: "M"}},
		},
		"one that is there again is no longer gone": {
			inventory: []model.ProbeDisk{drive("sdb", "S2")}, reported: wipedDisks("S2"),
			known: []model.MissingDisk{{Name: "sdb", Serial: "S2", Gone: true}},
		},
		"without serial number it goes by the name": {
			inventory: []model.ProbeDisk{drive("sda", ""), drive("sdb", "")},
			known:     []model.MissingDisk{{Name: "sdb", Gone: true}},
			want:      []model.MissingDisk{{Name: "sda", Model: "M"}, {Name: "sdb", Model: "M", Gone: true}},
		},
		"what a probe says is bounded": {
			inventory: []model.ProbeDisk{drive("sda"+strings.Repeat("x", 200), "S"+longSerial)}, reported: wipedDisks("S1"),
			want: []model.MissingDisk{{Name: "sda" + strings.Repeat("x", maxText-3), Serial: "S" + strings.Repeat("é", maxText/2-1), Model: "M"}},
		},
		"so is how many": {inventory: many, want: func() (list []model.MissingDisk) {
			for i := range maxMissing {
				list = append(list, model.MissingDisk{Name: "sd", Serial: fmt.Sprint("S", i), Model: "M"})
			}
			return list
		}()},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := model.NewObserved()
			o.Probes["s1"] = &model.ProbeReport{Data: model.ProbeData{Storage: tc.inventory}}
			s := &server{fleet: &fleet{in: &Input{Observed: o}}, name: "s1", rec: &model.ServerRecord{Missing: tc.known}}
			if diff := cmp.Diff(tc.want, s.missing(tc.reported)); diff != "" {
				t.Errorf("missing disks (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("a probe's report that was lost has nothing compared", func(t *testing.T) {
		s := &server{fleet: &fleet{in: &Input{Observed: model.NewObserved()}}, name: "s1", rec: &model.ServerRecord{}}
		if got := s.missing(nil); got != nil {
			t.Errorf("got %+v, want none", got)
		}
	})
}

func TestAWipeThatFailsSaysWhatToDo(t *testing.T) {
	failed := []model.DiskWipe{{Name: "sda", Serial: "S1", Result: model.WipeFailed, Error: "I/O error"}}
	missing := func(n int) (list []model.MissingDisk) {
		for i := range n {
			list = append(list, model.MissingDisk{Name: fmt.Sprint("sd", i), Serial: fmt.Sprint("S", i), Model: "M"})
		}
		return list
	}
	const ask = "set annotation metal.ironcore.dev/operation: retry#1 on Server s1"
	tests := map[string]struct {
		disks   []model.DiskWipe
		missing []model.MissingDisk
		handled string
		want    string
	}{
		"nothing is wrong": {disks: wipedDisks("S1")},
		"a disk failed":    {disks: failed, want: "wipe failed on sda (serial S1): I/O error; mend it and " + ask},
		"a disk is missing": {
			missing: missing(1),
			want: "disk sd0 (serial S0, model M) was there when the server was discovered and is not in the wipe's report: " +
				"look whether it is seated and its controller works; once it is there again, or if it was taken out for good, " + ask,
		},
		"one of which little is known": {
			missing: []model.MissingDisk{{Name: "sda"}, {Name: "sdb", Model: "M"}, {Name: "sdc", Serial: "S3"}},
			want: "disks sda (no serial number), sdb (no serial number, model M), sdc (serial S3) were there when the server was discovered and are not in the wipe's report: " +
				"look whether they are seated and their controller works; once they are there again, or if they were taken out for good, " + ask,
		},
		"more than anybody reads": {
			missing: missing(maxNamed + 2),
			want:    disksText(missing(maxNamed)) + ", and 2 more",
		},
		"one failed and one is missing": {
			disks: failed, missing: missing(1),
			want: "wipe failed on sda (serial S1): I/O error; mend it. disk sd0 (serial S0, model M) was there when the server was discovered and is not in the wipe's report: " +
				"look whether it is seated and its controller works; once it is there again, or if it was taken out for good, " + ask,
		},
		"a retry was asked for before": {disks: failed, handled: "retry#1", want: "retry#2 on Server s1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := &server{name: "s1", rec: &model.ServerRecord{HandledOperation: tc.handled}}
			got := s.wipeFailure(tc.disks, tc.missing)
			if !strings.Contains(got, tc.want) || tc.want == "" && got != "" {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestTheConditionWipedSaysWhatBecameOfEachDisk(t *testing.T) {
	failed := []model.DiskWipe{{Name: "sda", Serial: "S1", Result: model.WipeFailed, Error: "I/O error"}}
	lacks := missingText([]model.MissingDisk{sdbMissing})
	tests := map[string]struct {
		wiped   []model.DiskWipe
		missing []model.MissingDisk
		want    string
	}{
		"no wipe yet":             {want: ""},
		"all done":                {wipedDisks("S1", "S2"), nil, "True WipeDone: 2 disks done"},
		"one failed":              {failed, nil, "False WipeFailed: sda (serial S1): I/O error"},
		"one is missing":          {wipedDisks("S1"), []model.MissingDisk{sdbMissing}, "False DiskMissing: " + lacks},
		"none was seen":           {nil, []model.MissingDisk{sdbMissing}, "False DiskMissing: " + lacks},
		"one failed, one missing": {failed, []model.MissingDisk{sdbMissing}, "False WipeFailed: sda (serial S1): I/O error; " + lacks},
		"one is gone for good":    {wipedDisks("S1"), []model.MissingDisk{sdbGone}, "True WipeDone: 1 disk done; taken to be gone for good: sdb (serial S2, model M)"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := &server{rec: &model.ServerRecord{Wiped: tc.wiped, Missing: tc.missing}}
			got := ""
			if c, wiped := s.wipedCondition(); wiped {
				got = fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// releasedWithout is a server with two disks that has served a claim, of which the
// probe does not see the second any more when they are to be wiped.
func releasedWithout(t *testing.T, test func(t *testing.T, w *world, b *branch), change ...func(w *world)) {
	two := func(w *world) { w.machine(0).disks = []model.ProbeDisk{drive("sda", "S1"), drive("sdb", "S2")} }
	published(t, 1, func(w *world, b *branch) {
		w.serve("web")
		w.change(0, func(m *machine) { m.disks = m.disks[:1] })
		w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
		test(t, w, b)
	}, append([]func(w *world){two}, change...)...)
}

// retry asks for the n-th retry of the first server.
func (w *world) retry(n int) {
	w.commit(func(d *model.Desired) { d.Add(serverFile(0, operation1(fmt.Sprint("retry#", n)))) })
}

// lacks compares the disks that the first server's record says are missing.
func (w *world) lacks(want ...model.MissingDisk) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.Observed().Servers[w.machine(0).name].Missing); diff != "" {
		w.t.Errorf("missing disks (-want +got):\n%s", diff)
	}
}

var (
	sdbMissing = model.MissingDisk{Name: "sdb", Serial: "S2", Model: "M"}
	sdbGone    = model.MissingDisk{Name: "sdb", Serial: "S2", Model: "M", Gone: true}
)

func TestADiskThatIsMissingFromAWipeIsAnErrorUntilAPersonHasLooked(t *testing.T) {
	releasedWithout(t, func(t *testing.T, w *world, _ *branch) {
		w.expect(time.Hour, 0, "Error Off")
		w.lacks(sdbMissing)
		doc := w.shown("servers/bmc00-system-0.yaml").Status
		what := "disk sdb (serial S2, model M) was there when the server was discovered and is not in the wipe's report"
		if got := conditionOf(doc.Conditions, "Ready"); !strings.HasPrefix(got, "False CleanupFailed: "+what) || !strings.Contains(got, "retry#1") {
			t.Errorf("Ready is %s", got)
		}
		if got := conditionOf(doc.Conditions, "Wiped"); got != "False DiskMissing: "+what {
			t.Errorf("Wiped is %s", got)
		}
		w.retry(1)
		w.expect(2*time.Minute, 0, "Available Off")
		w.lacks(sdbGone)
		doc = w.shown("servers/bmc00-system-0.yaml").Status
		if got := conditionOf(doc.Conditions, "Wiped"); got != "True WipeDone: 1 disk done; taken to be gone for good: sdb (serial S2, model M)" {
			t.Errorf("Wiped is %s", got)
		}
		if n := w.seen(0).ons; n != 4 {
			t.Errorf("%d power-ons, want 4: for the discovery, the claim and two wipes", n)
		}
	})
}

func TestADiskThatIsThereAgainAfterARetryIsWiped(t *testing.T) {
	releasedWithout(t, func(t *testing.T, w *world, _ *branch) {
		w.expect(2*time.Minute, 0, "Error Off")
		w.change(0, func(m *machine) { m.disks = append(m.disks[:1:1], drive("sdb", "s2 ")) })
		w.retry(1)
		w.expect(2*time.Minute, 0, "Available Off")
		w.lacks()
		if n := len(w.Observed().Servers[w.machine(0).name].Wiped); n != 2 {
			t.Errorf("%d disks wiped, want 2", n)
		}
	})
}

func TestADiskThatIsGoneForGoodIsAskedForOnce(t *testing.T) {
	releasedWithout(t, func(t *testing.T, w *world, _ *branch) {
		w.expect(2*time.Minute, 0, "Error Off")
		w.retry(1)
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
		w.retry(2)
		w.expect(2*time.Minute, 0, "Available Off")
	})
}

func TestADiskThatCameBackMayNotBeMissingAgain(t *testing.T) {
	releasedWithout(t, func(t *testing.T, w *world, _ *branch) {
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
	releasedWithout(t, func(t *testing.T, w *world, _ *branch) {
		lose := func() {
			files := rendered(t, NewProjector().Report(w.loop.Input(time.Now()), 1, model.Holder{}))
			w.stop()
			recs, problems := restored(files)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			w.mu.Lock()
			o := model.NewObserved()
			o.Records, o.Probes = recs, w.observed.Probes
			w.observed = o
			w.mu.Unlock()
			w.start()
		}
		w.expect(2*time.Minute, 0, "Error Off")
		lose()
		w.expect(time.Hour, 0, "Error Off")
		w.lacks(sdbMissing)
		w.retry(1)
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
	releasedWithout(t, func(_ *testing.T, w *world, _ *branch) {
		w.expect(2*time.Minute, 0, "Available Off")
		w.lacks()
	}, func(w *world) { w.desired.Add(serverFile(0, none)) })
}
