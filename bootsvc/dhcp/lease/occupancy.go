package lease

import (
	"net/netip"
	"slices"
	"time"

	"ingot/model"
)

// Holder returns who has a live lease on a.
func (t *Table) Holder(a netip.Addr, now time.Time) (mac string, ok bool) {
	mac, _, ok = t.At(a, now)
	return mac, ok
}

// At returns who has a live lease on a, and whether that is the client's word alone.
func (t *Table) At(a netip.Addr, now time.Time) (mac string, unproven, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.bySlot[slot{a, 0}]
	if e == nil || e.declined || !e.live(now) {
		return "", false, false
	}
	return e.mac, e.unproven, true
}

// Leased returns when one of these MAC addresses last got a lease, or had one renewed.
func (t *Table) Leased(macs []string) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	var last int64
	for _, mac := range macs {
		for _, e := range t.leases[interfaceOf(mac)] {
			last = max(last, e.renewed)
		}
	}
	return timeOf(last)
}

// Addresses returns the addresses that are leased to these MAC addresses, sorted. A prefix, and an
// address that only its client claims to have by that MAC address, are left out.
func (t *Table) Addresses(macs []string, now time.Time) (all []netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, mac := range macs {
		for _, e := range t.leases[interfaceOf(mac)] {
			if e.live(now) && !e.declined && !e.unproven && e.pool.bits == 0 {
				all = append(all, e.address)
			}
		}
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.Compact(all)
}

// IsOthers reports whether q.Wish is leased to another than the client that asks.
func (t *Table) IsOthers(q Query) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.bySlot[slot{q.Wish, q.Bits}]
	return e != nil && !e.declined && e.live(q.Now) && !e.isOf(q)
}

// refuse notes that a client got nothing, and says so when it is the first.
func (t *Table) refuse(q Query) {
	for _, s := range q.Subnets {
		p := s.pool(q.Bits)
		if p == nil {
			continue
		}
		t.refused.WithLabelValues(s.network.Name, s.CIDR.String()).Inc()
		if p.exhausted.IsZero() {
			p.exhausted, p.refused = q.Now, make(map[deviceID]bool)
			t.log.Warn("no address is left: devices get none until leases end or the range is widened",
				"network", s.network.Name, "subnet", s.CIDR, "size", p.size())
			t.changed()
		}
		if len(p.refused) < maxRefused {
			p.refused[q.device()] = true
		}
		return
	}
}

// relieve notes that p had something to give.
func (t *Table) relieve(p *pool) {
	if p.exhausted.IsZero() {
		return
	}
	p.exhausted, p.refused = time.Time{}, nil
	t.log.Info("addresses are available again", "network", p.subnet.network.Name, "subnet", p.subnet.CIDR)
	t.changed()
}

// Pools returns how full each range is.
func (t *Table) Pools(now time.Time) []model.PoolFacts {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []model.PoolFacts
	for _, n := range t.networks {
		for _, s := range n.Subnets {
			if s.addresses != nil {
				all = append(all, t.poolFacts(s.addresses, now))
			}
		}
	}
	return all
}

// poolFacts returns how full p is.
func (t *Table) poolFacts(p *pool, now time.Time) model.PoolFacts {
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
		if e := t.bySlot[slot{a, 0}]; e == nil || !e.live(now) {
			f.Used++
		}
	}
	return f
}

// count returns how many leases of each kind are live on a network.
func (t *Table) count(n *Network, now time.Time) (byKind [kinds]int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range n.Subnets {
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
