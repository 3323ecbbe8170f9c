package dhcp

import (
	"net/netip"
	"slices"
	"time"

	"ingot/bootsvc/netboot"
	"ingot/model"
)

// boot returns the boot file that c is told on n, whose own address there is
// local, and false when it is told none: only servers boot, only with a ticket,
// and none goes round in circles.
func (n *network) boot(c netboot.Client, local netip.Addr, now time.Time) (netboot.Answer, netboot.Site, bool) {
	if c.Kind == netboot.KindNone || !n.Boots() || n.server.options.Tickets == nil || n.server.options.Site == nil {
		return netboot.Answer{}, netboot.Site{}, false
	}
	site := n.server.options.Site(n.Name, local)
	a, ok := n.bootFile(c, site, now)
	a.Arch, a.Kind = c.Arch, c.Kind
	if c.Kind != netboot.KindProbe {
		a.MAC = c.MAC
	}
	result := "told"
	switch {
	case ok && a.Ticket == nil:
		result = "rescue"
	case !ok:
		result = string(a.Reason)
		n.noteInVain(c, a.Reason)
	}
	n.metrics.boot(family(c.V6), string(c.Kind), result)
	return a, site, ok
}

// bootFile finds the ticket of c's server, and the boot file that it leads to.
func (n *network) bootFile(c netboot.Client, site netboot.Site, now time.Time) (netboot.Answer, bool) {
	o, ok := n.offerTo(c)
	if !ok && n.server.options.Rescue.Stranger(append(slices.Clone(c.UUIDs), c.MAC)...) {
		return site.RescueFile(c, n.server.options.Loaders)
	}
	if !ok {
		return netboot.Answer{Reason: netboot.ReasonNoTicket}, false
	}
	a, ok := site.BootFile(c, o, n.server.options.Loaders)
	if ok && a.Loader && !n.server.loopLimiter.Allow(o, now) {
		return netboot.Answer{Ticket: a.Ticket, Reason: netboot.ReasonLoop}, false
	}
	return a, ok
}

// offerTo returns the ticket of c's server, by UUID, else by MAC address.
func (n *network) offerTo(c netboot.Client) (model.TicketHolder, bool) {
	for _, id := range c.UUIDs {
		if o, ok := n.server.options.Tickets.Find(id); ok {
			return o, true
		}
	}
	return n.server.options.Tickets.Find(c.MAC)
}

// noteInVain says that the firmware of a server asked what to boot while its ticket lets
// it boot nothing. A UUID is no secret, so it is the server's by its MAC address alone.
func (n *network) noteInVain(c netboot.Client, reason netboot.Reason) {
	if reason != netboot.ReasonNoTicket || c.Kind == netboot.KindProbe || n.server.options.InVain == nil {
		return
	}
	if o, ok := n.server.options.Tickets.Find(c.MAC); ok && o.Ticket.Open() {
		n.server.options.InVain(o.Ticket, c.MAC)
	}
}

// noteAnswer says what boot file a server is told, before it is: it asks for more within a
// millisecond, by when it has to be known.
func (s *Server) noteAnswer(told netboot.Answer, client netip.Addr) {
	if told.Ticket != nil && s.options.Note != nil {
		s.options.Note(told, client)
	}
}

func family(v6 bool) string {
	if v6 {
		return "6"
	}
	return "4"
}
