package machine

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// mounts are the file systems that a program expects to find.
var mounts = []struct {
	kind, at, data string
	flags          uintptr
}{
	{"proc", "/proc", "", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
	{"sysfs", "/sys", "", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
	{"devtmpfs", "/dev", "mode=0755", unix.MS_NOSUID},
	{"devpts", "/dev/pts", "mode=0620", unix.MS_NOSUID | unix.MS_NOEXEC},
	{"tmpfs", "/run", "mode=0755", unix.MS_NOSUID | unix.MS_NODEV},
}

func mountAll() error {
	var errs []error
	for _, m := range mounts {
		err := os.MkdirAll(m.at, 0o755)
		if err == nil {
			err = unix.Mount(m.kind, m.at, m.kind, m.flags, m.data)
		}
		if err != nil && !errors.Is(err, unix.EBUSY) {
			errs = append(errs, fmt.Errorf("mount %s: %w", m.at, err))
		}
	}
	return errors.Join(errs...)
}
