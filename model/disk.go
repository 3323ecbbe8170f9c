package model

import (
	"slices"
	"strings"
)

// Disk is a disk that a server is known to have, or to have had: what a wipe of it has
// to account for. All texts are bounded.
type Disk struct {
	Name   string `json:"name,omitempty"` // sda, or what the BMC calls it
	Serial string `json:"serial,omitempty"`
	Model  string `json:"model,omitempty"`
	// IDs are its world-wide names, see WorldWideName.
	IDs   []string `json:"ids,omitempty"`
	Bytes uint64   `json:"bytes,omitempty"` // 0 = not known
	// FromBMC is set for a drive that the BMC shows: the system may see volumes of a
	// RAID controller instead of it. Volumes are those that it is part of.
	FromBMC bool         `json:"fromBMC,omitempty"`
	Volumes []DiskVolume `json:"volumes,omitempty"`
	// Bay is where the BMC shows the drive. ReplacedBy is the serial number of the drive
	// that a ServerMaintenance left in its place; empty = it was not replaced.
	Bay        string `json:"bay,omitempty"`
	ReplacedBy string `json:"replacedBy,omitempty"`
}

// DiskVolume is a volume of a RAID controller, which the system sees as a disk.
type DiskVolume struct {
	Name  string   `json:"name,omitempty"`
	IDs   []string `json:"ids,omitempty"`
	Bytes uint64   `json:"bytes,omitempty"`
}

// Nameless reports whether the disk can be told from no other.
func (d Disk) Nameless() bool { return serialOf(d.Serial) == "" && len(d.IDs) == 0 }

// Same reports whether two readings are of one disk: they share a world-wide name, or
// the serial number, of which SAS disks add that of their board in one of them. What one
// teller gives two world-wide names are two, whatever their serial numbers: logical
// drives of a RAID controller and namespaces of an NVMe disk have those of what they are
// on. What a BMC and a system call the ports of a SAS disk differs in the last digit.
func (d Disk) Same(o Disk) bool {
	if slices.ContainsFunc(d.IDs, func(id string) bool { return slices.Contains(o.IDs, id) }) {
		return true
	}
	a, b, tellers := serialOf(d.Serial), serialOf(o.Serial), d.FromBMC != o.FromBMC
	switch {
	case !tellers && len(d.IDs) > 0 && len(o.IDs) > 0:
		return false
	case a == "" || b == "":
		return tellers && slices.ContainsFunc(d.IDs, func(id string) bool {
			return slices.ContainsFunc(o.IDs, func(other string) bool { return samePorts(id, other) })
		})
	case a == b:
		return true
	}
	return min(len(a), len(b)) >= minSerial && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a)) && sameModel(d.Model, o.Model)
}

// minSerial is how much of a serial number tells a disk from others.
const minSerial = 8

// serialOf is a serial number as it is compared: readers of it differ in case, blanks
// and dashes.
func serialOf(serial string) string {
	if slices.Contains(placeholders, strings.ToLower(strings.Trim(serial, " 0"))) {
		return ""
	}
	plain := func(c byte) bool { return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' }
	for i := range len(serial) {
		if !plain(serial[i]) {
			return strings.ToUpper(unbroken.Replace(serial))
		}
	}
	return serial // as nearly all are
}

// placeholders are what BMCs have for a serial number that they do not know.
var placeholders = []string{"", "n/a", "na", "none", "unknown", "null", "to be filled by o.e.m.", "not available", "not specified"}

var unbroken = strings.NewReplacer(" ", "", "-", "", "\t", "")

// sameModel reports whether two names of a model can be of one: the kernel has the
// vendor in front of it, or cuts it off.
func sameModel(a, b string) bool {
	a, b = serialOf(a), serialOf(b)
	return a == "" || b == "" || strings.Contains(a, b) || strings.Contains(b, a)
}

// minWorldWide is how many digits a world-wide name has at least: those of 64 bits.
const minWorldWide = 16

// WorldWideName returns the hexadecimal digits of a disk's world-wide name, as Linux
// (naa.…, eui.…, 0x…) or Redfish (DSP0268, Identifier.DurableName) has it; "" for what
// is none.
func WorldWideName(text string) string {
	name := strings.ToLower(strings.TrimSpace(text))
	for _, prefix := range []string{"naa.", "eui.", "wwn-", "nguid.", "uuid.", "0x"} {
		name = strings.TrimPrefix(name, prefix)
	}
	name = strings.NewReplacer("-", "", ":", "", " ", "").Replace(name)
	hex := !strings.ContainsFunc(name, func(r rune) bool { return !strings.ContainsRune("0123456789abcdef", r) })
	if !hex || len(name) < minWorldWide || len(name) > 32 || strings.Trim(name, "0") == "" {
		return ""
	}
	return name
}

// samePorts reports whether world-wide names are of ports of one disk: in an NAA name of
// type 5 (SPC-4 §7.8.6.6.3) the last digit tells the ports of a SAS disk apart.
func samePorts(a, b string) bool {
	const last = minWorldWide - 1
	return len(a) == minWorldWide && len(b) == minWorldWide && a[0] == '5' && a[:last] == b[:last]
}

// virtualMedia are parts of the names that BMCs give media that they lend to a server.
var virtualMedia = []string{
	"virtual cd", "virtual floppy", "virtual hdisk", "virtual media", "virtual usb", "virtual disc", "virtual sd",
	"file-stor gadget", "file-cd gadget", "lcdrive", "secupd", "oemdrv",
}

// VirtualMedia reports whether a disk is a medium that the BMC lends to the server, by
// what the disk calls itself.
func VirtualMedia(vendor, name string) bool {
	text := strings.ToLower(vendor + " " + name)
	return slices.ContainsFunc(virtualMedia, func(part string) bool { return strings.Contains(text, part) })
}
