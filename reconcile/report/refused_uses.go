package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/model/text"
)

// maxRefusedUses is how many refused uses of a ticket the status branch names.
const maxRefusedUses = 3

// ticketRefused says which clients were refused what is the server's. It has neither
// counts nor the times of repetitions, because each would be a commit.
func (s serverView) ticketRefused() (c metav1.Condition, refused bool) {
	var by []model.TicketUse
	if p := s.progress(); p != nil {
		by = refusedUses(p, s.reportedAddresses())
	}
	if len(by) == 0 {
		return c, false
	}
	since := by[len(by)-1].First
	var texts []string
	for _, u := range by[:min(len(by), maxRefusedUses)] {
		texts = append(texts, refusedUseText(u))
	}
	if more := len(by) - maxRefusedUses; more > 0 {
		texts = append(texts, "and others before")
	}
	return condition(typeTicketRefused, true, string(by[0].Refusal), strings.Join(texts, "; "), since), true
}

// reportedAddresses are the IP addresses that the server's probe reported.
func (s serverView) reportedAddresses() map[string]bool {
	own := make(map[string]bool)
	if p := s.in.Observed.Probes[s.Name]; p != nil {
		for _, n := range p.Data.NetworkInterfaces {
			for _, ip := range n.IPAddresses {
				own[ip] = true
			}
		}
	}
	return own
}

// refusedUses are the refused uses of a ticket by others than its server, the newest
// first. A server that comes too late, or again, is refused as well, and abuses
// nothing: it is known by its MAC address, else by its addresses, and by having been
// served before. Images are served to firmware that nobody knows as well, so they tell
// nothing of the client, and boot files are noted of the server itself alone. A client that is not
// known at all may be the server, see refusedBoot, unless its MAC address is another's and it
// shows a token that only the server was given.
func refusedUses(p *model.Progress, own map[string]bool) []model.TicketUse {
	served := make(map[string]bool)
	for _, u := range p.Uses {
		if u.Served() && u.What != model.ThingImage {
			served[u.Client] = true
		}
	}
	var by []model.TicketUse
	for _, u := range p.Uses {
		switch {
		case u.What == model.ThingBootFile, u.Served(), u.Own && u.Refusal != model.RefusedAddress:
			continue
		case u.Refusal == model.RefusedCannotTell, u.Refusal.Untold() && u.Refusal != model.RefusedOther && !u.Token:
			continue
		case !u.Refusal.Untold() && u.Refusal != model.RefusedAddress && (served[u.Client] || own[u.Client]):
			continue
		}
		by = append(by, u)
	}
	slices.SortStableFunc(by, func(a, b model.TicketUse) int {
		return cmp.Or(b.First.Compare(a.First), cmp.Compare(a.Client, b.Client))
	})
	return by
}

// who is the client that asked, as far as it was seen; "" = not at all.
func who(u model.TicketUse) string {
	text := u.Client
	if u.MAC != "" {
		text += " (" + u.MAC
		if u.Port != "" {
			text += " on relay port " + u.Port
		}
		text += ")"
	}
	return text
}

func refusedUseText(u model.TicketUse) string {
	verb := "asked for its "
	switch u.What {
	case model.ThingReport, model.ThingBootState, model.ThingWipe:
		verb = "sent a "
	case model.ThingScript, model.ThingIgnition, model.ThingCloudInit, model.ThingImage, model.ThingInstall, model.ThingBootFile:
	}
	return fmt.Sprintf("%s %s%s and was refused: %s", cmp.Or(who(u), "somebody"), verb, u.What, refusalText(u.Refusal))
}

func refusalText(r model.TicketRefusal) string {
	switch r {
	case model.RefusedAddress:
		return "the address is none that the server may ask from"
	case model.RefusedUnknown:
		return "its MAC address is no known server's"
	case model.RefusedCannotTell:
		return "nothing shows its MAC address"
	case model.RefusedContested:
		return "its address is, or was a moment ago, somebody else's too"
	case model.RefusedOther:
		return "its MAC address is another server's"
	case model.RefusedToken:
		return "it did not show the ticket's token"
	case model.RefusedSpent:
		return "the ticket is spent"
	case model.RefusedReplay:
		return "that is given once, and was"
	}
	return string(r)
}

// TicketUses says, a line for each kind of request, what a ticket was asked for, by
// whom, when and with what answer, in the order of the first.
func TicketUses(p *model.Progress) []string {
	if p == nil {
		return nil
	}
	var lines []string
	for _, u := range p.Uses {
		answer := "served"
		if !u.Served() {
			answer = "refused: " + refusalText(u.Refusal)
		}
		times := "once at " + text.Time(u.First)
		if u.Count > 1 {
			times = fmt.Sprintf("%d times from %s to %s", u.Count, text.Time(u.First), text.Time(u.Last))
		}
		lines = append(lines, fmt.Sprintf("%s for %s, %s, %s", u.What, cmp.Or(who(u), "an unknown address"), times, answer))
	}
	return lines
}
