package config

import (
	"net/netip"
	"testing"

	"ingot/bootsvc/dhcp"
	"ingot/bootsvc/netboot"
)

func TestTheAddressRuleOfANetwork(t *testing.T) {
	subnets := []dhcp.Subnet{{CIDR: netip.MustParsePrefix("10.0.0.0/24")}, {CIDR: netip.MustParsePrefix("fd00::/64")}}
	o := Options{DHCP: []dhcp.Network{
		{Interface: "eth0", Subnets: subnets, BindTickets: "first-client"},
		{Interface: "eth1", Subnets: []dhcp.Subnet{{CIDR: netip.MustParsePrefix("10.1.0.0/24")}}},
		{Interface: "eth2", Subnets: []dhcp.Subnet{{CIDR: netip.MustParsePrefix("10.2.0.0/24")}}, BindTickets: "machine"},
	}}
	for client, want := range map[string]netboot.AddressRule{
		"10.0.0.9": netboot.BindFirst, "::ffff:10.0.0.9": netboot.BindFirst,
		"fd00::9": netboot.BindFirst, "fe80::9%eth0": netboot.BindFirst,
		"10.1.0.9": "", "fe80::9%eth1": "", "10.9.9.9": "", "fe80::9": "",
		"10.2.0.9": netboot.BindMachine,
	} {
		if got := o.AddressRuleAt(netip.MustParseAddr(client)); got != want {
			t.Errorf("%s: %q, want %q", client, got, want)
		}
	}
}
