package journal

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
)

const (
	// minCompactSize is the size below which a journal is not compacted.
	minCompactSize = 4 << 20
	// compactRatio is how many times larger than its leases a journal is when it is
	// compacted: for three bytes that are appended one is written again.
	compactRatio = 4
	// compactFrame is about how long a frame of a compacted journal is.
	compactFrame = 64 << 10
	// compactSync is how many bytes are written between two syncs, so that those who
	// save meanwhile never wait for many.
	compactSync = 4 << 20
)

var (
	// errStopped ends a compaction that nobody needs any more.
	errStopped = errors.New("stopped")
	// errDamaged ends one that found that leases cannot be read.
	errDamaged = errors.New("it is damaged")
)

// compactFrom returns the size from which on a journal with live bytes is
// compacted.
func compactFrom(live int64) int64 { return max(minCompactSize, compactRatio*live) }

// span is where an entry is in a file.
type span struct {
	at   int64
	size int32
}

// liveLeases is where the newest entry of each lease that is kept is in a file. It
// lives no longer than it takes to read them.
type liveLeases struct {
	spans map[string]span
	bytes int64
}

// readLive reads a journal and finds what of it is kept. It gives up with the error
// of pulse, which is called for each frame.
func readLive(from io.ReaderAt, size int64, pulse func() error) (facts, liveLeases, error) {
	live := liveLeases{spans: make(map[string]span)}
	facts, err := read(from, size, func(frame []byte, at int64) error {
		entries(frame[headSize:], at+headSize, live.take)
		return pulse()
	})
	return facts, live, err
}

func (l *liveLeases) take(e entry) {
	l.bytes -= int64(l.spans[string(e.name)].size)
	if e.value == nil {
		delete(l.spans, string(e.name))
		return
	}
	s := span{e.at, int32(entryHead + len(e.name) + len(e.value))}
	l.spans[string(e.name)] = s
	l.bytes += int64(s.size)
}

// each reads the file once more and visits what is kept, in the order in which it
// was written.
func (l *liveLeases) each(from io.ReaderAt, size int64, visit func(entry) error) error {
	_, err := read(from, size, func(frame []byte, at int64) (err error) {
		entries(frame[headSize:], at+headSize, func(e entry) {
			if err == nil && l.spans[string(e.name)].at == e.at {
				err = visit(e)
			}
		})
		return err
	})
	return err
}

// compaction writes the leases of a journal to a new file, beside those who save.
type compaction struct {
	stopped atomic.Bool
	done    chan struct{}
	// until is what the journal's file was when it began: what follows is to be added.
	until facts

	made *segment // once done is closed
	err  error    // likewise
}

func (c *compaction) pulse() error {
	if c.stopped.Load() {
		return errStopped
	}
	return nil
}

// beginCompaction starts the goroutine that endCompaction or dropCompaction waits
// for.
func (j *Journal) beginCompaction() {
	if j.compaction != nil {
		return
	}
	c := &compaction{done: make(chan struct{}), until: j.file.facts}
	j.compaction = c
	from := j.file.file
	go func() {
		defer close(c.done)
		c.made, c.err = j.rewrite(from, c.until.end, c.pulse)
	}()
}

// rewrite writes the leases of a file to a new one beside it. It uses nothing of j
// that changes.
func (j *Journal) rewrite(from io.ReaderAt, size int64, pulse func() error) (*segment, error) {
	facts, live, err := readLive(from, size, pulse)
	switch {
	case err != nil:
		return nil, err
	case facts.end != size:
		return nil, errDamaged
	case facts.damage > 0:
		return nil, errDamaged
	}
	return j.write(func(add func(entry) error) error {
		return live.each(from, size, func(e entry) error { return errors.Join(pulse(), add(e)) })
	})
}

// write makes a new file of the entries that fill adds. It does not replace the
// journal yet.
func (j *Journal) write(fill func(add func(entry) error) error) (*segment, error) {
	if err := os.Remove(j.path + newSuffix); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	s, err := newSegment(j.path+newSuffix, j.disk)
	if err != nil {
		return nil, err
	}
	w := &segmentWriter{segment: s, disk: j.disk}
	err = fill(w.add)
	if err == nil {
		err = w.flush()
	}
	if err == nil {
		err = j.disk.sync(s.file)
	}
	if err != nil {
		return nil, errors.Join(err, j.discard(s))
	}
	return s, nil
}

// discard takes away a file that did not become the journal.
func (j *Journal) discard(s *segment) error {
	return errors.Join(s.file.Close(), os.Remove(j.path+newSuffix))
}

// endCompaction goes on with the compacted journal if it is there by now. What was
// appended meanwhile is added, which is little.
func (j *Journal) endCompaction() {
	c := j.compaction
	if c == nil {
		return
	}
	select {
	case <-c.done:
	default:
		return
	}
	j.compaction = nil
	err := c.err
	if err == nil {
		err = j.takeOver(c)
	}
	switch {
	case err == nil:
		j.log.Debug("the lease journal was compacted", "bytes", j.file.end)
	case errors.Is(err, errDamaged):
		// As a lost store it is read again, which reports it, and DHCP is asked for the
		// leases that it has.
		_ = j.Close()
	default:
		j.compactAt = j.file.end + minCompactSize
		j.log.Warn("the lease journal cannot be compacted, and grows", "file", j.path, "bytes", j.file.end, "err", explainFull(err))
	}
}

func (j *Journal) takeOver(c *compaction) error {
	err := j.catchUp(c)
	if err == nil {
		err = j.disk.sync(c.made.file)
	}
	if err != nil {
		return errors.Join(err, j.discard(c.made))
	}
	return j.install(c.made)
}

// catchUp adds the frames that were appended since the compaction began.
func (j *Journal) catchUp(c *compaction) error {
	in := reader{from: j.file.file, size: j.file.end, facts: c.until, salted: true}
	for in.facts.end < j.file.end && !in.done {
		err := in.next(func(frame []byte, _ int64) error {
			again := append([]byte(nil), frame...)
			return c.made.put(sealFrame(again, c.made.seq+1, c.made.salt), j.disk)
		})
		if err != nil {
			return err
		}
	}
	if in.facts.end != j.file.end || in.facts.damage > c.until.damage {
		return errDamaged
	}
	return nil
}

// install makes a file that is whole and durable the journal.
func (j *Journal) install(s *segment) error {
	if err := os.Rename(j.path+newSuffix, j.path); err != nil {
		return errors.Join(err, j.discard(s))
	}
	old := j.file
	j.file, j.unsettled, j.compactAt = s, true, compactFrom(s.end)
	if old != nil {
		if err := old.file.Close(); err != nil {
			j.log.Debug("the compacted lease journal was closed", "err", err)
		}
	}
	return nil
}

// dropCompaction ends a compaction whose file nobody wants.
func (j *Journal) dropCompaction() {
	c := j.compaction
	if c == nil {
		return
	}
	j.compaction = nil
	c.stopped.Store(true)
	<-c.done
	if c.made != nil {
		_ = j.discard(c.made)
	}
}
