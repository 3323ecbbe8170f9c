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
	// Erase has the kernel clear a range, by Discard, SecureDiscard or ZeroOut. It
	// returns errors.ErrUnsupported if the disk does not support that.
	Erase(how Method, offset, length int64) error
	// Firmware is the interface to the disk's own methods; nil when it is not known.
	Firmware() Firmware
	// Flush writes all caches to the medium and drops the kernel's, so that the next
	// reads come from the medium.
	Flush() error
}

// disk is a Device that is a block device.
type disk struct {
	*os.File
	size     int64
	sector   int64    // bytes of a logical block
	direct   *os.File // writes past the kernel's cache; nil when that is not possible
	firmware Firmware
}

// Open opens a block device for wiping, exclusively.
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

// firmwareOf returns the interface to a disk's firmware, by the name that its driver
// gives the disk.
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

// WriteAt implements io.WriterAt. Whole blocks are written past the cache, which saves
// copies and memory; and an error is then that of this write.
func (d *disk) WriteAt(p []byte, offset int64) (int, error) {
	if d.direct == nil || len(p) == 0 || offset%d.sector != 0 || int64(len(p))%d.sector != 0 || !aligned(p) {
		return d.File.WriteAt(p, offset)
	}
	n, err := d.direct.WriteAt(p, offset)
	if errors.Is(err, unix.EINVAL) { // a driver with other demands on alignment
		d.direct.Close()
		d.direct = nil
		return d.File.WriteAt(p, offset)
	}
	return n, err
}

// alignment is the alignment of memory, in bytes, that every driver can write from.
const alignment = 4096

func aligned(p []byte) bool { return uintptr(unsafe.Pointer(&p[0]))%alignment == 0 }

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

// Close makes the kernel read the partition table again, which is gone, and closes the
// disk. Some disks have no partitions, which is no error.
func (d *disk) Close() error {
	if d.direct != nil {
		d.direct.Close() // it buffers nothing
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
