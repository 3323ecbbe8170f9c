package daemon

import (
	"net/netip"
	"slices"

	"ingot/bootsvc/dhcp"
	"ingot/model"
)

// isBMCs reports whether an address belongs to BMCs, so that no image is looked for
// there.
func (d *daemon) isBMCs(addr netip.Addr) bool {
	return d.opts.bmcsMayBe(addr) || atBMC(addr, d.source.Desired(), d.registry.Observed())
}

// bmcsMayBe reports whether an address is in one of the networks of BMCs. One that has
// all addresses says nothing of where they are.
func (o *Options) bmcsMayBe(addr netip.Addr) bool {
	network, named := o.BMC.Networks.Of(addr)
	return named && network.Prefix.Bits() > 0 || slices.ContainsFunc(o.DHCP, func(n dhcp.Network) bool {
		return n.Role == model.RoleBMC && slices.ContainsFunc(n.Subnets, func(s dhcp.Subnet) bool { return s.CIDR.Contains(addr) })
	})
}

// atBMC reports whether a BMC is known to be at an address. Either argument may be nil.
func atBMC(addr netip.Addr, d *model.Desired, o *model.Observed) bool {
	if d != nil {
		for _, b := range d.BMCs {
			if at, err := netip.ParseAddr(bmcIP(d, b)); err == nil && at.Unmap() == addr {
				return true
			}
		}
	}
	if o != nil {
		for _, rec := range o.BMCs {
			if at, err := netip.ParseAddrPort(rec.Address); err == nil && at.Addr().Unmap() == addr {
				return true
			}
		}
	}
	return false
}

// bmcIP is the address that manifests give a BMC, if any.
func bmcIP(d *model.Desired, b *model.BMC) string {
	switch ref := b.Spec.EndpointRef; {
	case b.Spec.Access != nil:
		return b.Spec.Access.IP
	case ref != nil && d.Endpoints[ref.Name] != nil:
		return d.Endpoints[ref.Name].Spec.IP
	}
	return ""
}
