package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/plan/disks"
)

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
	many := make([]model.ProbeDisk, 2*disks.MaxDisks)
	for i := range many {
		many[i] = drive("sd", fmt.Sprint("S", i))
	}
	longSerial := strings.Repeat("é", disks.MaxText)
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
		"none, when all were wiped": {
			inventory: []model.ProbeDisk{drive("sda", "S1"), drive("sdb", "S2")}, reported: wipedDisks("S2", "S1"),
		},
		"one that was not seen": {
			inventory: []model.ProbeDisk{drive("sda", "S1"), drive("sdb", "S2")}, reported: wipedDisks("S1"),
			want: []model.MissingDisk{sdb},
		},
		"all, when the report has none": {
			inventory: []model.ProbeDisk{drive("sda", "S1"), drive("sdb", "")},
			want:      []model.MissingDisk{sda, {Name: "sdb", Model: "M"}},
		},
		"one that only the record knows, for the store was lost": {
			recorded: []model.Disk{disks.Disk("sda", "S1", "M", 1<<40), disks.Disk("sdb", "S2", "M", 1<<40)}, reported: wipedDisks("S1"),
			want: []model.MissingDisk{sdb},
		},
		"one that only the BMC shows": {
			inventory: []model.ProbeDisk{drive("sda", "S1")}, drives: []model.Drive{shown("bay 0", "S1"), shown("bay 1", "D1")},
			reported: wipedDisks("S1"),
			want:     []model.MissingDisk{bay},
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
			reported: reportedAs(model.WipeSkipped, "Tired", wipedDisks("S1")[0]),
			want:     []model.MissingDisk{{Name: "disk0", Serial: "S1", NotWiped: true}},
		},
		"not one on a storage network": {
			inventory: []model.ProbeDisk{drive("sda", "S1")},
			reported:  reportedAs(model.WipeSkipped, model.SkipRemote, wipedDisks("S1")[0]),
		},
		"nor one that is no longer there": {inventory: []model.ProbeDisk{drive("sda", "S1", func(d *model.ProbeDisk) { d.Remote = true })}},
		"not a medium that the BMC lends": {
			inventory: []model.ProbeDisk{drive("sda", "S1", lent)},
			reported:  reportedAs(model.WipeSkipped, model.SkipVirtualMedia, wipedDisks("S1")[0]),
		},
		"not a drive whose medium is gone": {
			inventory: []model.ProbeDisk{drive("sda", "S1", removable)},
			reported:  reportedAs(model.WipeSkipped, model.SkipNoMedium, model.DiskWipe{Name: "sda", Serial: "S1"}),
		},
		"one of which a part is hidden": {
			inventory: []model.ProbeDisk{drive("sda", "S1")},
			reported:  reportedAs(model.WipeDone, "", model.DiskWipe{Name: "sda", Serial: "S1", SizeBytes: 1 << 39}),
			want:      []model.MissingDisk{notWiped(sda)},
		},
		"blanks and case make no difference": {inventory: []model.ProbeDisk{drive("sda", " s1a ")}, reported: wipedDisks("S1A  ")},
		"a world-wide name tells a disk, whatever its serial number is called": {
			inventory: []model.ProbeDisk{drive("sda", "S1", wide("eui.0025385b71b00001"))},
			reported: reportedAs(model.WipeDone, "", model.DiskWipe{
				Name: "nvme0n1", Serial: "other", WWID: "eui.0025385b71b00001", SizeBytes: 1 << 40,
			}),
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
			recorded: []model.Disk{replaced(disks.Disk("sda", "S1", "M", 1<<40))}, reported: wipedDisks("S9"),
			want: []model.MissingDisk{replacedBy(gone(sda))},
		},
		"not one that is back all the same": {
			recorded: []model.Disk{replaced(disks.Disk("sda", "S1", "M", 1<<40))},
			reported: reportedAs(model.WipeSkipped, "", wipedDisks("S1")[0]),
			want:     []model.MissingDisk{{Name: "disk0", Serial: "S1", NotWiped: true}},
		},
		"nor one that the BMC shows again": {
			recorded: []model.Disk{{Name: "bay 1", Serial: "D1", Model: "M", FromBMC: true, ReplacedBy: "S9"}},
			drives:   []model.Drive{shown("bay 1", "D1")},
			known:    []model.MissingDisk{replacedBy(gone(bay))}, want: []model.MissingDisk{bay},
		},
		"a drive whose volume has only a size": {
			drives: []model.Drive{shown("bay 1", "D1", in(volume("", 1<<40)))}, reported: wipedDisks("volume"),
		},
		"a drive whose volume has another size": {
			drives: []model.Drive{shown("bay 1", "D1", in(volume("", 1<<42)))}, reported: wipedDisks("volume"),
			want: []model.MissingDisk{bay},
		},
		"a larger disk is not the volume": {
			drives: []model.Drive{shown("bay 1", "D1", in(volume("", 1<<39)))}, reported: wipedDisks("other"),
			want: []model.MissingDisk{bay},
		},
		"another drive of that size is no volume": {
			drives: []model.Drive{shown("bay 0", "S1"), shown("bay 1", "D1", in(volume("", 1<<40)))}, reported: wipedDisks("S1"),
			want: []model.MissingDisk{bay},
		},
		"a spare": {
			drives:   []model.Drive{shown("bay 0", "D0", in(volume(id, 1<<40))), shown("bay 1", "D1")},
			reported: reportedAs(model.WipeDone, "", model.DiskWipe{Name: "sda", WWID: "naa." + id, SizeBytes: 1 << 40}),
			want:     []model.MissingDisk{bay},
		},
		"one without serial number goes by its size": {
			inventory: []model.ProbeDisk{drive("sda", "S1"), drive("sdb", " ")}, reported: wipedDisks("S1", ""),
		},
		"and each of them is one": {
			inventory: []model.ProbeDisk{drive("sda", ""), drive("sdb", " ")}, reported: wipedDisks(""),
			want: []model.MissingDisk{{Name: "sdb", Model: "M"}},
		},
		"and is none that has a name": {
			inventory: []model.ProbeDisk{drive("sda", "S1"), drive("sdb", "")}, reported: wipedDisks("S1"),
			want: []model.MissingDisk{{Name: "sdb", Model: "M"}},
		},
		"a drive of which the BMC tells a size only is one that the system saw": {
			inventory: []model.ProbeDisk{drive("sda", "S1")}, drives: []model.Drive{shown("bay 1", "")}, reported: wipedDisks("S1"),
		},
		"nothing is known of what there was":  {reported: wipedDisks("S1")},
		"neither a disk was there nor is one": {},
		"a removable medium counts": {
			inventory: []model.ProbeDisk{drive("sda", "S1", removable)},
			want:      []model.MissingDisk{sda},
		},
		"a drive without a medium does not": {
			inventory: []model.ProbeDisk{drive("sda", "S1", removable, empty), drive("sdb", "", removable, empty)},
		},
		"nor does a medium that the BMC lent":        {inventory: []model.ProbeDisk{drive("sda", "S1", lent)}},
		"nor a drive of which the BMC knows nothing": {drives: []model.Drive{{Name: "bay 7"}}},
		"a disk that was not there before is no matter": {
			inventory: []model.ProbeDisk{drive("sda", "S1")}, reported: wipedDisks("S1", "S9"),
		},
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
			inventory: []model.ProbeDisk{drive("sdb", "S2")}, reported: wipedDisks("S2"),
			known: []model.MissingDisk{{Name: "sdb", Serial: "S2", Gone: true}},
		},
		"accepted by serial number": {
			inventory: []model.ProbeDisk{drive("sda", "S1"), drive("sdb", "S2")}, accepts: "S9, s2",
			want: []model.MissingDisk{sda, gone(sdb)},
		},
		"accepted by name where there is no serial number": {
			inventory: []model.ProbeDisk{drive("sda", "S1"), drive("sdb", "")}, accepts: "sda,sdb",
			want: []model.MissingDisk{sda, {Name: "sdb", Model: "M", Gone: true}},
		},
		"a blank accepts nothing": {
			inventory: []model.ProbeDisk{drive("sdb", "")}, accepts: " , ",
			want: []model.MissingDisk{{Name: "sdb", Model: "M"}},
		},
		"a serial number is accepted once": {
			inventory: []model.ProbeDisk{drive("sda", "S1")}, accepts: "S1", handled: "S1",
			want: []model.MissingDisk{sda},
		},
		"and again by a suffix": {
			inventory: []model.ProbeDisk{drive("sda", "S1")}, accepts: "S1#2", handled: "S1",
			want: []model.MissingDisk{gone(sda)},
		},
		"as reported is for what was told of": {
			inventory: []model.ProbeDisk{drive("sda", "S1")}, accepts: "as-reported",
			want: []model.MissingDisk{sda},
		},
		"that it has none is for what was told": {
			inventory: []model.ProbeDisk{drive("sda", "S1")}, accepts: "none",
			want: []model.MissingDisk{sda},
		},
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
			drives: []model.Drive{
				shown("bay 0", "D0", in(model.DiskVolume{Name: "a", Bytes: 1 << 40})),
				shown("bay 1", "D1", in(model.DiskVolume{Name: "b", Bytes: 1 << 40})),
			},
			reported: wipedDisks("volume"), want: []model.MissingDisk{bay},
		},
		"a drive without a name of its own goes by its volumes, too": {
			drives:   []model.Drive{shown("bay 1", "", in(volume(id, 1<<40)))},
			reported: reportedAs(model.WipeDone, "", model.DiskWipe{Name: "sda", Serial: "x", WWID: "naa." + id, SizeBytes: 1 << 40}),
		},
		"a medium that was lent to a probe of before": {
			reported: reportedAs(model.WipeSkipped, "", model.DiskWipe{Name: "sdb", Model: "Virtual Floppy0", SizeBytes: 1 << 20}),
		},
		"what a probe says is bounded": {
			inventory: []model.ProbeDisk{drive("sda"+strings.Repeat("x", 200), "S"+longSerial)}, reported: wipedDisks("S1"),
			want: []model.MissingDisk{{
				Name: "sda" + strings.Repeat("x", disks.MaxText-3), Serial: "S" + strings.Repeat("é", disks.MaxText/2-1), Model: "M",
			}},
		},
		"so is how many": {inventory: many, want: func() (list []model.MissingDisk) {
			for i := range disks.MaxDisks {
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
				rec:   &model.ServerRecord{Disks: model.RecordDisks{Known: tc.recorded, Missing: tc.known}, Requests: model.RecordRequests{HandledDisks: tc.handled}},
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
		"nothing is wrong": {disks: wipedDisks("S1"), rec: model.ServerRecord{Disks: model.RecordDisks{KnownAt: time.Unix(1, 0)}}},
		"a disk failed": {
			disks: failed, rec: model.ServerRecord{Disks: model.RecordDisks{KnownAt: time.Unix(1, 0)}},
			want: "wipe failed on sda (serial S1): I/O error: repair or replace it; " + retry,
		},
		"a disk is missing": {
			missing: missing(1),
			want: "disk sd0 (serial S0, model M) was there before and is not in the wipe's report: look for it; " + retry + "; " +
				fmt.Sprintf(accept, "S0"),
		},
		"disks of which little is known": {
			missing: []model.MissingDisk{{Name: "sda"}, {Name: "sdb", Model: "M"}, {Name: "sdc", Serial: "S3"}},
			want: "disks sda (no serial number), sdb (no serial number, model M), sdc (serial S3) were there before " +
				"and are not in the wipe's report: look for it; " +
				retry + "; " + fmt.Sprintf(accept, "sda, sdb, S3"),
		},
		"one of each kind": {
			missing: []model.MissingDisk{
				{Name: "sda", Serial: "S1"}, {Name: "bay 2", Serial: "D2", FromBMC: true}, {Name: "sdc", Serial: "S3", NotWiped: true},
			},
			want: "disk sdc (serial S3) was seen by the wipe and not wiped, or not wholly; " +
				"disk bay 2 (serial D2) is shown by the BMC and is not in the wipe's report, " +
				"nor are all volumes that it is part of; " +
				"disk sda (serial S1) was there before and is not in the wipe's report: look for it; " +
				retry + "; " + fmt.Sprintf(accept, "S1, D2, S3"),
		},
		"more than anybody reads":            {missing: missing(disks.MaxNamed + 2), want: ", and 2 more were there before"},
		"more than anybody types":            {missing: missing(disks.MaxNamed + 2), want: fmt.Sprintf(accept, "as-reported")},
		"a name that cannot stand in a list": {missing: []model.MissingDisk{{Name: "a,b"}}, want: fmt.Sprintf(accept, "as-reported")},
		"a serial number was accepted before": {
			missing: missing(1), rec: model.ServerRecord{Requests: model.RecordRequests{HandledDisks: "S0"}},
			want: fmt.Sprintf(accept, "S0#2"),
		},
		"as reported was asked for before": {
			missing: missing(disks.MaxNamed + 2), rec: model.ServerRecord{Requests: model.RecordRequests{HandledDisks: "as-reported"}},
			want: fmt.Sprintf(accept, "as-reported#2"),
		},
		"one failed and one is missing": {
			disks: failed, missing: missing(1),
			want: "wipe failed on sda (serial S1): I/O error: repair or replace it; disk sd0 (serial S0, model M) was there before",
		},
		"a retry was asked for before": {
			disks: failed, rec: model.ServerRecord{Requests: model.RecordRequests{HandledOperation: "retry#1"}},
			want: "retry#2 on Server s1",
		},
		"nobody ever said what disks it has": {
			disks: wipedDisks("S1"),
			want: "the wipe saw 1 disk, disk0 (serial S1), and nobody ever said what disks it has: look, and if these are all, " +
				"set annotation ingot/disks-accepted: \"as-reported\" on Server s1",
		},
		"and the wipe saw none": {
			want: "the wipe saw no disk, and nobody ever said what disks it has: look, and if it has none, " +
				"set annotation ingot/disks-accepted: \"none\" on Server s1",
		},
		"which nobody was told of yet":          {accepts: "none", want: "nobody ever said"},
		"which a person accepted":               {disks: wipedDisks("S1"), rec: model.ServerRecord{Disks: model.RecordDisks{KnownAt: time.Unix(1, 0)}}},
		"its probe saw none, nor does the wipe": {rec: model.ServerRecord{Disks: model.RecordDisks{KnownAt: time.Unix(1, 0)}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := &server{
				fleet: &fleet{in: &Input{Observed: model.NewObserved()}},
				name:  "s1", rec: &tc.rec, facts: &model.ServerFacts{}, spec: &model.Server{},
			}
			s.spec.Annotations = map[string]string{model.AnnotationDisksAccepted: tc.accepts}
			got := s.wipeFailure(tc.disks, tc.missing)
			if !strings.Contains(got, tc.want) || tc.want == "" && got != "" {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}
