// Package inuse asks whether somebody uses an address before it is given to a client (RFC 2131
// §2.2): on a link of this machine by ARP, which a device answers that answers nothing else (RFC
// 5227), and behind routers by ICMP echo. It needs CAP_NET_RAW.
package inuse
