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

// takedowns lists the arrays and mappings over the chosen disks in the order in which
// they can be taken down. Operating systems assemble what they find on disks, and what
// is assembled keeps its disks busy.
func takedowns(choices []Choice) []inventory.Node {
	var list []inventory.Node
	seen := make(map[string]bool)
	for _, c := range choices {
		for _, n := range c.Disk.Above {
			if c.Result == "" && assembled(n) && !seen[n.Name] {
				seen[n.Name] = true
				list = append(list, n)
			}
		}
	}
	return list
}

func assembled(n inventory.Node) bool { return n.Array || n.Mapping != "" }

// Takedown stops an array or removes a mapping of this machine. The kernel refuses that
// while the device is in use.
func Takedown(n inventory.Node) error {
	if n.Array {
		return stopArray(filepath.Join("/sys/block", n.Name, "md/array_state"))
	}
	return removeMapping(n.Mapping)
}

// stopArray stops an array through its state file (Linux, admin-guide/md).
func stopArray(state string) error {
	f, err := os.OpenFile(state, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("clear")
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
