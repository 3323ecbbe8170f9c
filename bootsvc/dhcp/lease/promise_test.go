package lease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ingot/model"
	"ingot/model/must"
)

// promises drives a server with a store that is slow, hangs and fails through
// random events, and keeps beside it what clients were told: no two of them may
// believe in the same address at a time.
type promises struct {
	t     *testing.T
	r     *rand.Rand
	store *memory
	w     *world
	stop  func()

	mu       sync.Mutex
	believed map[netip.Addr]model.Lease
	given    map[string]int // how often a MAC address gave something back
	wrong    string
}

func (p *promises) start() {
	subnet := hosts()
	subnet.Ranges = []Range{rangeOf("192.0.2.10-192.0.2.13")}
	p.w = newWorld(setup{subnets: []Subnet{subnet}, store: p.store})
	all := must.Get(p.store.Leases(p.t.Context()))(p.t)
	p.w.table.Load(all, time.Now())
	ctx, cancel := context.WithCancel(p.t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { p.w.committer.Run(ctx) })
	p.stop = func() { cancel(); wg.Wait() }
}

func (p *promises) told(l model.Lease) func(error) {
	p.mu.Lock()
	asked := p.given[l.MAC]
	p.mu.Unlock()
	return func(err error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if err != nil || asked != p.given[l.MAC] { // it hears no answer to what it asked before it left
			return
		}
		if was, ok := p.believed[l.Address]; ok && was.MAC != l.MAC && was.Expires.After(time.Now()) && p.wrong == "" {
			p.wrong = fmt.Sprintf("%s has %s until %s, and %s was told that it has it", was.MAC, l.Address, was.Expires, l.MAC)
		}
		for a, o := range p.believed {
			if o.MAC == l.MAC {
				delete(p.believed, a) // a client that takes a lease drops the one before
			}
		}
		p.believed[l.Address] = l
	}
}

func (p *promises) has(mac string, forget bool) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if forget {
		p.given[mac]++
	}
	for a, l := range p.believed {
		if l.MAC == mac && l.Expires.After(time.Now()) {
			if forget {
				delete(p.believed, a)
			}
			return a.String()
		}
	}
	return ""
}

func (p *promises) request(mac, wish string) {
	if l, state := p.w.table.Renewal(ask(p.w, mac, wish, time.Now())); state >= RenewalFree {
		p.w.committer.Commit(l, p.told(l))
	}
}

func (p *promises) step() {
	mac := fmt.Sprintf("02:00:00:00:00:%02x", p.r.IntN(6))
	switch p.r.IntN(16) {
	case 0, 1, 2, 3:
		if l, err := p.w.table.Offer(ask(p.w, mac, p.has(mac, false), time.Now())); err == nil {
			p.request(mac, l.Address.String())
		}
	case 4, 5, 6:
		if a := p.has(mac, false); a != "" {
			p.request(mac, a)
		}
	case 7, 8:
		if a := p.has(mac, true); a != "" {
			if l, _ := p.w.table.Release(ask(p.w, mac, a, time.Now())); l != nil {
				p.w.committer.Commit(*l, func(error) {})
			}
		}
	case 9:
		if a := p.has(mac, true); a != "" {
			if l, _ := p.w.table.Decline(ask(p.w, mac, a, time.Now()), false); l != nil {
				p.w.committer.Commit(*l, func(error) {})
			}
		}
	case 10:
		p.store.fail([]error{nil, nil, errors.New("away")}[p.r.IntN(3)])
	case 11:
		p.w.table.SetReservations([]Reservation{{MAC: mac, Address: netip.AddrFrom4([4]byte{192, 0, 2, byte(10 + p.r.IntN(4))})}})
	case 12:
		time.Sleep(time.Duration(p.r.IntN(8)) * time.Second)
	case 13:
		if p.r.IntN(4) == 0 {
			time.Sleep(time.Duration(p.r.IntN(40)) * time.Minute)
		}
	case 14:
		if p.r.IntN(6) == 0 {
			p.store.fail(nil)
			time.Sleep(time.Minute)
			p.stop()
			p.start()
		}
	case 15:
		p.store.slow(time.Duration(p.r.IntN(4)) * time.Second)
	}
	if p.r.IntN(2) == 0 {
		synctest.Wait()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wrong != "" {
		p.t.Fatal(p.wrong)
	}
	for a, l := range p.believed {
		if mac, ok := p.w.holder(a, time.Now()); l.Expires.After(time.Now()) && (!ok || mac != l.MAC) {
			p.t.Fatalf("%s was told that it has %s, and the table says %q", l.MAC, a, mac)
		}
	}
}

func TestNoTwoDevicesAreToldTheSameAddress(t *testing.T) {
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			p := &promises{
				t: t, r: rand.New(rand.NewPCG(seed, 2)), store: newMemory(),
				believed: map[netip.Addr]model.Lease{}, given: map[string]int{},
			}
			p.start()
			defer func() { p.stop() }()
			for range 500 {
				p.step()
			}
		})
		if t.Failed() {
			t.Fatalf("history %d", seed)
		}
	}
}

func TestALeaseThatIsAskedForAgainIsNotTakenBack(t *testing.T) {
	for title, away := range map[string]bool{"while the store is slow": false, "while the store is away": true} {
		t.Run(title, func(t *testing.T) {
			store := newMemory()
			committing(t, store, nil, func(w *world) {
				var o outcomes
				a := request(t, w, &o, mac1)
				time.Sleep(time.Second)
				synctest.Wait()
				store.gate = make(chan struct{})
				request(t, w, &o, mac2) // it holds the store up
				synctest.Wait()
				if away {
					time.Sleep(2 * time.Second)
				}
				l, ok := w.table.Release(ask(w, mac1, a.String(), time.Now()))
				if !ok {
					t.Fatal("it is not its own")
				}
				w.committer.Commit(*l, func(error) {})
				if again := request(t, w, &o, mac1); again != a {
					t.Fatalf("offered %s, had %s", again, a)
				}
				close(store.gate)
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if mac, _ := w.holder(a, time.Now()); o.by[mac1] != "<nil>" || mac != mac1 {
					t.Errorf("it was told %s, and %s is held by %q", o.by[mac1], a, mac)
				}
				if _, ok := store.leases["hosts "+a.String()+"/0"]; !ok {
					t.Errorf("%s is not stored", a)
				}
			})
		})
	}
}

func TestAnAddressThatWasReservedMeanwhileIsNotConfirmed(t *testing.T) {
	store := newMemory()
	committing(t, store, nil, func(w *world) {
		store.gate = make(chan struct{})
		var o outcomes
		a := request(t, w, &o, mac1)
		synctest.Wait()
		w.table.SetReservations([]Reservation{{MAC: mac2, Address: a}})
		if got := request(t, w, &o, mac2); got != a {
			t.Fatalf("offered %s, %s is reserved", got, a)
		}
		close(store.gate)
		time.Sleep(time.Second)
		synctest.Wait()
		if o.by[mac1] == "<nil>" || o.by[mac2] != "<nil>" {
			t.Errorf("%s was leased to both: %v", a, o.by)
		}
	})
}

func TestClientsThatNeverAskForOffersFillNoMemory(t *testing.T) {
	w := newWorld(setup{})
	for i := range 5000 {
		q := ask(w, mac1, fmt.Sprintf("192.0.2.%d", 10+i%3), t0)
		if _, state := w.table.Renewal(q); state < RenewalFree {
			t.Fatalf("state %d", state)
		}
	}
	if n := len(w.table.index.offered); n > 10 {
		t.Errorf("%d offers are kept of one client", n)
	}
}

func TestLeasesOutliveTheNameOfTheirNetwork(t *testing.T) {
	w := newWorld(setup{})
	w.table.Load(
		[]model.Lease{
			{
				Network: "before", Role: model.RoleHost, MAC: mac1, Address: addr("192.0.2.10"), Since: t0, Renewed: t0,
				Expires: t0.Add(time.Hour),
			},
		},
		t0,
	)
	if got := lease(t, w, mac2, t0); got == addr("192.0.2.10") {
		t.Errorf("%s was leased twice", got)
	}
	if _, state := w.table.Renewal(ask(w, mac1, "192.0.2.10", t0)); state != RenewalKnown {
		t.Errorf("its device cannot renew it: state %d", state)
	}
}

func TestReservationsOfWhatIsNobodysToHave(t *testing.T) {
	for title, a := range map[string]string{
		"the gateway": "192.0.2.1", "an address of this machine": "192.0.2.2",
		"the network": "192.0.2.0", "the broadcast address": "192.0.2.255",
	} {
		t.Run(title, func(t *testing.T) {
			w := newWorld(setup{})
			w.table.SetOwn(map[netip.Addr]bool{addr("192.0.2.2"): true})
			w.table.SetReservations([]Reservation{{MAC: mac1, Address: addr(a)}})
			if l, err := w.table.Offer(ask(w, mac1, a, t0)); err != nil || l.Address == addr(a) {
				t.Errorf("offered %s, %v", l.Address, err)
			}
			if l, state := w.table.Renewal(ask(w, mac1, a, t0)); state >= RenewalFree {
				t.Errorf("leased %s", l.Address)
			}
		})
	}
}
