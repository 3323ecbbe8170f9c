package imagecache

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"ingot/bootsvc/cachedir"
)

// diskError is a failure of this machine's disk: the blob can be streamed without it.
type diskError struct{ err error }

func (e *diskError) Error() string { return "image cache: " + e.err.Error() }
func (e *diskError) Unwrap() error { return e.err }

func isDisk(err error) bool {
	_, ok := errors.AsType[*diskError](err)
	return ok
}

type disk struct {
	// allocate reserves disk space, so that a full disk is known before a byte is sent.
	allocate func(f *os.File, size int64) error
	flush    func(f *os.File) error
}

// measure returns the size of a blob that a former process completed.
func measure(_, _ string, info fs.FileInfo) (int64, bool) {
	return info.Size(), info.Mode().IsRegular() && info.Size() > 0
}

func open(path string) (*os.File, mark, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
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

// mark identifies the content of a file: another mark means that the file may have changed.
type mark struct {
	inode            uint64
	size             int64
	written, changed unix.Timespec
}

var errNotRegular = errors.New("not a regular file")

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

func (d *disk) create(e *cachedir.Entry, size int64) (*os.File, error) {
	f, err := os.OpenFile(e.Part(), os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := d.allocate(f, size); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// allocate reserves size bytes for f, if the file system can, and makes this the length of f, because writes that
// extend a file cost the file system a third more.
func allocate(f *os.File, size int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return nil
	}
	return err
}
