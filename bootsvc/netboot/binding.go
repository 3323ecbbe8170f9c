package netboot

import (
	"fmt"
	"net/netip"
	"slices"

	"ingot/model"
)

// Binding says from which addresses a server may use its boot ticket, beside the
// token that it must show. UUIDs are no secret and tokens pass over the network in the
// clear, so what runs on one server could otherwise read what the next one boots, and
// use its ticket up.
type Binding string

// The bindings. None of them lets a server use another server's ticket from an address
// that is leased to it.
const (
	// BindLeases: from the addresses that are leased to the server, and from those that
	// it makes of its own MAC address over IPv6. Where none is leased to it the token
	// alone counts, for Ingot may not see that network's leases. The script, which tells
	// the token, is given to nobody without a lease on a network where Ingot leases: the
	// server that is to boot has none before it asks for one.
	BindLeases Binding = "leases"
	// BindFirst is for networks whose leases Ingot does not see: from the address, one of
	// each IP version, that used the ticket first.
	BindFirst Binding = "first-client"
	// BindNothing: from anywhere.
	BindNothing Binding = "nothing"
)

// ParseBinding returns the binding of a name; an empty one is BindLeases.
func ParseBinding(name string) (Binding, error) {
	switch b := Binding(name); b {
	case "":
		return BindLeases, nil
	case BindLeases, BindFirst, BindNothing:
		return b, nil
	}
	return "", fmt.Errorf("%q binds no boot ticket: allowed are %s, %s and %s", name, BindLeases, BindFirst, BindNothing)
}

// Tenancy is whose an address is: by the lease on it or, over IPv6, by the MAC address
// that it is made of.
type Tenancy string

// The tenancies of an address, as seen from one server.
const (
	TenantNone    Tenancy = ""        // nobody is known to have it
	TenantOwn     Tenancy = "own"     // one of the server's network interfaces
	TenantOther   Tenancy = "other"   // one of another server's
	TenantUnknown Tenancy = "unknown" // one that no server is known to have
)

// Bound is what is known of a request that bears on a server's ticket.
type Bound struct {
	Binding Binding
	Client  netip.Addr // who asks, neither mapped nor zoned
	Tenant  Tenancy    // of Client
	// Fresh: the server's network interfaces need not be known yet, for it has no ticket
	// or one for its discovery.
	Fresh bool
	// Leased are the addresses that are leased to the server.
	Leased []netip.Addr
	// First is the first client of Client's IP version that used the ticket, if any.
	First netip.Addr
	// Tokenless: what is asked for tells the ticket's token, and is given without one.
	Tokenless bool
	// Leasing: Ingot leases the addresses of the network that Client is on.
	Leasing bool
}

// What those are told who are refused.
const (
	toldOther   = "the address that this comes from is leased to another server: each is served its own only"
	toldUnknown = "the address that this comes from is leased to a network interface that is not known to be this server's: its BMC or its discovery has to report it first"
	toldLeased  = "this server holds a lease on another address than the one that this comes from: it is served at its own only"
	toldNoLease = "the address that this comes from is leased to nobody, on a network where Ingot leases them: a server asks for its boot script from its lease"
	toldFirst   = "another address than the one that this comes from used this boot ticket first: only that one is served until the ticket ends"
)

// Refusal returns why the ticket may not be used, for the record and for people, or
// nothing when it may.
func (b Bound) Refusal() (model.TicketRefusal, string) {
	switch {
	case b.Tenant == TenantOther:
		return model.RefusedAddress, toldOther
	case b.Tenant == TenantOwn, b.Binding == BindNothing:
		return "", ""
	case b.Tenant == TenantUnknown && b.Fresh:
		return "", ""
	case b.Tenant == TenantUnknown:
		return model.RefusedAddress, toldUnknown
	case b.Binding == BindFirst:
		return b.unlikeFirst()
	}
	return b.unlikeLeased()
}

// unlikeFirst refuses all clients but the first.
func (b Bound) unlikeFirst() (model.TicketRefusal, string) {
	if b.First.IsValid() && b.First != b.Client {
		return model.RefusedAddress, toldFirst
	}
	return "", ""
}

// unlikeLeased refuses a client without a lease where the server has one, of whichever
// IP version: all on a segment have link-local addresses of IPv6, and whoever was
// refused over IPv4 would ask from there. The machine that Ingot runs on asks for
// others, and needs no lease.
func (b Bound) unlikeLeased() (model.TicketRefusal, string) {
	switch {
	case b.Client.IsLoopback():
	case len(b.Leased) > 0:
		return model.RefusedAddress, toldLeased
	case b.Tokenless && b.Leasing:
		return model.RefusedAddress, toldNoLease
	}
	return "", ""
}

// Leases is what the lease table knows.
type Leases interface {
	// Holder returns the MAC address that holds a live lease on an address.
	Holder(addr netip.Addr) (mac string, ok bool)
	// Leased returns the addresses of both IP versions that a MAC address holds live
	// leases on.
	Leased(mac string) []netip.Addr
}

// Servers is where servers are found by their MAC addresses, and those by their server.
type Servers interface {
	Offers
	// MACs returns the MAC addresses of a server's network interfaces.
	MACs(server model.ServerName) []string
}

// Bindings decides from which addresses servers may use their tickets, by a lease table
// that changes all the time. It is safe for concurrent use if what it asks is.
type Bindings struct {
	Binding Binding // empty = BindLeases
	Leases  Leases  // nil = none are known
	Servers Servers // needed with Leases
	// Leasing reports whether the addresses of the network that one is on are leased by
	// who keeps Leases; nil = of none that is known.
	Leasing func(netip.Addr) bool
}

// At returns the boot ticket of the known server that holds the lease on an address.
func (b Bindings) At(addr netip.Addr) (model.Offer, bool) {
	mac, ok := b.holder(plain(addr))
	if !ok {
		return model.Offer{}, false
	}
	return b.Servers.Offer(mac)
}

// Refusal returns why a client may not use a server's ticket, for the record and for
// people, or nothing when it may.
func (b Bindings) Refusal(o model.Offer, client netip.Addr) (model.TicketRefusal, string) {
	return b.bound(o, plain(client)).Refusal()
}

// ScriptRefusal is Refusal for the script, which tells the token to who shows none.
func (b Bindings) ScriptRefusal(o model.Offer, client netip.Addr) (model.TicketRefusal, string) {
	at := b.bound(o, plain(client))
	at.Tokenless, at.Leasing = true, b.Leasing != nil && b.Leasing(at.Client)
	return at.Refusal()
}

// bound gathers what is to be known. What most requests do not need is left out: the
// server's own leases, for a client that holds one.
func (b Bindings) bound(o model.Offer, client netip.Addr) Bound {
	at := Bound{
		Binding: b.Binding,
		Client:  client,
		Tenant:  b.tenant(o.Server, client),
		Fresh:   o.Ticket == nil || o.Ticket.Purpose == model.PurposeDiscovery,
	}
	switch {
	case at.Tenant != TenantNone, b.Binding == BindNothing:
	case b.Binding == BindFirst:
		at.First = firstClient(o, client)
	default:
		at.Leased = b.leased(o.Server)
	}
	return at
}

// tenant returns whose client is, as seen from a server. A MAC address that several
// servers are said to have is each one's own.
func (b Bindings) tenant(server model.ServerName, client netip.Addr) Tenancy {
	mac, leased := b.holder(client)
	if !leased {
		made, ok := madeOf(client)
		if !ok || b.Servers == nil {
			return TenantNone
		}
		mac = made
	}
	holder, known := b.Servers.Offer(mac)
	switch {
	case known && holder.Server == server, !known && slices.Contains(b.Servers.MACs(server), mac):
		return TenantOwn
	case known:
		return TenantOther
	case leased:
		return TenantUnknown
	}
	return TenantNone
}

// madeOf returns the MAC address that an IPv6 address was made of, by the modified
// EUI-64 format of its interface identifier (RFC 4291, appendix A).
func madeOf(a netip.Addr) (mac string, ok bool) {
	if !a.Is6() {
		return "", false
	}
	id := a.As16()
	if id[11] != 0xff || id[12] != 0xfe {
		return "", false
	}
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", id[8]^2, id[9], id[10], id[13], id[14], id[15]), true
}

func (b Bindings) holder(addr netip.Addr) (mac string, ok bool) {
	if b.Leases == nil {
		return "", false
	}
	return b.Leases.Holder(addr)
}

// leased returns the addresses that are leased to a server.
func (b Bindings) leased(server model.ServerName) []netip.Addr {
	if b.Leases == nil {
		return nil
	}
	var all []netip.Addr
	for _, mac := range b.Servers.MACs(server) {
		all = append(all, b.Leases.Leased(mac)...)
	}
	return all
}

// firstClient returns the first client of an address's IP version that was given
// something with o's ticket. The uses of a ticket are written down a little late, so
// the client of its last boot stage, which is written down before it is served, stands
// in for one that is not there yet.
func firstClient(o model.Offer, like netip.Addr) netip.Addr {
	p := o.Progress
	if o.Ticket == nil || p == nil || p.Ticket != o.Ticket.ID {
		return netip.Addr{}
	}
	for _, u := range p.Uses {
		if addr, err := netip.ParseAddr(u.Client); err == nil && u.Served() && identifies(u.What) && addr.Is4() == like.Is4() {
			return addr
		}
	}
	if addr, err := netip.ParseAddr(p.Client); err == nil && addr.Is4() == like.Is4() && !(p.ScriptAt.IsZero() && p.IgnitionAt.IsZero()) {
		return addr
	}
	return netip.Addr{}
}

// identifies reports whether who was given a thing is the server from then on. An image
// is the same for many, and firmware and iPXE may ask for it from other addresses.
func identifies(what model.TicketThing) bool {
	return what == model.ThingScript || what == model.ThingIgnition || what == model.ThingCloudInit
}

// plain returns an address as lease tables know it.
func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }
