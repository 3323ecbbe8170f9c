package inventory

import (
	"net"
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
			Name: i.Name, IPAddresses: append([]string{}, i.IPs...),
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

// nics lists the ports of network cards, which are the interfaces with a device.
func (h *Host) nics() []model.ProbeNIC {
	list := []model.ProbeNIC{}
	for _, name := range h.names("sys/class/net") {
		if h.target("sys/class/net", name, "device") != "" {
			list = append(list, model.ProbeNIC{Name: name, MAC: h.text("sys/class/net", name, "address")})
		}
	}
	return list
}
