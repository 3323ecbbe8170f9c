package netboot

import (
	"fmt"
	"net/netip"

	"ingot/model"
)

// AddressRule says who may use a server's boot ticket, beside the token that it must show.
// UUIDs are no secret and tokens pass over the network in the clear, so what runs on one
// server could otherwise read what the next one boots, and use its ticket up.
type AddressRule string

// The rules. None of them lets a known server use another's ticket.
const (
	// BindMachine: the server itself, at any of its network interfaces. Who asks is taken
	// from what a client cannot make up, and a client that it cannot tell apart is refused.
	BindMachine AddressRule = "machine"
	// BindFirst: besides, of those that cannot be told apart, the address, one of each IP
	// version, that used the ticket first. Whoever is quicker wins.
	BindFirst AddressRule = "first-client"
	// BindNothing: anybody who knows the server's UUID.
	BindNothing AddressRule = "nothing"
)

// ParseAddressRule returns the binding of a name; an empty one is BindMachine.
func ParseAddressRule(name string) (AddressRule, error) {
	switch b := AddressRule(name); b {
	case "":
		return BindMachine, nil
	case BindMachine, BindFirst, BindNothing:
		return b, nil
	}
	return "", fmt.Errorf("%q binds no boot ticket: allowed are %s, %s and %s", name, BindMachine, BindFirst, BindNothing)
}

// Verdict is whether somebody may use a ticket.
type Verdict struct {
	By      model.Asker
	Refusal model.TicketRefusal // "" when it may be used
	Told    string              // to the client that asks
}

// What those are told who are refused.
const (
	toldOther = "the network interface that asks is another server's: each is served its own only"
	toldFirst = "another address than the one that this comes from used this boot ticket first: only that one is served until the ticket ends"
)

// AddressRules decides who may use boot tickets. It is safe for concurrent use if what it asks
// is.
type AddressRules struct {
	Rule AddressRule // empty = BindMachine
	// Of is the rule of the network that an address is on; nil, or an answer that is
	// empty, means Rule.
	Of func(netip.Addr) AddressRule
	Evidence
	Servers Servers // nil = none are known
}

// Servers is where servers are found by their MAC addresses, and those by their server.
type Servers interface {
	// Find returns the boot ticket of the server with this UUID or MAC address.
	Tickets
	// MACs returns the MAC addresses of a server's network interfaces.
	MACs(server model.ServerName) []string
}

// At returns the boot ticket of the known server that is at an address.
func (b AddressRules) At(addr netip.Addr) (model.TicketHolder, bool) {
	a := b.asker(addr)
	if a.doubt != "" || !a.known {
		return model.TicketHolder{}, false
	}
	return a.holder, true
}

// Judge decides whether a client may use a server's ticket.
func (b AddressRules) Judge(o model.TicketHolder, client netip.Addr) Verdict {
	binding := b.Rule
	if b.Of != nil {
		if of := b.Of(client); of != "" {
			binding = of
		}
	}
	return b.asker(client).verdict(o, binding)
}

// JudgeMachine is Judge for what shows no token, and is given to the server alone
// whatever the binding is.
func (b AddressRules) JudgeMachine(o model.TicketHolder, client netip.Addr) Verdict {
	return b.asker(client).verdict(o, BindMachine)
}

// asker is who asks, and whose machine that is.
type asker struct {
	observation
	client netip.Addr
	holder model.TicketHolder // of the server with the MAC address
	known  bool               // there is one
}

func (a asker) verdict(o model.TicketHolder, binding AddressRule) Verdict {
	v := Verdict{By: model.Asker{Client: a.client, MAC: a.mac, Port: a.port, Own: a.known && a.holder.Server == o.Server}}
	switch {
	case a.known && a.holder.Server != o.Server:
		v.Refusal, v.Told = model.RefusedOther, toldOther
	case a.known && a.doubt == "", binding == BindNothing:
	case binding == BindFirst && (a.mac == "" || isFresh(o)):
		v.Refusal, v.Told = unlikeFirst(o, withoutZone(a.client))
	case a.doubt != "":
		v.Refusal, v.Told = a.doubt, a.why
	default:
		v.Refusal, v.Told = model.RefusedUnknown, toldUnknown(a.mac)
	}
	return v
}

func toldUnknown(mac string) string {
	return "the network interface that asks, " + mac + ", is not known to be this server's: its BMC does not show it, and neither does Git"
}

// isFresh reports whether a server's network interfaces need not be known yet, for it has
// no ticket or one for its discovery.
func isFresh(o model.TicketHolder) bool {
	return o.Ticket == nil || o.Ticket.Purpose == model.PurposeDiscovery
}

func unlikeFirst(o model.TicketHolder, client netip.Addr) (model.TicketRefusal, string) {
	if first := firstClient(o, client); first.IsValid() && first != client {
		return model.RefusedAddress, toldFirst
	}
	return "", ""
}

// firstClient returns the first client of an address's IP version that was given
// something with o's ticket. The uses of a ticket are written down a little late, so
// the client of its last boot stage, which is written down before it is served, stands
// in for one that is not there yet.
func firstClient(o model.TicketHolder, like netip.Addr) netip.Addr {
	p := o.Progress
	if o.Ticket == nil || p == nil || p.Ticket != o.Ticket.ID {
		return netip.Addr{}
	}
	for _, u := range p.Uses {
		if addr, err := netip.ParseAddr(u.Client); err == nil && u.Served() && identifies(u.What) && addr.Is4() == like.Is4() {
			return withoutZone(addr)
		}
	}
	if addr, err := netip.ParseAddr(p.Client); err == nil && addr.Is4() == like.Is4() && !(p.ScriptAt.IsZero() && p.IgnitionAt.IsZero()) {
		return withoutZone(addr)
	}
	return netip.Addr{}
}

// identifies reports whether who was given a thing is the server from then on. An image
// is the same for many, and firmware and iPXE may ask for it from other addresses.
func identifies(what model.TicketThing) bool {
	return what == model.ThingScript || what == model.ThingIgnition || what == model.ThingCloudInit
}

// withoutZone returns an address as lease tables know it.
func withoutZone(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }
