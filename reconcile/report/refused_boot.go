package report

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
)

// refusedBoot says who asked to boot in the server's name and could not be taken for it, and what to
// do if that is the server. As ticketRefused it has
// neither counts nor the times of repetitions.
func (s serverView) refusedBoot() (c metav1.Condition, refused bool) {
	p := s.progress()
	if p == nil || !s.Record.Boot.Ticket.Open() && (s.Record.Boot.Ticket.Ended == model.TicketBooted || !p.LockedOut()) {
		return c, false
	}
	by := refusals(p)
	if len(by) == 0 {
		return c, false
	}
	var texts []string
	for _, u := range by[:min(len(by), maxRefusedUses)] {
		texts = append(texts, refusedUseText(u)+s.remedy(u))
	}
	if more := len(by) - maxRefusedUses; more > 0 {
		texts = append(texts, "and others before")
	}
	return condition(typeBootRefused, true, string(by[0].Refusal), strings.Join(texts, "; "), by[len(by)-1].First), true
}

// refusals are the newest use of each client that was refused because it is not clear
// whose it was, or because it was another server's; the newest first. Those from before the
// server was served are no news: it boots.
func refusals(p *model.Progress) []model.TicketUse {
	newest := make(map[string]model.TicketUse)
	var served model.TicketUse
	for _, u := range p.Uses {
		switch {
		case u.Served() && u.Own && u.Last.After(served.Last):
			served = u
		case u.Refusal.Untold():
			key := u.Client + " " + u.MAC + " " + string(u.Refusal)
			if old, ok := newest[key]; !ok || u.First.Before(old.First) {
				newest[key] = u
			} else if u.Last.After(old.Last) {
				old.Last = u.Last
				newest[key] = old
			}
		}
	}
	var by []model.TicketUse
	for _, u := range newest {
		if u.Last.After(served.Last) {
			by = append(by, u)
		}
	}
	slices.SortFunc(by, func(a, b model.TicketUse) int {
		return cmp.Or(b.First.Compare(a.First), cmp.Compare(a.Client, b.Client), cmp.Compare(a.MAC, b.MAC))
	})
	return by
}

// remedy is what lets the server boot, if it was the server that was refused.
func (s serverView) remedy(u model.TicketUse) string {
	switch u.Refusal {
	case model.RefusedUnknown:
		return fmt.Sprintf("; if that is %s, write ingot/mac-addresses: %q to its Server", s.Name, u.MAC)
	case model.RefusedCannotTell:
		if client, err := netip.ParseAddr(u.Client); err == nil && client.IsLinkLocalUnicast() {
			return fmt.Sprintf("; if that is %s, it is served once it answers for that address on its link, or asks from one that it leased", s.Name)
		}
		return fmt.Sprintf("; if that is %s, have its network's DHCP relay send to Ingot as well (a helper address, with dhcp mode proxy), "+
			"or write an Endpoint with ip: %s and its MAC address, or set bindTickets for its network", s.Name, u.Client)
	case model.RefusedContested:
		return "; if nobody took that address on purpose, it is served again some minutes after the address is one machine's alone"
	case model.RefusedAddress, model.RefusedOther, model.RefusedToken, model.RefusedSpent, model.RefusedReplay:
	}
	return ""
}
