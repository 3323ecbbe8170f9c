package diskimage

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"ingot/model"
)

// sectorBytes is what the size of a disk is a multiple of.
const sectorBytes = 512

// chunkWriter makes chunks of what is written to it in the order of the disk.
type chunkWriter struct {
	to    io.Writer
	max   uint64 // of the disk, in bytes
	table model.ChunkTable
	end   uint64 // of what is stored
	buf   []byte // the chunk that is being filled
	out   []byte
	frame framing
	full  bool // the last chunk had less than ChunkBytes, so none follows
}

func newChunkWriter(to io.Writer, max uint64, frame framing) *chunkWriter {
	return &chunkWriter{to: to, max: max, frame: frame, buf: make([]byte, model.ChunkBytes)}
}

// buffer is where the next chunk is put before it is added.
func (w *chunkWriter) buffer() []byte { return w.buf }

// add adds the first n bytes of the buffer as the next chunk. Only the last may have fewer than
// ChunkBytes.
func (w *chunkWriter) add(n int) error {
	if err := w.next(n); err != nil {
		return err
	}
	size := (n + sectorBytes - 1) / sectorBytes * sectorBytes
	clear(w.buf[n:size])
	w.table.Bytes += uint64(size)
	if zeros(w.buf[:size]) {
		w.table.Chunks = append(w.table.Chunks, model.Chunk{})
		return nil
	}
	w.out = w.frame(w.buf[:size], w.out[:0])
	if _, err := w.to.Write(w.out); err != nil {
		return err
	}
	w.table.Chunks = append(w.table.Chunks, model.Chunk{Offset: w.end, Length: uint64(len(w.out)), Sum: sha256.Sum256(w.out)})
	w.end += uint64(len(w.out))
	return nil
}

func (w *chunkWriter) addZeros(n int) error {
	if err := w.next(n); err != nil {
		return err
	}
	w.table.Bytes += uint64((n + sectorBytes - 1) / sectorBytes * sectorBytes)
	w.table.Chunks = append(w.table.Chunks, model.Chunk{})
	return nil
}

func (w *chunkWriter) next(n int) error {
	switch {
	case w.full:
		return errors.New("a chunk follows one that was not full")
	case w.table.Bytes+uint64(n) > w.max:
		return tooLarge(0, w.max)
	}
	w.full = n < model.ChunkBytes
	return nil
}

var zeroBlock = make([]byte, 32<<10)

func zeros(p []byte) bool {
	for len(p) > len(zeroBlock) {
		if !bytes.Equal(p[:len(zeroBlock)], zeroBlock) {
			return false
		}
		p = p[len(zeroBlock):]
	}
	return bytes.Equal(p, zeroBlock[:len(p)])
}

// cachedChunks is how many chunks chunkReader keeps unpacked.
const cachedChunks = 3

// chunkReader reads the disk that is in chunks. It is for one goroutine.
type chunkReader struct {
	ctx context.Context // of the look at the image; nil = it has no end

	table  model.ChunkTable
	chunks io.ReaderAt
	unpack *zstd.Decoder
	cached []unpackedChunk // the one that was used last is first
}

type unpackedChunk struct {
	n    int
	data []byte
}

// newChunkReader returns a reader of the disk that table and chunks are of; it is to be closed.
func newChunkReader(table model.ChunkTable, chunks io.ReaderAt) (*chunkReader, error) {
	unpack, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(model.ChunkBytes+1))
	return &chunkReader{table: table, chunks: chunks, unpack: unpack}, err
}

// Close frees what unpacks.
func (r *chunkReader) Close() { r.unpack.Close() }

// ReadAt implements io.ReaderAt.
func (r *chunkReader) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("read the disk at %d", off)
	}
	done := 0
	for done < len(p) && uint64(off) < r.table.Bytes {
		n := int(off / model.ChunkBytes)
		data, err := r.chunk(n)
		if err != nil {
			return done, err
		}
		in := uint64(off) % model.ChunkBytes
		part := min(uint64(len(p)-done), r.table.Size(n)-in)
		if data == nil {
			clear(p[done : done+int(part)])
		} else {
			copy(p[done:done+int(part)], data[in:])
		}
		done, off = done+int(part), off+int64(part)
	}
	if done < len(p) {
		return done, io.EOF
	}
	return done, nil
}

// chunk returns a chunk unpacked; nil = zeros.
func (r *chunkReader) chunk(n int) ([]byte, error) {
	c := r.table.Chunks[n]
	if c.Length == 0 {
		return nil, nil
	}
	if r.ctx != nil && r.ctx.Err() != nil {
		return nil, r.ctx.Err()
	}
	for i, had := range r.cached {
		if had.n == n {
			copy(r.cached[1:i+1], r.cached[:i])
			r.cached[0] = had
			return had.data, nil
		}
	}
	stored := make([]byte, c.Length)
	if _, err := r.chunks.ReadAt(stored, int64(c.Offset)); err != nil {
		return nil, fmt.Errorf("read chunk %d: %w", n, err)
	}
	if sha256.Sum256(stored) != c.Sum {
		return nil, fmt.Errorf("chunk %d is not what it was", n)
	}
	var into []byte
	if len(r.cached) == cachedChunks {
		into, r.cached = r.cached[cachedChunks-1].data[:0], r.cached[:cachedChunks-1]
	}
	data, err := r.unpack.DecodeAll(stored, into)
	if err != nil || uint64(len(data)) != r.table.Size(n) {
		return nil, fmt.Errorf("unpack chunk %d into %d bytes: %w", n, r.table.Size(n), err)
	}
	r.cached = append([]unpackedChunk{{n, data}}, r.cached...)
	return data, nil
}
