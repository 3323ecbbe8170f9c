package netboot

import (
	"fmt"
	"net/netip"
	"slices"

	"ingot/bootsvc/neighbour"
	"ingot/model"
)

// Leases is what a lease table knows.
type Leases interface {
	// Holder returns the MAC address that holds a live lease on an address, if that was
	// seen by somebody else than the client.
	Holder(addr netip.Addr) (mac string, ok bool)
}

// Neighbours is where a link is asked who is at an address.
type Neighbours interface {
	// At keeps the zone of an address of IPv6 in mind.
	At(addr netip.Addr) (neighbour.Neighbour, error)
}

// Evidence is what shows which network interface is at an address. None of it is made by
// the client: an address that is made of a MAC address (RFC 4291, appendix A) shows
// nothing, for anybody can take one.
type Evidence struct {
	Leases Leases // those that Ingot gave, nil = none
	// Endpoint returns the MAC address that Git says is at an address; nil = none.
	Endpoint func(netip.Addr) (mac string, ok bool)
	// Heard are the addresses that clients were heard to ask other DHCP servers for; nil =
	// none.
	Heard *Heard
	// Neighbours say which MAC address an address on a link of this machine has; nil = not known.
	Neighbours Neighbours
}

// observation is what evidence shows of an address.
type observation struct {
	mac  string // who is there, "" when nothing shows it
	port string // that a DHCP relay heard it on
	// doubt is why mac may not be trusted, for the record and for people.
	doubt model.TicketRefusal
	why   string
}

// What those are told who are in doubt.
const (
	toldNothing = "nothing shows which network interface this comes from: Ingot leases it no address, heard it ask no other DHCP server, shares no link with it, and no Endpoint in Git has its address"
	toldNobody  = "nobody answers for the address that this comes from on its link"
	toldChanged = "the address that this comes from was another network interface's a moment ago"
	toldLost    = "so much changed on the link that this comes from that nobody knows whose addresses were whose: ask again in a few minutes"
)

func (b AddressRules) asker(client netip.Addr) asker {
	client = client.Unmap()
	a := asker{client: client, observation: b.observe(client)}
	if a.mac != "" && b.Servers != nil {
		a.holder, a.known = b.Servers.Find(a.mac)
	}
	return a
}

// Card returns the MAC address of the network interface that is at an address, "" when nothing shows
// it or what shows it disagrees.
func (b AddressRules) Card(client netip.Addr) string {
	if o := b.observe(client.Unmap()); o.doubt == "" {
		return o.mac
	}
	return ""
}

// observe gathers the evidence. What the link shows, where it shows something, must
// belong to the server that everything else points to.
func (b AddressRules) observe(client netip.Addr) observation {
	on, err := b.neighbour(client)
	if err != nil {
		return observation{doubt: model.RefusedCannotTell, why: fmt.Sprintf("nothing shows which network interface this comes from: %v", err)}
	}
	said := b.said(withoutZone(client))
	if on.OnLink && on.MAC == "" {
		return observation{doubt: model.RefusedCannotTell, why: toldNobody}
	}
	shown := said
	if on.OnLink {
		shown = append([]string{on.MAC}, said...)
	}
	if len(shown) == 0 {
		return observation{doubt: model.RefusedCannotTell, why: toldNothing}
	}
	w := observation{mac: shown[0], port: b.Heard.Port(shown[0])}
	isOther := func(mac string) bool { return !b.sameOwner(mac, w.mac) }
	switch i := slices.IndexFunc(shown, isOther); {
	case i > 0:
		w.doubt, w.why = model.RefusedContested, fmt.Sprintf("the address that this comes from is said to be %s's, and %s answers for it", shown[i], w.mac)
	case slices.ContainsFunc(on.Previous, isOther):
		w.doubt, w.why = model.RefusedContested, toldChanged
	case on.Lost:
		w.doubt, w.why = model.RefusedContested, toldLost
	}
	return w
}

func (b AddressRules) neighbour(client netip.Addr) (neighbour.Neighbour, error) {
	if b.Neighbours == nil || !client.IsValid() {
		return neighbour.Neighbour{}, nil
	}
	return b.Neighbours.At(client)
}

// said are the MAC addresses that an address is said to be of. What was heard alone counts
// only where nobody knows better, for anybody can ask for an address that he is not given.
func (b AddressRules) said(client netip.Addr) (macs []string) {
	if b.Leases != nil {
		if mac, ok := b.Leases.Holder(client); ok {
			macs = append(macs, mac)
		}
	}
	if b.Endpoint != nil {
		if mac, ok := b.Endpoint(client); ok {
			macs = append(macs, mac)
		}
	}
	if mac, ok := b.Heard.Holder(client); ok && len(macs) == 0 {
		macs = append(macs, mac)
	}
	return macs
}

// sameOwner reports whether two MAC addresses are the same, or of the same server.
func (b AddressRules) sameOwner(mac, other string) bool {
	if mac == other || b.Servers == nil {
		return mac == other
	}
	one, known := b.Servers.Find(mac)
	two, too := b.Servers.Find(other)
	return known && too && one.Server == two.Server
}
