package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/errgroup"

	"ingot/model"
)

// How much is under way between network and disk: chunks as they are stored, and as they are
// written. All memory of an install is these.
const (
	fetchedAhead = 2
	decodedAhead = 2
)

// zeroAtOnce is how much a disk is asked to zero by one request, which cannot be interrupted.
const zeroAtOnce = 1 << 30

// writer writes the chunks of an image to a disk.
type writer struct {
	disk   Disk
	serial string // of the disk, for messages
	table  model.ChunkTable
	// done is called with the bytes of the image's data that are on the disk; zeros do not count.
	done func(bytes uint64)

	seed    maphash.Seed
	sampled map[int]uint64 // hashes of the chunks that are read back, 0 until they are written
	written uint64
	zeros   []byte
	// stored and buffers are the memory for chunks, as they are stored and as they are written.
	stored, buffers chan []byte
}

// samples is how many chunks are read back.
const samples = 24

func newWriter(disk Disk, serial string, table model.ChunkTable, done func(uint64)) *writer {
	w := &writer{
		disk: disk, serial: serial, table: table, done: done, seed: maphash.MakeSeed(), sampled: make(map[int]uint64),
		stored: make(chan []byte, fetchedAhead), buffers: make(chan []byte, decodedAhead),
	}
	for range fetchedAhead {
		w.stored <- make([]byte, model.MaxChunkBytes)
	}
	for range decodedAhead {
		w.buffers <- alignedBuffer(model.ChunkBytes, 64) // a decoder wants a little more
	}
	for range samples {
		w.sampled[rand.IntN(len(table.Chunks))] = 0
	}
	return w
}

// decoder returns what reads chunks: one at a time, without more memory than they take.
func decoder() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxWindow(2*model.ChunkBytes))
}

type decoded struct {
	number int
	bytes  []byte
}

// decode unpacks a chunk into a buffer of model.ChunkBytes.
func decode(z *zstd.Decoder, table model.ChunkTable, s stored, buffer []byte) (decoded, error) {
	content, err := z.DecodeAll(s.bytes, buffer[:0])
	if err == nil && uint64(len(content)) != table.Size(s.number) {
		err = fmt.Errorf("it is of %d bytes, not %d", len(content), table.Size(s.number))
	}
	if err != nil {
		return decoded{}, failure(model.ReasonDigestMismatch, "chunk %d of the image cannot be unpacked, though its sum is right: %v", s.number, err)
	}
	return decoded{s.number, content}, nil
}

// first fetches and unpacks the first chunk, which has the partition table. Its memory is given
// back once it is written.
func (w *writer) first(ctx context.Context, src *source, d download) ([]byte, error) {
	buffer := <-w.buffers
	if d.table.Chunks[0].Length == 0 {
		clear(buffer)
		return buffer[:d.table.Size(0)], nil
	}
	out := make(chan stored, 1)
	d.end, d.out, d.free = 1, out, w.stored
	if err := src.chunks(ctx, &d); err != nil {
		return nil, err
	}
	z, err := decoder()
	if err != nil {
		return nil, err
	}
	defer z.Close()
	chunk := <-out
	got, err := decode(z, d.table, chunk, buffer)
	w.stored <- chunk.bytes
	return got.bytes, err
}

// rest writes all chunks but the first.
func (w *writer) rest(ctx context.Context, src *source, d download) error {
	z, err := decoder()
	if err != nil {
		return err
	}
	defer z.Close()
	compressed, unpacked := make(chan stored, fetchedAhead), make(chan decoded, decodedAhead)
	d.next, d.end, d.out, d.free = 1, len(w.table.Chunks), compressed, w.stored
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(compressed)
		return src.chunks(ctx, &d)
	})
	group.Go(func() error {
		defer close(unpacked)
		for s := range compressed {
			var buffer []byte
			select {
			case buffer = <-w.buffers:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			chunk, err := decode(z, w.table, s, buffer)
			if err != nil {
				return err
			}
			w.stored <- s.bytes
			unpacked <- chunk
		}
		return nil
	})
	group.Go(func() error { return w.inOrder(ctx, unpacked) })
	return group.Wait()
}

// inOrder writes chunks as they come, and the zeros between them.
func (w *writer) inOrder(ctx context.Context, unpacked <-chan decoded) error {
	next := 1
	for chunk := range unpacked {
		if err := w.zero(ctx, next, chunk.number); err != nil {
			return err
		}
		if err := w.write(chunk.bytes, int64(chunk.number)*model.ChunkBytes); err != nil {
			return err
		}
		if _, sampled := w.sampled[chunk.number]; sampled {
			w.sampled[chunk.number] = maphash.Bytes(w.seed, chunk.bytes)
		}
		w.count(len(chunk.bytes))
		w.buffers <- chunk.bytes[:model.ChunkBytes]
		next = chunk.number + 1
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return w.zero(ctx, next, len(w.table.Chunks))
}

func (w *writer) count(bytes int) {
	w.written += uint64(bytes)
	w.done(w.written)
}

// write writes bytes that belong at an offset. What is not a whole sector, at the end of an
// image whose size is none, is filled with zeros.
func (w *writer) write(b []byte, at int64) error {
	sector := w.disk.SectorSize()
	if odd := len(b) % sector; odd != 0 {
		b = append(b, make([]byte, sector-odd)...)
	}
	if n, err := w.disk.WriteAt(b, at); err != nil {
		return w.failed(at+int64(n), err)
	}
	return nil
}

func (w *writer) failed(at int64, err error) error {
	return failure(model.ReasonDiskWriteFailed, "the disk with serial number %s cannot be written at byte %d: %v", orNone(w.serial), at, err)
}

func orNone(serial string) string {
	if serial == "" {
		return "(none)"
	}
	return serial
}

func (w *writer) zero(ctx context.Context, number, end int) error {
	from, to := int64(number)*model.ChunkBytes, min(int64(end)*model.ChunkBytes, int64(w.table.Bytes))
	for sector := int64(w.disk.SectorSize()); to%sector != 0; {
		to += sector - to%sector
	}
	for from < to {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n := min(to-from, zeroAtOnce)
		if err := w.clear(from, n); err != nil {
			return err
		}
		from += n
		w.count(0) // zeros are progress, too: silence is taken for a hang
	}
	return nil
}

// clear zeroes a range, by the disk itself if it can.
func (w *writer) clear(from, length int64) error {
	err := w.disk.Zero(from, length)
	if !errors.Is(err, errors.ErrUnsupported) {
		if err != nil {
			return w.failed(from, err)
		}
		return nil
	}
	if w.zeros == nil {
		w.zeros = alignedBuffer(mebibyte, 0)
	}
	for end := from + length; from < end; {
		n, err := w.disk.WriteAt(w.zeros[:min(int64(len(w.zeros)), end-from)], from)
		if err != nil {
			return w.failed(from, err)
		}
		from += int64(n)
	}
	return nil
}

// span is a range of bytes of a disk.
type span struct{ from, to int64 }

func (s span) overlaps(o span) bool { return s.from < o.to && o.from < s.to }

// verify reads a sample of the chunks back. Those that were changed after they had been written
// are left out.
func (w *writer) verify(changed []span) error {
	buffer := <-w.buffers
	defer func() { w.buffers <- buffer }()
	for number, want := range w.sampled {
		at := int64(number) * model.ChunkBytes
		size := int64(w.table.Size(number))
		altered := number == 0
		for _, s := range changed {
			altered = altered || s.overlaps(span{at, at + size})
		}
		if altered {
			continue
		}
		zeros := w.table.Chunks[number].Length == 0
		if err := w.compare(buffer[:size], at, func(b []byte) bool {
			return zeros && isZero(b) || !zeros && maphash.Bytes(w.seed, b) == want
		}); err != nil {
			return err
		}
	}
	return nil
}

// isZero reports whether all bytes are 0.
func isZero(b []byte) bool { return len(bytes.TrimLeft(b, "\x00")) == 0 }

func (w *writer) compare(buffer []byte, at int64, same func([]byte) bool) error {
	if _, err := w.disk.ReadAt(buffer, at); err != nil {
		return failure(model.ReasonDiskLies, "the disk with serial number %s cannot be read at byte %d, where it was written: %v", orNone(w.serial), at, err)
	}
	if !same(buffer) {
		return failure(model.ReasonDiskLies, "the disk with serial number %s reads other data at byte %d than were written: replace it", orNone(w.serial), at)
	}
	return nil
}
