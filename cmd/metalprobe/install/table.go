package install

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"

	"github.com/google/uuid"

	"ingot/cmd/metalprobe/install/fat"
	"ingot/model"
	"ingot/model/filesystem"
	"ingot/model/gpt"
)

// seedPartition is the name of the partition that holds what configures the system.
const seedPartition = "ingot-seed"

// seedGUID names the partition of one install: by it a probe knows that its own install is
// whole.
func seedGUID(install string) string {
	return uuid.NewHash(sha256.New(), uuid.Nil, []byte(seedPartition+"/"+install), 8).String()
}

func seedSerial(install string) uint32 {
	sum := sha256.Sum256([]byte(seedPartition + "/" + install))
	return binary.BigEndian.Uint32(sum[:])
}

// arrangement is how the ends of a disk will be, and what is between them.
type arrangement struct {
	head   []byte // the first MiB
	tail   []byte // the backup of the table; nil of a master boot record
	tailAt int64
	seed   *fat.Volume // nil = none
	seedAt span
	// partitions are those of the image, by bytes.
	partitions []partition
}

type partition struct {
	number int
	kind   string // GUID of its type; "" in a master boot record
	guid   string
	name   string
	span
	id filesystem.ID // what is in it, as far as that was looked at
}

type place struct {
	install    string
	imageBytes uint64
	diskBytes  int64
	sectorSize int
	seed       *model.InstallSeed // nil, or without a volume of its own
}

// arrange returns how the disk will be that the image of a first MiB goes to: its partition
// table is grown to the disk, and the seed has a partition of it, as the last.
func arrange(firstMiB []byte, p place) (arrangement, error) {
	a := arrangement{head: bytes.Clone(firstMiB)}
	var bytesNeeded uint64
	if p.seed != nil {
		a.seed = &fat.Volume{SectorSize: p.sectorSize, Label: p.seed.Label, Serial: seedSerial(p.install), Files: p.seed.Files}
		var err error
		if bytesNeeded, err = a.seed.Bytes(); err != nil {
			return a, failure(model.ReasonSeedNoRoom, "the seed cannot be made: %v", err)
		}
	}
	table, err := gpt.Read(bytes.NewReader(firstMiB), int64(p.imageBytes))
	switch {
	case errors.Is(err, gpt.ErrNone):
		return a, a.masterBootRecord(p, bytesNeeded)
	case err != nil:
		return a, failure(model.ReasonImageNoPartitions, "the partition table of the image cannot be used: %v", err)
	}
	return a, a.guidTable(table, p, bytesNeeded)
}

// guidTable arranges a disk with a GUID partition table.
func (a *arrangement) guidTable(table gpt.Table, p place, seedBytes uint64) error {
	if table.SectorSize != p.sectorSize {
		return failure(model.ReasonSectorSizeMismatch, "the image is for sectors of %d bytes, the disk has sectors of %d", table.SectorSize, p.sectorSize)
	}
	sector := int64(table.SectorSize)
	for _, part := range table.Partitions {
		a.partitions = append(a.partitions, partition{
			number: part.Number, kind: part.Type, guid: part.GUID, name: part.Name, span: span{int64(part.First) * sector, int64(part.Last+1) * sector},
		})
	}
	table = table.Grow(uint64(p.diskBytes))
	if a.seed != nil {
		added, err := table.Add(gpt.Partition{Type: gpt.TypeBasicData, GUID: seedGUID(p.install), Name: seedPartition}, seedBytes)
		if err != nil {
			return failure(model.ReasonSeedNoRoom, "there is no room for the seed: %v", err)
		}
		a.seed.Before = added.First
		a.seedAt = span{int64(added.First) * sector, int64(added.Last+1) * sector}
	}
	head, tail, err := table.Encode()
	if err != nil {
		return failure(model.ReasonImageNoPartitions, "the partition table of the image cannot be grown: %v", err)
	}
	if len(head) > len(a.head) {
		return failure(model.ReasonImageNoPartitions, "the partition table of the image takes %d bytes, more than 1 MiB", len(head))
	}
	copy(a.head, head)
	a.tail, a.tailAt = tail, int64(table.Sectors)*sector-int64(len(tail))
	return nil
}

// Parts of a master boot record (UEFI specification §5.2.1).
const (
	recordEntries = 446
	recordEntry   = 16
	typeFAT16     = 0x0e // with addresses by sector
	// recordSectors is how many sectors a record can name: 2 TiB on sectors of 512 bytes.
	recordSectors = 1 << 32
)

// masterBootRecord arranges a disk with a master boot record: the seed takes a free primary
// slot, within what a record can name.
func (a *arrangement) masterBootRecord(p place, seedBytes uint64) error {
	record, ok := gpt.ReadMBR(a.head[:min(512, len(a.head))])
	if !ok || record.Protective {
		return failure(model.ReasonImageNoPartitions, "the image has no partition table")
	}
	sector := int64(p.sectorSize)
	slot, end := -1, int64(mebibyte)
	for n, part := range record.Partitions {
		at := span{int64(part.First) * sector, (int64(part.First) + int64(part.Sectors)) * sector}
		if part.Type == 0 {
			if slot < 0 {
				slot = n
			}
			continue
		}
		end = max(end, at.to)
		a.partitions = append(a.partitions, partition{number: n + 1, span: at})
	}
	if a.seed == nil {
		return nil
	}
	if slot < 0 {
		return failure(model.ReasonSeedNoRoom, "the image has a master boot record with four partitions: none is left for the seed")
	}
	last := min(p.diskBytes, recordSectors*sector)
	from := (last - int64(seedBytes)) / mebibyte * mebibyte
	if from < end {
		return failure(model.ReasonSeedNoRoom, "there is no room for the seed of %d bytes behind the last partition, which ends at byte %d of %d", seedBytes, end, last)
	}
	a.seedAt = span{from, from + int64(seedBytes)}
	a.seed.Before = uint64(from / sector)
	entry := a.head[recordEntries+slot*recordEntry:][:recordEntry]
	copy(entry, []byte{0, 0xfe, 0xff, 0xff, typeFAT16, 0xfe, 0xff, 0xff})
	binary.LittleEndian.PutUint32(entry[8:], uint32(from/sector))
	binary.LittleEndian.PutUint32(entry[12:], uint32(int64(seedBytes)/sector))
	return nil
}
