package lease

import (
	"cmp"
	"container/heap"
	"net/netip"
	"slices"
	"time"

	"ingot/model"
)

// devices are entries by their owner: a MAC address, if it is known, whatever client
// identifier or DUID it shows (RFC 2131 §4.2 would have it otherwise, but firmware,
// iPXE and the operating system of one machine show three). It has one of each kind
// on each link: a machine may be on several, by one network interface, as VLANs. The key is
// that of deviceID.
type devices map[client][]*entry

func (d devices) add(e *entry) { d[e.device.client] = append(d[e.device.client], e) }

func (d devices) drop(e *entry) {
	left := slices.DeleteFunc(d[e.device.client], func(other *entry) bool { return other == e })
	if len(left) == 0 {
		delete(d, e.device.client)
		return
	}
	d[e.device.client] = left
}

// on returns what a device has of a kind on the link that has subnets, or nil.
func (d devices) on(link []*Subnet, id deviceID, k kind) *entry {
	return entryOn(d[id.client], link, id, k)
}

func entryOn(all []*entry, link []*Subnet, id deviceID, k kind) *entry {
	for _, e := range all {
		if e.device == id && e.kind() == k && slices.Contains(link, e.pool.subnet) {
			return e
		}
	}
	return nil
}

// siblings returns the other addresses of e's kind that its device has on its link.
func (d devices) siblings(e *entry) []*entry {
	var others []*entry
	for _, other := range d[e.device.client] {
		if other != e && other.device == e.device && other.kind() == e.kind() && slices.Contains(e.pool.subnet.link(), other.pool.subnet) {
			others = append(others, other)
		}
	}
	return others
}

type slot struct {
	address netip.Addr
	bits    int
}

// index has what is leased, offered or set aside, by address and by device. The table's lock guards it.
type index struct {
	bySlot  map[slot]*entry
	leases  devices       // those that are leased, ended or not
	offers  devices       // those that are only offered
	offered []*entry      // offers, about in the order they end
	gone    []model.Lease // that were forgotten, and are stored still
}

func newIndex() index {
	return index{bySlot: make(map[slot]*entry), leases: make(devices), offers: make(devices)}
}

// insert adds an offer of a to the client. Its former offer on the link is
// taken back.
func (x *index) insert(p *pool, a netip.Addr, q Query) *entry {
	e := &entry{mac: q.MAC, nth: q.Nth, device: q.device(), address: a, pool: p, index: -1}
	for _, before := range x.offers.siblings(e) {
		x.remove(before)
	}
	x.bySlot[slot{a, p.bits}] = e
	x.offers.add(e)
	x.offered = append(x.offered, e)
	p.entries++
	p.offers++
	return e
}

// keepOffer keeps e for the client that asks, for a while. In a pool that is full of offers the
// while is short: a flood of MAC addresses that do not exist is soon over.
func (x *index) keepOffer(e *entry, q Query) {
	e.pool.unrequested.note(e, q.Binding)
	while := offerFor
	if e.pool.offers > e.pool.limit/2 {
		while = shortOffer
	}
	e.offeredUntil, e.asker, e.returned = q.Now.Add(while).Unix(), q.association(), false
	if e.index >= 0 {
		heap.Fix(&e.pool.ending, e.index)
	}
}

// dropOffers forgets offers that no client accepted. Each call checks a few, one more
// than a call can add, so that all are checked in turn.
func (x *index) dropOffers(now time.Time) {
	for range min(4, len(x.offered)) {
		e := x.offered[0]
		x.offered = x.offered[1:]
		switch {
		case e.removed, e.expires != 0: // it is gone already, or was taken
		case e.free(now):
			x.remove(e)
		default:
			x.offered = append(x.offered, e)
		}
	}
}

// set makes e the lease l, and the only one of its device on its link.
func (x *index) set(e *entry, l model.Lease) {
	offered := e.expires == 0
	e.pool.unrequested.drop(e)
	switch {
	case offered:
		x.offers.drop(e)
		e.pool.offers--
	case l.Declined:
		x.leases.drop(e)
	}
	if l.Declined && !e.declined {
		e.pool.declined++
	}
	e.shares = e.shared(l)
	e.mac, e.nth, e.device = l.MAC, l.Nth, deviceOf(l)
	e.clientID, e.iaid, e.declined, e.unproven = l.ClientID, l.IAID, l.Declined, l.Unproven
	e.relay = l.Relay
	e.since, e.renewed, e.expires, e.offeredUntil = seconds(l.Since), seconds(l.Renewed), max(seconds(l.Expires), 1), 0
	if e.index < 0 {
		heap.Push(&e.pool.ending, e)
	} else {
		heap.Fix(&e.pool.ending, e.index)
	}
	if e.declined {
		return
	}
	for _, other := range slices.Concat(x.leases.siblings(e), x.offers.siblings(e)) {
		x.remove(other)
	}
	if offered {
		x.leases.add(e)
	}
}

func (x *index) remove(e *entry) {
	p := e.pool
	e.removed = true
	delete(x.bySlot, slot{e.address, p.bits})
	p.unrequested.drop(e)
	x.leases.drop(e)
	x.offers.drop(e)
	if e.index >= 0 {
		heap.Remove(&p.ending, e.index)
	}
	p.entries--
	if e.expires == 0 {
		p.offers--
	}
	if e.declined {
		p.declined--
	}
	p.giveBack(e.address)
}

// takeGone returns some of the forgotten leases that are still stored.
func (x *index) takeGone() []model.Lease {
	n := min(len(x.gone), maxGone)
	some := slices.Clone(x.gone[:n])
	x.gone = x.gone[n:]
	return some
}

func (x *index) storable(l model.Lease) error {
	e := x.bySlot[slot{l.Address, l.Bits}]
	switch {
	case l.Expires.IsZero() && (e == nil || e.expires == 0): // no client has it
		return nil
	case e == nil, e.device != deviceOf(l), e.declined != l.Declined:
		return errTaken
	case l.Expires.IsZero() && !e.returned:
		return errKept
	}
	return nil
}

// forgetOne makes room in p, if a lease has ended that is not kept.
func (x *index) forgetOne(p *pool, keep func(mac string) bool, now time.Time) bool {
	e, ok := p.longestEnded(keep, now)
	if ok {
		x.gone = append(x.gone, e.forgotten())
		x.remove(e)
	}
	return ok
}

// nthOf returns which lease of its interface q is about, -1 if it has none yet. A client whose
// MAC address nothing shows has its leases by identity association, one each.
func (x *index) nthOf(q Query, names []netip.Addr, taken [maxNth]bool) int {
	who := q.device().client
	leases, offers := x.leases[who], x.offers[who]
	heldBy := func(q Query) *entry {
		return cmp.Or(entryOn(leases, q.Subnets, q.device(), q.kind()), entryOn(offers, q.Subnets, q.device(), q.kind()))
	}
	switch {
	case len(leases)+len(offers) == 0, q.MAC == "" && heldBy(q) == nil:
		return -1
	case q.MAC == "":
		return 0
	}
	had := -1
	for n := range maxNth {
		q.Nth = n
		e := heldBy(q)
		switch {
		case e == nil || taken[n]:
		case slices.Contains(names, e.address):
			return n
		case had < 0 && (e.isHeldBy(q.association()) || e.asker == q.association()):
			had = n
		}
	}
	return had
}

func (x *index) poolFacts(p *pool, now time.Time) model.PoolFacts {
	f := model.PoolFacts{
		Network: p.subnet.network.Name, Subnet: p.subnet.CIDR.String(),
		Size: p.size(), Exhausted: p.exhausted, Refused: uint64(len(p.refused)),
	}
	for _, e := range p.ending {
		if e.live(now) {
			f.Used++
		}
	}
	for _, a := range p.reserved {
		if e := x.bySlot[slot{a, 0}]; e == nil || !e.live(now) {
			f.Used++
		}
	}
	return f
}
