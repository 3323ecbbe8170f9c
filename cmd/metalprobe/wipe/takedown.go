package wipe

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"

	"ingot/cmd/metalprobe/inventory"
)

// takedowns lists what is assembled over the chosen disks in the order in which it can be
// taken down.
func takedowns(choices []Choice) []inventory.Node {
	var list []inventory.Node
	seen := make(map[string]bool)
	for _, c := range choices {
		for _, n := range c.Disk.Above {
			if c.Result == "" && n.Assembled() && !seen[n.Name] {
				seen[n.Name] = true
				list = append(list, n)
			}
		}
	}
	return list
}

// Takedown stops an array or a bcache device of this machine, or removes a mapping. The kernel
// refuses that while the device is in use; what bcache holds it lets go a little later.
func Takedown(n inventory.Node) error { return takedown("/sys/block", n) }

// takedown stops arrays and bcache devices through their files below sysfs (Linux,
// admin-guide/md and admin-guide/bcache).
func takedown(sysfs string, n inventory.Node) error {
	switch {
	case n.Array:
		return tell(filepath.Join(sysfs, n.Name, "md/array_state"), "clear")
	case n.Cached:
		return tell(filepath.Join(sysfs, n.Name, "bcache/stop"), "1")
	}
	return removeMapping(n.Mapping)
}

func tell(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// removeMapping removes a device-mapper device.
func removeMapping(name string) error {
	request, err := removal(name)
	if err != nil {
		return err
	}
	control, err := os.OpenFile("/dev/mapper/control", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer control.Close()
	if err := ioctl(control, unix.DM_DEV_REMOVE, unsafe.Pointer(request)); err != nil {
		return fmt.Errorf("remove mapping %s: %w", name, err)
	}
	return nil
}

// removal is the request that removes a mapping (linux/dm-ioctl.h).
func removal(name string) (*unix.DmIoctl, error) {
	request := &unix.DmIoctl{Version: [3]uint32{4, 0, 0}, Data_size: uint32(unsafe.Sizeof(unix.DmIoctl{}))}
	if len(name) >= len(request.Name) {
		return nil, fmt.Errorf("remove mapping %s: the name has more than %d bytes", name, len(request.Name)-1)
	}
	copy(request.Name[:], name)
	return request, nil
}
