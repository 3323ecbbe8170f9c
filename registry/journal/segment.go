package journal

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"ingot/registry/internal/disk"
)

// growStep is by how much a journal's file becomes longer at a time. Its zeros are
// durable with the write that first needed them, so that the writes after it
// change no more than the bytes of a file: making them durable is half the work
// then.
const growStep = 256 << 10

// segment is an open file of a journal.
type segment struct {
	file *os.File
	info os.FileInfo // which file it is
	facts
	tail      [headSize]byte // the head of the last frame, or the header
	allocated int64          // the size of the file, zeros from the end on
	dirty     bool           // from the end on there may be other things than zeros
}

// newSegment writes the header of a new file.
func newSegment(path string, d calls) (*segment, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	disk.Lock(f) // nobody else knows of it
	var salt [8]byte
	_, _ = rand.Read(salt[:]) // it does not fail
	s := &segment{file: f, facts: facts{salt: binary.BigEndian.Uint64(salt[:]), end: headSize}, allocated: headSize}
	copy(s.tail[:], headOf(s.salt))
	if s.info, err = f.Stat(); err == nil {
		_, err = d.write(f, s.tail[:], 0)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return s, nil
}

// append makes a frame durable. After an error the file is as it was before.
func (s *segment) append(frame []byte, d calls) error {
	if s.dirty {
		if err := s.cut(); err != nil {
			return err
		}
	}
	if to := s.end + int64(len(frame)); to > s.allocated {
		if err := s.grow(to, d); err != nil {
			return err
		}
	}
	_, err := d.write(s.file, frame, s.end)
	if err == nil {
		// After a failed sync nobody knows what is on the disk. It is not kept, and what
		// comes next is written over it.
		err = d.sync(s.file)
	}
	if err != nil {
		return errors.Join(err, s.cut())
	}
	s.advance(frame)
	return nil
}

// put appends a frame without making it durable, or room for more.
func (s *segment) put(frame []byte, d calls) error {
	if _, err := d.write(s.file, frame, s.end); err != nil {
		return err
	}
	s.advance(frame)
	s.allocated = max(s.allocated, s.end)
	return nil
}

func (s *segment) advance(frame []byte) {
	s.seq, s.last, s.end = s.seq+1, s.end, s.end+int64(len(frame))
	copy(s.tail[:], frame)
}

// grow makes the file longer, so that a frame can end at to, and more if there is
// room for more. When there is none for that the file is as long as before.
func (s *segment) grow(to int64, d calls) (err error) {
	for _, step := range []int64{growStep, 4 << 10} {
		if err = s.extend(roundUp(to, step), d); err == nil {
			return nil
		}
		if cut := s.file.Truncate(s.allocated); cut != nil {
			return errors.Join(err, cut)
		}
	}
	return err
}

func (s *segment) extend(to int64, d calls) error {
	if err := d.grow(s.file, s.allocated, to); err != nil {
		return err
	}
	zeros := make([]byte, min(to-s.allocated, growStep))
	for at := s.allocated; at < to; at += int64(len(zeros)) {
		if _, err := d.write(s.file, zeros[:min(to-at, int64(len(zeros)))], at); err != nil {
			return err
		}
	}
	s.allocated = to
	return nil
}

// cut takes away what is after the end.
func (s *segment) cut() error {
	s.dirty = true
	if err := s.file.Truncate(s.end); err != nil {
		return fmt.Errorf("take back what was not written whole: %w", err)
	}
	s.allocated, s.dirty = s.end, false
	return nil
}

// readTail reads the head of the last frame, or the header where there is none.
func (s *segment) readTail() (tail [headSize]byte, err error) {
	_, err = s.file.ReadAt(tail[:], s.last)
	return tail, err
}

// segmentWriter writes entries to a file in frames.
type segmentWriter struct {
	segment *segment
	disk    calls
	frame   []byte
	synced  int64
}

func (w *segmentWriter) add(e entry) (err error) {
	if len(w.frame) == 0 {
		w.frame = append(w.frame, make([]byte, headSize)...)
	}
	if w.frame, err = appendEntry(w.frame, string(e.name), e.value); err != nil || len(w.frame) < compactFrame {
		return err
	}
	return w.flush()
}

func (w *segmentWriter) flush() error {
	if len(w.frame) == 0 {
		return nil
	}
	err := w.segment.put(sealFrame(w.frame, w.segment.seq+1, w.segment.salt), w.disk)
	w.frame = w.frame[:0]
	if err == nil && w.segment.end-w.synced >= compactSync {
		w.synced = w.segment.end
		err = w.disk.sync(w.segment.file)
	}
	return err
}
