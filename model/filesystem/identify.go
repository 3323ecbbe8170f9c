// Package filesystem tells what a disk or a partition holds: filesystems, swap, and what
// arrays, volume groups and encryption keep on their members. It reads no more than the places
// where those have their signatures.
package filesystem

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
)

// ID is what identifies the content of a disk or a partition.
type ID struct {
	// Type is named as blkid names it: ext4, vfat, LVM2_member, …
	Type string
	// Label and UUID are as udev has them for /dev/disk/by-label and by-uuid, the UUID in lower
	// case; empty = it has none.
	Label string
	UUID  string
}

// Types of what is part of something larger.
const (
	LUKS1       = "crypto_LUKS1"
	LUKS2       = "crypto_LUKS2"
	LVM         = "LVM2_member"
	LinuxRAID   = "linux_raid_member"
	IntelRAID   = "isw_raid_member" // of firmware: Intel VROC and RST
	FirmwareDDF = "ddf_raid_member" // of firmware: SNIA's Disk Data Format
	ZFS         = "zfs_member"
)

// Identify returns what r, a disk or partition of size bytes, holds, and false when it holds
// nothing that is known. What is part of something larger comes before filesystems, which an
// array may show on each of its members.
func Identify(r io.ReaderAt, size int64) (ID, bool) {
	v := view{r, size}
	for _, identify := range identifiers {
		if id, ok := identify(v); ok {
			return id, true
		}
	}
	return ID{}, false
}

var identifiers = []func(view) (ID, bool){
	luks, lvm, linuxRAID, intelRAID, ddf, zfs, bcache,
	ext, xfs, btrfs, vfat, swap, iso9660, byMagic,
}

// view is a disk or partition that is looked at.
type view struct {
	r    io.ReaderAt
	size int64
}

// at returns n bytes at an offset, nil when the disk does not have them or cannot be read.
func (v view) at(offset, n int64) []byte {
	if offset < 0 || offset > v.size-n {
		return nil
	}
	b := make([]byte, n)
	if got, _ := v.r.ReadAt(b, offset); got < len(b) {
		return nil
	}
	return b
}

func (v view) has(offset int64, magic string) bool {
	return string(v.at(offset, int64(len(magic)))) == magic
}

// text is a label: what is before the first zero byte.
func text(b []byte) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	return strings.ToValidUTF8(s, "\uFFFD")
}

// uuid is one of 16 bytes in its usual form, "" for one of zeros.
func uuid(b []byte) string {
	if !slices.ContainsFunc(b, func(c byte) bool { return c != 0 }) {
		return ""
	}
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

var (
	le = binary.LittleEndian
	be = binary.BigEndian
)

// byMagic knows what is told by a magic at one place, and has no name that systems find it by.
func byMagic(v view) (ID, bool) {
	for _, m := range []struct {
		kind   string
		offset int64
		magic  string
	}{
		{"ntfs", 3, "NTFS    "}, {"exfat", 3, "EXFAT   "}, {"squashfs", 0, "hsqs"}, {"f2fs", 1024, "\x10\x20\xf5\xf2"},
		{"erofs", 1024, "\xe2\xe1\xf5\xe0"}, {"ceph_bluestore", 0, "bluestore block device"}, {"jfs", 32768, "JFS1"},
		{"reiserfs", 65536 + 52, "ReIsEr"},
	} {
		if v.has(m.offset, m.magic) {
			return ID{Type: m.kind}, true
		}
	}
	return ID{}, false
}
