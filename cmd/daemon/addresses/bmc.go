package addresses

import (
	"net/netip"

	"ingot/model"
)

// IsBMC reports whether a BMC is known to have an address, by manifests or by records.
// Either may be nil.
func IsBMC(addr netip.Addr, d *model.Desired, o *model.Observed) bool {
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

// bmcIP returns the address that manifests give a BMC, if any.
func bmcIP(d *model.Desired, b *model.BMC) string {
	switch ref := b.Spec.EndpointRef; {
	case b.Spec.Access != nil:
		return b.Spec.Access.IP
	case ref != nil && d.Endpoints[ref.Name] != nil:
		return d.Endpoints[ref.Name].Spec.IP
	}
	return ""
}
