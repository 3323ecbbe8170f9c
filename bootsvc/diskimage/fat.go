package diskimage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
)

// A FAT filesystem, as much of it as says how an image starts (Microsoft, FAT32 File System
// Specification 1.03; UEFI specification §13.3).

// Bounds on what is read of a FAT filesystem.
const (
	maxFATEntries  = 4096     // of a directory
	maxFATFile     = 64 << 10 // of what is read whole
	maxFATClusters = 1 << 16  // of a directory or file
)

type fat struct {
	r            io.ReaderAt
	bits         int // 12, 16 or 32
	clusterBytes int64
	clusters     uint32 // how many there are, numbered from 2
	table        int64  // where the first FAT begins
	root         int64  // where the root directory begins, of FAT12 and FAT16
	rootBytes    int64
	rootCluster  uint32 // of FAT32
	data         int64  // where cluster 2 begins
}

// fatEntry is a file or a directory.
type fatEntry struct {
	name    string
	folder  bool
	cluster uint32
	size    uint32
}

var errNoFAT = errors.New("it is no FAT filesystem")

// openFAT reads the boot sector of a FAT filesystem of size bytes.
func openFAT(r io.ReaderAt, size int64) (*fat, error) {
	b := make([]byte, 512)
	if err := readFull(r, b, 0); err != nil {
		return nil, err
	}
	short, long := binary.LittleEndian.Uint16, binary.LittleEndian.Uint32
	sector := int64(short(b[11:]))
	perCluster, reserved, tables := int64(b[13]), int64(short(b[14:])), int64(b[16])
	rootEntries, sectors, tableSectors := int64(short(b[17:])), int64(short(b[19:])), int64(short(b[22:]))
	if sectors == 0 {
		sectors = int64(long(b[32:]))
	}
	f := &fat{r: r}
	if tableSectors == 0 {
		tableSectors, f.bits, f.rootCluster = int64(long(b[36:])), 32, long(b[44:])
	}
	if b[510] != 0x55 || b[511] != 0xaa || sector < 512 || sector > 4096 || sector&(sector-1) != 0 ||
		perCluster == 0 || perCluster&(perCluster-1) != 0 || reserved == 0 || tables < 1 || tables > 2 || tableSectors == 0 {
		return nil, errNoFAT
	}
	f.clusterBytes, f.table = perCluster*sector, reserved*sector
	f.root, f.rootBytes = f.table+tables*tableSectors*sector, (rootEntries*32+sector-1)/sector*sector
	f.data = f.root + f.rootBytes
	count := (sectors*sector - f.data) / f.clusterBytes
	if sectors*sector > size || count < 1 || count > 1<<28 {
		return nil, errNoFAT
	}
	f.clusters = uint32(count)
	switch { // the number of clusters alone tells FAT12 from FAT16
	case f.bits == 32:
	case count < 4085:
		f.bits = 12
	default:
		f.bits = 16
	}
	if int64(f.clusters+2)*int64(f.bits)/8 > tableSectors*sector {
		return nil, errNoFAT
	}
	return f, nil
}

// next returns the cluster that follows one, or false for the last.
func (f *fat) next(cluster uint32) (uint32, bool, error) {
	raw := make([]byte, 4)
	at := f.table + int64(cluster)*int64(f.bits)/8
	if err := readFull(f.r, raw[:2], at); err != nil {
		return 0, false, err
	}
	var n, end uint32
	switch f.bits {
	case 12:
		n, end = uint32(binary.LittleEndian.Uint16(raw))>>(4*(cluster&1))&0xfff, 0xff8
	case 16:
		n, end = uint32(binary.LittleEndian.Uint16(raw)), 0xfff8
	default:
		if err := readFull(f.r, raw, at); err != nil {
			return 0, false, err
		}
		n, end = binary.LittleEndian.Uint32(raw)&0x0fffffff, 0x0ffffff8
	}
	return n, n < end, nil
}

func (f *fat) read(cluster uint32, max int64) ([]byte, error) {
	var all []byte
	for range maxFATClusters {
		if cluster < 2 || cluster-2 >= f.clusters {
			return nil, fmt.Errorf("the FAT filesystem is damaged: cluster %d is not in it", cluster)
		}
		part := make([]byte, min(f.clusterBytes, max-int64(len(all))))
		if err := readFull(f.r, part, f.data+int64(cluster-2)*f.clusterBytes); err != nil {
			return nil, err
		}
		all = append(all, part...)
		next, more, err := f.next(cluster)
		if err != nil || !more || int64(len(all)) >= max {
			return all, err
		}
		cluster = next
	}
	return all, nil
}

// list returns what is in a directory, the root if cluster is 0.
func (f *fat) list(cluster uint32) ([]fatEntry, error) {
	var raw []byte
	var err error
	switch {
	case cluster == 0 && f.bits == 32:
		raw, err = f.read(f.rootCluster, maxFATEntries*32)
	case cluster == 0:
		raw = make([]byte, min(f.rootBytes, maxFATEntries*32))
		err = readFull(f.r, raw, f.root)
	default:
		raw, err = f.read(cluster, maxFATEntries*32)
	}
	if err != nil {
		return nil, err
	}
	var all []fatEntry
	var long []uint16
	for ; len(raw) >= 32 && raw[0] != 0; raw = raw[32:] {
		switch e := raw[:32]; {
		case e[0] == 0xe5: // deleted
			long = nil
		case e[11]&0x3f == 0x0f:
			long = append(longPart(e), long...) // the last part of a name comes first
		case e[11]&0x08 != 0: // the filesystem's label
			long = nil
		default:
			all = append(all, entryOf(e, long))
			long = nil
		}
	}
	return all, nil
}

// longPart returns the characters of an entry for a part of a long name.
func longPart(e []byte) []uint16 {
	var part []uint16
	for _, at := range []int{1, 3, 5, 7, 9, 14, 16, 18, 20, 22, 24, 28, 30} {
		unit := binary.LittleEndian.Uint16(e[at:])
		if unit == 0 {
			break
		}
		part = append(part, unit)
	}
	return part
}

// entryOf returns what an entry is, whose long name was read before it if it has one.
func entryOf(e []byte, long []uint16) fatEntry {
	name := strings.TrimRight(string(e[:8]), " ")
	if ending := strings.TrimRight(string(e[8:11]), " "); ending != "" {
		name += "." + ending
	}
	if len(long) > 0 {
		name = string(utf16.Decode(long))
	}
	return fatEntry{
		name: name, folder: e[11]&0x10 != 0, size: binary.LittleEndian.Uint32(e[28:]),
		cluster: uint32(binary.LittleEndian.Uint16(e[20:]))<<16 | uint32(binary.LittleEndian.Uint16(e[26:])),
	}
}

// find returns the file or directory at a path, in which case does not count.
func (f *fat) find(parts ...string) (fatEntry, bool, error) {
	at := fatEntry{folder: true}
	for _, part := range parts {
		if !at.folder {
			return fatEntry{}, false, nil
		}
		all, err := f.list(at.cluster)
		if err != nil {
			return fatEntry{}, false, err
		}
		found := false
		for _, e := range all {
			if strings.EqualFold(e.name, part) && (e.cluster != 0 || !e.folder) {
				at, found = e, true
				break
			}
		}
		if !found {
			return fatEntry{}, false, nil
		}
	}
	return at, true, nil
}

func (f *fat) content(e fatEntry) ([]byte, error) {
	if e.folder || e.size > maxFATFile {
		return nil, fmt.Errorf("%s is no file of at most %d bytes", e.name, maxFATFile)
	}
	if e.size == 0 {
		return nil, nil
	}
	return f.read(e.cluster, int64(e.size))
}
