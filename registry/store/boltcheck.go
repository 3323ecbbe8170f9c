package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// bbolt trusts its file: with a page that is not as it was written it panics, in a
// goroutine of its own where nobody can recover, or reads outside of the file's
// mapping. So the file is checked before bbolt has it. The layout is that of
// bbolt's internal/common: pages, elements and numbers as the machine has them.

// Sizes and marks of bbolt's file format, version 2.
const (
	boltMagic       = 0xED0CDAED
	boltVersion     = 2
	boltHeaderSize  = 16 // of a page: id, flags, count, overflow
	boltElementSize = 16 // of an entry on a branch or a leaf
	boltBucketSize  = 16 // root page and sequence
	boltMetaSize    = 64
	boltMaxDepth    = 64

	boltBranchFlag = 0x01
	boltLeafFlag   = 0x02
	boltBucketFlag = 0x01 // of a leaf's element

	boltNoFreelist = ^uint64(0)
)

// ErrDamagedFile is the error for a file that is not as bbolt wrote it.
var ErrDamagedFile = errors.New("the file is damaged, or no store of ingot")

var native = binary.NativeEndian

// boltFileMeta is one of the two pages from which all others are found.
type boltFileMeta struct {
	pageSize             uint64
	root, freelist, high uint64 // pages; all are below high
	transaction          uint64
}

// boltChecker walks over the pages of a file.
type boltChecker struct {
	file io.ReaderAt
	meta boltFileMeta
	seen []bool // by page
}

// checkBolt reports what is wrong with a bbolt file, as an ErrDamagedFile or as the error
// with which it could not be read. An empty file is not damaged, but new.
func checkBolt(file io.ReaderAt, size int64) error {
	if size == 0 {
		return nil
	}
	meta, err := newestMeta(file, size)
	if err != nil {
		return err
	}
	if meta.high > uint64(size)/meta.pageSize {
		return fmt.Errorf("%w: it should have %d pages of %d bytes, and has %d bytes", ErrDamagedFile, meta.high, meta.pageSize, size)
	}
	c := boltChecker{file, meta, make([]bool, meta.high)}
	if err := c.freelist(); err != nil {
		return err
	}
	return c.tree(meta.root, nil, nil, 0)
}

// newestMeta finds the newer of the two meta pages that are whole. Where the first is
// not, the size of a page is not known.
func newestMeta(file io.ReaderAt, size int64) (newest boltFileMeta, err error) {
	offsets := []int64{0}
	first, err := readMeta(file, 0)
	switch {
	case err == nil:
		newest, offsets = first, []int64{int64(first.pageSize)}
	case !errors.Is(err, ErrDamagedFile):
		return newest, err
	default:
		for offset := int64(1024); offset <= 1024<<14 && offset < size; offset *= 2 {
			offsets = append(offsets, offset)
		}
	}
	for _, offset := range offsets {
		second, err := readMeta(file, offset)
		if err != nil && !errors.Is(err, ErrDamagedFile) {
			return newest, err
		}
		if err == nil && (offset == int64(second.pageSize)) && second.transaction >= newest.transaction {
			newest = second
		}
	}
	if newest.pageSize == 0 {
		return newest, fmt.Errorf("%w: its first pages are not those of a bbolt file", ErrDamagedFile)
	}
	return newest, nil
}

func readMeta(file io.ReaderAt, offset int64) (boltFileMeta, error) {
	raw := make([]byte, boltHeaderSize+boltMetaSize)
	if err := readFull(file, raw, offset); err != nil {
		return boltFileMeta{}, err
	}
	raw = raw[boltHeaderSize:]
	sum := fnv.New64a()
	_, _ = sum.Write(raw[:boltMetaSize-8]) // never fails
	if native.Uint32(raw) != boltMagic || native.Uint64(raw[boltMetaSize-8:]) != sum.Sum64() {
		return boltFileMeta{}, fmt.Errorf("%w: meta page at %d", ErrDamagedFile, offset)
	}
	if native.Uint32(raw[4:]) != boltVersion {
		return boltFileMeta{}, errors.New("another version of bbolt wrote it: see Upgrades in docs/operating.md")
	}
	m := boltFileMeta{
		pageSize: uint64(native.Uint32(raw[8:])), root: native.Uint64(raw[16:]), freelist: native.Uint64(raw[32:]),
		high: native.Uint64(raw[40:]), transaction: native.Uint64(raw[48:]),
	}
	if m.pageSize < 1024 || m.pageSize > 1024<<14 {
		return boltFileMeta{}, fmt.Errorf("%w: pages of %d bytes", ErrDamagedFile, m.pageSize)
	}
	return m, nil
}

// readFull reads exactly what fits; a file that ends before is damaged.
func readFull(file io.ReaderAt, to []byte, offset int64) error {
	n, err := file.ReadAt(to, offset)
	switch {
	case n == len(to):
		return nil
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%w: it ends early", ErrDamagedFile)
	default:
		return err
	}
}

// freelist checks the list of free pages, where the file has one.
func (c *boltChecker) freelist() error {
	if c.meta.freelist == boltNoFreelist {
		return nil
	}
	raw, err := c.page(c.meta.freelist)
	if err != nil {
		return err
	}
	count, ids := uint64(native.Uint16(raw[10:])), raw[boltHeaderSize:]
	if count == 0xFFFF && len(ids) >= 8 {
		count, ids = native.Uint64(ids), ids[8:]
	}
	if native.Uint16(raw[8:]) != 0x10 || count > uint64(len(ids))/8 {
		return fmt.Errorf("%w: the list of free pages", ErrDamagedFile)
	}
	for i := range count {
		if id := native.Uint64(ids[8*i:]); id < 2 || id >= c.meta.high || c.seen[id] {
			return fmt.Errorf("%w: page %d is listed as free", ErrDamagedFile, id)
		} else {
			c.seen[id] = true
		}
	}
	return nil
}

// page reads a page with those that it flows over to. Each belongs to one only.
func (c *boltChecker) page(id uint64) ([]byte, error) {
	if id < 2 || id >= c.meta.high {
		return nil, fmt.Errorf("%w: there is no page %d", ErrDamagedFile, id)
	}
	raw := make([]byte, c.meta.pageSize)
	if err := readFull(c.file, raw, int64(id*c.meta.pageSize)); err != nil {
		return nil, err
	}
	pages := 1 + uint64(native.Uint32(raw[12:]))
	if native.Uint64(raw) != id || pages > c.meta.high-id {
		return nil, fmt.Errorf("%w: page %d", ErrDamagedFile, id)
	}
	for i := range pages {
		if c.seen[id+i] {
			return nil, fmt.Errorf("%w: page %d is in use twice", ErrDamagedFile, id+i)
		}
		c.seen[id+i] = true
	}
	if pages == 1 {
		return raw, nil
	}
	raw = make([]byte, pages*c.meta.pageSize)
	return raw, readFull(c.file, raw, int64(id*c.meta.pageSize))
}

// tree checks a page and what is below it. All keys are from and above, but below to.
func (c *boltChecker) tree(id uint64, from, to []byte, depth int) error {
	if depth > boltMaxDepth {
		return fmt.Errorf("%w: page %d is %d deep", ErrDamagedFile, id, depth)
	}
	raw, err := c.page(id)
	if err != nil {
		return err
	}
	switch native.Uint16(raw[8:]) {
	case boltLeafFlag:
		return c.leaf(id, raw, from, to, depth)
	case boltBranchFlag:
		return c.branch(id, raw, from, to, depth)
	default:
		return fmt.Errorf("%w: page %d is neither branch nor leaf", ErrDamagedFile, id)
	}
}

func (c *boltChecker) branch(id uint64, raw, from, to []byte, depth int) error {
	count := int(native.Uint16(raw[10:]))
	if count == 0 {
		return fmt.Errorf("%w: page %d is an empty branch", ErrDamagedFile, id)
	}
	keys, children := make([][]byte, count), make([]uint64, count)
	for i := range count {
		element, at, err := elementOf(id, raw, i)
		if err != nil {
			return err
		}
		children[i] = native.Uint64(element[8:])
		keys[i], err = within(id, raw, at+uint64(native.Uint32(element)), uint64(native.Uint32(element[4:])))
		if err != nil {
			return err
		}
	}
	if err := inOrder(id, keys, from, to); err != nil {
		return err
	}
	for i, child := range children {
		end := to
		if i+1 < count {
			end = keys[i+1]
		}
		if err := c.tree(child, keys[i], end, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (c *boltChecker) leaf(id uint64, raw, from, to []byte, depth int) error {
	keys := make([][]byte, native.Uint16(raw[10:]))
	for i := range keys {
		element, at, err := elementOf(id, raw, i)
		if err != nil {
			return err
		}
		start, size := at+uint64(native.Uint32(element[4:])), uint64(native.Uint32(element[8:]))
		if keys[i], err = within(id, raw, start, size); err != nil {
			return err
		}
		value, err := within(id, raw, start+size, uint64(native.Uint32(element[12:])))
		if err != nil {
			return err
		}
		switch native.Uint32(element) {
		case 0:
		case boltBucketFlag:
			err = c.bucket(id, value, depth)
		default:
			err = fmt.Errorf("%w: an entry of page %d is neither value nor bucket", ErrDamagedFile, id)
		}
		if err != nil {
			return err
		}
	}
	return inOrder(id, keys, from, to)
}

// bucket checks a bucket: a tree of its own or, if it is small, a leaf in its place.
func (c *boltChecker) bucket(id uint64, value []byte, depth int) error {
	if len(value) < boltBucketSize {
		return fmt.Errorf("%w: a bucket on page %d", ErrDamagedFile, id)
	}
	if root := native.Uint64(value); root != 0 {
		return c.tree(root, nil, nil, depth+1)
	}
	inline := value[boltBucketSize:]
	if len(inline) < boltHeaderSize || native.Uint16(inline[8:]) != boltLeafFlag || depth > boltMaxDepth {
		return fmt.Errorf("%w: a bucket on page %d", ErrDamagedFile, id)
	}
	return c.leaf(id, inline, nil, nil, depth+1)
}

// elementOf returns the i-th element of a page, and where it is.
func elementOf(id uint64, raw []byte, i int) (element []byte, at uint64, err error) {
	at = boltHeaderSize + boltElementSize*uint64(i)
	element, err = within(id, raw, at, boltElementSize)
	return element, at, err
}

func within(id uint64, raw []byte, start, size uint64) ([]byte, error) {
	if end := start + size; end < start || end > uint64(len(raw)) {
		return nil, fmt.Errorf("%w: an entry of page %d is outside of it", ErrDamagedFile, id)
	}
	return raw[start : start+size], nil
}

// inOrder checks that keys ascend, from the first allowed to before to; nil = any.
func inOrder(id uint64, keys [][]byte, from, to []byte) error {
	for i, k := range keys {
		ascends := len(k) > 0 && (i == 0 || bytes.Compare(keys[i-1], k) < 0)
		if !ascends || bytes.Compare(k, from) < 0 || (to != nil && bytes.Compare(k, to) >= 0) {
			return fmt.Errorf("%w: the keys of page %d are out of order", ErrDamagedFile, id)
		}
	}
	return nil
}
