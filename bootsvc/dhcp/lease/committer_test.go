package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/model/must"
)

var errAway = errors.New("the store is away")

// lines is a logger that keeps the messages of Warn and above.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (l *lines) WithAttrs([]slog.Attr) slog.Handler               { return l }
func (l *lines) WithGroup(string) slog.Handler                    { return l }
func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, r.Message)
	return nil
}

func committing(t *testing.T, store Store, log *slog.Logger, body func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		subnet := hosts()
		subnet.Ranges = []Range{rangeOf("192.0.2.10-192.0.2.209")}
		w := newWorld(setup{subnets: []Subnet{subnet}, store: store, Options: Options{Log: log}})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { w.committer.Run(ctx) })
		body(w)
		cancel()
		wg.Wait()
	})
}

// outcomes collects what became of leases, by MAC address.
type outcomes struct {
	mu sync.Mutex
	by map[string]string
}

func (o *outcomes) done(mac string) func(error) {
	return func(err error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.by == nil {
			o.by = map[string]string{}
		}
		o.by[mac] = fmt.Sprint(err)
	}
}

func request(t *testing.T, w *world, o *outcomes, mac string) netip.Addr {
	t.Helper()
	l := must.Get(w.table.Offer(ask(w, mac, "", time.Now())))(t)
	w.committer.Commit(l, o.done(mac))
	return l.Address
}

func TestNothingNewIsOfferedWhileTheStoreIsAway(t *testing.T) {
	store := newMemory()
	committing(t, store, nil, func(w *world) {
		var told outcomes
		had := request(t, w, &told, mac1)
		synctest.Wait()
		if w.committer.IsAway() {
			t.Error("the store is away before it failed")
		}
		store.fail(errAway)
		request(t, w, &told, mac2)
		time.Sleep(2 * restTime)
		if !w.committer.IsAway() {
			t.Error("the store is not away after it failed")
		}
		query := func(mac string) Query {
			q := ask(w, mac, "", time.Now())
			q.KnownOnly = w.committer.IsAway()
			return q
		}
		if l, err := w.table.Offer(query(mac1)); err != nil || l.Address != had {
			t.Errorf("a client with a lease is offered %s, %v, want %s", l.Address, err, had)
		}
		if l, err := w.table.Offer(query(mac2)); !errors.Is(err, ErrNotStored) {
			t.Errorf("a client without a lease is offered %s, %v", l.Address, err)
		}
		w.table.SetReservations([]Reservation{{MAC: mac1, Address: addr("192.0.2.77"), Name: "e"}})
		if l, err := w.table.Offer(query(mac1)); err != nil || l.Address != had {
			t.Errorf("a client with a new reservation is offered %s, %v, want what it has", l.Address, err)
		}
		store.fail(nil)
		time.Sleep(2 * tendStore) // no client asks meanwhile
		if _, err := w.table.Offer(query(mac3)); err != nil {
			t.Errorf("after the store came back: %v", err)
		}
	})
}

func TestAnswersAreDurable(t *testing.T) {
	store := newMemory()
	committing(t, store, nil, func(w *world) {
		store.gate = make(chan struct{})
		var o outcomes
		a := request(t, w, &o, mac1)
		synctest.Wait()
		if len(o.by) > 0 {
			t.Errorf("answered before it was durable: %v", o.by)
		}
		if _, ok := w.holder(a, time.Now()); ok {
			t.Error("held before it was durable")
		}
		close(store.gate)
		synctest.Wait()
		if diff := cmp.Diff(map[string]string{mac1: "<nil>"}, o.by); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if mac, _ := w.holder(a, time.Now()); mac != mac1 {
			t.Errorf("%s is held by %q", a, mac)
		}
	})
}

func TestLeasesAreStoredInGroups(t *testing.T) {
	store := newMemory()
	committing(t, store, nil, func(w *world) {
		store.gate = make(chan struct{})
		var o outcomes
		for i := range 100 {
			request(t, w, &o, fmt.Sprintf("02:00:00:00:01:%02x", i))
			synctest.Wait()
		}
		close(store.gate)
		rested()
		if len(o.by) != 100 || len(store.leases) != 100 || store.calls != 2 {
			t.Errorf("%d answers, %d leases in %d calls, want 100, 100 and 2", len(o.by), len(store.leases), store.calls)
		}
	})
}

func TestRenewalsWhileTheStoreIsAway(t *testing.T) {
	store := newMemory()
	log := &lines{}
	committing(t, store, slog.New(log), func(w *world) {
		var before, during, after outcomes
		a := request(t, w, &before, mac1)
		synctest.Wait()

		store.fail(errAway)
		time.Sleep(10 * time.Minute)
		for range 3 {
			l, state := w.table.Renewal(ask(w, mac1, a.String(), time.Now()))
			if state != RenewalKnown {
				t.Fatalf("state %d, want %d", state, RenewalKnown)
			}
			w.committer.Commit(l, during.done(mac1))
			request(t, w, &during, mac2)
			synctest.Wait()
			time.Sleep(10 * time.Second)
		}
		if diff := cmp.Diff(map[string]string{mac1: "<nil>", mac2: errAway.Error()}, during.by); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if len(log.all) != 1 || !strings.Contains(log.all[0], "cannot be stored") {
			t.Errorf("said %q, want one line", log.all)
		}
		if holder, _ := w.holder(a, time.Now().Add(59*time.Minute)); holder != mac1 {
			t.Errorf("%s was not prolonged in memory", a)
		}

		store.fail(nil)
		time.Sleep(2 * tendStore)
		request(t, w, &after, mac2)
		synctest.Wait()
		if diff := cmp.Diff(map[string]string{mac2: "<nil>"}, after.by); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		all, _ := store.Leases(t.Context())
		for _, l := range all {
			if l.MAC == mac1 && l.Expires.Before(time.Now().Add(58*time.Minute)) {
				t.Errorf("the store was not told of the renewal: %+v", l)
			}
		}
	})
}

func TestRenewalsWhileTheStoreHangs(t *testing.T) {
	store := newMemory()
	committing(t, store, nil, func(w *world) {
		var o outcomes
		a := request(t, w, &o, mac1)
		synctest.Wait()
		store.gate = make(chan struct{}) // for ever: calls end by their deadline
		var during outcomes
		request(t, w, &during, mac2)
		synctest.Wait()
		time.Sleep(2 * slowSave)
		l, _ := w.table.Renewal(ask(w, mac1, a.String(), time.Now()))
		w.committer.Commit(l, during.done(mac1))
		synctest.Wait()
		if diff := cmp.Diff(map[string]string{mac1: "<nil>"}, during.by); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		close(store.gate)
	})
}

func TestMovesAreStoredWhole(t *testing.T) {
	store := newMemory()
	committing(t, store, nil, func(w *world) {
		var o outcomes
		request(t, w, &o, mac1)
		rested()
		w.table.SetReservations([]Reservation{{MAC: mac1, Name: "bmc", Address: addr("192.0.2.250")}})
		request(t, w, &o, mac1)
		rested()
		all, _ := store.Leases(t.Context())
		if len(all) != 1 || all[0].Address != addr("192.0.2.250") {
			t.Errorf("stored %+v, want the new address alone", all)
		}
		if holder, _ := w.holder(addr("192.0.2.250"), time.Now()); holder != mac1 {
			t.Errorf("%q holds the new address", holder)
		}
	})
}

func TestTooManyWait(t *testing.T) {
	w := newWorld(setup{}) // nobody runs the committer
	var o outcomes
	for i := range maxWaiting + 1 {
		w.committer.Commit(model.Lease{Address: addr("192.0.2.10"), MAC: mac1}, o.done(fmt.Sprint(i)))
	}
	if diff := cmp.Diff(map[string]string{fmt.Sprint(maxWaiting): errBusy.Error()}, o.by); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWhatWaitsIsStoredAtTheEnd(t *testing.T) {
	store := newMemory()
	var o outcomes
	committing(t, store, nil, func(w *world) {
		store.gate = make(chan struct{})
		request(t, w, &o, mac1)
		synctest.Wait()
		request(t, w, &o, mac2)
		time.AfterFunc(time.Second/2, func() { close(store.gate) })
	})
	if len(store.leases) != 2 || len(o.by) != 2 {
		t.Errorf("%d stored and %d answered, want 2 and 2", len(store.leases), len(o.by))
	}
}

// forgetting is a store that lost what it held when its epoch changes.
type forgetting struct {
	*memory
	epoch atomic.Uint64
}

func (f *forgetting) LeaseEpoch() uint64 { return f.epoch.Load() }

func TestAStoreThatLostTheLeasesIsToldThemAgain(t *testing.T) {
	store := &forgetting{memory: newMemory()}
	var log lines
	committing(t, store, slog.New(&log), func(w *world) {
		var o outcomes
		request(t, w, &o, mac1)
		request(t, w, &o, mac2)
		rested() // they may be stored one after the other
		clear(store.leases)
		time.Sleep(2 * tendStore)
		if synctest.Wait(); len(store.leases) != 0 {
			t.Errorf("%d leases were stored again, though nobody said that they were lost", len(store.leases))
		}
		store.epoch.Add(1)
		time.Sleep(2 * tendStore)
		synctest.Wait()
		if len(store.leases) != 2 || len(log.all) != 1 {
			t.Errorf("%d leases are stored again, said %q; want 2, said once", len(store.leases), log.all)
		}
	})
}

// Whoever asks while the store is away leaves something that it is to forget, and any
// number of MAC addresses can ask.
func TestWhatTheStoreIsToForgetIsBounded(t *testing.T) {
	w := newWorld(setup{}) // nobody runs the committer
	a := addr("fd00::")
	for range maxOwed + 10 {
		a = a.Next()
		w.committer.owe(model.Lease{Address: a})
	}
	promised := model.Lease{Address: addr("192.0.2.10"), MAC: mac1, Expires: t0}
	w.committer.owe(promised)
	if n := len(w.committer.owed); n != maxOwed+1 {
		t.Errorf("%d are owed, want %d and the lease that was promised", n, maxOwed)
	}
}
