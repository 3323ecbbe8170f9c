package dhcp

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"ingot/bootsvc/dhcp/lease"
	"ingot/model"
)

func TestCheckAccepts(t *testing.T) {
	for name, n := range map[string]Network{
		"a network of servers": hosts(),
		"a proxy":              {Name: "p", Interface: "eth1", Role: model.RoleHost, Mode: ModeProxy},
		"relays only": {
			Name: "r", Listen: "127.0.0.1:6767", Role: model.RoleBMC, Subnets: []Subnet{{CIDR: netip.MustParsePrefix("127.0.0.0/8")}},
		},
		"derived addresses": {Name: "d", Listen: "[fd00::1]:5547", Role: model.RoleBMC, Subnets: []Subnet{{
			CIDR: netip.MustParsePrefix("fd00::/56"), Derive: DeriveOnmetal, Delegate: lease.Delegation{Bits: 80},
		}}},
		"off, whatever it says": {Name: "o", Interface: "eth1", Role: model.RoleHost, Mode: ModeOff},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Check([]Network{n}); len(got) > 0 {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestCheckRefuses(t *testing.T) {
	v6 := func(s *Subnet) {
		*s = Subnet{CIDR: netip.MustParsePrefix("fd00::/64")}
	}
	second := func(change func(n *Network)) func([]Network) []Network {
		return func(all []Network) []Network {
			n := hosts()
			n.Name, n.Interface = "second", "eth1"
			n.Subnets = []Subnet{{CIDR: netip.MustParsePrefix("198.51.100.0/24")}}
			change(&n)
			return append(all, n)
		}
	}
	network := func(change func(n *Network)) func([]Network) []Network {
		return func(all []Network) []Network { change(&all[0]); return all }
	}
	subnet := func(change func(s *Subnet)) func([]Network) []Network {
		return func(all []Network) []Network { change(&all[0].Subnets[0]); return all }
	}
	for name, tc := range map[string]struct {
		change     func([]Network) []Network
		path, says string
	}{
		"a name with a space":          {network(func(n *Network) { n.Name = "rack 4" }), "[0].name", "letters, digits and dashes"},
		"a name twice":                 {second(func(n *Network) { n.Name = "hosts" }), "[1].name", "[0] already"},
		"neither interface nor listen": {network(func(n *Network) { n.Interface = "" }), "[0]", "neither"},
		"both interface and listen":    {network(func(n *Network) { n.Listen = "192.0.2.2:6767" }), "[0]", "both"},
		"an interface twice":           {second(func(n *Network) { n.Interface = "eth0" }), "[1].interface", "into one network"},
		"an interface name too long":   {network(func(n *Network) { n.Interface = "enp0s31f6.4095.7" }), "[0].interface", "1 to 15"},
		"listen on no address":         {network(func(n *Network) { n.Interface, n.Listen = "", "eth0" }), "[0].listen", "is no address"},
		"listen on all addresses": {
			change: network(func(n *Network) { n.Interface, n.Listen = "", "0.0.0.0:67" }), path: "[0].listen", says: "stands for all",
		},
		"listen in the other family": {
			change: network(func(n *Network) { n.Interface, n.Listen = "", "fd00::1" }), path: "[0].subnets[0].cidr", says: "other family",
		},
		"listen on 67 beside an interface": {
			change: second(func(n *Network) { n.Interface, n.Listen = "", "198.51.100.1" }), path: "[1].listen",
			says: "beside networks with an interface",
		},
		"no role":                  {network(func(n *Network) { n.Role = "" }), "[0].role", "bmc or host"},
		"an unknown mode":          {network(func(n *Network) { n.Mode = "relay" }), "[0].mode", "server, proxy or off"},
		"a server without subnets": {network(func(n *Network) { n.Subnets = nil }), "[0].subnets", "at least one subnet"},
		"a proxy for BMCs": {
			change: network(func(n *Network) { *n = Network{Name: "p", Interface: "eth0", Role: model.RoleBMC, Mode: ModeProxy} }),
			path:   "[0].mode", says: "role host only",
		},
		"a proxy with a range": {network(func(n *Network) { n.Mode = ModeProxy }), "[0].subnets[0].ranges", "leave the range out"},
		"a MAC prefix without colons": {
			change: network(func(n *Network) { n.MACAllow = []string{"a0:36:9f", "a0369f"} }), path: "[0].macAllow[1]", says: "with colons",
		},
		"a relay by name": {
			change: network(func(n *Network) { n.Relays = []string{"192.0.2.1", "fd00::/64", "relay-1"} }), path: "[0].relays[2]",
			says: "the address of a relay",
		},
		"a relay prefix with bits behind": {
			change: network(func(n *Network) { n.Relays = []string{"10.0.0.1/8"} }), path: "[0].relays[0]", says: "write 10.0.0.0/8",
		},
		"all addresses as a relay": {
			change: network(func(n *Network) { n.Relays = []string{"0.0.0.0"} }), path: "[0].relays[0]", says: "the address of a relay",
		},
		"a boot URL without scheme": {network(func(n *Network) { n.BootURL = "boot.example:8082" }), "[0].bootURL", "absolute"},
		"a boot URL with a query":   {network(func(n *Network) { n.BootURL = "http://boot.example?a=b" }), "[0].bootURL", "query"},
		"no CIDR":                   {subnet(func(s *Subnet) { s.CIDR = netip.Prefix{} }), "[0].subnets[0].cidr", "missing"},
		"a CIDR with host bits": {
			change: subnet(func(s *Subnet) { s.CIDR = netip.MustParsePrefix("192.0.2.7/24") }), path: "[0].subnets[0].cidr",
			says: "write 192.0.2.0/24",
		},
		"a multicast CIDR": {
			change: subnet(func(s *Subnet) { *s = Subnet{CIDR: netip.MustParsePrefix("224.0.0.0/8")} }), path: "[0].subnets[0].cidr",
			says: "no subnet that clients",
		},
		"a range outside its subnet": {
			change: subnet(func(s *Subnet) { s.Ranges = []lease.Range{rangeOf("192.0.2.250-192.0.3.5")} }), path: "[0].subnets[0].ranges[0]",
			says: "from 192.0.2.0 to 192.0.2.255",
		},
		"a range the wrong way round": {
			change: subnet(func(s *Subnet) { s.Ranges = []lease.Range{rangeOf("192.0.2.20-192.0.2.10")} }), path: "[0].subnets[0].ranges[0]",
			says: "write 192.0.2.10-192.0.2.20",
		},
		"a range of the other family": {
			change: subnet(func(s *Subnet) { s.Ranges = []lease.Range{rangeOf("fd00::1-fd00::2")} }), path: "[0].subnets[0].ranges[0]", says: "same family",
		},
		"a range with the gateway": {
			change: subnet(func(s *Subnet) { s.Gateway = addr("192.0.2.11") }), path: "[0].subnets[0].ranges", says: "gateway 192.0.2.11",
		},
		"a gateway outside": {
			change: subnet(func(s *Subnet) { s.Gateway = addr("198.51.100.1") }), path: "[0].subnets[0].gateway",
			says: "must lie in 192.0.2.0/24",
		},
		"a gateway that is broadcast": {subnet(func(s *Subnet) { s.Gateway = addr("192.0.2.255") }), "[0].subnets[0].gateway", "broadcast"},
		"a gateway for IPv6": {
			change: subnet(func(s *Subnet) { v6(s); s.Gateway = addr("fd00::1") }), path: "[0].subnets[0].gateway", says: "advertisements",
		},
		"a DNS server of the other family": {
			change: subnet(func(s *Subnet) { s.DNS = []netip.Addr{addr("fd00::1")} }), path: "[0].subnets[0].dns[0]", says: "same family",
		},
		"too many NTP servers": {
			change: subnet(func(s *Subnet) { s.NTP = slices.Repeat([]netip.Addr{addr("192.0.2.3")}, 9) }), path: "[0].subnets[0].ntp",
			says: "at most 8",
		},
		"a domain with a space": {subnet(func(s *Subnet) { s.Domain = "example com" }), "[0].subnets[0].domain", "DNS name"},
		"a lease time too short": {
			change: subnet(func(s *Subnet) { s.LeaseTime = time.Second }), path: "[0].subnets[0].leaseTime", says: "from 1m to 720h",
		},
		"a lease time too long": {
			change: subnet(func(s *Subnet) { s.LeaseTime = 1000 * time.Hour }), path: "[0].subnets[0].leaseTime", says: "from 1m to 720h",
		},
		"an unknown derivation": {
			change: subnet(func(s *Subnet) { v6(s); s.Derive = "eui64" }), path: "[0].subnets[0].derive", says: "stateless or onmetal",
		},
		"a derivation of IPv4": {
			change: subnet(func(s *Subnet) { s.Ranges = nil; s.Derive = DeriveOnmetal }), path: "[0].subnets[0].derive",
			says: "IPv6 addresses only",
		},
		"a derivation beside a range": {
			change: subnet(func(s *Subnet) { v6(s); s.Derive, s.Ranges = DeriveOnmetal, []lease.Range{rangeOf("fd00::1-fd00::2")} }),
			path:   "[0].subnets[0].ranges", says: "keep one",
		},
		"a stateless subnet too small": {subnet(func(s *Subnet) {
			s.CIDR = netip.MustParsePrefix("fd00::/96")
			*s = Subnet{CIDR: s.CIDR, Derive: DeriveStateless}
		}), "[0].subnets[0].derive", "/80 or larger"},
		"ranges that overlap": {subnet(func(s *Subnet) {
			s.Ranges = []lease.Range{rangeOf("192.0.2.20-192.0.2.30"), rangeOf("192.0.2.30-192.0.2.40")}
		}), "[0].subnets[0].ranges", "192.0.2.20-192.0.2.30 and 192.0.2.30-192.0.2.40 overlap"},
		"one of several ranges outside the subnet": {subnet(func(s *Subnet) {
			s.Ranges = []lease.Range{rangeOf("192.0.2.20-192.0.2.30"), rangeOf("192.0.3.1-192.0.3.2")}
		}), "[0].subnets[0].ranges[1]", "must lie within 192.0.2.0/24"},
		"a range of nothing":         {subnet(func(s *Subnet) { s.Ranges = []lease.Range{{}} }), "[0].subnets[0].ranges[0]", "it is empty"},
		"an exclusion of nothing":    {subnet(func(s *Subnet) { s.Exclude = []lease.Range{rangeOf("192.0.2.40-192.0.2.41")} }), "[0].subnets[0].exclude[0]", "excludes nothing"},
		"an exclusion of everything": {subnet(func(s *Subnet) { s.Exclude = []lease.Range{rangeOf("192.0.2.10-192.0.2.12")} }), "[0].subnets[0].exclude", "leaves nothing"},
		"an option that is none":     {network(func(n *Network) { n.Options = ClientOptions{"mut": "9000"} }), "[0].options.mut", "did you mean"},
		"an option that Ingot makes": {subnet(func(s *Subnet) { s.Options = ClientOptions{"3": "192.0.2.1"} }), "[0].subnets[0].options.3", "write gateway"},
		"an option set twice": {
			network(func(n *Network) { n.Options = ClientOptions{"mtu": "9000", "26": "1500"} }), "[0].options.26", "option 26 is set by mtu, too: keep one of them",
		},
		"options of an IPv6 subnet": {subnet(func(s *Subnet) {
			v6(s)
			s.Options = ClientOptions{"mtu": "9000"}
		}), "[0].subnets[0].options", "is IPv6"},
		"options beside another server": {network(func(n *Network) {
			n.Mode, n.Options = ModeProxy, ClientOptions{"mtu": "9000"}
			n.Subnets = []Subnet{{CIDR: n.Subnets[0].CIDR}}
		}), "[0].options", "mode proxy"},
		"delegation of IPv4":      {subnet(func(s *Subnet) { s.Delegate.Bits = 64 }), "[0].subnets[0].delegate", "IPv6 only"},
		"delegation from nowhere": {subnet(func(s *Subnet) { v6(s); s.Delegate.Bits = 64 }), "[0].subnets[0].delegate.from", "missing"},
		"delegation of too much": {subnet(func(s *Subnet) {
			v6(s)
			s.Delegate = lease.Delegation{From: netip.MustParsePrefix("fd01::/48"), Bits: 40}
		}), "[0].subnets[0].delegate.bits", "shorter than"},
		"delegation from the subnet": {subnet(func(s *Subnet) {
			v6(s)
			s.Delegate = lease.Delegation{From: netip.MustParsePrefix("fd00::/48"), Bits: 64}
		}), "[0].subnets[0].delegate.from", "overlaps"},
		"subnets that overlap across networks": {
			change: second(func(n *Network) { n.Subnets[0].CIDR = netip.MustParsePrefix("192.0.2.128/25") }), path: "[1].subnets[0].cidr",
			says: "overlaps 192.0.2.0/24 of dhcp[0].subnets[0].cidr",
		},
		"subnets that overlap in a network": {network(func(n *Network) {
			n.Subnets = append(n.Subnets, Subnet{CIDR: netip.MustParsePrefix("192.0.0.0/16")})
		}), "[0].subnets[1].cidr", "overlaps"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Check(tc.change([]Network{hosts()}))
			if len(got) != 1 || got[0].Path != tc.path || !strings.Contains(got[0].Message, tc.says) {
				t.Errorf("got %q, want one at %s that says %q", got, tc.path, tc.says)
			}
		})
	}
}
