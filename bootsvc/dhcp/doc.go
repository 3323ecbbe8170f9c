// Package dhcp gives addresses to BMCs and servers, and tells their firmware what
// to boot, by DHCPv4 (RFC 2131) and DHCPv6 (RFC 8415).
//
// A packet is read by the goroutine of its socket, decided upon in memory, and
// answered: at once, when the answer promises nothing new, else once the lease is
// durable. This package has the sockets, the packets and the relays, and says what a
// packet asks; what is leased to whom is package lease's to say.
package dhcp
