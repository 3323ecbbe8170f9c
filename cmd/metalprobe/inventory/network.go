package inventory

import (
	"net"
	"path/filepath"
	"strings"

	"ingot/model"
)

// maxAddresses bounds the addresses of one interface.
const maxAddresses = 64

// Interface is a network interface with its addresses.
type Interface struct {
	Name     string
	MAC      string // lower case, with colons
	IPs      []string
	Loopback bool
}

// Link is what a network port's driver says of it.
type Link struct {
	Firmware string
	Modes    []string // 10000baseT/Full
	Ports    []string // FIBRE
}

// interfaces lists this machine's interfaces.
func interfaces() ([]Interface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var list []Interface
	for _, i := range all[:min(len(all), maxEntries)] {
		list = append(list, Interface{
			Name: i.Name, MAC: i.HardwareAddr.String(), IPs: addresses(i), Loopback: i.Flags&net.FlagLoopback != 0,
		})
	}
	return list, nil
}

func addresses(i net.Interface) []string {
	all, err := i.Addrs()
	if err != nil {
		return nil // the interface went away meanwhile
	}
	var ips []string
	for _, a := range all[:min(len(all), maxAddresses)] {
		if n, ok := a.(*net.IPNet); ok {
			ips = append(ips, n.IP.String())
		}
	}
	return ips
}

// networkInterfaces lists the interfaces that may carry traffic. Like upstream's probe it
// leaves out loopback, tunnels and Docker's bridge.
func (h *Host) networkInterfaces() []model.ProbeNetworkInterface {
	all, err := h.Interfaces()
	if err != nil {
		h.Log.Warn("network interfaces cannot be listed", "err", err)
	}
	list := []model.ProbeNetworkInterface{}
	for _, i := range all {
		if i.Loopback || strings.HasPrefix(i.Name, "tun") || i.Name == "docker0" {
			continue
		}
		list = append(list, model.ProbeNetworkInterface{
			Name: i.Name, IPAddress: first(i.IPs...), IPAddresses: append([]string{}, i.IPs...),
			MACAddress: i.MAC, CarrierStatus: h.carrier(i.Name),
		})
	}
	return list
}

// carrier returns up or down. An interface that was not brought up, whose file cannot be
// read, is down as well.
func (h *Host) carrier(name string) string {
	if h.text("sys/class/net", name, "carrier") == "1" {
		return "up"
	}
	return "down"
}

// nics lists the ports of network cards: the interfaces with a device behind them.
func (h *Host) nics() []model.ProbeNIC {
	list := []model.ProbeNIC{}
	for _, name := range h.names("sys/class/net") {
		device := h.target("sys/class/net", name, "device")
		if device == "" {
			continue
		}
		link := h.Link(name)
		list = append(list, model.ProbeNIC{
			Name: name, MAC: h.text("sys/class/net", name, "address"), PCIAddress: pciAddress(device),
			Speed: h.speed(name), FirmwareVersion: link.Firmware,
			LinkModes: append([]string{}, link.Modes...), SupportedPorts: append([]string{}, link.Ports...),
		})
	}
	return list
}

// speed returns a link's speed as ethtool writes it, empty without a link.
func (h *Host) speed(name string) string {
	mbit := h.text("sys/class/net", name, "speed")
	if mbit == "" || mbit == "-1" || mbit == "0" {
		return ""
	}
	return mbit + "Mb/s"
}

// pciAddress returns the address of the nearest PCI device at or above a device's
// path: a virtio port is a child of its PCI device.
func pciAddress(path string) string {
	for ; path != "/" && path != "."; path = filepath.Dir(path) {
		if isPCIAddress(filepath.Base(path)) {
			return filepath.Base(path)
		}
	}
	return ""
}
