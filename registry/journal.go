package registry

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
)

const (
	// journalFile is the name of the lease journal in the state folder.
	journalFile = "leases.journal"
	// journalNew is added to the name while a journal is written that is to replace it.
	journalNew = ".new"
	// journalDamaged is added to the name of the last one that was found damaged.
	journalDamaged = ".damaged"

	// growStep is by how much a journal's file becomes longer at a time. Its zeros are
	// durable with the write that first needed them, so that the writes after it
	// change no more than the bytes of a file: making them durable is half the work
	// then.
	growStep = 256 << 10
	// keepBuffer is how large a buffer is kept for the next write.
	keepBuffer = 1 << 20
)

// errFull is what people are told of a full disk.
var errFull = errors.New("the disk is full: free some space on the file system of state.dir")

// journal keeps leases in a file to which each commit is appended: one write, and
// one fdatasync. A B+ tree like bbolt's writes some pages and syncs twice for the
// same, and leases change more often than all else.
//
// Which leases there are is read from the file when somebody asks; in memory is
// only how many. Apart from compaction, which has its own goroutine, the methods
// are not called concurrently.
type journal struct {
	path string
	log  *slog.Logger
	disk disk

	file *segment // nil once it is closed or could not be opened again
	// unsettled is set while a crash could bring back the file that had the path before.
	unsettled bool
	buf       []byte
	// names has the hashes of the leases' names. Two that have the same count as one,
	// which is of no harm.
	names map[uint64]struct{}
	seed  maphash.Seed

	compactAt  int64       // the size of the file from which on it is compacted
	compaction *compaction // nil while none is under way
	damage     int         // bad places that were found, and nobody was told of yet
}

// disk is what a journal does to its file, for tests to have it fail.
type disk struct {
	grow  func(f *os.File, from, to int64) error
	write func(f *os.File, b []byte, at int64) (int, error)
	sync  func(f *os.File) error
	names func(dir string) error // makes the names in a folder durable
}

var realDisk = disk{grow: preallocate, write: (*os.File).WriteAt, sync: datasync, names: syncDir}

// openJournal opens the journal in dir, or makes it. The caller sees to it that one
// process does so at a time.
func openJournal(dir string, d disk, log *slog.Logger) (*journal, error) {
	j := &journal{path: filepath.Join(dir, journalFile), log: log, disk: d, seed: maphash.MakeSeed()}
	if err := j.open(); err != nil {
		return nil, fmt.Errorf("open %s: %w", j.path, explainFull(err))
	}
	if err := os.Remove(j.path + journalNew); err == nil {
		j.log.Debug("what a crash left of a new lease journal was removed", "file", j.path)
	}
	return j, nil
}

// open opens what is at path.
func (j *journal) open() error {
	j.names = make(map[uint64]struct{})
	f, err := os.OpenFile(j.path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return j.start(func(func(entry) error) error { return nil })
	}
	if err != nil {
		return err
	}
	if err := j.adopt(f); err != nil {
		_ = f.Close() // closed by now, or not
		return err
	}
	return nil
}

// adopt goes on with a file that was found. One that is damaged, or locked by a
// process that lost the bbolt file and does not know yet, is left as it is, and its
// leases go on in a new one.
func (j *journal) adopt(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	facts, live, err := readLive(f, info.Size(), func() error { return nil })
	if err != nil {
		return fmt.Errorf("read it: %w", err)
	}
	for name := range live.spans {
		j.names[j.hash(name)] = struct{}{}
	}
	j.report(facts)
	if facts.damage > 0 {
		j.putAside()
	}
	if facts.damage > 0 || !lockFile(f) {
		err := j.start(func(add func(entry) error) error { return live.each(f, info.Size(), add) })
		return errors.Join(err, f.Close())
	}
	return j.resume(&segment{file: f, info: info, journalFacts: facts, allocated: info.Size()}, live.bytes)
}

// resume goes on with a file of which so many bytes are of leases that are kept.
func (j *journal) resume(s *segment, live int64) (err error) {
	if s.torn > 0 || s.end > s.allocated { // or the zeros that fill up the last frame are missing
		if err := s.cut(); err != nil {
			return err
		}
	}
	if s.tail, err = s.readTail(); err != nil {
		return err
	}
	j.file, j.compactAt = s, compactFrom(live)
	return nil
}

// start begins a new file with the entries that fill adds.
func (j *journal) start(fill func(add func(entry) error) error) error {
	s, err := j.write(fill)
	if err != nil {
		return err
	}
	return j.install(s)
}

// report tells of what is wrong with a file.
func (j *journal) report(facts journalFacts) {
	if facts.torn > 0 {
		j.log.Warn("the last write to the lease journal was not finished and is cut off; nobody was told that it was", "file", j.path, "bytes", facts.torn)
	}
	if facts.damage > 0 {
		j.damage += facts.damage
		j.log.Error("the lease journal is damaged: leases may be missing, or older than they were; check the disk",
			"file", j.path, "places", facts.damage, "leases", len(j.names), "copy", j.path+journalDamaged)
	}
}

// putAside keeps a damaged file for people to look at, instead of the one before. Where
// that cannot be, DHCP goes on nevertheless.
func (j *journal) putAside() {
	aside := j.path + journalDamaged
	err := os.Remove(aside)
	if err == nil || errors.Is(err, os.ErrNotExist) {
		err = os.Link(j.path, aside) // not on every file system
	}
	if err != nil {
		j.log.Warn("no copy of the damaged lease journal is kept", "file", j.path, "err", err)
	}
}

func (j *journal) hash(name string) uint64 { return maphash.String(j.seed, name) }

// check returns errLost unless the file at path is the one that is open, and no
// shorter.
func (j *journal) check() error {
	if j.file == nil {
		return errLost
	}
	named, err := os.Stat(j.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return errLost
	case err != nil:
		return fmt.Errorf("look at %s: %w", j.path, err)
	case !os.SameFile(j.file.info, named), named.Size() < j.file.allocated:
		return errLost
	}
	return nil
}

// checkTail returns errLost unless the newest frame is where it was written, as it
// is not after the file was overwritten with an older one.
func (j *journal) checkTail() error {
	if err := j.check(); err != nil {
		return err
	}
	tail, err := j.file.readTail()
	switch {
	case errors.Is(err, io.EOF):
		return errLost
	case err != nil:
		return fmt.Errorf("read %s: %w", j.path, err)
	case tail != j.file.tail:
		return errLost
	}
	return nil
}

// append makes the leases of b durable, all or none.
func (j *journal) append(b batch) (err error) {
	if err := j.settle(); err != nil {
		return fmt.Errorf("write %s: %w", j.path, explainFull(err))
	}
	frame := append(j.buf[:0], make([]byte, headSize)...)
	for _, ch := range b {
		if !isLease(ch) {
			continue
		}
		if frame, err = appendEntry(frame, ch.name, ch.value); err != nil {
			return err
		}
	}
	if len(frame) > maxFrameBody {
		return fmt.Errorf("%d bytes of leases at once, allowed are %d", len(frame), maxFrameBody)
	}
	frame = sealFrame(frame, j.file.seq+1, j.file.salt)
	if j.buf = nil; cap(frame) <= keepBuffer {
		j.buf = frame
	}
	if err := j.file.append(frame, j.disk); err != nil {
		return fmt.Errorf("write %s: %w", j.path, explainFull(err))
	}
	for _, ch := range b {
		switch {
		case !isLease(ch):
		case ch.value == nil:
			delete(j.names, j.hash(ch.name))
		default:
			j.names[j.hash(ch.name)] = struct{}{}
		}
	}
	if j.file.end >= j.compactAt {
		j.beginCompaction()
	}
	return nil
}

// settle makes the name of a new file durable, before the first thing that only that
// file has.
func (j *journal) settle() error {
	if !j.unsettled {
		return nil
	}
	if err := j.disk.names(filepath.Dir(j.path)); err != nil {
		return err
	}
	j.unsettled = false
	return nil
}

func explainFull(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", errFull, err)
	}
	return err
}

// each calls visit for every lease that is kept. What is read meanwhile to find
// them is given up afterwards. The error of pulse, which is called again and again,
// ends it.
func (j *journal) each(pulse func() error, visit func(name, value []byte)) error {
	if j.file == nil {
		return errLost
	}
	facts, live, err := readLive(j.file.file, j.file.end, pulse)
	if err == nil {
		err = live.each(j.file.file, j.file.end, func(e entry) error {
			visit(e.name, e.value)
			return pulse()
		})
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", j.path, err)
	}
	if facts.damage > 0 || facts.end != j.file.end {
		j.log.Error("the lease journal was damaged while it was used: leases may be missing, or older than they were; check the disk", "file", j.path)
		j.damage++
	}
	return nil
}

// count is countLeases of a store.
func (j *journal) count(b batch) (total, fresh int) {
	for _, ch := range b {
		if !isLease(ch) || ch.value == nil {
			continue
		}
		if _, known := j.names[j.hash(ch.name)]; !known {
			fresh++
		}
	}
	return len(j.names), fresh
}

// merge takes in leases from elsewhere, save for those that are newer here.
func (j *journal) merge(from map[string][]byte) error {
	err := j.each(func() error { return nil }, func(name, value []byte) {
		if other, both := from[string(name)]; both && !isNewerLease(name, other, value) {
			delete(from, string(name))
		}
	})
	if err != nil {
		return err
	}
	var b batch
	for name, value := range from {
		if b = append(b, change{key{bucketLease, name}, value}); len(b) == leaseGroup {
			if err := j.append(b); err != nil {
				return err
			}
			b = b[:0]
		}
	}
	if len(b) == 0 {
		return nil
	}
	return j.append(b)
}

// isNewerLease reports whether a stored lease was asked for after another of its
// name. One that means nothing is older than all.
func isNewerLease(name, value, other []byte) bool {
	l, err := decodeLease(name, value)
	if err != nil {
		return false
	}
	known, err := decodeLease(name, other)
	return err != nil || lastSeen(&l).After(lastSeen(&known))
}

// reopen goes on with what is at path now, or with nothing.
func (j *journal) reopen() error {
	if err := j.close(); err != nil {
		j.log.Debug("the lost lease journal was closed", "err", err)
	}
	if err := j.open(); err != nil {
		return fmt.Errorf("open %s: %w", j.path, explainFull(err))
	}
	return nil
}

// close waits for the end of a compaction that is under way, too.
func (j *journal) close() error {
	j.dropCompaction()
	if j.file == nil {
		return nil
	}
	s := j.file
	j.file = nil
	if err := s.file.Close(); err != nil {
		return fmt.Errorf("close %s: %w", j.path, err)
	}
	return nil
}

// segment is an open file of a journal.
type segment struct {
	file *os.File
	info os.FileInfo // which file it is
	journalFacts
	tail      [headSize]byte // the head of the last frame, or the header
	allocated int64          // the size of the file, zeros from the end on
	dirty     bool           // from the end on there may be other things than zeros
}

// newSegment writes the header of a new file.
func newSegment(path string, d disk) (*segment, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	lockFile(f) // nobody else knows of it
	var salt [8]byte
	_, _ = rand.Read(salt[:]) // it does not fail
	s := &segment{file: f, journalFacts: journalFacts{salt: binary.BigEndian.Uint64(salt[:]), end: headSize}, allocated: headSize}
	copy(s.tail[:], journalHead(s.salt))
	if s.info, err = f.Stat(); err == nil {
		_, err = d.write(f, s.tail[:], 0)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return s, nil
}

// append makes a frame durable. After an error the file is as it was before.
func (s *segment) append(frame []byte, d disk) error {
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
func (s *segment) put(frame []byte, d disk) error {
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
func (s *segment) grow(to int64, d disk) (err error) {
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

func (s *segment) extend(to int64, d disk) error {
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
