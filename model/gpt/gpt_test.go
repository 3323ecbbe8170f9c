package gpt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model/must"
	"ingot/model/testtool"
)

const (
	diskGUID = "01234567-89ab-4cde-8f01-23456789abcd"
	espGUID  = "11111111-2222-4333-8444-555555555555"
	rootGUID = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"
)

const mib = 1 << 20

func example(sectorSize int, disk uint64) Table {
	t := New(sectorSize, disk, diskGUID)
	per := uint64(mib / sectorSize)
	copy(t.MBR[:], "boot code")
	t.Partitions = []Partition{
		{Number: 1, Type: TypeLinuxData, GUID: rootGUID, First: 4 * per, Last: 8*per - 1, Name: "röot", Attributes: AttributeLegacyBoot},
		{Number: 14, Type: TypeBIOSBoot, GUID: "14141414-1414-4414-8414-141414141414", First: per, Last: 2*per - 1},
		{Number: 15, Type: TypeESP, GUID: espGUID, First: 2 * per, Last: 4*per - 1, Name: strings.Repeat("e", 36)},
	}
	return t
}

func written(t *testing.T, table Table) []byte {
	t.Helper()
	head, tail, err := table.Encode()
	if err != nil {
		t.Fatal(err)
	}
	disk := make([]byte, table.Sectors*uint64(table.SectorSize))
	copy(disk, head)
	copy(disk[len(disk)-len(tail):], tail)
	return disk
}

func TestTableIsReadAsItWasWritten(t *testing.T) {
	for _, sectorSize := range []int{512, 4096} {
		want := example(sectorSize, 16*mib)
		disk := written(t, want)
		got, err := Read(bytes.NewReader(disk), int64(len(disk)))
		protect(want.MBR[:], want.Sectors)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("sectors of %d: %v\n%s", sectorSize, err, diff)
		}
		mbr, ok := ReadMBR(disk)
		if !ok || !mbr.BootCode || !mbr.Protective || uint64(mbr.Partitions[0].Sectors) != want.Sectors-1 {
			t.Errorf("sectors of %d: ReadMBR: %v %+v", sectorSize, ok, mbr)
		}
	}
}

// withSums changes a table and makes its checksums right again.
func withSums(disk []byte, change func(header, entries []byte)) {
	header, entries := disk[512:604], disk[1024:1024+128*128]
	change(header, entries)
	binary.LittleEndian.PutUint32(header[88:], crc32.ChecksumIEEE(entries))
	binary.LittleEndian.PutUint32(header[16:], headerSum(header))
}

func TestTableThatIsBrokenIsRefused(t *testing.T) {
	put64 := binary.LittleEndian.PutUint64
	for name, test := range map[string]struct {
		change func(disk []byte)
		want   string
	}{
		"a byte of its header is another":        {func(d []byte) { d[512+41]++ }, "the checksum of its header is wrong"},
		"a byte of its entries is another":       {func(d []byte) { d[1024+127]++ }, "the checksum of its entries is wrong"},
		"a header of no length":                  {func(d []byte) { d[512+12] = 0 }, "its header has 0 bytes"},
		"a header that says it is elsewhere":     {func(d []byte) { withSums(d, func(h, _ []byte) { put64(h[24:], 5) }) }, "it is in 1"},
		"entries that are elsewhere":             {func(d []byte) { withSums(d, func(h, _ []byte) { put64(h[72:], 1<<40) }) }, "only 2 is supported"},
		"entries without number":                 {func(d []byte) { withSums(d, func(h, _ []byte) { put64(h[80:], 1<<32-1) }) }, "1 to 1024 are supported"},
		"entries of an odd size":                 {func(d []byte) { withSums(d, func(h, _ []byte) { h[84] = 129 }) }, "have 129 bytes each"},
		"entries of a size that overflows":       {func(d []byte) { withSums(d, func(h, _ []byte) { h[84], h[87] = 0, 0x80 }) }, "bytes each"},
		"a partition behind the end of the disk": {func(d []byte) { withSums(d, func(_, e []byte) { put64(e[40:], 1<<50) }) }, "partition 1 goes from"},
		"a partition that ends before it begins": {func(d []byte) { withSums(d, func(_, e []byte) { put64(e[40:], 100) }) }, "partition 1 goes from"},
		"room for partitions behind the end":     {func(d []byte) { withSums(d, func(h, _ []byte) { put64(h[48:], 1<<50) }) }, "partitions may go from"},
	} {
		t.Run(name, func(t *testing.T) {
			disk := written(t, example(512, 16*mib))
			test.change(disk)
			_, err := Read(bytes.NewReader(disk), int64(len(disk)))
			if err == nil || errors.Is(err, ErrNone) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestDiskWithoutTable(t *testing.T) {
	for name, disk := range map[string][]byte{
		"nothing":                     nil,
		"zeros":                       make([]byte, mib),
		"a magic at the wrong place":  append(make([]byte, 100), append([]byte("EFI PART"), make([]byte, mib)...)...),
		"a disk of less than a table": append(make([]byte, 512), "EFI PART"...),
	} {
		if _, err := Read(bytes.NewReader(disk), int64(len(disk))); !errors.Is(err, ErrNone) {
			t.Errorf("%s: %v", name, err)
		}
	}
	disk := written(t, example(512, 16*mib))
	if _, err := Read(bytes.NewReader(disk[:2000]), int64(len(disk))); err == nil {
		t.Error("a disk that ends before its size says is read")
	}
}

func TestTableGrowsToItsDisk(t *testing.T) {
	table := example(512, 16*mib)
	grown := table.Grow(64*mib + 100)
	if grown.Sectors != 64*mib/512 || grown.LastUsable != grown.Sectors-34 || len(grown.Partitions) != 3 {
		t.Errorf("grown: %+v", grown)
	}
	if diff := cmp.Diff(table, table.Grow(8*mib)); diff != "" {
		t.Errorf("a smaller disk changes it:\n%s", diff)
	}
	disk := written(t, grown)
	if got, err := Read(bytes.NewReader(disk), int64(len(disk))); err != nil || got.LastUsable != grown.LastUsable {
		t.Errorf("grown: %v", err)
	}
}

func TestPartitionIsAddedBehindAllOthers(t *testing.T) {
	for _, sectorSize := range []int{512, 4096} {
		table := example(sectorSize, 16*mib)
		before := table
		p, err := table.Add(Partition{Type: TypeBasicData, GUID: espGUID, Name: "ingot-seed"}, 4*mib)
		if err != nil || p.Number != 16 || p.Sectors()*uint64(sectorSize) != 4*mib || p.First*uint64(sectorSize) != 11*mib {
			t.Errorf("sectors of %d: %+v, %v", sectorSize, p, err)
		}
		if len(before.Partitions) != 3 || len(table.Partitions) != 4 {
			t.Errorf("%d and %d partitions", len(before.Partitions), len(table.Partitions))
		}
	}
}

func TestPartitionWithoutRoomIsRefused(t *testing.T) {
	full := example(512, 16*mib)
	full.Partitions = nil
	for n := range full.Entries {
		full.Partitions = append(full.Partitions, Partition{Number: n + 1, First: 2048, Last: 2048})
	}
	tight := example(512, 16*mib)
	tight.Partitions[0].Last = 12*2048 + 1 // 4 MiB less 34 sectors are free, and 3 MiB aligned
	for name, test := range map[string]struct {
		table Table
		bytes uint64
		want  string
	}{
		"no number is left":         {full, mib, "room for 128"},
		"it has no size":            {tight, 0, "no size"},
		"more than is free":         {tight, 4 * mib, "are free"},
		"no aligned place is free":  {tight, 4*mib - 40*512, "are free"},
		"a size that overflows all": {tight, 1<<64 - 1, "are free"},
	} {
		if p, err := test.table.Add(Partition{}, test.bytes); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	gap := full
	gap.Partitions = append(gap.Partitions[:4:4], gap.Partitions[5:]...)
	if p, err := gap.Add(Partition{}, mib); err != nil || p.Number != 5 {
		t.Errorf("the free number is not taken: %+v, %v", p, err)
	}
}

func TestTableThatCannotBeIsNotWritten(t *testing.T) {
	for name, change := range map[string]func(*Table){
		"a GUID that is none":         func(t *Table) { t.Partitions[0].GUID = "x" },
		"a type that is none":         func(t *Table) { t.Partitions[0].Type = "" },
		"a disk whose GUID is none":   func(t *Table) { t.DiskGUID = "" },
		"a name that is too long":     func(t *Table) { t.Partitions[0].Name = strings.Repeat("x", 37) },
		"a number beyond the entries": func(t *Table) { t.Partitions[0].Number = 129 },
		"a place beyond the disk":     func(t *Table) { t.Partitions[0].Last = t.Sectors },
		"sectors of another size":     func(t *Table) { t.SectorSize = 520 },
		"no room for the backup":      func(t *Table) { t.LastUsable = t.Sectors - 33 },
		"no room for the entries":     func(t *Table) { t.FirstUsable = 33 },
	} {
		table := example(512, 16*mib)
		change(&table)
		if _, _, err := table.Encode(); err == nil {
			t.Errorf("%s: written", name)
		}
	}
}

func TestMasterBootRecord(t *testing.T) {
	sector := make([]byte, 512)
	sector[510], sector[511] = 0x55, 0xaa
	if _, ok := ReadMBR(sector); ok {
		t.Error("one without partitions is a table")
	}
	copy(mbrEntry(sector, 1), []byte{0x80, 0, 0, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 0, 1, 0})
	binary.LittleEndian.PutUint32(sector[440:], 0xdeadbeef)
	want := MBR{Signature: 0xdeadbeef}
	want.Partitions[1] = MBRPartition{Type: 0x83, Active: true, First: 2048, Sectors: 65536}
	if got, ok := ReadMBR(sector); !ok || got != want {
		t.Errorf("got %+v, %v", got, ok)
	}
	sector[0] = 0xfa
	if got, _ := ReadMBR(sector); !got.BootCode {
		t.Error("its boot code is not seen")
	}
	mbrEntry(sector, 3)[0] = 0x41 // text of a filesystem's boot code
	if _, ok := ReadMBR(sector); ok {
		t.Error("the boot sector of a filesystem is a table")
	}
	if _, ok := ReadMBR(sector[:511]); ok {
		t.Error("half a sector is a table")
	}
}

// A table of ours is right for others, and one of theirs for us.
func TestTablesOfOtherPrograms(t *testing.T) {
	file := filepath.Join(t.TempDir(), "disk")
	must.Do(t, os.WriteFile(file, written(t, example(512, 16*mib).Grow(20*mib)), 0o600))
	out := run(t, "", "sgdisk", "-v", file)
	if !strings.Contains(out, "No problems found") {
		t.Errorf("sgdisk -v:\n%s", out)
	}
	script := "label: gpt\nlabel-id: " + diskGUID + "\nsize=4MiB, type=uefi, name=esp, uuid=" + espGUID + "\ntype=linux, attrs=LegacyBIOSBootable\n"
	must.Do(t, os.WriteFile(file, make([]byte, 20*mib), 0o600))
	run(t, script, "sfdisk", "-q", file)
	raw := must.Get(os.ReadFile(file))(t)
	table := must.Get(Read(bytes.NewReader(raw), int64(len(raw))))(t)
	want := Partition{Number: 1, Type: TypeESP, GUID: espGUID, First: 2048, Last: 10239, Name: "esp"}
	if table.DiskGUID != diskGUID || len(table.Partitions) != 2 || table.Partitions[0] != want ||
		table.Partitions[1].Type != TypeLinuxData || table.Partitions[1].Attributes != AttributeLegacyBoot {
		t.Errorf("of sfdisk: %+v", table)
	}
}

func run(t *testing.T, in, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(testtool.Path(t, name), args...)
	cmd.Stdin = strings.NewReader(in)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}

// Whatever is on a disk: what is read can be written, and read again as the same.
func FuzzRead(f *testing.F) {
	for _, sectorSize := range []int{512, 4096} {
		head, _, err := example(sectorSize, 16*mib).Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(head, uint32(16))
	}
	f.Fuzz(func(t *testing.T, head []byte, mebibytes uint32) {
		size := int64(mebibytes%4096+1) * mib
		for at := 512; at+92 <= len(head) && at <= 4096; at += 3584 { // else nothing gets past the checksums
			h := head[at : at+92]
			n := binary.LittleEndian.Uint32(h[80:]) * binary.LittleEndian.Uint32(h[84:])
			if rest := head[min(2*at, len(head)):]; uint64(n) <= uint64(len(rest)) {
				binary.LittleEndian.PutUint32(h[88:], crc32.ChecksumIEEE(rest[:n]))
			}
			binary.LittleEndian.PutUint32(h[16:], headerSum(h))
		}
		disk := sparse{head, size}
		table, err := Read(disk, size)
		_, _ = ReadMBR(head)
		if err != nil {
			return
		}
		grown := table.Grow(uint64(size) + 64*mib)
		encoded, _, err := grown.Encode()
		if err != nil {
			return // a table whose backup lies elsewhere, or whose name is no text
		}
		again, err := Read(sparse{encoded, size + 64*mib}, size+64*mib)
		if err != nil {
			t.Fatalf("what was written is not read: %v", err)
		}
		grown.MBR = again.MBR
		if diff := cmp.Diff(grown, again); diff != "" {
			t.Errorf("not as it was written:\n%s", diff)
		}
	})
}

// sparse is a disk with something at its beginning, and zeros.
type sparse struct {
	head []byte
	size int64
}

func (s sparse) ReadAt(p []byte, at int64) (int, error) {
	if at < 0 || at+int64(len(p)) > s.size {
		return 0, fmt.Errorf("read at %d", at)
	}
	clear(p)
	if at < int64(len(s.head)) {
		copy(p, s.head[at:])
	}
	return len(p), nil
}
