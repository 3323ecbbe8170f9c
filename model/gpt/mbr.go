package gpt

import (
	"encoding/binary"
	"slices"
)

// Parts of a master boot record (UEFI specification §5.2.1).
const (
	mbrSize       = 512
	mbrCodeSize   = 440
	mbrSignature  = 440 // where the disk's signature is
	mbrEntries    = 446
	mbrEntrySize  = 16
	mbrMagic      = 510
	mbrProtective = 0xee // type of the partition that stands for a GUID partition table
)

// MBR is a master boot record.
type MBR struct {
	// BootCode reports whether there is code that a BIOS can start.
	BootCode bool
	// Protective reports whether a partition stands for a GUID partition table.
	Protective bool
	Signature  uint32          // of the disk, by which some systems name it; 0 = none
	Partitions [4]MBRPartition // those that are not used are zero
}

// MBRPartition is a primary partition of a master boot record.
type MBRPartition struct {
	Type           byte
	Active         bool
	First, Sectors uint32 // of 512 bytes, unless the disk's are larger
}

// ReadMBR reads the first sector of a disk. It reports false for one that has no partition
// table: a filesystem without one has the same magic, and other bytes where the table is.
func ReadMBR(sector []byte) (MBR, bool) {
	if len(sector) < mbrSize || sector[mbrMagic] != 0x55 || sector[mbrMagic+1] != 0xaa {
		return MBR{}, false
	}
	m := MBR{
		BootCode:  slices.ContainsFunc(sector[:mbrCodeSize], func(b byte) bool { return b != 0 }),
		Signature: binary.LittleEndian.Uint32(sector[mbrSignature:]),
	}
	used := false
	for n := range m.Partitions {
		entry := mbrEntry(sector, n)
		if entry[0]&0x7f != 0 { // active is 0x80, and nothing else is known
			return MBR{}, false
		}
		p := MBRPartition{
			Type: entry[4], Active: entry[0] != 0,
			First: binary.LittleEndian.Uint32(entry[8:]), Sectors: binary.LittleEndian.Uint32(entry[12:]),
		}
		if p.Type == 0 || p.Sectors == 0 {
			continue
		}
		m.Partitions[n], used = p, true
		m.Protective = m.Protective || p.Type == mbrProtective
	}
	return m, used
}

func mbrEntry(sector []byte, n int) []byte {
	at := mbrEntries + n*mbrEntrySize
	return sector[at : at+mbrEntrySize]
}

// protect makes sector, which may be empty, the protective master boot record of a disk of so
// many sectors (UEFI specification §5.2.3). Its boot code stays, and so do partitions that
// stand beside the protective one.
func protect(sector []byte, sectors uint64) {
	size := uint32(min(sectors-1, 1<<32-1))
	sector[mbrMagic], sector[mbrMagic+1] = 0x55, 0xaa
	for n := range 4 {
		if entry := mbrEntry(sector, n); entry[4] == mbrProtective {
			if binary.LittleEndian.Uint32(entry[8:]) == 1 {
				binary.LittleEndian.PutUint32(entry[12:], size)
			}
			return
		}
	}
	entry := mbrEntry(sector, 0)
	copy(entry, []byte{0, 0, 2, 0, mbrProtective, 0xff, 0xff, 0xff})
	binary.LittleEndian.PutUint32(entry[8:], 1)
	binary.LittleEndian.PutUint32(entry[12:], size)
}
