package lease

import (
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ingot/model"
)

// At returns who has a live lease on a, and whether that is the client's word alone.
func (t *Table) At(a netip.Addr, now time.Time) (mac string, unproven, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.index.bySlot[slot{a, 0}]
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
		for _, e := range t.index.leases[interfaceOf(mac)] {
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
		for _, e := range t.index.leases[interfaceOf(mac)] {
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
	e := t.index.bySlot[slot{q.Wish, q.Bits}]
	return e != nil && !e.declined && e.live(q.Now) && !e.isOf(q)
}

// shortage reports pools that have no address left.
type shortage struct {
	refused *prometheus.CounterVec
	changed func() // a pool ran out, or has room again
	log     *slog.Logger
}

// refuse notes that a client got nothing, and says so when it is the first.
func (s *shortage) refuse(q Query) {
	for _, at := range q.Subnets {
		p := at.pool(q.Bits)
		if p == nil {
			continue
		}
		s.refused.WithLabelValues(at.network.Name, at.CIDR.String()).Inc()
		if p.exhausted.IsZero() {
			p.exhausted, p.refused = q.Now, make(map[deviceID]bool)
			s.log.Warn("no address is left: devices get none until leases end or the range is widened",
				"network", at.network.Name, "subnet", at.CIDR, "size", p.size())
			s.changed()
		}
		if len(p.refused) < maxRefused {
			p.refused[q.device()] = true
		}
		return
	}
}

// relieve notes that p had something to give.
func (s *shortage) relieve(p *pool) {
	if p.exhausted.IsZero() {
		return
	}
	p.exhausted, p.refused = time.Time{}, nil
	s.log.Info("addresses are available again", "network", p.subnet.network.Name, "subnet", p.subnet.CIDR)
	s.changed()
}

// Pools returns how full each range is.
func (t *Table) Pools(now time.Time) []model.PoolFacts {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []model.PoolFacts
	for _, n := range t.networks {
		for _, s := range n.Subnets {
			if s.addresses != nil {
				all = append(all, t.index.poolFacts(s.addresses, now))
			}
		}
	}
	return all
}

// Leases returns at most max leases in no order, with those that have ended and addresses that are set aside; more is the
// number of the others.
func (t *Table) Leases(max int) (all []model.Lease, more int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.index.bySlot {
		switch {
		case e.expires == 0: // offered, and not taken
		case len(all) == max:
			more++
		default:
			all = append(all, e.lease())
		}
	}
	return all, more
}
