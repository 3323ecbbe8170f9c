package netboot

import (
	"net/netip"
	"slices"

	"ingot/model"
)

// Rescue says which machines without a boot ticket are led to the rescue script, an iPXE
// script of the operator's. Nil leads none.
type Rescue struct {
	// Known reports whether all servers are known by now. Until then each of them would be
	// taken for a stranger, and nobody is led to the script.
	Known func() bool
	// Named reports whether Git names a server with a UUID or a MAC address, be it known
	// besides or not.
	Named func(id string) bool
	// Available reports whether a server is one on which nothing is installed, and which
	// nobody waits for. Nil leads only strangers to the script.
	Available func(model.ServerName) bool
}

// Stranger reports whether a machine with these UUIDs and MAC addresses, which is no known
// server, is led to the rescue script.
func (r *Rescue) Stranger(ids ...string) bool {
	return r != nil && r.Known() && !slices.ContainsFunc(ids, r.Named)
}

// Server reports whether a known server is led to the rescue script. One with a ticket
// never is, and neither is one that has something on its disk, which has to come up from
// there.
func (r *Rescue) Server(o model.TicketHolder) bool {
	if r == nil || r.Available == nil || o.Ticket.Open() || o.Ticket.MayBoot(o.Progress) {
		return false
	}
	return r.Known() && r.Available(o.Server)
}

// RescueFile names the boot file that c, which may be a known server, is told on its way to
// the rescue script.
func (s Site) RescueFile(c Client, server model.ServerName, l *Loaders) (Answer, bool) {
	var a Answer
	switch c.Kind {
	case KindNone, KindProbe:
		return Answer{Reason: ReasonNoTicket}, false
	case KindIPXE:
		a = Answer{File: s.HTTP + "/ipxe/", HTTP: true, VendorClass: v4Only(c, pxeClient)}
	case KindHTTP, KindPXE:
		a = s.loader(c, server, l)
	}
	return s.fitting(c, a)
}

// Near returns the known server that something points to as being at an address, even if
// that is in doubt, and the MAC address there.
func (b AddressRules) Near(addr netip.Addr) (o model.TicketHolder, mac string, known bool) {
	a := b.asker(addr)
	return a.holder, a.mac, a.known
}
