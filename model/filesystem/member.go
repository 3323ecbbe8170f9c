package filesystem

import "fmt"

// luks knows LUKS, by its first or, of LUKS 2, its second header.
func luks(v view) (ID, bool) {
	h := v.at(0, 512)
	if !v.has(0, "LUKS\xba\xbe") {
		if h = v.at(0x4000, 512); !v.has(0x4000, "SKUL\xba\xbe") {
			return ID{}, false
		}
	}
	id := ID{Type: LUKS1, UUID: text(h[168:208])}
	if be.Uint16(h[6:]) == 2 {
		id.Type, id.Label = LUKS2, text(h[24:72])
	}
	return id, true
}

// lvm knows a physical volume by its label, which is in one of the first four sectors of
// 512 bytes.
func lvm(v view) (ID, bool) {
	for sector := range int64(4) {
		h := v.at(sector*512, 512)
		if h == nil || string(h[:8]) != "LABELONE" || string(h[24:32]) != "LVM2 001" {
			continue
		}
		id := ID{Type: LVM}
		if at := le.Uint32(h[20:]); at >= 32 && at <= 512-32 {
			u := text(h[at : at+32])
			if len(u) == 32 {
				id.UUID = fmt.Sprintf("%s-%s-%s-%s-%s-%s-%s", u[:6], u[6:10], u[10:14], u[14:18], u[18:22], u[22:26], u[26:])
			}
		}
		return id, true
	}
	return ID{}, false
}

// mdMagic begins a superblock of md, little endian but for old ones of big-endian machines.
const mdMagic = 0xa92b4efc

// linuxRAID knows a member of an md array by its superblock (md(4)): versions 1.1 and 1.2 are
// at the head, 1.0 and 0.90 at the tail.
func linuxRAID(v view) (ID, bool) {
	sectors := v.size / 512
	for _, at := range []int64{0, 4096, (sectors - 16) &^ 7 * 512} {
		if h := v.at(at, 256); h != nil && le.Uint32(h) == mdMagic && le.Uint32(h[4:]) == 1 {
			return ID{Type: LinuxRAID, Label: text(h[32:64]), UUID: uuid(h[16:32])}, true
		}
	}
	h := v.at(v.size&^0xffff-0x10000, 64)
	if h == nil || le.Uint32(h) != mdMagic && be.Uint32(h) != mdMagic {
		return ID{}, false
	}
	id := append(append([]byte{}, h[20:24]...), h[52:64]...)
	return ID{Type: LinuxRAID, UUID: uuid(id)}, true
}

// intelRAID knows a member of Intel's firmware RAID by what is in the last sector but one. The
// label is the name of its first volume, which follows the list of disks.
func intelRAID(v view) (ID, bool) {
	const magic, disks, ofDisk = "Intel Raid ISM Cfg Sig. ", 216, 48
	for _, sector := range []int64{512, 4096} {
		h := v.at(v.size-2*sector, 512)
		if h == nil || string(h[:len(magic)]) != magic {
			continue
		}
		id := ID{Type: IntelRAID}
		if at := disks + ofDisk*int(h[56]); at <= len(h)-16 {
			id.Label = text(h[at : at+16])
		}
		return id, true
	}
	return ID{}, false
}

// ddf knows a member of a RAID in SNIA's Disk Data Format by its anchor in the last sector.
func ddf(v view) (ID, bool) {
	for _, sector := range []int64{512, 4096} {
		if v.has(v.size-sector, "\xde\x11\xde\x11") {
			return ID{Type: FirmwareDDF}, true
		}
	}
	return ID{}, false
}

// zfs knows a member of a pool by an uberblock in one of its four labels, two at each end.
func zfs(v view) (ID, bool) {
	const label, array, least, magic = 256 << 10, 128 << 10, 1 << 10, 0x00bab10c
	end := v.size &^ (label - 1)
	for _, at := range []int64{0, label, end - 2*label, end - label} {
		blocks := v.at(at+array, array)
		for b := blocks; len(b) >= least; b = b[least:] {
			if le.Uint64(b) == magic || be.Uint64(b) == magic {
				return ID{Type: ZFS}, true
			}
		}
	}
	return ID{}, false
}

// bcache knows a cache, or what is behind one, and bcachefs, whose superblock it shares.
func bcache(v view) (ID, bool) {
	const at = 4096
	h := v.at(at, 104)
	switch {
	case v.has(at+24, "\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"):
		return ID{Type: "bcache", Label: text(h[72:104]), UUID: uuid(h[40:56])}, true
	case v.has(at+24, "\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"):
		return ID{Type: "bcachefs", Label: text(h[72:104]), UUID: uuid(h[56:72])}, true
	}
	return ID{}, false
}
