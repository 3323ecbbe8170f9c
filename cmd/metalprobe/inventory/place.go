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
	folders := strings.Split(device, "/")
	p.byPath = byPath(folders, h.unit(name, folders, p), p)
	return p
}

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

// unit tells a disk from the others on its PCI function, "" if nothing does.
func (h *Host) unit(name string, folders []string, p place) string {
	switch p.transport {
	case "nvme":
		return first(h.text("sys/block", name, "nsid"), "1")
	case "sata":
		return h.ataUnit(folders, p.hctl)
	case "scsi", "sas", "virtio":
		_, unit, _ := strings.Cut(p.hctl, ":")
		return unit // hosts are numbered in the order in which they are found
	}
	return ""
}

// ataUnit is the port of a SATA disk, and where it is on that if there may be others. The folder of a
// port is numbered through all controllers in the order in which they are found, which may be another
// with each boot; its port_no is that at its own controller.
func (h *Host) ataUnit(folders []string, hctl string) string {
	address := strings.Split(hctl, ":")
	for _, folder := range folders {
		port := ""
		if strings.HasPrefix(folder, "ata") {
			port = h.text("sys/class/ata_port", folder, "port_no")
		}
		switch {
		case port == "":
		case len(address) == 4 && address[1] != "0": // behind a port multiplier
			return port + "." + address[1] + ".0"
		case len(address) == 4 && address[2] != "0": // the second on an IDE port
			return port + "." + address[2]
		default:
			return port
		}
	}
	return ""
}

// byPath is the place of a device, as udev's path_id names it: its PCI function, and what is
// behind it. It is "" for what is on no PCI function, or reached by a network.
func byPath(folders []string, unit string, p place) string {
	pci := ""
	for _, folder := range folders {
		if isPCIAddress(folder) {
			pci = "pci-" + folder // the last is the controller
		}
	}
	kind, known := map[string]string{"nvme": "-nvme-", "sata": "-ata-", "scsi": "-scsi-0:", "sas": "-scsi-0:", "virtio": "-scsi-0:"}[p.transport]
	switch {
	case pci == "" || !known:
		return ""
	case unit != "":
		return pci + kind + unit
	case p.transport == "sata":
		return "" // that of all disks of the controller would tell nothing
	}
	return pci
}

// pciAddressForm is domain:bus:slot.function; a domain behind a VMD controller has more than four digits.
var pciAddressForm = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

func isPCIAddress(s string) bool { return pciAddressForm.MatchString(s) }
