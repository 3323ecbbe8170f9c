package disk

import (
	"os"
	"syscall"
)

// Lock locks a file until it is closed, and reports whether nobody else had.
func Lock(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// DropPages takes a read-only mapping of a file, or its first size bytes, out of
// memory (madvise(2), MADV_DONTNEED). What is read of it again comes from the file.
func DropPages(start uintptr, size int64) error {
	if _, _, errno := syscall.Syscall(syscall.SYS_MADVISE, start, uintptr(size), syscall.MADV_DONTNEED); errno != 0 {
		return errno
	}
	return nil
}
