package gitsource

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // what Git names objects by
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// Object types in a pack, see gitformat-pack(5).
const (
	packCommit      = 1
	packTree        = 2
	packBlob        = 3
	packOffsetDelta = 6
	packRefDelta    = 7
)

func hashObject(kind string, content []byte) plumbing.Hash {
	h := sha1.New() //nolint:gosec // what Git names objects by
	header := fmt.Appendf(make([]byte, 0, 32), "%s %d\x00", kind, len(content))
	_, _ = h.Write(header)
	_, _ = h.Write(content)
	return plumbing.Hash(h.Sum(nil))
}

// packWriter builds a pack in memory, one whole object after the other. Git's own
// way, a search for the best delta, takes longer than sending what it would save.
type packWriter struct {
	buf     bytes.Buffer
	objects uint32
}

const packHeader = 12

func newPackWriter() *packWriter {
	p := &packWriter{}
	p.buf.Write(make([]byte, packHeader)) // filled in by bytes
	return p
}

// deflaters keeps compressors, each of which is more than a megabyte.
var deflaters = sync.Pool{New: func() any {
	z, err := zlib.NewWriterLevel(io.Discard, zlib.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return z
}}

func (p *packWriter) add(kind byte, content []byte) {
	p.header(kind, len(content))
	p.deflate(content)
}

// addDelta appends an object that the receiver makes out of base, which it has.
func (p *packWriter) addDelta(base plumbing.Hash, delta []byte) {
	p.header(packRefDelta, len(delta))
	p.buf.Write(base[:])
	p.deflate(delta)
}

// header writes type and size: four bits of the size beside the type, then seven
// a byte.
func (p *packWriter) header(kind byte, size int) {
	b := kind<<4 | byte(size&0x0f)
	for size >>= 4; size > 0; size >>= 7 {
		p.buf.WriteByte(b | 0x80)
		b = byte(size & 0x7f)
	}
	p.buf.WriteByte(b)
	p.objects++
}

// offset writes how far back the object lies that a delta is of: seven bits a byte, the
// highest first, each continuation one less than it says.
func (p *packWriter) offset(back int64) {
	digits := []byte{byte(back & 0x7f)}
	for back >>= 7; back > 0; back >>= 7 {
		back--
		digits = append(digits, 0x80|byte(back&0x7f))
	}
	slices.Reverse(digits)
	p.buf.Write(digits)
}

func (p *packWriter) deflate(content []byte) {
	z := deflaters.Get().(*zlib.Writer)
	defer deflaters.Put(z)
	z.Reset(&p.buf)
	_, _ = z.Write(content) // a bytes.Buffer takes all
	_ = z.Close()
}

// append appends the objects of a writer that has no header.
func (p *packWriter) append(part *packWriter) {
	p.buf.Write(part.buf.Bytes())
	p.objects += part.objects
}

func (p *packWriter) bytes() []byte {
	b := p.buf.Bytes()
	copy(b, "PACK")
	binary.BigEndian.PutUint32(b[4:], 2)
	binary.BigEndian.PutUint32(b[8:], p.objects)
	sum := sha1.Sum(b) //nolint:gosec // what Git checks packs by
	p.buf.Write(sum[:])
	return p.buf.Bytes()
}

type signature struct{ name, email string }

// encodeCommit returns a commit object; a zero parent is none.
func encodeCommit(tree, parent plumbing.Hash, by signature, at time.Time, message string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", tree)
	if !parent.IsZero() {
		fmt.Fprintf(&b, "parent %s\n", parent)
	}
	who := fmt.Sprintf("%s <%s> %d +0000", headerText(by.name), headerText(by.email), at.Unix())
	fmt.Fprintf(&b, "author %s\ncommitter %s\n\n%s", who, who, message)
	return b.Bytes()
}

// headerText takes out what would break a commit's header.
func headerText(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == '<' || r == '>' || r == 0x7f {
			return -1
		}
		return r
	}, s))
}
