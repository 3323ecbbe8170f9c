package wipe

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"hash/maphash"
)

// samples are checksums of blocks of a disk, taken before it was cleared. A disk that
// erases its key returns noise afterwards. So the proof of the erasure is not that the
// disk holds zeros, but that no block is as it was.
type samples struct {
	seed   maphash.Seed
	blocks []sample
}

type sample struct {
	area
	sum uint64
	// uniform is set for a block of one value repeated, which is nobody's data.
	uniform bool
	// unread is set for a block that could not be read, so that it cannot be compared.
	unread bool
}

// blockSize is that of a sample, in bytes.
const blockSize = 4 << 10

// sample takes samples of areas. Blocks that cannot be read are noted as such.
func (e *eraser) sample(ctx context.Context, areas []area) (samples, error) {
	s := samples{seed: maphash.MakeSeed()}
	buffer := make([]byte, readStep)
	for _, a := range areas {
		for done := int64(0); done < a.length; done += readStep {
			if ctx.Err() != nil {
				return s, context.Cause(ctx)
			}
			b := buffer[:min(readStep, a.length-done)]
			_, err := e.device.ReadAt(b, a.offset+done)
			for at := 0; at < len(b); at += blockSize {
				content := b[at:min(at+blockSize, len(b))]
				s.blocks = append(s.blocks, sample{
					area: area{a.offset + done + int64(at), int64(len(content))},
					sum:  maphash.Bytes(s.seed, content), uniform: isUniform(content), unread: err != nil,
				})
			}
		}
	}
	return s, nil
}

// mark writes noise over the blocks that are nobody's data, and puts it into the samples.
// That such a block is uniform after the erasure would prove nothing otherwise: on a disk
// that is almost empty all samples may be uniform, whatever lies between them. A disk
// that cannot be written now is not marked, because its erasure may cure that.
func (e *eraser) mark(ctx context.Context, s samples) error {
	noise, marked := alignedBuffer(blockSize), false
	for i := range s.blocks {
		b := &s.blocks[i]
		if !b.uniform || b.unread {
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
		b.sum, b.uniform, marked = maphash.Bytes(s.seed, noise[:b.length]), false, true
	}
	if !marked {
		return nil
	}
	return e.flush()
}

// verifyGone reads the sampled blocks again, and fails if any is as it was.
func (e *eraser) verifyGone(ctx context.Context, before samples) error {
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
		case isUniform(b): // whatever was there is gone
		case was.unread:
			return fmt.Errorf("byte %d could not be read before, so that its erasure cannot be proved", was.offset)
		case same:
			return fmt.Errorf("the disk still holds the data at byte %d", was.offset)
		}
	}
	return nil
}

func isUniform(b []byte) bool { return len(b) == 0 || bytes.Count(b, b[:1]) == len(b) }
