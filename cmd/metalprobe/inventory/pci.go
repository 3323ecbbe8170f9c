package inventory

import (
	"bufio"
	"bytes"
	"regexp"
	"strings"

	"ingot/model"
)

// pciAddressForm is domain:bus:slot.function; a domain behind a VMD controller
// has more than four digits.
var pciAddressForm = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

func isPCIAddress(s string) bool { return pciAddressForm.MatchString(s) }

// pciDatabases are where distributions keep the names of PCI devices.
var pciDatabases = []string{"usr/share/misc/pci.ids", "usr/share/hwdata/pci.ids", "usr/share/pci.ids"}

// pciDevices lists the PCI devices, with names when the image has pci.ids.
func (h *Host) pciDevices() []model.ProbePCIDevice {
	list := []model.ProbePCIDevice{}
	for _, address := range h.names("sys/bus/pci/devices") {
		if !isPCIAddress(address) {
			continue
		}
		id := func(name string) string {
			return strings.TrimPrefix(h.text("sys/bus/pci/devices", address, name), "0x")
		}
		list = append(list, model.ProbePCIDevice{
			Address: address, VendorID: id("vendor"), ProductID: id("device"),
			NUMANodeID: h.numaNode("sys/bus/pci/devices", address),
		})
	}
	h.namePCI(list)
	return list
}

func (h *Host) namePCI(list []model.ProbePCIDevice) {
	for _, path := range pciDatabases {
		if db := h.read(maxFile, path); db != nil {
			names := pciNames(db, list)
			for i := range list {
				list[i].Vendor = names[list[i].VendorID]
				list[i].Product = names[list[i].VendorID+":"+list[i].ProductID]
			}
			return
		}
	}
}

// pciNames looks up the names of the listed devices' vendors ("8086") and products
// ("8086:1572") in a pci.ids file: a vendor's line starts with its number, its
// products' lines with a tab, and subsystems' with two.
func pciNames(db []byte, list []model.ProbePCIDevice) map[string]string {
	wanted := make(map[string]bool)
	for _, d := range list {
		wanted[d.VendorID], wanted[d.VendorID+":"+d.ProductID] = true, true
	}
	names := make(map[string]string)
	vendor := ""
	for lines := bufio.NewScanner(bytes.NewReader(db)); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, "\t\t") {
			continue
		}
		product, isProduct := strings.CutPrefix(line, "\t")
		number, name, ok := strings.Cut(product, "  ")
		key := vendor + ":" + number
		if !isProduct {
			vendor, key = number, number
		}
		if ok && wanted[key] {
			names[key] = clean(name)
		}
	}
	return names
}
