package diskimage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"
	"github.com/lima-vm/go-qcow2reader/image/qcow2"
	"github.com/lima-vm/go-qcow2reader/log"

	"ingot/model"
)

const qcow2Magic = "QFI\xfb"

// Bounds on the header of a qcow2.
const (
	qcow2Header     = 112 // the longest part of it that means anything here
	minClusterBits  = 9
	maxClusterBits  = 21
	maxL1Entries    = 512 << 10 // 4 MiB: 256 GiB in clusters of 2 KiB
	qcow2Compressed = 1 << 3    // incompatible feature: compression type
	qcow2ExtendedL2 = 1 << 4
	qcow2External   = 1 << 2
	qcow2Dirty      = 1 << 0
	qcow2Corrupt    = 1 << 1
)

// checkQcow2 judges the header of a qcow2 (QEMU, docs/interop/qcow2.txt) and returns the size of
// its disk. The library follows what it says, to any file on this machine, so it sees none that
// names another file, is encrypted, or claims more than max bytes.
func checkQcow2(r io.ReaderAt, size int64, max uint64) (uint64, error) {
	h := make([]byte, qcow2Header)
	if size < 72 {
		return 0, refuse(model.ReasonImageFormat, "its qcow2 header is cut off: publish it again")
	}
	if _, err := r.ReadAt(h[:min(size, qcow2Header)], 0); err != nil {
		return 0, fmt.Errorf("read the qcow2 header: %w", err)
	}
	number, long := binary.BigEndian.Uint32, binary.BigEndian.Uint64
	version, features := number(h[4:]), uint64(0)
	if version == 3 {
		features = long(h[72:])
	}
	bits, disk, l1 := number(h[20:]), long(h[24:]), uint64(number(h[36:]))
	switch {
	case version != 2 && version != 3:
		return 0, refuse(model.ReasonImageFormat, "it is a qcow of version %d; 2 and 3 are taken. %s", version, converted("qcow"))
	case long(h[8:]) != 0 || number(h[16:]) != 0:
		return 0, refuse(model.ReasonImageUnsafe, "the qcow2 has a backing file: it holds only what differs from another image, which would be read from this machine. Make it whole: qemu-img convert -O qcow2 -c disk.qcow2 whole.qcow2")
	case number(h[32:]) != 0:
		return 0, refuse(model.ReasonImageUnsafe, "the qcow2 is encrypted: decrypt it before it is published")
	case features&qcow2External != 0:
		return 0, refuse(model.ReasonImageUnsafe, "the qcow2 keeps its data in another file, which would be read from this machine. Make it whole: qemu-img convert -O qcow2 -c disk.qcow2 whole.qcow2")
	case features&(qcow2Dirty|qcow2Corrupt) != 0:
		return 0, refuse(model.ReasonImageUnsafe, "the qcow2 is marked as not closed or as damaged: see to it with qemu-img check -r all disk.qcow2")
	case features&^(qcow2Compressed|qcow2ExtendedL2) != 0:
		return 0, refuse(model.ReasonImageUnsafe, "the qcow2 uses features that are not known (%#x). %s", features, converted("qcow2"))
	case version == 3 && (number(h[100:]) < 104 || number(h[100:]) > 4096):
		return 0, refuse(model.ReasonImageUnsafe, "the qcow2 has a header of %d bytes; 104 to 4096 are possible", number(h[100:]))
	case bits < minClusterBits || bits > maxClusterBits:
		return 0, refuse(model.ReasonImageUnsafe, "the qcow2 has clusters of 2^%d bytes; 2^%d to 2^%d are possible", bits, minClusterBits, maxClusterBits)
	case disk == 0:
		return 0, refuse(model.ReasonImageFormat, "the qcow2 is of a disk of 0 bytes")
	case disk > max:
		return 0, tooLarge(disk, max)
	}
	return disk, checkL1(l1, long(h[40:]), disk, size, bits, features)
}

// checkL1 refuses a first table of clusters that is not of its disk or not in its file.
func checkL1(entries, offset, disk uint64, size int64, bits uint32, features uint64) error {
	perL2 := uint64(1) << (bits - 3)
	if features&qcow2ExtendedL2 != 0 {
		perL2 /= 2
	}
	covers := perL2 << bits
	needed := (disk + covers - 1) / covers
	switch {
	case entries < needed:
		return refuse(model.ReasonImageUnsafe, "the qcow2 has an L1 table of %d entries; a disk of %s needs %d", entries, sizeText(disk), needed)
	case entries > maxL1Entries:
		return refuse(model.ReasonImageUnsafe, "the qcow2 has an L1 table of %d entries; at most %d are taken. Use larger clusters: qemu-img convert -O qcow2 -c -o cluster_size=64k disk.qcow2 new.qcow2", entries, maxL1Entries)
	case offset == 0 || offset > uint64(size) || uint64(size)-offset < entries*8:
		return refuse(model.ReasonImageUnsafe, "the L1 table of the qcow2 does not lie in its file, which may be cut off")
	}
	return nil
}

// tooLarge refuses an image whose disk is larger than allowed; 0 = nobody knows by how much.
func tooLarge(disk, max uint64) *Error {
	if disk == 0 {
		return refuse(model.ReasonImageTooLarge, "its disk is larger than %s, the maximum", sizeText(max))
	}
	return refuse(model.ReasonImageTooLarge, "its disk has %s (%d bytes); the maximum is %s", sizeText(disk), disk, sizeText(max))
}

// readQcow2 opens a qcow2 whose header was judged.
func readQcow2(r io.ReaderAt, size int64) (*qcow2.Qcow2, error) {
	useDecompressors()
	// A section has no name, beside which files could be looked for.
	img, err := qcow2.Open(io.NewSectionReader(r, 0, size), nil)
	if err == nil {
		err = img.Readable()
	}
	if err != nil {
		return nil, brokenQcow2(err)
	}
	return img, nil
}

func brokenQcow2(err error) error {
	return &Error{Reason: model.ReasonImageFormat, Err: err, Message: fmt.Sprintf("the qcow2 is damaged (%v): see what qemu-img check disk.qcow2 says", err)}
}

// useDecompressors gives the library decompressors that are used again for each cluster, of
// which no one takes more memory than a cluster needs.
var useDecompressors = sync.OnceFunc(func() {
	log.SetWarnFunc(nil) // its warnings are of what was judged before
	inflaters := sync.Pool{New: func() any { return flate.NewReader(nil) }}
	qcow2.SetDecompressor(qcow2.CompressionTypeZlib, func(r io.Reader) (io.ReadCloser, error) {
		d := inflaters.Get().(io.ReadCloser)
		return pooled{d, func() { inflaters.Put(d) }}, d.(flate.Resetter).Reset(r, nil)
	})
	decoders := sync.Pool{New: func() any {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(8<<20))
		if err != nil {
			panic(err) // of options that do not fit together
		}
		return d
	}}
	qcow2.SetDecompressor(qcow2.CompressionTypeZstd, func(r io.Reader) (io.ReadCloser, error) {
		d := decoders.Get().(*zstd.Decoder)
		return pooled{d, func() { _ = d.Reset(nil); decoders.Put(d) }}, d.Reset(r)
	})
})

// pooled is a decompressor that is used again once it is closed.
type pooled struct {
	r   io.Reader
	put func()
}

// Read fills p, unless there is less. The library takes a short read for a reason to unpack the
// cluster again from its beginning.
func (p pooled) Read(to []byte) (int, error) {
	n, err := io.ReadFull(p.r, to)
	if n > 0 && errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return n, err
}

// Close implements io.Closer.
func (p pooled) Close() error {
	p.put()
	return nil
}
