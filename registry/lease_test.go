package registry

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"ingot/model"
	"ingot/model/must"
	"ingot/registry/internal/redistest"
	"ingot/registry/lease"
	"ingot/registry/store"
)

func leaseOf(i int) model.Lease {
	return model.Lease{
		Network: "oob", Role: model.RoleBMC, MAC: macOf(i), Address: addressOf(i), ClientID: "01" + strings.ReplaceAll(macOf(i), ":", ""),
		Since: now, Renewed: now, Expires: now.Add(time.Hour),
	}
}

func leaseWith(i int, edit func(*model.Lease)) model.Lease {
	l := leaseOf(i)
	edit(&l)
	return l
}

func macOf(i int) string {
	return model.MAC{0x02, 0, 0, byte(i >> 16), byte(i >> 8), byte(i)}.String()
}

func addressOf(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
}

func saveLeases(t testing.TB, r *Registry, leases ...model.Lease) {
	t.Helper()
	must.Do(t, r.Leases.SaveLeases(t.Context(), leases))
}

func wantLeases(t *testing.T, r *Registry, want ...model.Lease) {
	t.Helper()
	got := must.Get(r.Leases.Leases(t.Context()))(t)
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("leases (-want +got):\n%s", diff)
	}
}

func TestLeasesSurviveARestart(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		r := lead(t, b.options)
		wantLeases(t, r)
		want := []model.Lease{
			leaseWith(7, func(l *model.Lease) { l.Network, l.Role = "host", model.RoleHost }),
			leaseOf(1),
			leaseWith(2, func(l *model.Lease) { l.MAC, l.Declined = "", true }),
			leaseWith(5, func(l *model.Lease) { l.Address, l.Bits = netip.MustParseAddr("fd00:1::"), 64 }),
		}
		shuffled := slices.Clone(want)
		rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		saveLeases(t, r, shuffled...)
		wantLeases(t, r, want...)
		want[1].Renewed, want[1].Expires = now.Add(time.Minute), now.Add(2*time.Hour)
		saveLeases(t, r, want[1])
		gone := want[2]
		gone.Expires = time.Time{}
		saveLeases(t, r, gone, leaseWith(99, func(l *model.Lease) { l.Expires = time.Time{} }))
		want = slices.Delete(want, 2, 3)
		wantLeases(t, r, want...)
		must.Do(t, r.Close())
		again := lead(t, b.options)
		wantLeases(t, again, want...)
	})
}

func TestTheLastOfTwoLeasesOfAnAddressCounts(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		r := lead(t, b.options)
		other := leaseWith(1, func(l *model.Lease) { l.MAC = macOf(2) })
		saveLeases(t, r, leaseOf(1), other)
		wantLeases(t, r, other)
		forget := other
		forget.Expires = time.Time{}
		saveLeases(t, r, leaseOf(1), forget)
		wantLeases(t, r)
		saveLeases(t, r, forget, leaseOf(1))
		wantLeases(t, r, leaseOf(1))
	})
}

func TestMoreLeasesThanOneCommitHoldsAreSaved(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		r := lead(t, b.options)
		var want []model.Lease
		for i := range 2*store.LeaseGroup + 1 {
			want = append(want, leaseWith(i, func(l *model.Lease) { l.Role = model.RoleHost }))
		}
		saveLeases(t, r, want...)
		wantLeases(t, r, want...)
		if got := testutil.ToFloat64(r.metrics.writes.WithLabelValues("lease")); got != float64(len(want)) {
			t.Errorf("%v writes counted, want %d", got, len(want))
		}
	})
}

func TestLeasesAreSavedByTheLeaderAlone(t *testing.T) {
	s := redistest.New(t)
	o := Options{RedisURL: s.URL()}
	first := lead(t, o)
	saveLeases(t, first, leaseOf(1))
	standby := open(t, o)
	if err := standby.Leases.SaveLeases(t.Context(), []model.Lease{leaseOf(2)}); !errors.Is(err, store.ErrFenced) {
		t.Errorf("a standby saved: %v", err)
	}
	s.Client(t).Del(t.Context(), "{ingot}:lease") // it ran out, and the first does not know
	must.Do(t, standby.AwaitLead(t.Context()))
	saveLeases(t, standby, leaseOf(3))
	taken := leaseWith(1, func(l *model.Lease) { l.MAC = macOf(9) })
	if err := first.Leases.SaveLeases(t.Context(), []model.Lease{taken}); !errors.Is(err, store.ErrFenced) {
		t.Errorf("the fenced one saved: %v", err)
	}
	wantLeases(t, standby, leaseOf(1), leaseOf(3))
}

// A standby sees what DHCP knows of devices, but takes no part in leases.
func TestStandbyIsNotWokenByRenewals(t *testing.T) {
	s := redistest.New(t)
	o := Options{RedisURL: s.URL()}
	leader, standby := lead(t, o), open(t, o)
	run(t, standby)
	saveLeases(t, leader, leaseOf(1))
	eventually(t, "the standby has the facts", func() bool { return cmp.Equal(leader.Observed(), standby.Observed()) })
	<-standby.Changed()
	before := standby.Observed()
	saveLeases(t, leader, leaseWith(1, func(l *model.Lease) { l.Renewed = now.Add(time.Minute) }))
	newest := s.Client(t).XRevRangeN(t.Context(), "{ingot}:feed", "+", "-", 1).Val()
	if len(newest) != 1 || newest[0].Values["changed"] != "[]" {
		t.Errorf("the feed tells of renewals: %v", newest)
	}
	save(t, leader, Changes{Claims: []*model.ClaimRecord{{Name: "default/web"}}}) // after it in the feed
	eventually(t, "the standby has the claim", func() bool { return len(standby.Observed().Claims) == 1 })
	if before.EndpointFacts[macOf(1)] != standby.Observed().EndpointFacts[macOf(1)] {
		t.Error("a renewal changed the facts")
	}
}

// What is lost with the store only DHCP can save again: it is told so (H19).
func TestLostLeasesAreAskedFor(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		r := lead(t, b.options)
		run(t, r)
		saveLeases(t, r, leaseOf(1), leaseOf(2))
		saved := r.Leases.LeaseEpoch()
		save(t, r, everything())
		if r.Leases.LeaseEpoch() != saved {
			t.Error("leases are asked for though nothing was lost")
		}
		b.lose(t)
		eventually(t, "leases are asked for", func() bool { return r.Leases.LeaseEpoch() != saved })
		saved = r.Leases.LeaseEpoch()
		saveLeases(t, r, leaseOf(1), leaseOf(2))
		wantLeases(t, r, leaseOf(1), leaseOf(2))
		if r.Leases.LeaseEpoch() != saved {
			t.Error("leases are asked for again")
		}
		if got := r.Observed().EndpointFacts; len(got) != 2 {
			t.Errorf("endpoint facts %v", got)
		}
	})
}

// A save that meets a lost store is made, and what was lost before it is asked for.
func TestLeaseSavedToALostStore(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		r := lead(t, b.options)
		saveLeases(t, r, leaseOf(1))
		save(t, r, everything())
		saved := r.Leases.LeaseEpoch()
		b.lose(t)
		saveLeases(t, r, leaseOf(2))
		wantLeases(t, r, leaseOf(2))
		if r.Leases.LeaseEpoch() == saved {
			t.Error("the lost lease is not asked for")
		}
		want := r.Observed()
		_ = r.Close()
		wantObserved(t, open(t, b.options), want)
	})
}

// A Redis that lags behind after a fail-over keeps the leases that it has (X04).
func TestRolledBackStoreKeepsItsLeases(t *testing.T) {
	s := redistest.New(t)
	r := lead(t, Options{RedisURL: s.URL()})
	save(t, r, everything())
	saveLeases(t, r, leaseOf(1))
	saveLeases(t, r, leaseOf(2))
	s.Client(t).Decr(t.Context(), "{ingot}:revision")
	s.Client(t).HDel(t.Context(), "{ingot}:data:lease", mustName(t, leaseOf(2)))
	saved := r.Leases.LeaseEpoch()
	saveLeases(t, r, leaseOf(3))
	wantLeases(t, r, leaseOf(1), leaseOf(3))
	if r.Leases.LeaseEpoch() == saved {
		t.Error("the lost lease is not asked for")
	}
}

func mustName(t testing.TB, l model.Lease) string {
	t.Helper()
	name, _, err := lease.Encode(&l)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// Redis away: a save fails soon, DHCP saves again what it believes, and the facts
// are those of memory meanwhile.
func TestLeasesWhenRedisGoesAway(t *testing.T) {
	s := redistest.New(t, "--appendonly", "yes", "--appendfsync", "always") // it is killed right after a save
	r := lead(t, Options{RedisURL: s.URL(), LeaderTTL: 200 * time.Millisecond})
	saveLeases(t, r, leaseOf(1))
	run(t, r)
	before := r.Observed()
	s.Stop()
	renewed := leaseWith(1, func(l *model.Lease) { l.Renewed = now.Add(time.Minute) })
	if err := r.Leases.SaveLeases(t.Context(), []model.Lease{renewed, leaseOf(2)}); err == nil {
		t.Error("saved without a store")
	}
	if r.Observed() != before {
		t.Error("what was not saved is observed")
	}
	// As if the commit had been made and only its answer was lost.
	r.turn <- struct{}{}
	s.Start(t)
	s.Client(t).HSet(t.Context(), "{ingot}:data:endpointfacts", macOf(2), `{"macAddress":"`+macOf(2)+`"}`)
	<-r.turn
	eventually(t, "amended", func() bool {
		return !s.Client(t).HExists(t.Context(), "{ingot}:data:endpointfacts", macOf(2)).Val()
	})
	eventually(t, "healthy", func() bool { return r.Lead.Healthy() == nil })
	saveLeases(t, r, leaseOf(2))
	wantLeases(t, r, leaseOf(1), leaseOf(2))
	if r.Observed().EndpointFacts[macOf(2)] == nil {
		t.Error("no facts of what was saved in the end")
	}
}

func TestUnusableLeasesAreLeftOut(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		r := lead(t, b.options)
		saveLeases(t, r, leaseOf(1), leaseOf(2))
		name := mustName(t, leaseOf(3))
		bad := store.Batch{set(store.BucketLease, "oob", "x"), set(store.BucketLease, name, "\x02later"), set(store.BucketLease, "", "")}
		if b.options.RedisURL == "" {
			bad = bad[:2] // there a name is never empty
		}
		must.Do(t, r.store.Commit(t.Context(), bad))
		wantLeases(t, r, leaseOf(1), leaseOf(2))
		if got := testutil.ToFloat64(r.metrics.corrupt); got != float64(len(bad)) {
			t.Errorf("%v corrupt values counted", got)
		}
		saveLeases(t, r, leaseOf(3))
		wantLeases(t, r, leaseOf(1), leaseOf(2), leaseOf(3))
	})
}

func TestUnkeepableLeasesAreRefused(t *testing.T) {
	cases := map[string]struct {
		edit func(*model.Lease)
		want string
	}{
		"no network":                     {func(l *model.Lease) { l.Network = "" }, "no name of a network"},
		"a network with a zero byte":     {func(l *model.Lease) { l.Network = "a\x00b" }, "no name of a network"},
		"no address":                     {func(l *model.Lease) { l.Address = netip.Addr{} }, "no address to lease"},
		"an address of one link":         {func(l *model.Lease) { l.Address = netip.MustParseAddr("fe80::1%eth0") }, "no address to lease"},
		"a prefix longer than addresses": {func(l *model.Lease) { l.Bits = 33 }, "allowed are 0 to 32"},
		"a prefix of less than nothing":  {func(l *model.Lease) { l.Bits = -1 }, "allowed are 0 to 32"},
		"no role":                        {func(l *model.Lease) { l.Role = "" }, "no role"},
		"a MAC address in capitals":      {func(l *model.Lease) { l.MAC = "02:00:00:00:00:AB" }, "no canonical MAC"},
		"something for a MAC address":    {func(l *model.Lease) { l.MAC = "switch" }, "no canonical MAC"},
		"a time out of reach":            {func(l *model.Lease) { l.Expires = now.AddDate(500, 0, 0) }, "centuries away"},
		"a client identifier of 4 KiB":   {func(l *model.Lease) { l.ClientID = strings.Repeat("0", 4<<10) }, "allowed are 4096"},
	}
	r := lead(t, Options{Dir: t.TempDir()})
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := r.Leases.SaveLeases(t.Context(), []model.Lease{leaseOf(1), leaseWith(2, c.edit)})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			wantLeases(t, r)
		})
	}
}

func TestThereIsAnEndToLeases(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		r := lead(t, b.options)
		saveLeases(t, r, leaseOf(1), leaseOf(2))
		// As if others filled the store, but for one.
		r.store = fullStore{r.store, maxLeases - 3}
		r.Leases.bound = maxLeases
		renewed := leaseWith(1, func(l *model.Lease) { l.Renewed = now.Add(time.Minute) })
		if err := r.Leases.SaveLeases(t.Context(), []model.Lease{renewed, leaseOf(3), leaseOf(4)}); !errors.Is(err, errLeasesFull) {
			t.Errorf("got %v", err)
		}
		wantLeases(t, r, leaseOf(1), leaseOf(2))
		r.Leases.bound = maxLeases // Leases saw that there are two
		saveLeases(t, r, renewed, leaseOf(3))
		if err := r.Leases.SaveLeases(t.Context(), []model.Lease{leaseOf(4)}); !errors.Is(err, errLeasesFull) {
			t.Errorf("got %v", err)
		}
		saveLeases(t, r, renewed) // what is kept may be renewed, and given back
		saveLeases(t, r, leaseWith(2, func(l *model.Lease) { l.Expires = time.Time{} }))
		saveLeases(t, r, leaseOf(4))
		wantLeases(t, r, renewed, leaseOf(3), leaseOf(4))
		save(t, r, everything())
		r.store = fullStore{r.store, maxLeases} // what is over the brim may be renewed
		r.Leases.bound = maxLeases
		saveLeases(t, r, leaseOf(1))
	})
}

// fullStore is a store with more leases than it shows.
type fullStore struct {
	store.Store
	hidden int
}

func (s fullStore) CountLeases(ctx context.Context, b store.Batch) (total, fresh int, err error) {
	total, fresh, err = s.Store.CountLeases(ctx, b)
	return total + s.hidden, fresh, err
}

// Leases, records and progress are saved at the same time, by many.
func TestLeasesAndRecordsShareCommits(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		r := lead(t, b.options)
		const writers, times = 16, 5
		var wg sync.WaitGroup
		var want []model.Lease
		for i := range writers * times {
			want = append(want, leaseWith(i, func(l *model.Lease) { l.MAC = macOf(i / times) }))
		}
		for i := range writers {
			wg.Go(func() {
				for n := range times {
					saveLeases(t, r, want[i*times+n])
					if got := r.Observed().EndpointFacts[macOf(i)]; got == nil || got.IP != addressOf(i*times+n).String() {
						t.Errorf("%s: got %v after lease %d", macOf(i), got, n)
					}
				}
			})
			wg.Go(func() {
				for n := range times {
					rec := serverRecord(i, model.PurposeDiscovery)
					rec.Boot.Serial = n + 1
					save(t, r, Changes{Servers: []*model.ServerRecord{rec}})
					if got := r.Observed().Servers[rec.Name]; got == nil || got.Boot.Serial != n+1 {
						t.Errorf("%s: got %v after save %d", rec.Name, got, n+1)
					}
					_ = r.Boots.Note(t.Context(), rec.Boot.Ticket, model.StageKernel, netip.MustParseAddr("192.0.2.1"))
				}
			})
		}
		wg.Wait()
		got := r.Observed()
		_ = r.Close()
		again := open(t, b.options)
		wantObserved(t, again, got)
		wantLeases(t, again, want...)
		if len(got.Servers) != writers || len(got.Progress) != writers || len(got.EndpointFacts) != writers {
			t.Errorf("%d servers, %d with progress, %d devices", len(got.Servers), len(got.Progress), len(got.EndpointFacts))
		}
	})
}

func TestSavingLeasesGivesUpWithItsContext(t *testing.T) {
	r := lead(t, Options{Dir: t.TempDir()})
	r.turn <- struct{}{} // the store hangs
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := r.Leases.SaveLeases(ctx, []model.Lease{leaseOf(1)}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if _, err := r.Leases.Leases(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	<-r.turn
	if err := r.Leases.SaveLeases(ctx, []model.Lease{leaseOf(1)}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with a context that ended: %v", err)
	}
	wantLeases(t, r)
	saveLeases(t, r)
}
