package model

import (
	"net/netip"
	"slices"
)

// metadataAddresses are where clouds serve credentials, beside 169.254.169.254.
var metadataAddresses = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"),
	netip.MustParseAddr("100.100.100.200"),
}

// Reserve is what an address is set aside for, if no device of a network has it.
type Reserve string

// The reserves.
const (
	ReserveNone      Reserve = ""
	ReserveNobody    Reserve = "nobody's address"
	ReserveLoopback  Reserve = "this machine itself"
	ReserveLinkLocal Reserve = "a link-local address"
	ReserveMetadata  Reserve = "a metadata address of clouds"
)

// ReserveOf returns what addr is set aside for. An IPv4 address is the same in the
// spelling of IPv6, and behind NAT64.
func ReserveOf(addr netip.Addr) Reserve {
	addr = plainAddr(addr)
	switch {
	case !addr.IsValid() || addr.IsUnspecified() || addr.IsMulticast() || addr == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return ReserveNobody
	case addr.IsLoopback():
		return ReserveLoopback
	case slices.Contains(metadataAddresses, addr):
		return ReserveMetadata
	case addr.IsLinkLocalUnicast():
		return ReserveLinkLocal
	}
	return ReserveNone
}

var (
	nat64  = netip.MustParsePrefix("64:ff9b::/96")  // RFC 6052
	shared = netip.MustParsePrefix("100.64.0.0/10") // RFC 6598
)

func plainAddr(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if bytes := addr.As16(); nat64.Contains(addr) {
		return netip.AddrFrom4([4]byte(bytes[12:]))
	}
	return addr
}

// IsPublic reports whether addr is an address of the Internet.
func IsPublic(addr netip.Addr) bool {
	addr = plainAddr(addr)
	return addr.IsGlobalUnicast() && !addr.IsPrivate() && !shared.Contains(addr) && ReserveOf(addr) == ReserveNone
}

// OneClient returns the address that stands for all that one client may come from. A machine on an
// IPv6 network gives itself as many addresses of its /64 as it likes (RFC 4291 §2.5.1), so these are
// one; a loopback address is itself.
func OneClient(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if p, err := a.Prefix(64); err == nil && a.Is6() && !a.IsLoopback() {
		return p.Addr()
	}
	return a
}
