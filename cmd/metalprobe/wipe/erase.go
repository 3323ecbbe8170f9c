package wipe

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"

	"ingot/cmd/metalprobe/inventory"
	"ingot/model"
)

// Sizes of one step. Between steps a wipe heeds its deadline, and no step of a
// healthy disk takes longer than some seconds.
const (
	writeStep   = 1 * mib
	zeroStep    = 256 * mib
	discardStep = 16 << 30
)

// zeros is what is written, and what is expected to be read.
var zeros = make([]byte, writeStep)

// eraser clears one opened disk.
type eraser struct {
	device     Device
	partitions []inventory.Partition
	cleared    atomic.Int64 // bytes, for progress
}

// erase clears the disk in the given mode and returns how it was done.
func (e *eraser) erase(ctx context.Context, mode string) (method string, err error) {
	if mode == model.CleanupSecure {
		return e.secure(ctx)
	}
	return e.quick(ctx)
}

// quick discards everything if the disk can, and overwrites where a system would
// look for data. What a disk returns for discarded data is its own affair, so the
// overwriting is not left out.
func (e *eraser) quick(ctx context.Context) (string, error) {
	method := "overwrite-edges"
	switch err := e.all(ctx, Discard, discardStep); {
	case ctx.Err() != nil:
		return string(Discard), context.Cause(ctx)
	case err == nil:
		method = string(Discard) + "+" + method
	}
	areas := edges(e.device.Size(), e.partitions)
	for _, a := range areas {
		if err := e.overwrite(ctx, a); err != nil {
			return method, err
		}
	}
	return method, e.verify(ctx, areas)
}

// secure clears every byte: by a secure discard where that can be seen to have
// worked, else by zeros.
func (e *eraser) secure(ctx context.Context) (string, error) {
	places := samples(e.device.Size())
	if e.all(ctx, SecureDiscard, discardStep) == nil && e.verify(ctx, places) == nil {
		return string(SecureDiscard), nil
	}
	method := string(ZeroOut)
	if err := e.all(ctx, ZeroOut, zeroStep); err != nil && ctx.Err() == nil {
		method, err = "overwrite", e.overwrite(ctx, area{0, e.device.Size()})
		if err != nil {
			return method, err
		}
	}
	return method, e.verify(ctx, places)
}

// all clears the whole disk with an erasure, step by step.
func (e *eraser) all(ctx context.Context, how Erasure, step int64) error {
	size := e.device.Size()
	e.cleared.Store(0)
	for offset := int64(0); offset < size; offset += step {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		length := min(step, size-offset)
		if err := e.device.Erase(how, offset, length); err != nil {
			return fmt.Errorf("%s at byte %d: %w", how, offset, err)
		}
		e.cleared.Add(length)
	}
	return nil
}

// overwrite writes zeros over an area.
func (e *eraser) overwrite(ctx context.Context, a area) error {
	e.cleared.Store(0)
	for done := int64(0); done < a.length; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := e.device.WriteAt(zeros[:min(writeStep, a.length-done)], a.offset+done)
		if err != nil {
			return fmt.Errorf("overwrite at byte %d: %w", a.offset+done, err)
		}
		done += int64(n)
		e.cleared.Add(int64(n))
	}
	return nil
}

// verify flushes the disk and reads areas back: they must be zero.
func (e *eraser) verify(ctx context.Context, areas []area) error {
	if err := e.device.Flush(); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	buffer := make([]byte, writeStep)
	for _, a := range areas {
		for done := int64(0); done < a.length; done += writeStep {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			b := buffer[:min(writeStep, a.length-done)]
			if _, err := e.device.ReadAt(b, a.offset+done); err != nil {
				return fmt.Errorf("read back at byte %d: %w", a.offset+done, err)
			}
			if !bytes.Equal(b, zeros[:len(b)]) {
				return fmt.Errorf("the disk still holds data within %d bytes from byte %d", len(b), a.offset+done)
			}
		}
	}
	return nil
}
