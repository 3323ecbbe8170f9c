package install

import (
	"context"
	"fmt"

	"ingot/model"
)

// begin takes away what makes the disk bootable, at both ends, before anything else is written.
func (w *writer) begin() error {
	end := w.disk.Size()
	zeros := alignedBuffer(mebibyte, 0)
	if err := w.write(zeros, max(0, end-mebibyte)); err != nil {
		return err
	}
	copy(zeros[markerAt:], marker)
	if err := w.write(zeros, 0); err != nil {
		return err
	}
	if err := w.flush(); err != nil {
		return err
	}
	_ = w.disk.Reread() // partitions that are still used are those that no longer are on the disk
	return nil
}

// body writes the image without its first MiB.
func (w *writer) body(ctx context.Context, src *source, d download, first []byte) error {
	if len(first) > mebibyte {
		if err := w.write(first[mebibyte:], mebibyte); err != nil {
			return err
		}
	}
	if w.table.Chunks[0].Length > 0 {
		w.count(len(first))
	}
	w.buffers <- first[:model.ChunkBytes]
	return w.rest(ctx, src, d)
}

// ends writes the seed and the backup of the partition table.
func (w *writer) ends(a arrangement) error {
	if a.seed != nil {
		if err := w.clear(a.seedAt.from, a.seedAt.to-a.seedAt.from); err != nil {
			return err
		}
		if err := a.seed.WriteTo(within{w, a.seedAt}); err != nil {
			return fmt.Errorf("write the seed: %w", err)
		}
	}
	if a.tail != nil {
		if err := w.write(a.tail, a.tailAt); err != nil {
			return err
		}
	}
	return w.flush()
}

func (w *writer) flush() error {
	if err := w.disk.Flush(); err != nil {
		return failure(model.ReasonDiskWriteFailed, "the disk with serial number %s does not write what its caches have: %v", orNone(w.serial), err)
	}
	return nil
}

// check reads back a sample of the image, but what the seed's files changed, the seed, and the
// backup of the table.
func (w *writer) check(a arrangement, files span) error {
	changed := []span{files}
	if a.tail != nil {
		changed = append(changed, span{a.tailAt, w.disk.Size()})
	}
	if a.seed != nil {
		changed = append(changed, a.seedAt)
		if err := a.seed.WriteTo(&reader{w, a.seedAt}); err != nil {
			return err
		}
	}
	if err := w.same(a.tail, a.tailAt); err != nil {
		return err
	}
	return w.verify(changed)
}

// same refuses a disk that does not have at an offset what was written there.
func (w *writer) same(b []byte, at int64) error {
	if sameBytes(w.disk, at, b) {
		return nil
	}
	return failure(model.ReasonDiskLies, "the disk with serial number %s reads other data at byte %d than were written: replace it", orNone(w.serial), at)
}

// lastWritten is what is written last of all: without it no system sees the partition table
// behind it. It is one block of every disk.
const lastWritten = 4096

// finish writes the first MiB, and of that the first block last: from then on the disk boots.
func (w *writer) finish(head []byte) error {
	whole := alignedBuffer(len(head), w.disk.SectorSize())
	copy(whole, head)
	for _, part := range []span{{lastWritten, int64(len(whole))}, {0, lastWritten}} {
		if err := w.write(whole[part.from:part.to], part.from); err != nil {
			return err
		}
		if err := w.flush(); err != nil {
			return err
		}
	}
	return w.same(head, 0)
}

type within struct {
	w  *writer
	in span
}

// ReadAt implements io.ReaderAt.
func (v within) ReadAt(p []byte, at int64) (int, error) { return v.w.disk.ReadAt(p, v.in.from+at) }

// WriteAt implements io.WriterAt.
func (v within) WriteAt(p []byte, at int64) (int, error) {
	if at < 0 || at+int64(len(p)) > v.in.to-v.in.from {
		return 0, fmt.Errorf("%d bytes at %d do not fit into %d", len(p), at, v.in.to-v.in.from)
	}
	return len(p), v.w.write(p, v.in.from+at)
}

// reader compares what would be written to a span of a disk with what is there.
type reader struct {
	w  *writer
	in span
}

// WriteAt implements io.WriterAt.
func (v *reader) WriteAt(p []byte, at int64) (int, error) {
	return len(p), v.w.same(p, v.in.from+at)
}
