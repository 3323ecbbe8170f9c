package dhcp

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ingot/bootsvc/dhcp/lease"
	"ingot/bootsvc/netboot"
	"ingot/model"
	"ingot/model/must"
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

func rangeOf(s string) lease.Range {
	var r lease.Range
	if err := r.UnmarshalText([]byte(s)); err != nil {
		panic(err)
	}
	return r
}

func hosts() Network {
	return Network{
		Name: "hosts", Interface: "eth0", Role: model.RoleHost,
		Subnets: []Subnet{{
			CIDR: netip.MustParsePrefix("192.0.2.0/24"), Ranges: []lease.Range{rangeOf("192.0.2.10-192.0.2.12")},
			Gateway: addr("192.0.2.1"), DNS: []netip.Addr{addr("192.0.2.2")}, NTP: []netip.Addr{addr("192.0.2.3")},
			Domain: "example.com", LeaseTime: time.Hour,
		}},
	}
}

// memory is a store that can be away.
type memory struct {
	mu     sync.Mutex
	leases map[netip.Addr]model.Lease
	err    error
}

func newMemory() *memory { return &memory{leases: make(map[netip.Addr]model.Lease)} }

func (m *memory) Leases(context.Context) ([]model.Lease, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.leases)), m.err
}

func (m *memory) SaveLeases(_ context.Context, leases []model.Lease) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range leases {
		if m.leases[l.Address] = l; l.Expires.IsZero() {
			delete(m.leases, l.Address)
		}
	}
	return m.err
}

var errAway = errors.New("the store is away")

func (m *memory) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

// tickets are boot tickets by UUID or MAC address.
type tickets map[string]model.TicketHolder

func (t tickets) Find(id string) (model.TicketHolder, bool) {
	o, ok := t[id]
	return o, ok
}

// discovery is a ticket for what boots by a loader and a script.
func discovery() model.TicketHolder {
	return model.TicketHolder{Ticket: &model.Ticket{
		ID: "t1", Server: "s1", UUID: uuid, Purpose: model.PurposeDiscovery,
		Image: model.PinnedImage{
			Repository: "registry.example/probe", Architecture: "amd64",
			Kernel: &model.Layer{Digest: "sha256:11"}, Initrd: &model.Layer{Digest: "sha256:22"},
		},
	}}
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
	s := must.Get(New(o))(t)
	for _, n := range s.networks {
		n.sockets.current.Store(&link{
			name: "eth0", index: 1, mac: net.HardwareAddr{2, 0, 0, 0, 0, 0xff},
			v4: []netip.Prefix{netip.MustParsePrefix("192.0.2.2/24")},
			v6: []netip.Prefix{netip.MustParsePrefix("fd00::2/64")},
		})
	}
	return s
}

func leaseTo(t testing.TB, s *Server, mac string) {
	t.Helper()
	n := s.networks[0].leases
	l, err := s.table.Offer(lease.Query{Network: n, Subnets: n.Subnets, MAC: mac, Now: t0})
	if err != nil {
		t.Fatalf("offer to %s: %v", mac, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stored := lease.NewCommitter(newMemory(), s.table, nil, s.options.Log)
	stored.Commit(l, func(err error) {
		if err != nil {
			t.Errorf("lease %s to %s: %v", l.Address, mac, err)
		}
		stop()
	})
	stored.Run(ctx)
}
