package install

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"ingot/cmd/metalprobe/install/efi"
	"ingot/cmd/metalprobe/install/fat"
	"ingot/cmd/metalprobe/inventory"
	"ingot/model"
	"ingot/model/filesystem"
	"ingot/model/gpt"
	"ingot/model/must"
)

var wholeRoad = []model.DiskInstallStage{
	model.DiskProbeBooted, model.DiskChosen, model.DiskWriting, model.DiskVerified, model.DiskBootEntry, model.DiskRebooting,
}

// compareStages compares stages with a road: of quick ones only the last may be reported, but
// that it was verified, and is about to be powered off, always is.
func compareStages(t *testing.T, road, got []model.DiskInstallStage) {
	t.Helper()
	must := []model.DiskInstallStage{model.DiskVerified, model.DiskRebooting}
	want := slices.DeleteFunc(slices.Clone(road), func(s model.DiskInstallStage) bool {
		return !slices.Contains(got, s) && !slices.Contains(must, s)
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
}

func compareDisk(t *testing.T, disk, image []byte, d *daemon) {
	t.Helper()
	if !bytes.Equal(disk[mebibyte:len(image)-mebibyte], image[mebibyte:len(image)-mebibyte]) {
		t.Error("the disk has not what the image has")
	}
	table := must.Get(gpt.Read(bytes.NewReader(disk), int64(len(disk))))(t)
	if string(table.MBR[:9]) != "boot code" || table.Sectors*uint64(table.SectorSize) != uint64(len(disk)) || table.Partitions[0].GUID != rootGUID {
		t.Errorf("partition table is not that of the image, grown: %+v", table)
	}
	seed := table.Partitions[len(table.Partitions)-1]
	if seed.Name != seedPartition || seed.GUID != seedGUID(d.doc.Install) {
		t.Fatalf("last partition is %+v, want the seed", seed)
	}
	part := disk[seed.First*uint64(table.SectorSize) : (seed.Last+1)*uint64(table.SectorSize)]
	id, _ := filesystem.Identify(bytes.NewReader(part), int64(len(part)))
	if id.Type != "vfat" || id.Label != d.doc.Seed.Label {
		t.Errorf("seed is %+v", id)
	}
	if !bytes.Contains(part, []byte("instance-id: install-1")) {
		t.Error("the seed has not its files")
	}
}

func TestAnImageIsInstalled(t *testing.T) {
	image := imageOf(t, 21, 512)
	d := serve(t, image)
	random := bytes.Repeat([]byte("data of before. "), 32*mebibyte/16)
	disks := map[string]*memoryDisk{"sda": newMemoryDisk(32 * mebibyte), "sdb": newMemoryDisk(40 * mebibyte)}
	disks["sda"].b = random
	must.Do(t, machineOf(d, disks).Run(t.Context(), d.url(), "uuid-1"))
	last, stages := d.outcome()
	compareStages(t, wholeRoad, stages)
	want := model.ProbeInstall{
		SystemUUID: "uuid-1", Install: "install-1", Stage: model.DiskRebooting, Done: d.doc.Image.Data,
		Disk: &model.RootDisk{Name: "sda", Serial: "S-sda", Bytes: 32 * mebibyte},
	}
	if diff := cmp.Diff(want, last); diff != "" {
		t.Errorf("last report (-want +got):\n%s", diff)
	}
	compareDisk(t, disks["sda"].b, image, d)
	if !bytes.Equal(disks["sdb"].b, make([]byte, 40*mebibyte)) {
		t.Error("the other disk was written to")
	}
}

func gptDisk(t *testing.T, name, guid string, in ...span2) *memoryDisk {
	t.Helper()
	m := newMemoryDisk(32 * mebibyte)
	table := gpt.New(512, 32*mebibyte, "bbbbbbbb-0000-4000-8000-000000000000")
	table.Partitions = []gpt.Partition{{Number: 1, Type: gpt.TypeBasicData, GUID: guid, First: 2048, Last: 2048 + 8191, Name: name}}
	head, tail, err := table.Encode()
	if err != nil {
		t.Fatal(err)
	}
	copy(m.b, head)
	copy(m.b[len(m.b)-len(tail):], tail)
	for _, s := range in {
		copy(m.b[mebibyte+s.at:], s.what)
	}
	return m
}

func fatDisk(t *testing.T, partition, label string) *memoryDisk {
	t.Helper()
	v := fat.Volume{SectorSize: 512, Label: label, Files: map[string]string{"user-data": "former"}}
	var b buffer
	must.Do(t, v.WriteTo(&b))
	return gptDisk(t, partition, "cccccccc-0000-4000-8000-000000000000", span2{0, string(b)})
}

type buffer []byte

func (b *buffer) WriteAt(p []byte, at int64) (int, error) {
	if need := int(at) + len(p); need > len(*b) {
		*b = append(*b, make([]byte, need-len(*b))...)
	}
	return copy((*b)[at:], p), nil
}

const (
	extMagic = "\x53\xef"
	testUUID = "\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff\x00"
)

// TestInstallsThatAreRefused names the cases of the reference: the disk is as it was before.
func TestInstallsThatAreRefused(t *testing.T) {
	blank := func() *memoryDisk { return newMemoryDisk(32 * mebibyte) }
	image := imageOf(t, 20, 512)
	ext := func(at int) []span2 { return []span2{{at + 1024 + 56, extMagic}, {at + 1024 + 104, testUUID + "boot"}} }
	on := func(m *memoryDisk, over ...span2) *memoryDisk {
		for _, o := range over {
			copy(m.b[o.at:], o.what)
		}
		return m
	}
	tests := map[string]struct {
		disks  map[string]*memoryDisk
		change func(*daemon)
		reason model.Reason
		says   string
	}{
		"no disk is large enough (N14)": {
			disks: map[string]*memoryDisk{"sda": newMemoryDisk(16 * mebibyte)}, reason: model.ReasonDiskTooSmall, says: "it has 16777216 bytes, the image 20971520",
		},
		"the sectors are of another size (N13)": {
			disks: map[string]*memoryDisk{"sda": {b: make([]byte, 32*mebibyte), sector: 4096}}, reason: model.ReasonSectorSizeMismatch,
		},
		"the image is for other sectors than it says": {
			disks:  map[string]*memoryDisk{"sda": {b: make([]byte, 32*mebibyte), sector: 4096, cutAfter: -1}},
			change: func(d *daemon) { d.doc.Image.SectorSize = 4096 }, reason: model.ReasonSectorSizeMismatch, says: "the image is for sectors of 512 bytes",
		},
		"a filesystem is on the disk (N25)": {
			disks: map[string]*memoryDisk{"sda": on(blank(), ext(0)...)}, reason: model.ReasonRootDeviceNotBlank, says: "holds ext2 boot",
		},
		"a partition table is on the disk": {
			disks: map[string]*memoryDisk{"sda": gptDisk(t, "data", "dddddddd-0000-4000-8000-000000000000")}, reason: model.ReasonRootDeviceNotBlank,
			says: "a GUID partition table with 1 partitions",
		},
		"only the backup of a partition table is left": {
			disks: map[string]*memoryDisk{"sda": on(blank(), span2{32*mebibyte - 512, "EFI PART"})}, reason: model.ReasonRootDeviceNotBlank, says: "the backup of a GUID partition table",
		},
		"a member of an array is told at its tail": {
			disks:  map[string]*memoryDisk{"sda": on(blank(), span2{32*mebibyte - 65536, "\xfc\x4e\x2b\xa9\x00\x00\x00\x00\x5a"})},
			reason: model.ReasonRootDeviceNotBlank, says: "linux_raid_member",
		},
		"another disk has a filesystem of the image (N35)": {
			disks:  map[string]*memoryDisk{"sda": blank(), "sdb": gptDisk(t, "x", "dddddddd-0000-4000-8000-000000000000", ext(0)...)},
			change: func(d *daemon) { d.doc.Identities.UUIDs = []string{"11223344-5566-7788-99aa-bbccddeeff00"} }, reason: model.ReasonDuplicateIdentity,
			says: "disk sdb (serial number S-sdb) has UUID 11223344-5566-7788-99aa-bbccddeeff00 of partition 1 (ext2)",
		},
		"another disk has a label of the image": {
			disks:  map[string]*memoryDisk{"sda": blank(), "sdb": gptDisk(t, "x", "dddddddd-0000-4000-8000-000000000000", ext(0)...)},
			change: func(d *daemon) { d.doc.Identities.Labels = []string{"boot"} }, reason: model.ReasonDuplicateIdentity, says: "label boot of partition 1 (ext2)",
		},
		"another disk has a partition of the image": {
			disks:  map[string]*memoryDisk{"sda": blank(), "sdb": gptDisk(t, "x", rootGUID)},
			change: func(d *daemon) { d.doc.Identities.GUIDs = []string{rootGUID} }, reason: model.ReasonDuplicateIdentity, says: "GUID " + rootGUID,
		},
		"another disk has somebody's seed (N36)": {
			disks: map[string]*memoryDisk{"sda": blank(), "sdb": fatDisk(t, "somebody", "CIDATA")}, reason: model.ReasonDuplicateIdentity, says: "label CIDATA of partition 1 (vfat)",
		},
		"another disk has somebody's config drive": {
			disks: map[string]*memoryDisk{"sda": blank(), "sdb": fatDisk(t, "somebody", "config-2")}, reason: model.ReasonDuplicateIdentity, says: "label config-2",
		},
		"no disk fulfils a hint that cannot be read": {
			disks: map[string]*memoryDisk{"sda": blank()}, change: func(d *daemon) { d.doc.Hints = []string{"seriel=1"} }, reason: model.ReasonRootDeviceMissing,
			says: `did you mean "serial"?`,
		},
		"two disks fulfil a hint of identity (N18)": {
			disks: map[string]*memoryDisk{"sda": blank(), "sdb": blank()}, change: func(d *daemon) { d.doc.Hints = []string{"serial=S-*"} },
			reason: model.ReasonRootDeviceAmbiguous, says: "sdb (34 MB, serial S-sdb, 512-byte sectors): takes the image",
		},
		"a member of a RAID of the firmware (N24)": {
			disks: map[string]*memoryDisk{"sda": on(blank(), span2{32*mebibyte - 1024, "Intel Raid ISM Cfg Sig. 1.1.00"})}, reason: model.ReasonRootDeviceMissing,
			says: "Intel VROC",
		},
		"there is no room for the seed behind the image": {
			disks: map[string]*memoryDisk{"sda": newMemoryDisk(22 * mebibyte)}, reason: model.ReasonSeedNoRoom,
		},
		"the table of chunks is another than the document says": {
			disks: map[string]*memoryDisk{"sda": blank()}, reason: model.ReasonDigestMismatch, says: "the table of chunks has digest",
			change: func(d *daemon) { d.table[20]++ },
		},
		"the first chunk is never what the table says": {
			disks: map[string]*memoryDisk{"sda": blank()}, reason: model.ReasonDigestMismatch, says: "chunk 0 of the image has SHA-256",
			change: func(d *daemon) {
				d.chunks = bytes.Clone(d.chunks)
				d.chunks[100]++
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			fastRetries(t)
			d := serve(t, image)
			if test.change != nil {
				test.change(d)
			}
			before, seed := make(map[string]uint64), maphash.MakeSeed()
			for name, m := range test.disks {
				before[name] = maphash.Bytes(seed, m.b)
				m.cutAfter = -1
			}
			must.Do(t, machineOf(d, test.disks).Run(t.Context(), d.url(), "uuid"))
			last, _ := d.outcome()
			if last.Reason != test.reason || !strings.Contains(last.Message, test.says) {
				t.Errorf("reported %q: %q\nwant %q: %q", last.Reason, last.Message, test.reason, test.says)
			}
			if strings.Contains(fmt.Sprint(d.reports), token) {
				t.Error("a report shows the token")
			}
			for name, m := range test.disks {
				if before[name] != maphash.Bytes(seed, m.b) {
					t.Errorf("disk %s was written to", name)
				}
			}
		})
	}
}

// fastRetries has nothing waited for in a test of real connections.
func fastRetries(t *testing.T) {
	t.Helper()
	pause, late := firstPause, lateDisk
	firstPause, lateDisk = 1, 0
	t.Cleanup(func() { firstPause, lateDisk = pause, late })
}

func TestWhatMayBeOverwritten(t *testing.T) {
	tests := map[string]struct {
		change func(*daemon)
		disk   func(t *testing.T) *memoryDisk
	}{
		"what the claim lets be overwritten (N25)": {
			change: func(d *daemon) { d.doc.MayOverwrite = true },
			disk:   func(t *testing.T) *memoryDisk { return gptDisk(t, "data", "dddddddd-0000-4000-8000-000000000000") },
		},
		"the disk of the last install": {
			change: func(d *daemon) { d.doc.Previous = &model.RootDisk{Serial: "S-sda"} },
			disk:   func(t *testing.T) *memoryDisk { return gptDisk(t, "data", "dddddddd-0000-4000-8000-000000000000") },
		},
		"an install that was not finished": {
			disk: func(t *testing.T) *memoryDisk {
				m := newMemoryDisk(32 * mebibyte)
				copy(m.b[markerAt:], marker)
				copy(m.b[32*mebibyte-512:], "EFI PART")
				return m
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			image := imageOf(t, 21, 512)
			d := serve(t, image)
			if test.change != nil {
				test.change(d)
			}
			m := test.disk(t)
			must.Do(t, machineOf(d, map[string]*memoryDisk{"sda": m}).Run(t.Context(), d.url(), "uuid"))
			if last, _ := d.outcome(); last.Reason != "" {
				t.Fatalf("install failed: %+v", last)
			}
			compareDisk(t, m.b, image, d)
		})
	}
}

func TestASeedOfAFormerInstallIsClearedOnOtherDisks(t *testing.T) {
	d := serve(t, imageOf(t, 21, 512))
	disks := map[string]*memoryDisk{"sda": newMemoryDisk(32 * mebibyte), "sdb": fatDisk(t, seedPartition, "cidata")}
	copy(disks["sdb"].b[10*mebibyte:], "somebody's data")
	must.Do(t, machineOf(d, disks).Run(t.Context(), d.url(), "uuid"))
	if last, _ := d.outcome(); last.Stage != model.DiskRebooting || last.Reason != "" {
		t.Errorf("last report: %+v", last)
	}
	b := disks["sdb"].b
	if !bytes.Equal(b[mebibyte:5*mebibyte], make([]byte, 4*mebibyte)) {
		t.Error("the seed is still there")
	}
	if !bytes.HasPrefix(b[10*mebibyte:], []byte("somebody's data")) || string(b[512:520]) != "EFI PART" {
		t.Error("more than the seed was cleared")
	}
}

// A disk on a storage network may be another machine's as well.
func TestASeedOnAStorageNetworkIsNotCleared(t *testing.T) {
	fastRetries(t)
	d := serve(t, imageOf(t, 21, 512))
	disks := map[string]*memoryDisk{"sda": newMemoryDisk(32 * mebibyte), "sdb": fatDisk(t, seedPartition, "cidata")}
	before := bytes.Clone(disks["sdb"].b)
	machine := machineOf(d, disks)
	local := machine.Disks
	machine.Disks = func() []inventory.Disk {
		list := local()
		list[1].Remote = true
		return list
	}
	must.Do(t, machine.Run(t.Context(), d.url(), "uuid"))
	if last, _ := d.outcome(); last.Reason != model.ReasonDuplicateIdentity || !strings.Contains(last.Message, "disk sdb (serial number S-sdb) is on a storage network") {
		t.Errorf("last report: %+v", last)
	}
	if !bytes.Equal(disks["sdb"].b, before) || !bytes.Equal(disks["sda"].b, make([]byte, 32*mebibyte)) {
		t.Error("a disk was written to")
	}
}

func TestAnInstallThatIsWholeIsNotWrittenAgain(t *testing.T) {
	image := imageOf(t, 21, 512)
	d := serve(t, image)
	m := newMemoryDisk(32 * mebibyte)
	machine := machineOf(d, map[string]*memoryDisk{"sda": m})
	must.Do(t, machine.Run(t.Context(), d.url(), "uuid"))
	copy(m.b[14*mebibyte:], "what the system wrote since")
	before := bytes.Clone(m.b)
	d.reports = nil
	must.Do(t, machine.Run(t.Context(), d.url(), "uuid"))
	road := []model.DiskInstallStage{model.DiskProbeBooted, model.DiskChosen, model.DiskVerified, model.DiskBootEntry, model.DiskRebooting}
	last, stages := d.outcome()
	compareStages(t, road, stages)
	if last.Reason != "" {
		t.Errorf("last report: %+v", last)
	}
	if !bytes.Equal(before, m.b) {
		t.Error("the disk was written to")
	}
	d.reports, d.doc.Install, d.doc.Previous = nil, "install-2", &model.RootDisk{Serial: "S-sda"}
	d.doc.Seed.Files["meta-data"] = "instance-id: install-2\n"
	must.Do(t, machine.Run(t.Context(), d.url(), "uuid"))
	if bytes.Contains(m.b, []byte("what the system wrote since")) || !bytes.Contains(m.b, []byte("instance-id: install-2")) {
		t.Error("another install was taken for it (N61)")
	}
}

func TestAPowerCutLeavesNothingOrAll(t *testing.T) {
	for _, sector := range []int{512, 4096} {
		t.Run(fmt.Sprintf("%d-byte sectors", sector), func(t *testing.T) { cutAtEachWrite(t, sector) })
	}
}

// cutAtEachWrite cuts an install off before each of its writes, and begins it again.
func cutAtEachWrite(t *testing.T, sector int) {
	t.Helper()
	image := imageOf(t, 21, sector)
	step := 1
	if testing.Short() {
		step = 5 // the last writes decide: from the 20th on each is tried
	}
	for cut := 0; ; cut += step {
		if cut >= 20 {
			step = 1
		}
		d := serve(t, image)
		m := newMemoryDisk(32 * mebibyte)
		m.sector, d.doc.Image.SectorSize = sector, sector
		m.cutAfter = cut
		must.Do(t, machineOf(d, map[string]*memoryDisk{"sda": m}).Run(t.Context(), d.url(), "uuid"))
		last, _ := d.outcome()
		if last.Reason == "" {
			if cut < 20 {
				t.Errorf("there were %d writes only", cut)
			}
			break
		}
		if last.Reason != model.ReasonDiskWriteFailed || !strings.Contains(last.Message, "serial number S-sda") {
			t.Errorf("cut %d: reported %q, %q", cut, last.Reason, last.Message)
		}
		if _, ok := gpt.ReadMBR(m.b); ok {
			t.Fatalf("cut after %d writes: the disk has a partition table", cut)
		}
		if lookAt(m, int64(len(m.b))).ours(d.doc.Install) {
			t.Errorf("cut after %d writes: the disk is taken for whole", cut)
		}
		m.cutAfter, d.reports = -1, nil
		must.Do(t, machineOf(d, map[string]*memoryDisk{"sda": m}).Run(t.Context(), d.url(), "uuid"))
		if last, _ := d.outcome(); last.Reason != "" {
			t.Fatalf("cut after %d writes: the next attempt fails: %q", cut, last.Message)
		}
		compareDisk(t, m.b, image, d)
	}
}

func TestASerialNumberThatConfiguresTheSystemIsWarnedOf(t *testing.T) {
	d := serve(t, imageOf(t, 21, 512))
	machine := machineOf(d, map[string]*memoryDisk{"sda": newMemoryDisk(32 * mebibyte)})
	machine.Product = func() string { return "ds=nocloud;s=http://192.0.2.1/\n" }
	must.Do(t, machine.Run(t.Context(), d.url(), "uuid"))
	if last, _ := d.outcome(); !strings.Contains(last.Warning, "ds=nocloud") || last.Stage != model.DiskRebooting {
		t.Errorf("last report: %+v", last)
	}
}

// What starts by the loader for removable media needs no boot entry.
func TestABootEntryThatCannotBeMadeEndsNoInstall(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		warn bool
	}{
		"the firmware's memory is full (N46)": {unix.ENOSPC, true},
		"the firmware is a BIOS (N52)":        {efi.ErrNone, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := serve(t, imageOf(t, 21, 512))
			d.doc.BootEntry = "Ingot web-1"
			machine := machineOf(d, map[string]*memoryDisk{"sda": newMemoryDisk(32 * mebibyte)})
			machine.Firmware = func() (efi.Variables, error) { return efi.Variables{}, test.err }
			must.Do(t, machine.Run(t.Context(), d.url(), "uuid"))
			last, _ := d.outcome()
			if last.Stage != model.DiskRebooting || last.Reason != "" || strings.Contains(last.Warning, "no boot entry") != test.warn {
				t.Errorf("last report: %+v", last)
			}
		})
	}
}

func TestADiskThatLiesIsSaidTo(t *testing.T) {
	d := serve(t, imageOf(t, 21, 512))
	m := newMemoryDisk(32 * mebibyte)
	m.lies = true
	must.Do(t, machineOf(d, map[string]*memoryDisk{"sda": m}).Run(t.Context(), d.url(), "uuid"))
	if last, _ := d.outcome(); last.Reason != model.ReasonDiskLies {
		t.Errorf("reported %q: %q, want DiskLies", last.Reason, last.Message)
	}
	if _, ok := gpt.ReadMBR(m.b); ok {
		t.Error("the disk has a partition table")
	}
}

func TestTransfersThatBreak(t *testing.T) {
	tests := map[string]struct {
		fault  func(w http.ResponseWriter, r *http.Request, asked int) bool
		reason model.Reason
	}{
		"the connection is cut in each chunk, at its second half (N38)": {fault: func(w http.ResponseWriter, r *http.Request, asked int) bool {
			if asked%2 == 1 || !strings.HasSuffix(r.URL.Path, "/chunks") {
				return false
			}
			w.Header().Set("Content-Range", strings.Replace(r.Header.Get("Range"), "bytes=", "bytes ", 1)+"9/10")
			w.Header().Set("Content-Length", "99999999")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(make([]byte, 2*mebibyte))
			panic(http.ErrAbortHandler)
		}},
		"a short body": {fault: func(w http.ResponseWriter, r *http.Request, asked int) bool {
			if asked != 2 || !strings.HasSuffix(r.URL.Path, "/chunks") {
				return false
			}
			w.Header().Set("Content-Range", strings.Replace(r.Header.Get("Range"), "bytes=", "bytes ", 1)+"9/10")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(make([]byte, 100))
			return true
		}},
		"an answer that leaves out the range": {fault: func(w http.ResponseWriter, r *http.Request, asked int) bool {
			r.Header.Del("Range")
			return false
		}, reason: model.ReasonInstallFailed},
		"a daemon that prepares the image anew (N39)": {fault: func(w http.ResponseWriter, r *http.Request, asked int) bool {
			if asked != 2 || !strings.HasSuffix(r.URL.Path, "/chunks") {
				return false
			}
			w.Header().Set("Retry-After", "1")
			http.Error(w, "not yet", http.StatusServiceUnavailable)
			return true
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			fastRetries(t)
			limit := patience
			patience = 0
			if test.reason == "" {
				patience = limit
			}
			t.Cleanup(func() { patience = limit })
			image := imageOf(t, 21, 512)
			d := serve(t, image)
			d.fault = test.fault
			m := newMemoryDisk(32 * mebibyte)
			must.Do(t, machineOf(d, map[string]*memoryDisk{"sda": m}).Run(t.Context(), d.url(), "uuid"))
			last, _ := d.outcome()
			if last.Reason != test.reason || strings.Contains(last.Message, token) {
				t.Fatalf("reported %q: %q, want %q", last.Reason, last.Message, test.reason)
			}
			if test.reason == "" {
				compareDisk(t, m.b, image, d)
			}
		})
	}
}

func TestVerifiedIsReportedUntilItIsAccepted(t *testing.T) {
	fastRetries(t)
	d := serve(t, imageOf(t, 21, 512))
	refused := 0
	d.refuse = func(p model.ProbeInstall) error {
		if p.Stage == model.DiskVerified && refused < 2 {
			refused++
			return errors.New("no leader")
		}
		return nil
	}
	must.Do(t, machineOf(d, map[string]*memoryDisk{"sda": newMemoryDisk(32 * mebibyte)}).Run(t.Context(), d.url(), "uuid"))
	_, stages := d.outcome()
	compareStages(t, wholeRoad, stages)
	if refused != 2 {
		t.Errorf("Verified was refused %d times, want 2", refused)
	}
}
