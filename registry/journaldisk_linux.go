package registry

import (
	"errors"
	"os"
	"syscall"
)

// preallocate makes room for bytes of a file, which becomes longer.
func preallocate(f *os.File, from, to int64) error {
	err := syscall.Fallocate(int(f.Fd()), 0, from, to-from)
	if errors.Is(err, syscall.EOPNOTSUPP) { // the zeros that are written next make it
		return nil
	}
	return err
}

// datasync makes what was written to a file durable, but for times that nobody
// reads (fdatasync(2)).
func datasync(f *os.File) error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// lockFile locks a file until it is closed, and reports whether nobody else had.
func lockFile(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
