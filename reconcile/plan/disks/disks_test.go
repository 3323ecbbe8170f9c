package disks_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/internal/plantest"
	"ingot/reconcile/plan/disks"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/reading"
	"ingot/reconcile/progress"
)

var (
	drive      = fleettest.Drive
	wipedDisks = fleettest.WipedDisks
)

func TestWhichDisksAWipeDoesNotAccountFor(t *testing.T) {
	type (
		known  = []model.Disk
		probed = []model.ProbeDisk
		drives = []model.Drive
		wipes  = []model.DiskWipe
		lost   = []model.MissingDisk
	)
	removable := func(d *model.ProbeDisk) { d.Removable = true }
	empty := func(d *model.ProbeDisk) { d.SizeBytes = 0 }
	lent := func(d *model.ProbeDisk) { d.Vendor, d.Model = "AMI", "Virtual Floppy0" }
	wide := func(wwid string) func(d *model.ProbeDisk) { return func(d *model.ProbeDisk) { d.WWID = wwid } }
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
	skipped := func(reason string, w model.DiskWipe) wipes {
		w.Result, w.Reason = model.WipeSkipped, reason
		return wipes{w}
	}
	done := func(w model.DiskWipe) wipes { w.Result = model.WipeDone; return wipes{w} }
	const id, otherID = "600508b1001c123456789abcdef01234", "600508b1001c123456789abcdef09999"
	whole, other, unnamed := volume(id, 1<<40), volume(otherID, 1<<40), volume("", 1<<40)
	volumeWiped := done(model.DiskWipe{Name: "sda", Serial: "volume", WWID: "naa." + id, SizeBytes: 1 << 40})
	bay1 := func(change ...func(*model.Drive)) model.Drive { return shown("bay 1", "D1", change...) }
	half := func(name, number string) model.DiskWipe {
		return model.DiskWipe{Name: name, Serial: "S1", WWID: "eui.0025385b71b0000" + number, SizeBytes: 1 << 39, Result: model.WipeDone}
	}
	many := make([]model.ProbeDisk, 2*disks.MaxDisks)
	for i := range many {
		many[i] = drive("sd", fmt.Sprint("S", i))
	}
	longSerial := strings.Repeat("é", disks.MaxText)
	disk1, disk2 := drive("sda", "S1"), drive("sdb", "S2")
	was1, was2 := disks.Disk("sda", "S1", "M", 1<<40), disks.Disk("sdb", "S2", "M", 1<<40)
	sda, sdb := model.MissingDisk{Name: "sda", Serial: "S1", Model: "M"}, model.MissingDisk{Name: "sdb", Serial: "S2", Model: "M"}
	bay := model.MissingDisk{Name: "bay 1", Serial: "D1", Model: "M", FromBMC: true}
	disk0 := model.MissingDisk{Name: "disk0", Serial: "S1", NotWiped: true}
	notWiped := func(m model.MissingDisk) model.MissingDisk { m.NotWiped = true; return m }
	gone := func(m model.MissingDisk) model.MissingDisk { m.Gone = true; return m }
	replaced := func(d model.Disk) model.Disk { d.ReplacedBy = "S9"; return d }
	replacedBy := func(m model.MissingDisk) model.MissingDisk { m.ReplacedBy = "S9"; return m }
	for name, tc := range map[string]struct {
		record           known
		probe            probed
		bmc, twin        drives // twin is of another storage subsystem
		wipe             wipes
		before           lost // as the wipe before had them
		accepts, handled string
		want             lost
	}{
		"none, when all were wiped":                              {probe: probed{disk1, disk2}, wipe: wipedDisks("S2", "S1")},
		"one that was not seen":                                  {probe: probed{disk1, disk2}, wipe: wipedDisks("S1"), want: lost{sdb}},
		"all, when the report has none":                          {probe: probed{disk1, drive("sdb", "")}, want: lost{sda, {Name: "sdb", Model: "M"}}},
		"one that only the record knows, for the store was lost": {record: known{was1, was2}, wipe: wipedDisks("S1"), want: lost{sdb}},
		"one that only the BMC shows":                            {probe: probed{disk1}, bmc: drives{shown("bay 0", "S1"), bay1()}, wipe: wipedDisks("S1"), want: lost{bay}},
		"one that probe and BMC know is named once":              {probe: probed{disk1}, bmc: drives{shown("bay 0", "s-1")}, want: lost{sda}},
		"one that failed is listed elsewhere":                    {probe: probed{disk1}, wipe: wipes{{Serial: "S1", SizeBytes: 1 << 40, Result: model.WipeFailed}}},
		"one that was skipped for no reason":                     {probe: probed{disk1}, wipe: skipped("", wipedDisks("S1")[0]), want: lost{disk0}},
		"one that was skipped for a reason that is none":         {wipe: skipped("Tired", wipedDisks("S1")[0]), want: lost{disk0}},
		"not one on a storage network":                           {probe: probed{disk1}, wipe: skipped(model.SkipRemote, wipedDisks("S1")[0])},
		"nor one that is no longer there":                        {probe: probed{drive("sda", "S1", func(d *model.ProbeDisk) { d.Remote = true })}},
		"not a medium that the BMC lends":                        {probe: probed{drive("sda", "S1", lent)}, wipe: skipped(model.SkipVirtualMedia, wipedDisks("S1")[0])},
		"not a drive whose medium is gone": {
			probe: probed{drive("sda", "S1", removable)}, wipe: skipped(model.SkipNoMedium, model.DiskWipe{Name: "sda", Serial: "S1"}),
		},
		"one of which a part is hidden": {
			probe: probed{disk1}, wipe: done(model.DiskWipe{Name: "sda", Serial: "S1", SizeBytes: 1 << 39}), want: lost{notWiped(sda)},
		},
		"blanks and case make no difference": {probe: probed{drive("sda", " s1a ")}, wipe: wipedDisks("S1A  ")},
		"a world-wide name tells a disk, whatever its serial number is called": {
			probe: probed{drive("sda", "S1", wide("eui.0025385b71b00001"))},
			wipe:  done(model.DiskWipe{Name: "nvme0n1", Serial: "other", WWID: "eui.0025385b71b00001", SizeBytes: 1 << 40}),
		},
		"a drive whose volumes were all wiped": {bmc: drives{bay1(in(whole)), shown("bay 2", "D2", in(whole))}, wipe: volumeWiped},
		"a drive of which one volume was not":  {bmc: drives{bay1(in(whole, other))}, wipe: volumeWiped, want: lost{bay}},
		"a drive that two subsystems list, of which a volume of one was not wiped": {
			bmc: drives{bay1(in(other))}, twin: drives{bay1(in(whole))}, wipe: volumeWiped, want: lost{bay},
		},
		"one that a ServerMaintenance replaced": {record: known{replaced(was1)}, wipe: wipedDisks("S9"), want: lost{replacedBy(gone(sda))}},
		"not one that is back all the same":     {record: known{replaced(was1)}, wipe: skipped("", wipedDisks("S1")[0]), want: lost{disk0}},
		"nor one that the BMC shows again": {
			record: known{{Name: "bay 1", Serial: "D1", Model: "M", FromBMC: true, ReplacedBy: "S9"}}, bmc: drives{bay1()},
			before: lost{replacedBy(gone(bay))}, want: lost{bay},
		},
		"a drive whose volume has only a size":          {bmc: drives{bay1(in(unnamed))}, wipe: wipedDisks("volume")},
		"a drive whose volume has another size":         {bmc: drives{bay1(in(volume("", 1<<42)))}, wipe: wipedDisks("volume"), want: lost{bay}},
		"a larger disk is not the volume":               {bmc: drives{bay1(in(volume("", 1<<39)))}, wipe: wipedDisks("other"), want: lost{bay}},
		"another drive of that size is none":            {bmc: drives{shown("bay 0", "S1"), bay1(in(unnamed))}, wipe: wipedDisks("S1"), want: lost{bay}},
		"a spare":                                       {bmc: drives{shown("bay 0", "D0", in(whole)), bay1()}, wipe: volumeWiped, want: lost{bay}},
		"one without serial number goes by its size":    {probe: probed{disk1, drive("sdb", " ")}, wipe: wipedDisks("S1", "")},
		"and each of them is one":                       {probe: probed{drive("sda", ""), drive("sdb", " ")}, wipe: wipedDisks(""), want: lost{{Name: "sdb", Model: "M"}}},
		"and is none that has a name":                   {probe: probed{disk1, drive("sdb", "")}, wipe: wipedDisks("S1"), want: lost{{Name: "sdb", Model: "M"}}},
		"a drive of which the BMC tells a size only":    {probe: probed{disk1}, bmc: drives{shown("bay 1", "")}, wipe: wipedDisks("S1")},
		"nothing is known of what there was":            {wipe: wipedDisks("S1")},
		"neither a disk was there nor is one":           {},
		"a removable medium counts":                     {probe: probed{drive("sda", "S1", removable)}, want: lost{sda}},
		"a drive without a medium does not":             {probe: probed{drive("sda", "S1", removable, empty), drive("sdb", "", removable, empty)}},
		"nor does a medium that the BMC lent":           {probe: probed{drive("sda", "S1", lent)}},
		"nor a drive of which the BMC knows nothing":    {bmc: drives{{Name: "bay 7"}}},
		"a disk that was not there before is no matter": {probe: probed{disk1}, wipe: wipedDisks("S1", "S9")},
		"a disk with two paths is one":                  {probe: probed{disk1, drive("sdb", "s1 ")}, want: lost{sda}},
		"one that was accepted stays so": {
			probe: probed{disk1, drive("sdb", " S2")}, wipe: wipedDisks("S1"),
			before: lost{{Name: "x", Serial: "s2", Gone: true}}, want: lost{gone(sdb)},
		},
		"one that was not accepted does not":            {probe: probed{disk2}, wipe: wipedDisks("S1"), before: lost{{Name: "sdb", Serial: "S2"}}, want: lost{sdb}},
		"one that is there again is no longer accepted": {probe: probed{disk2}, wipe: wipedDisks("S2"), before: lost{{Name: "sdb", Serial: "S2", Gone: true}}},
		"accepted by serial number":                     {probe: probed{disk1, disk2}, accepts: "S9, s2", want: lost{sda, gone(sdb)}},
		"accepted by name where there is no serial number": {
			probe: probed{disk1, drive("sdb", "")}, accepts: "sda,sdb", want: lost{sda, {Name: "sdb", Model: "M", Gone: true}},
		},
		"a blank accepts nothing":                 {probe: probed{drive("sdb", "")}, accepts: " , ", want: lost{{Name: "sdb", Model: "M"}}},
		"a serial number is accepted once":        {probe: probed{disk1}, accepts: "S1", handled: "S1", want: lost{sda}},
		"and again by a suffix":                   {probe: probed{disk1}, accepts: "S1#2", handled: "S1", want: lost{gone(sda)}},
		"as reported is for what was told of":     {probe: probed{disk1}, accepts: "as-reported", want: lost{sda}},
		"that it has none is for what was told":   {probe: probed{disk1}, accepts: "none", want: lost{sda}},
		"two disks of an NVMe disk are that disk": {bmc: drives{shown("bay 0", "S1")}, wipe: wipes{half("nvme0n1", "1"), half("nvme0n2", "2")}},
		"two paths to a half are a half": {bmc: drives{shown("bay 0", "S1")}, wipe: wipes{half("sda", "1"), half("sdb", "1")}, want: lost{
			{Name: "bay 0", Serial: "S1", Model: "M", FromBMC: true, NotWiped: true},
		}},
		"one wiped disk is one volume": {bmc: drives{
			shown("bay 0", "D0", in(model.DiskVolume{Name: "a", Bytes: 1 << 40})),
			shown("bay 1", "D1", in(model.DiskVolume{Name: "b", Bytes: 1 << 40})),
		}, wipe: wipedDisks("volume"), want: lost{bay}},
		"a drive without a name goes by its volumes, too": {bmc: drives{shown("bay 1", "", in(whole))}, wipe: volumeWiped},
		"a medium that was lent to a probe of before":     {wipe: skipped("", model.DiskWipe{Name: "sdb", Model: "Virtual Floppy0", SizeBytes: 1 << 20})},
		"what a probe says is bounded": {
			probe: probed{drive("sda"+strings.Repeat("x", 200), "S"+longSerial)}, wipe: wipedDisks("S1"),
			want: lost{{Name: "sda" + strings.Repeat("x", disks.MaxText-3), Serial: "S" + strings.Repeat("é", disks.MaxText/2-1), Model: "M"}},
		},
		"so is how many": {probe: many, want: func() (list []model.MissingDisk) {
			for i := range disks.MaxDisks {
				list = append(list, model.MissingDisk{Name: "sd", Serial: fmt.Sprint("S", i), Model: "M"})
			}
			return list
		}()},
	} {
		t.Run(name, func(t *testing.T) {
			s := wipedServer(tc.wipe)
			s.Record.Disks = model.RecordDisks{Known: tc.record, Missing: tc.before}
			s.Record.Requests.HandledDisks = tc.handled
			s.Observed.Probes["s1"] = &model.ProbeReport{Data: model.ProbeData{Storage: tc.probe}}
			s.Facts.Inventory.Storages = []model.Storage{{Drives: tc.bmc}, {Drives: tc.twin}}
			s.Manifest.Annotations = map[string]string{model.AnnotationDisksAccepted: tc.accepts}
			p, _ := disks.Cleanup(s)
			got := p.Of.Record.Disks.Missing
			if free := p.Frees != nil; free == slices.ContainsFunc(got, func(m model.MissingDisk) bool { return !m.Gone }) && !failed(tc.wipe) {
				t.Errorf("it becomes free: %t, though %+v are missing", free, got)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("missing disks (-want +got):\n%s", diff)
			}
		})
	}
}

// wipedServer is server s1, which is off, and whose wipe reported these disks.
func wipedServer(reported []model.DiskWipe) *proposal.Server {
	in, rec := plantest.Ticketed(model.StateCleanup, model.PurposeCleanup)
	s := plantest.ServerOf(in, rec.Name)
	s.Name, rec.Name, s.Manifest = "s1", "s1", &model.Server{}
	s.Facts = &model.ServerFacts{Power: model.PowerOff, Inventory: &model.Inventory{}}
	s.Observed.Wipes["s1"] = &model.WipeReport{Ticket: rec.Boot.Ticket.ID, ReceivedAt: in.Now, Disks: reported}
	*s.Reading = reading.State{At: in.Now, Offs: 3, Parts: reading.Parts{InventoryAt: in.Now}}
	return s
}

func failed(reported []model.DiskWipe) bool {
	return slices.ContainsFunc(reported, func(w model.DiskWipe) bool { return w.Result == model.WipeFailed })
}

func TestAWipeThatFailsSaysWhatToDo(t *testing.T) {
	broken := []model.DiskWipe{{Name: "sda", Serial: "S1", Result: model.WipeFailed, Error: "I/O error"}}
	known := func(n int) (list []model.Disk) {
		for i := range n {
			list = append(list, model.Disk{Name: fmt.Sprint("sd", i), Serial: fmt.Sprint("S", i), Model: "M"})
		}
		return list
	}
	const (
		retry  = "annotation metal.ironcore.dev/operation: retry#1 on Server s1 has it wiped again"
		accept = "annotation ingot/disks-accepted: %q on Server s1 accepts that, and has it wiped again"
	)
	for name, tc := range map[string]struct {
		wiped   []model.DiskWipe
		known   []model.Disk
		probed  bool // its probe reported what disks it has
		handled model.RecordRequests
		accepts string
		want    string
	}{
		"nothing is wrong": {wiped: wipedDisks("S1"), probed: true},
		"a disk failed":    {wiped: broken, probed: true, want: "wipe failed on sda (serial S1): I/O error: repair or replace it; " + retry},
		"disks of which little is known": {
			known: []model.Disk{{Name: "sda"}, {Name: "sdb", Model: "M"}, {Name: "sdc", Serial: "S3"}},
			want: "disks sda (no serial number), sdb (no serial number, model M), sdc (serial S3) were there before " +
				"and are not in the wipe's report: look for it; " +
				retry + "; " + fmt.Sprintf(accept, "sda, sdb, S3"),
		},
		"one of each kind": {
			known: []model.Disk{{Name: "sda", Serial: "S1"}, {Name: "bay 2", Serial: "D2", FromBMC: true}, {Name: "sdc", Serial: "S3", Bytes: 200}},
			wiped: []model.DiskWipe{{Serial: "S3", SizeBytes: 100, Result: model.WipeDone}},
			want: "disk sdc (serial S3) was seen by the wipe and not wiped, or not wholly; " +
				"disk bay 2 (serial D2) is shown by the BMC and is not in the wipe's report, " +
				"nor are all volumes that it is part of; " +
				"disk sda (serial S1) was there before and is not in the wipe's report: look for it; " +
				retry + "; " + fmt.Sprintf(accept, "S1, D2, S3"),
		},
		"more than a message names":           {known: known(progress.MaxNamed + 2), want: ", and 2 more were there before"},
		"more than anybody types":             {known: known(progress.MaxNamed + 2), want: fmt.Sprintf(accept, "as-reported")},
		"a name that cannot stand in a list":  {known: []model.Disk{{Name: "a,b"}}, want: fmt.Sprintf(accept, "as-reported")},
		"a serial number was accepted before": {known: known(1), handled: model.RecordRequests{HandledDisks: "S0"}, want: fmt.Sprintf(accept, "S0#2")},
		"as reported was asked for before": {
			known: known(progress.MaxNamed + 2), handled: model.RecordRequests{HandledDisks: "as-reported"}, want: fmt.Sprintf(accept, "as-reported#2"),
		},
		"one failed and one is missing": {
			wiped: broken, known: known(1),
			want: "wipe failed on sda (serial S1): I/O error: repair or replace it; disk sd0 (serial S0, model M) was there before",
		},
		"a retry was asked for before": {wiped: broken, handled: model.RecordRequests{HandledOperation: "retry#1"}, want: "retry#2 on Server s1"},
		"its disks were never reported": {
			wiped: wipedDisks("S1"),
			want: "the wipe saw 1 disk, disk0 (serial S1), and nobody ever said what disks it has: look, and if these are all, " +
				"set annotation ingot/disks-accepted: \"as-reported\" on Server s1",
		},
		"and the wipe saw none": {
			want: "the wipe saw no disk, and nobody ever said what disks it has: look, and if it has none, " +
				"set annotation ingot/disks-accepted: \"none\" on Server s1",
		},
		"an acceptance from before that":        {accepts: "none", want: "nobody ever said"},
		"which a person accepted":               {wiped: wipedDisks("S1"), probed: true},
		"its probe saw none, nor does the wipe": {probed: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := wipedServer(tc.wiped)
			s.Record.Disks, s.Record.Requests = model.RecordDisks{Known: tc.known}, tc.handled
			if tc.probed {
				s.Record.Disks.KnownAt = time.Unix(1, 0)
			}
			s.Manifest.Annotations = map[string]string{model.AnnotationDisksAccepted: tc.accepts}
			got := disks.Unaccounted(s, &proposal.Proof{Reported: tc.wiped})
			if !strings.Contains(got, tc.want) || tc.want == "" && got != "" {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// A summary is taken where nothing is known, and never in the place of more.
func TestASummaryReplacesNothingButASummary(t *testing.T) {
	cpus := func(ids ...string) (all []model.Processor) {
		for _, id := range ids {
			all = append(all, model.Processor{ID: id})
		}
		return all
	}
	drives := func(names ...string) []model.Storage {
		s := model.Storage{Name: "S"}
		for _, name := range names {
			s.Drives = append(s.Drives, model.Drive{Name: name, SerialNumber: name})
		}
		return []model.Storage{s}
	}
	both := []string{model.PartProcessors, model.PartDrives}
	whole := model.Inventory{Processors: cpus("CPU.Socket.1"), Storages: drives("a", "b")}
	summary := model.Inventory{Processors: cpus("1", "2"), Storages: drives("c"), Summarized: both}
	for name, tt := range map[string]struct{ known, read, want model.Inventory }{
		"of what was read one by one":       {known: whole, read: summary, want: whole},
		"of what was a summary itself":      {known: model.Inventory{Processors: cpus("1"), Storages: drives("d"), Summarized: both}, read: summary, want: summary},
		"of nothing":                        {read: summary, want: summary},
		"of a storage without drives":       {known: model.Inventory{Storages: drives()}, read: summary, want: summary},
		"and is replaced by what is read":   {known: summary, read: whole, want: whole},
		"and is kept while nothing is read": {known: summary, read: model.Inventory{}, want: summary},
	} {
		t.Run(name, func(t *testing.T) {
			got := disks.Merged(&model.ServerFacts{Inventory: &tt.known}, &tt.read)
			if diff := cmp.Diff(&tt.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
