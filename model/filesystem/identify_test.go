package filesystem

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model/must"
	"ingot/model/testtool"
)

const testUUID = "11223344-5566-7788-99aa-bbccddeeff00"

var testBytes = []byte("\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff\x00")

// TestWhatToolsMakeIsIdentified makes filesystems by their own tools, and reads them as blkid
// does.
func TestWhatToolsMakeIsIdentified(t *testing.T) {
	const mebibyte = 1 << 20
	tests := map[string]struct {
		size int64
		make []string // the file follows
		want ID
	}{
		"ext2": {16 * mebibyte, []string{"mkfs.ext2", "-q", "-F", "-L", "boot", "-U", testUUID}, ID{"ext2", "boot", testUUID}},
		"ext3": {16 * mebibyte, []string{"mkfs.ext3", "-q", "-F", "-L", "boot", "-U", testUUID}, ID{"ext3", "boot", testUUID}},
		"ext4": {16 * mebibyte, []string{"mkfs.ext4", "-q", "-F", "-L", "boot", "-U", testUUID}, ID{"ext4", "boot", testUUID}},
		"ext4 of the oldest features": {
			16 * mebibyte, []string{"mkfs.ext4", "-q", "-F", "-O", "^64bit,^metadata_csum,^flex_bg,^huge_file,^dir_nlink,^extra_isize", "-U", testUUID}, ID{"ext4", "", testUUID},
		},
		"xfs":   {320 * mebibyte, []string{"mkfs.xfs", "-q", "-L", "root", "-m", "uuid=" + testUUID}, ID{"xfs", "root", testUUID}},
		"btrfs": {128 * mebibyte, []string{"mkfs.btrfs", "-q", "-L", "OEM", "-U", testUUID}, ID{"btrfs", "OEM", testUUID}},
		"FAT12": {2 * mebibyte, []string{"mkfs.vfat", "-F", "12", "-n", "CIDATA", "-i", "1234abcd"}, ID{"vfat", "CIDATA", "1234-abcd"}},
		"FAT16": {32 * mebibyte, []string{"mkfs.vfat", "-F", "16", "-n", "EFI", "-i", "1234abcd"}, ID{"vfat", "EFI", "1234-abcd"}},
		"FAT32": {64 * mebibyte, []string{"mkfs.vfat", "-F", "32", "-n", "EFI-SYSTEM", "-i", "1234abcd"}, ID{"vfat", "EFI-SYSTEM", "1234-abcd"}},
		"FAT32 on sectors of 4096 bytes": {
			512 * mebibyte, []string{"mkfs.vfat", "-F", "32", "-S", "4096", "-s", "1", "-n", "EFI", "-i", "1234abcd"}, ID{"vfat", "EFI", "1234-abcd"},
		},
		"FAT without a label": {2 * mebibyte, []string{"mkfs.vfat", "-i", "1234abcd"}, ID{"vfat", "", "1234-abcd"}},
		"swap":                {16 * mebibyte, []string{"mkswap", "-q", "-L", "swap", "-U", testUUID}, ID{"swap", "swap", testUUID}},
		"swap of large pages": {16 * mebibyte, []string{"mkswap", "-q", "-p", "65536", "-L", "swap", "-U", testUUID}, ID{"swap", "swap", testUUID}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "image")
			must.Do(t, os.WriteFile(path, nil, 0o600))
			must.Do(t, os.Truncate(path, test.size))
			if out, err := exec.Command(testtool.Path(t, test.make[0]), append(test.make[1:], path)...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %v\n%s", test.make, err, out)
			}
			f := must.Get(os.Open(path))(t)
			defer f.Close()
			got, _ := Identify(f, test.size)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("content (-want +got):\n%s", diff)
			}
			compareWithBlkid(t, path, got)
		})
	}
}

func compareWithBlkid(t *testing.T, path string, got ID) {
	t.Helper()
	tool, err := exec.LookPath("blkid")
	if err != nil {
		return
	}
	out, _ := exec.Command(tool, "-p", "-o", "export", path).Output()
	said := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		said[key] = value
	}
	kind := got.Type
	if kind == LUKS1 || kind == LUKS2 {
		kind = "crypto_LUKS" // blkid has the version elsewhere
	}
	want := ID{said["TYPE"], strings.ReplaceAll(said["LABEL"], `\ `, " "), said["UUID"]}
	if kind != LVM { // whose UUID has letters of both cases
		want.UUID = strings.ToLower(want.UUID)
	}
	if diff := cmp.Diff(want, ID{kind, got.Label, got.UUID}); diff != "" {
		t.Errorf("content (-blkid +got):\n%s", diff)
	}
}

// span is what lies at an offset, from the end if that is negative.
type span struct {
	at   int64
	what string
}

func TestSignatures(t *testing.T) {
	u := string(testBytes)
	tests := map[string]struct {
		size  int64
		spans []span
		want  ID
		blkid bool // knows a header as bare as this
	}{
		"nothing":       {size: 1 << 20},
		"an empty disk": {size: 0},
		"md 1.0 at the tail": {
			size: 1<<20 + 512, spans: []span{{1<<20 - 8192, "\xfc\x4e\x2b\xa9\x01\x00\x00\x00"}, {1<<20 - 8192 + 16, u + "host:0"}},
			want: ID{LinuxRAID, "host:0", testUUID},
		},
		"md 1.1": {size: 1 << 20, spans: []span{{0, "\xfc\x4e\x2b\xa9\x01\x00\x00\x00"}, {16, u + "host:1"}}, want: ID{LinuxRAID, "host:1", testUUID}},
		"md 1.2": {size: 1 << 20, spans: []span{{4096, "\xfc\x4e\x2b\xa9\x01\x00\x00\x00"}, {4096 + 16, u + "host:2"}}, want: ID{LinuxRAID, "host:2", testUUID}},
		"md 0.90 over a filesystem": {
			size: 1<<20 + 4096, spans: []span{
				{1<<20 - 65536, "\xfc\x4e\x2b\xa9\x00\x00\x00\x00\x5a\x00\x00\x00"}, {1<<20 - 65536 + 20, u[:4]}, {1<<20 - 65536 + 52, u[4:]}, {1024 + 56, "\x53\xef"},
			},
			want: ID{LinuxRAID, "", testUUID},
		},
		"LVM in the second sector": {
			size: 1 << 20, spans: []span{{512, "LABELONE"}, {512 + 20, "\x20\x00\x00\x00LVM2 001"}, {512 + 32, "AAAAAAbbbbCCCCddddEEEEffffGGGGGG"}},
			want: ID{LVM, "", "AAAAAA-bbbb-CCCC-dddd-EEEE-ffff-GGGGGG"},
		},
		"LVM whose label points out of its sector": {
			size: 1 << 20, spans: []span{{512, "LABELONE"}, {512 + 20, "\xff\xff\xff\xffLVM2 001"}}, want: ID{Type: LVM},
		},
		"LUKS 1": {size: 1 << 20, spans: []span{{0, "LUKS\xba\xbe\x00\x01"}, {168, testUUID}}, want: ID{LUKS1, "", testUUID}, blkid: true},
		"LUKS 2": {size: 1 << 20, spans: []span{{0, "LUKS\xba\xbe\x00\x02"}, {24, "data"}, {168, testUUID}}, want: ID{LUKS2, "data", testUUID}},
		"LUKS 2 whose first header is gone": {
			size: 1 << 20, spans: []span{{0x4000, "SKUL\xba\xbe\x00\x02"}, {0x4000 + 168, testUUID}}, want: ID{LUKS2, "", testUUID},
		},
		"ZFS at the head":                       {size: 4 << 20, spans: []span{{128<<10 + 5<<10, "\x0c\xb1\xba\x00\x00\x00\x00\x00"}}, want: ID{Type: ZFS}},
		"ZFS at the tail":                       {size: 4<<20 + 512, spans: []span{{4<<20 - 128<<10, "\x00\x00\x00\x00\x00\xba\xb1\x0c"}}, want: ID{Type: ZFS}},
		"bcache":                                {size: 1 << 20, spans: []span{{4096 + 24, "\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81" + u}}, want: ID{"bcache", "", testUUID}},
		"Intel's RAID, by its first volume":     {size: 1 << 20, spans: []span{{-1024, "Intel Raid ISM Cfg Sig. 1.1.00"}, {-1024 + 56, "\x02"}, {-1024 + 216 + 96, "Volume0"}}, want: ID{Type: IntelRAID, Label: "Volume0"}},
		"Intel's RAID, with more disks than it": {size: 1 << 20, spans: []span{{-1024, "Intel Raid ISM Cfg Sig. 1.1.00"}, {-1024 + 56, "\xff"}}, want: ID{Type: IntelRAID}},
		"DDF":                                   {size: 1 << 20, spans: []span{{-512, "\xde\x11\xde\x11"}}, want: ID{Type: FirmwareDDF}},
		"a CD": {
			size: 1 << 20, spans: []span{{32768, "\x01CD001"}, {32768 + 40, "cidata                          "}, {32768 + 813, "2026112012345600"}, {32768 + 830, "0000000000000000"}},
			want: ID{"iso9660", "cidata", "2026-11-20-12-34-56-00"},
		},
		"XFS":   {size: 1 << 20, spans: []span{{0, "XFSB"}, {32, u}, {108, "root"}}, want: ID{"xfs", "root", testUUID}},
		"Btrfs": {size: 1 << 20, spans: []span{{65536 + 32, u}, {65536 + 64, "_BHRfS_M"}, {65536 + 299, "OEM"}}, want: ID{"btrfs", "OEM", testUUID}},
		"NTFS":  {size: 1 << 20, spans: []span{{3, "NTFS    "}, {510, "\x55\xaa"}}, want: ID{Type: "ntfs"}},
		"boot code that names FAT and has no parameters": {
			size: 1 << 20, spans: []span{{82, "FAT32   "}, {510, "\x55\xaa"}},
		},
		"a FAT whose root directory is not on the disk": {
			size: 1 << 20, spans: []span{{11, "\x00\x02\x01\xff\xff\x02\xff\xff"}, {22, "\xff\xff"}, {39, "\xcd\xab\x34\x12cidata     FAT12   "}, {510, "\x55\xaa"}},
			want: ID{"vfat", "cidata", "1234-abcd"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			image := make([]byte, test.size)
			for _, s := range test.spans {
				at := s.at
				if at < 0 {
					at += test.size
				}
				copy(image[at:], s.what)
			}
			got, ok := Identify(bytes.NewReader(image), test.size)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("content (-want +got):\n%s", diff)
			}
			if ok != (got.Type != "") {
				t.Errorf("identified: %v, with type %q", ok, got.Type)
			}
			if test.blkid {
				path := filepath.Join(t.TempDir(), "image")
				must.Do(t, os.WriteFile(path, image, 0o600))
				compareWithBlkid(t, path, got)
			}
		})
	}
}

func FuzzIdentify(f *testing.F) {
	f.Add([]byte("XFSB"), uint16(0))
	f.Add([]byte("LABELONE0000000000000000LVM2 001"), uint16(512))
	f.Fuzz(func(t *testing.T, header []byte, at uint16) {
		image := make([]byte, 192<<10)
		copy(image[at:], header)
		Identify(bytes.NewReader(image), int64(len(image)))
		Identify(bytes.NewReader(image), 1<<40) // says more than it has
	})
}
