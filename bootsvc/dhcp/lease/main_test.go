package lease

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"ingot/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// t0 is when tests begin.
var t0 = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// Addresses that tests share.
const (
	mac1 = "02:00:00:00:00:01"
	mac2 = "02:00:00:00:00:02"
	mac3 = "02:00:00:00:00:03"
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func rangeOf(s string) Range {
	var r Range
	if err := r.UnmarshalText([]byte(s)); err != nil {
		panic(err)
	}
	return r
}

func hosts() Subnet {
	return Subnet{
		CIDR: netip.MustParsePrefix("192.0.2.0/24"), Ranges: []Range{rangeOf("192.0.2.10-192.0.2.12")},
		Gateway: addr("192.0.2.1"), LeaseTime: time.Hour,
	}
}

// memory is a store that can be slow and away.
type memory struct {
	mu     sync.Mutex
	leases map[string]model.Lease
	calls  int
	err    error
	gate   chan struct{} // nil = open
	delay  time.Duration
}

func newMemory() *memory { return &memory{leases: make(map[string]model.Lease)} }

func (m *memory) Leases(context.Context) ([]model.Lease, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []model.Lease
	for _, l := range m.leases {
		all = append(all, l)
	}
	return all, m.err
}

func (m *memory) SaveLeases(ctx context.Context, leases []model.Lease) error {
	m.mu.Lock()
	gate, delay := m.gate, m.delay
	m.mu.Unlock()
	time.Sleep(delay)
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	if m.err != nil {
		return m.err
	}
	seen := map[string]bool{}
	for _, l := range leases {
		key := l.Network + " " + l.Address.String() + "/" + string(rune('0'+l.Bits))
		if seen[key] {
			return errors.New("an address twice in one group")
		}
		seen[key] = true
		if l.Expires.IsZero() {
			delete(m.leases, key)
			continue
		}
		m.leases[key] = l
	}
	return nil
}

func (m *memory) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

func (m *memory) slow(delay time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.delay = delay
}

// world is a table of one network, hosts, and what stores its leases.
type world struct {
	network   *Network
	table     *Table
	committer *Committer
	store     Store
}

// holder returns the MAC address that has a live lease on a.
func (w *world) holder(a netip.Addr, now time.Time) (mac string, ok bool) {
	mac, _, ok = w.table.At(a, now)
	return mac, ok
}

// setup is what a world is made of; the zero setup has the subnet of hosts.
type setup struct {
	Options
	subnets []Subnet
	ours    []netip.Prefix // of this machine; 192.0.2.2/24 when nil
	store   Store          // memory when nil
}

func newWorld(o setup) *world {
	if o.subnets == nil {
		o.subnets = []Subnet{hosts()}
	}
	if o.ours == nil {
		o.ours = []netip.Prefix{netip.MustParsePrefix("192.0.2.2/24"), netip.MustParsePrefix("fd00::2/64")}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.store == nil {
		o.store = newMemory()
	}
	w := &world{store: o.store}
	w.network = NewNetwork("hosts", model.RoleHost, o.subnets, func(v6 bool) (family []netip.Prefix) {
		for _, p := range o.ours {
			if p.Addr().Is6() == v6 {
				family = append(family, p)
			}
		}
		return family
	})
	o.Networks = []*Network{w.network}
	w.table = NewTable(o.Options)
	w.committer = NewCommitter(o.store, w.table, nil, o.Log)
	return w
}

func ask(w *world, mac, wish string, now time.Time) Query {
	q := Query{Network: w.network, Subnets: w.network.Subnets, MAC: mac, Now: now}
	if wish != "" {
		q.Wish = addr(wish)
	}
	return q
}

func lease(t testing.TB, w *world, mac string, now time.Time) netip.Addr {
	t.Helper()
	l, err := w.table.Offer(ask(w, mac, "", now))
	if err != nil {
		t.Fatalf("offer to %s: %v", mac, err)
	}
	commitNow(t, w, l)
	return l.Address
}

func commitNow(t testing.TB, w *world, l model.Lease) {
	t.Helper()
	if _, err := w.table.prepare(l); err != nil {
		t.Fatalf("commit %s to %s: %v", l.Address, l.MAC, err)
	}
	w.table.bind(l)
}

// rested waits until the store may be called again, and nobody has anything to do.
func rested() {
	time.Sleep(restTime)
	synctest.Wait()
}
