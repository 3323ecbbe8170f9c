package dhcp

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"ingot/model"
)

// How long leases last where the configuration does not say.
const (
	bmcLeaseTime  = 24 * time.Hour
	hostLeaseTime = time.Hour
)

// network is a Network that is served.
type network struct {
	Network // with defaults filled in, MAC prefixes in lower case
	subnets []*subnet
	relays  []netip.Prefix // that relays send from; nil = from anywhere
	server  *Server
	metrics networkMetrics

	sockets sockets
}

// subnet is a Subnet that is served.
type subnet struct {
	Subnet    // with its lease time filled in
	network   *network
	addresses *pool      // nil without range
	prefixes  *pool      // nil when none are delegated from one prefix
	others    *pool      // addresses outside the range
	otherBits *pool      // prefixes that are delegated from elsewhere; nil when none are delegated
	last      netip.Addr // of CIDR
}

// newNetwork returns the network of a configuration that Check found right.
func newNetwork(cfg Network) *network {
	n := &network{Network: cfg}
	if n.Mode == "" {
		n.Mode = ModeServer
	}
	n.MACAllow, n.MACDeny = lowerAll(cfg.MACAllow), lowerAll(cfg.MACDeny)
	for _, r := range cfg.Relays {
		p, _ := parseRelay(r) // Check has seen it
		n.relays = append(n.relays, p)
	}
	for _, s := range cfg.Subnets {
		n.subnets = append(n.subnets, newSubnet(n, s))
	}
	return n
}

// newSubnet returns the subnet of a configuration that Check found right.
func newSubnet(n *network, cfg Subnet) *subnet {
	s := &subnet{Subnet: cfg, network: n, last: lastOf(cfg.CIDR)}
	if s.LeaseTime == 0 {
		s.LeaseTime = hostLeaseTime
		if n.Role == model.RoleBMC {
			s.LeaseTime = bmcLeaseTime
		}
	}
	s.others = newOtherPool(s)
	if !s.Range.IsZero() {
		s.addresses = newPool(s, s.Range.First, s.Range.Last, 0, 0)
	}
	if bits := s.Delegate.Bits; bits > 0 {
		s.otherBits = newOtherPool(s)
		s.otherBits.bits = bits
		if from := s.Delegate.From; from.IsValid() {
			s.prefixes = newPool(s, from.Masked().Addr(), lastOf(from), bits, 128-bits)
		}
	}
	return s
}

// lastOf returns the last address of a prefix.
func lastOf(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for i := p.Bits(); i < 8*len(b); i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// lowerAll returns all in lower case.
func lowerAll(all []string) []string {
	lower := make([]string, len(all))
	for i, s := range all {
		lower[i] = strings.ToLower(s)
	}
	return lower
}

// link returns the subnets that share a link with s: those of our own link do,
// others lie behind a relay each.
func (s *subnet) link() []*subnet {
	if own := s.network.own(s.CIDR.Addr().Is6()); slices.Contains(own, s) {
		return own
	}
	return []*subnet{s}
}

// own returns the subnets of a family that lie on our own link: those that the
// interface has an address in, or else the first, for it may have only a link-local
// one.
func (n *network) own(v6 bool) []*subnet {
	var first, own []*subnet
	for _, s := range n.subnets {
		switch {
		case s.CIDR.Addr().Is6() != v6:
		case slices.ContainsFunc(n.link().of(v6), func(p netip.Prefix) bool { return s.CIDR.Contains(p.Addr()) }):
			own = append(own, s)
		case first == nil:
			first = []*subnet{s}
		}
	}
	if len(own) == 0 {
		return first
	}
	return own
}

// pool returns where addresses, or prefixes when bits is not 0, are chosen from;
// nil when there are none to choose.
func (s *subnet) pool(bits int) *pool {
	if bits > 0 {
		return s.prefixes
	}
	return s.addresses
}

// poolOf returns the pool that a, of that many bits, belongs to.
func (s *subnet) poolOf(a netip.Addr, bits int) *pool {
	switch p := s.pool(bits); {
	case p != nil && p.bits == bits && p.contains(a):
		return p
	case bits > 0 && s.otherBits != nil:
		return s.otherBits
	}
	return s.others
}

// pools returns all pools of s.
func (s *subnet) pools() []*pool {
	all := []*pool{s.others}
	for _, p := range []*pool{s.addresses, s.prefixes, s.otherBits} {
		if p != nil {
			all = append(all, p)
		}
	}
	return all
}

// special reports whether a is an address of s that no client can have.
func (s *subnet) special(a netip.Addr) bool {
	if a == s.Gateway {
		return true
	}
	if s.CIDR.Bits() >= a.BitLen()-1 { // RFC 3021, RFC 6164: both ends are addresses
		return false
	}
	return a == s.CIDR.Masked().Addr() || a.Is4() && a == s.last
}

// subnetOf returns the subnet that an address, or a prefix when bits is not 0,
// belongs to.
func (n *network) subnetOf(a netip.Addr, bits int) (*subnet, bool) {
	for _, s := range n.subnets {
		if bits == 0 && s.CIDR.Contains(a) || bits > 0 && bits == s.Delegate.Bits && (s.prefixes == nil || s.prefixes.contains(a)) {
			return s, true
		}
	}
	return nil, false
}

// admits reports whether clients with a MAC address are served (macAllow, macDeny).
func (n *network) admits(mac string) bool {
	begins := func(prefix string) bool { return strings.HasPrefix(mac, prefix) }
	return (len(n.MACAllow) == 0 || slices.ContainsFunc(n.MACAllow, begins)) && !slices.ContainsFunc(n.MACDeny, begins)
}

// trusts reports whether a relay may send from an address (relays).
func (n *network) trusts(from netip.Addr) bool {
	from = from.WithZone("") // prefixes have none
	return len(n.relays) == 0 || slices.ContainsFunc(n.relays, func(p netip.Prefix) bool { return p.Contains(from) })
}
