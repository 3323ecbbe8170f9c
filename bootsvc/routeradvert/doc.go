// Package routeradvert sends IPv6 router advertisements (RFC 4861, RFC 8106), which tell machines
// on a link whether to ask DHCPv6, which prefixes are on it, and, if this machine is one,
// which router it has.
//
// Config is what a network is told, and Message that as a message; schedule decides when it is
// sent; Sender sends it, and looks at what other routers say.
package routeradvert
