package cachedir

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

var (
	// ErrLimit is returned if an entry does not fit into MaxBytes, whatever is evicted.
	ErrLimit = errors.New("the image cache has no room: raise boot.cacheSize")
	// ErrFull is returned if an entry does not fit on the disk, whatever is evicted.
	ErrFull = errors.New("the disk of the image cache is full: name a folder on a larger disk (boot.cacheDir)")
)

// Entry is a file or a folder in a Dir, from its first byte on.
type Entry struct {
	Digest string
	// Users counts those who read the entry. It is not evicted until they have left.
	Users atomic.Int64

	dir  *Dir
	kind *Kind
	name string
	part string // where it is until it is complete

	// guarded by dir.mu
	size        int64
	used, noted time.Time // noted is what its time on disk is
}

// New returns an entry that is not complete, and takes no room yet.
func (d *Dir) New(k *Kind, digest string) *Entry {
	name := strings.Replace(digest, ":", "-", 1) + k.Ending
	return &Entry{Digest: digest, dir: d, kind: k, name: name, part: d.part(name)}
}

// Part is the path of the entry until it is complete. The caller makes it.
func (e *Entry) Part() string { return e.part }

// Path is the path of the complete entry.
func (e *Entry) Path() string { return filepath.Join(e.dir.path, e.name) }

// Fits reports whether n bytes fit into MaxBytes at all.
func (d *Dir) Fits(n int64) bool { return d.max <= 0 || n <= d.max }

// CanTake returns why there is no room for n more bytes, whatever is evicted.
func (d *Dir) CanTake(n int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, err := d.victims(n)
	return err
}

// Take makes room for n more bytes of the entry. If there is none, nothing is evicted.
func (e *Entry) Take(n int64) error {
	d := e.dir
	d.mu.Lock()
	victims, err := d.victims(n)
	if err == nil {
		e.size += n
		d.resize(n)
	}
	gone := make([]string, len(victims))
	for i, v := range victims {
		gone[i] = d.unlink(v)
		d.evictions.Inc()
	}
	d.mu.Unlock()
	for i, v := range victims {
		v.kind.Evicted(v)
		_ = os.RemoveAll(gone[i]) // else the next process does
	}
	return err
}

// victims returns the entries that have to go to make room for n more bytes; mu is held.
func (d *Dir) victims(n int64) (victims []*Entry, err error) {
	limited, full := int64(0), int64(0)
	if d.max > 0 {
		limited = d.size + n - d.max
	}
	if free, err := d.free(); err == nil {
		full = n - free
	}
	needed, gain := max(limited, full), int64(0)
	if needed <= 0 {
		return nil, nil
	}
	oldest := slices.SortedFunc(maps.Values(d.entries), func(a, b *Entry) int { return a.used.Compare(b.used) })
	for _, e := range oldest {
		if gain >= needed {
			break
		}
		if e.Users.Load() == 0 && !d.pinned(e.Digest) {
			victims = append(victims, e)
			gain += e.size
		}
	}
	switch {
	case limited > gain:
		return nil, ErrLimit
	case full > gain:
		return nil, ErrFull
	}
	return victims, nil
}

// Give gives back room for n bytes.
func (e *Entry) Give(n int64) {
	e.dir.mu.Lock()
	defer e.dir.mu.Unlock()
	e.size -= n
	e.dir.resize(-n)
}

// Size is how many bytes the entry takes.
func (e *Entry) Size() int64 {
	e.dir.mu.Lock()
	defer e.dir.mu.Unlock()
	return e.size
}

// Used is when the entry was last used, to the minute.
func (e *Entry) Used() time.Time {
	e.dir.mu.Lock()
	defer e.dir.mu.Unlock()
	return e.noted
}

// Keep makes the entry complete and its name durable, in place of one of the same name.
func (e *Entry) Keep(now time.Time) error {
	d := e.dir
	d.mu.Lock()
	err := os.Rename(e.part, e.Path())
	if err == nil {
		if old := d.entries[e.name]; old != nil {
			d.resize(-old.size)
			old.size = 0
		}
		d.entries[e.name] = e
		e.used, e.noted = now, now
	}
	d.mu.Unlock()
	if err != nil {
		return err
	}
	return d.sync()
}

// Touch notes that the entry is used, for the order of eviction. It reports whether it changed the time on disk, which
// happens once a minute.
func (e *Entry) Touch(now time.Time) bool {
	e.dir.mu.Lock()
	defer e.dir.mu.Unlock()
	e.used = now
	if now.Sub(e.noted) < noteEvery {
		return false
	}
	e.noted = now
	at := unix.NsecToTimespec(now.UnixNano())
	return unix.UtimesNanoAt(unix.AT_FDCWD, e.Path(), []unix.Timespec{at, at}, unix.AT_SYMLINK_NOFOLLOW) == nil
}

// Drop removes the entry, complete or not, and gives back its room.
func (e *Entry) Drop() {
	d := e.dir
	d.mu.Lock()
	gone := d.unlink(e)
	d.mu.Unlock()
	_ = os.RemoveAll(gone) // else the next process does
}

// unlink takes an entry out of the Dir, and returns the path to remove without mu, which is held: a large file takes a
// while to go.
func (d *Dir) unlink(e *Entry) (gone string) {
	gone = e.part
	if d.entries[e.name] == e {
		delete(d.entries, e.name)
		if os.Rename(e.Path(), gone) != nil {
			gone = e.Path()
		}
	}
	d.resize(-e.size)
	e.size = 0
	return gone
}
