package netboot

import (
	"net/netip"
	"slices"

	"ingot/model"
)

// Rescue says which machines without a boot ticket are led to the rescue script, an iPXE
// script of the operator's: those that are not servers of Ingot. Nil leads none.
type Rescue struct {
	// Known reports whether all servers are known by now. Until then each of them would be
	// taken for a stranger, and nobody is led to the script.
	Known func() bool
	// Named reports whether Git names a server with a UUID or a MAC address, be it known
	// besides or not.
	Named func(id string) bool
}

// Stranger reports whether a machine with these UUIDs and MAC addresses, which is no known
// server, is led to the rescue script.
func (r *Rescue) Stranger(ids ...string) bool {
	return r != nil && r.Known() && !slices.ContainsFunc(ids, r.Named)
}

// RescueFile returns the boot file that leads c to the rescue script.
func (s Site) RescueFile(c Client, l *Loaders) (Answer, bool) {
	var a Answer
	switch c.Kind {
	case KindNone, KindProbe:
		return Answer{Reason: ReasonNoTicket}, false
	case KindIPXE:
		a = Answer{File: s.HTTP + "/ipxe/", HTTP: true, VendorClass: v4Only(c, pxeClient)}
	case KindHTTP, KindPXE:
		a = s.loader(c, "", l)
	}
	return s.fitting(c, a)
}

// Near returns the known server that something points to as being at an address, even if
// that is in doubt, and the MAC address there.
func (b AddressRules) Near(addr netip.Addr) (o model.TicketHolder, mac string, known bool) {
	a := b.asker(addr)
	return a.holder, a.mac, a.known
}
