package dhcp

import (
	"net/netip"
	"time"

	"ingot/bootsvc/dhcp/lease"
	"ingot/model"
)

// Mode is how a network is served.
type Mode string

// The modes.
const (
	ModeServer Mode = "server" // leases and boot files
	ModeProxy  Mode = "proxy"  // boot files only, beside a DHCP server of somebody else
	ModeOff    Mode = "off"
)

// Network is one network that DHCP serves, as it stands in the configuration.
type Network struct {
	Name string `json:"name"` // letters, digits and dashes; in names of Endpoints, metrics, logs
	// Interface is the network interface that clients and relays are heard on.
	Interface string `json:"interface"`
	// Listen is an address of this machine that relays send to, instead of
	// Interface: 192.0.2.1, 192.0.2.1:6767 or [fd00::1]. The port is 67, or 547.
	Listen string            `json:"listen"`
	Role   model.NetworkRole `json:"role"`
	Mode   Mode              `json:"mode"` // server when empty
	// BootURL is boot.url as machines on this network reach it; boot.url when empty.
	BootURL string   `json:"bootURL"`
	Subnets []Subnet `json:"subnets"`
	// BindTickets is boot.bindTickets for clients that ask from the subnets, or by the link-local
	// addresses of the interface; boot.bindTickets when empty.
	BindTickets string `json:"bindTickets"`
	// RapidCommit leases an address at once to DHCPv4 clients that ask for that (RFC
	// 4039). Of several servers on a link at most one may do so. DHCPv6 clients always may.
	RapidCommit bool `json:"rapidCommit"`
	// Probe has the link asked whether somebody uses an address before it is offered; it is when nil.
	Probe *bool `json:"probe"`
	// Options are for clients of all its IPv4 subnets.
	Options ClientOptions `json:"options"`
	// MACAllow and MACDeny are beginnings of MAC addresses: "a0:36:9f". A MAC address
	// is served if MACAllow is empty or names it, and MACDeny does not.
	MACAllow []string `json:"macAllow"`
	MACDeny  []string `json:"macDeny"`
	// Relays are the addresses that packets of relays may come from, or prefixes of
	// them: 192.0.2.1, fd00::1 or 10.0.0.0/8. When empty a relay is known by naming a
	// link in Subnets alone, which any device that we hear can do too.
	Relays []string `json:"relays"`
}

// Serves reports whether clients on n are answered at all.
func (n Network) Serves() bool { return n.Mode != ModeOff }

// Leases reports whether clients on n are given addresses.
func (n Network) Leases() bool { return n.Mode == ModeServer || n.Mode == "" }

// Boots reports whether clients on n may be told what to boot: only servers are.
func (n Network) Boots() bool { return n.Serves() && n.Role == model.RoleHost }

// Subnet is one subnet of a Network.
type Subnet struct {
	CIDR netip.Prefix `json:"cidr"`
	// Ranges are addresses for clients without reservation; none = reservations only.
	Ranges []lease.Range `json:"ranges"`
	// Exclude are addresses of Ranges that only a reservation gives.
	Exclude []lease.Range `json:"exclude"`
	Gateway netip.Addr    `json:"gateway"`
	DNS     []netip.Addr  `json:"dns"`
	NTP     []netip.Addr  `json:"ntp"`
	Domain  string        `json:"domain"`
	// LeaseTime is 24h on a bmc network and 1h on a host network when 0.
	LeaseTime time.Duration `json:"leaseTime"`
	// Derive makes addresses (IPv6 only) from the relay's link address, which must lie
	// in CIDR: "stateless" is its first 80 bits and the MAC address, "onmetal" the
	// link address plus one. There are no Ranges then.
	Derive Derivation `json:"derive"`
	// Delegate is where prefixes for clients come from (IPv6 only).
	Delegate lease.Delegation `json:"delegate"`
	// Options are for clients of the subnet (IPv4 only), before those of the network.
	Options ClientOptions `json:"options"`
}

// Derivation is how an IPv6 address is made of what a relay says.
type Derivation string

// The derivations, in FeDHCP's words.
const (
	DeriveNone      Derivation = ""
	DeriveStateless Derivation = "stateless"
	DeriveOnmetal   Derivation = "onmetal"
)
