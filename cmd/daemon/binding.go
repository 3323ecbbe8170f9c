package daemon

import (
	"net/netip"
	"sync"

	"ingot/bootsvc/neighbour"
	"ingot/bootsvc/netboot"
	"ingot/model"
)

// bindings say who may use the servers' boot tickets.
func (d *daemon) bindings() netboot.AddressRules {
	return netboot.AddressRules{
		Rule: d.opts.AddressRule(), Of: d.opts.AddressRuleAt, Servers: d.registry,
		Evidence: netboot.Evidence{Leases: leases{d}, Endpoint: d.endpoints.holder, Heard: d.heard, Neighbours: d.neighbours},
	}
}

// reportBindings are those by which reports are taken. What a claim installed may have
// network interfaces that nobody knows by the time it reports, bonds for example. Since it
// shows the ticket's token, it is refused only as another server.
func reportBindings(b netboot.AddressRules, t *model.Ticket, token bool) netboot.AddressRules {
	if token && t != nil && t.Purpose == model.PurposeClaim {
		b.Rule, b.Of = netboot.BindNothing, nil
	}
	return b
}

// leases is the lease table for those who are made before it; without DHCP it is
// empty.
type leases struct{ d *daemon }

// Holder implements netboot.Leases.
func (l leases) Holder(a netip.Addr) (mac string, ok bool) {
	if l.d.dhcp == nil {
		return "", false
	}
	return l.d.dhcp.Holder(a)
}

// endpoints are the addresses that Endpoints in Git give network interfaces.
type endpoints struct {
	desired func() *model.Desired

	mu   sync.Mutex // guards what is below
	of   *model.Desired
	macs map[netip.Addr]string // "" for one that two are given
}

// holder returns the MAC address that Git gives an address.
func (e *endpoints) holder(a netip.Addr) (mac string, ok bool) {
	d := e.desired()
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

// openNeighbours has the links asked who is there, from now on.
func (d *daemon) openNeighbours() {
	table, err := neighbour.Open()
	if err != nil {
		d.log.Warn("who is on a link cannot be seen, so no machine is served there unless boot.bindTickets says otherwise", "err", err)
		d.neighbours = unseen{err}
		return
	}
	d.links, d.neighbours = table, table
}

// unseen are links on which nobody can be seen.
type unseen struct{ err error }

// At implements netboot.Neighbours.
func (u unseen) At(addr netip.Addr) (neighbour.Neighbour, error) {
	if addr.IsLoopback() {
		return neighbour.Neighbour{}, nil
	}
	return neighbour.Neighbour{}, u.err
}
