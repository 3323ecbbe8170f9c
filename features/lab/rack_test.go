package lab

import (
	"fmt"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"ingot/features/internal/rig"
)

// The world of most tests: a server on one link, and a relay to another.
//
//	server ── rack (10.77.1.0/24, fd77:1::/64) ── relay ── row (10.77.2.0/24, fd77:2::/64)
const (
	relayAddress  = "10.77.2.1"
	relayAddress6 = "fd77:2::1"
)

// rack is the server's namespace and the link that it is on.
type rack struct {
	t      *testing.T
	server *rig.Namespace
	relay  *rig.Namespace // nil before addRelay
	hosts  atomic.Int64
	macs   atomic.Int64 // that nextHost gave
}

func newRack(t *testing.T) *rack {
	t.Helper()
	return &rack{t: t, server: rig.NewServer(t)}
}

// addRelay puts a relay between the rack's link and another, and routes. It relays to
// others beside Ingot.
func (r *rack) addRelay(t *testing.T, others ...string) {
	t.Helper()
	r.addRouter(t)
	relay4 := []string{"dhcrelay", "-4", "-d", "-a", "-id", rig.BridgeName, "-iu", "up0", rig.ServerAddress}
	r.relay.Start(t, "dhcrelay -4", append(relay4, others...)...)
	r.relay.Start(t, "dhcrelay -6", "dhcrelay", "-6", "-d", "-I", "-l", relayAddress6+"%"+rig.BridgeName, "-u", rig.ServerAddress6+"%up0")
}

func (r *rack) addRouter(t *testing.T) {
	t.Helper()
	rig.Need(t, rig.ToolDhcrelay)
	r.relay = rig.NewNamespace(t, "relay")
	r.relay.Plug("up0", rig.MAC(0xfe), r.server, rig.BridgeName)
	r.relay.Address("up0", "10.77.1.2/24", "fd77:1::2/64")
	r.relay.Bridge(rig.BridgeName, relayAddress+"/24", relayAddress6+"/64")
	r.relay.Setting("net/ipv4/ip_forward", "1")
	r.relay.Setting("net/ipv6/conf/all/forwarding", "1")
	r.server.IP("route", "add", "10.77.2.0/24", "via", "10.77.1.2")
	r.server.IP("route", "add", "fd77:2::/64", "via", "fd77:1::2")
}

func (r *rack) host(t *testing.T, relayed bool, mac string) *rig.Namespace {
	t.Helper()
	n := rig.NewNamespace(t, fmt.Sprintf("host%d", r.hosts.Add(1)))
	n.MAC = mac
	// what a router would advertise
	if relayed {
		n.Plug(device, mac, r.relay, rig.BridgeName)
		n.IP("route", "add", "fd77:2::/64", "dev", device)
		n.IP("route", "add", "fd77:1::/64", "via", relayAddress6)
	} else {
		n.Plug(device, mac, r.server, rig.BridgeName)
		n.IP("route", "add", "fd77:1::/64", "dev", device)
	}
	rig.Eventually(t, rig.Patience, func() error { // which clients of DHCPv6 send from
		out, err := n.Run(t, rig.Patience, "ip", "-6", "-o", "address", "show", "dev", device, "scope", "link")
		if err == nil && (!strings.Contains(out, "fe80:") || strings.Contains(out, "tentative")) {
			err = fmt.Errorf("the host has no link-local address: %s", out)
		}
		return err
	})
	return n
}

func (r *rack) nextHost(t *testing.T, relayed bool) *rig.Namespace {
	t.Helper()
	return r.host(t, relayed, rig.MAC(int(r.macs.Add(1))))
}

// pools are the ranges that the rack's addresses come from, see rackNetwork.
var pools = map[bool]map[int][2]netip.Addr{
	false: {
		4: {netip.MustParseAddr("10.77.1.100"), netip.MustParseAddr("10.77.1.150")},
		6: {netip.MustParseAddr("fd77:1::100"), netip.MustParseAddr("fd77:1::150")},
	},
	true: {
		4: {netip.MustParseAddr("10.77.2.100"), netip.MustParseAddr("10.77.2.150")},
		6: {netip.MustParseAddr("fd77:2::100"), netip.MustParseAddr("fd77:2::150")},
	},
}

func inPool(relayed bool, a netip.Addr) bool {
	family := 6
	if a.Is4() {
		family = 4
	}
	p := pools[relayed][family]
	return a.Compare(p[0]) >= 0 && a.Compare(p[1]) <= 0
}

// rackNetwork is the rack's network in Ingot's configuration, with the default lease time.
const rackNetwork = `
dhcp:
- name: rack
  interface: br0
  role: host
  subnets:
  - {cidr: 10.77.1.0/24, ranges: [10.77.1.100-10.77.1.150], gateway: 10.77.1.1, ` +
	`dns: [10.77.1.53, 10.77.1.54], ntp: [10.77.1.123], domain: rack.example.com}
  - {cidr: 10.77.2.0/24, ranges: [10.77.2.100-10.77.2.150], gateway: 10.77.2.1, ` +
	`dns: [10.77.1.53, 10.77.1.54], ntp: [10.77.1.123], domain: rack.example.com}
  - {cidr: "fd77:1::/64", ranges: ["fd77:1::100-fd77:1::150"], ` +
	`dns: ["fd77:1::53"], ntp: ["fd77:1::123"], domain: rack.example.com}
  - {cidr: "fd77:2::/64", ranges: ["fd77:2::100-fd77:2::150"], ` +
	`dns: ["fd77:1::53"], ntp: ["fd77:1::123"], domain: rack.example.com}
`
