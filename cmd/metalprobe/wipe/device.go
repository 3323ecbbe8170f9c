package wipe

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Device is a disk that was opened for wiping.
type Device interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Size is in bytes.
	Size() int64
	// Erase has the kernel clear a range, by Discard, SecureDiscard or ZeroOut;
	// errors.ErrUnsupported when the disk cannot do it so.
	Erase(how Method, offset, length int64) error
	// Firmware is what the disk can do by itself; nil when that is not known.
	Firmware() Firmware
	// Flush brings everything to the medium and forgets what is cached, so that
	// what is read next comes from there.
	Flush() error
}

// disk is a Device that is a block device.
type disk struct {
	*os.File
	size     int64
	sector   int64    // bytes of a logical block
	direct   *os.File // writes past the kernel's cache; nil when that cannot be
	firmware Firmware
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
	sector, err := unix.IoctlGetInt(int(f.Fd()), unix.BLKSSZGET)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("block size of %s: %w", path, err)
	}
	d := &disk{File: f, size: int64(size), sector: int64(sector), firmware: firmwareOf(path, f)}
	if d.direct, err = os.OpenFile(path, os.O_WRONLY|unix.O_DIRECT, 0); err != nil {
		d.direct = nil
	}
	return d, nil
}

// firmwareOf tells what a disk understands by the name that its driver gives it.
func firmwareOf(path string, f *os.File) Firmware {
	name := filepath.Base(path)
	switch {
	case strings.HasPrefix(name, "sd"):
		return newDrive(f)
	case strings.HasPrefix(name, "nvme"):
		if namespace, err := nvmeNamespaceOf(f); err == nil {
			return &nvme{namespace: namespace, send: sendNVMe(f)}
		}
	}
	return nil
}

// Size implements Device.
func (d *disk) Size() int64 { return d.size }

// Firmware implements Device.
func (d *disk) Firmware() Firmware { return d.firmware }

// WriteAt implements io.WriterAt. What lies on blocks of the disk is written past
// the cache: that spares copies and memory, and an error is that of the write.
func (d *disk) WriteAt(p []byte, offset int64) (int, error) {
	if d.direct == nil || len(p) == 0 || offset%d.sector != 0 || int64(len(p))%d.sector != 0 || !aligned(p) {
		return d.File.WriteAt(p, offset)
	}
	n, err := d.direct.WriteAt(p, offset)
	if errors.Is(err, unix.EINVAL) { // a driver with wishes of its own
		d.direct.Close()
		d.direct = nil
		return d.File.WriteAt(p, offset)
	}
	return n, err
}

// alignment is that of memory, in bytes, that every driver can write from.
const alignment = 4096

func aligned(p []byte) bool { return uintptr(unsafe.Pointer(&p[0]))%alignment == 0 }

// alignedBuffer returns size zero bytes that are aligned.
func alignedBuffer(size int) []byte {
	b := make([]byte, size+alignment)
	skip := -int(uintptr(unsafe.Pointer(&b[0]))) & (alignment - 1)
	return b[skip : skip+size : skip+size]
}

// Erase implements Device.
func (d *disk) Erase(how Method, offset, length int64) error {
	request, ok := map[Method]uint{Discard: unix.BLKDISCARD, SecureDiscard: unix.BLKSECDISCARD, ZeroOut: unix.BLKZEROOUT}[how]
	if !ok {
		return errors.ErrUnsupported
	}
	span := [2]uint64{uint64(offset), uint64(length)}
	err := ioctl(d.File, request, unsafe.Pointer(&span))
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
	if d.direct != nil {
		d.direct.Close() // nothing waits in it
	}
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
