package lease

import (
	"net/netip"
	"slices"
	"time"

	"ingot/model"
)

// How long leases last where the configuration does not say, and at most.
const (
	bmcTime  = 24 * time.Hour
	hostTime = time.Hour
	MaxTime  = 30 * 24 * time.Hour
)

// Delegation is what prefixes are delegated (RFC 8415 §6.3).
type Delegation struct {
	From netip.Prefix `json:"from"` // with derive: onmetal empty: the prefix is the link address's own
	Bits int          `json:"bits"` // length of a delegated prefix; 0 = none are delegated
}

// Network is a network that leases are given on.
type Network struct {
	Name    string
	Role    model.NetworkRole
	Subnets []*Subnet

	ours func(v6 bool) []netip.Prefix
}

// Subnet is one subnet of a Network. Its exported fields are what NewNetwork was given.
type Subnet struct {
	CIDR      netip.Prefix
	Ranges    []Range       // for clients without reservation; none = reservations only
	Exclude   []Range       // what of Ranges is given to nobody but by a reservation
	Gateway   netip.Addr    // is given to nobody
	LeaseTime time.Duration // when 0 NewNetwork fills in 24 h for BMCs and 1 h for servers
	Delegate  Delegation
	Index     int // of it in the Subnets of its network; NewNetwork counts

	network   *Network
	addresses *pool      // nil without range
	prefixes  *pool      // nil when none are delegated from one prefix
	others    *pool      // addresses outside the range
	otherBits *pool      // prefixes that are delegated from elsewhere; nil when none are delegated
	last      netip.Addr // of CIDR
}

// NewNetwork returns the network of a configuration that was found right. ours returns
// the addresses of a family that this machine has on the network's own link.
func NewNetwork(name string, role model.NetworkRole, subnets []Subnet, ours func(v6 bool) []netip.Prefix) *Network {
	n := &Network{Name: name, Role: role, ours: ours}
	for i, s := range subnets {
		s.Index = i
		n.Subnets = append(n.Subnets, n.subnet(s))
	}
	return n
}

func (n *Network) subnet(s Subnet) *Subnet {
	s.network, s.last = n, Last(s.CIDR)
	if s.LeaseTime == 0 {
		s.LeaseTime = hostTime
		if n.Role == model.RoleBMC {
			s.LeaseTime = bmcTime
		}
	}
	s.others = newOtherPool(&s)
	var blocks []block
	for _, r := range Without(s.Ranges, s.Exclude) {
		blocks = append(blocks, blockOf(r))
	}
	if len(blocks) > 0 {
		s.addresses = newPool(&s, blocks, 0, 0)
	}
	if bits := s.Delegate.Bits; bits > 0 {
		s.otherBits = newOtherPool(&s)
		s.otherBits.bits = bits
		if from := s.Delegate.From; from.IsValid() {
			s.prefixes = newPool(&s, []block{blockOf(Range{from.Masked().Addr(), Last(from)})}, bits, 128-bits)
		}
	}
	return &s
}

// Last returns the last address of a prefix.
func Last(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for i := p.Bits(); i < 8*len(b); i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// link returns the subnets that share a link with s: those of our own link do,
// others lie behind a relay each.
func (s *Subnet) link() []*Subnet {
	if own := s.network.OnOurLink(s.CIDR.Addr().Is6()); slices.Contains(own, s) {
		return own
	}
	return []*Subnet{s}
}

// OnOurLink returns the subnets of a family that lie on our own link: those that the
// interface has an address in, or else the first, for it may have only a link-local
// one.
func (n *Network) OnOurLink(v6 bool) []*Subnet {
	var first, own []*Subnet
	for _, s := range n.Subnets {
		switch {
		case s.CIDR.Addr().Is6() != v6:
		case slices.ContainsFunc(n.ours(v6), func(p netip.Prefix) bool { return s.CIDR.Contains(p.Addr()) }):
			own = append(own, s)
		case first == nil:
			first = []*Subnet{s}
		}
	}
	if len(own) == 0 {
		return first
	}
	return own
}

// SubnetOf returns the subnet that an address, or a prefix when bits is not 0,
// belongs to.
func (n *Network) SubnetOf(a netip.Addr, bits int) (*Subnet, bool) {
	for _, s := range n.Subnets {
		if bits == 0 && s.CIDR.Contains(a) || bits > 0 && bits == s.Delegate.Bits && (s.prefixes == nil || s.prefixes.contains(a)) {
			return s, true
		}
	}
	return nil, false
}

// pool returns where addresses, or prefixes when bits is not 0, are chosen from;
// nil when there are none to choose.
func (s *Subnet) pool(bits int) *pool {
	if bits > 0 {
		return s.prefixes
	}
	return s.addresses
}

// poolOf returns the pool that a, of that many bits, belongs to.
func (s *Subnet) poolOf(a netip.Addr, bits int) *pool {
	switch p := s.pool(bits); {
	case p != nil && p.bits == bits && p.contains(a):
		return p
	case bits > 0 && s.otherBits != nil:
		return s.otherBits
	}
	return s.others
}

func (s *Subnet) pools() []*pool {
	all := []*pool{s.others}
	for _, p := range []*pool{s.addresses, s.prefixes, s.otherBits} {
		if p != nil {
			all = append(all, p)
		}
	}
	return all
}

// special reports whether a is an address of s that no client can have.
func (s *Subnet) special(a netip.Addr) bool {
	if a == s.Gateway {
		return true
	}
	if s.CIDR.Bits() >= a.BitLen()-1 { // RFC 3021, RFC 6164: both ends are addresses
		return false
	}
	return a == s.CIDR.Masked().Addr() || a.Is4() && a == s.last
}

// count returns how many leases of each kind are live on n. The table's lock guards it.
func (n *Network) count(now time.Time) (byKind [kinds]int) {
	for _, s := range n.Subnets {
		for _, p := range s.pools() {
			for _, e := range p.ending {
				if e.live(now) && !e.declined {
					byKind[kindOf(e.address, p.bits)]++
				}
			}
		}
	}
	return byKind
}
