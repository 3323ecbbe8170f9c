package dhcp

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ingot/bootsvc/netboot"
	"ingot/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// t0 is when tests begin.
var t0 = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// Addresses and names that tests share.
const (
	mac1 = "02:00:00:00:00:01"
	mac2 = "02:00:00:00:00:02"
	mac3 = "02:00:00:00:00:03"
	uuid = "4c4c4544-0011-2233-4455-66778899aabb"
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// rangeOf reads a range.
func rangeOf(s string) Range {
	var r Range
	if err := r.UnmarshalText([]byte(s)); err != nil {
		panic(err)
	}
	return r
}

// hosts is a network of servers with three addresses.
func hosts() Network {
	return Network{
		Name: "hosts", Interface: "eth0", Role: model.RoleHost,
		Subnets: []Subnet{{
			CIDR: netip.MustParsePrefix("192.0.2.0/24"), Range: rangeOf("192.0.2.10-192.0.2.12"),
			Gateway: addr("192.0.2.1"), DNS: []netip.Addr{addr("192.0.2.2")}, NTP: []netip.Addr{addr("192.0.2.3")},
			Domain: "example.com", LeaseTime: time.Hour,
		}},
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

// slow makes each call take a while.
func (m *memory) slow(delay time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.delay = delay
}

// tickets are boot tickets by UUID or MAC address.
type tickets map[string]model.Offer

func (t tickets) Offer(id string) (model.Offer, bool) {
	o, ok := t[id]
	return o, ok
}

// discovery is a ticket for what boots by a loader and a script.
func discovery() model.Offer {
	return model.Offer{Ticket: &model.Ticket{ID: "t1", Server: "s1", UUID: uuid, Purpose: model.PurposeDiscovery, Image: model.PinnedImage{
		Repository: "registry.example/probe", Architecture: "amd64",
		Kernel: &model.Layer{Digest: "sha256:11"}, Initrd: &model.Layer{Digest: "sha256:22"},
	}}}
}

// testServer returns a server of networks whose interfaces have 192.0.2.2/24.
func testServer(t testing.TB, o Options) *Server {
	t.Helper()
	if o.Networks == nil {
		o.Networks = []Network{hosts()}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Site == nil {
		o.Site = func(_ string, local netip.Addr) netboot.Site {
			return netboot.Site{HTTP: "http://" + netip.AddrPortFrom(local, 8082).String(), TFTP: local}
		}
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range s.networks {
		n.sockets.current.Store(&link{
			name: "eth0", index: 1, mac: net.HardwareAddr{2, 0, 0, 0, 0, 0xff},
			v4: []netip.Prefix{netip.MustParsePrefix("192.0.2.2/24")},
			v6: []netip.Prefix{netip.MustParsePrefix("fd00::2/64")},
		})
	}
	return s
}

// ask returns what a MAC address asks of the first network's table.
func ask(s *Server, mac, wish string, now time.Time) query {
	n := s.networks[0]
	q := query{network: n, subnets: n.subnets, mac: mac, now: now}
	if wish != "" {
		q.wish = addr(wish)
	}
	return q
}

// lease gives a MAC address the address that it is offered.
func lease(t testing.TB, s *Server, mac string, now time.Time) netip.Addr {
	t.Helper()
	l, err := s.table.offer(ask(s, mac, "", now))
	if err != nil {
		t.Fatalf("offer to %s: %v", mac, err)
	}
	commitNow(t, s, l)
	return l.Address
}

// commitNow does what the committer does with a lease that was stored.
func commitNow(t testing.TB, s *Server, l model.Lease) {
	t.Helper()
	if _, err := s.table.prepare(l); err != nil {
		t.Fatalf("commit %s to %s: %v", l.Address, l.MAC, err)
	}
	s.table.bind(l)
}
