package dhcp

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	"ingot/bootsvc/netboot"
	"ingot/model"
)

// follow4 tells what became of a packet, for people who follow its card.
func (n service4) follow4(p packet4, a answer4) {
	if n.server.options.Told == nil || p.mac == "" {
		return
	}
	e := n.event(model.CardDHCPv4, p.kind.String(), a.boot.Kind, p.relay.address, p.relay.port)
	switch {
	case a.reply == nil && a.lease == nil:
		silent(&e, a.outcome)
	case a.reply == nil: // it gave its address back
		e.Result, e.Answer = model.CardAnswered, a.outcome
	default:
		e.Result, e.Answer = model.CardAnswered, answerText(a.outcome, a.reply.yiaddr, a.boot)
		if a.reply.nak {
			e.Result = model.CardRefused
		} else if a.lease != nil {
			e.Result, e.Routine = model.CardServed, address4(p.ClientIPAddr).IsValid()
		}
	}
	n.server.options.Told(p.mac, e)
}

// follow6 is follow4 for DHCPv6; why is why there is no answer.
func (n service6) follow6(x *exchange6, d decision6, why string) {
	if n.server.options.Told == nil || x.mac == "" {
		return
	}
	e := n.event(model.CardDHCPv6, x.kind.String(), d.asked.Kind, x.relay, x.port())
	switch outcome := d.outcome(); {
	case why != "":
		silent(&e, why)
	case outcome == "refused":
		e.Result, e.Answer = model.CardRefused, answerText(outcome, netip.Addr{}, d.asked)
	default:
		e.Result, e.Answer = model.CardAnswered, answerText(outcome, d.client(netip.Addr{}), d.asked)
		if outcome == "reply" && len(d.leases) > 0 {
			e.Result, e.Routine = model.CardServed, e.Asked == "RENEW" || e.Asked == "REBIND"
		}
	}
	n.server.options.Told(x.mac, e)
}

// event is an event without its result. Kind is that of a client that asks what to boot.
func (n *network) event(protocol model.CardProtocol, asked string, kind netboot.Kind, relay netip.Addr, port string) model.CardEvent {
	e := model.CardEvent{At: n.server.options.Clock(), Protocol: protocol, Asked: asked, From: n.Name}
	if kind != netboot.KindNone {
		e.Asked += " by " + string(kind)
	}
	if relay.IsValid() {
		e.From += ", relay " + relay.String()
	}
	if port != "" {
		e.From += " port " + port
	}
	return e
}

func silent(e *model.CardEvent, why string) {
	e.Routine, e.Result, e.Answer = true, model.CardUnanswered, cmp.Or(reasons[why], why)
	if why == overClient {
		e.Result = model.CardLimited
	}
}

// reasons say for people why packets are not answered, where the label of the metric does not.
var reasons = map[string]string{
	overClient:             fmt.Sprintf("more than %d packets per second", clientRate),
	string(drop4Filter):    "macAllow or macDeny keeps it out",
	string(drop4Relay):     "the link that its relay names lies in none of the subnets",
	string(drop4Source):    "it is on another link, and came by no relay",
	string(drop4NotReady):  "this machine has no address on the network yet",
	string(drop4BOOTP):     "it speaks BOOTP, not DHCP",
	string(drop6Server):    "it asks another server",
	string(drop6Nothing):   "there is nothing to say",
	string(drop4Untrusted): "its relay is not among relays, or names an address that it does not send from",
	inUse:                  "each address that it might have is in use by another device",
	"exhausted":            "no address of the range is free",
	"unknown address":      "nothing is known of its address, which may be another server's",
	"not its own":          "the address is not its own",
	"not stored":           "the lease could not be stored",
	"other server":         "it asks another server",
	"ignored":              "it is another server's to answer",
}

func answerText(outcome string, a netip.Addr, boot netboot.Answer) string {
	text := strings.ToUpper(outcome)
	if outcome == toldByProxy {
		text = "PROXY OFFER"
	}
	if a.IsValid() {
		text += " " + a.String()
	}
	if file := boot.Text(); file != "" {
		text += ", " + file
	}
	return text
}
