package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
)

// A journal is a header and then frames, each at a multiple of 8 bytes. What one
// commit changes is one frame, so all of it is there or nothing. Numbers are
// big-endian.
//
//	header: "ingotlsj", version (4 bytes), 0 (4), salt (8), 0 (4), CRC of all before (4)
//	frame:  magic (4), length of the body (4), sequence number (8), salt (8),
//	        CRC of the body (4), CRC of all before (4), body, zeros up to 8 bytes
//	body:   length of name and of value (2 each; value 0xffff = forgotten), name, value; and so on
//
// CRCs are CRC-32C (RFC 3720 §12.1). The salt is chance, another one for each file:
// nobody who has a say in what a lease holds can write what looks like a frame, and
// what another file left on the disk is no frame of this one.
const (
	magic      = "ingotlsj"
	version    = 1
	frameMagic = 0x6c65_6173

	headSize  = 32 // of the header, and of a frame without body
	entryHead = 4
	forgotten = 0xffff // instead of the length of a value

	// maxFrameBody is more than a commit has: maxGroup and one SaveLeases.
	maxFrameBody = 64 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sealHead puts the CRC of the rest at the end of a header.
func sealHead(head []byte) {
	binary.BigEndian.PutUint32(head[headSize-4:], crc32.Checksum(head[:headSize-4], castagnoli))
}

// isSealed reports whether a header is as it was written.
func isSealed(head []byte) bool {
	return binary.BigEndian.Uint32(head[headSize-4:headSize]) == crc32.Checksum(head[:headSize-4], castagnoli)
}

func headOf(salt uint64) []byte {
	head := make([]byte, headSize)
	copy(head, magic)
	binary.BigEndian.PutUint32(head[8:], version)
	binary.BigEndian.PutUint64(head[16:], salt)
	sealHead(head)
	return head
}

// appendEntry appends a change to the body of a frame.
func appendEntry(to []byte, name string, value []byte) ([]byte, error) {
	length := len(value)
	if value == nil {
		length = forgotten
	}
	if len(name) >= forgotten || value != nil && length >= forgotten {
		return nil, fmt.Errorf("lease %.64q: it has %d bytes, allowed are %d", name, len(name)+len(value), forgotten-1)
	}
	to = binary.BigEndian.AppendUint16(to, uint16(len(name)))
	to = binary.BigEndian.AppendUint16(to, uint16(length))
	return append(append(to, name...), value...), nil
}

// sealFrame writes the head of a frame, for which there is room before its body, and
// returns all of it with what fills it up.
func sealFrame(frame []byte, seq, salt uint64) []byte {
	body := frame[headSize:]
	binary.BigEndian.PutUint32(frame, frameMagic)
	binary.BigEndian.PutUint32(frame[4:], uint32(len(body)))
	binary.BigEndian.PutUint64(frame[8:], seq)
	binary.BigEndian.PutUint64(frame[16:], salt)
	binary.BigEndian.PutUint32(frame[24:], crc32.Checksum(body, castagnoli))
	sealHead(frame)
	return append(frame, make([]byte, roundUp(int64(len(frame)), 8)-int64(len(frame)))...)
}

func roundUp(n, to int64) int64 { return (n + to - 1) / to * to }

// entry is one change of a frame. A value of nil means that the lease is forgotten.
// The bytes are not the reader's to keep.
type entry struct {
	at    int64 // where it is in the file
	name  []byte
	value []byte
}

// entries calls visit for each entry of a body that is at a place of the file, and
// reports whether that is all there is in it.
func entries(body []byte, at int64, visit func(entry)) bool {
	for len(body) > 0 {
		if len(body) < entryHead {
			return false
		}
		name := int(binary.BigEndian.Uint16(body))
		value := int(binary.BigEndian.Uint16(body[2:]))
		e := entry{at: at}
		size := entryHead + name
		if value != forgotten {
			size += value
		}
		if len(body) < size {
			return false
		}
		e.name = body[entryHead : entryHead+name]
		if value != forgotten {
			e.value = body[entryHead+name : size : size]
		}
		visit(e)
		body, at = body[size:], at+int64(size)
	}
	return true
}

// facts is what reading a journal found.
type facts struct {
	salt uint64
	seq  uint64 // of the last good frame
	last int64  // where that is, or 0
	end  int64  // of it
	// torn is how many bytes after the end are of a write that was not finished.
	torn int64
	// damage counts the places where something is not as it was written, though what
	// was written later is.
	damage int
}

// errVersion is wrapped for a journal with another format.
var errVersion = errors.New("see Upgrades in docs/operating.md")

// read calls visit for the entries of all good frames of a file, in their
// order. After a bad place it goes on with the next frame that is good. The error
// of visit ends it.
func read(from io.ReaderAt, size int64, visit func(frame []byte, at int64) error) (facts, error) {
	in := reader{from: from, size: size}
	err := in.readHead()
	for err == nil && !in.done {
		err = in.next(visit)
	}
	return in.facts, err
}

// reader reads a journal from its begin to its end.
type reader struct {
	from   io.ReaderAt
	size   int64
	facts  facts
	salted bool // the salt is known
	done   bool

	window []byte // of the file, from at
	at     int64
}

// readWindow is how many bytes are read at once.
const readWindow = 256 << 10

// bytes returns n bytes from a place, or fewer at the end of the file. They are good
// until the next call.
func (in *reader) bytes(at int64, n int) ([]byte, error) {
	n = int(min(int64(n), in.size-at))
	if n <= 0 {
		return nil, nil
	}
	if at >= in.at && at+int64(n) <= in.at+int64(len(in.window)) {
		return in.window[at-in.at:][:n], nil
	}
	want := int(min(int64(max(n, readWindow)), in.size-at))
	if cap(in.window) < want {
		in.window = make([]byte, want)
	}
	in.window, in.at = in.window[:want], at
	if got, err := in.from.ReadAt(in.window, at); got < want {
		in.window = in.window[:0]
		return nil, fmt.Errorf("at byte %d: %w", at, err)
	}
	return in.window[:n], nil
}

// readHead takes the salt from the header. Where that is damaged, the first frame
// has it too.
func (in *reader) readHead() error {
	head, err := in.bytes(0, headSize)
	if err != nil {
		return err
	}
	in.facts.end = headSize
	if len(head) < headSize || string(head[:8]) != magic || !isSealed(head) {
		in.facts.damage++
		return nil
	}
	if v := binary.BigEndian.Uint32(head[8:]); v != version {
		return fmt.Errorf("it has version %d, this ingot uses %d: %w", v, version, errVersion)
	}
	in.facts.salt, in.salted = binary.BigEndian.Uint64(head[16:]), true
	return nil
}

// next visits the next good frame, or finds that there is none.
func (in *reader) next(visit func(frame []byte, at int64) error) error {
	at, frame, err := in.find(in.facts.end)
	if err != nil {
		return err
	}
	if frame == nil {
		in.done = true
		in.facts.torn, err = in.written(in.facts.end)
		return err
	}
	seq := binary.BigEndian.Uint64(frame[8:])
	if at != in.facts.end || seq != in.facts.seq+1 {
		in.facts.damage++
	}
	in.facts.salt, in.salted = binary.BigEndian.Uint64(frame[16:]), true
	in.facts.seq, in.facts.last, in.facts.end = seq, at, at+roundUp(int64(len(frame)), 8)
	return visit(frame, at)
}

// find returns the first good frame from a place on, and where it is.
func (in *reader) find(at int64) (int64, []byte, error) {
	for ; at+headSize <= in.size; at += 8 {
		frame, err := in.frame(at)
		if frame != nil || err != nil {
			return at, frame, err
		}
	}
	return 0, nil, nil
}

// frame returns the frame at a place without what fills it up, nil if none is there
// that is good.
func (in *reader) frame(at int64) ([]byte, error) {
	head, err := in.bytes(at, headSize)
	if err != nil {
		return nil, err
	}
	length := int64(binary.BigEndian.Uint32(head[4:]))
	switch {
	case binary.BigEndian.Uint32(head) != frameMagic, !isSealed(head),
		in.salted && binary.BigEndian.Uint64(head[16:]) != in.facts.salt,
		binary.BigEndian.Uint64(head[8:]) <= in.facts.seq,
		length > maxFrameBody, at+headSize+length > in.size:
		return nil, nil
	}
	frame, err := in.bytes(at, int(headSize+length))
	if err != nil {
		return nil, err
	}
	body := frame[headSize:]
	if binary.BigEndian.Uint32(frame[24:]) != crc32.Checksum(body, castagnoli) || !entries(body, 0, func(entry) {}) {
		return nil, nil
	}
	return frame, nil
}

// written returns how many bytes there are from a place to the last that is not zero.
func (in *reader) written(from int64) (n int64, err error) {
	for at := from; at < in.size; at += readWindow {
		piece, err := in.bytes(at, readWindow)
		if err != nil {
			return 0, err
		}
		for i, b := range slices.Backward(piece) {
			if b != 0 {
				n = at + int64(i) + 1 - from
				break
			}
		}
	}
	return n, nil
}
