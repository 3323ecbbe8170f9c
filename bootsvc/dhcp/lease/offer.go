package lease

import (
	"net/netip"
	"time"

	"ingot/model"
)

// Offer picks an address for a client and holds it for a minute: what is reserved
// for it, else what it has or had, what it was offered, what it wishes for, what it
// gave back last, one that nobody has had, the one whose lease ended first, the one that
// was offered first to a client that has not requested it.
func (t *Table) Offer(q Query) (model.Lease, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.index.dropOffers(q.Now)
	if q.KnownOnly {
		e := t.index.leases.on(q.Subnets, q.device(), q.kind())
		if e == nil || !t.mayKeep(e, q) {
			return model.Lease{}, ErrNotStored
		}
		t.index.keepOffer(e, q)
		return t.lease(e, q), nil
	}
	e := t.pick(q)
	if e == nil {
		t.shortage.refuse(q)
		return model.Lease{}, ErrExhausted
	}
	t.index.keepOffer(e, q)
	return t.lease(e, q), nil
}

// pick finds an address for offer, or nil.
func (t *Table) pick(q Query) *entry {
	if e := t.pickReserved(q); e != nil {
		return e
	}
	for _, e := range []*entry{t.index.leases.on(q.Subnets, q.device(), q.kind()), t.index.offers.on(q.Subnets, q.device(), q.kind())} {
		if e != nil && t.mayKeep(e, q) {
			return e
		}
	}
	for _, a := range []netip.Addr{q.Wish, t.returned[device{q.device(), q.kind()}]} {
		if s, ok := q.onLink(a); ok {
			if p := s.poolOf(a, q.Bits); p.ranged && p.bits == q.Bits && p.entries < p.limit && t.fresh(p, a) {
				return t.index.insert(p, a, q)
			}
		}
	}
	for _, s := range q.Subnets {
		p := s.pool(q.Bits)
		if p == nil {
			continue
		}
		if a, ok := p.fresh(func(a netip.Addr) bool { return t.fresh(p, a) }); ok {
			t.shortage.relieve(p)
			return t.index.insert(p, a, q)
		}
	}
	if e := t.pickEnded(q); e != nil {
		return e
	}
	return t.pickOffered(q)
}

// mayKeep reports whether a client may go on with what it has or was offered.
func (t *Table) mayKeep(e *entry, q Query) bool {
	if _, ok := q.onLink(e.address); !ok || e.pool.bits != q.Bits || e.declined || t.reserved.own[e.address] {
		return false
	}
	switch {
	case !t.reserved.isToLeave(e, q):
		return true
	case q.Unreserved && !e.unproven:
		return false
	}
	ends := e.expires > 0 && !t.keep(e.mac)
	return t.outlastsReservation(e, q.Now) && !t.reserved.leftPort(e.address, q) && (!ends || e.expires-q.Now.Unix() >= leastRest)
}

// outlastsReservation reports whether e stays with its client even against a reservation: its lease has not
// ended, or it is a Reserved server's.
func (t *Table) outlastsReservation(e *entry, now time.Time) bool {
	return e.live(now) || e.expires > 0 && !e.declined && t.keep(e.mac)
}

// fresh reports whether a may be given to anybody who asks for p.
func (t *Table) fresh(p *pool, a netip.Addr) bool {
	_, used := t.index.bySlot[slot{a, p.bits}]
	if used || p.bits > 0 {
		return !used
	}
	_, reserved := t.reserved.byAddress[a]
	return !reserved && !t.reserved.own[a] && !p.subnet.special(a)
}

// pickEnded finds the address whose lease ended first.
func (t *Table) pickEnded(q Query) *entry {
	for _, s := range q.Subnets {
		p := s.pool(q.Bits)
		if p == nil {
			continue
		}
		for {
			e, ok := p.longestEnded(t.keep, q.Now)
			if !ok {
				break
			}
			a := e.address
			t.index.remove(e)
			if t.fresh(p, a) {
				t.shortage.relieve(p)
				return t.index.insert(p, a, q)
			}
		}
	}
	return nil
}

// pickOffered takes the oldest offer back that nobody requested: who broadcasts Discovers,
// and follows none, must not keep others from their addresses.
func (t *Table) pickOffered(q Query) *entry {
	for _, s := range q.Subnets {
		p := s.pool(q.Bits)
		if p == nil {
			continue
		}
		for e := p.unrequested.oldest(); e != nil; e = p.unrequested.oldest() {
			a := e.address
			t.index.remove(e)
			p.tookBack = q.Now
			if t.fresh(p, a) {
				t.shortage.relieve(p)
				return t.index.insert(p, a, q)
			}
		}
	}
	return nil
}

// yieldsTo reports whether what is offered to one client goes to another that requests it:
// for a while after offers were taken back, as it may have been offered it before.
func (e *entry) yieldsTo(q Query) bool {
	return e.waits != nil && e.device != q.device() && !e.pool.tookBack.IsZero() && q.Now.Sub(e.pool.tookBack) < offerFor
}

// Take holds q.Wish itself for a client, in a range or not, unless somebody else
// has it: for what is derived and not chosen.
func (t *Table) Take(q Query) (model.Lease, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.index.dropOffers(q.Now)
	s, e := q.derivedFrom(), t.index.bySlot[slot{q.Wish, q.Bits}]
	switch {
	case s == nil:
		return model.Lease{}, ErrExhausted
	case q.KnownOnly && (e == nil || e.device != q.device() || e.expires == 0):
		return model.Lease{}, ErrNotStored
	case e == nil:
	case e.device == q.device():
		t.index.keepOffer(e, q)
		return t.lease(e, q), nil
	case !e.free(q.Now) || t.keep(e.mac):
		return model.Lease{}, errTaken
	default:
		t.index.remove(e)
	}
	if q.Bits == 0 && (t.reserved.areForOther(q.Wish, q) || t.reserved.own[q.Wish]) {
		return model.Lease{}, errTaken
	}
	p := s.poolOf(q.Wish, q.Bits)
	if p.entries >= p.limit && !t.index.forgetOne(p, t.keep, q.Now) {
		return model.Lease{}, ErrExhausted
	}
	e = t.index.insert(p, q.Wish, q)
	t.index.keepOffer(e, q)
	return t.lease(e, q), nil
}

// derivedFrom returns the subnet that what was derived belongs to: a prefix need
// not lie in the subnet that it is delegated on.
func (q Query) derivedFrom() *Subnet {
	if s, ok := q.onLink(q.Wish); ok {
		return s
	}
	if q.Bits > 0 && len(q.Subnets) > 0 {
		return q.Subnets[0]
	}
	return nil
}
