package dhcp

import (
	"net/netip"
	"time"

	"ingot/model"
)

// offer picks an address for a client and holds it for a minute: what is reserved
// for it, else what it has or had, what it was offered, what it wishes for, what it
// gave back last, one that nobody has had, the one whose lease ended first.
func (t *table) offer(q query) (model.Lease, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropOffers(q.now)
	e := t.pick(q)
	if e == nil {
		t.refuse(q)
		return model.Lease{}, errExhausted
	}
	t.hold(e, q)
	return t.lease(e, q), nil
}

// pick finds an address for offer, or nil.
func (t *table) pick(q query) *entry {
	if e := t.pickReserved(q); e != nil {
		return e
	}
	for _, e := range []*entry{t.leases.on(q.subnets, q.mac, q.kind()), t.offers.on(q.subnets, q.mac, q.kind())} {
		if e != nil && t.mayKeep(e, q) {
			return e
		}
	}
	for _, a := range []netip.Addr{q.wish, t.returned[device{q.mac, q.kind()}]} {
		if s, ok := q.onLink(a); ok {
			if p := s.poolOf(a, q.bits); p.ranged && p.bits == q.bits && p.entries < p.limit && t.fresh(p, a) {
				return t.insert(p, a, q)
			}
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
		t.hold(e, q)
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
	t.hold(e, q)
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
		t.gone = append(t.gone, e.forgotten())
		t.remove(e)
	}
	return ok
}
