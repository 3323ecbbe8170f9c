package daemon

import (
	"net/netip"

	"ingot/model"
)

// isBMCs reports whether an address belongs to BMCs, so that no image is looked for
// there.
func (d *daemon) isBMCs(addr netip.Addr) bool {
	return d.opts.MayBeBMC(addr) || atBMC(addr, d.source.Desired(), d.registry.Observed())
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
