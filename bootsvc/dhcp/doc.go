// Package dhcp gives addresses to BMCs and servers, and tells their firmware what
// to boot, by DHCPv4 (RFC 2131) and DHCPv6 (RFC 8415).
//
// A packet is read by the goroutine of its socket, decided upon in memory, and
// answered: at once, when the answer promises nothing new, else once the lease is
// durable. Leases are stored in groups (see committer), so that a store that takes
// milliseconds serves thousands of clients a second. While the store is away, what
// was promised before is prolonged from memory, and nothing new is promised.
//
// A lease belongs to a MAC address, not to a client identifier or DUID: firmware,
// iPXE and the operating system of one machine each show another. It ends early when
// all identity associations of the client that asked last have given it back.
package dhcp
