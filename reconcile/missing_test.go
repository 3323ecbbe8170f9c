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
		list = append(list, model.DiskWipe{Name: fmt.Sprint("disk", i), Serial: s, SizeBytes: 1 << 40, Result: model.WipeDone})
	}
	return list
}

func TestWhichDisksAWipeDoesNotAccountFor(t *testing.T) {
	removable := func(d *model.ProbeDisk) { d.Removable = true }
	empty := func(d *model.ProbeDisk) { d.SizeBytes = 0 }
	lent := func(d *model.ProbeDisk) { d.Vendor, d.Model = "AMI", "Virtual Floppy0" }
	wide := func(wwid string) func(d *model.ProbeDisk) {
		return func(d *model.ProbeDisk) { d.WWID = wwid }
	}
	shown := func(name, serial string, change ...func(*model.Drive)) model.Drive {
		d := model.Drive{Name: name, SerialNumber: serial, Model: "M", Bytes: 1 << 40}
		for _, f := range change {
			f(&d)
		}
		return d
	}
	in := func(volumes ...model.DiskVolume) func(*model.Drive) {
		return func(d *model.Drive) { d.Volumes = volumes }
	}
	volume := func(id string, bytes uint64) model.DiskVolume {
		v := model.DiskVolume{Name: "system", Bytes: bytes}
		if id != "" {
			v.IDs = []string{id}
		}
		return v
	}
	reportedAs := func(result, reason string, w model.DiskWipe) []model.DiskWipe {
		w.Result, w.Reason = result, reason
		return []model.DiskWipe{w}
	}
	const id = "600508b1001c123456789abcdef01234"
	many := make([]model.ProbeDisk, 2*maxDisks)
	for i := range many {
		many[i] = drive("sd", fmt.Sprint("S", i))
	}
	longSerial := strings.Repeat("é", maxText)
	sda := model.MissingDisk{Name: "sda", Serial: "S1", Model: "M"}
	bay := model.MissingDisk{Name: "bay 1", Serial: "D1", Model: "M", FromBMC: true}
	sdb := model.MissingDisk{Name: "sdb", Serial: "S2", Model: "M"}
	notWiped := func(m model.MissingDisk) model.MissingDisk { m.NotWiped = true; return m }
	gone := func(m model.MissingDisk) model.MissingDisk { m.Gone = true; return m }
	replaced := func(d model.Disk) model.Disk { d.ReplacedBy = "S9"; return d }
	replacedBy := func(m model.MissingDisk) model.MissingDisk { m.ReplacedBy = "S9"; return m }
	tests := map[string]struct {
		recorded  []model.Disk
		inventory []model.ProbeDisk
		drives    []model.Drive
		twin      []model.Drive // of another storage subsystem
		reported  []model.DiskWipe
		known     []model.MissingDisk
		accepts   string
		handled   string
		want      []model.MissingDisk
	}{
		"none, when all were wiped": {inventory: []model.ProbeDisk{drive("sda", "S1"), drive("sdb", "S2")}, reported: wipedDisks("S2", "S1")},
		"one that was not seen": {
			inventory: []model.ProbeDisk{drive("sda", "S1"), drive("sdb", "S2")}, reported: wipedDisks("S1"), want: []model.MissingDisk{sdb},
		},
		"all, when the report has none": {
			inventory: []model.ProbeDisk{drive("sda", "S1"), drive("sdb", "")},
			want:      []model.MissingDisk{sda, {Name: "sdb", Model: "M"}},
		},
		"one that only the record knows, for the store was lost": {
			recorded: []model.Disk{disk("sda", "S1", "M", 1<<40), disk("sdb", "S2", "M", 1<<40)}, reported: wipedDisks("S1"), want: []model.MissingDisk{sdb},
		},
		"one that only the BMC shows": {
			inventory: []model.ProbeDisk{drive("sda", "S1")}, drives: []model.Drive{shown("bay 0", "S1"), shown("bay 1", "D1")}, reported: wipedDisks("S1"),
			want: []model.MissingDisk{bay},
		},
		"one that probe and BMC know is named once": {
			inventory: []model.ProbeDisk{drive("sda", "S1")}, drives: []model.Drive{shown("bay 0", "s-1")}, want: []model.MissingDisk{sda},
		},
		"one that failed is told of elsewhere": {
			inventory: []model.ProbeDisk{drive("sda", "S1")}, reported: reportedAs(model.WipeFailed, "", wipedDisks("S1")[0]),
		},
		"one that was skipped for no reason": {
			inventory: []model.ProbeDisk{drive("sda", "S1")}, reported: reportedAs(model.WipeSkipped, "", wipedDisks("S1")[0]),
			want: []model.MissingDisk{{Name: "disk0", Serial: "S1", NotWiped: true}},
		},
		"one that was skipped for a reason that is none": {
			reported: reportedAs(model.WipeSkipped, "Tired", wipedDisks("S1")[0]), want: []model.MissingDisk{{Name: "disk0", Serial: "S1", NotWiped: true}},
		},
		"not one on a storage network":     {inventory: []model.ProbeDisk{drive("sda", "S1")}, reported: reportedAs(model.WipeSkipped, model.SkipRemote, wipedDisks("S1")[0])},
		"nor one that is no longer there":  {inventory: []model.ProbeDisk{drive("sda", "S1", func(d *model.ProbeDisk) { d.Remote = true })}},
		"not a medium that the BMC lends":  {inventory: []model.ProbeDisk{drive("sda", "S1", lent)}, reported: reportedAs(model.WipeSkipped, model.SkipVirtualMedia, wipedDisks("S1")[0])},
		"not a drive whose medium is gone": {inventory: []model.ProbeDisk{drive("sda", "S1", removable)}, reported: reportedAs(model.WipeSkipped, model.SkipNoMedium, model.DiskWipe{Name: "sda", Serial: "S1"})},
		"one of which a part is hidden": {
			inventory: []model.ProbeDisk{drive("sda", "S1")}, reported: reportedAs(model.WipeDone, "", model.DiskWipe{Name: "sda", Serial: "S1", SizeBytes: 1 << 39}),
			want: []model.MissingDisk{notWiped(sda)},
		},
		"blanks and case make no difference": {inventory: []model.ProbeDisk{drive("sda", " s1a ")}, reported: wipedDisks("S1A  ")},
		"a world-wide name tells a disk, whatever its serial number is called": {
			inventory: []model.ProbeDisk{drive("sda", "S1", wide("eui.0025385b71b00001"))},
			reported:  reportedAs(model.WipeDone, "", model.DiskWipe{Name: "nvme0n1", Serial: "other", WWID: "eui.0025385b71b00001", SizeBytes: 1 << 40}),
		},
		"a drive whose volumes were all wiped": {
			drives:   []model.Drive{shown("bay 1", "D1", in(volume(id, 1<<40))), shown("bay 2", "D2", in(volume(id, 1<<40)))},
			reported: reportedAs(model.WipeDone, "", model.DiskWipe{Name: "sda", Serial: "volume", WWID: "naa." + id, SizeBytes: 1 << 40}),
		},
		"a drive of which one volume was not": {
			drives:   []model.Drive{shown("bay 1", "D1", in(volume(id, 1<<40), volume("600508b1001c123456789abcdef09999", 1<<40)))},
			reported: reportedAs(model.WipeDone, "", model.DiskWipe{Name: "sda", WWID: "naa." + id, SizeBytes: 1 << 40}),
			want:     []model.MissingDisk{bay},
		},
		"a drive that two subsystems list, of which a volume of one was not wiped": {
			drives:   []model.Drive{shown("bay 1", "D1", in(volume("600508b1001c123456789abcdef09999", 1<<40)))},
			twin:     []model.Drive{shown("bay 1", "D1", in(volume(id, 1<<40)))},
			reported: reportedAs(model.WipeDone, "", model.DiskWipe{Name: "sda", WWID: "naa." + id, SizeBytes: 1 << 40}),
			want:     []model.MissingDisk{bay},
		},
		"one that a ServerMaintenance replaced": {
			recorded: []model.Disk{replaced(disk("sda", "S1", "M", 1<<40))}, reported: wipedDisks("S9"), want: []model.MissingDisk{replacedBy(gone(sda))},
		},
		"not one that is back all the same": {
			recorded: []model.Disk{replaced(disk("sda", "S1", "M", 1<<40))}, reported: reportedAs(model.WipeSkipped, "", wipedDisks("S1")[0]),
			want: []model.MissingDisk{{Name: "disk0", Serial: "S1", NotWiped: true}},
		},
		"nor one that the BMC shows again": {
			recorded: []model.Disk{{Name: "bay 1", Serial: "D1", Model: "M", FromBMC: true, ReplacedBy: "S9"}}, drives: []model.Drive{shown("bay 1", "D1")},
			known: []model.MissingDisk{replacedBy(gone(bay))}, want: []model.MissingDisk{bay},
		},
		"a drive whose volume has only a size": {drives: []model.Drive{shown("bay 1", "D1", in(volume("", 1<<40)))}, reported: wipedDisks("volume")},
		"a drive whose volume has another size": {
			drives: []model.Drive{shown("bay 1", "D1", in(volume("", 1<<42)))}, reported: wipedDisks("volume"), want: []model.MissingDisk{bay},
		},
		"a larger disk is not the volume": {
			drives: []model.Drive{shown("bay 1", "D1", in(volume("", 1<<39)))}, reported: wipedDisks("other"), want: []model.MissingDisk{bay},
		},
		"another drive of that size is no volume": {
			drives: []model.Drive{shown("bay 0", "S1"), shown("bay 1", "D1", in(volume("", 1<<40)))}, reported: wipedDisks("S1"), want: []model.MissingDisk{bay},
		},
		"a spare": {
			drives:   []model.Drive{shown("bay 0", "D0", in(volume(id, 1<<40))), shown("bay 1", "D1")},
			reported: reportedAs(model.WipeDone, "", model.DiskWipe{Name: "sda", WWID: "naa." + id, SizeBytes: 1 << 40}),
			want:     []model.MissingDisk{bay},
		},
		"one without serial number goes by its size": {inventory: []model.ProbeDisk{drive("sda", "S1"), drive("sdb", " ")}, reported: wipedDisks("S1", "")},
		"and each of them is one": {
			inventory: []model.ProbeDisk{drive("sda", ""), drive("sdb", " ")}, reported: wipedDisks(""), want: []model.MissingDisk{{Name: "sdb", Model: "M"}},
		},
		"and is none that has a name": {
			inventory: []model.ProbeDisk{drive("sda", "S1"), drive("sdb", "")}, reported: wipedDisks("S1"), want: []model.MissingDisk{{Name: "sdb", Model: "M"}},
		},
		"a drive of which the BMC tells a size only is one that the system saw": {
			inventory: []model.ProbeDisk{drive("sda", "S1")}, drives: []model.Drive{shown("bay 1", "")}, reported: wipedDisks("S1"),
		},
		"nothing is known of what there was":            {reported: wipedDisks("S1")},
		"neither a disk was there nor is one":           {},
		"a removable medium counts":                     {inventory: []model.ProbeDisk{drive("sda", "S1", removable)}, want: []model.MissingDisk{sda}},
		"a drive without a medium does not":             {inventory: []model.ProbeDisk{drive("sda", "S1", removable, empty), drive("sdb", "", removable, empty)}},
		"nor does a medium that the BMC lent":           {inventory: []model.ProbeDisk{drive("sda", "S1", lent)}},
		"nor a drive of which the BMC knows nothing":    {drives: []model.Drive{{Name: "bay 7"}}},
		"a disk that was not there before is no matter": {inventory: []model.ProbeDisk{drive("sda", "S1")}, reported: wipedDisks("S1", "S9")},
		"a disk with two paths is one": {
			inventory: []model.ProbeDisk{drive("sda", "S1"), drive("sdb", "s1 ")}, want: []model.MissingDisk{sda},
		},
		"one that was accepted stays so": {
			inventory: []model.ProbeDisk{drive("sda", "S1"), drive("sdb", " S2")}, reported: wipedDisks("S1"),
			known: []model.MissingDisk{{Name: "x", Serial: "s2", Gone: true}}, want: []model.MissingDisk{gone(sdb)},
		},
		"one that was not accepted does not": {
			inventory: []model.ProbeDisk{drive("sdb", "S2")}, reported: wipedDisks("S1"),
			known: []model.MissingDisk{{Name: "sdb", Serial: "S2"}}, want: []model.MissingDisk{sdb},
		},
		"one that is there again is no longer accepted": {
			inventory: []model.ProbeDisk{drive("sdb", "S2")}, reported: wipedDisks("S2"), known: []model.MissingDisk{{Name: "sdb", Serial: "S2", Gone: true}},
		},
		"accepted by serial number": {
			inventory: []model.ProbeDisk{drive("sda", "S1"), drive("sdb", "S2")}, accepts: "S9, s2", want: []model.MissingDisk{sda, gone(sdb)},
		},
		"accepted by name where there is no serial number": {
			inventory: []model.ProbeDisk{drive("sda", "S1"), drive("sdb", "")}, accepts: "sda,sdb",
			want: []model.MissingDisk{sda, {Name: "sdb", Model: "M", Gone: true}},
		},
		"a blank accepts nothing":               {inventory: []model.ProbeDisk{drive("sdb", "")}, accepts: " , ", want: []model.MissingDisk{{Name: "sdb", Model: "M"}}},
		"a serial number is accepted once":      {inventory: []model.ProbeDisk{drive("sda", "S1")}, accepts: "S1", handled: "S1", want: []model.MissingDisk{sda}},
		"and again by a suffix":                 {inventory: []model.ProbeDisk{drive("sda", "S1")}, accepts: "S1#2", handled: "S1", want: []model.MissingDisk{gone(sda)}},
		"as reported is for what was told of":   {inventory: []model.ProbeDisk{drive("sda", "S1")}, accepts: "as-reported", want: []model.MissingDisk{sda}},
		"that it has none is for what was told": {inventory: []model.ProbeDisk{drive("sda", "S1")}, accepts: "none", want: []model.MissingDisk{sda}},
		"two disks of an NVMe disk are that disk": {
			drives: []model.Drive{shown("bay 0", "S1")},
			reported: []model.DiskWipe{
				{Name: "nvme0n1", Serial: "S1", WWID: "eui.0025385b71b00001", SizeBytes: 1 << 39, Result: model.WipeDone},
				{Name: "nvme0n2", Serial: "S1", WWID: "eui.0025385b71b00002", SizeBytes: 1 << 39, Result: model.WipeDone},
			},
		},
		"two paths to a half are a half": {
			drives: []model.Drive{shown("bay 0", "S1")},
			reported: []model.DiskWipe{
				{Name: "sda", Serial: "S1", WWID: "eui.0025385b71b00001", SizeBytes: 1 << 39, Result: model.WipeDone},
				{Name: "sdb", Serial: "S1", WWID: "eui.0025385b71b00001", SizeBytes: 1 << 39, Result: model.WipeDone},
			},
			want: []model.MissingDisk{{Name: "bay 0", Serial: "S1", Model: "M", FromBMC: true, NotWiped: true}},
		},
		"one wiped disk is one volume": {
			drives:   []model.Drive{shown("bay 0", "D0", in(model.DiskVolume{Name: "a", Bytes: 1 << 40})), shown("bay 1", "D1", in(model.DiskVolume{Name: "b", Bytes: 1 << 40}))},
			reported: wipedDisks("volume"), want: []model.MissingDisk{bay},
		},
		"a drive without a name of its own goes by its volumes, too": {
			drives: []model.Drive{shown("bay 1", "", in(volume(id, 1<<40)))}, reported: reportedAs(model.WipeDone, "", model.DiskWipe{Name: "sda", Serial: "x", WWID: "naa." + id, SizeBytes: 1 << 40}),
		},
		"a medium that was lent to a probe of before": {
			reported: reportedAs(model.WipeSkipped, "", model.DiskWipe{Name: "sdb", Model: "Virtual Floppy0", SizeBytes: 1 << 20}),
		},
		"what a probe says is bounded": {
			inventory: []model.ProbeDisk{drive("sda"+strings.Repeat("x", 200), "S"+longSerial)}, reported: wipedDisks("S1"),
			want: []model.MissingDisk{{Name: "sda" + strings.Repeat("x", maxText-3), Serial: "S" + strings.Repeat("é", maxText/2-1), Model: "M"}},
		},
		"so is how many": {inventory: many, want: func() (list []model.MissingDisk) {
			for i := range maxDisks {
				list = append(list, model.MissingDisk{Name: "sd", Serial: fmt.Sprint("S", i), Model: "M"})
			}
			return list
		}()},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := model.NewObserved()
			o.Probes["s1"] = &model.ProbeReport{Data: model.ProbeData{Storage: tc.inventory}}
			s := &server{
				fleet: &fleet{in: &Input{Observed: o}}, name: "s1",
				rec:   &model.ServerRecord{Disks: tc.recorded, Missing: tc.known, HandledDisks: tc.handled},
				facts: &model.ServerFacts{Inventory: &model.Inventory{Storages: []model.Storage{{Drives: tc.drives}, {Drives: tc.twin}}}},
				spec:  &model.Server{},
			}
			s.spec.Annotations = map[string]string{model.AnnotationDisksAccepted: tc.accepts}
			if diff := cmp.Diff(tc.want, s.missing(tc.reported)); diff != "" {
				t.Errorf("missing disks (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAWipeThatFailsSaysWhatToDo(t *testing.T) {
	failed := []model.DiskWipe{{Name: "sda", Serial: "S1", Result: model.WipeFailed, Error: "I/O error"}}
	missing := func(n int) (list []model.MissingDisk) {
		for i := range n {
			list = append(list, model.MissingDisk{Name: fmt.Sprint("sd", i), Serial: fmt.Sprint("S", i), Model: "M"})
		}
		return list
	}
	const (
		retry  = "annotation metal.ironcore.dev/operation: retry#1 on Server s1 has it wiped again"
		accept = "annotation ingot/disks-accepted: %q on Server s1 accepts that, and has it wiped again"
	)
	tests := map[string]struct {
		disks   []model.DiskWipe
		missing []model.MissingDisk
		rec     model.ServerRecord
		accepts string
		want    string
	}{
		"nothing is wrong": {disks: wipedDisks("S1"), rec: model.ServerRecord{DisksAt: time.Unix(1, 0)}},
		"a disk failed":    {disks: failed, rec: model.ServerRecord{DisksAt: time.Unix(1, 0)}, want: "wipe failed on sda (serial S1): I/O error: mend that; " + retry},
		"a disk is missing": {
			missing: missing(1),
			want:    "disk sd0 (serial S0, model M) was there before and is not in the wipe's report: look for it; " + retry + "; " + fmt.Sprintf(accept, "S0"),
		},
		"disks of which little is known": {
			missing: []model.MissingDisk{{Name: "sda"}, {Name: "sdb", Model: "M"}, {Name: "sdc", Serial: "S3"}},
			want: "disks sda (no serial number), sdb (no serial number, model M), sdc (serial S3) were there before and are not in the wipe's report: look for it; " +
				retry + "; " + fmt.Sprintf(accept, "sda, sdb, S3"),
		},
		"one of each kind": {
			missing: []model.MissingDisk{{Name: "sda", Serial: "S1"}, {Name: "bay 2", Serial: "D2", FromBMC: true}, {Name: "sdc", Serial: "S3", NotWiped: true}},
			want: "disk sdc (serial S3) was seen by the wipe and not wiped, or not wholly; disk bay 2 (serial D2) is shown by the BMC and is not in the wipe's report, " +
				"nor are all volumes that it is part of; disk sda (serial S1) was there before and is not in the wipe's report: look for it; " +
				retry + "; " + fmt.Sprintf(accept, "S1, D2, S3"),
		},
		"more than anybody reads":               {missing: missing(maxNamed + 2), want: ", and 2 more were there before"},
		"more than anybody types":               {missing: missing(maxNamed + 2), want: fmt.Sprintf(accept, "as-reported")},
		"a name that cannot stand in a list":    {missing: []model.MissingDisk{{Name: "a,b"}}, want: fmt.Sprintf(accept, "as-reported")},
		"a serial number was accepted before":   {missing: missing(1), rec: model.ServerRecord{HandledDisks: "S0"}, want: fmt.Sprintf(accept, "S0#2")},
		"as reported was asked for before":      {missing: missing(maxNamed + 2), rec: model.ServerRecord{HandledDisks: "as-reported"}, want: fmt.Sprintf(accept, "as-reported#2")},
		"one failed and one is missing":         {disks: failed, missing: missing(1), want: "wipe failed on sda (serial S1): I/O error: mend that; disk sd0 (serial S0, model M) was there before"},
		"a retry was asked for before":          {disks: failed, rec: model.ServerRecord{HandledOperation: "retry#1"}, want: "retry#2 on Server s1"},
		"nobody ever said what disks it has":    {disks: wipedDisks("S1"), want: "the wipe saw 1 disk, disk0 (serial S1), and nobody ever said what disks it has: look, and if these are all, set annotation ingot/disks-accepted: \"as-reported\" on Server s1"},
		"and the wipe saw none":                 {want: "the wipe saw no disk, and nobody ever said what disks it has: look, and if it has none, set annotation ingot/disks-accepted: \"none\" on Server s1"},
		"which nobody was told of yet":          {accepts: "none", want: "nobody ever said"},
		"which a person accepted":               {disks: wipedDisks("S1"), rec: model.ServerRecord{DisksAt: time.Unix(1, 0)}},
		"its probe saw none, nor does the wipe": {rec: model.ServerRecord{DisksAt: time.Unix(1, 0)}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := &server{
				fleet: &fleet{in: &Input{Observed: model.NewObserved()}}, name: "s1", rec: &tc.rec, facts: &model.ServerFacts{}, spec: &model.Server{},
			}
			s.spec.Annotations = map[string]string{model.AnnotationDisksAccepted: tc.accepts}
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
		"one was replaced":        {wipedDisks("S1"), []model.MissingDisk{{Name: "sdb", Serial: "S2", Gone: true, ReplacedBy: "S9"}}, "True WipeDone: 1 disk done; replaced under a ServerMaintenance and not wiped: sdb (serial S2)"},
		"one is gone for good":    {wipedDisks("S1"), []model.MissingDisk{sdbGone}, "True WipeDone: 1 disk done; accepted without a wipe: sdb (serial S2, model M)"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := serverView{Server: &Server{Record: &model.ServerRecord{Wiped: tc.wiped, Missing: tc.missing}}}
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

// accept accepts disks of the first server.
func (w *world) accept(value string) {
	w.commit(func(d *model.Desired) {
		d.Add(serverFile(0, func(s *model.Server) { s.Annotations[model.AnnotationDisksAccepted] = value }))
	})
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
		what := "disk sdb (serial S2, model M) was there before and is not in the wipe's report"
		if got := conditionOf(doc.Conditions, "Ready"); !strings.HasPrefix(got, "False CleanupFailed: "+what) || !strings.Contains(got, `ingot/disks-accepted: "S2"`) {
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
		if got := conditionOf(doc.Conditions, "Wiped"); got != "True WipeDone: 1 disk done; accepted without a wipe: sdb (serial S2, model M)" {
			t.Errorf("Wiped is %s", got)
		}
		if n := w.seen(0).ons; n != 5 {
			t.Errorf("%d power-ons, want 5: for the discovery, the claim and three wipes", n)
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
							all.Drives = append(all.Drives, model.Drive{Name: "Drive", SerialNumber: strings.TrimSpace(serial), Model: "M", Bay: fmt.Sprint("/", i), Bytes: 1 << 40})
						}
					}
					m.storages = []model.Storage{all}
				}
			}
			published(t, 1, func(w *world, _ *branch) {
				w.serve("web")
				w.commit(func(d *model.Desired) { d.Add(maintenanceOf("m", 0)) })
				w.expect(2*time.Minute, 0, "Maintenance Off default/web")
				w.change(0, has(tc.now...))
				w.commit(func(d *model.Desired) { delete(d.Maintenances, "m") })
				w.expect(2*time.Minute, 0, "Reserved On default/web")
				for _, d := range w.Observed().Servers[w.machine(0).name].Disks {
					if is := d.ReplacedBy == "S9"; is != (tc.replaced && d.Serial == "S2") {
						t.Errorf("%+v is replaced: %t", d, is)
					}
				}
				w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
				w.expect(time.Hour, 0, tc.then+" Off")
				for _, m := range w.Observed().Servers[w.machine(0).name].Missing {
					if tc.replaced && (m.Serial != "S2" || m.ReplacedBy != "S9") {
						t.Errorf("%+v is missing, too", m)
					}
				}
			}, func(w *world) { w.change(0, has("S1", "S2")) })
		})
	}
}

func TestAWipeThatIsNotHeardOfIsNoMatterOfDisks(t *testing.T) {
	releasedWithout(t, func(t *testing.T, w *world, _ *branch) {
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
			published(t, 1, func(w *world, _ *branch) {
				w.serve("web")
				w.change(0, func(m *machine) { m.storages = tc.then })
				w.commit(func(d *model.Desired) { delete(d.Claims, "default/web") })
				w.expect(2*time.Minute, 0, tc.want)
			}, func(w *world) {
				w.machine(0).disks, w.machine(0).storages = []model.ProbeDisk{drive("sda", "logical")}, tc.first
			})
		})
	}
}

// A spare may hold what its next tenant writes: it is asked for at each release.
func TestADriveThatWasAcceptedIsAskedForAgain(t *testing.T) {
	published(t, 1, func(w *world, _ *branch) {
		for n, accepts := range []string{"D1", "D1#2"} {
			w.serve(fmt.Sprint("web", n))
			w.commit(func(d *model.Desired) { clear(d.Claims) })
			w.expect(2*time.Minute, 0, "Error Off")
			w.accept(accepts)
			w.expect(2*time.Minute, 0, "Available Off")
		}
	}, func(w *world) {
		w.machine(0).disks = []model.ProbeDisk{drive("sda", "S1")}
		w.machine(0).storages = []model.Storage{{Drives: []model.Drive{{Name: "bay 1", SerialNumber: "D1", Bytes: 1 << 40}}}}
	})
}

func TestAWipeThatIsNotHeardOfNamesNoDiskToAccept(t *testing.T) {
	releasedWithout(t, func(t *testing.T, w *world, _ *branch) {
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
	releasedWithout(t, func(t *testing.T, w *world, _ *branch) {
		w.expect(2*time.Minute, 0, "Error Off")
		w.change(0, func(m *machine) { m.disks = nil })
		w.accept("as-reported")
		w.expect(2*time.Minute, 0, "Error Off")
		w.lacks(model.MissingDisk{Name: "sda", Serial: "S1", Model: "M"}, sdbGone)
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
			files := rendered(t, reportOf(w.loop.Input(time.Now())))
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
	releasedWithout(t, func(_ *testing.T, w *world, _ *branch) {
		w.expect(2*time.Minute, 0, "Available Off")
		w.lacks()
	}, func(w *world) { w.desired.Add(serverFile(0, none)) })
}
