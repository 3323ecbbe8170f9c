package lease

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/model/must"
)

// unsure is a store that can fail, and may have taken the leases nevertheless, as one
// that answers too late.
type unsure struct {
	*memory
	fails atomic.Bool
	takes bool
}

func (u *unsure) SaveLeases(ctx context.Context, leases []model.Lease) error {
	if u.fails.Load() && !u.takes {
		return errAway
	}
	if err := u.memory.SaveLeases(ctx, leases); err != nil || !u.fails.Load() {
		return err
	}
	return errAway
}

func TestAStoreThatFailedIsToldHowThingsAre(t *testing.T) {
	for name, tc := range map[string]struct {
		then func(t *testing.T, w *world, o *outcomes)
		want map[string]string // MAC address by address that is stored
	}{
		"a device that was to move and was not told keeps what it has": {
			then: func(t *testing.T, w *world, o *outcomes) {
				w.table.SetReservations([]Reservation{{MAC: mac1, Name: "e", Address: addr("192.0.2.250")}})
				request(t, w, o, mac1)
			},
			want: map[string]string{"192.0.2.10": mac1},
		},
		"a device that was not told has nothing": {
			then: func(t *testing.T, w *world, o *outcomes) { request(t, w, o, mac2) },
			want: map[string]string{"192.0.2.10": mac1},
		},
		"an address that somebody else uses stays set aside": {
			then: func(t *testing.T, w *world, o *outcomes) {
				l, ok := w.table.Decline(ask(w, mac1, "192.0.2.10", time.Now()), false)
				if !ok {
					t.Fatal("it is not its own")
				}
				w.committer.Commit(*l, o.done(mac1))
			},
			want: map[string]string{"192.0.2.10": ""},
		},
		"an address that was given back is free": {
			then: func(t *testing.T, w *world, o *outcomes) {
				l, ok := w.table.Release(ask(w, mac1, "192.0.2.10", time.Now()))
				if !ok {
					t.Fatal("it is not its own")
				}
				w.committer.Commit(*l, o.done(mac1))
			},
			want: map[string]string{},
		},
		"what made room for another is forgotten": {
			then: func(t *testing.T, w *world, o *outcomes) {
				l := model.Lease{Network: "hosts", MAC: mac3, Address: addr("192.0.2.99"), Expires: t0}
				must.Do(t, w.store.(*unsure).memory.SaveLeases(t.Context(), []model.Lease{l}))
				l.Expires = time.Time{}
				w.table.index.gone = append(w.table.index.gone, l)
				request(t, w, o, mac2)
			},
			want: map[string]string{"192.0.2.10": mac1},
		},
	} {
		for took, takes := range map[string]bool{"": false, ", though it took what it was told": true} {
			t.Run(name+took, func(t *testing.T) {
				store := &unsure{memory: newMemory(), takes: takes}
				committing(t, store, nil, func(w *world) {
					var before, then outcomes
					request(t, w, &before, mac1)
					rested()
					store.fails.Store(true)
					tc.then(t, w, &then)
					rested()
					store.fails.Store(false)
					time.Sleep(2 * tendStore)
					rested()
					for _, said := range then.by {
						if said != errAway.Error() {
							t.Errorf("it was told %s, want %v", said, errAway)
						}
					}
					got := map[string]string{}
					for _, l := range store.leases {
						got[l.Address.String()] = l.MAC
					}
					if diff := cmp.Diff(tc.want, got); diff != "" {
						t.Errorf("-want +got:\n%s", diff)
					}
					held := map[string]string{}
					for a, mac := range tc.want {
						if holder, ok := w.holder(addr(a), time.Now()); ok || mac == "" {
							held[a] = holder
						}
					}
					if diff := cmp.Diff(tc.want, held); diff != "" {
						t.Errorf("in memory: -want +got:\n%s", diff)
					}
					if n := len(w.table.index.leases[interfaceOf(mac1)]); n != strings.Count(fmt.Sprint(tc.want), mac1) {
						t.Errorf("it has %d leases in memory", n)
					}
				})
			})
		}
	}
}

// What is forgotten to make room in memory must be forgotten by the store too, or
// devices that come and go fill it.
func TestTheStoreHoldsNoMoreThanMemory(t *testing.T) {
	w := newWorld(setup{subnets: []Subnet{{CIDR: netip.MustParsePrefix("fd00::/64"), LeaseTime: time.Hour}}})
	w.network.Subnets[0].others.limit = 4
	stored, now := map[netip.Addr]bool{}, t0
	for i := range 20 {
		q := ask(w, fmt.Sprintf("02:00:00:00:00:%02x", i), fmt.Sprintf("fd00::%x", 16+i), now)
		l := must.Get(w.table.Take(q))(t)
		before := must.Get(w.table.prepare(l))(t)
		for _, l := range append(before, l) {
			if stored[l.Address] = true; l.Expires.IsZero() {
				delete(stored, l.Address)
			}
		}
		must.Do(t, w.table.bind(l))
		now = now.Add(time.Hour)
	}
	if len(stored) != 4 {
		t.Errorf("%d leases are stored, want 4", len(stored))
	}
}

func loaded(subnet Subnet, leases ...model.Lease) *world {
	w := newWorld(setup{subnets: []Subnet{subnet}})
	for i := range leases {
		leases[i].Network, leases[i].Role, leases[i].Since, leases[i].Renewed = w.network.Name, w.network.Role, t0, t0
	}
	w.table.Load(leases, t0)
	return w
}

func TestLeasesOfASubnetThatIsGoneAreForgottenInTime(t *testing.T) {
	for name, tc := range map[string]struct {
		ended time.Duration // before now
		want  int
	}{
		"not while they live":             {-time.Minute, 0},
		"not when they have just ended":   {24 * time.Hour, 0},
		"but when they ended a month ago": {31 * 24 * time.Hour, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := loaded(hosts(), model.Lease{MAC: mac1, Address: addr("198.51.100.7"), Expires: t0.Add(-tc.ended)})
			l := must.Get(w.table.Offer(ask(w, mac2, "", t0)))(t)
			forgotten, err := w.table.prepare(l)
			if err != nil || len(forgotten) != tc.want {
				t.Errorf("%d are forgotten, want %d; %v", len(forgotten), tc.want, err)
			}
		})
	}
}

func TestWhenThereAreTooManyLeasesThoseThatEndedAreLeftOut(t *testing.T) {
	w := newWorld(setup{})
	w.network.Subnets[0].others.limit = 2
	var all []model.Lease
	for i, left := range []time.Duration{-2 * time.Hour, -time.Hour, time.Hour, 2 * time.Hour} {
		all = append(all, model.Lease{
			Network: w.network.Name, MAC: fmt.Sprintf("02:00:00:00:00:%02x", i),
			Address: netip.AddrFrom4([4]byte{192, 0, 2, byte(100 + i)}),
			Renewed: t0.Add(left - 3*time.Hour), Expires: t0.Add(left),
		})
	}
	w.table.Load(all, t0)
	for _, a := range []string{"192.0.2.102", "192.0.2.103"} {
		if _, ok := w.holder(addr(a), t0); !ok {
			t.Errorf("the lease of %s, which has not ended, was left out", a)
		}
	}
}

// A prefix is its device's until its lease ends, whatever length is delegated since.
func TestPrefixesOutliveTheirLength(t *testing.T) {
	for name, tc := range map[string]struct {
		bits  int    // that are delegated now
		had   string // of mac1
		ended bool
		want  []string // what others are delegated
	}{
		"longer prefixes are not made of it":      {64, "fd01::/63", false, []string{"fd01:0:0:2::", "fd01:0:0:3::"}},
		"no shorter one holds it":                 {63, "fd01:0:0:1::/64", false, []string{"fd01:0:0:2::"}},
		"one outside is in nobody's way":          {63, "fd02::/64", false, []string{"fd01::", "fd01:0:0:2::"}},
		"once it has ended it is free for others": {63, "fd01:0:0:1::/64", true, []string{"fd01::", "fd01:0:0:2::"}},
	} {
		t.Run(name, func(t *testing.T) {
			subnet := Subnet{
				CIDR:     netip.MustParsePrefix("fd00::/64"),
				Delegate: Delegation{From: netip.MustParsePrefix("fd01::/62"), Bits: tc.bits},
			}
			expires := t0.Add(time.Hour)
			if tc.ended {
				expires = t0.Add(-time.Hour)
			}
			had := netip.MustParsePrefix(tc.had)
			w := loaded(subnet, model.Lease{MAC: mac1, Address: had.Addr(), Bits: had.Bits(), Expires: expires})
			var got []string
			for i := range 9 {
				q := ask(w, fmt.Sprintf("02:00:00:00:01:%02x", i), "", t0)
				q.Bits = tc.bits
				l, err := w.table.Offer(q)
				if errors.Is(err, ErrExhausted) {
					break
				}
				commitNow(t, w, l)
				got = append(got, l.Address.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
