package inventory

import (
	"slices"
	"strings"

	"ingot/model"
)

// sysfs counts sectors of 512 bytes, whatever the disk's own are.
const sector = 512

// Disk is a physical disk and the block devices that were built on it.
type Disk struct {
	model.ProbeDisk
	Device     string // major:minor
	Partitions []Partition
	// Above are the block devices that rest on the disk: partitions, and arrays and
	// mappings over it or over them. A device that rests on another comes before it, so
	// that they can be taken down in this order.
	Above []Node
}

// Partition is one partition, in bytes.
type Partition struct {
	Name         string
	Start, Bytes uint64
}

// Node is a block device.
type Node struct {
	Name    string // dm-0
	Device  string // major:minor
	Mapping string // its device-mapper name, vg-root
	Array   bool   // an md array
	Cached  bool   // a bcache device
}

// Assembled reports whether an operating system made the device of what it found on disks,
// which keeps them busy; a partition is not assembled.
func (n Node) Assembled() bool { return n.Array || n.Cached || n.Mapping != "" }

// String is the device's name, and that of its mapping.
func (n Node) String() string { return strings.TrimSpace(n.Name + " " + n.Mapping) }

func (h *Host) storage() []model.ProbeDisk {
	list := []model.ProbeDisk{}
	for _, d := range h.Disks() {
		list = append(list, d.ProbeDisk)
	}
	return list
}

// Disks lists the physical disks.
func (h *Host) Disks() []Disk {
	var list []Disk
	for _, name := range h.names("sys/block") {
		if h.physical(name) {
			list = append(list, h.disk(name))
		}
	}
	return list
}

// physical reports whether a block device is a disk. Virtual block devices (loop, ram,
// zram, md, dm, nbd) have no device behind them; sr and fd are optical and floppy drives;
// nvme0c0n1, which is hidden, is one of several paths to an NVMe disk; an eMMC's boot
// partitions, and flash memory, belong to the firmware. A hidden NVMe disk is one that
// Linux cannot use.
func (h *Host) physical(name string) bool {
	switch {
	case !h.exists("sys/block", name, "device"):
		return false
	case h.text("sys/block", name, "hidden") == "1":
		return strings.HasPrefix(name, "nvme") && !strings.Contains(name, "c")
	case strings.HasPrefix(name, "sr"), strings.HasPrefix(name, "fd"), strings.HasPrefix(name, "mtdblock"):
		return false
	case strings.HasPrefix(name, "mmcblk") && strings.Contains(name, "boot"):
		return false
	}
	return true
}

func (h *Host) disk(name string) Disk {
	at := func(attribute string) []string { return []string{"sys/block", name, attribute} }
	d := Disk{
		ProbeDisk: model.ProbeDisk{
			Path: "/dev/" + strings.ReplaceAll(name, "!", "/"), Name: name, // cciss!c0d0 is cciss/c0d0
			Rotational:       h.number(at("queue/rotational")...) == 1,
			Removable:        h.number(at("removable")...) == 1,
			ReadOnly:         h.number(at("ro")...) == 1,
			Vendor:           h.vendor(name),
			Model:            first(h.text(at("device/model")...), h.text(at("device/name")...)),
			WWID:             first(h.text(at("wwid")...), h.text(at("device/wwid")...), h.text(at("device/cid")...)),
			LogicalBlockSize: h.number(at("queue/logical_block_size")...),
			SizeBytes:        h.number(at("size")...) * sector,
			Remote:           h.remote(name),
		},
		Device:     h.text(at("dev")...),
		Partitions: h.partitions(name),
	}
	place := h.placeOf(name)
	d.Transport, d.ByPath, d.HCTL = place.transport, place.byPath, place.hctl
	d.Serial = h.serial(d.ProbeDisk)
	d.Above = h.above(name, nil)
	return d
}

// vendor returns the disk's vendor. A virtio disk has the number of its PCI vendor there,
// which says nothing of the disk.
func (h *Host) vendor(name string) string {
	vendor := h.text("sys/block", name, "device/vendor")
	if strings.HasPrefix(vendor, "0x") {
		return ""
	}
	return vendor
}

// serial returns a disk's serial number: virtio, NVMe and eMMC disks have a file for it,
// SCSI and SATA disks a page of vital product data. A disk without either file is asked
// for that page.
func (h *Host) serial(d model.ProbeDisk) string {
	s := first(
		h.text("sys/block", d.Name, "serial"),
		h.text("sys/block", d.Name, "device/serial"),
		unitSerial(h.read(maxAttribute, "sys/block", d.Name, "device/vpd_pg80")),
	)
	if s != "" || !strings.HasPrefix(d.Name, "sd") {
		return s
	}
	s, err := h.Serial(d.Path)
	if err != nil {
		h.Log.Debug("disk does not report its serial number", "disk", d.Name, "err", err)
	}
	return s
}

// unitSerial reads a Unit Serial Number VPD page (SPC-4 §7.8.15).
func unitSerial(page []byte) string {
	const header, code = 4, 0x80
	if len(page) < header || page[1] != code {
		return ""
	}
	length := int(page[2])<<8 | int(page[3])
	return clean(string(page[header:min(header+length, len(page))]))
}

func (h *Host) partitions(disk string) []Partition {
	var list []Partition
	for _, name := range h.names("sys/block", disk) {
		if h.exists("sys/block", disk, name, "partition") {
			list = append(list, Partition{
				Name:  name,
				Start: h.number("sys/block", disk, name, "start") * sector,
				Bytes: h.number("sys/block", disk, name, "size") * sector,
			})
		}
	}
	return list
}

// above appends to known what rests on a whole block device and on its partitions.
func (h *Host) above(device string, known []Node) []Node {
	known = h.holders(known, "sys/block", device)
	for _, p := range h.partitions(device) {
		known = h.holders(known, "sys/block", device, p.Name)
		known = append(known, Node{Name: p.Name, Device: h.text("sys/block", device, p.Name, "dev")})
	}
	return known
}

// holders appends the arrays and mappings that hold the block device at elem,
// each after what rests on it.
func (h *Host) holders(known []Node, elem ...string) []Node {
	for _, name := range h.names(append(slices.Clone(elem), "holders")...) {
		if len(known) >= maxEntries || slices.ContainsFunc(known, func(n Node) bool { return n.Name == name }) {
			continue
		}
		known = h.above(name, known)
		known = append(known, Node{
			Name: name, Device: h.text("sys/block", name, "dev"),
			Mapping: h.text("sys/block", name, "dm/name"), Array: h.exists("sys/block", name, "md"),
			Cached: strings.HasPrefix(name, "bcache"),
		})
	}
	return known
}

// remote reports whether a disk is reached through iSCSI, Fibre Channel or NVMe
// over fabrics.
func (h *Host) remote(name string) bool {
	device := h.target("sys/block", name, "device")
	if strings.Contains(device, "/session") || strings.Contains(device, "/rport-") {
		return true
	}
	if h.fabric("sys/block", name, "device/transport") {
		return true
	}
	// A disk with several paths hangs on a subsystem, whose controllers know.
	for _, c := range h.names("sys/block", name, "device") {
		if strings.HasPrefix(c, "nvme") && h.fabric("sys/block", name, "device", c, "transport") {
			return true
		}
	}
	return false
}

func (h *Host) fabric(elem ...string) bool {
	return slices.Contains([]string{"tcp", "rdma", "fc", "loop"}, h.text(elem...))
}
