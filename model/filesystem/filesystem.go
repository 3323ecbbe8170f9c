package filesystem

import (
	"fmt"
	"math/bits"
	"strings"
)

// ext knows ext2, ext3 and ext4 by their superblock (Linux, filesystems/ext4/super).
func ext(v view) (ID, bool) {
	h := v.at(1024, 1024)
	if h == nil || le.Uint16(h[56:]) != 0xef53 {
		return ID{}, false
	}
	const journal = 0x4
	// what ext3 cannot have: 64bit, extents, flex_bg and such; huge_file, metadata_csum and such
	const incompatible4, readOnly4 = 0x2f2c0, 0x478 | 0x3000
	id := ID{Type: "ext2", Label: text(h[120:136]), UUID: uuid(h[104:120])}
	switch compatible, incompatible, readOnly := le.Uint32(h[92:]), le.Uint32(h[96:]), le.Uint32(h[100:]); {
	case incompatible&incompatible4 != 0, readOnly&readOnly4 != 0:
		id.Type = "ext4"
	case compatible&journal != 0:
		id.Type = "ext3"
	}
	return id, true
}

func xfs(v view) (ID, bool) {
	h := v.at(0, 512)
	if h == nil || string(h[:4]) != "XFSB" {
		return ID{}, false
	}
	return ID{Type: "xfs", Label: text(h[108:120]), UUID: uuid(h[32:48])}, true
}

func btrfs(v view) (ID, bool) {
	h := v.at(64<<10, 4096)
	if h == nil || string(h[64:72]) != "_BHRfS_M" {
		return ID{}, false
	}
	return ID{Type: "btrfs", Label: text(h[299 : 299+256]), UUID: uuid(h[32:48])}, true
}

// swap knows swap space, whose magic ends its first page: pages differ between architectures.
func swap(v view) (ID, bool) {
	for _, page := range []int64{4 << 10, 8 << 10, 16 << 10, 64 << 10} {
		if v.has(page-10, "SWAPSPACE2") {
			h := v.at(1024, 64)
			return ID{Type: "swap", Label: text(h[28:44]), UUID: uuid(h[12:28])}, true
		}
	}
	return ID{}, false
}

// iso9660 knows a CD's filesystem by its primary volume descriptor (ECMA-119 §8.4). Its UUID is
// the time at which it was last changed, else made.
func iso9660(v view) (ID, bool) {
	h := v.at(32<<10, 2048)
	if h == nil || string(h[:6]) != "\x01CD001" {
		return ID{}, false
	}
	id := ID{Type: "iso9660", Label: strings.TrimRight(text(h[40:72]), " ")}
	for _, at := range []int{830, 813} {
		d := string(h[at : at+16])
		if strings.Trim(d, "0123456789") == "" && strings.Trim(d, "0") != "" {
			id.UUID = strings.Join([]string{d[:4], d[4:6], d[6:8], d[8:10], d[10:12], d[12:14], d[14:16]}, "-")
			break
		}
	}
	return id, true
}

// vfat knows FAT12, FAT16 and FAT32 by their boot sector (Microsoft's FAT specification §3.1 to
// §3.3). The label of the root directory counts before that of the boot sector.
func vfat(v view) (ID, bool) {
	h := v.at(0, 512)
	if h == nil || h[510] != 0x55 || h[511] != 0xaa {
		return ID{}, false
	}
	names := 0
	switch {
	case string(h[54:59]) == "FAT12", string(h[54:59]) == "FAT16":
		names = 39 // serial number, label
	case string(h[82:87]) == "FAT32":
		names = 67
	default:
		return ID{}, false
	}
	b, ok := readFAT(h)
	if !ok {
		return ID{}, false
	}
	serial := le.Uint32(h[names:])
	id := ID{Type: "vfat", Label: fatLabel(h[names+4 : names+15]), UUID: fmt.Sprintf("%04x-%04x", serial>>16, serial&0xffff)}
	if serial == 0 {
		id.UUID = ""
	}
	if label, ok := rootLabel(v.at(b.root, b.rootBytes)); ok {
		id.Label = label
	}
	return id, true
}

// fatBlock is where a FAT filesystem's root directory is, in bytes; of FAT32 its first cluster.
type fatBlock struct{ root, rootBytes int64 }

// readFAT reads a BIOS parameter block, and reports false for one that no filesystem has.
func readFAT(h []byte) (fatBlock, bool) {
	sector, cluster := int64(le.Uint16(h[11:])), int64(h[13])
	reserved, tables, entries := int64(le.Uint16(h[14:])), int64(h[16]), int64(le.Uint16(h[17:]))
	powers := bits.OnesCount64(uint64(sector)) == 1 && bits.OnesCount64(uint64(cluster)) == 1
	if !powers || sector < 512 || sector > 4096 || reserved == 0 || tables == 0 || tables > 2 {
		return fatBlock{}, false
	}
	perTable := int64(le.Uint16(h[22:]))
	if perTable != 0 {
		return fatBlock{(reserved + tables*perTable) * sector, entries * 32}, true
	}
	perTable, first := int64(le.Uint32(h[36:])), int64(le.Uint32(h[44:]))
	if perTable == 0 || first < 2 {
		return fatBlock{}, false
	}
	return fatBlock{(reserved + tables*perTable + (first-2)*cluster) * sector, cluster * sector}, true
}

// rootLabel finds the volume's label among the entries of a root directory.
func rootLabel(entries []byte) (string, bool) {
	const volume, folder, longName, deleted = 0x08, 0x10, 0x0f, 0xe5
	for e := entries; len(e) >= 32 && e[0] != 0; e = e[32:] {
		if e[0] != deleted && e[11]&volume != 0 && e[11]&folder == 0 && e[11] != longName {
			return fatLabel(e[:11]), true
		}
	}
	return "", false
}

// fatLabel is a label without its padding, "" for the words that stand for none.
func fatLabel(b []byte) string {
	s := strings.TrimRight(text(b), " ")
	if s == "NO NAME" {
		return ""
	}
	return s
}
