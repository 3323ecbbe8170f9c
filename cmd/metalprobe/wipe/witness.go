package wipe

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"hash/maphash"
)

// witness is what a disk held in places before it was cleared. A disk that erases
// its key returns noise afterwards, so that not zeros prove the erasing, but that
// nothing is as it was.
type witness struct {
	seed   maphash.Seed
	blocks []block
}

// block is one sample.
type block struct {
	area
	sum uint64
	// plain is set for one value repeated: nobody's data.
	plain bool
	// unread is set for what could not be read, so that nothing can be compared.
	unread bool
}

// blockSize is that of a sample, in bytes.
const blockSize = 4 << 10

// look takes samples of areas. What cannot be read is noted as such.
func (e *eraser) look(ctx context.Context, areas []area) (witness, error) {
	w := witness{seed: maphash.MakeSeed()}
	buffer := make([]byte, readStep)
	for _, a := range areas {
		for done := int64(0); done < a.length; done += readStep {
			if ctx.Err() != nil {
				return w, context.Cause(ctx)
			}
			b := buffer[:min(readStep, a.length-done)]
			_, err := e.device.ReadAt(b, a.offset+done)
			for at := 0; at < len(b); at += blockSize {
				content := b[at:min(at+blockSize, len(b))]
				w.blocks = append(w.blocks, block{
					area: area{a.offset + done + int64(at), int64(len(content))},
					sum:  maphash.Bytes(w.seed, content), plain: plain(content), unread: err != nil,
				})
			}
		}
	}
	return w, nil
}

// mark writes noise over the samples that are nobody's data, and takes it for what
// was there: that such a sample is plain afterwards would prove nothing, for on a
// disk that is almost empty all may be so, whatever lies between them. A disk that
// takes no writes now cannot be marked; its erasing may be the cure for that.
func (e *eraser) mark(ctx context.Context, w witness) error {
	noise, marked := alignedBuffer(blockSize), false
	for i := range w.blocks {
		b := &w.blocks[i]
		if !b.plain || b.unread {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		_, _ = rand.Read(noise) // never fails
		if _, err := e.device.WriteAt(noise[:b.length], b.offset); err != nil {
			e.log.Info("disk cannot be marked before it is erased", "byte", b.offset, "err", err)
			return nil
		}
		b.sum, b.plain, marked = maphash.Bytes(w.seed, noise[:b.length]), false, true
	}
	if !marked {
		return nil
	}
	return e.flush()
}

// gone looks again, and fails when anything is as it was.
func (e *eraser) gone(ctx context.Context, before witness) error {
	buffer := make([]byte, blockSize)
	for _, was := range before.blocks {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		b := buffer[:was.length]
		if _, err := e.device.ReadAt(b, was.offset); err != nil {
			return fmt.Errorf("read back at byte %d: %w", was.offset, err)
		}
		switch same := maphash.Bytes(before.seed, b) == was.sum; {
		case plain(b): // whatever was there, it is not any more
		case was.unread:
			return fmt.Errorf("byte %d could not be read before, so that its erasing cannot be seen", was.offset)
		case same:
			return fmt.Errorf("the disk still holds the data at byte %d", was.offset)
		}
	}
	return nil
}

// plain reports whether all bytes are the same.
func plain(b []byte) bool { return len(b) == 0 || bytes.Count(b, b[:1]) == len(b) }
