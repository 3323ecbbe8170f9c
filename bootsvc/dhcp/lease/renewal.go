package lease

import (
	"ingot/model"
)

// RenewalState is what the table says to an address that a client names.
type RenewalState int

const (
	// RenewalOutside means that it lies in none of the client's subnets.
	RenewalOutside RenewalState = iota
	// RenewalUnknown means that it lies in a subnet of the client's, but is none that we give.
	RenewalUnknown
	// RenewalTaken means that somebody else has it, or it is reserved for somebody else.
	RenewalTaken
	// RenewalElsewhere means that this client has, or is to have, another address.
	RenewalElsewhere
	// RenewalFree means that nobody has it, so this client may; it is held for it
	// now. So addresses survive a lost store.
	RenewalFree
	// RenewalKnown means that it is this client's.
	RenewalKnown
)

// Renewal says whether q.Wish is, or may be, the client's. When it is known or
// free it is held, and the lease is as it will be once it is committed.
func (t *Table) Renewal(q Query) (model.Lease, RenewalState) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.index.dropOffers(q.Now) // of clients that name an address without having asked for an offer
	q.Binding = true
	e, state := t.renew(q)
	if state < RenewalFree {
		return model.Lease{}, state
	}
	t.index.keepOffer(e, q)
	return t.lease(e, q), state
}

func (t *Table) renew(q Query) (*entry, RenewalState) {
	s, ok := q.onLink(q.Wish)
	if !ok {
		return nil, RenewalOutside
	}
	if r, _, ok := t.reserved.onLink(q); ok && r.Address != q.Wish {
		if other := t.index.bySlot[slot{r.Address, 0}]; other == nil || other.device == q.device() || !t.holds(other, q.Now) {
			return nil, RenewalElsewhere
		}
	}
	e := t.index.bySlot[slot{q.Wish, q.Bits}]
	if e != nil && (e.declined && e.free(q.Now) || e.yieldsTo(q)) {
		t.index.remove(e)
		e = nil
	}
	if e != nil {
		switch {
		case e.device != q.device() || !t.mayKeep(e, q):
			return nil, RenewalTaken
		case e.expires == 0:
			return e, RenewalFree
		}
		return e, RenewalKnown
	}
	if own := t.index.leases.on(q.Subnets, q.device(), q.kind()); own != nil && own.live(q.Now) {
		return nil, RenewalElsewhere
	}
	return t.renewFree(s, q)
}

// renewFree decides about an address that nobody has.
func (t *Table) renewFree(s *Subnet, q Query) (*entry, RenewalState) {
	p := s.poolOf(q.Wish, q.Bits)
	r, _, reserved := t.reserved.onLink(q)
	mine := reserved && r.Address == q.Wish
	switch {
	case q.Bits == 0 && t.reserved.areForOther(q.Wish, q):
		return nil, RenewalTaken
	case !mine && (!p.ranged || p.bits != q.Bits || !t.fresh(p, q.Wish)):
		return nil, RenewalUnknown
	case p.entries >= p.limit && !t.index.forgetOne(p, t.keep, q.Now):
		return nil, RenewalUnknown
	}
	e := t.index.insert(p, q.Wish, q)
	e.rightful = mine
	return e, RenewalFree
}
