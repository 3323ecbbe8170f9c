package gitsource

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

const (
	maxCopy   = 0xffffff
	maxInsert = 127
)

// treeDelta returns the instructions that make tree object after out of before,
// see gitformat-pack(5), "Deltified representation". Both are sorted lists, so
// one pass finds the runs that stayed.
func treeDelta(before, after []byte) []byte {
	out := binary.AppendUvarint(nil, uint64(len(before)))
	out = binary.AppendUvarint(out, uint64(len(after)))
	b, a := 0, 0
	for a < len(after) {
		run := 0
		for a+run < len(after) && b+run < len(before) {
			n := entryLen(after[a+run:])
			if !bytes.HasPrefix(before[b+run:], after[a+run:a+run+n]) {
				break
			}
			run += n
		}
		if run > 0 {
			out = appendCopy(out, b, run)
			a, b = a+run, b+run
			continue
		}
		n := entryLen(after[a:])
		switch order(before[b:], after[a:]) {
		case -1: // gone
			b += entryLen(before[b:])
			continue
		case 0: // changed
			b += entryLen(before[b:])
		}
		out = appendInsert(out, after[a:a+n])
		a += n
	}
	return out
}

// entryLen returns the length of a tree object's first entry.
func entryLen(tree []byte) int { return bytes.IndexByte(tree, 0) + 1 + len(plumbing.ZeroHash) }

// order compares the first entries of two tree objects by name; an empty one is
// behind all others.
func order(x, y []byte) int {
	if len(x) == 0 {
		return 1
	}
	return bytes.Compare(entryName(x), entryName(y))
}

func entryName(tree []byte) []byte {
	head := tree[:bytes.IndexByte(tree, 0)]
	mode, name, _ := bytes.Cut(head, []byte(" "))
	if len(mode)+1 == len(modeDir) {
		return append(slices.Clone(name), '/')
	}
	return name
}

func appendCopy(out []byte, offset, size int) []byte {
	for size > 0 {
		n := min(size, maxCopy)
		op := len(out)
		out = append(out, 0x80)
		for i := range 4 {
			if b := byte(offset >> (8 * i)); b != 0 {
				out[op] |= 1 << i
				out = append(out, b)
			}
		}
		for i := range 3 {
			if b := byte(n >> (8 * i)); b != 0 {
				out[op] |= 0x10 << i
				out = append(out, b)
			}
		}
		offset, size = offset+n, size-n
	}
	return out
}

func appendInsert(out, content []byte) []byte {
	for len(content) > 0 {
		n := min(len(content), maxInsert)
		out = append(out, byte(n))
		out = append(out, content[:n]...)
		content = content[n:]
	}
	return out
}
