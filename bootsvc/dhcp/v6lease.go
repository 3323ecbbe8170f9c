package dhcp

import (
	"cmp"
	"encoding/hex"
	"net/netip"
	"slices"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"

	"ingot/bootsvc/dhcp/lease"
	"ingot/bootsvc/netboot"
	"ingot/model"
)

// exchange6 is one packet that is being answered: who asks, and of which link.
type exchange6 struct {
	packet6
	table   *lease.Table
	network *network
	duid    []byte // that we go by
	card
	relay   netip.Addr      // the link-address of its relay; invalid = it is on our own link
	subnets []*lease.Subnet // of its link, the preferred first
	asker   lease.Query     // about nothing yet
	nths    []int           // by identity association, see nth
	now     time.Time
}

// decision6 is what is answered once leases are durable.
type decision6 struct {
	answer6
	leases []model.Lease
	asked  netboot.Answer // the boot file, or why there is none
}

// decide returns the answer to what a client asks on a network whose addresses we
// give.
func (x *exchange6) decide() (decision6, error) {
	switch x.kind {
	case dhcpv6.MessageTypeSolicit:
		return x.solicit(), nil
	case dhcpv6.MessageTypeRequest:
		return x.request(), nil
	case dhcpv6.MessageTypeRenew, dhcpv6.MessageTypeRebind:
		return x.renew()
	case dhcpv6.MessageTypeConfirm:
		return x.confirm()
	case dhcpv6.MessageTypeRelease:
		return x.giveBack(x.table.Release), nil
	case dhcpv6.MessageTypeDecline:
		return x.giveBack(x.decline), nil
	case dhcpv6.MessageTypeInformationRequest:
		return decision6{answer6: x.reply()}, nil
	default:
		return decision6{}, drop6Type
	}
}

// reply returns a Reply with what the client's link is told.
func (x *exchange6) reply() answer6 {
	a := answer6{kind: dhcpv6.MessageTypeReply}
	if len(x.subnets) > 0 {
		a.config = x.network.config(x.subnets[0])
	}
	return a
}

// solicit answers a Solicit: RFC 8415 §18.3.1. A client that asks for a rapid
// commit has its leases at once; all others are shown what they would get.
func (x *exchange6) solicit() decision6 {
	d := x.request()
	if d.rapid = len(d.leases) > 0; !d.rapid {
		d.kind = dhcpv6.MessageTypeAdvertise
	}
	return d
}

// request answers a Request: RFC 8415 §18.3.2.
func (x *exchange6) request() decision6 {
	d := decision6{answer6: x.reply()}
	for i, ia := range x.ias {
		if x.kind == dhcpv6.MessageTypeRequest && x.offLink(ia) {
			d.ias = append(d.ias, ia.refused(iana.StatusNotOnLink))
			continue
		}
		d.grant(x, i)
	}
	return d
}

// grant leases something to the i-th identity association, if it may be had.
func (d *decision6) grant(x *exchange6, i int) {
	l, err := x.lease(i)
	if err != nil {
		d.ias = append(d.ias, x.ias[i].refused(none6(x.ias[i].kind)))
		return
	}
	d.give(x, x.ias[i], l)
}

func (d *decision6) give(x *exchange6, ia ia6, l model.Lease) {
	d.ias = append(d.ias, given6{kind: ia.kind, id: ia.id, lease: lifetime6{prefixOf(l), l.Expires.Sub(l.Renewed)}})
	if x.asker.Binding {
		l.Arrived = x.kind == dhcpv6.MessageTypeSolicit || x.kind == dhcpv6.MessageTypeRequest
		d.leases = append(d.leases, l)
	}
}

func prefixOf(l model.Lease) netip.Prefix {
	if l.Bits > 0 {
		return netip.PrefixFrom(l.Address, l.Bits)
	}
	return netip.PrefixFrom(l.Address, 128)
}

func (ia ia6) refused(why iana.StatusCode) given6 {
	return given6{kind: ia.kind, id: ia.id, status: status6[why]}
}

// none6 is the status of an identity association of a kind that gets nothing.
func none6(kind dhcpv6.OptionCode) iana.StatusCode {
	if kind == dhcpv6.OptionIAPD {
		return iana.StatusNoPrefixAvail
	}
	return iana.StatusNoAddrsAvail
}

// offLink reports whether ia names an address that is none of the client's link.
func (x *exchange6) offLink(ia ia6) bool {
	return ia.kind != dhcpv6.OptionIAPD && slices.ContainsFunc(ia.has, func(p netip.Prefix) bool { return !x.onLink(p.Addr()) })
}

// onLink reports whether a is an address of the client's link.
func (x *exchange6) onLink(a netip.Addr) bool {
	return slices.ContainsFunc(x.subnets, func(s *lease.Subnet) bool { return s.CIDR.Contains(a) })
}

// lease finds what to lease to the i-th identity association, and holds it for a
// while.
func (x *exchange6) lease(i int) (model.Lease, error) {
	q, ok := x.query(i)
	if !ok {
		return model.Lease{}, lease.ErrExhausted
	}
	if derived, ok := x.derived(q); ok {
		q.Wish = derived
		return x.table.Take(q)
	}
	return x.table.Offer(q)
}

// query returns what the table is asked for the i-th identity association; false
// if it can get nothing.
func (x *exchange6) query(i int) (lease.Query, bool) {
	ia := x.ias[i]
	q, ok := x.about(ia)
	if !ok {
		return q, false
	}
	if q.Nth = x.nth(i, q); q.Nth < 0 {
		return q, false
	}
	for _, p := range ia.has {
		if fits(p, q) {
			q.Wish = p.Addr()
			break
		}
	}
	return q, true
}

// nth returns which of its interface's leases the i-th identity association is about. One that
// comes alone is about the first, so that firmware, iPXE and operating system, which have one
// each, share an address; those that come in one message have each their own, as far as an
// interface may have so many. It is -1 for those beyond.
func (x *exchange6) nth(i int, q lease.Query) int {
	if x.nths == nil {
		x.nths = make([]int, len(x.ias))
		if len(x.ias) == 1 {
			x.nths[0] = x.table.Nth(q, x.ias[0].names(q))
		} else {
			x.countOff(dhcpv6.OptionIANA)
			x.countOff(dhcpv6.OptionIAPD)
		}
	}
	return x.nths[i]
}

// countOff finds which leases the identity associations of a kind are about.
func (x *exchange6) countOff(kind dhcpv6.OptionCode) {
	var at []int
	var queries []lease.Query
	var names [][]netip.Addr
	for i, ia := range x.ias {
		if q, ok := x.about(ia); ok && ia.kind == kind {
			at, queries, names = append(at, i), append(queries, q), append(names, ia.names(q))
		}
	}
	if len(at) == 0 {
		return
	}
	for i, n := range x.table.Nths(queries, names) {
		x.nths[at[i]] = n
	}
}

// names returns the addresses, or prefixes, of q's kind that the client names.
func (ia ia6) names(q lease.Query) []netip.Addr {
	var all []netip.Addr
	for _, p := range ia.has {
		if fits(p, q) {
			all = append(all, p.Addr())
		}
	}
	return all
}

// about returns a query about ia, without a wish; false if there is nothing of its
// kind to have on its link. Temporary addresses (RFC 8415 §21.5) are not given.
func (x *exchange6) about(ia ia6) (lease.Query, bool) {
	q := x.asker
	q.IAID = ia.id
	switch {
	case ia.kind == dhcpv6.OptionIATA:
		return q, false
	case ia.kind == dhcpv6.OptionIAPD:
		at := slices.IndexFunc(x.subnets, func(s *lease.Subnet) bool { return s.Delegate.Bits > 0 })
		if at < 0 {
			return q, false
		}
		q.Subnets, q.Bits = x.subnets[at:at+1], x.subnets[at].Delegate.Bits
	}
	return q, len(q.Subnets) > 0
}

// query6 returns a query about what x asks for, but for its identity associations.
func (n service6) query6(x *exchange6) lease.Query {
	binds := x.kind != dhcpv6.MessageTypeSolicit || x.rapid
	return lease.Query{
		Network: n.leases, Subnets: x.subnets, MAC: x.mac,
		ClientID: hex.EncodeToString(x.clientID), Unproven: x.unproven, Unreserved: x.unproven, Now: x.now,
		Port: n.portOf6(x), Relay: x.seenBy(),
		Binding: binds, KnownOnly: !binds && n.isStoreAway(), // what binds gets no answer if it is not stored
	}
}

// portOf6 is portOf for DHCPv6: without relays in the configuration those are believed that are no
// relays at all.
func (n service6) portOf6(x *exchange6) model.RelayPort {
	if len(n.relays) == 0 {
		return model.RelayPort{}
	}
	return x.heardOn()
}

// seenBy returns what is shown of the relay that x came by.
func (x *exchange6) seenBy() model.LeaseRelay {
	if !x.relay.IsValid() {
		return model.LeaseRelay{}
	}
	return model.LeaseRelay{Address: x.relay, CircuitID: x.port(), RemoteID: model.ReadableIdentifier(x.heardOn().RemoteID)}
}

func fits(p netip.Prefix, q lease.Query) bool {
	return p.Bits() == q.Bits || q.Bits == 0 && p.Bits() == 128
}

// derived returns the address or prefix that the client's link makes for it, if
// its subnet derives any. A reservation goes first.
func (x *exchange6) derived(q lease.Query) (netip.Addr, bool) {
	s := x.network.config(q.Subnets[0])
	switch {
	case s.Derive == DeriveNone || !x.relay.IsValid() || !s.CIDR.Contains(x.relay):
		return netip.Addr{}, false
	case q.Bits > 0:
		return x.derivedPrefix(s)
	case x.table.Reserved(q).IsValid():
		return netip.Addr{}, false
	}
	return derive(s.Derive, x.relay, cmp.Or(x.mac, duidMAC(x.clientID)))
}

// derivedPrefix returns the prefix of the link-address itself, which onmetal
// delegates where none are told.
func (x *exchange6) derivedPrefix(s *Subnet) (netip.Addr, bool) {
	if s.Derive != DeriveOnmetal || s.Delegate.From.IsValid() {
		return netip.Addr{}, false
	}
	return netip.PrefixFrom(x.relay, s.Delegate.Bits).Masked().Addr(), true
}

// derive returns the address that a rule makes of a relay's link-address and a
// MAC address.
func derive(rule Derivation, link netip.Addr, mac string) (netip.Addr, bool) {
	switch rule {
	case DeriveOnmetal:
		next := link.Next()
		return next, next.IsValid()
	case DeriveStateless:
		m, ok := model.ParseMAC(mac)
		b := link.As16()
		copy(b[10:], m[:])
		return netip.AddrFrom16(b), ok
	case DeriveNone:
	}
	return netip.Addr{}, false
}

// renew answers a Renew or a Rebind: RFC 8415 §18.3.4, §18.3.5.
func (x *exchange6) renew() (decision6, error) {
	d := decision6{answer6: x.reply()}
	for i := range x.ias {
		d.extend(x, i)
	}
	if len(d.ias) == 0 {
		return d, drop6Nothing
	}
	return d, nil
}

// extend prolongs what the i-th identity association has.
func (d *decision6) extend(x *exchange6, i int) {
	ia := x.ias[i]
	q, ok := x.query(i)
	switch {
	case !ok && (len(ia.has) > 0 || q.Nth >= 0):
		d.ias = append(d.ias, ia.refused(iana.StatusNoBinding))
		return
	case len(ia.has) == 0: // it has been without since its Request: RFC 8415 §18.2.4
		d.grant(x, i)
		return
	}
	l, state := x.renewal(ia, q)
	switch state {
	case lease.RenewalKnown, lease.RenewalFree:
		d.give(x, ia, l)
	case lease.RenewalElsewhere, lease.RenewalOutside:
		if l, err := x.lease(i); err == nil {
			d.give(x, ia, l)
		} else {
			d.ias = append(d.ias, given6{kind: ia.kind, id: ia.id})
		}
	case lease.RenewalTaken:
		d.ias = append(d.ias, ia.refused(iana.StatusNoBinding))
		return
	case lease.RenewalUnknown:
		// A client that rebinds asks all servers, of which another may know it.
		if x.kind == dhcpv6.MessageTypeRenew {
			d.ias = append(d.ias, ia.refused(iana.StatusNoBinding))
		}
		return
	}
	d.ias[len(d.ias)-1].take(ia.has)
}

// take ends what a client has and was not given: RFC 8415 §18.3.4.
func (g *given6) take(has []netip.Prefix) {
	for _, p := range has {
		if p != g.lease.prefix && !slices.Contains(g.ended, p) {
			g.ended = append(g.ended, p)
		}
	}
}

// renewal asks the table for what ia has, and returns the first that it may keep,
// or else, without a lease, the best that can be said of any.
func (x *exchange6) renewal(ia ia6, q lease.Query) (none model.Lease, state lease.RenewalState) {
	derived, isDerived := x.derived(q)
	for _, p := range ia.has {
		said, l := lease.RenewalOutside, model.Lease{}
		q.Wish = p.Addr()
		switch {
		case !fits(p, q):
		case isDerived:
			l, said = x.renewDerived(q, derived)
		default:
			l, said = x.table.Renewal(q)
		}
		if said >= lease.RenewalFree {
			return l, said
		}
		state = max(state, said)
	}
	return none, state
}

func (x *exchange6) renewDerived(q lease.Query, derived netip.Addr) (model.Lease, lease.RenewalState) {
	if q.Wish != derived {
		return model.Lease{}, lease.RenewalElsewhere
	}
	l, err := x.table.Take(q)
	if err != nil {
		return model.Lease{}, lease.RenewalTaken
	}
	return l, lease.RenewalFree
}

// confirm answers a Confirm: RFC 8415 §18.3.3. A client that slept while its
// address went to another is sent to ask anew too.
func (x *exchange6) confirm() (decision6, error) {
	d := decision6{answer6: x.reply()}
	d.status = status6[iana.StatusSuccess]
	named := false
	for _, ia := range x.ias {
		if ia.kind == dhcpv6.OptionIAPD { // addresses are confirmed, prefixes are not: RFC 8415 §18.2.3
			continue
		}
		for _, p := range ia.has {
			named = true
			q, _ := x.about(ia)
			q.Wish = p.Addr()
			if !x.onLink(p.Addr()) || x.table.IsOthers(q) {
				d.status = status6[iana.StatusNotOnLink]
			}
		}
	}
	if !named {
		return d, drop6Nothing
	}
	return d, nil
}

// decline sets an address aside that its client found in use, or refuses with the text of a status (RFC 8415 §21.13). How soon
// it declines does not count, because duplicate address detection (RFC 4862 §5.4) often ends within a second.
func (x *exchange6) decline(q lease.Query) (*model.Lease, bool) {
	l, ok := x.table.Decline(q, x.reason != "")
	if ok {
		x.network.noteDecline(q, x.reason != "", x.reason, l)
	}
	return l, ok
}

// giveBack answers a Release or a Decline (RFC 8415 §18.3.7, §18.3.8): it succeeds
// whatever it names, and is told what was not its own.
func (x *exchange6) giveBack(back func(lease.Query) (*model.Lease, bool)) decision6 {
	d := decision6{answer6: answer6{kind: dhcpv6.MessageTypeReply, status: status6[iana.StatusSuccess]}}
	for _, ia := range x.ias {
		own := false
		for _, p := range ia.has {
			q, ok := x.about(ia)
			if q.Wish = p.Addr(); !ok || !fits(p, q) {
				continue
			}
			q.Nth = x.table.Nth(q, []netip.Addr{q.Wish})
			l, ok := back(q)
			if own = own || ok; l != nil {
				d.leases = append(d.leases, *l)
			}
		}
		if !own {
			d.ias = append(d.ias, ia.refused(iana.StatusNoBinding))
		}
	}
	return d
}
