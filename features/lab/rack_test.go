package lab

import (
	"fmt"
	"net/netip"
	"sync/atomic"
	"testing"
)

// The world of most tests: a server on one link, and a relay to another.
//
//	server ── rack (10.77.1.0/24, fd77:1::/64) ── relay ── row (10.77.2.0/24, fd77:2::/64)
const (
	serverAddress  = "10.77.1.1"
	serverAddress6 = "fd77:1::1"
	relayAddress   = "10.77.2.1"
	relayAddress6  = "fd77:2::1"
	bridgeName     = "br0"
)

// rack is the server's namespace and the link that it is on.
type rack struct {
	t      *testing.T
	server *namespace
	relay  *namespace // nil before addRelay
	hosts  atomic.Int64
	macs   atomic.Int64 // that nextHost gave
}

func newRack(t *testing.T) *rack {
	t.Helper()
	need(t)
	r := &rack{t: t, server: newNamespace(t, "server")}
	r.server.bridge(bridgeName, serverAddress+"/24", serverAddress6+"/64")
	return r
}

// addRelay puts a relay between the rack's link and another, and routes.
func (r *rack) addRelay(t *testing.T) {
	t.Helper()
	need(t, toolDhcrelay)
	r.relay = newNamespace(t, "relay")
	r.relay.plug("up0", macOf(0xfe), r.server, bridgeName)
	r.relay.address("up0", "10.77.1.2/24", "fd77:1::2/64")
	r.relay.bridge(bridgeName, relayAddress+"/24", relayAddress6+"/64")
	r.relay.setting("net/ipv4/ip_forward", "1")
	r.relay.setting("net/ipv6/conf/all/forwarding", "1")
	r.server.ip("route", "add", "10.77.2.0/24", "via", "10.77.1.2")
	r.server.ip("route", "add", "fd77:2::/64", "via", "fd77:1::2")
	r.relay.start(t, "dhcrelay -4", "dhcrelay", "-4", "-d", "-a", "-id", bridgeName, "-iu", "up0", serverAddress)
	r.relay.start(t, "dhcrelay -6", "dhcrelay", "-6", "-d", "-I", "-l", relayAddress6+"%"+bridgeName, "-u", serverAddress6+"%up0")
}

// macOf is the n-th MAC address of the lab.
func macOf(n int) string { return fmt.Sprintf("52:54:00:77:00:%02x", n) }

// host plugs a machine in, on the rack's link or behind the relay.
func (r *rack) host(t *testing.T, relayed bool, mac string) *namespace {
	t.Helper()
	n := newNamespace(t, fmt.Sprintf("host%d", r.hosts.Add(1)))
	n.mac = mac
	// what a router would advertise
	if relayed {
		n.plug(device, mac, r.relay, bridgeName)
		n.ip("route", "add", "fd77:2::/64", "dev", device)
		n.ip("route", "add", "fd77:1::/64", "via", relayAddress6)
	} else {
		n.plug(device, mac, r.server, bridgeName)
		n.ip("route", "add", "fd77:1::/64", "dev", device)
	}
	return n
}

// nextHost is host with a MAC address that no other has.
func (r *rack) nextHost(t *testing.T, relayed bool) *namespace {
	t.Helper()
	return r.host(t, relayed, macOf(int(r.macs.Add(1))))
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

// rackNetwork is the rack as Ingot is told of it. Leases are short, for some
// clients renew only when it is time.
const rackNetwork = `
dhcp:
- name: rack
  interface: br0
  role: host
  subnets:
  - {cidr: 10.77.1.0/24, range: 10.77.1.100-10.77.1.150, gateway: 10.77.1.1, dns: [10.77.1.53, 10.77.1.54], ntp: [10.77.1.123], domain: rack.example.com, leaseTime: 1m}
  - {cidr: 10.77.2.0/24, range: 10.77.2.100-10.77.2.150, gateway: 10.77.2.1, dns: [10.77.1.53, 10.77.1.54], ntp: [10.77.1.123], domain: rack.example.com, leaseTime: 1m}
  - {cidr: "fd77:1::/64", range: "fd77:1::100-fd77:1::150", dns: ["fd77:1::53"], ntp: ["fd77:1::123"], domain: rack.example.com, leaseTime: 1m}
  - {cidr: "fd77:2::/64", range: "fd77:2::100-fd77:2::150", dns: ["fd77:1::53"], ntp: ["fd77:1::123"], domain: rack.example.com, leaseTime: 1m}
`
