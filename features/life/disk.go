package life

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// An Installation is what a claim left on a disk: which one it is, so that another
// can be told from it, and the files of its Ignition. It is in the second partition.
type Installation struct {
	ID    string
	Files map[string]string
}

// partitionSize bounds an Installation, in bytes.
const partitionSize = 1 << 20

// Save writes an installation.
func (i Installation) Save(disk interface {
	io.ReaderAt
	io.WriterAt
}) error {
	at, err := secondPartition(disk)
	if err != nil {
		return err
	}
	text, err := json.Marshal(i)
	if err != nil {
		return err
	}
	_, err = disk.WriteAt(text, at)
	return err
}

// LoadInstallation reads what Save wrote.
func LoadInstallation(disk io.ReaderAt) (i Installation, err error) {
	at, err := secondPartition(disk)
	if err != nil {
		return i, err
	}
	if err := json.NewDecoder(io.NewSectionReader(disk, at, partitionSize)).Decode(&i); err != nil {
		return i, fmt.Errorf("read the installation: %w", err)
	}
	return i, nil
}

// The partition table of a PC's disk, in its first sector.
const (
	sectorSize  = 512
	tableAt     = 446
	entrySize   = 16
	typeAt      = 4  // in an entry: of what type it is
	firstAt     = 8  // the first sector
	lengthAt    = 12 // and how many there are
	signatureAt = 510
)

var signature = []byte{0x55, 0xaa}

// secondPartition is where the second partition begins, in bytes.
func secondPartition(disk io.ReaderAt) (int64, error) {
	sector := make([]byte, sectorSize)
	if _, err := disk.ReadAt(sector, 0); err != nil {
		return 0, err
	}
	if string(sector[signatureAt:]) != string(signature) {
		return 0, errors.New("the disk has no partition table")
	}
	if sector[tableAt+typeAt] == typeProtective {
		entry := make([]byte, 128)
		_, err := disk.ReadAt(entry, 2*sectorSize+int64(len(entry)))
		return int64(binary.LittleEndian.Uint64(entry[32:])) * sectorSize, err
	}
	first := binary.LittleEndian.Uint32(sector[tableAt+entrySize+firstAt:])
	return int64(first) * sectorSize, nil
}

// typeProtective is the type of the one partition that a GPT has in the table of a PC's disk;
// its own entries follow in the third sector (UEFI 2.10, sections 5.2.3 and 5.3).
const typeProtective = 0xee
