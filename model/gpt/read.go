package gpt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"unicode/utf16"
)

// Parts of a header and of an entry (UEFI specification §5.3.2 and §5.3.3).
const (
	headerSize    = 92
	headerEntries = 2 // the sector that a primary table's entries begin at
	entrySize     = 128
	entryName     = 56
	nameLength    = 36
	// maxEntriesBytes bounds what is read of a table's entries.
	maxEntriesBytes = MaxPartitions * entrySize * 4
)

var magic = []byte("EFI PART")

// revision is 1.0.
var revision = []byte{0, 0, 1, 0}

// ErrNone is returned for a disk on which no GUID partition table begins.
var ErrNone = errors.New("there is no GUID partition table")

// Read reads the primary GUID partition table of a disk, or of an image, of size bytes. It is
// looked for where it is on disks with sectors of 512 and of 4096 bytes; both of its checksums
// are checked. The error is ErrNone when there is none, and else says what is wrong with it.
func Read(r io.ReaderAt, size int64) (Table, error) {
	var broken error
	for _, sectorSize := range []int{512, 4096} {
		t, err := readAt(r, size, sectorSize)
		switch {
		case err == nil:
			return t, nil
		case !errors.Is(err, ErrNone):
			broken = errors.Join(broken, fmt.Errorf("partition table for sectors of %d bytes: %w", sectorSize, err))
		}
	}
	if broken != nil {
		return Table{}, broken
	}
	return Table{}, ErrNone
}

func readAt(r io.ReaderAt, size int64, sectorSize int) (Table, error) {
	if size < int64(3*sectorSize) {
		return Table{}, ErrNone
	}
	head := make([]byte, 2*sectorSize)
	if err := readFull(r, head, 0); err != nil {
		return Table{}, err
	}
	h, err := parseHeader(head[sectorSize:])
	if err != nil {
		return Table{}, err
	}
	t := Table{
		SectorSize: sectorSize, Sectors: uint64(size) / uint64(sectorSize), DiskGUID: h.disk,
		FirstUsable: h.firstUsable, LastUsable: h.lastUsable, Entries: int(h.count), MBR: [mbrSize]byte(head),
	}
	entries := make([]byte, h.count*h.size)
	if err := readFull(r, entries, headerEntries*int64(sectorSize)); err != nil {
		return Table{}, err
	}
	if crc32.ChecksumIEEE(entries) != h.sum {
		return Table{}, errors.New("the checksum of its entries is wrong")
	}
	if t.LastUsable < t.FirstUsable || t.FirstUsable < headerEntries+t.entriesSectors() || t.LastUsable >= t.Sectors {
		return Table{}, fmt.Errorf("partitions may go from sector %d to %d; the disk has %d of %d bytes", t.FirstUsable, t.LastUsable, t.Sectors, sectorSize)
	}
	for n := range int(h.count) {
		p, used := parseEntry(entries[n*int(h.size):], n+1)
		if !used {
			continue
		}
		if err := t.checkPlace(p); err != nil {
			return Table{}, err
		}
		t.Partitions = append(t.Partitions, p)
	}
	return t, nil
}

// readFull reads len(p) bytes at an offset.
func readFull(r io.ReaderAt, p []byte, at int64) error {
	n, err := r.ReadAt(p, at)
	switch {
	case n == len(p):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	}
	return err
}

type header struct {
	disk                    string
	firstUsable, lastUsable uint64
	count, size             uint32 // of entries
	sum                     uint32 // CRC-32 of them
}

func parseHeader(sector []byte) (header, error) {
	if !bytes.HasPrefix(sector, magic) {
		return header{}, ErrNone
	}
	length := binary.LittleEndian.Uint32(sector[12:])
	if length < headerSize || length > uint32(len(sector)) {
		return header{}, fmt.Errorf("its header has %d bytes; %d to %d are possible", length, headerSize, len(sector))
	}
	if headerSum(sector[:length]) != binary.LittleEndian.Uint32(sector[16:]) {
		return header{}, errors.New("the checksum of its header is wrong")
	}
	h := header{
		disk:        guidText(sector[56:]),
		firstUsable: binary.LittleEndian.Uint64(sector[40:]),
		lastUsable:  binary.LittleEndian.Uint64(sector[48:]),
		count:       binary.LittleEndian.Uint32(sector[80:]),
		size:        binary.LittleEndian.Uint32(sector[84:]),
		sum:         binary.LittleEndian.Uint32(sector[88:]),
	}
	at, entries := binary.LittleEndian.Uint64(sector[24:]), binary.LittleEndian.Uint64(sector[72:])
	switch {
	case at != 1:
		return header{}, fmt.Errorf("its header says that it is in sector %d; it is in 1", at)
	case entries != headerEntries:
		return header{}, fmt.Errorf("its entries begin in sector %d; only %d is supported", entries, headerEntries)
	case h.count == 0 || h.count > MaxPartitions:
		return header{}, fmt.Errorf("it has room for %d partitions; 1 to %d are supported", h.count, MaxPartitions)
	case h.size < entrySize || h.size&(h.size-1) != 0 || h.count*h.size > maxEntriesBytes || h.size > maxEntriesBytes:
		return header{}, fmt.Errorf("its %d entries have %d bytes each, which is not possible or too much", h.count, h.size)
	}
	return h, nil
}

// headerSum is the CRC-32 of a header, in which that itself counts as zero.
func headerSum(h []byte) uint32 {
	h = slices.Clone(h)
	clear(h[16:20])
	return crc32.ChecksumIEEE(h)
}

// parseEntry reads an entry, and reports whether it is used.
func parseEntry(raw []byte, number int) (Partition, bool) {
	p := Partition{
		Number: number, Type: guidText(raw), GUID: guidText(raw[16:]),
		First: binary.LittleEndian.Uint64(raw[32:]), Last: binary.LittleEndian.Uint64(raw[40:]),
		Attributes: binary.LittleEndian.Uint64(raw[48:]),
	}
	units := make([]uint16, 0, nameLength)
	for n := range nameLength {
		unit := binary.LittleEndian.Uint16(raw[entryName+2*n:])
		if unit == 0 {
			break
		}
		units = append(units, unit)
	}
	p.Name = string(utf16.Decode(units))
	return p, p.Type != zeroGUID
}
