package lease

import (
	"net/netip"
	"slices"
	"time"

	"ingot/model"
)

// prepare returns what must be stored with a lease, before it: what its device had
// before on the same link is forgotten in the same step. It is errTaken when the
// address is not the device's to have any longer.
func (t *Table) prepare(l model.Lease) ([]model.Lease, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.index.storable(l); err != nil {
		return nil, err
	}
	before := t.index.takeGone()
	if e := t.index.bySlot[slot{l.Address, l.Bits}]; e != nil && !l.Declined && !l.Expires.IsZero() {
		for _, had := range t.index.leases.siblings(e) {
			before = append(before, had.forgotten())
		}
	}
	return before, nil
}

// bind makes a lease that was stored, or taken back, true in memory. It is
// errTaken when the address went to another device while it was stored, as a
// reservation can have it: then nobody may be told that it is leased.
func (t *Table) bind(l model.Lease) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.index.bySlot[slot{l.Address, l.Bits}]
	mine := e != nil && e.device == deviceOf(l)
	switch {
	case l.Expires.IsZero():
		if mine && e.returned { // or its client has asked for it again
			t.returned.add(e)
			t.index.remove(e)
		}
	case !mine:
		return errTaken
	default:
		t.index.set(e, l)
	}
	return nil
}

// extend is bind for a lease that could not be stored: only what its holder has
// already is prolonged, and extend reports whether it was.
func (t *Table) extend(l model.Lease) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.index.bySlot[slot{l.Address, l.Bits}]
	if e == nil || e.device != deviceOf(l) || e.expires == 0 || e.declined || l.Declined || l.Expires.IsZero() {
		return false
	}
	t.index.set(e, l)
	return true
}

// Load takes in what the store knows; of two leases of one device on a link the
// younger counts. What lies in no subnet that is configured is left out, and is
// forgotten when it ended long ago: until then the subnet may come back.
func (t *Table) Load(leases []model.Lease, now time.Time) {
	slices.SortFunc(leases, func(a, b model.Lease) int { return a.Renewed.Compare(b.Renewed) })
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range leases {
		if l.Expires.IsZero() || deviceOf(l) == (deviceID{}) && !l.Declined {
			continue
		}
		switch s, ok := t.networks.home(l); {
		case ok:
			t.loadInto(s, l, now)
		case now.Sub(l.Expires) > MaxTime:
			l.Expires = time.Time{}
			t.index.gone = append(t.index.gone, l)
		case l.Bits > 0 && l.Expires.After(now):
			t.keepClear(l)
		}
	}
}

// loadInto takes in a lease of a subnet. Where there are too many, those that ended
// first make room.
func (t *Table) loadInto(s *Subnet, l model.Lease, now time.Time) {
	if e := t.index.bySlot[slot{l.Address, l.Bits}]; e != nil {
		t.index.remove(e)
	}
	if p := s.poolOf(l.Address, l.Bits); p.entries < p.limit || t.index.forgetOne(p, t.keep, now) {
		e := t.index.insert(p, l.Address, Query{Network: s.network, MAC: l.MAC, ClientID: l.ClientID, IAID: l.IAID, Nth: l.Nth, Bits: l.Bits})
		t.index.set(e, l)
	}
}

// keepClear sets aside what overlaps a prefix of a length that was delegated before
// the configuration was changed: its device has it until the lease ends.
func (t *Table) keepClear(l model.Lease) {
	for _, n := range t.networks {
		for _, s := range n.Subnets {
			if s.prefixes == nil {
				continue
			}
			for _, a := range s.prefixes.overlapping(netip.PrefixFrom(l.Address, l.Bits)) {
				if at := (slot{a, s.prefixes.bits}); t.index.bySlot[at] == nil && s.prefixes.entries < s.prefixes.limit {
					t.index.set(t.index.insert(s.prefixes, a, Query{}), model.Lease{Since: l.Since, Renewed: l.Renewed, Expires: l.Expires, Declined: true})
				}
			}
		}
	}
}

// ownedBy returns what the device of a lease has leased, which may be another.
func (t *Table) ownedBy(l model.Lease) (model.Lease, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, ok := t.networks.home(l)
	if !ok {
		return model.Lease{}, false
	}
	e := t.index.leases.on(s.link(), deviceOf(l), kindOf(l.Address, l.Bits))
	if e == nil {
		return model.Lease{}, false
	}
	return e.lease(), true
}
