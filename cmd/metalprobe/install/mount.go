package install

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Mount mounts a partition of a disk, of a kind of filesystem, where nothing else sees it, and
// hands over its files. What it is mounted of ends with it.
type Mount func(disk string, p partition, kind string, readOnly bool, do func(*os.Root) error) error

// mountPartition is the Mount of this machine. The disk must not be open exclusively.
func mountPartition(disk string, p partition, kind string, readOnly bool, do func(*os.Root) error) (err error) {
	f, err := os.OpenFile(disk, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	device, known := partitionDevice(disk, p)
	if !known {
		if err := blkpg(f, unix.BLKPG_ADD_PARTITION, p); err != nil {
			return fmt.Errorf("show partition %d: %w", p.number, err)
		}
		defer func() { err = errors.Join(err, blkpg(f, unix.BLKPG_DEL_PARTITION, p)) }()
		if device, known = partitionDevice(disk, p); !known {
			return fmt.Errorf("partition %d is not shown by the kernel", p.number)
		}
	}
	folder, err := os.MkdirTemp("/dev", "ingot-install-") // elsewhere devices may not be allowed
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	node, at := filepath.Join(folder, "device"), filepath.Join(folder, "files")
	if err := unix.Mknod(node, unix.S_IFBLK|0o600, int(device)); err != nil {
		return fmt.Errorf("make a device: %w", err)
	}
	if err := os.Mkdir(at, 0o700); err != nil {
		return err
	}
	return inPrivate(func() error { return mounted(node, at, kind, readOnly, do) })
}

// partitionDevice is the device of a partition that the kernel shows of a disk.
func partitionDevice(disk string, p partition) (device uint64, known bool) {
	starts, _ := filepath.Glob(filepath.Join("/sys/class/block", filepath.Base(disk), "*/start"))
	for _, start := range starts {
		text, err := os.ReadFile(start)
		if err != nil || strings.TrimSpace(string(text)) != strconv.FormatInt(p.from/512, 10) {
			continue
		}
		text, err = os.ReadFile(filepath.Join(filepath.Dir(start), "dev"))
		if err != nil {
			continue
		}
		var major, minor uint32
		if _, err := fmt.Sscanf(string(text), "%d:%d", &major, &minor); err == nil {
			return unix.Mkdev(major, minor), true
		}
	}
	return 0, false
}

// blkpg has the kernel show a partition of a disk, or no longer (linux/blkpg.h).
func blkpg(f *os.File, operation int32, p partition) error {
	part := unix.BlkpgPartition{Start: p.from, Length: p.to - p.from, Pno: int32(p.number)}
	request := unix.BlkpgIoctlArg{Op: operation, Datalen: int32(unsafe.Sizeof(part)), Data: (*byte)(unsafe.Pointer(&part))}
	return ioctl(f, unix.BLKPG, unsafe.Pointer(&request))
}

// inPrivate calls do in a mount namespace of its own. The thread that has it ends with do.
func inPrivate(do func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked
		err := unix.Unshare(unix.CLONE_NEWNS)
		if err == nil {
			err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		}
		if err != nil {
			done <- fmt.Errorf("make a mount namespace: %w", err)
			return
		}
		done <- do()
	}()
	return <-done
}

func mounted(device, at, kind string, readOnly bool, do func(*os.Root) error) (err error) {
	flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC)
	if readOnly {
		flags |= unix.MS_RDONLY
	}
	if err := unix.Mount(device, at, kind, flags, ""); err != nil {
		return fmt.Errorf("mount a filesystem of type %s: %w", kind, err)
	}
	defer func() {
		if unmount := unix.Unmount(at, 0); unmount != nil {
			err = errors.Join(err, fmt.Errorf("unmount: %w", unmount))
		}
	}()
	root, err := os.OpenRoot(at)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // all files in it are closed
	return do(root)
}
