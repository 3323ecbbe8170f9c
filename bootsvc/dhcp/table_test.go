package dhcp

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ingot/model"
)

func TestOffer(t *testing.T) {
	reserve := func(s *Server, mac, a string) {
		s.SetReservations([]Reservation{{MAC: mac, Name: "bmc-1", Address: addr(a)}})
	}
	for name, tc := range map[string]struct {
		before func(t *testing.T, s *Server)
		mac    string // mac1 when empty
		wish   string
		after  time.Duration // since t0
		want   string        // empty = none
	}{
		"the first gets the first of the range": {want: "192.0.2.10"},
		"a wish in the range is granted":        {wish: "192.0.2.12", want: "192.0.2.12"},
		"a wish outside the range is not":       {wish: "192.0.2.50", want: "192.0.2.10"},
		"a wish for another's address is not": {
			before: func(t *testing.T, s *Server) { lease(t, s, mac2, t0) }, wish: "192.0.2.10", want: "192.0.2.11",
		},
		"a reservation comes before a wish": {
			before: func(_ *testing.T, s *Server) { reserve(s, mac1, "192.0.2.77") }, wish: "192.0.2.12", want: "192.0.2.77",
		},
		"a reservation comes before a lease": {
			before: func(t *testing.T, s *Server) { lease(t, s, mac1, t0); reserve(s, mac1, "192.0.2.77") }, want: "192.0.2.77",
		},
		"a reserved address is not given to others": {
			before: func(_ *testing.T, s *Server) { reserve(s, mac2, "192.0.2.10") }, want: "192.0.2.11",
		},
		"a reserved address is not given to others who wish for it": {
			before: func(_ *testing.T, s *Server) { reserve(s, mac2, "192.0.2.10") }, wish: "192.0.2.10", want: "192.0.2.11",
		},
		"a reserved address that somebody holds stays theirs": {
			before: func(t *testing.T, s *Server) { lease(t, s, mac2, t0); reserve(s, mac1, "192.0.2.10") }, want: "192.0.2.11",
		},
		"a reserved address that somebody held is free when that lease has ended": {
			before: func(t *testing.T, s *Server) { lease(t, s, mac2, t0); reserve(s, mac1, "192.0.2.10") },
			after:  time.Hour + time.Second, want: "192.0.2.10",
		},
		"who held an address that is reserved now goes on with it": {
			before: func(t *testing.T, s *Server) { lease(t, s, mac1, t0); reserve(s, mac2, "192.0.2.10") },
			after:  time.Minute, want: "192.0.2.10",
		},
		"who comes back after the lease has ended gets its address": {
			before: func(t *testing.T, s *Server) {
				lease(t, s, mac2, t0)
				lease(t, s, mac1, t0)
			},
			after: 48 * time.Hour, want: "192.0.2.11",
		},
		"a new device gets what nobody has had before what has ended": {
			before: func(t *testing.T, s *Server) { lease(t, s, mac2, t0) }, after: 48 * time.Hour, want: "192.0.2.11",
		},
		"the lease that ended first is given to others first": {
			before: func(t *testing.T, s *Server) {
				lease(t, s, mac2, t0.Add(time.Second))
				lease(t, s, mac3, t0)
				lease(t, s, "02:00:00:00:00:04", t0.Add(2*time.Second))
			},
			after: 48 * time.Hour, want: "192.0.2.11",
		},
		"nothing is left": {
			before: func(t *testing.T, s *Server) {
				for i := range 3 {
					lease(t, s, fmt.Sprintf("02:00:00:00:01:%02x", i), t0)
				}
			},
		},
		"an address that was given back is given again": {
			before: func(t *testing.T, s *Server) {
				for i := range 3 {
					lease(t, s, fmt.Sprintf("02:00:00:00:01:%02x", i), t0)
				}
				l, ok := s.table.release(ask(s, "02:00:00:00:01:01", "192.0.2.11", t0))
				if !ok {
					t.Fatal("not released")
				}
				commitNow(t, s, *l)
			},
			want: "192.0.2.11",
		},
		"an address that was declined is given to nobody": {
			before: func(t *testing.T, s *Server) {
				lease(t, s, mac2, t0)
				if l, ok := s.table.decline(ask(s, mac2, "192.0.2.10", t0)); !ok || !l.Declined {
					t.Fatalf("not set aside: %+v", l)
				}
			},
			wish: "192.0.2.10", want: "192.0.2.11",
		},
		"this machine's own address is given to nobody": {
			before: func(_ *testing.T, s *Server) { s.table.setOwn(map[netip.Addr]bool{addr("192.0.2.10"): true}) },
			want:   "192.0.2.11",
		},
		"an offer that nobody took is given to the next": {
			before: func(t *testing.T, s *Server) {
				for i := range 3 {
					if _, err := s.table.offer(ask(s, fmt.Sprintf("02:00:00:00:01:%02x", i), "", t0)); err != nil {
						t.Fatal(err)
					}
				}
			},
			after: time.Minute, want: "192.0.2.10",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := testServer(t, Options{})
			if tc.before != nil {
				tc.before(t, s)
			}
			mac := tc.mac
			if mac == "" {
				mac = mac1
			}
			l, err := s.table.offer(ask(s, mac, tc.wish, t0.Add(tc.after)))
			switch {
			case tc.want == "" && !errors.Is(err, errExhausted):
				t.Fatalf("got %v, %v, want none", l.Address, err)
			case tc.want != "" && l.Address.String() != tc.want:
				t.Fatalf("got %v, %v, want %s", l.Address, err, tc.want)
			}
		})
	}
}

func TestOfferedLease(t *testing.T) {
	s := testServer(t, Options{})
	q := ask(s, mac1, "", t0)
	q.clientID = "01020000000001"
	got, err := s.table.offer(q)
	want := model.Lease{
		Network: "hosts", Role: model.RoleHost, MAC: mac1, Address: addr("192.0.2.10"), ClientID: "01020000000001",
		Since: t0, Renewed: t0, Expires: t0.Add(time.Hour),
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" || err != nil {
		t.Errorf("-want +got, %v:\n%s", err, diff)
	}
}

func TestKeptAddress(t *testing.T) {
	s := testServer(t, Options{Keep: func(mac string) bool { return mac == mac1 }})
	for _, mac := range []string{mac1, mac2, mac3} {
		lease(t, s, mac, t0)
	}
	later := t0.Add(48 * time.Hour)
	got := lease(t, s, "02:00:00:00:00:04", later)
	if got != addr("192.0.2.11") {
		t.Errorf("got %s, want 192.0.2.11: 192.0.2.10 is a Reserved server's", got)
	}
	lease(t, s, "02:00:00:00:00:05", later)
	s.SetReservations([]Reservation{{MAC: "02:00:00:00:00:06", Name: "e", Address: addr("192.0.2.10")}})
	if l, err := s.table.offer(ask(s, "02:00:00:00:00:06", "", later)); err == nil {
		t.Errorf("offered %s, which is a Reserved server's", l.Address)
	}
	if back := lease(t, s, mac1, later); back != addr("192.0.2.10") {
		t.Errorf("the Reserved server came back and got %s, want 192.0.2.10", back)
	}
}

func TestRenewal(t *testing.T) {
	for name, tc := range map[string]struct {
		before func(t *testing.T, s *Server)
		wish   string
		want   renewalState
	}{
		"its own":                          {before: func(t *testing.T, s *Server) { lease(t, s, mac1, t0) }, wish: "192.0.2.10", want: renewalKnown},
		"free in the range, nothing known": {wish: "192.0.2.12", want: renewalFree},
		"another's":                        {before: func(t *testing.T, s *Server) { lease(t, s, mac2, t0) }, wish: "192.0.2.10", want: renewalTaken},
		"free, but it has another":         {before: func(t *testing.T, s *Server) { lease(t, s, mac1, t0) }, wish: "192.0.2.12", want: renewalElsewhere},
		"of another subnet":                {wish: "198.51.100.7", want: renewalOutside},
		"of the subnet, not of the range":  {wish: "192.0.2.99", want: renewalUnknown},
		"the gateway":                      {wish: "192.0.2.1", want: renewalUnknown},
		"reserved for it, outside the range": {
			before: func(_ *testing.T, s *Server) {
				s.SetReservations([]Reservation{{MAC: mac1, Address: addr("192.0.2.99")}})
			},
			wish: "192.0.2.99", want: renewalFree,
		},
		"reserved for another": {
			before: func(_ *testing.T, s *Server) {
				s.SetReservations([]Reservation{{MAC: mac2, Address: addr("192.0.2.12")}})
			},
			wish: "192.0.2.12", want: renewalTaken,
		},
		"its own, while another is reserved for it": {
			before: func(t *testing.T, s *Server) {
				lease(t, s, mac1, t0)
				s.SetReservations([]Reservation{{MAC: mac1, Address: addr("192.0.2.99")}})
			},
			wish: "192.0.2.10", want: renewalElsewhere,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := testServer(t, Options{})
			if tc.before != nil {
				tc.before(t, s)
			}
			if _, got := s.table.renewal(ask(s, mac1, tc.wish, t0)); got != tc.want {
				t.Errorf("got state %d, want %d", got, tc.want)
			}
		})
	}
}

// After a lost store nobody's address changes: who asks for what it had gets it,
// also when others are asking for just any address meanwhile.
func TestLostStore(t *testing.T) {
	before := testServer(t, Options{})
	want := map[string]netip.Addr{}
	for _, mac := range []string{mac1, mac2, mac3} {
		want[mac] = lease(t, before, mac, t0)
	}
	after := testServer(t, Options{})
	for _, mac := range []string{mac3, mac1, mac2} {
		l, state := after.table.renewal(ask(after, mac, want[mac].String(), t0.Add(time.Minute)))
		if state != renewalFree {
			t.Fatalf("%s asks for %s: state %d, want %d", mac, want[mac], state, renewalFree)
		}
		commitNow(t, after, l)
	}
	for mac, a := range want {
		if got, _ := after.table.holder(a, t0.Add(time.Minute)); got != mac {
			t.Errorf("%s is held by %q, want %q", a, got, mac)
		}
	}
}

func TestDeclinesAreBounded(t *testing.T) {
	cfg := hosts()
	cfg.Subnets[0].Range = rangeOf("192.0.2.10-192.0.2.109")
	aside := func(s *Server, mac string) bool {
		a := lease(t, s, mac, t0)
		l, ok := s.table.decline(ask(s, mac, a.String(), t0))
		if !ok {
			t.Fatalf("%s cannot decline its own address", mac)
		}
		commitNow(t, s, *l)
		return l.Declined
	}
	t.Run("of one device", func(t *testing.T) {
		s := testServer(t, Options{Networks: []Network{cfg}})
		count := 0
		for range 20 {
			if aside(s, mac1) {
				count++
			}
		}
		if count != maxDeclines {
			t.Errorf("%d addresses were set aside, want %d", count, maxDeclines)
		}
	})
	t.Run("of all devices", func(t *testing.T) {
		s := testServer(t, Options{Networks: []Network{cfg}})
		count := 0
		for i := range 60 {
			if aside(s, fmt.Sprintf("02:00:00:00:02:%02x", i)) {
				count++
			}
		}
		if count > 26 {
			t.Errorf("%d of 100 addresses were set aside, want a quarter at most", count)
		}
	})
}

func TestExhaustionIsSaidOnce(t *testing.T) {
	changes := 0
	s := testServer(t, Options{PoolsChanged: func() { changes++ }})
	for _, mac := range []string{mac1, mac2, mac3} {
		lease(t, s, mac, t0)
	}
	for range 5 {
		for _, mac := range []string{"02:00:00:00:00:04", "02:00:00:00:00:05"} {
			if _, err := s.table.offer(ask(s, mac, "", t0.Add(time.Minute))); !errors.Is(err, errExhausted) {
				t.Fatalf("got %v, want %v", err, errExhausted)
			}
		}
	}
	want := []model.PoolFacts{{Network: "hosts", Subnet: "192.0.2.0/24", Size: 3, Used: 3, Exhausted: t0.Add(time.Minute), Refused: 2}}
	if diff := cmp.Diff(want, s.table.pools(t0.Add(time.Minute))); diff != "" || changes != 1 {
		t.Errorf("%d changes, -want +got:\n%s", changes, diff)
	}
	later := t0.Add(48 * time.Hour)
	lease(t, s, "02:00:00:00:00:04", later)
	want = []model.PoolFacts{{Network: "hosts", Subnet: "192.0.2.0/24", Size: 3, Used: 1}}
	if diff := cmp.Diff(want, s.table.pools(later)); diff != "" || changes != 2 {
		t.Errorf("%d changes, -want +got:\n%s", changes, diff)
	}
}

// A client that keeps its own offer alive must not keep stale offers of others
// alive, or a flood of MAC addresses would fill the pool for ever.
func TestStaleOffersGoAway(t *testing.T) {
	s := testServer(t, Options{})
	now := t0
	for _, mac := range []string{mac1, mac2, mac3} {
		if _, err := s.table.offer(ask(s, mac, "", now)); err != nil {
			t.Fatal(err)
		}
	}
	for range 8 {
		now = now.Add(9 * time.Second)
		if _, err := s.table.offer(ask(s, mac1, "", now)); err != nil {
			t.Fatal(err)
		}
	}
	for _, mac := range []string{"02:00:00:00:00:04", "02:00:00:00:00:05"} {
		if _, err := s.table.offer(ask(s, mac, "", now)); err != nil {
			t.Errorf("offer to %s: %v", mac, err)
		}
	}
}

// A lease that waited too long to be stored is not stored once its address has
// gone to another device.
func TestPrepareRefusesWhatIsAnothersNow(t *testing.T) {
	s := testServer(t, Options{})
	late, err := s.table.offer(ask(s, mac1, "", t0))
	if err != nil {
		t.Fatal(err)
	}
	for _, mac := range []string{mac2, mac3, "02:00:00:00:00:04"} {
		lease(t, s, mac, t0.Add(2*time.Minute))
	}
	if _, err := s.table.prepare(late); !errors.Is(err, errTaken) {
		t.Errorf("%s, which is another's now: got %v, want %v", late.Address, err, errTaken)
	}
}

func TestDelegatedPrefixes(t *testing.T) {
	cfg := hosts()
	cfg.Subnets = []Subnet{{
		CIDR: netip.MustParsePrefix("fd00::/64"), Range: rangeOf("fd00::10-fd00::ffff:ffff:ffff"),
		Delegate: Delegation{From: netip.MustParsePrefix("fd01::/62"), Bits: 64},
	}}
	s := testServer(t, Options{Networks: []Network{cfg}})
	var got []string
	for i := range 5 {
		q := ask(s, fmt.Sprintf("02:00:00:00:00:%02x", i), "", t0)
		q.bits = 64
		l, err := s.table.offer(q)
		if err != nil {
			got = append(got, err.Error())
			continue
		}
		commitNow(t, s, l)
		got = append(got, fmt.Sprintf("%s/%d", l.Address, l.Bits))
	}
	want := []string{"fd01::/64", "fd01:0:0:1::/64", "fd01:0:0:2::/64", "fd01:0:0:3::/64", errExhausted.Error()}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if a := lease(t, s, mac1, t0); a != addr("fd00::10") {
		t.Errorf("an address beside the prefix: got %s, want fd00::10", a)
	}
}

func TestTakeWhatIsDerived(t *testing.T) {
	cfg := hosts()
	cfg.Subnets = []Subnet{{CIDR: netip.MustParsePrefix("fd00::/64"), Derive: DeriveStateless}}
	s := testServer(t, Options{Networks: []Network{cfg}})
	l, err := s.table.take(ask(s, mac1, "fd00::200:0:1", t0))
	if err != nil {
		t.Fatal(err)
	}
	commitNow(t, s, l)
	if _, err := s.table.take(ask(s, mac1, "fd00::200:0:1", t0)); err != nil {
		t.Errorf("its own again: %v", err)
	}
	if _, err := s.table.take(ask(s, mac2, "fd00::200:0:1", t0)); !errors.Is(err, errTaken) {
		t.Errorf("another's: got %v, want %v", err, errTaken)
	}
	if _, err := s.table.take(ask(s, mac2, "fd00:0:0:1::1", t0)); err == nil {
		t.Error("an address of no subnet was given")
	}
}

// history drives a table through random events, and keeps a model of what was
// promised beside it.
type history struct {
	t        *testing.T
	r        *rand.Rand
	s        *Server
	now      time.Time
	stored   map[netip.Addr]model.Lease          // what a restart finds
	promised map[netip.Addr]model.Lease          // what clients believe
	shares   map[netip.Addr]map[uint32]time.Time // until when each association of its client does
	reserved map[string]netip.Addr
}

func (h *history) mac() string { return fmt.Sprintf("02:00:00:00:00:%02x", h.r.IntN(12)) }

// has returns an address that the MAC address believes to have.
func (h *history) has(mac string) (netip.Addr, bool) {
	for a, l := range h.promised {
		if l.MAC == mac && l.Expires.After(h.now) {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// commit stores a lease, and checks what it promises.
func (h *history) commit(l model.Lease) {
	also, err := h.s.table.prepare(l)
	if err != nil {
		return
	}
	for _, o := range append(also, l) {
		if o.Expires.IsZero() {
			delete(h.stored, o.Address)
			delete(h.promised, o.Address)
			continue
		}
		h.stored[o.Address] = o
	}
	h.s.table.bind(l)
	if l.Expires.IsZero() || l.Declined {
		delete(h.promised, l.Address)
		delete(h.shares, l.Address)
		return
	}
	if h.promised[l.Address].MAC != l.MAC {
		h.shares[l.Address] = map[uint32]time.Time{}
	}
	h.shares[l.Address][l.IAID] = l.Expires
	if was, ok := h.promised[l.Address]; ok && was.MAC != l.MAC && was.Expires.After(h.now) {
		h.t.Fatalf("%s was promised to %s until %s, and now to %s", l.Address, was.MAC, was.Expires, l.MAC)
	}
	for mac, a := range h.reserved {
		if was := h.promised[l.Address]; a == l.Address && mac != l.MAC && (was.MAC != l.MAC || !was.Expires.After(h.now)) {
			h.t.Fatalf("%s is reserved for %s and was newly given to %s", a, mac, l.MAC)
		}
	}
	for a, o := range h.promised {
		if o.MAC == l.MAC {
			delete(h.promised, a)
		}
	}
	h.promised[l.Address] = l
}

// step does one random thing.
func (h *history) step() {
	mac := h.mac()
	q := ask(h.s, mac, "", h.now)
	a, has := h.has(mac)
	q.wish, q.clientID, q.iaid = a, "duid", uint32(h.r.IntN(3))
	switch h.r.IntN(12) {
	case 0, 1, 2, 3: // boots
		if l, err := h.s.table.offer(q); err == nil && h.r.IntN(4) > 0 {
			q.wish = l.Address
			if l, state := h.s.table.renewal(q); state >= renewalFree {
				h.commit(l)
			} else {
				h.t.Fatalf("%s may not have %s that it was just offered: state %d", mac, l.Address, state)
			}
		}
	case 4, 5, 6: // renews, or asks for something
		if !has || h.r.IntN(4) == 0 {
			q.wish = netip.AddrFrom4([4]byte{192, 0, 2, byte(8 + h.r.IntN(10))})
		}
		if l, state := h.s.table.renewal(q); state >= renewalFree {
			h.commit(l)
		}
	case 7:
		l, _ := h.s.table.release(q)
		delete(h.shares[a], q.iaid)
		if l == nil || !has {
			break
		}
		for iaid, until := range h.shares[a] {
			if until.After(h.now) {
				h.t.Fatalf("association %d of %s gave %s back, and %d holds it until %s", q.iaid, mac, a, iaid, until)
			}
		}
		h.commit(*l)
	case 8:
		if l, _ := h.s.table.decline(q); l != nil && has {
			h.commit(*l)
		}
	case 9:
		h.reserved = map[string]netip.Addr{}
		var all []Reservation
		for i := range h.r.IntN(3) {
			r := Reservation{MAC: h.mac(), Address: netip.AddrFrom4([4]byte{192, 0, 2, byte(9 + 3*i)})}
			if _, twice := h.reserved[r.MAC]; !twice {
				h.reserved[r.MAC] = r.Address
				all = append(all, r)
			}
		}
		h.s.SetReservations(all)
	case 10:
		h.now = h.now.Add(time.Duration(h.r.IntN(40)) * time.Minute)
	case 11:
		h.restart()
	}
}

// restart starts a new table from what is stored.
func (h *history) restart() {
	h.s = testServer(h.t, Options{})
	var all []model.Lease
	for _, l := range h.stored {
		all = append(all, l)
		h.shares[l.Address] = map[uint32]time.Time{l.IAID: l.Expires} // the store knows who asked last
	}
	h.s.table.load(all, h.now)
	h.reserved = nil
}

// check compares the table with what clients believe.
func (h *history) check() {
	holders := map[string]netip.Addr{}
	for i := range 20 {
		a := netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})
		mac, ok := h.s.table.holder(a, h.now)
		if !ok {
			continue
		}
		if other, twice := holders[mac]; twice {
			h.t.Fatalf("%s holds %s and %s", mac, other, a)
		}
		holders[mac] = a
	}
	for a, l := range h.promised {
		if l.Expires.After(h.now) && holders[l.MAC] != a {
			h.t.Fatalf("%s was promised %s until %s, the table says %s", l.MAC, a, l.Expires, holders[l.MAC])
		}
	}
	p := h.s.networks[0].subnets[0].addresses
	if p.entries > p.limit || p.entries < 0 || p.offers < 0 || p.declined < 0 || len(p.freed) > 2*p.limit+1 {
		h.t.Fatalf("the pool is out of bounds: %d entries, %d offers, %d declined, %d freed", p.entries, p.offers, p.declined, len(p.freed))
	}
}

func TestTableProperties(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprintf("history %d", seed), func(t *testing.T) {
			h := &history{
				t: t, r: rand.New(rand.NewPCG(seed, 1)), s: testServer(t, Options{}), now: t0,
				stored: map[netip.Addr]model.Lease{}, promised: map[netip.Addr]model.Lease{},
				shares: map[netip.Addr]map[uint32]time.Time{},
			}
			for range 400 {
				h.step()
				h.check()
			}
		})
	}
}

func TestPoolCounts(t *testing.T) {
	for name, tc := range map[string]struct {
		first, last string
		shift       int
		want        uint64
	}{
		"one address":         {"192.0.2.1", "192.0.2.1", 0, 1},
		"a /24":               {"192.0.2.0", "192.0.2.255", 0, 256},
		"across 64 bits":      {"fd00::ffff:ffff:ffff:fffe", "fd00:0:0:1::1", 0, 4},
		"all of a /64":        {"fd00::", "fd00::ffff:ffff:ffff:ffff", 0, 1<<64 - 1},
		"prefixes of a /48":   {"fd00::", "fd00:0:0:ffff:ffff:ffff:ffff:ffff", 64, 65536},
		"small prefixes":      {"fd00::", "fd00::ffff", 8, 256},
		"everything there is": {"::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 0, 1<<64 - 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := steps(numberOf(addr(tc.first)), numberOf(addr(tc.last)), tc.shift); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

// askOn is ask of a client on the link that has subnets of the first network.
func askOn(s *Server, mac string, at ...int) query {
	q := ask(s, mac, "", t0)
	q.subnets = nil
	for _, i := range at {
		q.subnets = append(q.subnets, s.networks[0].subnets[i])
	}
	return q
}

func TestADeviceHasOneLeaseOnEachLink(t *testing.T) {
	cfg := hosts() // on our own link lie the subnets 0 and 2, relays lie before 1 and 3
	for _, cidr := range []string{"198.51.100.0/24", "203.0.113.0/24", "fd00:9::/64"} {
		p := netip.MustParsePrefix(cidr)
		cfg.Subnets = append(cfg.Subnets, Subnet{CIDR: p, Range: Range{First: p.Addr().Next(), Last: p.Addr().Next()}})
	}
	for name, tc := range map[string]struct {
		links [][]int // it asks for a lease on
		want  []string
	}{
		"a machine with VLANs of one MAC address has one on each": {
			[][]int{{0, 2}, {1}, {3}}, []string{"192.0.2.10", "198.51.100.1", "fd00:9::1"},
		},
		"asked again, it has the same": {
			[][]int{{1}, {0, 2}, {1}, {0, 2}}, []string{"198.51.100.1", "192.0.2.10"},
		},
		"on a link with two subnets it has one": {
			[][]int{{0}, {2}}, []string{"203.0.113.1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := testServer(t, Options{Networks: []Network{cfg}, Clock: func() time.Time { return t0 }})
			s.networks[0].sockets.current.Store(&link{name: "eth0", v4: []netip.Prefix{
				netip.MustParsePrefix("192.0.2.2/24"), netip.MustParsePrefix("203.0.113.2/24"),
			}, v6: []netip.Prefix{netip.MustParsePrefix("fd00:1::2/64")}})
			for _, at := range tc.links {
				l, err := s.table.offer(askOn(s, mac1, at...))
				if err != nil {
					t.Fatal(err)
				}
				commitNow(t, s, l)
			}
			var got []string
			for _, e := range s.table.leases[mac1] {
				got = append(got, e.address.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
