package registry

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"ingot/model"
	"ingot/model/must"
	"ingot/registry/store"
)

var (
	clientA = netip.MustParseAddr("192.0.2.7")
	clientB = netip.MustParseAddr("2001:db8::7")
)

// clock is time that a test moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: now} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func everyTicket(*pendingTicket) bool { return true }

func after(seconds int) time.Time { return now.Add(time.Duration(seconds) * time.Second) }

func wantUses(t *testing.T, r *Registry, server model.ServerName, want ...model.TicketUse) {
	t.Helper()
	var got []model.TicketUse
	if p := r.Observed().Progress[server]; p != nil {
		got = p.Uses
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("uses of %s (-want +got):\n%s", server, diff)
	}
}

func TestUsesAreKeptBesideTheStages(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		c := newClock()
		b.options.Clock = c.now
		r := lead(t, b.options)
		rec := serverRecord(0, model.PurposeClaim)
		save(t, r, Changes{Servers: []*model.ServerRecord{rec}})

		r.Boots.Use(rec.Boot.Ticket, model.ThingScript, model.Asker{Client: clientA}, "")
		r.Boots.Use(rec.Boot.Ticket, model.ThingScript, model.Asker{Client: netip.MustParseAddr("::ffff:192.0.2.7")}, "") // the same one
		r.Boots.Use(rec.Boot.Ticket, model.ThingIgnition, model.Asker{Client: clientB}, model.RefusedAddress)
		r.Boots.saveUses(t.Context(), everyTicket)
		c.add(time.Second)
		must.Do(t, r.Boots.Note(t.Context(), rec.Boot.Ticket, model.StageScript, clientA))
		c.add(time.Second)
		r.Boots.Use(rec.Boot.Ticket, model.ThingImage, model.Asker{}, "")
		r.Boots.Use(rec.Boot.Ticket, model.ThingScript, model.Asker{Client: clientA}, "")
		r.Boots.saveUses(t.Context(), everyTicket)

		want := model.NewObserved()
		want.Servers["server-0"] = rec
		want.Progress["server-0"] = &model.Progress{
			Ticket: "server-0-1", ScriptAt: after(1), Client: "192.0.2.7",
			Uses: []model.TicketUse{
				{What: model.ThingScript, Client: "192.0.2.7", First: now, Last: after(2), Count: 3},
				{What: model.ThingIgnition, Client: "2001:db8::7", Refusal: model.RefusedAddress, First: now, Last: now, Count: 1},
				{What: model.ThingImage, First: after(2), Last: after(2), Count: 1},
			},
		}
		wantObserved(t, r, want)
		must.Do(t, r.Close())
		wantObserved(t, open(t, b.options), want)
	})
}

func TestUsesOfTicketsThatAreNotTheNewestAreDropped(t *testing.T) {
	ticket := func(id string, ended model.TicketState) *model.Ticket {
		tk := serverRecord(0, model.PurposeClaim).Boot.Ticket
		tk.ID, tk.Ended = id, ended
		return tk
	}
	one := model.TicketUse{What: model.ThingScript, Client: "192.0.2.7", First: now, Last: now, Count: 1}
	cases := map[string]struct {
		newest, used *model.Ticket
		want         []model.TicketUse
	}{
		"the server's ticket":                         {ticket("1", ""), ticket("1", ""), []model.TicketUse{one}},
		"a ticket that has ended, while it is newest": {ticket("1", model.TicketSpent), ticket("1", ""), []model.TicketUse{one}},
		"a ticket that was superseded":                {ticket("2", ""), ticket("1", ""), nil},
		"no ticket":                                   {ticket("1", ""), nil, nil},
		"a ticket of a server that has none":          {nil, ticket("1", ""), nil},
		"a ticket of a server that is not known":      {ticket("1", ""), serverRecord(7, model.PurposeClaim).Boot.Ticket, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := lead(t, Options{Dir: t.TempDir()})
			rec := serverRecord(0, model.PurposeClaim)
			rec.Boot.Ticket = c.newest
			save(t, r, Changes{Servers: []*model.ServerRecord{rec}})
			r.Boots.Use(c.used, model.ThingScript, model.Asker{Client: clientA}, "")
			r.Boots.saveUses(t.Context(), everyTicket)
			wantUses(t, r, "server-0", c.want...)
			if n := len(r.Boots.uses.tickets); n != 0 {
				t.Errorf("%d tickets still wait", n)
			}
		})
	}
}

// The progress with the ticket before does not outlive the first use of the next.
func TestUsesBeginAnewWithATicket(t *testing.T) {
	r := lead(t, Options{Dir: t.TempDir()})
	rec := serverRecord(0, model.PurposeClaim)
	save(t, r, Changes{Servers: []*model.ServerRecord{rec}})
	r.Boots.Use(rec.Boot.Ticket, model.ThingScript, model.Asker{Client: clientA}, "")
	r.Boots.saveUses(t.Context(), everyTicket)
	next := serverRecord(0, model.PurposeClaim)
	next.Boot.Ticket.ID = "server-0-2"
	save(t, r, Changes{Servers: []*model.ServerRecord{next}})
	r.Boots.Use(next.Boot.Ticket, model.ThingIgnition, model.Asker{Client: clientA}, "")
	r.Boots.saveUses(t.Context(), everyTicket)
	want := &model.Progress{Ticket: "server-0-2", Uses: []model.TicketUse{
		{What: model.ThingIgnition, Client: "192.0.2.7", First: now, Last: now, Count: 1},
	}}
	if diff := cmp.Diff(want, r.Observed().Progress["server-0"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhenUsesAreWritten(t *testing.T) {
	script := func(client netip.Addr, refusal model.TicketRefusal) model.TicketUse {
		return model.TicketUse{What: model.ThingScript, Client: client.String(), Refusal: refusal, Count: 1}
	}
	var full []model.TicketUse
	for i := range model.MaxTicketUses {
		full = append(full, model.TicketUse{What: model.ThingScript, Client: fmt.Sprint(i)})
	}
	served := script(clientA, "")
	cases := map[string]struct {
		known  []model.TicketUse
		ticket string // of what is known
		use    model.TicketUse
		waited time.Duration
		want   bool
	}{
		"a first use is written at once": {
			ticket: "t",
			use:    served, want: true,
		},
		"a use of the next ticket is, too": {
			known: []model.TicketUse{served}, ticket: "before",
			use: served, want: true,
		},
		"another client's is, too": {
			known: []model.TicketUse{served}, ticket: "t",
			use: script(clientB, ""), want: true,
		},
		"a refusal after it was served is, too": {
			known: []model.TicketUse{served}, ticket: "t",
			use: script(clientA, model.RefusedReplay), want: true,
		},
		"another count waits": {
			known: []model.TicketUse{served}, ticket: "t",
			use: served, waited: useCountEvery - 1,
		},
		"another count is written after some seconds": {
			known: []model.TicketUse{served}, ticket: "t",
			use: served, waited: useCountEvery, want: true,
		},
		"a clock that went back does not hold it up": {
			known: []model.TicketUse{served}, ticket: "t",
			use: served, waited: -time.Hour, want: true,
		},
		"what there is no room for is no reason": {
			known: full, ticket: "t",
			use: served,
		},
		"what there is no room for does not wait either": {
			known: full, ticket: "t",
			use: served, waited: useCountEvery, want: true,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := lead(t, Options{Dir: t.TempDir()})
			var e encoder
			e.set(store.BucketProgress, "s", &model.Progress{Ticket: c.ticket, Uses: c.known})
			must.Do(t, r.write(t.Context(), always(e.batch)))
			pending := &pendingTicket{ticketKey: ticketKey{"s", "t"}, since: now, uses: []model.TicketUse{c.use}}
			if got := r.Boots.isDue(now.Add(c.waited))(pending); got != c.want {
				t.Errorf("due: %v", got)
			}
		})
	}
}

// A client that asks ten times a second for a minute costs a write each 10 s.
func TestPollingClientCostsFewWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := lead(t, Options{Dir: t.TempDir(), Clock: time.Now})
		rec := serverRecord(0, model.PurposeClaim)
		save(t, r, Changes{Servers: []*model.ServerRecord{rec}})
		began := time.Now().UTC()
		stop, _ := run(t, r)
		for range 600 {
			r.Boots.Use(rec.Boot.Ticket, model.ThingScript, model.Asker{Client: clientA}, model.RefusedSpent)
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(useCountEvery + useEvery)
		writes := testutil.ToFloat64(r.metrics.writes.WithLabelValues(string(store.BucketProgress)))
		if writes < 2 || writes > 8 {
			t.Errorf("%v writes", writes)
		}
		want := model.TicketUse{
			What: model.ThingScript, Client: "192.0.2.7", Refusal: model.RefusedSpent,
			First: began, Last: began.Add(time.Minute - 100*time.Millisecond), Count: 600,
		}
		wantUses(t, r, "server-0", want)
		time.Sleep(time.Hour)
		if again := testutil.ToFloat64(r.metrics.writes.WithLabelValues(string(store.BucketProgress))); again != writes {
			t.Errorf("%v writes while nothing was used", again-writes)
		}
		r.Boots.Use(rec.Boot.Ticket, model.ThingScript, model.Asker{Client: clientA}, model.RefusedSpent)
		want.Last, want.Count = time.Now().UTC(), 601
		stop() // writes what waits
		wantUses(t, r, "server-0", want)
	})
}

func TestNewUseIsWrittenWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := lead(t, Options{Dir: t.TempDir(), Clock: time.Now})
		rec := serverRecord(0, model.PurposeClaim)
		save(t, r, Changes{Servers: []*model.ServerRecord{rec}})
		run(t, r)
		time.Sleep(10 * time.Millisecond)
		at := time.Now().UTC()
		r.Boots.Use(rec.Boot.Ticket, model.ThingScript, model.Asker{Client: clientA}, "")
		time.Sleep(useEvery)
		synctest.Wait()
		wantUses(t, r, "server-0", model.TicketUse{What: model.ThingScript, Client: "192.0.2.7", First: at, Last: at, Count: 1})
	})
}

// Who may be anybody takes no room from the server itself, neither before nor after
// uses are written.
func TestRefusalsLeaveRoomForTheServer(t *testing.T) {
	r := lead(t, Options{Dir: t.TempDir()})
	rec := serverRecord(0, model.PurposeClaim)
	save(t, r, Changes{Servers: []*model.ServerRecord{rec}})
	addr := netip.MustParseAddr("2001:db8::")
	for i := range 10 * model.MaxTicketUses {
		if addr = addr.Next(); i%50 == 49 {
			r.Boots.saveUses(t.Context(), everyTicket)
		}
		r.Boots.Use(rec.Boot.Ticket, model.ThingScript, model.Asker{Client: addr}, model.RefusedToken)
	}
	for range 10 * model.MaxTicketUses {
		addr = addr.Next()
		r.Boots.Use(rec.Boot.Ticket, model.ThingImage, model.Asker{Client: addr}, "")
	}
	r.Boots.saveUses(t.Context(), everyTicket)
	count := make(map[model.TicketRefusal]int)
	for _, u := range r.Observed().Progress["server-0"].Uses {
		count[u.Refusal]++
	}
	want := map[model.TicketRefusal]int{model.RefusedToken: maxRefusedUses, "": model.MaxTicketUses - maxRefusedUses}
	if diff := cmp.Diff(want, count); diff != "" {
		t.Errorf("uses (-want +got):\n%s", diff)
	}
	if testutil.ToFloat64(r.metrics.unnoted) == 0 {
		t.Error("those without room are not counted")
	}
}

// brokenStore fails to commit while it is broken.
type brokenStore struct {
	store.Store
	broken error
}

func (s *brokenStore) Commit(ctx context.Context, b store.Batch) error {
	if s.broken != nil {
		return s.broken
	}
	return s.Store.Commit(ctx, b)
}

func TestUsesWaitForAStoreThatDoesNotAnswer(t *testing.T) {
	c := newClock()
	r := lead(t, Options{Dir: t.TempDir(), Clock: c.now})
	rec := serverRecord(0, model.PurposeClaim)
	save(t, r, Changes{Servers: []*model.ServerRecord{rec}})
	s := &brokenStore{r.store, errors.New("no answer")}
	r.store = s
	r.Boots.Use(rec.Boot.Ticket, model.ThingScript, model.Asker{Client: clientA}, "")
	r.Boots.saveUses(t.Context(), everyTicket)
	c.add(time.Second)
	r.Boots.Use(rec.Boot.Ticket, model.ThingScript, model.Asker{Client: clientA}, "")
	r.Boots.saveUses(t.Context(), everyTicket)
	wantUses(t, r, "server-0")
	s.broken = nil
	r.Boots.saveUses(t.Context(), everyTicket)
	wantUses(t, r, "server-0", model.TicketUse{What: model.ThingScript, Client: "192.0.2.7", First: now, Last: after(1), Count: 2})
}

// Every use counts, whatever is written meanwhile.
func TestUsesAreCountedWhileTheyAreWritten(t *testing.T) {
	r := lead(t, Options{Dir: t.TempDir()})
	rec := serverRecord(0, model.PurposeClaim)
	save(t, r, Changes{Servers: []*model.ServerRecord{rec}})
	const users, each = 4, 500
	var all sync.WaitGroup
	for range users {
		all.Go(func() {
			for range each {
				r.Boots.Use(rec.Boot.Ticket, model.ThingImage, model.Asker{Client: clientA}, "")
			}
		})
	}
	for i, stage := range stages {
		if err := r.Boots.Note(t.Context(), rec.Boot.Ticket, stage, clientA); err != nil {
			t.Fatal(i, err)
		}
		r.Boots.saveUses(t.Context(), everyTicket)
	}
	all.Wait()
	r.Boots.saveUses(t.Context(), everyTicket)
	got := r.Observed().Progress["server-0"]
	if len(got.Uses) != 1 || got.Uses[0].Count != users*each || got.IgnitionAt.IsZero() {
		t.Errorf("got %+v", got)
	}
}
