// Package fat makes small FAT filesystems (Microsoft, "FAT32 File System Specification" 1.03,
// the parts of FAT12 and FAT16), with long file names. Sectors have the size of the disk's:
// Linux mounts a filesystem of larger ones only.
package fat

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"unicode/utf16"
)

// Limits of a volume. Clusters of 4 KiB keep every size between them FAT12 or FAT16, which no
// system takes for anything else.
const (
	MinBytes = 4 << 20
	MaxBytes = 64 << 20

	clusterBytes = 4096
	rootEntries  = 512 // a multiple of a sector, for sectors of 4096 bytes too
	entryBytes   = 32
	tables       = 2
	fat12Most    = 4084 // clusters
	// nearLimit is how far a volume keeps away from the number of clusters at which FAT16
	// begins: programs differ by a few.
	nearLimit = 32
)

// Volume is a filesystem that is yet to be written.
type Volume struct {
	SectorSize int    // 512 to 4096
	Label      string // at most 11 letters, kept in their case
	Serial     uint32
	Files      map[string]string // by path, with slashes
	// Before is how many sectors of the disk lie before the volume.
	Before uint64
}

// ErrTooLarge means that the files do not fit into MaxBytes.
var ErrTooLarge = errors.New("the files do not fit")

// Bytes is the size of the volume, a multiple of 1 MiB.
func (v Volume) Bytes() (uint64, error) {
	root, err := v.tree()
	if err != nil {
		return 0, err
	}
	// one cluster in 1024 of the tables' own, at 2 bytes an entry and two tables, and the rest
	need := uint64(root.clusters()) * clusterBytes
	need += need/512 + rootEntries*entryBytes + 4*uint64(v.SectorSize)
	const step = 1 << 20
	bytes := max(MinBytes, (need+step-1)/step*step)
	if n := int(bytes / clusterBytes); n > fat12Most-nearLimit && n < fat12Most+2*nearLimit {
		bytes += step
	}
	if bytes > MaxBytes {
		return 0, fmt.Errorf("%w: they take %d bytes, and at most %d are possible", ErrTooLarge, need, MaxBytes)
	}
	return bytes, nil
}

// layout is where the parts of a volume are, in sectors.
type layout struct {
	sectors, perCluster, perTable int64
	clusters                      int64
	fat16                         bool
}

// root and data are the first sectors of the root directory and of cluster 2.
func (l layout) root() int64 { return 1 + tables*l.perTable }
func (l layout) data(sector int64) int64 {
	return l.root() + rootEntries*entryBytes/sector
}

func (v Volume) layout(bytes int64) layout {
	sector := int64(v.SectorSize)
	l := layout{sectors: bytes / sector, perCluster: clusterBytes / sector}
	l.fat16 = bytes/clusterBytes > fat12Most
	width := int64(3) // nibbles of an entry
	if l.fat16 {
		width = 4
	}
	// tables for all clusters that there would be without tables are a little too large, and
	// so always large enough
	l.perTable = ((l.sectors/l.perCluster+2)*width + 2*sector - 1) / (2 * sector)
	l.clusters = (l.sectors - l.data(sector)) / l.perCluster
	return l
}

// WriteTo writes the volume of as many bytes as Bytes says to w from its beginning on: whole
// sectors, each once, and of what no file uses nothing.
func (v Volume) WriteTo(w io.WriterAt) error {
	bytes, err := v.Bytes()
	if err != nil {
		return err
	}
	root, err := v.tree()
	if err != nil {
		return err
	}
	f := &formatter{w: w, sector: int64(v.SectorSize), layout: v.layout(int64(bytes)), next: 2}
	f.table = append(f.table, 0xfff8, 0xffff)
	entries := append(label(v.Label), f.folder(root, 0)...)
	if len(entries) > rootEntries*entryBytes {
		return fmt.Errorf("%d files are too many for one folder", len(root.children))
	}
	f.write(f.layout.root()*f.sector, append(entries, make([]byte, rootEntries*entryBytes-len(entries))...))
	for n := range int64(tables) {
		f.write((1+n*f.layout.perTable)*f.sector, f.encodeTable())
	}
	f.write(0, v.bootSector(f.layout))
	return f.err
}

// bootSector is the first sector, with the BIOS parameter block.
func (v Volume) bootSector(l layout) []byte {
	b := make([]byte, v.SectorSize)
	copy(b, "\xeb\x3c\x90INGOT   ")
	binary.LittleEndian.PutUint16(b[11:], uint16(v.SectorSize))
	b[13] = byte(l.perCluster)
	binary.LittleEndian.PutUint16(b[14:], 1) // reserved sectors: this one
	b[16] = tables
	binary.LittleEndian.PutUint16(b[17:], rootEntries)
	if l.sectors < 1<<16 {
		binary.LittleEndian.PutUint16(b[19:], uint16(l.sectors))
	} else {
		binary.LittleEndian.PutUint32(b[32:], uint32(l.sectors))
	}
	b[21] = 0xf8 // a fixed disk
	binary.LittleEndian.PutUint16(b[22:], uint16(l.perTable))
	binary.LittleEndian.PutUint16(b[24:], 63)  // sectors of a track, which nothing asks for
	binary.LittleEndian.PutUint16(b[26:], 255) // heads
	if v.Before < 1<<32 {
		binary.LittleEndian.PutUint32(b[28:], uint32(v.Before))
	}
	b[36], b[38] = 0x80, 0x29 // a fixed disk; serial number, label and kind follow
	binary.LittleEndian.PutUint32(b[39:], v.Serial)
	copy(b[43:], padded(v.Label, 11))
	kind := "FAT12   "
	if l.fat16 {
		kind = "FAT16   "
	}
	copy(b[54:], kind)
	b[510], b[511] = 0x55, 0xaa
	return b
}

// node is a file, or a folder if it has a map of children.
type node struct {
	content  string
	children map[string]*node
}

// tree sorts the files into folders.
func (v Volume) tree() (*node, error) {
	root := &node{children: make(map[string]*node)}
	for name, content := range v.Files {
		if name == "" || path.Clean(name) != name || path.IsAbs(name) || strings.HasPrefix(name, "..") {
			return nil, fmt.Errorf("%.80q is no path of a file", name)
		}
		parts := strings.Split(name, "/")
		folder := root
		for _, part := range parts[:len(parts)-1] {
			next := folder.children[part]
			if next == nil {
				next = &node{children: make(map[string]*node)}
				folder.children[part] = next
			}
			if next.children == nil {
				return nil, fmt.Errorf("%.80q is a file and a folder", part)
			}
			folder = next
		}
		last := parts[len(parts)-1]
		if err := checkName(last); err != nil || folder.children[last] != nil {
			return nil, errors.Join(fmt.Errorf("%.80q cannot be the name of a file", name), err)
		}
		folder.children[last] = &node{content: content}
	}
	return root, nil
}

// checkName refuses what FAT does not take (§7).
func checkName(name string) error {
	if len(name) > 200 || strings.ContainsAny(name, `"*:<>?\|`) || strings.TrimRight(name, " .") != name {
		return errors.New(`its characters, or its length, are not possible`)
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return errors.New("it has control characters")
	}
	return nil
}

// clusters is how many clusters a file or folder takes with all that is in it. A folder is
// reckoned large: each name may take 17 entries.
func (n *node) clusters() int {
	if n.children == nil {
		return (len(n.content) + clusterBytes - 1) / clusterBytes
	}
	sum := 1 + len(n.children)*18*entryBytes/clusterBytes
	for _, child := range n.children {
		sum += child.clusters()
	}
	return sum
}

// formatter writes the parts of a volume.
type formatter struct {
	w      io.WriterAt
	sector int64
	layout layout
	table  []uint16 // entries of the clusters that are taken
	next   uint16   // the first cluster that is free
	err    error
}

// write writes bytes at an offset, in whole sectors.
func (f *formatter) write(at int64, b []byte) {
	if rest := int64(len(b)) % f.sector; rest != 0 {
		b = append(slices.Clip(b), make([]byte, f.sector-rest)...)
	}
	if f.err == nil && len(b) > 0 {
		_, f.err = f.w.WriteAt(b, at)
	}
}

// store writes content to the next free clusters, and returns the first of them; 0 = none,
// for nothing.
func (f *formatter) store(content []byte) uint16 {
	if len(content) == 0 {
		return 0
	}
	first, n := f.take(len(content))
	content = append(slices.Clip(content), make([]byte, n*clusterBytes-len(content))...)
	f.write(f.place(first), content)
	return first
}

// take reserves clusters for so many bytes.
func (f *formatter) take(bytes int) (first uint16, n int) {
	first, n = f.next, (bytes+clusterBytes-1)/clusterBytes
	for i := 1; i < n; i++ {
		f.table = append(f.table, f.next+uint16(i))
	}
	f.table = append(f.table, 0xffff)
	f.next += uint16(n)
	return first, n
}

func (f *formatter) place(cluster uint16) int64 {
	return (f.layout.data(f.sector) + int64(cluster-2)*f.layout.perCluster) * f.sector
}

// folder writes what is in a folder, and returns its entries. self is its first cluster, 0 for
// the root.
func (f *formatter) folder(n *node, self uint16) []byte {
	var entries []byte
	aliases := make(map[string]bool)
	for number, name := range sortedNames(n.children) {
		child := n.children[name]
		e := entry{name: name, alias: alias(name, number, aliases)}
		if child.children == nil {
			e.attributes, e.size = archived, uint32(len(child.content))
			e.cluster = f.store([]byte(child.content))
		} else {
			e.attributes = folder
			e.cluster = f.subfolder(child, self)
		}
		entries = append(entries, e.encode()...)
	}
	return entries
}

// subfolder writes a folder that has its own clusters, and returns the first of them.
func (f *formatter) subfolder(n *node, parent uint16) uint16 {
	const most = 18 * entryBytes // of one name
	first, clusters := f.take((len(n.children)*most + 2*entryBytes))
	dots := append((entry{alias: padded(".", 11), attributes: folder, cluster: first}).encode(),
		(entry{alias: padded("..", 11), attributes: folder, cluster: parent}).encode()...)
	b := make([]byte, clusters*clusterBytes)
	copy(b, append(dots, f.folder(n, first)...))
	f.write(f.place(first), b)
	return first
}

func sortedNames(children map[string]*node) []string {
	names := make([]string, 0, len(children))
	for name := range children {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// encodeTable returns the table of clusters, whose entries have 12 or 16 bits.
func (f *formatter) encodeTable() []byte {
	b := make([]byte, f.layout.perTable*f.sector)
	for n, value := range f.table {
		if f.layout.fat16 {
			binary.LittleEndian.PutUint16(b[2*n:], value)
			continue
		}
		at := n * 3 / 2
		value &= 0xfff
		if n%2 == 0 {
			b[at] = byte(value)
			b[at+1] |= byte(value >> 8)
		} else {
			b[at] |= byte(value << 4)
			b[at+1] = byte(value >> 4)
		}
	}
	return b
}

// Attributes of entries (§6).
const (
	volumeLabel = 0x08
	folder      = 0x10
	archived    = 0x20
	longName    = 0x0f
)

// epoch is the date of all entries, 1 January 1980: machines that are installed do not know
// what time it is.
const epoch = 1<<5 | 1

type entry struct {
	name       string // "" for one that has its alias alone
	alias      string // 11 characters
	attributes byte
	cluster    uint16
	size       uint32
}

// encode returns the entries of the long name, the last part first, and that of the alias (§7).
func (e entry) encode() []byte {
	var b []byte
	if e.name != "" {
		const inEntry = 13
		units := utf16.Encode([]rune(e.name))
		parts := (len(units) + inEntry - 1) / inEntry
		if len(units)%inEntry != 0 {
			units = append(units, 0)
		}
		for len(units) < parts*inEntry {
			units = append(units, 0xffff)
		}
		for n := parts; n > 0; n-- {
			b = append(b, longEntry(units[(n-1)*inEntry:n*inEntry], n, n == parts, checksum(e.alias))...)
		}
	}
	short := make([]byte, entryBytes)
	copy(short, e.alias)
	short[11] = e.attributes
	for _, at := range []int{16, 18, 24} { // made, read, written
		binary.LittleEndian.PutUint16(short[at:], epoch)
	}
	binary.LittleEndian.PutUint16(short[26:], e.cluster)
	binary.LittleEndian.PutUint32(short[28:], e.size)
	return append(b, short...)
}

// longEntry is the part of a long name with a number.
func longEntry(units []uint16, number int, last bool, sum byte) []byte {
	b := make([]byte, entryBytes)
	b[0] = byte(number)
	if last {
		b[0] |= 0x40
	}
	b[11], b[13] = longName, sum
	for n, at := range []int{1, 3, 5, 7, 9, 14, 16, 18, 20, 22, 24, 28, 30} {
		binary.LittleEndian.PutUint16(b[at:], units[n])
	}
	return b
}

// checksum is that of an alias, by which a long name belongs to it.
func checksum(alias string) byte {
	var sum byte
	for _, c := range []byte(alias) {
		sum = sum>>1 | sum<<7
		sum += c
	}
	return sum
}

// alias is the short name of a file: the letters and digits that it begins with, and its
// number in the folder.
func alias(name string, number int, taken map[string]bool) string {
	stem, extension, _ := strings.Cut(name, ".")
	for {
		number++
		tail := fmt.Sprintf("~%d", number)
		a := padded(plain(stem, 8-len(tail))+tail, 8) + padded(plain(extension, 3), 3)
		if !taken[a] {
			taken[a] = true
			return a
		}
	}
}

// plain are the first letters and digits of a text, in upper case.
func plain(text string, most int) string {
	kept := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, strings.ToUpper(text))
	return kept[:min(len(kept), most)]
}

func padded(text string, length int) string {
	return text[:min(len(text), length)] + strings.Repeat(" ", max(0, length-len(text)))
}

func label(text string) []byte {
	return entry{alias: padded(text, 11), attributes: volumeLabel}.encode()
}
