package journal

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"ingot/registry/internal/disk"
)

const (
	// FileName is the name of the lease journal in the state folder.
	FileName = "leases.journal"
	// newSuffix is added to the name while a journal is written that is to replace it.
	newSuffix = ".new"
	// damagedSuffix is added to the name of the last one that was found damaged.
	damagedSuffix = ".damaged"

	// keepBuffer is how large a buffer is kept for the next write.
	keepBuffer = 1 << 20
)

// ErrLost is the error of a journal whose file does not hold what was written to it.
var ErrLost = errors.New("the lease journal was emptied, replaced or rolled back")

// ErrFull is what people read when the disk is full.
var ErrFull = errors.New("the disk is full: free some space on the file system of state.dir")

// Journal is the open file. Which leases there are is read from it when somebody asks; in
// memory is only how many. Apart from compaction, which has its own goroutine, the methods
// are not called concurrently.
type Journal struct {
	path string
	log  *slog.Logger
	disk calls

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
	damage     int         // bad places that were found and not reported yet
}

// calls are what a journal does to its file, for tests to have it fail.
type calls struct {
	grow  func(f *os.File, from, to int64) error
	write func(f *os.File, b []byte, at int64) (int, error)
	sync  func(f *os.File) error
	names func(dir string) error // makes the names in a folder durable
}

var realCalls = calls{grow: disk.Preallocate, write: (*os.File).WriteAt, sync: disk.Datasync, names: disk.SyncDir}

// Open opens the journal in dir, or makes it. The caller makes sure that one
// process does so at a time.
func Open(dir string, log *slog.Logger) (*Journal, error) {
	return openOn(realCalls, dir, log)
}

// openOn opens the journal in dir, or makes it.
func openOn(d calls, dir string, log *slog.Logger) (*Journal, error) {
	j := &Journal{path: filepath.Join(dir, FileName), log: log, disk: d, seed: maphash.MakeSeed()}
	if err := j.open(); err != nil {
		return nil, fmt.Errorf("open %s: %w", j.path, explainFull(err))
	}
	if err := os.Remove(j.path + newSuffix); err == nil {
		j.log.Debug("what a crash left of a new lease journal was removed", "file", j.path)
	}
	return j, nil
}

// open opens what is at path.
func (j *Journal) open() error {
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
func (j *Journal) adopt(f *os.File) error {
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
	if facts.damage > 0 || !disk.Lock(f) {
		err := j.start(func(add func(entry) error) error { return live.each(f, info.Size(), add) })
		return errors.Join(err, f.Close())
	}
	return j.resume(&segment{file: f, info: info, facts: facts, allocated: info.Size()}, live.bytes)
}

// resume goes on with a file of which live bytes are of leases that are kept.
func (j *Journal) resume(s *segment, live int64) (err error) {
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
func (j *Journal) start(fill func(add func(entry) error) error) error {
	s, err := j.write(fill)
	if err != nil {
		return err
	}
	return j.install(s)
}

// report logs what is wrong with a file.
func (j *Journal) report(facts facts) {
	if facts.torn > 0 {
		j.log.Warn("the last write to the lease journal was not finished and is cut off; nobody was told that it was", "file", j.path, "bytes", facts.torn)
	}
	if facts.damage > 0 {
		j.damage += facts.damage
		j.log.Error("the lease journal is damaged: leases may be missing, or older than they were; check the disk",
			"file", j.path, "places", facts.damage, "leases", len(j.names), "copy", j.path+damagedSuffix)
	}
}

// putAside keeps a damaged file for people to look at, instead of the one before. Where
// that cannot be, DHCP goes on nevertheless.
func (j *Journal) putAside() {
	aside := j.path + damagedSuffix
	err := os.Remove(aside)
	if err == nil || errors.Is(err, os.ErrNotExist) {
		err = os.Link(j.path, aside) // not on every file system
	}
	if err != nil {
		j.log.Warn("no copy of the damaged lease journal is kept", "file", j.path, "err", err)
	}
}

func (j *Journal) hash(name string) uint64 { return maphash.String(j.seed, name) }

// check returns ErrLost unless the file at path is the one that is open, and no
// shorter.
func (j *Journal) check() error {
	if j.file == nil {
		return ErrLost
	}
	named, err := os.Stat(j.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return ErrLost
	case err != nil:
		return fmt.Errorf("look at %s: %w", j.path, err)
	case !os.SameFile(j.file.info, named), named.Size() < j.file.allocated:
		return ErrLost
	}
	return nil
}

// checkTail returns ErrLost unless the newest frame is where it was written, as it
// is not after the file was overwritten with an older one.
func (j *Journal) checkTail() error {
	if err := j.check(); err != nil {
		return err
	}
	tail, err := j.file.readTail()
	switch {
	case errors.Is(err, io.EOF):
		return ErrLost
	case err != nil:
		return fmt.Errorf("read %s: %w", j.path, err)
	case tail != j.file.tail:
		return ErrLost
	}
	return nil
}

// Append makes leases durable, all or none; a value of nil forgets the one of that name.
// With none it checks whether the journal is still there. It returns ErrLost,
// without having written, when the file at its path is no longer the one that is open,
// or shorter.
func (j *Journal) Append(leases iter.Seq2[string, []byte]) (err error) {
	j.endCompaction()
	if err := j.check(); err != nil {
		return err
	}
	frame := append(j.buf[:0], make([]byte, headSize)...)
	for name, value := range leases {
		if frame, err = appendEntry(frame, name, value); err != nil {
			return err
		}
	}
	switch {
	case len(frame) == headSize:
		return nil
	case len(frame) > maxFrameBody:
		return fmt.Errorf("%d bytes of leases at once, allowed are %d", len(frame), maxFrameBody)
	}
	return j.appendFrame(frame, leases)
}

// appendFrame writes the frame that has leases.
func (j *Journal) appendFrame(frame []byte, leases iter.Seq2[string, []byte]) error {
	if err := j.settle(); err != nil {
		return fmt.Errorf("write %s: %w", j.path, explainFull(err))
	}
	frame = sealFrame(frame, j.file.seq+1, j.file.salt)
	if j.buf = nil; cap(frame) <= keepBuffer {
		j.buf = frame
	}
	if err := j.file.append(frame, j.disk); err != nil {
		return fmt.Errorf("write %s: %w", j.path, explainFull(err))
	}
	for name, value := range leases {
		if value == nil {
			delete(j.names, j.hash(name))
		} else {
			j.names[j.hash(name)] = struct{}{}
		}
	}
	if j.file.end >= j.compactAt {
		j.beginCompaction()
	}
	return nil
}

// settle makes the name of a new file durable, before the first thing that only that
// file has.
func (j *Journal) settle() error {
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
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}

// All calls visit for every lease that is kept, until ctx ends. What is read meanwhile to
// find them is given up afterwards. The bytes are visit's only until it returns.
func (j *Journal) All(ctx context.Context, visit func(name, value []byte)) error {
	if j.file == nil {
		return ErrLost
	}
	facts, live, err := readLive(j.file.file, j.file.end, ctx.Err)
	if err == nil {
		err = live.each(j.file.file, j.file.end, func(e entry) error {
			visit(e.name, e.value)
			return ctx.Err()
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

// Count returns how many leases there are, and how many of names are not among them.
func (j *Journal) Count(names iter.Seq[string]) (total, fresh int) {
	for name := range names {
		if _, known := j.names[j.hash(name)]; !known {
			fresh++
		}
	}
	return len(j.names), fresh
}

// Compact goes on with the compacted journal, if one is ready by now. It returns
// ErrLost unless the newest frame is where it was written.
func (j *Journal) Compact() error {
	j.endCompaction()
	return j.checkTail()
}

// TakeDamage returns how many bad places were found since it was asked last.
func (j *Journal) TakeDamage() (places int) {
	places, j.damage = j.damage, 0
	return places
}

// Reopen goes on with what is at path now, or with nothing.
func (j *Journal) Reopen() error {
	if err := j.Close(); err != nil {
		j.log.Debug("the lost lease journal was closed", "err", err)
	}
	if err := j.open(); err != nil {
		return fmt.Errorf("open %s: %w", j.path, explainFull(err))
	}
	return nil
}

// Close waits for the end of a compaction that is under way, too.
func (j *Journal) Close() error {
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
