package install

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const mebibyte = 1 << 20

// Disk is the disk that an image is written to.
type Disk interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Size and SectorSize are in bytes.
	Size() int64
	SectorSize() int
	// Zero has the disk read as zeros in a range. errors.ErrUnsupported = zeros have to be
	// written.
	Zero(offset, length int64) error
	// Flush writes all caches to the medium and drops the kernel's, so that the next reads
	// come from the medium.
	Flush() error
	// Reread has the kernel read the partition table again.
	Reread() error
}

// blockDevice is a Disk of this machine.
type blockDevice struct {
	*os.File
	size   int64
	sector int
	direct *os.File // writes past the kernel's cache; nil when that is not possible
	punch  bool     // the disk zeroes by itself, as far as is known
}

// Open opens a disk of this machine, exclusively: the kernel refuses that while anything uses
// the disk.
func Open(path string) (Disk, error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_EXCL, 0)
	if err != nil {
		return nil, err
	}
	d := &blockDevice{File: f, punch: true}
	if d.size, err = deviceSize(f); err == nil {
		d.sector, err = unix.IoctlGetInt(int(f.Fd()), unix.BLKSSZGET)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("size of %s: %w", path, err)
	}
	if d.direct, err = os.OpenFile(path, os.O_WRONLY|unix.O_DIRECT, 0); err != nil {
		d.direct = nil
	}
	return d, nil
}

func deviceSize(f *os.File) (int64, error) {
	var size uint64
	err := ioctl(f, unix.BLKGETSIZE64, unsafe.Pointer(&size))
	return int64(size), err
}

// Size implements Disk.
func (d *blockDevice) Size() int64 { return d.size }

// SectorSize implements Disk.
func (d *blockDevice) SectorSize() int { return d.sector }

// WriteAt implements io.WriterAt. Large pieces are written past the cache: that needs no memory
// of a machine that may have little, and an error is then that of this write.
func (d *blockDevice) WriteAt(p []byte, offset int64) (int, error) {
	const whole = 4096
	if d.direct == nil || len(p) < 64<<10 || offset%whole != 0 || len(p)%whole != 0 || !aligned(p) {
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

// Zero implements Disk. PUNCH_HOLE is what the disk can do by itself; with ZERO_RANGE the kernel
// writes the zeros, which is still cheaper than handing them over.
func (d *blockDevice) Zero(offset, length int64) error {
	if d.punch {
		err := unix.Fallocate(int(d.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, offset, length)
		if err == nil || !unsupported(err) {
			return err
		}
		d.punch = false
	}
	err := unix.Fallocate(int(d.Fd()), unix.FALLOC_FL_ZERO_RANGE|unix.FALLOC_FL_KEEP_SIZE, offset, length)
	if unsupported(err) {
		return errors.ErrUnsupported
	}
	return err
}

func unsupported(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.EINVAL)
}

// Flush implements Disk.
func (d *blockDevice) Flush() error {
	if err := d.Sync(); err != nil {
		return err
	}
	return ioctl(d.File, unix.BLKFLSBUF, nil)
}

// rereadAfter are the waits before each attempt to have a partition table read: what looks at
// new disks holds them for a moment.
var rereadAfter = []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second}

// Reread implements Disk.
func (d *blockDevice) Reread() error {
	var err error
	for _, wait := range rereadAfter {
		time.Sleep(wait)
		if err = ioctl(d.File, unix.BLKRRPART, nil); !errors.Is(err, unix.EBUSY) {
			break
		}
	}
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTTY) {
		return nil // a device that has no partitions
	}
	return err
}

// Close implements io.Closer.
func (d *blockDevice) Close() error {
	if d.direct != nil {
		d.direct.Close() // it buffers nothing
	}
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

// alignment is that of memory, in bytes, which every driver can write from.
const alignment = 4096

func aligned(p []byte) bool { return uintptr(unsafe.Pointer(&p[0]))%alignment == 0 }

// alignedBuffer returns size zero bytes that are aligned, with spare bytes of capacity behind.
func alignedBuffer(size, spare int) []byte {
	b := make([]byte, size+spare+alignment)
	skip := -int(uintptr(unsafe.Pointer(&b[0]))) & (alignment - 1)
	return b[skip : skip+size : skip+size+spare]
}
