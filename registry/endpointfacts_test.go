package registry

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/registry/store"
)

func given(mac int, address string, at time.Duration) model.Lease {
	return model.Lease{
		Network: "oob", Role: model.RoleBMC, MAC: macOf(mac), Address: netip.MustParseAddr(address),
		Since: now.Add(at), Renewed: now.Add(at), Expires: now.Add(24 * time.Hour),
	}
}

func TestWhatLeasesSayOfDevices(t *testing.T) {
	on := func(network string, l model.Lease) model.Lease { l.Network = network; return l }
	host := func(l model.Lease) model.Lease { l.Role = model.RoleHost; return l }
	renewed := func(l model.Lease, at time.Duration) model.Lease { l.Renewed = now.Add(at); return l }
	arrived := func(l model.Lease) model.Lease { l.Arrived = true; return l }
	ended := func(l model.Lease) model.Lease { l.Expires = now.Add(-time.Second); return l }
	forgotten := func(l model.Lease) model.Lease { l.Expires = time.Time{}; return l }
	declined := func(l model.Lease) model.Lease { l.Declined = true; return l }
	further := func(l model.Lease) model.Lease { l.Nth = 1; return l }
	unknown := func(l model.Lease) model.Lease { l.MAC, l.ClientID = "", "0002000000090123"; return l }
	prefix := func(l model.Lease) model.Lease { l.Bits = 64; return l }
	fact := func(mac int, ip, network string, at time.Duration) *model.EndpointFacts {
		return &model.EndpointFacts{MACAddress: macOf(mac), IP: ip, Network: network, Since: now.Add(at)}
	}
	const hour = time.Hour
	cases := map[string]struct {
		groups [][]model.Lease
		want   []*model.EndpointFacts
	}{
		"a device on a bmc network is known by its address": {
			[][]model.Lease{{given(1, "10.0.0.1", 0)}},
			[]*model.EndpointFacts{fact(1, "10.0.0.1", "oob", 0)},
		},
		"hosts are not": {
			[][]model.Lease{{host(given(1, "10.0.0.1", 0))}}, nil,
		},
		"nor is an address that somebody else uses": {
			[][]model.Lease{{declined(given(1, "10.0.0.1", 0))}}, nil,
		},
		"nor is a delegated prefix an address": {
			[][]model.Lease{{prefix(given(1, "fd00::", 0))}}, nil,
		},
		"nor a lease that has ended": {
			[][]model.Lease{{ended(given(1, "10.0.0.1", 0))}}, nil,
		},
		"nor what a device has besides": {
			[][]model.Lease{{given(1, "fd00::1", -hour)}, {further(given(1, "fd00::2", 0))}},
			[]*model.EndpointFacts{fact(1, "fd00::1", "oob", -hour)},
		},
		"nor what nobody knows whose it is": {
			[][]model.Lease{{unknown(given(1, "fd00::1", 0))}}, nil,
		},
		"but its address is the former's no more": {
			[][]model.Lease{{given(1, "fd00::1", -hour), given(3, "fd00::3", -hour)}, {unknown(given(2, "fd00::1", 0)), further(given(2, "fd00::3", 0))}},
			[]*model.EndpointFacts{fact(1, "", "oob", -hour), fact(3, "", "oob", -hour)},
		},
		"a device that gets another address is known by that (H24)": {
			[][]model.Lease{{given(1, "10.0.0.1", -hour)}, {given(1, "10.0.0.2", 0)}},
			[]*model.EndpointFacts{fact(1, "10.0.0.2", "oob", 0)},
		},
		"within one group too": {
			[][]model.Lease{{given(1, "10.0.0.1", -hour), given(1, "10.0.0.2", 0)}},
			[]*model.EndpointFacts{fact(1, "10.0.0.2", "oob", 0)},
		},
		"IPv4 is preferred when it comes second": {
			[][]model.Lease{{given(1, "fd00::1", -hour)}, {given(1, "10.0.0.1", 0)}},
			[]*model.EndpointFacts{fact(1, "10.0.0.1", "oob", 0)},
		},
		"IPv4 is preferred when it comes first": {
			[][]model.Lease{{given(1, "10.0.0.1", -hour)}, {given(1, "fd00::1", 0)}},
			[]*model.EndpointFacts{fact(1, "10.0.0.1", "oob", -hour)},
		},
		"an address that another device got is the former's no more": {
			[][]model.Lease{{given(1, "10.0.0.1", -hour)}, {given(2, "10.0.0.1", 0)}},
			[]*model.EndpointFacts{fact(1, "", "oob", -hour), fact(2, "10.0.0.1", "oob", 0)},
		},
		"within one group it is neither": {
			[][]model.Lease{{given(1, "10.0.0.1", -hour), given(2, "10.0.0.1", 0)}},
			[]*model.EndpointFacts{fact(1, "", "oob", -hour), fact(2, "10.0.0.1", "oob", 0)},
		},
		"nor when a host got it": {
			[][]model.Lease{{given(1, "10.0.0.1", -hour)}, {host(given(2, "10.0.0.1", 0))}},
			[]*model.EndpointFacts{fact(1, "", "oob", -hour)},
		},
		"nor on another network": {
			[][]model.Lease{{given(1, "10.0.0.1", -hour)}, {on("lab", given(2, "10.0.0.1", 0))}},
			[]*model.EndpointFacts{fact(1, "", "oob", -hour), fact(2, "10.0.0.1", "lab", 0)},
		},
		"two devices that change places are known by their new ones": {
			[][]model.Lease{
				{given(1, "10.0.0.1", -hour), given(2, "10.0.0.2", -hour)},
				{given(1, "10.0.0.2", 0), given(2, "10.0.0.1", 0)},
			},
			[]*model.EndpointFacts{fact(1, "10.0.0.2", "oob", 0), fact(2, "10.0.0.1", "oob", 0)},
		},
		"a device without an address is known by the next that it gets, of any family": {
			[][]model.Lease{{given(1, "10.0.0.1", -2*hour)}, {given(2, "10.0.0.1", -hour)}, {given(1, "fd00::1", 0)}},
			[]*model.EndpointFacts{fact(1, "fd00::1", "oob", 0), fact(2, "10.0.0.1", "oob", -hour)},
		},
		"what a lease that was given back said stays": {
			[][]model.Lease{{given(1, "10.0.0.1", -hour)}, {forgotten(given(1, "10.0.0.1", -hour))}},
			[]*model.EndpointFacts{fact(1, "10.0.0.1", "oob", -hour)},
		},
		"a device that moved to another network is known by its address there": {
			[][]model.Lease{{given(1, "10.0.0.1", -hour)}, {on("lab", given(1, "10.1.0.1", 0))}},
			[]*model.EndpointFacts{fact(1, "10.1.0.1", "lab", 0)},
		},
		"a device on two networks keeps the address that it got last": {
			[][]model.Lease{
				{given(1, "10.0.0.1", -2*hour)}, {on("lab", given(1, "10.1.0.1", -hour))},
				{renewed(given(1, "10.0.0.1", -2*hour), 0)}, {on("lab", renewed(given(1, "10.1.0.1", -hour), 0))},
				{renewed(given(1, "10.0.0.1", -2*hour), 0)},
			},
			[]*model.EndpointFacts{fact(1, "10.1.0.1", "lab", -hour)},
		},
		"a device that came back is known by the address that it still had": {
			[][]model.Lease{
				{given(1, "10.0.0.1", -3*hour)}, {on("lab", given(1, "10.1.0.1", -2*hour))},
				{arrived(renewed(given(1, "10.0.0.1", -3*hour), -hour))},
			},
			[]*model.EndpointFacts{fact(1, "10.0.0.1", "oob", -hour)},
		},
		"saving all leases again in any order changes nothing": {
			[][]model.Lease{
				{given(1, "10.0.0.1", -hour)}, {on("lab", given(1, "10.1.0.1", 0))},
				{on("lab", given(1, "10.1.0.1", 0)), given(1, "10.0.0.1", -hour)},
			},
			[]*model.EndpointFacts{fact(1, "10.1.0.1", "lab", 0)},
		},
		"an old lease takes no address from the device that has it": {
			[][]model.Lease{{on("lab", given(1, "10.0.0.1", 0))}, {given(2, "10.0.0.1", -hour)}},
			[]*model.EndpointFacts{fact(1, "10.0.0.1", "lab", 0)},
		},
		"what a wrong clock wrote holds nothing up": {
			[][]model.Lease{{given(1, "10.0.0.1", 9000*hour)}, {given(1, "10.0.0.2", -hour)}},
			[]*model.EndpointFacts{fact(1, "10.0.0.2", "oob", -hour)},
		},
		"a network that got another name": {
			[][]model.Lease{{given(1, "10.0.0.1", -hour)}, {on("new", given(1, "10.0.0.1", 0))}},
			[]*model.EndpointFacts{fact(1, "10.0.0.1", "new", -hour)},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := Options{Dir: t.TempDir()}
			r := lead(t, o)
			for _, group := range c.groups {
				saveLeases(t, r, group...)
			}
			want := model.NewObserved()
			for _, f := range c.want {
				want.EndpointFacts[f.MACAddress] = f
			}
			wantObserved(t, r, want)
			_ = r.Close()
			wantObserved(t, open(t, o), want)
		})
	}
}

// A fleet whose devices renew keeps everybody asleep.
func TestRenewalsAreNoNews(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		r := lead(t, b.options)
		saveLeases(t, r, leaseOf(1), leaseWith(2, func(l *model.Lease) { l.Role = model.RoleHost }))
		<-r.Changed()
		before := r.Observed()
		for n := range 3 {
			at := now.Add(time.Duration(n) * time.Minute)
			renewed := leaseWith(1, func(l *model.Lease) { l.Renewed, l.Expires = at, at.Add(time.Hour) })
			saveLeases(t, r, renewed, leaseWith(2, func(l *model.Lease) { l.Role, l.Renewed = model.RoleHost, at }))
		}
		saveLeases(t, r, leaseWith(1, func(l *model.Lease) { l.Expires = time.Time{} }))
		if r.Observed() != before {
			t.Error("the snapshot is another one")
		}
		select {
		case <-r.Changed():
			t.Error("told of a change")
		default:
		}
	})
}

// Edits that share a commit see what those before them decided.
func TestLeasesOfOneCommitSeeEachOther(t *testing.T) {
	r := lead(t, Options{Dir: t.TempDir()})
	saveLeases(t, r, given(1, "10.0.0.1", -time.Hour))
	r.turn <- struct{}{}
	results := make(chan error)
	for i := range 3 { // each gets the address of the one before
		l := given(i+2, "10.0.0.1", time.Duration(i)*time.Second)
		go func() { results <- r.Leases.SaveLeases(t.Context(), []model.Lease{l}) }()
		eventually(t, "it waits", func() bool {
			r.queue.mu.Lock()
			defer r.queue.mu.Unlock()
			return len(r.queue.waiting) == i+1
		})
	}
	counted := &countingStore{Store: r.store}
	r.store = counted
	<-r.turn
	for range 3 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if counted.commits != 1 {
		t.Errorf("%d commits", counted.commits)
	}
	for mac, f := range r.Observed().EndpointFacts {
		if want := map[bool]string{true: "10.0.0.1"}[mac == macOf(4)]; f.IP != want {
			t.Errorf("%s has %q, want %q", mac, f.IP, want)
		}
	}
}

// countingStore counts commits.
type countingStore struct {
	store.Store
	commits int
}

func (s *countingStore) Commit(ctx context.Context, b store.Batch) error {
	s.commits++
	return s.Store.Commit(ctx, b)
}

// No two devices have one address, whatever is leased to whom; and what is stored
// means the same to the next process.
func TestNoTwoDevicesHaveOneAddress(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			o := Options{Dir: t.TempDir()}
			r := lead(t, o)
			last := make(map[string]string) // MAC address by IP, as last leased
			for step := range 30 {
				var group []model.Lease
				for range 1 + random.IntN(4) {
					l := given(random.IntN(5), fmt.Sprintf("10.0.0.%d", random.IntN(4)), time.Duration(step)*time.Second)
					if random.IntN(4) == 0 {
						l.Address = netip.MustParseAddr(fmt.Sprintf("fd00::%d", random.IntN(3)))
					}
					if random.IntN(6) == 0 {
						l.Role = model.RoleHost
					}
					switch random.IntN(8) {
					case 0:
						l.MAC, l.ClientID = "", "0002000000090123"
					case 1:
						l.Nth = 1
					}
					group = append(group, l)
					last[l.Address.String()] = l.MAC
				}
				saveLeases(t, r, group...)
				seen := make(map[string]string)
				for mac, f := range r.Observed().EndpointFacts {
					if f.IP == "" {
						continue
					}
					if seen[f.IP] != "" || last[f.IP] != mac {
						t.Fatalf("step %d: %s has %s, which %s has too, and %s got last", step, mac, f.IP, seen[f.IP], last[f.IP])
					}
					seen[f.IP] = mac
				}
				if diff := cmp.Diff(seen, r.memory.byIP); diff != "" {
					t.Fatalf("index (-want +got):\n%s", diff)
				}
			}
			want := r.Observed()
			_ = r.Close()
			wantObserved(t, open(t, o), want)
		})
	}
}

// A device that shows ever new MAC addresses drives out only what nobody misses.
func TestThereIsAnEndToDevices(t *testing.T) {
	r := lead(t, Options{Dir: t.TempDir()})
	var leases []model.Lease
	for i := range maxEndpointFacts {
		leases = append(leases, leaseOf(i))
	}
	saveLeases(t, r, leases...)
	saveLeases(t, r, leaseOf(maxEndpointFacts))
	if got := r.Observed().EndpointFacts; len(got) != maxEndpointFacts || got[macOf(maxEndpointFacts)] != nil {
		t.Errorf("%d devices", len(got))
	}
	taken := leaseWith(7, func(l *model.Lease) { l.MAC = macOf(8) })
	saveLeases(t, r, taken, leaseOf(maxEndpointFacts+1))
	got := r.Observed().EndpointFacts
	if len(got) != maxEndpointFacts || got[macOf(7)] != nil ||
		got[macOf(maxEndpointFacts+1)] == nil || got[macOf(8)].IP != addressOf(7).String() {
		t.Errorf("%d devices", len(got))
	}
}

func TestWhichReservationGaveAnAddressIsNoted(t *testing.T) {
	now := time.Unix(1e9, 0)
	l := model.Lease{
		Network: "oob", Role: model.RoleBMC, MAC: "02:00:00:00:00:01", Address: netip.MustParseAddr("192.0.2.7"),
		Since: now.Add(-time.Hour), Renewed: now, Expires: now.Add(time.Hour),
	}
	facts, _ := nextFacts(nil, &l, now)
	for _, reserved := range []string{"port-7", "port-7", ""} {
		l.Reserved = reserved
		next, isNew := nextFacts(facts, &l, now)
		if isNew != (facts.Reserved != reserved) || next.Reserved != reserved || !next.Since.Equal(facts.Since) {
			t.Errorf("%q: got %+v, new %v, after %+v", reserved, next, isNew, facts)
		}
		facts = next
	}
}
