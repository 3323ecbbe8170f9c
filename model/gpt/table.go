package gpt

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Alignment is what partitions begin at a multiple of, in bytes.
const Alignment = 1 << 20

// MaxPartitions is how many partitions a table may have.
const MaxPartitions = 1024

// defaultEntries is how many partitions a table has room for (UEFI specification §5.3.1: at
// least 16 KiB of entries).
const defaultEntries = 128

// Table is a GUID partition table.
type Table struct {
	SectorSize int // 512 or 4096
	// Sectors is the size of the disk: the backup of the table is in its last sectors.
	Sectors  uint64
	DiskGUID string
	// FirstUsable and LastUsable are the sectors that partitions may have.
	FirstUsable, LastUsable uint64
	Entries                 int         // how many partitions there is room for
	Partitions              []Partition // by number
	// MBR is the disk's first 512 bytes: boot code, and the partition that protects this table.
	MBR [512]byte
}

// Partition is one partition of a table.
type Partition struct {
	Number      int    // from 1
	Type, GUID  string // as xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx, in lower case
	First, Last uint64 // sectors, both its own
	Name        string // at most 36 characters
	Attributes  uint64 // UEFI specification §5.3.3, table 5-7
}

// AttributeLegacyBoot marks the partition that boot code of a BIOS starts.
const AttributeLegacyBoot = 1 << 2

// Sectors is the size of the partition.
func (p Partition) Sectors() uint64 { return p.Last - p.First + 1 }

// entriesSectors is how many sectors the entries take.
func (t Table) entriesSectors() uint64 {
	size := uint64(t.SectorSize)
	return (uint64(t.Entries)*entrySize + size - 1) / size
}

// New returns a table without partitions for a disk of so many bytes.
func New(sectorSize int, diskBytes uint64, diskGUID string) Table {
	t := Table{SectorSize: sectorSize, DiskGUID: diskGUID, Entries: defaultEntries}
	t.FirstUsable = 2 + t.entriesSectors()
	return t.Grow(diskBytes)
}

// Grow returns the table for a disk of so many bytes: its backup lies at the end of it, and
// partitions may go up to there. One for a smaller disk is returned as it is, for partitions
// may lie where the backup would.
func (t Table) Grow(diskBytes uint64) Table {
	sectors := diskBytes / uint64(t.SectorSize)
	if sectors <= t.Sectors || sectors < t.FirstUsable+t.entriesSectors()+1 {
		return t
	}
	t.Sectors = sectors
	t.LastUsable = sectors - t.entriesSectors() - 2
	t.Partitions = slices.Clone(t.Partitions)
	return t
}

// Partition returns the partition with a number.
func (t Table) Partition(number int) (Partition, bool) {
	for _, p := range t.Partitions {
		if p.Number == number {
			return p, true
		}
	}
	return Partition{}, false
}

// Add adds a partition of at least so many bytes as far behind as it goes, and returns it with
// its number and place. It begins at a multiple of Alignment. Its number is behind all others',
// if there is one.
func (t *Table) Add(p Partition, bytes uint64) (Partition, error) {
	if t.SectorSize <= 0 || bytes == 0 {
		return Partition{}, errors.New("add a partition: it has no size")
	}
	number, err := t.freeNumber()
	if err != nil {
		return Partition{}, err
	}
	per := uint64(t.SectorSize)
	need := bytes / per
	if bytes%per != 0 {
		need++
	}
	from, to := t.endOfLast(), t.LastUsable
	if to < from || to-from+1 < need {
		return Partition{}, t.noRoom(bytes, from)
	}
	p.Number, p.First = number, (to-need+1)/(Alignment/per)*(Alignment/per)
	p.Last = p.First + need - 1
	if p.First < from {
		return Partition{}, t.noRoom(bytes, from)
	}
	t.Partitions = append(slices.Clone(t.Partitions), p)
	slices.SortFunc(t.Partitions, func(a, b Partition) int { return a.Number - b.Number })
	return p, nil
}

func (t Table) noRoom(bytes, from uint64) error {
	free := uint64(0)
	if t.LastUsable >= from {
		free = (t.LastUsable - from + 1) * uint64(t.SectorSize)
	}
	return fmt.Errorf("add a partition of %d bytes: behind the last partition %d are free, of which a start at a multiple of 1 MiB takes some", bytes, free)
}

// endOfLast is the first sector behind all partitions.
func (t Table) endOfLast() uint64 {
	end := t.FirstUsable
	for _, p := range t.Partitions {
		end = max(end, p.Last+1)
	}
	return end
}

// freeNumber is the number behind all others', or the lowest that is free.
func (t Table) freeNumber() (int, error) {
	last := 0
	for _, p := range t.Partitions {
		last = max(last, p.Number)
	}
	if last < t.Entries {
		return last + 1, nil
	}
	for number := 1; number <= t.Entries; number++ {
		if _, used := t.Partition(number); !used {
			return number, nil
		}
	}
	return 0, fmt.Errorf("add a partition: the table has room for %d, and all are used", t.Entries)
}

// checkPlace refuses a partition that does not lie on the disk.
func (t Table) checkPlace(p Partition) error {
	if p.First > p.Last || p.First < 2 || p.Last >= t.Sectors || p.Last > math.MaxInt64/uint64(t.SectorSize) {
		return fmt.Errorf("partition %d goes from sector %d to %d; the disk has %d of %d bytes", p.Number, p.First, p.Last, t.Sectors, t.SectorSize)
	}
	return nil
}
