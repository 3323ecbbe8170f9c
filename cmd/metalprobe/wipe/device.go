package wipe

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Erasure is a way to clear a range that a disk, or the kernel for it, may know.
type Erasure string

// The erasures.
const (
	Discard       Erasure = "blkdiscard"    // what is read afterwards is up to the disk
	SecureDiscard Erasure = "blksecdiscard" // copies of the data are cleared, too
	ZeroOut       Erasure = "blkzeroout"    // zeros are on the medium afterwards
)

// Device is a disk that was opened for wiping.
type Device interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Size is in bytes.
	Size() int64
	// Erase clears a range; errors.ErrUnsupported when the disk cannot do it so.
	Erase(how Erasure, offset, length int64) error
	// Flush brings everything to the medium and forgets what is cached, so that
	// what is read next comes from there.
	Flush() error
}

// disk is a Device that is a block device.
type disk struct {
	*os.File
	size int64
}

// Open opens a block device for wiping, for itself alone.
func Open(path string) (Device, error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_EXCL, 0)
	if errors.Is(err, unix.EBUSY) {
		return nil, fmt.Errorf("%w: it is mounted, used as swap, or part of an array or mapping", err)
	}
	if err != nil {
		return nil, err
	}
	var size uint64
	if err := ioctl(f, unix.BLKGETSIZE64, unsafe.Pointer(&size)); err != nil {
		f.Close()
		return nil, fmt.Errorf("size of %s: %w", path, err)
	}
	return &disk{File: f, size: int64(size)}, nil
}

// Size implements Device.
func (d *disk) Size() int64 { return d.size }

// Erase implements Device.
func (d *disk) Erase(how Erasure, offset, length int64) error {
	requests := map[Erasure]uint{Discard: unix.BLKDISCARD, SecureDiscard: unix.BLKSECDISCARD, ZeroOut: unix.BLKZEROOUT}
	span := [2]uint64{uint64(offset), uint64(length)}
	err := ioctl(d.File, requests[how], unsafe.Pointer(&span))
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOTTY) {
		return errors.ErrUnsupported
	}
	return err
}

// Flush implements Device.
func (d *disk) Flush() error {
	if err := d.Sync(); err != nil {
		return err
	}
	return ioctl(d.File, unix.BLKFLSBUF, nil)
}

// Close makes the kernel forget the partitions that are gone and closes the disk.
// Some disks have no partitions to forget, which is no error.
func (d *disk) Close() error {
	_ = ioctl(d.File, unix.BLKRRPART, nil)
	return d.File.Close()
}

func ioctl(f *os.File, request uint, argument unsafe.Pointer) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), uintptr(request), uintptr(argument))
	runtime.KeepAlive(f)
	if errno != 0 {
		return errno
	}
	return nil
}
