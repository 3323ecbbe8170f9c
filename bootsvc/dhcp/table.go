package dhcp

import (
	"container/heap"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"ingot/model"
)

// How long things are kept that a client may or may not come back for.
const (
	offerFor     = time.Minute      // an offer that was not taken yet
	shortOffer   = 10 * time.Second // the same when a pool is full of offers
	setAside     = 10 * time.Minute // an address that somebody else was found to use
	keptFor      = 10 * time.Minute // an ended lease of a Reserved server, before it is looked at again
	maxDeclines  = 3                // that one MAC address may make in setAside
	maxDecliners = 4096             // MAC addresses whose declines are counted
	maxRefused   = 1024             // MAC addresses of the refused that are counted
)

// errExhausted is returned when no address is left to give.
var errExhausted = errors.New("no address is left")

// errTaken is returned for a lease whose address has gone to another device
// meanwhile.
var errTaken = errors.New("the address is another device's now")

// errKept is returned for a lease that was given back, and that its client has
// asked for again meanwhile.
var errKept = errors.New("its device has asked for the address again")

// query is what a client asks of the table.
type query struct {
	network *network
	// subnets are those of the client's link, all of one family, the preferred first.
	subnets  []*subnet
	mac      string // canonical
	clientID string // hexadecimal, for people
	iaid     uint32
	wish     netip.Addr // the address asked for; invalid = none
	bits     int        // length of the prefix asked for, 0 = an address
	now      time.Time
}

// kind tells apart what one MAC address has one of on each network.
type kind uint8

const (
	kindV4 kind = iota
	kindV6
	kindPrefix
	kinds
)

// kindOf returns the kind of an address or prefix.
func kindOf(a netip.Addr, bits int) kind {
	switch {
	case bits > 0:
		return kindPrefix
	case a.Is4():
		return kindV4
	}
	return kindV6
}

// holder is who a lease belongs to: the MAC address, whatever client identifier or
// DUID it shows (RFC 2131 §4.2 would have it otherwise, but firmware, iPXE and the
// operating system of one machine show three).
type holder struct {
	network *network
	mac     string
	kind    kind
}

// slot is what at most one device has.
type slot struct {
	address netip.Addr
	bits    int
}

// renewalState is what the table says to an address that a client names.
type renewalState int

const (
	// renewalOutside: it lies in none of the client's subnets.
	renewalOutside renewalState = iota
	// renewalUnknown: it lies in a subnet of the client's, but is none that we give.
	renewalUnknown
	// renewalTaken: somebody else has it, or it is reserved for somebody else.
	renewalTaken
	// renewalElsewhere: this client has, or is to have, another address.
	renewalElsewhere
	// renewalFree: nobody has it, so this client may; it is held for it now. So
	// addresses survive a lost store.
	renewalFree
	// renewalKnown: it is this client's.
	renewalKnown
)

// Reservation is an address that is kept for one MAC address.
type Reservation struct {
	MAC     string // canonical
	Name    string // of the Endpoint, for the log
	Address netip.Addr
}

// table knows who has which address. It lives in memory only: what must outlast a
// restart goes through the committer. It is safe for concurrent use.
type table struct {
	networks []*network
	keep     func(mac string) bool
	changed  func() // a pool ran out, or has room again
	log      *slog.Logger

	mu       sync.Mutex
	bySlot   map[slot]*entry
	leases   map[holder]*entry // those that are leased, ended or not
	offers   map[holder]*entry // those that are only offered
	offered  []*entry          // offers, about in the order they end
	byMAC    map[string][]Reservation
	reserved map[netip.Addr]Reservation
	own      map[netip.Addr]bool      // addresses of this machine
	declines map[string]*declineCount // by MAC address
	warned   map[netip.Addr]bool      // reservations that somebody else was said to hold
}

// declineCount is how often a MAC address declined since.
type declineCount struct {
	since time.Time
	count int
}

// newTable returns an empty table of networks. keep and changed may be nil; keep
// is called with the table locked.
func newTable(networks []*network, keep func(mac string) bool, changed func(), log *slog.Logger) *table {
	if keep == nil {
		keep = func(string) bool { return false }
	}
	if changed == nil {
		changed = func() {}
	}
	return &table{
		networks: networks, keep: keep, changed: changed, log: log,
		bySlot: make(map[slot]*entry), leases: make(map[holder]*entry), offers: make(map[holder]*entry),
		own: make(map[netip.Addr]bool), declines: make(map[string]*declineCount), warned: make(map[netip.Addr]bool),
	}
}

// holder returns who asks.
func (q query) holder() holder {
	k := kindV6
	switch {
	case q.bits > 0:
		k = kindPrefix
	case len(q.subnets) > 0 && q.subnets[0].CIDR.Addr().Is4():
		k = kindV4
	}
	return holder{q.network, q.mac, k}
}

// onLink returns the subnet of the client's link that a lies in. A delegated
// prefix lies in where it is delegated from.
func (q query) onLink(a netip.Addr) (*subnet, bool) {
	for _, s := range q.subnets {
		if s.CIDR.Contains(a) || q.bits > 0 && s.prefixes != nil && s.prefixes.contains(a) {
			return s, true
		}
	}
	return nil, false
}

// offer picks an address for a client and holds it for a minute: what is reserved
// for it, else what it has or had, what it was offered, what it wishes for, one
// that nobody has had, the one whose lease ended first.
func (t *table) offer(q query) (model.Lease, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropOffers(q.now)
	e := t.pick(q)
	if e == nil {
		t.refuse(q)
		return model.Lease{}, errExhausted
	}
	t.hold(e, q.now)
	return t.lease(e, q), nil
}

// pick finds an address for offer, or nil.
func (t *table) pick(q query) *entry {
	if e := t.pickReserved(q); e != nil {
		return e
	}
	h := q.holder()
	for _, e := range []*entry{t.leases[h], t.offers[h]} {
		if e != nil && t.mayKeep(e, q) {
			return e
		}
	}
	if s, ok := q.onLink(q.wish); ok {
		if p := s.poolOf(q.wish, q.bits); p.ranged && p.bits == q.bits && p.entries < p.limit && t.fresh(p, q.wish) {
			return t.insert(p, q.wish, q)
		}
	}
	for _, s := range q.subnets {
		p := s.pool(q.bits)
		if p == nil {
			continue
		}
		if a, ok := p.fresh(func(a netip.Addr) bool { return t.fresh(p, a) }); ok {
			t.relieve(p)
			return t.insert(p, a, q)
		}
	}
	return t.pickEnded(q)
}

// pickReserved finds the address that is reserved for the client on its link. It
// stays with who holds it now until that lease ends.
func (t *table) pickReserved(q query) *entry {
	r, s, ok := t.reservation(q)
	if !ok {
		return nil
	}
	e := t.bySlot[slot{r.Address, 0}]
	switch {
	case e == nil:
	case e.mac == q.mac && !e.declined:
		return e
	case t.holds(e, q.now):
		t.warnHeld(r, e)
		return nil
	default:
		t.remove(e)
	}
	return t.insert(s.poolOf(r.Address, 0), r.Address, q)
}

// warnHeld says once that a reservation waits for a lease to end.
func (t *table) warnHeld(r Reservation, e *entry) {
	if t.warned[r.Address] {
		return
	}
	t.warned[r.Address] = true
	t.log.Warn("a reserved address is still another device's: its own device gets another until that lease ends",
		"endpoint", r.Name, "address", r.Address, "mac", r.MAC, "holder", e.mac, "declined", e.declined, "until", time.Unix(e.expires, 0).UTC())
}

// reservation returns the client's reservation on its link.
func (t *table) reservation(q query) (Reservation, *subnet, bool) {
	if q.bits > 0 {
		return Reservation{}, nil, false
	}
	for _, r := range t.byMAC[q.mac] {
		if s, ok := q.onLink(r.Address); ok && !t.own[r.Address] && !s.special(r.Address) {
			return r, s, true
		}
	}
	return Reservation{}, nil, false
}

// mayKeep reports whether a client may go on with what it has or was offered.
func (t *table) mayKeep(e *entry, q query) bool {
	if _, ok := q.onLink(e.address); !ok || e.pool.bits != q.bits || e.declined || t.own[e.address] {
		return false
	}
	return !t.reservedForOther(e.address, q.mac) || t.holds(e, q.now)
}

// holds reports whether e is held even against a reservation: its lease has not
// ended, or it is a Reserved server's.
func (t *table) holds(e *entry, now time.Time) bool {
	return e.live(now) || e.expires > 0 && !e.declined && t.keep(e.mac)
}

// reservedForOther reports whether a is kept for another MAC address.
func (t *table) reservedForOther(a netip.Addr, mac string) bool {
	r, ok := t.reserved[a]
	return ok && r.MAC != mac
}

// fresh reports whether a may be given to anybody who asks for p.
func (t *table) fresh(p *pool, a netip.Addr) bool {
	_, used := t.bySlot[slot{a, p.bits}]
	if used || p.bits > 0 {
		return !used
	}
	_, reserved := t.reserved[a]
	return !reserved && !t.own[a] && !p.subnet.special(a)
}

// pickEnded finds the address whose lease ended first.
func (t *table) pickEnded(q query) *entry {
	for _, s := range q.subnets {
		p := s.pool(q.bits)
		if p == nil {
			continue
		}
		for {
			e, ok := p.longestEnded(t.keep, q.now)
			if !ok {
				break
			}
			a := e.address
			t.remove(e)
			if t.fresh(p, a) {
				t.relieve(p)
				return t.insert(p, a, q)
			}
		}
	}
	return nil
}

// take holds q.wish itself for a client, in a range or not, unless somebody else
// has it: for what is derived and not chosen.
func (t *table) take(q query) (model.Lease, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropOffers(q.now)
	s, e := t.derivedFrom(q), t.bySlot[slot{q.wish, q.bits}]
	switch {
	case s == nil:
		return model.Lease{}, errExhausted
	case e == nil:
	case e.mac == q.mac && !e.declined:
		t.hold(e, q.now)
		return t.lease(e, q), nil
	case !e.free(q.now) || t.keep(e.mac):
		return model.Lease{}, errTaken
	default:
		t.remove(e)
	}
	if q.bits == 0 && (t.reservedForOther(q.wish, q.mac) || t.own[q.wish]) {
		return model.Lease{}, errTaken
	}
	p := s.poolOf(q.wish, q.bits)
	if p.entries >= p.limit && !t.forgetOne(p, q.now) {
		return model.Lease{}, errExhausted
	}
	e = t.insert(p, q.wish, q)
	t.hold(e, q.now)
	return t.lease(e, q), nil
}

// derivedFrom returns the subnet that what was derived belongs to: a prefix need
// not lie in the subnet that it is delegated on.
func (t *table) derivedFrom(q query) *subnet {
	if s, ok := q.onLink(q.wish); ok {
		return s
	}
	if q.bits > 0 && len(q.subnets) > 0 {
		return q.subnets[0]
	}
	return nil
}

// forgetOne makes room in p.
func (t *table) forgetOne(p *pool, now time.Time) bool {
	e, ok := p.longestEnded(t.keep, now)
	if ok {
		t.remove(e)
	}
	return ok
}

// renewal says whether q.wish is, or may be, the client's. When it is known or
// free it is held, and the lease is as it will be once it is committed.
func (t *table) renewal(q query) (model.Lease, renewalState) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropOffers(q.now) // of clients that name an address without having asked for an offer
	e, state := t.renew(q)
	if state < renewalFree {
		return model.Lease{}, state
	}
	t.hold(e, q.now)
	return t.lease(e, q), state
}

// renew decides renewal.
func (t *table) renew(q query) (*entry, renewalState) {
	s, ok := q.onLink(q.wish)
	if !ok {
		return nil, renewalOutside
	}
	if r, _, ok := t.reservation(q); ok && r.Address != q.wish {
		if other := t.bySlot[slot{r.Address, 0}]; other == nil || other.mac == q.mac && !other.declined || !t.holds(other, q.now) {
			return nil, renewalElsewhere
		}
	}
	e := t.bySlot[slot{q.wish, q.bits}]
	if e != nil && e.declined && e.free(q.now) {
		t.remove(e)
		e = nil
	}
	if e != nil {
		switch {
		case e.mac != q.mac || e.declined || !t.mayKeep(e, q):
			return nil, renewalTaken
		case e.expires == 0:
			return e, renewalFree
		}
		return e, renewalKnown
	}
	if own := t.leases[q.holder()]; own != nil && own.live(q.now) {
		if _, ok := q.onLink(own.address); ok {
			return nil, renewalElsewhere
		}
	}
	return t.renewFree(s, q)
}

// renewFree decides about an address that nobody has.
func (t *table) renewFree(s *subnet, q query) (*entry, renewalState) {
	p := s.poolOf(q.wish, q.bits)
	r, _, reserved := t.reservation(q)
	mine := reserved && r.Address == q.wish
	switch {
	case q.bits == 0 && t.reservedForOther(q.wish, q.mac):
		return nil, renewalTaken
	case !mine && (!p.ranged || p.bits != q.bits || !t.fresh(p, q.wish)):
		return nil, renewalUnknown
	case p.entries >= p.limit && !t.forgetOne(p, q.now):
		return nil, renewalUnknown
	}
	return t.insert(p, q.wish, q), renewalFree
}

// lease returns e as the lease that q asks for, from now on.
func (t *table) lease(e *entry, q query) model.Lease {
	now := q.now.Truncate(time.Second).UTC()
	l := e.lease()
	l.ClientID, l.IAID, l.Renewed = q.clientID, q.iaid, now
	l.Expires = now.Add(e.pool.subnet.LeaseTime)
	if e.expires == 0 {
		l.Since = now
	}
	return l
}

// lease returns e as the store knows it.
func (e *entry) lease() model.Lease {
	return model.Lease{
		Network: e.pool.subnet.network.Name, Role: e.pool.subnet.network.Role,
		MAC: e.mac, Address: e.address, Bits: e.pool.bits, ClientID: e.clientID, IAID: e.iaid,
		Since: timeOf(e.since), Renewed: timeOf(e.renewed), Expires: timeOf(e.expires), Declined: e.declined,
	}
}

// timeOf returns the time of seconds, zero for none.
func timeOf(seconds int64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

// seconds returns the seconds of a time, 0 for the zero time.
func seconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// release returns the lease to commit when a client gives q.wish back, or false
// when that is not its own.
func (t *table) release(q query) (model.Lease, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.bySlot[slot{q.wish, q.bits}]
	if e == nil || e.mac != q.mac || e.declined || e.pool.subnet.network != q.network {
		return model.Lease{}, false
	}
	if e.expires == 0 {
		t.remove(e)
		return model.Lease{}, false
	}
	e.leaving = true
	l := e.lease()
	l.Expires = time.Time{}
	return l, true
}

// decline sets q.wish aside, which a client found in use by somebody else, and
// returns the lease to commit. A client that declines too much only gives its
// address back, so that nobody can empty a pool.
func (t *table) decline(q query) (model.Lease, bool) {
	l, ok := t.release(q)
	if !ok {
		return l, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.bySlot[slot{q.wish, q.bits}]
	if e == nil || e.mac != q.mac || !t.mayDecline(q) || e.pool.declined > e.pool.limit/4 {
		return l, true
	}
	t.set(e, model.Lease{Address: e.address, Bits: e.pool.bits, Expires: q.now.Add(setAside), Renewed: q.now, Since: q.now, Declined: true})
	return e.lease(), true
}

// mayDecline counts a decline, and reports whether it is to be believed.
func (t *table) mayDecline(q query) bool {
	c := t.declines[q.mac]
	if c == nil || q.now.Sub(c.since) >= setAside {
		if len(t.declines) >= maxDecliners {
			t.forgetDecliners(q.now)
		}
		if len(t.declines) >= maxDecliners {
			return false
		}
		c = &declineCount{since: q.now}
		t.declines[q.mac] = c
	}
	c.count++
	return c.count <= maxDeclines
}

// forgetDecliners drops the counts that are over.
func (t *table) forgetDecliners(now time.Time) {
	for mac, c := range t.declines {
		if now.Sub(c.since) >= setAside {
			delete(t.declines, mac)
		}
	}
}

// prepare returns what must be stored with a lease: what the same holder had
// before is forgotten in the same step. It is errTaken when the address is not the
// holder's to have any longer.
func (t *table) prepare(l model.Lease) ([]model.Lease, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.bySlot[slot{l.Address, l.Bits}]
	switch {
	case l.Expires.IsZero() && (e == nil || e.expires == 0): // nobody has it
		return nil, nil
	case e == nil, e.mac != l.MAC, e.declined != l.Declined:
		return nil, errTaken
	case l.Expires.IsZero() && !e.leaving:
		return nil, errKept
	}
	had := t.leases[holderOf(e)]
	if had == nil || had == e || l.Declined || l.Expires.IsZero() {
		return nil, nil
	}
	old := had.lease()
	old.Expires = time.Time{}
	return []model.Lease{old}, nil
}

// bind makes a lease that was stored, or taken back, true in memory. It is
// errTaken when the address went to another device while it was stored, as a
// reservation can have it: then nobody may be told that it is leased.
func (t *table) bind(l model.Lease) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.bySlot[slot{l.Address, l.Bits}]
	mine := e != nil && e.mac == l.MAC
	switch {
	case l.Expires.IsZero():
		if mine && e.leaving { // or its client has asked for it again
			t.remove(e)
		}
	case !mine:
		return errTaken
	default:
		t.set(e, l)
	}
	return nil
}

// extend is bind for a lease that could not be stored: only what its holder has
// already is prolonged, and extend reports whether it was.
func (t *table) extend(l model.Lease) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.bySlot[slot{l.Address, l.Bits}]
	if e == nil || e.mac != l.MAC || e.expires == 0 || e.declined || l.Declined || l.Expires.IsZero() {
		return false
	}
	t.set(e, l)
	return true
}

// load takes in what the store knows. What lies in no subnet that is configured
// is left out; of two leases of one holder the younger counts.
func (t *table) load(leases []model.Lease) {
	slices.SortFunc(leases, func(a, b model.Lease) int { return a.Renewed.Compare(b.Renewed) })
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range leases {
		if l.Expires.IsZero() || l.MAC == "" && !l.Declined {
			continue
		}
		s, ok := t.home(l)
		if !ok {
			continue
		}
		if e := t.bySlot[slot{l.Address, l.Bits}]; e != nil {
			t.remove(e)
		}
		if p := s.poolOf(l.Address, l.Bits); p.entries < p.limit {
			t.set(t.insert(p, l.Address, query{network: s.network, mac: l.MAC, bits: l.Bits}), l)
		}
	}
}

// home returns the subnet that a stored lease belongs to: on its own network, or on
// another, for a network that was given another name still has the same devices.
func (t *table) home(l model.Lease) (s *subnet, ok bool) {
	for _, n := range t.networks {
		found, in := n.subnetOf(l.Address, l.Bits)
		if in && (!ok || n.Name == l.Network) {
			s, ok = found, true
		}
	}
	return s, ok
}

// holderOf returns who e belongs to.
func holderOf(e *entry) holder {
	return holder{e.pool.subnet.network, e.mac, kindOf(e.address, e.pool.bits)}
}

// insert adds an offer of a to the client. What it was offered before is taken
// back.
func (t *table) insert(p *pool, a netip.Addr, q query) *entry {
	e := &entry{mac: q.mac, address: a, pool: p, index: -1}
	h := holderOf(e)
	if before := t.offers[h]; before != nil {
		t.remove(before)
	}
	t.bySlot[slot{a, p.bits}] = e
	t.offers[h] = e
	t.offered = append(t.offered, e)
	p.entries++
	p.offers++
	return e
}

// hold keeps e for its client for a while. In a pool that is full of offers the
// while is short: a flood of MAC addresses that do not exist is soon over.
func (t *table) hold(e *entry, now time.Time) {
	while := offerFor
	if e.pool.offers > e.pool.limit/2 {
		while = shortOffer
	}
	e.held, e.leaving = now.Add(while).Unix(), false
	if e.index >= 0 {
		heap.Fix(&e.pool.ending, e.index)
	}
}

// dropOffers forgets offers that nobody took. It looks at a few a call, one more
// than a call can add, so that all are looked at again and again.
func (t *table) dropOffers(now time.Time) {
	for range min(4, len(t.offered)) {
		e := t.offered[0]
		t.offered = t.offered[1:]
		switch {
		case t.bySlot[slot{e.address, e.pool.bits}] != e || e.expires != 0: // taken, or gone already
		case e.free(now):
			t.remove(e)
		default:
			t.offered = append(t.offered, e)
		}
	}
}

// set makes e the lease l, and the only one of its holder.
func (t *table) set(e *entry, l model.Lease) {
	if e.expires == 0 {
		delete(t.offers, holderOf(e))
		e.pool.offers--
	} else if t.leases[holderOf(e)] == e {
		delete(t.leases, holderOf(e))
	}
	if l.Declined && !e.declined {
		e.pool.declined++
	}
	e.mac, e.clientID, e.iaid, e.declined = l.MAC, l.ClientID, l.IAID, l.Declined
	e.since, e.renewed, e.expires, e.held = seconds(l.Since), seconds(l.Renewed), max(seconds(l.Expires), 1), 0
	if e.index < 0 {
		heap.Push(&e.pool.ending, e)
	} else {
		heap.Fix(&e.pool.ending, e.index)
	}
	if e.declined {
		return
	}
	if had := t.leases[holderOf(e)]; had != nil {
		t.remove(had)
	}
	if offered := t.offers[holderOf(e)]; offered != nil {
		t.remove(offered)
	}
	t.leases[holderOf(e)] = e
}

// remove forgets e.
func (t *table) remove(e *entry) {
	h, p := holderOf(e), e.pool
	delete(t.bySlot, slot{e.address, p.bits})
	if t.leases[h] == e {
		delete(t.leases, h)
	}
	if t.offers[h] == e {
		delete(t.offers, h)
	}
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

// holder returns who has a live lease on a.
func (t *table) holder(a netip.Addr, now time.Time) (mac string, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.bySlot[slot{a, 0}]
	if e == nil || e.declined || !e.live(now) {
		return "", false
	}
	return e.mac, true
}

// addressesOf returns the addresses that a MAC address has live leases on.
func (t *table) addressesOf(mac string, now time.Time) []netip.Addr {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []netip.Addr
	for _, n := range t.networks {
		for _, k := range []kind{kindV4, kindV6} {
			if e := t.leases[holder{n, mac, k}]; e != nil && e.live(now) {
				all = append(all, e.address)
			}
		}
	}
	return all
}

// leaseOf returns the live lease of a MAC address on a network, a prefix when bits
// is not 0.
func (t *table) leaseOf(q query) (model.Lease, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.leases[q.holder()]
	if e == nil || !e.live(q.now) {
		return model.Lease{}, false
	}
	return e.lease(), true
}

// ownedBy returns what the device of a lease has leased, which may be another.
func (t *table) ownedBy(l model.Lease) (model.Lease, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, ok := t.home(l)
	if !ok {
		return model.Lease{}, false
	}
	e := t.leases[holder{s.network, l.MAC, kindOf(l.Address, l.Bits)}]
	if e == nil {
		return model.Lease{}, false
	}
	return e.lease(), true
}

// all returns all leases, ended and declined ones too.
func (t *table) all() []model.Lease {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]model.Lease, 0, len(t.leases))
	for _, e := range t.bySlot {
		if e.expires != 0 {
			all = append(all, e.lease())
		}
	}
	return all
}

// setReservations replaces all reservations. Leases stay as they are.
func (t *table) setReservations(all []Reservation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byMAC, t.reserved = make(map[string][]Reservation, len(all)), make(map[netip.Addr]Reservation, len(all))
	for _, r := range all {
		r.Address = r.Address.Unmap().WithZone("")
		if first, twice := t.reserved[r.Address]; twice || !r.Address.IsValid() {
			t.log.Warn("a reservation is left out: its address is reserved already", "endpoint", r.Name, "address", r.Address, "first", first.Name)
			continue
		}
		t.byMAC[r.MAC] = append(t.byMAC[r.MAC], r)
		t.reserved[r.Address] = r
	}
	clear(t.warned)
	t.lookAgain()
}

// setOwn says which addresses this machine has on the networks.
func (t *table) setOwn(own map[netip.Addr]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.own = own
	t.lookAgain()
}

// lookAgain lets all pools look again for what is fresh.
func (t *table) lookAgain() {
	for _, n := range t.networks {
		for _, s := range n.subnets {
			for _, p := range s.pools() {
				p.lookAgain()
			}
		}
	}
}

// refuse notes that a client got nothing, and says so when it is the first.
func (t *table) refuse(q query) {
	for _, s := range q.subnets {
		p := s.pool(q.bits)
		if p == nil {
			continue
		}
		s.network.metrics.refuse(s)
		if p.exhausted.IsZero() {
			p.exhausted, p.refused = q.now, make(map[string]bool)
			t.log.Warn("no address is left: devices that ask get none until leases end or the range is widened",
				"network", s.network.Name, "subnet", s.CIDR, "size", p.size())
			t.changed()
		}
		if len(p.refused) < maxRefused {
			p.refused[q.mac] = true
		}
		return
	}
}

// relieve notes that p had something to give.
func (t *table) relieve(p *pool) {
	if p.exhausted.IsZero() {
		return
	}
	p.exhausted, p.refused = time.Time{}, nil
	t.log.Info("addresses are to be had again", "network", p.subnet.network.Name, "subnet", p.subnet.CIDR)
	t.changed()
}

// pools returns how full each range is.
func (t *table) pools(now time.Time) []model.PoolFacts {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []model.PoolFacts
	for _, n := range t.networks {
		for _, s := range n.subnets {
			if s.addresses != nil {
				all = append(all, t.poolFacts(s.addresses, now))
			}
		}
	}
	return all
}

// poolFacts returns how full p is.
func (t *table) poolFacts(p *pool, now time.Time) model.PoolFacts {
	f := model.PoolFacts{
		Network: p.subnet.network.Name, Subnet: p.subnet.CIDR.String(),
		Size: p.size(), Exhausted: p.exhausted, Refused: uint64(len(p.refused)),
	}
	for _, e := range p.ending {
		if e.live(now) {
			f.Used++
		}
	}
	for a := range t.reserved {
		if e := t.bySlot[slot{a, 0}]; p.contains(a) && (e == nil || !e.live(now)) {
			f.Used++
		}
	}
	return f
}

// count returns how many leases of each kind are live on a network.
func (t *table) count(n *network, now time.Time) (byKind [kinds]int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range n.subnets {
		for _, p := range s.pools() {
			for _, e := range p.ending {
				if e.live(now) && !e.declined {
					byKind[kindOf(e.address, p.bits)]++
				}
			}
		}
	}
	return byKind
}

// String returns the name of a kind, for metrics.
func (k kind) String() string { return [kinds]string{"IPv4", "IPv6", "prefix"}[k] }
