package registry

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
	bolt "go.etcd.io/bbolt"

	"ingot/model"
)

// punch takes values out of a store behind its back, or puts others in their place.
func punch(t *testing.T, s store, b batch) {
	t.Helper()
	var err error
	for _, ch := range b {
		switch s := s.(type) {
		case *boltStore:
			err = errors.Join(err, s.update(false, func(tx *bolt.Tx, _ *bolt.Bucket) error { return applyChange(tx.Bucket([]byte(ch.bucket)), ch) }))
		case *redisStore:
			if ch.value == nil {
				err = errors.Join(err, s.client.HDel(t.Context(), s.hash(ch.bucket), ch.name).Err())
			} else {
				err = errors.Join(err, s.client.HSet(t.Context(), s.hash(ch.bucket), ch.name, ch.value).Err())
			}
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// loadByTurn reads the store of a registry that runs.
func loadByTurn(t *testing.T, r *Registry) (loaded, error) {
	t.Helper()
	r.turn <- struct{}{}
	defer r.endTurn()
	return r.store.load(t.Context())
}

// tenServers saves ten servers, and all else once.
func tenServers(t *testing.T, r *Registry) {
	t.Helper()
	c := everything()
	for i := range 9 {
		c.Servers = append(c.Servers, serverRecord(i+1, model.PurposeClaim))
	}
	save(t, r, c)
}

// What is gone is not taken for never having been: until it is put back, each process
// that reads the store learns of it.
func TestHolesAreFoundUntilTheyAreFilled(t *testing.T) {
	holes := map[string]struct {
		punched batch
		want    Damage
	}{
		"records are gone":          {batch{del(bucketServer, "server-1"), del(bucketServer, "server-2")}, Damage{Bucket: "server", Err: ErrMissing}},
		"all of a kind are gone":    {batch{del(bucketClaim, "default/web")}, Damage{Bucket: "claim", Err: ErrMissing}},
		"the fleet's is gone":       {batch{del(bucketFleet, fleetKey)}, Damage{Bucket: "fleet", Err: ErrMissing}},
		"a record cannot be read":   {batch{set(bucketEndpoint, "bmc-0", `{"name":`)}, Damage{Bucket: "endpoint", Name: "bmc-0"}},
		"a record means other than": {batch{set(bucketBMC, "bmc-0", `[]`)}, Damage{Bucket: "bmc", Name: "bmc-0"}},
	}
	for name, hole := range holes {
		t.Run(name, func(t *testing.T) {
			onEachBackend(t, func(t *testing.T, b backend) {
				r := lead(t, b.options)
				tenServers(t, r)
				whole := r.Observed().Records
				if got := r.Damage(); got != nil {
					t.Errorf("of a whole store: %v", got)
				}
				punch(t, r.store, hole.punched)
				_ = r.Close()
				for range 2 {
					again := lead(t, b.options)
					if err := again.keep(t.Context()); err != nil {
						t.Fatal(err)
					}
					got := again.Damage()
					if len(got) != 1 || got[0].Bucket != hole.want.Bucket || got[0].Name != hole.want.Name ||
						(hole.want.Err != nil && !errors.Is(got[0], hole.want.Err)) || got[0].Err == nil {
						t.Fatalf("got %v, want %v", got, hole.want)
					}
					if err := again.SaveLeases(t.Context(), []model.Lease{leaseOf(3)}); err != nil { // which goes on
						t.Fatal(err)
					}
					_ = again.Close()
				}
				mended := lead(t, b.options)
				if err := mended.Restore(t.Context(), whole, model.Published{}); err != nil {
					t.Fatal(err)
				}
				if got := mended.Damage(); got != nil {
					t.Errorf("after Restore: %v", got)
				}
				if err := mended.store.renew(t.Context()); err != nil {
					t.Errorf("after Restore: %v", err)
				}
				_ = mended.Close()
				last := lead(t, b.options)
				if got := last.Damage(); got != nil {
					t.Errorf("after a restart: %v", got)
				}
				if diff := cmp.Diff(whole, last.Observed().Records); diff != "" {
					t.Errorf("records (-before +after):\n%s", diff)
				}
			})
		})
	}
}

// What cannot be read outlives that the store is written again.
func TestUnreadableRecordsStayInALostStore(t *testing.T) {
	m := miniredis.RunT(t)
	o := Options{RedisURL: "redis://" + m.Addr()}
	r := lead(t, o)
	tenServers(t, r)
	punch(t, r.store, batch{set(bucketBMC, "bmc-0", `[]`)})
	_ = r.Close()
	again := lead(t, o)
	_ = m.Set("{ingot}:fence", "1")
	if err := again.keep(t.Context()); err != nil || testutil.ToFloat64(again.metrics.lost) != 1 {
		t.Fatalf("not written again: %v", err)
	}
	_ = again.Close()
	if got := lead(t, o).Damage(); len(got) != 1 || got[0].Name != "bmc-0" {
		t.Errorf("damage %v", got)
	}
}

func TestARunningLeaderFillsHoles(t *testing.T) {
	s := newRedisServer(t)
	r := lead(t, Options{RedisURL: s.url(), LeaseTTL: 150 * time.Millisecond})
	tenServers(t, r)
	stop, _ := run(t, r)
	for name, punched := range map[string]func() error{
		"fields": func() error {
			return s.client(t).HDel(t.Context(), "{ingot}:data:server", "server-3", "server-4").Err()
		},
		"a hash":     func() error { return s.client(t).Del(t.Context(), "{ingot}:data:claim").Err() },
		"the counts": func() error { return s.client(t).Del(t.Context(), "{ingot}:counts").Err() },
	} {
		before := testutil.ToFloat64(r.metrics.lost)
		if err := punched(); err != nil {
			t.Fatal(err)
		}
		eventually(t, name, func() bool { return testutil.ToFloat64(r.metrics.lost) == before+1 })
		eventually(t, "the turn is over", func() bool { return r.Healthy() == nil && len(r.turn) == 0 })
		if l, err := loadByTurn(t, r); err != nil || l.damage != nil || l.uncounted || len(l.contents[bucketServer]) != 10 {
			t.Errorf("%s: %v, %v, counted %v, %d servers", name, err, l.damage, !l.uncounted, len(l.contents[bucketServer]))
		}
	}
	stop()
	if err := r.store.renew(t.Context()); err != nil {
		t.Error(err)
	}
}

// Something else under a name of ours must not keep us from writing for ever.
func TestKeysOfAnotherTypeAreWrittenOver(t *testing.T) {
	for _, key := range []string{"fence", "lease", "revision", "feed", "counts", "schema", "data:server", "data:fleet", "data:lease", "data:payload"} {
		t.Run(key, func(t *testing.T) {
			s := newRedisServer(t)
			wrong := func() {
				_, err := s.client(t).TxPipelined(t.Context(), func(p redis.Pipeliner) error {
					p.Del(t.Context(), "{ingot}:"+key)
					p.SAdd(t.Context(), "{ingot}:"+key, "x")
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			r := lead(t, Options{RedisURL: s.url(), LeaseTTL: 150 * time.Millisecond})
			tenServers(t, r)
			stop, _ := run(t, r)
			wrong()
			all := everything()
			all.Fleet.Sequence++
			save(t, r, all)
			if err := errors.Join(r.SaveLeases(t.Context(), []model.Lease{leaseOf(1)}), r.SavePayload(t.Context(), "t", model.NewSensitive("x"))); err != nil {
				t.Error(err)
			}
			want := r.Observed()
			eventually(t, "it leads and the store is whole", func() bool {
				l, err := loadByTurn(t, r)
				return err == nil && r.Leading() && r.Healthy() == nil && l.damage == nil && !l.fresh && !l.uncounted
			})
			stop()
			_ = r.Close()
			wantObserved(t, lead(t, Options{RedisURL: s.url()}), want)
		})
	}
}

// A process that has nothing in memory starts all the same, and says what is gone.
func TestABucketOfAnotherTypeIsDamage(t *testing.T) {
	for name, gone := range map[string][]string{
		"of which is known how much it held": {"{ingot}:data:server"},
		"of which nothing is known":          {"{ingot}:data:server", "{ingot}:counts"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newRedisServer(t)
			r := lead(t, Options{RedisURL: s.url()})
			tenServers(t, r)
			whole := r.Observed().Records
			_ = r.Close()
			c := s.client(t)
			if err := errors.Join(c.Del(t.Context(), gone...).Err(), c.Set(t.Context(), "{ingot}:data:server", "x", 0).Err()); err != nil {
				t.Fatal(err)
			}
			again := lead(t, Options{RedisURL: s.url()})
			if got := again.Damage(); len(got) == 0 || got[0].Bucket != "server" {
				t.Errorf("damage %v", got)
			}
			if err := again.Restore(t.Context(), whole, model.Published{}); err != nil || again.Damage() != nil {
				t.Errorf("restored: %v, %v", err, again.Damage())
			}
			_ = again.Close()
			last := lead(t, Options{RedisURL: s.url()})
			if diff := cmp.Diff(whole, last.Observed().Records); diff != "" || last.Damage() != nil {
				t.Errorf("damage %v, records (-before +after):\n%s", last.Damage(), diff)
			}
		})
	}
}

// A store whose mark was overwritten is not a new one.
func TestAStoreWithoutItsMarkIsRead(t *testing.T) {
	s := newRedisServer(t)
	r := lead(t, Options{RedisURL: s.url()})
	tenServers(t, r)
	want := r.Observed()
	_ = r.Close()
	c := s.client(t)
	if err := errors.Join(c.Del(t.Context(), "{ingot}:schema").Err(), c.SAdd(t.Context(), "{ingot}:schema", "x").Err()); err != nil {
		t.Fatal(err)
	}
	wantObserved(t, lead(t, Options{RedisURL: s.url()}), want)
	if got := c.Get(t.Context(), "{ingot}:schema").Val(); got != "1" {
		t.Errorf("schema %q", got)
	}
}

// An older Ingot counts nothing: what it deleted is no hole.
func TestCountsOfAnOlderIngotAreNotBelieved(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		r := lead(t, b.options)
		tenServers(t, r)
		switch s := r.store.(type) {
		case *boltStore:
			err := s.db.Update(func(tx *bolt.Tx) error { return tx.Bucket([]byte(bucketServer)).Delete([]byte("server-1")) })
			if err != nil {
				t.Fatal(err)
			}
		case *redisStore:
			punch(t, s, batch{del(bucketServer, "server-1")})
			if err := s.client.Incr(t.Context(), s.key("revision")).Err(); err != nil {
				t.Fatal(err)
			}
		}
		_ = r.Close()
		again := lead(t, b.options)
		if got := again.Damage(); got != nil || len(again.Observed().Servers) != 9 {
			t.Errorf("damage %v, %d servers", got, len(again.Observed().Servers))
		}
		if l, err := again.store.load(t.Context()); err != nil || l.uncounted {
			t.Errorf("counted %v, %v", !l.uncounted, err)
		}
	})
}

// snapshot returns a func that puts Redis back to what it holds now.
func snapshot(t *testing.T, c *redis.Client) (restore func()) {
	t.Helper()
	ctx := t.Context()
	dumps := make(map[string]string)
	for _, key := range c.Keys(ctx, "*").Val() {
		dumps[key] = c.Dump(ctx, key).Val()
	}
	return func() {
		if err := c.FlushAll(ctx).Err(); err != nil {
			t.Fatal(err)
		}
		for key, dump := range dumps {
			if err := c.Restore(ctx, key, 0, dump).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// The leader dies together with a Redis whose replica is behind. What the standby saw
// is newer, and stays: else claims bound meanwhile would be bound again elsewhere.
func TestAStandbyKeepsWhatIsNewerThanTheStore(t *testing.T) {
	s := newRedisServer(t)
	o := Options{RedisURL: s.url(), LeaseTTL: 100 * time.Millisecond}
	leader := lead(t, o)
	tenServers(t, leader)
	restore := snapshot(t, s.client(t))
	bound := serverRecord(0, model.PurposeClaim)
	bound.Claim = "default/web"
	added := serverRecord(20, model.PurposeClaim)
	fact := &model.ServerFacts{Name: "server-0", Power: model.PowerOn}
	save(t, leader, Changes{Servers: []*model.ServerRecord{bound, added}, ServerFacts: []*model.ServerFacts{fact}})
	standby := open(t, o)
	want := standby.Observed()
	if got := want.Servers["server-0"]; got.Claim != "default/web" {
		t.Fatalf("the standby has %v", got)
	}
	s.client(t).Del(t.Context(), "{ingot}:lease")
	_ = leader.Close()
	restore()
	s.client(t).Del(t.Context(), "{ingot}:lease")
	if err := standby.Lead(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, standby.Observed()); diff != "" {
		t.Errorf("the standby (-before +after):\n%s", diff)
	}
	if standby.store.next() <= added.Version.Seq || standby.store.next() <= want.Servers["server-20"].Version.Seq {
		t.Errorf("its next commit is %d", standby.store.next())
	}
	save(t, standby, Changes{Claims: []*model.ClaimRecord{{Name: "default/new"}}})
	got := standby.Observed()
	_ = standby.Close()
	if diff := cmp.Diff(got, open(t, o).Observed()); diff != "" {
		t.Errorf("the store (-memory +store):\n%s", diff)
	}
}

func TestMergeOfMemoryAndStore(t *testing.T) {
	old, now := `{"version":"1.1","name":"a"}`, `{"version":"1.9","name":"a","fingerprint":"f"}`
	cases := map[string]struct {
		memory, store contents
		behind        bool
		holed         bucket
		want          contents
		ahead         bool
	}{
		"an older record is not taken over a newer": {
			memory: with(set(bucketBMC, "a", now)), store: with(set(bucketBMC, "a", old)), want: with(set(bucketBMC, "a", now)), ahead: true,
		},
		"a newer record is": {
			memory: with(set(bucketBMC, "a", old)), store: with(set(bucketBMC, "a", now)), want: with(set(bucketBMC, "a", now)),
		},
		"a newer record of a store that was rolled back, and then written by another leader": {
			memory: with(set(bucketBMC, "a", old)), store: with(set(bucketBMC, "a", `{"version":"2.1"}`)), behind: true,
			want: with(set(bucketBMC, "a", `{"version":"2.1"}`)), ahead: true,
		},
		"a record that is not in the store was deleted": {
			memory: with(set(bucketBMC, "a", now)), store: newContents(), want: newContents(),
		},
		"but not in one that was rolled back": {
			memory: with(set(bucketBMC, "a", now)), store: newContents(), behind: true, want: with(set(bucketBMC, "a", now)), ahead: true,
		},
		"nor in a bucket with holes": {
			memory: with(set(bucketBMC, "a", now), set(bucketClaim, "c", `{}`)), store: newContents(), holed: bucketBMC,
			want: with(set(bucketBMC, "a", now)), ahead: true,
		},
		"a record that only the store has is kept": {
			memory: newContents(), store: with(set(bucketBMC, "a", old)), behind: true, want: with(set(bucketBMC, "a", old)), ahead: true,
		},
		"observations are the store's": {
			memory: with(set(bucketBMCFacts, "a", "1")), store: with(set(bucketBMCFacts, "a", "2")), want: with(set(bucketBMCFacts, "a", "2")),
		},
		"or memory's, if the store was rolled back": {
			memory: with(set(bucketBMCFacts, "a", "1")), store: with(set(bucketBMCFacts, "a", "2")), behind: true,
			want: with(set(bucketBMCFacts, "a", "1")), ahead: true,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := loaded{contents: c.store, behind: c.behind}
			if c.holed != "" {
				l.count(func(b bucket) int {
					if b == c.holed {
						return 1
					}
					return 0
				})
			}
			l.merge(c.memory)
			if diff := cmp.Diff(c.want, l.contents); diff != "" || l.ahead != c.ahead || len(l.damage) > 0 {
				t.Errorf("ahead %v, damage %v, (-want +got):\n%s", l.ahead, l.damage, diff)
			}
		})
	}
}

func TestSessionsAreKeptSealed(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		r, ctx := lead(t, b.options), t.Context()
		token := model.NewSensitive("correct-horse")
		var want []Session
		for i := range maxSessions + 3 {
			uri := fmt.Sprintf("/redfish/v1/SessionService/Sessions/%d", i)
			if err := r.SaveSession(ctx, "bmc-0", uri, token); err != nil {
				t.Fatal(err)
			}
			if i >= 4 { // three are too many, and one is dropped
				want = append(want, Session{"bmc-0", uri, token})
			}
		}
		if err := r.SaveSession(ctx, "bmc-1", "/s/1", token); err != nil {
			t.Fatal(err)
		}
		want = append(want, Session{"bmc-1", "/s/1", token})
		seals := testutil.ToFloat64(r.metrics.writes.WithLabelValues("session"))
		for range 2 {
			if err := errors.Join(r.SaveSession(ctx, "bmc-1", "/s/1", token), r.DropSession(ctx, "bmc-1", "/s/none"), r.DropSession(ctx, "bmc-2", "/s/1")); err != nil {
				t.Error(err)
			}
		}
		if got := testutil.ToFloat64(r.metrics.writes.WithLabelValues("session")); got != seals {
			t.Errorf("%v writes, then %v", seals, got)
		}
		if err := r.DropSession(ctx, "bmc-0", "/redfish/v1/SessionService/Sessions/3"); err != nil {
			t.Fatal(err)
		}
		if raw := r.memory.kept(key{bucketSession, "bmc-1"}); len(raw) == 0 || len(raw) > 200 {
			t.Errorf("sealed as %d bytes", len(raw))
		}
		_ = r.Close()
		again := lead(t, b.options)
		if diff := cmp.Diff(want, again.Sessions(), cmp.Comparer(func(a, b model.Sensitive) bool { return a.Reveal() == b.Reveal() })); diff != "" {
			t.Errorf("sessions (-want +got):\n%s", diff)
		}
		save(t, again, Changes{DeleteBMCs: []model.BMCName{"bmc-0"}})
		if err := again.DropSession(ctx, "bmc-1", "/s/1"); err != nil || len(again.Sessions()) != 0 {
			t.Errorf("%v, left %v", err, again.Sessions())
		}
	})
}

func TestSessionsAreBounded(t *testing.T) {
	r := lead(t, Options{Dir: t.TempDir()})
	for name, s := range map[string]Session{
		"no BMC":       {"", "/s/1", model.NewSensitive("t")},
		"no URI":       {"bmc-0", "", model.NewSensitive("t")},
		"a long URI":   {"bmc-0", large, model.NewSensitive("t")},
		"a long token": {"bmc-0", "/s/1", model.NewSensitive(large)},
	} {
		if err := r.SaveSession(t.Context(), s.BMC, s.URI, s.Token); err == nil {
			t.Errorf("%s: saved", name)
		}
	}
}

func TestWhoLeads(t *testing.T) {
	s := newRedisServer(t)
	o := Options{RedisURL: s.url(), LeaseTTL: 200 * time.Millisecond, Owner: "here"}
	leader, standby := lead(t, o), open(t, o)
	run(t, leader)
	ctx, cancel := context.WithCancel(t.Context())
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		_ = standby.Lead(ctx)
	}()
	t.Cleanup(func() { cancel(); <-waited })
	in := func(r *Registry, want LeadState) func() bool {
		return func() bool { got, _ := r.LeadState(); return got == want }
	}
	eventually(t, "the standby knows who leads", func() bool {
		state, detail := standby.LeadState()
		return state == Follows && detail.Error() == "another ingot leads: "+leader.options.Owner
	})
	if state, detail := leader.LeadState(); state != Leads || detail != nil {
		t.Errorf("the leader: %s, %v", state, detail)
	}
	s.stop()
	eventually(t, "the leader says that the store is silent", in(leader, StoreSilent))
	eventually(t, "the standby says that the store is silent", in(standby, StoreSilent))
	if _, detail := standby.LeadState(); detail == nil {
		t.Error("it does not say why")
	}
	s.start(t)
	eventually(t, "one leads", func() bool { return in(leader, Leads)() || in(standby, Leads)() })
	eventually(t, "the other follows", func() bool { return in(leader, Follows)() || in(leader, LeadEnded)() || in(standby, Follows)() })
}

func TestLeadStates(t *testing.T) {
	past := time.Now().Add(-time.Second)
	for name, tt := range map[string]struct {
		befalls func(*Registry)
		want    LeadState
		detail  error
	}{
		"the leader":                  {func(*Registry) {}, Leads, nil},
		"whose lease has run out":     {func(r *Registry) { r.leaseEnd.Store(&past) }, StoreSilent, errLeaseUnsure},
		"whom the store fenced":       {func(r *Registry) { r.judge(ErrFenced) }, LeadEnded, ErrLeadershipLost},
		"whose store does not answer": {func(r *Registry) { r.judge(context.DeadlineExceeded) }, StoreSilent, context.DeadlineExceeded},
		"whose lead was ended":        {(*Registry).EndLead, LeadEnded, ErrLeadershipLost},
	} {
		t.Run(name, func(t *testing.T) {
			r := lead(t, Options{Dir: t.TempDir()})
			tt.befalls(r)
			if got, detail := r.LeadState(); got != tt.want || !errors.Is(detail, tt.detail) {
				t.Errorf("got %s, %v; want %s, %v", got, detail, tt.want, tt.detail)
			}
		})
	}
}

func TestDurabilityOfRedis(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want Durability
	}{
		"no append-only file":        {nil, DurableNo},
		"written when it suits":      {[]string{"--appendonly", "yes", "--appendfsync", "no"}, DurableNo},
		"written each second":        {aof, DurableEverySecond},
		"written before it answers":  {[]string{"--appendonly", "yes", "--appendfsync", "always"}, DurableAlways},
		"it keeps its configuration": {[]string{"--appendonly", "yes", "--appendfsync", "always", "--rename-command", "CONFIG", ""}, DurableNo},
	} {
		t.Run(name, func(t *testing.T) {
			r := lead(t, Options{RedisURL: newRedisServer(t, c.args...).url()})
			if got := r.Durability(); got != c.want || r.Durable() != (c.want == DurableAlways) {
				t.Errorf("durable: %v (%v), want %v", got, r.Durable(), c.want)
			}
		})
	}
	if r := lead(t, Options{Dir: t.TempDir()}); r.Durability() != DurableAlways {
		t.Errorf("a file is durable: %v", r.Durability())
	}
}

// Notes of boots are no records: they have no version, and are saved in one commit with
// those that have.
func TestOnlyRecordsHaveVersions(t *testing.T) {
	r := lead(t, Options{Dir: t.TempDir()})
	save(t, r, everything())
	rec := r.Observed().Servers["server-0"]
	if err := r.Note(t.Context(), rec.Ticket, model.StageScript, netip.Addr{}); err != nil {
		t.Fatal(err)
	}
	c, _ := mustLoad(t, r.store)
	for b, values := range c {
		for name, raw := range values {
			if v, _ := splitVersion(raw); v.IsZero() == versioned[b] {
				t.Errorf("%s %s has version %s", b, name, v)
			}
		}
	}
}
