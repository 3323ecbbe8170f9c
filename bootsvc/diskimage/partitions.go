package diskimage

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"ingot/model"
	"ingot/model/filesystem"
	"ingot/model/gpt"
)

// Partition is a partition of an image.
type Partition struct {
	Number int    `json:"number"`
	Type   string `json:"type"` // a GUID, or a number of a master boot record: 0x83
	GUID   string `json:"guid,omitempty"`
	Name   string `json:"name,omitempty"`
	First  uint64 `json:"first"` // byte
	Bytes  uint64 `json:"bytes"`
	// Filesystem is what is in it; "" = nothing that is known.
	Filesystem string `json:"filesystem,omitempty"`
	Label      string `json:"label,omitempty"`
	UUID       string `json:"uuid,omitempty"`

	esp bool
}

// Kinds of partition tables.
const (
	tableGPT = "gpt"
	tableMBR = "mbr"
)

type layout struct {
	table      string // tableGPT or tableMBR
	sectorSize int    // 0 = the table does not say
	bootCode   bool
	diskGUID   string
	partitions []Partition
	starts     []model.StartMethod
}

// readLayout reads what is on a disk. The error is an *Error when it has no partition table that
// can be read.
func readLayout(r io.ReaderAt, size uint64) (layout, error) {
	l, err := readTable(r, size)
	if err != nil {
		return layout{}, err
	}
	if l.bootCode {
		l.starts = append(l.starts, model.StartBIOS)
	}
	for n := range l.partitions {
		p := &l.partitions[n]
		section := io.NewSectionReader(r, int64(p.First), int64(p.Bytes))
		if id, ok := filesystem.Identify(section, int64(p.Bytes)); ok {
			p.Filesystem, p.Label, p.UUID = id.Type, id.Label, id.UUID
		}
		if !p.esp {
			continue
		}
		starts, err := startsIn(section, int64(p.Bytes))
		if err != nil {
			return layout{}, err
		}
		l.starts = append(l.starts, starts...)
	}
	slices.Sort(l.starts)
	l.starts = slices.Compact(l.starts)
	return l, nil
}

// startsIn returns what a firmware with EFI starts of a partition. One that is damaged starts
// nothing; an error is of reading what was stored.
func startsIn(section *io.SectionReader, size int64) ([]model.StartMethod, error) {
	watched := &watchedReader{r: section}
	esp, err := openFAT(watched, size)
	if err != nil {
		return nil, watched.err
	}
	starts, err := startsOf(esp)
	if err != nil {
		return nil, watched.err
	}
	return starts, nil
}

// watchedReader keeps errors of reading apart from those of what is read.
type watchedReader struct {
	r   io.ReaderAt
	err error
}

// ReadAt implements io.ReaderAt.
func (w *watchedReader) ReadAt(p []byte, at int64) (int, error) {
	n, err := w.r.ReadAt(p, at)
	if err != nil && !errors.Is(err, io.EOF) {
		w.err = err
	}
	return n, err
}

// readTable reads the partition table of a disk.
func readTable(r io.ReaderAt, size uint64) (layout, error) {
	if size < 32<<10 {
		return layout{}, refuse(model.ReasonImageNoPartitions, "it has %d bytes: less than a disk with a system has", size)
	}
	first := make([]byte, sectorBytes)
	if err := readFull(r, first, 0); err != nil {
		return layout{}, err
	}
	mbr, isMBR := gpt.ReadMBR(first)
	table, err := gpt.Read(r, int64(size))
	switch {
	case err == nil:
		return gptLayout(table), nil
	case !errors.Is(err, gpt.ErrNone):
		return layout{}, refuse(model.ReasonImageNoPartitions, "its partition table is damaged: %v", err)
	case isMBR && mbr.Protective:
		return layout{}, refuse(model.ReasonImageNoPartitions, "its master boot record says that a GUID partition table follows, and none does: the image is cut off or damaged")
	case isMBR:
		return mbrLayout(r, size, mbr)
	}
	if id, ok := filesystem.Identify(r, int64(size)); ok {
		return layout{}, refuse(model.ReasonImageNoPartitions, "it is a filesystem (%s) without a partition table, so no firmware starts it: take the publisher's image of a whole disk", id.Type)
	}
	return layout{}, refuse(model.ReasonImageNoPartitions, "it has no partition table: it is no image of a whole disk, or in a format that is not known")
}

func gptLayout(t gpt.Table) layout {
	mbr, _ := gpt.ReadMBR(t.MBR[:])
	l := layout{table: tableGPT, sectorSize: t.SectorSize, bootCode: mbr.BootCode, diskGUID: t.DiskGUID}
	for _, p := range t.Partitions {
		l.partitions = append(l.partitions, Partition{
			Number: p.Number, Type: p.Type, GUID: p.GUID, Name: p.Name,
			First: p.First * uint64(t.SectorSize), Bytes: p.Sectors() * uint64(t.SectorSize), esp: p.Type == gpt.TypeESP,
		})
	}
	return l
}

// Types of partitions in a master boot record.
const (
	mbrESP           = 0xef
	maxLogical       = 64
	firstLogical     = 5
	mbrExtended      = 0x05
	mbrExtendedLBA   = 0x0f
	mbrExtendedLinux = 0x85
)

func extended(t byte) bool {
	return t == mbrExtended || t == mbrExtendedLBA || t == mbrExtendedLinux
}

func mbrLayout(r io.ReaderAt, size uint64, mbr gpt.MBR) (layout, error) {
	l := layout{table: tableMBR, bootCode: mbr.BootCode}
	for n, p := range mbr.Partitions {
		if p.Sectors == 0 {
			continue
		}
		if uint64(p.First)+uint64(p.Sectors) > size/sectorBytes || p.First == 0 {
			return layout{}, refuse(model.ReasonImageNoPartitions, "its partition table is damaged: partition %d goes from sector %d to %d; the disk has %d", n+1, p.First, uint64(p.First)+uint64(p.Sectors)-1, size/sectorBytes)
		}
		if !extended(p.Type) {
			l.partitions = append(l.partitions, mbrPartition(n+1, uint64(p.First), p))
			continue
		}
		logical, err := logicalPartitions(r, size, uint64(p.First))
		if err != nil {
			return layout{}, err
		}
		l.partitions = append(l.partitions, logical...)
	}
	return l, nil
}

func mbrPartition(number int, first uint64, p gpt.MBRPartition) Partition {
	return Partition{
		Number: number, Type: fmt.Sprintf("0x%02x", p.Type),
		First: first * sectorBytes, Bytes: uint64(p.Sectors) * sectorBytes, esp: p.Type == mbrESP,
	}
}

// logicalPartitions returns the partitions within an extended one: a chain of sectors, each like
// a master boot record with a partition and the place of the next.
func logicalPartitions(r io.ReaderAt, size, start uint64) ([]Partition, error) {
	var all []Partition
	sector := make([]byte, sectorBytes)
	for at := start; len(all) < maxLogical; {
		if at >= size/sectorBytes {
			break
		}
		if err := readFull(r, sector, int64(at*sectorBytes)); err != nil {
			return nil, err
		}
		link, ok := gpt.ReadMBR(sector)
		p, next := link.Partitions[0], link.Partitions[1]
		if !ok || p.Sectors == 0 || at+uint64(p.First)+uint64(p.Sectors) > size/sectorBytes {
			break
		}
		all = append(all, mbrPartition(firstLogical+len(all), at+uint64(p.First), p))
		if next.Sectors == 0 {
			break
		}
		at = start + uint64(next.First)
	}
	return all, nil
}

// identities are what a running system finds the image's disk and partitions by.
func (l layout) identities() model.DiskIdentities {
	var ids model.DiskIdentities
	add := func(to *[]string, value string) {
		if value != "" && value != zeroGUID && !slices.Contains(*to, value) {
			*to = append(*to, value)
		}
	}
	add(&ids.GUIDs, l.diskGUID)
	for _, p := range l.partitions {
		add(&ids.GUIDs, p.GUID)
		add(&ids.Labels, p.Label)
		add(&ids.UUIDs, strings.ToLower(p.UUID))
	}
	slices.Sort(ids.GUIDs)
	slices.Sort(ids.Labels)
	slices.Sort(ids.UUIDs)
	return ids
}

const zeroGUID = "00000000-0000-0000-0000-000000000000"
