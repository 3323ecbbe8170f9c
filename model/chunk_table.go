package model

import (
	"encoding/binary"
	"fmt"
)

// ChunkBytes is how many bytes of a disk one chunk is of; the last may be of fewer.
const ChunkBytes = 4 << 20

// MaxChunkBytes is the most that a chunk can take as it is stored: a frame of zstd, which is a
// little larger than its content where that cannot be compressed (RFC 8878 §3.1.1).
const MaxChunkBytes = ChunkBytes + ChunkBytes>>7 + 512

// A chunk's entry in an encoded table: offset, length, SHA-256.
const chunkEntryBytes = 8 + 8 + 32

// Chunk is where one chunk of a disk image is among the stored chunks: one frame of zstd.
type Chunk struct {
	Offset uint64   // 0 for zeros
	Length uint64   // 0 = the chunk is zeros, and nothing is stored of it
	Sum    [32]byte // SHA-256 of what is stored, all 0 for zeros
}

// ChunkTable says of a disk image that is kept in chunks of ChunkBytes where each of them is.
// What is stored is in the order of the disk, without gaps.
type ChunkTable struct {
	Bytes  uint64 // of the disk
	Chunks []Chunk
}

// ChunkCount is how many chunks a disk of so many bytes has.
func ChunkCount(bytes uint64) uint64 {
	n := bytes / ChunkBytes
	if bytes%ChunkBytes != 0 {
		n++
	}
	return n
}

// Size is how many bytes of the disk chunk n is of.
func (t ChunkTable) Size(n int) uint64 {
	return min(ChunkBytes, t.Bytes-uint64(n)*ChunkBytes)
}

// Data is how many bytes of the disk are in chunks that are not zeros.
func (t ChunkTable) Data() uint64 {
	var sum uint64
	for n, c := range t.Chunks {
		if c.Length > 0 {
			sum += t.Size(n)
		}
	}
	return sum
}

// Stored is how many bytes all chunks take as they are stored.
func (t ChunkTable) Stored() uint64 {
	var sum uint64
	for _, c := range t.Chunks {
		sum += c.Length
	}
	return sum
}

// Encode returns the table as it is served: the size of the disk, and of each chunk its offset,
// its length and its sum, all numbers of 8 bytes, little endian.
func (t ChunkTable) Encode() []byte {
	raw := make([]byte, 0, 8+len(t.Chunks)*chunkEntryBytes)
	raw = binary.LittleEndian.AppendUint64(raw, t.Bytes)
	for _, c := range t.Chunks {
		raw = binary.LittleEndian.AppendUint64(raw, c.Offset)
		raw = binary.LittleEndian.AppendUint64(raw, c.Length)
		raw = append(raw, c.Sum[:]...)
	}
	return raw
}

// MaxChunkTable is how many bytes the table of a disk of maxBytes takes at most.
func MaxChunkTable(maxBytes uint64) uint64 { return 8 + ChunkCount(maxBytes)*chunkEntryBytes }

// ParseChunkTable reads what Encode returned, for a disk of at most maxBytes.
func ParseChunkTable(raw []byte, maxBytes uint64) (ChunkTable, error) {
	if len(raw) < 8 {
		return ChunkTable{}, fmt.Errorf("chunk table: it has %d bytes, and its first number alone takes 8", len(raw))
	}
	t := ChunkTable{Bytes: binary.LittleEndian.Uint64(raw)}
	switch {
	case t.Bytes == 0:
		return ChunkTable{}, fmt.Errorf("chunk table: it is of a disk of 0 bytes")
	case t.Bytes > maxBytes:
		return ChunkTable{}, fmt.Errorf("chunk table: it is of a disk of %d bytes; at most %d are allowed", t.Bytes, maxBytes)
	case uint64(len(raw)) != MaxChunkTable(t.Bytes):
		return ChunkTable{}, fmt.Errorf("chunk table: it has %d bytes; that of a disk of %d bytes has %d", len(raw), t.Bytes, MaxChunkTable(t.Bytes))
	}
	t.Chunks = make([]Chunk, ChunkCount(t.Bytes))
	var end uint64
	for n := range t.Chunks {
		c := parseChunk(raw[8+n*chunkEntryBytes:])
		if err := c.check(end); err != nil {
			return ChunkTable{}, fmt.Errorf("chunk table: chunk %d: %w", n, err)
		}
		end += c.Length
		t.Chunks[n] = c
	}
	return t, nil
}

func parseChunk(raw []byte) Chunk {
	return Chunk{
		Offset: binary.LittleEndian.Uint64(raw),
		Length: binary.LittleEndian.Uint64(raw[8:]),
		Sum:    [32]byte(raw[16:]),
	}
}

// check refuses a chunk that is not stored where what is stored before it ends.
func (c Chunk) check(end uint64) error {
	switch {
	case c.Length == 0 && (c.Offset != 0 || c.Sum != [32]byte{}):
		return fmt.Errorf("it is zeros and yet has an offset or a sum")
	case c.Length == 0:
		return nil
	case c.Length > MaxChunkBytes:
		return fmt.Errorf("%d bytes are stored of it; at most %d are possible", c.Length, MaxChunkBytes)
	case c.Offset != end:
		return fmt.Errorf("it is stored at %d; what is before it ends at %d", c.Offset, end)
	}
	return nil
}
