package addresses

import (
	"maps"
	"net/netip"
	"slices"
	"sync"

	"ingot/bootsvc/dhcp/lease"
	"ingot/model"
)

// Endpoints are the addresses that Endpoints in Git give network interfaces.
type Endpoints struct {
	Desired func() *model.Desired // nil while Git was not read

	mu   sync.Mutex // guards what is below
	of   *model.Desired
	macs map[netip.Addr]string // "" for an address that several interfaces have
}

// Holder returns the MAC address that Git gives an address.
func (e *Endpoints) Holder(a netip.Addr) (mac string, ok bool) {
	d := e.Desired()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.of != d {
		e.of, e.macs = d, endpointMACs(d)
	}
	mac = e.macs[a]
	return mac, mac != ""
}

func endpointMACs(d *model.Desired) map[netip.Addr]string {
	macs := make(map[netip.Addr]string)
	if d == nil {
		return macs
	}
	for _, e := range d.Endpoints {
		a, err := netip.ParseAddr(e.Spec.IP)
		if err != nil {
			continue
		}
		mac, taken := macs[a.Unmap()]
		if !taken {
			mac = e.Spec.MACAddress
		} else if mac != e.Spec.MACAddress {
			mac = ""
		}
		macs[a.Unmap()] = mac
	}
	return macs
}

// Reservations returns the addresses that DHCP keeps for the Endpoints in Git.
func Reservations(d *model.Desired) []lease.Reservation {
	var all []lease.Reservation
	for _, name := range slices.Sorted(maps.Keys(d.Endpoints)) { // of two with one address, always the same
		e := d.Endpoints[name]
		if ip, err := netip.ParseAddr(e.Spec.IP); err == nil {
			all = append(all, lease.Reservation{
				MAC: e.Spec.MACAddress, ClientID: e.ClientID(), Port: e.RelayPort(), Name: name, Address: ip, Options: e.DHCPOptions(),
			})
		}
	}
	return all
}
