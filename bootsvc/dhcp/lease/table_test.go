package lease

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ingot/model"
	"ingot/model/must"
)

func TestOffer(t *testing.T) {
	reserve := func(w *world, mac, a string) {
		w.table.SetReservations([]Reservation{{MAC: mac, Name: "bmc-1", Address: addr(a)}})
	}
	for name, tc := range map[string]struct {
		before func(t *testing.T, w *world)
		mac    string // mac1 when empty
		wish   string
		after  time.Duration // since t0
		want   string        // empty = none
	}{
		"the first gets the first of the range": {want: "192.0.2.10"},
		"a wish in the range is granted":        {wish: "192.0.2.12", want: "192.0.2.12"},
		"a wish outside the range is not":       {wish: "192.0.2.50", want: "192.0.2.10"},
		"a wish for another's address is not": {
			before: func(t *testing.T, w *world) { lease(t, w, mac2, t0) }, wish: "192.0.2.10", want: "192.0.2.11",
		},
		"a reservation comes before a wish": {
			before: func(_ *testing.T, w *world) { reserve(w, mac1, "192.0.2.77") }, wish: "192.0.2.12", want: "192.0.2.77",
		},
		"a reservation comes before a lease": {
			before: func(t *testing.T, w *world) { lease(t, w, mac1, t0); reserve(w, mac1, "192.0.2.77") }, want: "192.0.2.77",
		},
		"a reserved address is not given to others": {
			before: func(_ *testing.T, w *world) { reserve(w, mac2, "192.0.2.10") }, want: "192.0.2.11",
		},
		"a reserved address is not given to others who wish for it": {
			before: func(_ *testing.T, w *world) { reserve(w, mac2, "192.0.2.10") }, wish: "192.0.2.10", want: "192.0.2.11",
		},
		"a reserved address that somebody holds stays theirs": {
			before: func(t *testing.T, w *world) { lease(t, w, mac2, t0); reserve(w, mac1, "192.0.2.10") }, want: "192.0.2.11",
		},
		"a reserved address that somebody held is free when that lease has ended": {
			before: func(t *testing.T, w *world) { lease(t, w, mac2, t0); reserve(w, mac1, "192.0.2.10") },
			after:  time.Hour + time.Second, want: "192.0.2.10",
		},
		"who held an address that is reserved now goes on with it": {
			before: func(t *testing.T, w *world) { lease(t, w, mac1, t0); reserve(w, mac2, "192.0.2.10") },
			after:  time.Minute, want: "192.0.2.10",
		},
		"who comes back after the lease has ended gets its address": {
			before: func(t *testing.T, w *world) {
				lease(t, w, mac2, t0)
				lease(t, w, mac1, t0)
			},
			after: 48 * time.Hour, want: "192.0.2.11",
		},
		"a new device gets what nobody has had before what has ended": {
			before: func(t *testing.T, w *world) { lease(t, w, mac2, t0) }, after: 48 * time.Hour, want: "192.0.2.11",
		},
		"the lease that ended first is given to others first": {
			before: func(t *testing.T, w *world) {
				lease(t, w, mac2, t0.Add(time.Second))
				lease(t, w, mac3, t0)
				lease(t, w, "02:00:00:00:00:04", t0.Add(2*time.Second))
			},
			after: 48 * time.Hour, want: "192.0.2.11",
		},
		"nothing is left": {
			before: func(t *testing.T, w *world) {
				for i := range 3 {
					lease(t, w, fmt.Sprintf("02:00:00:00:01:%02x", i), t0)
				}
			},
		},
		"an address that was given back is given again": {
			before: func(t *testing.T, w *world) {
				for i := range 3 {
					lease(t, w, fmt.Sprintf("02:00:00:00:01:%02x", i), t0)
				}
				l, ok := w.table.Release(ask(w, "02:00:00:00:01:01", "192.0.2.11", t0))
				if !ok {
					t.Fatal("not released")
				}
				commitNow(t, w, *l)
			},
			want: "192.0.2.11",
		},
		"an address that was declined is given to nobody": {
			before: func(t *testing.T, w *world) {
				lease(t, w, mac2, t0)
				if l, ok := w.table.Decline(ask(w, mac2, "192.0.2.10", t0), false); !ok || !l.Declined {
					t.Fatalf("not set aside: %+v", l)
				}
			},
			wish: "192.0.2.10", want: "192.0.2.11",
		},
		"this machine's own address is given to nobody": {
			before: func(_ *testing.T, w *world) { w.table.SetOwn(map[netip.Addr]bool{addr("192.0.2.10"): true}) },
			want:   "192.0.2.11",
		},
		"the oldest offer that nobody requested is taken back": {
			before: func(t *testing.T, w *world) {
				offer(t, w, mac2, t0)
				offer(t, w, mac3, t0)
				offer(t, w, "02:00:00:00:00:04", t0)
				offer(t, w, mac2, t0) // again
			},
			want: "192.0.2.11",
		},
		"an offer that is requested is not taken back": {
			before: func(t *testing.T, w *world) {
				for _, mac := range []string{mac2, mac3, "02:00:00:00:00:04"} {
					q := ask(w, mac, "", t0)
					q.Wish = offer(t, w, mac, t0)
					if _, state := w.table.Renewal(q); state != RenewalFree {
						t.Fatalf("%s is not free: %v", q.Wish, state)
					}
				}
				offer(t, w, mac3, t0) // again, while that is being stored
			},
		},
		"an offer is not taken back while a lease has ended": {
			before: func(t *testing.T, w *world) {
				lease(t, w, mac3, t0)
				offer(t, w, mac2, t0.Add(2*time.Hour))
				offer(t, w, "02:00:00:00:00:04", t0.Add(2*time.Hour))
			},
			after: 2 * time.Hour, want: "192.0.2.10",
		},
		"what is leased at once is no offer that can be taken back": {
			before: func(t *testing.T, w *world) {
				for _, mac := range []string{mac2, mac3, "02:00:00:00:00:04"} {
					q := ask(w, mac, "", t0)
					q.Binding = true
					must.Get(w.table.Offer(q))(t)
				}
			},
		},
		"an offer that nobody took is given to the next": {
			before: func(t *testing.T, w *world) {
				for i := range 3 {
					must.Get(w.table.Offer(ask(w, fmt.Sprintf("02:00:00:00:01:%02x", i), "", t0)))(t)
				}
			},
			after: time.Minute, want: "192.0.2.10",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(setup{})
			if tc.before != nil {
				tc.before(t, w)
			}
			mac := tc.mac
			if mac == "" {
				mac = mac1
			}
			l, err := w.table.Offer(ask(w, mac, tc.wish, t0.Add(tc.after)))
			switch {
			case tc.want == "" && !errors.Is(err, ErrExhausted):
				t.Fatalf("got %v, %v, want none", l.Address, err)
			case tc.want != "" && l.Address.String() != tc.want:
				t.Fatalf("got %v, %v, want %s", l.Address, err, tc.want)
			}
		})
	}
}

func offer(t testing.TB, w *world, mac string, now time.Time) netip.Addr {
	t.Helper()
	l, err := w.table.Offer(ask(w, mac, "", now))
	if err != nil {
		t.Fatalf("offer to %s: %v", mac, err)
	}
	return l.Address
}

// Whoever broadcasts Discovers and follows none of the offers keeps nobody from an address.
func TestAFloodOfDiscoversKeepsNobodyFromAnAddress(t *testing.T) {
	w := newWorld(setup{})
	now := t0
	flood := func(n int) {
		for range n {
			now = now.Add(50 * time.Millisecond)
			offer(t, w, fmt.Sprintf("06:00:00:00:%02x:%02x", now.Second(), now.Nanosecond()/50e6), now)
		}
	}
	flood(60)
	for i, mac := range []string{mac1, mac2, mac3} {
		q := ask(w, mac, "", now)
		q.Wish = offer(t, w, mac, now)
		flood(20) // a second passes until it is requested, and the offer is taken back
		q.Now = now
		l, state := w.table.Renewal(q)
		if state != RenewalFree {
			t.Fatalf("client %d requests %s: %v", i, q.Wish, state)
		}
		if i < 2 {
			flood(20)
		}
		commitNow(t, w, l)
	}
	if _, err := w.table.Offer(ask(w, "06:00:00:00:00:00", "", now)); !errors.Is(err, ErrExhausted) {
		t.Errorf("a fourth client is offered one of three addresses: %v", err)
	}
	for _, mac := range []string{mac1, mac2, mac3} {
		q := ask(w, mac, "", now)
		if e := w.table.index.leases.on(q.Subnets, q.device(), q.kind()); e == nil || !e.live(now) {
			t.Errorf("%s has lost its lease", mac)
		}
	}
}

func TestOfferedLease(t *testing.T) {
	w := newWorld(setup{})
	q := ask(w, mac1, "", t0)
	q.ClientID = "01020000000001"
	got, err := w.table.Offer(q)
	want := model.Lease{
		Network: "hosts", Role: model.RoleHost, MAC: mac1, Address: addr("192.0.2.10"), ClientID: "01020000000001",
		Since: t0, Renewed: t0, Expires: t0.Add(time.Hour),
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" || err != nil {
		t.Errorf("-want +got, %v:\n%s", err, diff)
	}
}

func TestKeptAddress(t *testing.T) {
	w := newWorld(setup{Options: Options{Keep: func(mac string) bool { return mac == mac1 }}})
	for _, mac := range []string{mac1, mac2, mac3} {
		lease(t, w, mac, t0)
	}
	later := t0.Add(48 * time.Hour)
	got := lease(t, w, "02:00:00:00:00:04", later)
	if got != addr("192.0.2.11") {
		t.Errorf("got %s, want 192.0.2.11: 192.0.2.10 is a Reserved server's", got)
	}
	lease(t, w, "02:00:00:00:00:05", later)
	w.table.SetReservations([]Reservation{{MAC: "02:00:00:00:00:06", Name: "e", Address: addr("192.0.2.10")}})
	if l, err := w.table.Offer(ask(w, "02:00:00:00:00:06", "", later)); err == nil {
		t.Errorf("offered %s, which is a Reserved server's", l.Address)
	}
	if back := lease(t, w, mac1, later); back != addr("192.0.2.10") {
		t.Errorf("the Reserved server came back and got %s, want 192.0.2.10", back)
	}
}

func TestRenewal(t *testing.T) {
	for name, tc := range map[string]struct {
		before func(t *testing.T, w *world)
		wish   string
		want   RenewalState
	}{
		"its own": {
			before: func(t *testing.T, w *world) { lease(t, w, mac1, t0) }, wish: "192.0.2.10", want: RenewalKnown,
		},
		"free in the range, nothing known": {wish: "192.0.2.12", want: RenewalFree},
		"another's": {
			before: func(t *testing.T, w *world) { lease(t, w, mac2, t0) }, wish: "192.0.2.10", want: RenewalTaken,
		},
		"free, but it has another": {
			before: func(t *testing.T, w *world) { lease(t, w, mac1, t0) }, wish: "192.0.2.12", want: RenewalElsewhere,
		},
		"of another subnet":               {wish: "198.51.100.7", want: RenewalOutside},
		"of the subnet, not of the range": {wish: "192.0.2.99", want: RenewalUnknown},
		"the gateway":                     {wish: "192.0.2.1", want: RenewalUnknown},
		"reserved for it, outside the range": {
			before: func(_ *testing.T, w *world) {
				w.table.SetReservations([]Reservation{{MAC: mac1, Address: addr("192.0.2.99")}})
			},
			wish: "192.0.2.99", want: RenewalFree,
		},
		"reserved for another": {
			before: func(_ *testing.T, w *world) {
				w.table.SetReservations([]Reservation{{MAC: mac2, Address: addr("192.0.2.12")}})
			},
			wish: "192.0.2.12", want: RenewalTaken,
		},
		"its own, while another is reserved for it": {
			before: func(t *testing.T, w *world) {
				lease(t, w, mac1, t0)
				w.table.SetReservations([]Reservation{{MAC: mac1, Address: addr("192.0.2.99")}})
			},
			wish: "192.0.2.10", want: RenewalElsewhere,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(setup{})
			if tc.before != nil {
				tc.before(t, w)
			}
			if _, got := w.table.Renewal(ask(w, mac1, tc.wish, t0)); got != tc.want {
				t.Errorf("got state %d, want %d", got, tc.want)
			}
		})
	}
}

// After a lost store nobody's address changes: who asks for what it had gets it,
// also when others are asking for just any address meanwhile.
func TestLostStore(t *testing.T) {
	before := newWorld(setup{})
	want := map[string]netip.Addr{}
	for _, mac := range []string{mac1, mac2, mac3} {
		want[mac] = lease(t, before, mac, t0)
	}
	after := newWorld(setup{})
	for _, mac := range []string{mac3, mac1, mac2} {
		l, state := after.table.Renewal(ask(after, mac, want[mac].String(), t0.Add(time.Minute)))
		if state != RenewalFree {
			t.Fatalf("%s asks for %s: state %d, want %d", mac, want[mac], state, RenewalFree)
		}
		commitNow(t, after, l)
	}
	for mac, a := range want {
		if got, _ := after.holder(a, t0.Add(time.Minute)); got != mac {
			t.Errorf("%s is held by %q, want %q", a, got, mac)
		}
	}
}

func TestDeclinesAreBounded(t *testing.T) {
	subnet := hosts()
	subnet.Ranges = []Range{rangeOf("192.0.2.10-192.0.2.109")}
	aside := func(w *world, mac string) bool {
		a := lease(t, w, mac, t0)
		l, ok := w.table.Decline(ask(w, mac, a.String(), t0), false)
		if !ok {
			t.Fatalf("%s cannot decline its own address", mac)
		}
		commitNow(t, w, *l)
		return l.Declined
	}
	t.Run("of one device", func(t *testing.T) {
		w := newWorld(setup{subnets: []Subnet{subnet}})
		count := 0
		for range 20 {
			if aside(w, mac1) {
				count++
			}
		}
		if count != maxDeclines {
			t.Errorf("%d addresses were set aside, want %d", count, maxDeclines)
		}
	})
	t.Run("of all devices", func(t *testing.T) {
		w := newWorld(setup{subnets: []Subnet{subnet}})
		count := 0
		for i := range 60 {
			if aside(w, fmt.Sprintf("02:00:00:00:02:%02x", i)) {
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
	w := newWorld(setup{Options: Options{Changed: func() { changes++ }}})
	for _, mac := range []string{mac1, mac2, mac3} {
		lease(t, w, mac, t0)
	}
	for range 5 {
		for _, mac := range []string{"02:00:00:00:00:04", "02:00:00:00:00:05"} {
			if _, err := w.table.Offer(ask(w, mac, "", t0.Add(time.Minute))); !errors.Is(err, ErrExhausted) {
				t.Fatalf("got %v, want %v", err, ErrExhausted)
			}
		}
	}
	want := []model.PoolFacts{{Network: "hosts", Subnet: "192.0.2.0/24", Size: 3, Used: 3, Exhausted: t0.Add(time.Minute), Refused: 2}}
	if diff := cmp.Diff(want, w.table.Pools(t0.Add(time.Minute))); diff != "" || changes != 1 {
		t.Errorf("%d changes, -want +got:\n%s", changes, diff)
	}
	later := t0.Add(48 * time.Hour)
	lease(t, w, "02:00:00:00:00:04", later)
	want = []model.PoolFacts{{Network: "hosts", Subnet: "192.0.2.0/24", Size: 3, Used: 1}}
	if diff := cmp.Diff(want, w.table.Pools(later)); diff != "" || changes != 2 {
		t.Errorf("%d changes, -want +got:\n%s", changes, diff)
	}
}

// A client that keeps its own offer alive must not keep stale offers of others
// alive, or a flood of MAC addresses would fill the pool for ever.
func TestStaleOffersGoAway(t *testing.T) {
	w := newWorld(setup{})
	now := t0
	for _, mac := range []string{mac1, mac2, mac3} {
		must.Get(w.table.Offer(ask(w, mac, "", now)))(t)
	}
	for range 8 {
		now = now.Add(9 * time.Second)
		must.Get(w.table.Offer(ask(w, mac1, "", now)))(t)
	}
	for _, mac := range []string{"02:00:00:00:00:04", "02:00:00:00:00:05"} {
		if _, err := w.table.Offer(ask(w, mac, "", now)); err != nil {
			t.Errorf("offer to %s: %v", mac, err)
		}
	}
}

func TestDelegatedPrefixes(t *testing.T) {
	w := newWorld(setup{subnets: []Subnet{{
		CIDR: netip.MustParsePrefix("fd00::/64"), Ranges: []Range{rangeOf("fd00::10-fd00::ffff:ffff:ffff")},
		Delegate: Delegation{From: netip.MustParsePrefix("fd01::/62"), Bits: 64},
	}}})
	var got []string
	for i := range 5 {
		q := ask(w, fmt.Sprintf("02:00:00:00:00:%02x", i), "", t0)
		q.Bits = 64
		l, err := w.table.Offer(q)
		if err != nil {
			got = append(got, err.Error())
			continue
		}
		commitNow(t, w, l)
		got = append(got, fmt.Sprintf("%s/%d", l.Address, l.Bits))
	}
	want := []string{"fd01::/64", "fd01:0:0:1::/64", "fd01:0:0:2::/64", "fd01:0:0:3::/64", ErrExhausted.Error()}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if a := lease(t, w, mac1, t0); a != addr("fd00::10") {
		t.Errorf("an address beside the prefix: got %s, want fd00::10", a)
	}
}

func TestTakeWhatIsDerived(t *testing.T) {
	w := newWorld(setup{subnets: []Subnet{{CIDR: netip.MustParsePrefix("fd00::/64")}}})
	l := must.Get(w.table.Take(ask(w, mac1, "fd00::200:0:1", t0)))(t)
	commitNow(t, w, l)
	if _, err := w.table.Take(ask(w, mac1, "fd00::200:0:1", t0)); err != nil {
		t.Errorf("its own again: %v", err)
	}
	if _, err := w.table.Take(ask(w, mac2, "fd00::200:0:1", t0)); !errors.Is(err, errTaken) {
		t.Errorf("another's: got %v, want %v", err, errTaken)
	}
	if _, err := w.table.Take(ask(w, mac2, "fd00:0:0:1::1", t0)); err == nil {
		t.Error("an address of no subnet was given")
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

func askOn(w *world, mac string, at ...int) Query {
	q := ask(w, mac, "", t0)
	q.Subnets = nil
	for _, i := range at {
		q.Subnets = append(q.Subnets, w.network.Subnets[i])
	}
	return q
}

func TestADeviceHasOneLeaseOnEachLink(t *testing.T) {
	subnets := []Subnet{hosts()} // on our own link lie the subnets 0 and 2, relays lie before 1 and 3
	for _, cidr := range []string{"198.51.100.0/24", "203.0.113.0/24", "fd00:9::/64"} {
		p := netip.MustParsePrefix(cidr)
		subnets = append(subnets, Subnet{CIDR: p, Ranges: []Range{{First: p.Addr().Next(), Last: p.Addr().Next()}}})
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
			w := newWorld(setup{subnets: subnets, ours: []netip.Prefix{
				netip.MustParsePrefix("192.0.2.2/24"), netip.MustParsePrefix("203.0.113.2/24"), netip.MustParsePrefix("fd00:1::2/64"),
			}})
			for _, at := range tc.links {
				l := must.Get(w.table.Offer(askOn(w, mac1, at...)))(t)
				commitNow(t, w, l)
			}
			var got []string
			for _, e := range w.table.index.leases[interfaceOf(mac1)] {
				got = append(got, e.address.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
