package diskimagetest

import (
	"encoding/binary"
	"maps"
	"slices"
	"strings"
)

// FAT returns a FAT12 or FAT16 filesystem with files of names in 8.3 form, in clusters of one
// sector. Its label is INGOTTEST.
func FAT(size, sector int, files map[string][]byte) []byte {
	w := &fatWriter{disk: make([]byte, size), sector: sector, next: 2}
	sectors := size / sector
	w.wide = sectors > 4200
	entry := 3 // half bytes
	if w.wide {
		entry = 4
	}
	tableSectors := (sectors*entry/2 + sector - 1) / sector
	const rootEntries = 512
	copy(w.disk, "\xeb\x3c\x90INGOT   ")
	put := binary.LittleEndian.PutUint16
	put(w.disk[11:], uint16(sector))
	w.disk[13], w.disk[16], w.disk[21] = 1, 2, 0xf8
	put(w.disk[14:], 1)
	put(w.disk[17:], rootEntries)
	put(w.disk[22:], uint16(tableSectors))
	if sectors < 1<<16 {
		put(w.disk[19:], uint16(sectors))
	} else {
		binary.LittleEndian.PutUint32(w.disk[32:], uint32(sectors))
	}
	w.disk[38] = 0x29
	kind := "FAT12   "
	if w.wide {
		kind = "FAT16   "
	}
	copy(w.disk[39:], "\x12\x34\xab\xcdINGOTTEST  "+kind)
	w.disk[510], w.disk[511] = 0x55, 0xaa
	w.tables = [2]int{sector, sector * (1 + tableSectors)}
	w.root = sector * (1 + 2*tableSectors)
	w.data = w.root + rootEntries*32
	w.set(0, 0xfff8)
	w.set(1, 0xffff)
	w.folder(w.disk[w.root:w.data], files, 0, 0)
	return w.disk
}

type fatWriter struct {
	disk       []byte
	sector     int
	wide       bool // FAT16
	tables     [2]int
	root, data int
	next       int // free cluster
}

func (w *fatWriter) set(cluster, to int) {
	for _, table := range w.tables {
		if w.wide {
			binary.LittleEndian.PutUint16(w.disk[table+2*cluster:], uint16(to))
			continue
		}
		at := w.disk[table+cluster*3/2:]
		old, shift := int(binary.LittleEndian.Uint16(at)), 4*(cluster&1)
		binary.LittleEndian.PutUint16(at, uint16(old&^(0xfff<<shift)|to&0xfff<<shift))
	}
}

// room returns n bytes of data, and the cluster that they begin in.
func (w *fatWriter) room(n int) (first int, to []byte) {
	first = w.next
	count := max(1, (n+w.sector-1)/w.sector)
	for c := first; c < first+count-1; c++ {
		w.set(c, c+1)
	}
	w.set(first+count-1, 0xffff)
	w.next += count
	at := w.data + (first-2)*w.sector
	return first, w.disk[at : at+count*w.sector]
}

// folder writes a directory whose own cluster and whose parent's are given, 0 for the root.
func (w *fatWriter) folder(to []byte, files map[string][]byte, own, parent int) {
	if own == 0 {
		to = fatEntry(to, "INGOTTEST  ", 0x08, 0, 0)
	} else {
		to = fatEntry(to, ".          ", 0x10, own, 0)
		to = fatEntry(to, "..         ", 0x10, parent, 0)
	}
	below := make(map[string]map[string][]byte)
	for path, content := range files {
		name, rest, nested := strings.Cut(path, "/")
		if !nested {
			continue
		}
		if below[name] == nil {
			below[name] = make(map[string][]byte)
		}
		below[name][rest] = content
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.Contains(name, "/") {
			continue
		}
		cluster, data := w.room(len(files[name]))
		copy(data, files[name])
		to = fatEntry(to, shortName(name), 0x20, cluster, len(files[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(below)) {
		cluster, data := w.room(32 * (len(below[name]) + 3))
		w.folder(data, below[name], cluster, own)
		to = fatEntry(to, shortName(name), 0x10, cluster, 0)
	}
}

// fatEntry writes an entry of a directory, and returns what is behind it.
func fatEntry(to []byte, name string, attributes byte, cluster, size int) []byte {
	copy(to, name)
	to[11] = attributes
	binary.LittleEndian.PutUint16(to[26:], uint16(cluster))
	binary.LittleEndian.PutUint32(to[28:], uint32(size))
	return to[32:]
}

func shortName(name string) string {
	base, ending, _ := strings.Cut(strings.ToUpper(name), ".")
	return (base + "        ")[:8] + (ending + "   ")[:3]
}
