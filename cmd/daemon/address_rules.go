package daemon

import (
	"net/netip"

	"ingot/bootsvc/neighbour"
	"ingot/bootsvc/netboot"
	"ingot/cmd/daemon/addresses"
	"ingot/model"
)

// addressRules say which client may use a server's boot ticket.
func (d *daemon) addressRules() netboot.AddressRules {
	return netboot.AddressRules{
		Rule: d.opts.AddressRule(), Of: d.opts.AddressRuleAt, Servers: d.registry.Boots,
		Evidence: netboot.Evidence{Leases: leases{d}, Endpoint: d.endpoints.Holder, Heard: d.heard, Neighbours: d.neighbours},
	}
}

// addressRulesAtOnce are the address rules for what must not wait for an answer of a link.
func (d *daemon) addressRulesAtOnce() netboot.AddressRules {
	rules := d.addressRules()
	if d.links != nil {
		rules.Neighbours = knownLinks{d.links}
	}
	return rules
}

// knownLinks are links as the kernel knows them.
type knownLinks struct{ *neighbour.Table }

// At implements netboot.Neighbours.
func (k knownLinks) At(addr netip.Addr) (neighbour.Neighbour, error) { return k.Known(addr) }

// reportRules are the address rules for reports. What a claim installed may report from
// network interfaces that are not known yet, bonds for example. Because it shows the
// ticket's token, it is refused only where its address is another server's.
func reportRules(b netboot.AddressRules, t *model.Ticket) netboot.AddressRules {
	if t != nil && t.Purpose == model.PurposeClaim {
		b.Rule, b.Of = netboot.BindNothing, nil
	}
	return b
}

// leases is the lease table for parts that are made before it. It is empty without DHCP.
type leases struct{ d *daemon }

// Holder implements netboot.Leases.
func (l leases) Holder(a netip.Addr) (mac string, ok bool) {
	if l.d.dhcp == nil {
		return "", false
	}
	return l.d.dhcp.Holder(a)
}

// isThere reports whether packets to an address leave at once: its link's neighbour table has somebody there, or
// they go by a router.
func (d *daemon) isThere(a netip.Addr) bool {
	if d.links == nil {
		return true
	}
	n, err := d.links.Known(a)
	return err != nil || !n.OnLink || n.MAC != ""
}

// openNeighbours begins to watch which machines are on the links of this one.
func (d *daemon) openNeighbours() {
	table, err := neighbour.Open()
	if err != nil {
		d.log.Warn("the neighbours on links cannot be read, so no machine is served there unless boot.bindTickets says otherwise", "err", err)
		d.neighbours = hiddenLinks{err}
		return
	}
	d.links, d.neighbours = table, table
}

// hiddenLinks are links whose neighbours cannot be read.
type hiddenLinks struct{ err error }

// At implements netboot.Neighbours.
func (h hiddenLinks) At(addr netip.Addr) (neighbour.Neighbour, error) {
	if addr.IsLoopback() {
		return neighbour.Neighbour{}, nil
	}
	return neighbour.Neighbour{}, h.err
}

// isBMC reports whether a BMC may have an address, so that no image is fetched from there.
func (d *daemon) isBMC(addr netip.Addr) bool {
	return d.opts.MayBeBMC(addr) || addresses.IsBMC(addr, d.desired(), d.registry.Observed())
}
