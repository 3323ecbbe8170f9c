package diskimage

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"ingot/bootsvc/diskimage/diskimagetest"
	"ingot/model"
	"ingot/model/must"
)

// csv is a file for shim's fallback.
func csv(text string) []byte {
	raw := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune(text)) {
		raw = binary.LittleEndian.AppendUint16(raw, unit)
	}
	return raw
}

func TestWaysToStart(t *testing.T) {
	loader := []byte("MZ")
	for name, test := range map[string]struct {
		disk []byte
		want []model.StartMethod
	}{
		"boot code in the master boot record": {diskimagetest.Disk(diskimagetest.Options{BootCode: true}), []model.StartMethod{model.StartBIOS}},
		"a loader at the path for removable media": {
			diskimagetest.Disk(diskimagetest.Options{ESP: diskimagetest.Bootable()}), []model.StartMethod{model.StartUEFIAMD64},
		},
		"a loader of each architecture, and boot code": {
			diskimagetest.Disk(diskimagetest.Options{BootCode: true, ESP: map[string][]byte{"EFI/BOOT/BOOTX64.EFI": loader, "EFI/BOOT/BOOTAA64.EFI": loader}}),
			[]model.StartMethod{model.StartBIOS, model.StartUEFIAMD64, model.StartUEFIARM64},
		},
		"a loader on sectors of 4096 bytes": {
			diskimagetest.Disk(diskimagetest.Options{SectorSize: 4096, ESP: diskimagetest.Bootable()}), []model.StartMethod{model.StartUEFIAMD64},
		},
		"a loader that a file for the fallback names": {
			diskimagetest.Disk(diskimagetest.Options{ESP: map[string][]byte{"EFI/DEBIAN/BOOTX64.CSV": csv("shimx64.efi,debian,,This is it\n"), "EFI/DEBIAN/SHIMX64.EFI": loader}}),
			[]model.StartMethod{model.StartUEFIAMD64},
		},
		"N12 a file for the fallback whose loader is not there": {
			diskimagetest.Disk(diskimagetest.Options{ESP: map[string][]byte{"EFI/DEBIAN/BOOTX64.CSV": csv("shimx64.efi,debian,,\n")}}), nil,
		},
		"N12 an empty loader":                    {diskimagetest.Disk(diskimagetest.Options{ESP: map[string][]byte{"EFI/BOOT/BOOTX64.EFI": nil}}), nil},
		"N12 an EFI system partition of nothing": {diskimagetest.Disk(diskimagetest.Options{ESP: map[string][]byte{}}), nil},
		"N12 neither loader nor boot code":       {diskimagetest.Disk(diskimagetest.Options{}), nil},
		"an EFI system partition in a master boot record": {
			mbrDisk(4*mib, func([]byte) {}), []model.StartMethod{model.StartUEFIAMD64},
		},
		"a master boot record with boot code": {
			mbrDisk(4*mib, func(d []byte) { d[0] = 0xfa; d[446+4] = 0x83 }), []model.StartMethod{model.StartBIOS},
		},
	} {
		t.Run(name, func(t *testing.T) {
			img := prepared(t, storeFor(t, nil), test.disk)
			if diff := cmp.Diff(test.want, img.Disk.Starts); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatAnImageIs(t *testing.T) {
	for _, sectorSize := range []int{512, 4096} {
		disk := diskimagetest.Disk(diskimagetest.Options{SectorSize: sectorSize, BootCode: true, ESP: diskimagetest.Bootable()})
		img := prepared(t, storeFor(t, nil), zstdOf(disk))
		want := Image{
			Disk: model.DiskImage{
				Ref: "registry.example/os:1", Digest: diskimagetest.SHA256(zstdOf(disk)), Format: "raw", Compression: "zstd",
				Bytes: 16 * mib, Data: 3 * 4 * mib, SectorSize: sectorSize,
				Starts: []model.StartMethod{model.StartBIOS, model.StartUEFIAMD64},
			},
			Identities: model.DiskIdentities{
				Labels: []string{"INGOTTEST"}, UUIDs: []string{"cdab-3412"},
				GUIDs: []string{diskimagetest.DiskGUID, diskimagetest.ESPGUID, diskimagetest.DataGUID},
			},
			TableDigest: img.TableDigest, File: int64(len(zstdOf(disk))), Stored: img.Stored,
			PartitionTable: "gpt",
			Partitions: []Partition{
				{Number: 1, Type: "c12a7328-f81f-11d2-ba4b-00a0c93ec93b", GUID: diskimagetest.ESPGUID, Name: "esp", First: mib, Bytes: 4 * mib, Filesystem: "vfat", Label: "INGOTTEST", UUID: "cdab-3412"},
				{Number: 2, Type: "0fc63daf-8483-4772-8e79-3d69d8477de4", GUID: diskimagetest.DataGUID, Name: "root", First: 5 * mib, Bytes: 10 * mib},
			},
		}
		for n := range img.Partitions {
			img.Partitions[n].esp = false
		}
		if diff := cmp.Diff(want, img, cmp.AllowUnexported(Partition{})); diff != "" {
			t.Errorf("sectors of %d:\n%s", sectorSize, diff)
		}
	}
}

// A disk as a distribution makes it: by sfdisk, mkfs and mtools, with long names.
func TestImageOfOtherTools(t *testing.T) {
	espSize := map[string]int64{"512": 40 * mib, "4096": 270 * mib} // a FAT32 has 65525 clusters or more
	for _, sectorSize := range []string{"512", "4096"} {
		if sectorSize == "4096" && testing.Short() {
			t.Log("sectors of 4096 bytes take long: run them without -short")
			continue
		}
		dir := t.TempDir()
		esp, root := filepath.Join(dir, "esp"), filepath.Join(dir, "root")
		for path, size := range map[string]int64{esp: espSize[sectorSize], root: 16 * mib} {
			must.Do(t, os.WriteFile(path, nil, 0o600))
			must.Do(t, os.Truncate(path, size))
		}
		run(t, "mkfs.vfat", "-F", "32", "-s", "1", "-S", sectorSize, "-n", "EFI", "-i", "ABCD1234", esp)
		run(t, "mke2fs", "-q", "-t", "ext4", "-L", "cloudimg-rootfs", "-U", "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee", root)
		run(t, "mmd", "-i", esp, "::/EFI", "::/EFI/rockylinux", "::/EFI/rockylinux/a folder with a long name")
		for name, content := range map[string][]byte{"BOOTX64.CSV": csv("shimx64-rocky.efi,Rocky,,\r\n"), "shimx64-rocky.efi": []byte("MZ")} {
			run(t, "mcopy", "-i", esp, fileWith(t, "file", content), "::/EFI/rockylinux/"+name)
		}
		o := diskimagetest.Options{Bytes: int(espSize[sectorSize]) + 24*mib}
		if sectorSize == "4096" { // of which sfdisk makes none in a file
			o.SectorSize = 4096
		}
		img := prepared(t, storeFor(t, nil), diskimagetest.Assemble(o, mustRead(t, esp), mustRead(t, root)))
		wantIDs := model.DiskIdentities{
			Labels: []string{"EFI", "cloudimg-rootfs"}, UUIDs: []string{"aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee", "abcd-1234"},
			GUIDs: []string{diskimagetest.DiskGUID, diskimagetest.ESPGUID, diskimagetest.DataGUID},
		}
		if diff := cmp.Diff(wantIDs, img.Identities); diff != "" || !slices.Equal(img.Disk.Starts, []model.StartMethod{model.StartUEFIAMD64}) {
			t.Errorf("sectors of %s: starts %v\n%s", sectorSize, img.Disk.Starts, diff)
		}
	}
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	return must.Get(os.ReadFile(path))(t)
}

// Logical partitions of a master boot record are found, as long as their chain is.
func TestLogicalPartitions(t *testing.T) {
	disk := make([]byte, 32*mib)
	file := fileWith(t, "disk", disk)
	script := fileWith(t, "script", []byte("label: dos\n1 : size=4MiB, type=83\n2 : size=26MiB, type=5\n5 : size=4MiB, type=83\n6 : size=8MiB, type=83\n"))
	in := must.Get(os.Open(script))(t)
	defer in.Close()
	runWith(t, in, "sfdisk", "-q", file)
	img := prepared(t, storeFor(t, nil), mustRead(t, file))
	var numbers []int
	var sizes []uint64
	for _, p := range img.Partitions {
		numbers, sizes = append(numbers, p.Number), append(sizes, p.Bytes/mib)
	}
	if img.PartitionTable != "mbr" || !slices.Equal(numbers, []int{1, 5, 6}) || !slices.Equal(sizes, []uint64{4, 4, 8}) {
		t.Errorf("%s: %v of %v MiB", img.PartitionTable, numbers, sizes)
	}
}
