package daemon

import (
	"net/netip"

	"ingot/bootsvc/neighbour"
	"ingot/bootsvc/netboot"
	"ingot/cmd/daemon/addresses"
	"ingot/model"
)

// bindings say who may use the servers' boot tickets.
func (d *daemon) bindings() netboot.AddressRules {
	return netboot.AddressRules{
		Rule: d.opts.AddressRule(), Of: d.opts.AddressRuleAt, Servers: d.registry,
		Evidence: netboot.Evidence{Leases: leases{d}, Endpoint: d.endpoints.Holder, Heard: d.heard, Neighbours: d.neighbours},
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

// isBMC reports whether a BMC may have an address, so that no image is fetched from there.
func (d *daemon) isBMC(addr netip.Addr) bool {
	return d.opts.MayBeBMC(addr) || addresses.IsBMC(addr, d.source.Desired(), d.registry.Observed())
}
