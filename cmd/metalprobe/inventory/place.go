package inventory

import (
	"path/filepath"
	"regexp"
	"strings"
)

// place is where a disk is in the machine.
type place struct{ transport, byPath, hctl string }

// hctlForm is a SCSI device: host, channel, target, LUN.
var hctlForm = regexp.MustCompile(`^[0-9]+:[0-9]+:[0-9]+:[0-9]+$`)

// placeOf returns what a disk hangs on and where, by the folders of its device in sysfs. Its
// path is named as udev's path_id names it, but for SAS disks, which that names by their
// expander's port.
func (h *Host) placeOf(name string) place {
	device := h.target("sys/block", name, "device")
	var p place
	if last := filepath.Base(device); hctlForm.MatchString(last) {
		p.hctl = last
	}
	p.transport = h.transport(name, device)
	p.byPath = byPath(strings.Split(device, "/"), h.text("sys/block", name, "nsid"), p)
	return p
}

// transport is what a disk hangs on.
func (h *Host) transport(name, device string) string {
	parts := func(prefix string) bool { return strings.Contains(device, "/"+prefix) }
	switch {
	case strings.HasPrefix(name, "nvme") && h.remote(name):
		return "nvme-fabrics"
	case strings.HasPrefix(name, "nvme"):
		return "nvme"
	case strings.HasPrefix(name, "mmcblk"):
		if h.text("sys/block", name, "device/type") == "SD" {
			return "sd"
		}
		return "mmc"
	case parts("usb"):
		return "usb"
	case parts("session"):
		return "iscsi"
	case parts("rport-"):
		return "fc"
	case parts("end_device-"):
		return "sas"
	case parts("ata"):
		return "sata"
	case parts("virtio"):
		return "virtio"
	case hctlForm.MatchString(filepath.Base(device)):
		return "scsi"
	}
	return ""
}

// byPath is the place of a device, as udev's path_id names it: its PCI function, and what is
// behind it. It is "" for what is on no PCI function, or reached by a network.
func byPath(folders []string, nsid string, p place) string {
	pci := ""
	for _, folder := range folders {
		if isPCIAddress(folder) {
			pci = "pci-" + folder // the last is the controller
		}
	}
	if pci == "" {
		return ""
	}
	switch p.transport {
	case "nvme":
		if nsid == "" {
			nsid = "1"
		}
		return pci + "-nvme-" + nsid
	case "sata":
		for _, folder := range folders {
			if port, ok := strings.CutPrefix(folder, "ata"); ok && port != "" {
				return pci + "-ata-" + port
			}
		}
	case "scsi", "sas", "virtio":
		_, unit, scsi := strings.Cut(p.hctl, ":")
		if !scsi {
			return pci
		}
		return pci + "-scsi-0:" + unit // hosts are numbered in the order in which they are found
	}
	return ""
}
