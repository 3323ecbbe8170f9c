package gpt

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"unicode/utf16"
)

// Encode returns the table as it is written: head goes to the beginning of the disk (protective
// master boot record, header and entries), tail to its end (entries and header). It fails for
// a GUID, a name or a place that cannot be.
func (t Table) Encode() (head, tail []byte, err error) {
	if err := t.check(); err != nil {
		return nil, nil, fmt.Errorf("write a partition table: %w", err)
	}
	entries, err := t.encodeEntries()
	if err != nil {
		return nil, nil, fmt.Errorf("write a partition table: %w", err)
	}
	last := t.Sectors - 1
	sum := crc32.ChecksumIEEE(entries[:t.Entries*entrySize])
	primary, err := t.encodeHeader(1, last, headerEntries, sum)
	if err != nil {
		return nil, nil, fmt.Errorf("write a partition table: %w", err)
	}
	backup, err := t.encodeHeader(last, 1, last-t.entriesSectors(), sum)
	if err != nil {
		return nil, nil, fmt.Errorf("write a partition table: %w", err)
	}
	head = make([]byte, t.SectorSize, headerEntries*t.SectorSize+len(entries))
	copy(head, t.MBR[:])
	protect(head, t.Sectors)
	head = append(append(head, primary...), entries...)
	return head, append(entries, backup...), nil
}

func (t Table) check() error {
	switch {
	case t.SectorSize != 512 && t.SectorSize != 4096:
		return fmt.Errorf("sectors have 512 or 4096 bytes, not %d", t.SectorSize)
	case t.Entries < 1 || t.Entries > MaxPartitions:
		return fmt.Errorf("it has room for %d partitions; 1 to %d are supported", t.Entries, MaxPartitions)
	case t.FirstUsable < headerEntries+t.entriesSectors() || t.LastUsable < t.FirstUsable ||
		t.LastUsable >= t.Sectors || t.Sectors-t.LastUsable < t.entriesSectors()+2:
		return fmt.Errorf("with partitions from sector %d to %d of %d there is no room for it", t.FirstUsable, t.LastUsable, t.Sectors)
	}
	return nil
}

func (t Table) encodeEntries() ([]byte, error) {
	raw := make([]byte, t.entriesSectors()*uint64(t.SectorSize))
	for _, p := range t.Partitions {
		if p.Number < 1 || p.Number > t.Entries {
			return nil, fmt.Errorf("partition %d: numbers go from 1 to %d", p.Number, t.Entries)
		}
		if err := t.checkPlace(p); err != nil {
			return nil, err
		}
		if err := p.encode(raw[(p.Number-1)*entrySize:]); err != nil {
			return nil, fmt.Errorf("partition %d: %w", p.Number, err)
		}
	}
	return raw, nil
}

func (p Partition) encode(to []byte) error {
	name := utf16.Encode([]rune(p.Name))
	if len(name) > nameLength {
		return fmt.Errorf("its name has %d characters; at most %d are possible", len(name), nameLength)
	}
	if err := putGUID(to, p.Type); err != nil {
		return err
	}
	if err := putGUID(to[16:], p.GUID); err != nil {
		return err
	}
	binary.LittleEndian.PutUint64(to[32:], p.First)
	binary.LittleEndian.PutUint64(to[40:], p.Last)
	binary.LittleEndian.PutUint64(to[48:], p.Attributes)
	for n, unit := range name {
		binary.LittleEndian.PutUint16(to[entryName+2*n:], unit)
	}
	return nil
}

// encodeHeader returns the sector of a header at one place, whose entries begin at another.
func (t Table) encodeHeader(at, other, entries uint64, sum uint32) ([]byte, error) {
	h := make([]byte, t.SectorSize)
	copy(h, magic)
	copy(h[8:], revision)
	binary.LittleEndian.PutUint32(h[12:], headerSize)
	binary.LittleEndian.PutUint64(h[24:], at)
	binary.LittleEndian.PutUint64(h[32:], other)
	binary.LittleEndian.PutUint64(h[40:], t.FirstUsable)
	binary.LittleEndian.PutUint64(h[48:], t.LastUsable)
	if err := putGUID(h[56:], t.DiskGUID); err != nil {
		return nil, err
	}
	binary.LittleEndian.PutUint64(h[72:], entries)
	binary.LittleEndian.PutUint32(h[80:], uint32(t.Entries))
	binary.LittleEndian.PutUint32(h[84:], entrySize)
	binary.LittleEndian.PutUint32(h[88:], sum)
	binary.LittleEndian.PutUint32(h[16:], headerSum(h[:headerSize]))
	return h, nil
}
