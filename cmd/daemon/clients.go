package daemon

import (
	"net/netip"

	"ingot/bootsvc/conversation"
	"ingot/bootsvc/dhcp"
	"ingot/bootsvc/neighbour"
	"ingot/bootsvc/netboot"
	"ingot/cmd/daemon/addresses"
	"ingot/model"
)

// clients knows which machine has an address, and records what machines ask.
type clients struct {
	*core
	dhcp       *dhcp.Server // nil = off
	endpoints  *addresses.Endpoints
	heard      *netboot.Heard // by dhcp
	cards      *conversation.Log
	links      *neighbour.Table   // nil = they cannot be read
	neighbours netboot.Neighbours // links, or why not
}

// addressRules say which client may use a server's boot ticket.
func (c *clients) addressRules() netboot.AddressRules {
	return netboot.AddressRules{
		Rule: c.opts.AddressRule(), Of: c.opts.AddressRuleAt, Servers: c.registry.Boots,
		Evidence: netboot.Evidence{Leases: c, Endpoint: c.endpoints.Holder, Heard: c.heard, Neighbours: c.neighbours},
	}
}

// addressRulesAtOnce are the address rules for what must not wait for an answer of a link.
func (c *clients) addressRulesAtOnce() netboot.AddressRules {
	rules := c.addressRules()
	if c.links != nil {
		rules.Neighbours = knownLinks{c.links}
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
func reportRules(b netboot.AddressRules, t *model.Ticket, token bool) netboot.AddressRules {
	if token && t != nil && t.Purpose == model.PurposeClaim {
		b.Rule, b.Of = netboot.BindNothing, nil
	}
	return b
}

// Holder implements netboot.Leases: the lease table is empty without DHCP.
func (c *clients) Holder(a netip.Addr) (mac string, ok bool) {
	if c.dhcp == nil {
		return "", false
	}
	return c.dhcp.Holder(a)
}

// isThere reports whether packets to an address leave at once: its link's neighbour table has somebody there, or
// they go by a router.
func (c *clients) isThere(a netip.Addr) bool {
	if c.links == nil {
		return true
	}
	n, err := c.links.Known(a)
	return err != nil || !n.OnLink || n.MAC != ""
}

// openNeighbours begins to watch which machines are on the links of this one.
func (c *clients) openNeighbours() {
	table, err := neighbour.Open()
	if err != nil {
		c.log.Warn("the neighbours on links cannot be read, so no machine is served there unless boot.bindTickets says otherwise", "err", err)
		c.neighbours = hiddenLinks{err}
		return
	}
	c.links, c.neighbours = table, table
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
