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
// spelling of IPv6.
func ReserveOf(addr netip.Addr) Reserve {
	addr = addr.Unmap().WithZone("")
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
