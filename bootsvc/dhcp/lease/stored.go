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
	if err := t.storable(l); err != nil {
		return nil, err
	}
	before := t.takeGone()
	if e := t.bySlot[slot{l.Address, l.Bits}]; e != nil && !l.Declined && !l.Expires.IsZero() {
		for _, had := range t.leases.besides(e) {
			before = append(before, had.forgotten())
		}
	}
	return before, nil
}

// takeGone returns some of what was forgotten here and is still stored.
func (t *Table) takeGone() []model.Lease {
	n := min(len(t.gone), maxGone)
	some := slices.Clone(t.gone[:n])
	t.gone = t.gone[n:]
	return some
}

// storable returns why a lease is not to be stored, if so.
func (t *Table) storable(l model.Lease) error {
	e := t.bySlot[slot{l.Address, l.Bits}]
	switch {
	case l.Expires.IsZero() && (e == nil || e.expires == 0): // nobody has it
		return nil
	case e == nil, e.device != deviceOf(l), e.declined != l.Declined:
		return errTaken
	case l.Expires.IsZero() && !e.returned:
		return errKept
	}
	return nil
}

// bind makes a lease that was stored, or taken back, true in memory. It is
// errTaken when the address went to another device while it was stored, as a
// reservation can have it: then nobody may be told that it is leased.
func (t *Table) bind(l model.Lease) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.bySlot[slot{l.Address, l.Bits}]
	mine := e != nil && e.device == deviceOf(l)
	switch {
	case l.Expires.IsZero():
		if mine && e.returned { // or its client has asked for it again
			t.remember(e)
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
func (t *Table) extend(l model.Lease) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.bySlot[slot{l.Address, l.Bits}]
	if e == nil || e.device != deviceOf(l) || e.expires == 0 || e.declined || l.Declined || l.Expires.IsZero() {
		return false
	}
	t.set(e, l)
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
		switch s, ok := t.home(l); {
		case ok:
			t.loadInto(s, l, now)
		case now.Sub(l.Expires) > MaxTime:
			l.Expires = time.Time{}
			t.gone = append(t.gone, l)
		case l.Bits > 0 && l.Expires.After(now):
			t.keepClear(l)
		}
	}
}

// loadInto takes in a lease of a subnet. Where there are too many, those that ended
// first make room.
func (t *Table) loadInto(s *Subnet, l model.Lease, now time.Time) {
	if e := t.bySlot[slot{l.Address, l.Bits}]; e != nil {
		t.remove(e)
	}
	if p := s.poolOf(l.Address, l.Bits); p.entries < p.limit || t.forgetOne(p, now) {
		e := t.insert(p, l.Address, Query{Network: s.network, MAC: l.MAC, ClientID: l.ClientID, IAID: l.IAID, Nth: l.Nth, Bits: l.Bits})
		t.set(e, l)
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
				if at := (slot{a, s.prefixes.bits}); t.bySlot[at] == nil && s.prefixes.entries < s.prefixes.limit {
					t.set(t.insert(s.prefixes, a, Query{}), model.Lease{Since: l.Since, Renewed: l.Renewed, Expires: l.Expires, Declined: true})
				}
			}
		}
	}
}

// home returns the subnet that a stored lease belongs to: on its own network, or on
// another, for a network that was given another name still has the same devices.
func (t *Table) home(l model.Lease) (s *Subnet, ok bool) {
	for _, n := range t.networks {
		found, in := n.SubnetOf(l.Address, l.Bits)
		if in && (!ok || n.Name == l.Network) {
			s, ok = found, true
		}
	}
	return s, ok
}

// ownedBy returns what the device of a lease has leased, which may be another.
func (t *Table) ownedBy(l model.Lease) (model.Lease, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, ok := t.home(l)
	if !ok {
		return model.Lease{}, false
	}
	e := t.leases.on(s.link(), deviceOf(l), kindOf(l.Address, l.Bits))
	if e == nil {
		return model.Lease{}, false
	}
	return e.lease(), true
}

// all returns all leases, ended and declined ones too.
func (t *Table) all() []model.Lease {
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
