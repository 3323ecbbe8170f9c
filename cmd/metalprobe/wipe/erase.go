package wipe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"ingot/cmd/metalprobe/inventory"
	"ingot/model"
)

// Sizes of one step, in bytes. A wipe checks its deadline between steps, and no step of a
// healthy disk takes longer than a few seconds.
const (
	writeStep   = 4 * mib
	readStep    = 1 * mib
	zeroStep    = 256 * mib
	discardStep = 16 << 30
)

// zeros is written, and is expected to be read.
var zeros = alignedBuffer(writeStep)

// eraser clears one opened disk.
type eraser struct {
	device     Device
	partitions []inventory.Partition
	tracker    *diskTracker
	log        *slog.Logger

	abilities Abilities
	failed    []error // of the disk's own methods
}

// erase clears the disk in the given mode and returns the method by which it did.
func (e *eraser) erase(ctx context.Context, mode string) (method string, err error) {
	if err := e.ready(ctx); err != nil {
		return "", err
	}
	if mode == model.CleanupSecure {
		return e.secure(ctx)
	}
	return e.quick(ctx)
}

// ready asks what the disk can do. A disk that does not say is treated as one without
// methods of its own.
func (e *eraser) ready(ctx context.Context) error {
	firmware := e.device.Firmware()
	if firmware == nil {
		return nil
	}
	abilities, err := firmware.Ready(ctx, e.tracker.report)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		e.log.Info("disk does not say what it can do by itself", "err", err)
		return nil
	case abilities.Locked != "":
		return errors.New(abilities.Locked)
	}
	e.abilities = abilities
	for _, m := range abilities.Offers {
		if why := abilities.Withheld[m]; why != "" {
			e.log.Info("method is not used", "method", m, "reason", why)
		}
	}
	return nil
}

// quick clears everything if the disk can do so in no time, and overwrites the areas
// where a system looks for data. It always does the latter, because what a disk returns
// for discarded data is up to the disk.
func (e *eraser) quick(ctx context.Context) (string, error) {
	method := string(OverwriteEdges)
	for _, m := range e.abilities.methods(model.CleanupQuick) {
		err := e.clearSoon(ctx, m)
		if ctx.Err() != nil {
			return string(m), context.Cause(ctx)
		}
		if err == nil {
			method = string(m) + "+" + method
			break
		}
		e.note(m, err)
	}
	areas := edges(e.device.Size(), e.partitions)
	e.tracker.begin(OverwriteEdges, 0)
	if err := e.overwrite(ctx, areas, e.tracker.advance); err != nil {
		return method, err
	}
	return method, e.verify(ctx, areas)
}

// clearSoon is clear for what a quick wipe can do without: it takes half of the time that is left, so
// that some is left for the edges.
func (e *eraser) clearSoon(ctx context.Context, m Method) error {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, time.Until(deadline)/2, errSlowMethod)
		defer cancel()
	}
	return e.clear(ctx, m)
}

// errSlowMethod is why a quick wipe goes on without a method.
var errSlowMethod = errors.New("it takes too long for a quick wipe")

// secure clears every byte, by the best method that is proved to have worked.
func (e *eraser) secure(ctx context.Context) (method string, err error) {
	methods := e.abilities.methods(model.CleanupSecure)
	if err := e.flush(); err != nil && !methods[0].firmware() {
		return "", err // a disk whose sanitize has failed may accept nothing but another sanitize
	}
	before, err := e.sample(ctx, sampleAreas(e.device.Size()))
	if err != nil {
		return "", err
	}
	if methods[0].firmware() {
		if err := e.mark(ctx, before); err != nil {
			return "", err
		}
	}
	for _, m := range methods {
		method, err = string(m), e.clear(ctx, m)
		if err == nil {
			err = e.prove(ctx, m, before)
		}
		if err == nil {
			return method, nil
		}
		if ctx.Err() != nil {
			return method, context.Cause(ctx)
		}
		if errors.Is(err, errPassword) {
			break // another method might clear the disk, but nobody could use it
		}
		if m != Overwrite {
			e.note(m, err)
		}
	}
	return method, errors.Join(append(e.failed, err)...)
}

// note logs why the next method is tried. That the kernel cannot use a method on a disk
// is normal; that a disk offered a method and failed is part of the final error.
func (e *eraser) note(m Method, err error) {
	if errors.Is(err, errors.ErrUnsupported) {
		return
	}
	e.log.Warn("method failed, the next is tried", "method", m, "err", err)
	if m.firmware() {
		e.failed = append(e.failed, fmt.Errorf("%s: %w", m, err))
	}
}

func (e *eraser) clear(ctx context.Context, m Method) error {
	switch m {
	case Overwrite:
		e.tracker.begin(m, 0)
		return e.overwrite(ctx, []area{{0, e.device.Size()}}, e.tracker.advance)
	case Discard, SecureDiscard:
		return e.all(ctx, m, discardStep)
	case ZeroOut:
		return e.all(ctx, m, zeroStep)
	default:
		e.tracker.begin(m, e.abilities.Estimate[m])
		return e.device.Firmware().Clear(ctx, m, e.tracker.report)
	}
}

// prove verifies that a method has worked. After one of the firmware's own the disk may
// hold anything, but not what it held before; its edges are zeroed then, so that nothing
// there is mistaken for a label.
func (e *eraser) prove(ctx context.Context, m Method, before samples) error {
	if !m.firmware() {
		return e.verify(ctx, spotChecks(e.device.Size()))
	}
	if err := e.flush(); err != nil {
		return err
	}
	if err := e.verifyGone(ctx, before); err != nil {
		return err
	}
	areas := edges(e.device.Size(), nil)
	if err := e.overwrite(ctx, areas, func(int) {}); err != nil {
		return err
	}
	return e.verify(ctx, areas)
}

// all has the kernel clear the whole disk, step by step. A disk that does not support
// the method fails at the first step, before progress is reported.
func (e *eraser) all(ctx context.Context, m Method, step int64) error {
	size := e.device.Size()
	for offset := int64(0); offset < size; offset += step {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := e.device.Erase(m, offset, min(step, size-offset)); err != nil {
			return fmt.Errorf("%s at byte %d: %w", m, offset, err)
		}
		if offset == 0 {
			e.tracker.begin(m, 0)
		}
		e.tracker.advance(share(min(offset+step, size), size))
	}
	return nil
}

// share returns a part of a whole in percent, rounded down.
func share(part, whole int64) int {
	return int(float64(part) / float64(whole) * 100)
}

// overwrite writes zeros over areas, and reports how many percent of them are done.
func (e *eraser) overwrite(ctx context.Context, areas []area, advance func(percent int)) error {
	var total, written int64
	for _, a := range areas {
		total += a.length
	}
	for _, a := range areas {
		for done := int64(0); done < a.length; {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			n, err := e.device.WriteAt(zeros[:min(writeStep, a.length-done)], a.offset+done)
			if err != nil {
				return fmt.Errorf("overwrite at byte %d: %w", a.offset+done, err)
			}
			done += int64(n)
			written += int64(n)
			advance(share(written, total))
		}
	}
	return nil
}

// flush writes everything to the medium, so that the next reads come from there.
func (e *eraser) flush() error {
	if err := e.device.Flush(); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	return nil
}

// verify flushes the disk and reads areas back: they must be zero.
func (e *eraser) verify(ctx context.Context, areas []area) error {
	if err := e.flush(); err != nil {
		return err
	}
	buffer := make([]byte, readStep)
	for _, a := range areas {
		for done := int64(0); done < a.length; done += readStep {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			b := buffer[:min(readStep, a.length-done)]
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
