package imagecache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"ingot/bootsvc/internal/diskspace"
)

// leftover is the ending of files that have no meaning once the process that made
// them has ended: blobs not yet complete, and blobs on their way out.
const leftover = ".part"

// lockName is the file that a process which uses the folder holds a lock on.
const lockName = ".lock"

// diskError is a failure of this machine's disk: the registry is not to blame, and
// the blob can be streamed without it.
type diskError struct{ err error }

func (e *diskError) Error() string { return "image cache: " + e.err.Error() }
func (e *diskError) Unwrap() error { return e.err }

// isDisk reports whether err is a failure of the disk.
func isDisk(err error) bool {
	var e *diskError
	return errors.As(err, &e)
}

// disk is the folder that blobs are in. Nothing in it is reached by a symbolic link,
// and nothing but its owner may read it: images can hold secrets.
type disk struct {
	dir  string
	lock *os.File
	made atomic.Uint64 // how many leftovers were named
	// allocate sets space aside, so that a full disk is known before a byte is sent.
	allocate func(f *os.File, size int64) error
	// flush makes what was written to f durable.
	flush func(f *os.File) error
	// space returns how many bytes of the file system blobs may take.
	space func() (int64, error)
}

// openDisk opens dir, makes it if need be, and makes sure that no other process uses
// it.
func openDisk(dir string, keepFree int64) (*disk, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("folder %s is in use by another process, give each its own: %w", dir, err)
	}
	return &disk{
		dir: dir, lock: lock, allocate: allocate, flush: (*os.File).Sync,
		space: func() (int64, error) { return diskspace.Free(dir, keepFree) },
	}, nil
}

// close lets other processes use the folder.
func (d *disk) close() { d.lock.Close() }

// found is a blob that lies in the folder.
type found struct {
	digest string
	size   int64
	used   time.Time
}

// scan returns the blobs that lie in the folder, and clears away what a former
// process left unfinished. What is not the cache's is left alone.
func (d *disk) scan() ([]found, error) {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return nil, err
	}
	var blobs []found
	for _, entry := range entries {
		if d.isLeftover(entry) {
			if err := os.Remove(filepath.Join(d.dir, entry.Name())); err != nil {
				return nil, err
			}
			continue
		}
		if b, ok := blobIn(entry); ok {
			blobs = append(blobs, b)
		}
	}
	return blobs, nil
}

// isLeftover reports whether entry is a file of this package without a meaning.
func (d *disk) isLeftover(entry fs.DirEntry) bool {
	name, ours := strings.CutSuffix(entry.Name(), leftover)
	name, _, numbered := strings.Cut(name, ".")
	_, named := digestOf(name)
	return ours && numbered && named && !entry.IsDir()
}

// blobIn returns the blob that entry is.
func blobIn(entry fs.DirEntry) (found, bool) {
	digest, ok := digestOf(entry.Name())
	if !ok || !entry.Type().IsRegular() {
		return found{}, false
	}
	info, err := entry.Info()
	if err != nil || info.Size() == 0 {
		return found{}, false
	}
	return found{digest, info.Size(), info.ModTime()}, true
}

func (d *disk) path(digest string) string { return filepath.Join(d.dir, fileName(digest)) }

// open opens the file of a blob, and returns the mark it bears.
func (d *disk) open(digest string) (*os.File, mark, error) {
	f, err := os.OpenFile(d.path(digest), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, mark{}, err
	}
	m, err := markOf(f)
	if err != nil {
		f.Close()
		return nil, mark{}, err
	}
	return f, m, nil
}

// mark tells whether a file is the one it was, unchanged.
type mark struct {
	inode            uint64
	size             int64
	written, changed unix.Timespec
}

var errNotRegular = errors.New("not a regular file")

// markOf returns the mark of an open file.
func markOf(f *os.File) (mark, error) {
	var s unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &s); err != nil {
		return mark{}, err
	}
	if s.Mode&unix.S_IFMT != unix.S_IFREG {
		return mark{}, errNotRegular
	}
	return mark{s.Ino, s.Size, s.Mtim, s.Ctim}, nil
}

// touch keeps in the file's time when it was used, for the order of eviction after a
// restart, and returns the mark it bears then.
func (d *disk) touch(f *os.File, digest string, now time.Time) (mark, error) {
	at := unix.NsecToTimespec(now.UnixNano())
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, d.path(digest), []unix.Timespec{at, at}, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return mark{}, err
	}
	return markOf(f)
}

// leftoverName returns a new name for a file of a digest that nobody may find.
func (d *disk) leftoverName(digest string) string {
	return d.path(digest) + "." + strconv.FormatUint(d.made.Add(1), 10) + leftover
}

// create makes the file that a blob of a size is fetched into.
func (d *disk) create(key Key) (*os.File, error) {
	f, err := os.OpenFile(d.leftoverName(key.Digest), os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := d.allocate(f, key.Size); err != nil {
		d.discard(f)
		return nil, err
	}
	return f, nil
}

// allocate sets size bytes aside for f, where the file system can, and makes them its
// length, for a file that grows with each write costs the file system a third more.
func allocate(f *os.File, size int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return nil
	}
	return err
}

// discard closes a file that will never be complete, and removes it. A name that
// cannot be removed is cleared away by the next process.
func (d *disk) discard(f *os.File) {
	_ = os.Remove(f.Name())
	f.Close()
}

// drop removes the file of a blob. Its name is free at once, while the blocks of a
// large file may take a while.
func (d *disk) drop(digest string) (finish func(), err error) {
	name := d.leftoverName(digest)
	if err := os.Rename(d.path(digest), name); err != nil {
		return func() {}, err
	}
	return func() { _ = os.Remove(name) }, nil
}

// sync makes the names in the folder durable.
func (d *disk) sync() error {
	dir, err := os.Open(d.dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}
