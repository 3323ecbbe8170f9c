package dhcp

import (
	"ingot/model"
)

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
	t.hold(e, q)
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
	if own := t.leases.on(q.subnets, q.mac, q.kind()); own != nil && own.live(q.now) {
		return nil, renewalElsewhere
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
