package disk

import (
	"errors"
	"os"
	"syscall"
)

// Preallocate makes room for bytes of a file, which becomes longer.
func Preallocate(f *os.File, from, to int64) error {
	err := again(func() error { return syscall.Fallocate(int(f.Fd()), 0, from, to-from) })
	if errors.Is(err, syscall.EOPNOTSUPP) { // the zeros that are written next make it
		return nil
	}
	return err
}

// Datasync makes what was written to a file durable, but for times that nobody
// reads (fdatasync(2)).
func Datasync(f *os.File) error {
	return again(func() error { return syscall.Fdatasync(int(f.Fd())) })
}

// again makes a system call until no signal, such as the Go runtime sends, cuts it
// short: fallocate(2) on tmpfs gives up then.
func again(call func() error) error {
	for {
		if err := call(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// Lock locks a file until it is closed, and reports whether nobody else had.
func Lock(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
