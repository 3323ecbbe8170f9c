// Package inuse asks whether somebody uses an address before it is given to a client (RFC 2131
// §2.2): on a link of this machine by ARP or Neighbor Discovery, which a device answers that answers nothing else (RFC
// 5227, RFC 4861), and behind routers by an echo of ICMP or ICMPv6. It needs CAP_NET_RAW.
package inuse
