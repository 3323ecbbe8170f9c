package diskimage

import (
	"encoding/binary"

	"github.com/klauspost/compress/zstd"

	"ingot/model"
)

// framing appends to a buffer the frame of zstd that a chunk is stored as.
type framing func(chunk, to []byte) []byte

// framingOf returns how the chunks of an image are stored that was packed with compression. To
// pack costs three times what it costs to hash the image, and to unpack most formats, so that is
// done only where unpacking took much longer.
func framingOf(compression string) (framing, error) {
	if compression != packedXZ && compression != packedBzip2 {
		return appendFrame, nil
	}
	// Each chunk is read by itself by a machine that has little memory and less time: the
	// fastest level, and a window of no more than the chunk.
	pack, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(model.ChunkBytes), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, err
	}
	return pack.EncodeAll, nil
}

// What begins a frame of one segment whose length is four bytes, without a checksum (RFC 8878
// §3.1.1.1).
const frameHead = "\x28\xb5\x2f\xfd\xa0"

// The types of a block, and what one may hold at most (RFC 8878 §3.1.1.2).
const (
	rawBlock      = 0
	rleBlock      = 1
	maxBlockBytes = 128 << 10
)

// pageBytes is the smallest part of a chunk that is looked at for zeros: a block of most
// filesystems.
const pageBytes = 4 << 10

// appendFrame is the framing that packs nothing but zeros: of each run of them it stores a block
// of one byte, and all else as it is.
func appendFrame(chunk, to []byte) []byte {
	to = append(to, frameHead...)
	to = binary.LittleEndian.AppendUint32(to, uint32(len(chunk)))
	for len(chunk) > 0 {
		n, kind := nextBlock(chunk)
		block := chunk[:n]
		chunk = chunk[n:]
		head := uint32(n)<<3 | kind<<1
		if len(chunk) == 0 {
			head |= 1 // the last
		}
		to = append(to, byte(head), byte(head>>8), byte(head>>16))
		if kind == rleBlock {
			block = block[:1]
		}
		to = append(to, block...)
	}
	return to
}

// nextBlock returns how many of the bytes that begin p are of one block, and which type it has.
func nextBlock(p []byte) (n int, kind uint32) {
	p = p[:min(len(p), maxBlockBytes)]
	page := min(pageBytes, len(p))
	zero := zeros(p[:page])
	for n = page; n < len(p); n += page {
		page = min(pageBytes, len(p)-n)
		if zeros(p[n:n+page]) != zero {
			break
		}
	}
	if zero {
		return n, rleBlock
	}
	return n, rawBlock
}
