package registry

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
	bolt "go.etcd.io/bbolt"

	"ingot/model"
	"ingot/model/must"
	"ingot/registry/internal/redistest"
	"ingot/registry/store"
)

// punch takes values out of a store behind its back, or puts others in their place. A
// registry with an embedded store is closed for it.
func punch(t *testing.T, r *Registry, b store.Batch) {
	t.Helper()
	var err error
	for _, ch := range b {
		hash := "{ingot}:data:" + string(ch.Bucket)
		switch {
		case r.options.RedisURL == "":
			editFile(t, r, func(tx *bolt.Tx) error { return punchFile(tx, ch) })
		case ch.Value == nil:
			err = errors.Join(err, redisOf(t, r).HDel(t.Context(), hash, ch.Name).Err())
		default:
			err = errors.Join(err, redisOf(t, r).HSet(t.Context(), hash, ch.Name, ch.Value).Err())
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func editFile(t *testing.T, r *Registry, edit func(*bolt.Tx) error) {
	t.Helper()
	_ = r.Close()
	db := must.Get(bolt.Open(filepath.Join(r.options.Dir, store.FileName), 0o600, &bolt.Options{NoFreelistSync: true}))(t)
	must.Do(t, errors.Join(db.Update(edit), db.Close()))
}

func punchFile(tx *bolt.Tx, ch store.Change) error {
	b := tx.Bucket([]byte(ch.Bucket))
	if ch.Value == nil {
		return b.Delete([]byte(ch.Name))
	}
	return b.Put([]byte(ch.Name), ch.Value)
}

func redisOf(t *testing.T, r *Registry) *redis.Client {
	t.Helper()
	o := must.Get(redis.ParseURL(r.options.RedisURL))(t)
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func loadByTurn(t *testing.T, r *Registry) (store.Loaded, error) {
	t.Helper()
	r.turn <- struct{}{}
	defer r.endTurn()
	return r.store.Load(t.Context())
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
		punched store.Batch
		want    store.Damage
	}{
		"records are gone": {
			punched: store.Batch{del(store.BucketServer, "server-1"), del(store.BucketServer, "server-2")},
			want:    store.Damage{Bucket: "server", Err: store.ErrMissing},
		},
		"all of a kind are gone": {
			punched: store.Batch{del(store.BucketClaim, "default/web")},
			want:    store.Damage{Bucket: "claim", Err: store.ErrMissing},
		},
		"the fleet's is gone": {
			punched: store.Batch{del(store.BucketFleet, fleetKey)},
			want:    store.Damage{Bucket: "fleet", Err: store.ErrMissing},
		},
		"a record cannot be read": {
			punched: store.Batch{set(store.BucketEndpoint, "bmc-0", `{"name":`)},
			want:    store.Damage{Bucket: "endpoint", Name: "bmc-0"},
		},
		"a record means other than": {
			punched: store.Batch{set(store.BucketBMC, "bmc-0", `[]`)},
			want:    store.Damage{Bucket: "bmc", Name: "bmc-0"},
		},
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
				punch(t, r, hole.punched)
				_ = r.Close()
				for range 2 {
					again := lead(t, b.options)
					must.Do(t, again.keep(t.Context()))
					got := again.Damage()
					if len(got) != 1 || got[0].Bucket != hole.want.Bucket || got[0].Name != hole.want.Name ||
						(hole.want.Err != nil && !errors.Is(got[0], hole.want.Err)) || got[0].Err == nil {
						t.Fatalf("got %v, want %v", got, hole.want)
					}
					if err := again.Leases.SaveLeases(t.Context(), []model.Lease{leaseOf(3)}); err != nil { // which goes on
						t.Fatal(err)
					}
					_ = again.Close()
				}
				mended := lead(t, b.options)
				adopt(t, mended, &whole, false)
				if err := mended.store.Renew(t.Context()); err != nil || mended.Damage() != nil {
					t.Errorf("after Adopt: %v, %v", err, mended.Damage())
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

// Unreadable records are kept when the store is written again.
func TestUnreadableRecordsStayInALostStore(t *testing.T) {
	m := miniredis.RunT(t)
	o := Options{RedisURL: "redis://" + m.Addr()}
	r := lead(t, o)
	tenServers(t, r)
	punch(t, r, store.Batch{set(store.BucketBMC, "bmc-0", `[]`)})
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
	s := redistest.New(t)
	r := lead(t, Options{RedisURL: s.URL(), LeaderTTL: 150 * time.Millisecond})
	tenServers(t, r)
	stop, _ := run(t, r)
	for name, punched := range map[string]func() error{
		"fields": func() error {
			return s.Client(t).HDel(t.Context(), "{ingot}:data:server", "server-3", "server-4").Err()
		},
		"a hash":     func() error { return s.Client(t).Del(t.Context(), "{ingot}:data:claim").Err() },
		"the counts": func() error { return s.Client(t).Del(t.Context(), "{ingot}:counts").Err() },
	} {
		before := testutil.ToFloat64(r.metrics.lost)
		must.Do(t, punched())
		eventually(t, name, func() bool { return testutil.ToFloat64(r.metrics.lost) == before+1 })
		eventually(t, "the turn is over", func() bool { return r.Lead.Healthy() == nil && len(r.turn) == 0 })
		if l, err := loadByTurn(t, r); err != nil || l.Damage != nil || len(l.Contents[store.BucketServer]) != 10 {
			t.Errorf("%s: %v, %v, %d servers", name, err, l.Damage, len(l.Contents[store.BucketServer]))
		}
	}
	stop()
	if err := r.store.Renew(t.Context()); err != nil {
		t.Error(err)
	}
}

// Something else under a name of ours must not keep us from writing for ever.
func TestKeysOfAnotherTypeAreWrittenOver(t *testing.T) {
	for _, key := range []string{
		"fence", "lease", "revision", "feed", "counts", "format",
		"data:server", "data:fleet", "data:lease", "data:payload",
	} {
		t.Run(key, func(t *testing.T) {
			s := redistest.New(t)
			wrong := func() {
				must.Get(s.Client(t).TxPipelined(t.Context(), func(p redis.Pipeliner) error {
					p.Del(t.Context(), "{ingot}:"+key)
					p.SAdd(t.Context(), "{ingot}:"+key, "x")
					return nil
				}))(t)
			}
			r := lead(t, Options{RedisURL: s.URL(), LeaderTTL: 150 * time.Millisecond})
			tenServers(t, r)
			stop, _ := run(t, r)
			wrong()
			all := everything()
			all.Fleet.Sequence++
			save(t, r, all)
			if err := errors.Join(
				r.Leases.SaveLeases(t.Context(), []model.Lease{leaseOf(1)}),
				r.SavePayload(t.Context(), "t", model.NewSensitive("x")),
			); err != nil {
				t.Error(err)
			}
			want := r.Observed()
			eventually(t, "it leads and the store is whole", func() bool {
				l, err := loadByTurn(t, r)
				return err == nil && r.Lead.Leading() && r.Lead.Healthy() == nil && l.Damage == nil && !l.Fresh
			})
			stop()
			_ = r.Close()
			wantObserved(t, lead(t, Options{RedisURL: s.URL()}), want)
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
			s := redistest.New(t)
			r := lead(t, Options{RedisURL: s.URL()})
			tenServers(t, r)
			whole := r.Observed().Records
			_ = r.Close()
			c := s.Client(t)
			must.Do(t, errors.Join(c.Del(t.Context(), gone...).Err(), c.Set(t.Context(), "{ingot}:data:server", "x", 0).Err()))
			again := lead(t, Options{RedisURL: s.URL()})
			if got := again.Damage(); len(got) == 0 || got[0].Bucket != "server" {
				t.Errorf("damage %v", got)
			}
			adopt(t, again, &whole, false)
			_ = again.Close()
			last := lead(t, Options{RedisURL: s.URL()})
			if diff := cmp.Diff(whole, last.Observed().Records); diff != "" || last.Damage() != nil {
				t.Errorf("damage %v, records (-before +after):\n%s", last.Damage(), diff)
			}
		})
	}
}

// A store whose mark was overwritten is not a new one.
func TestAStoreWithoutItsMarkIsRead(t *testing.T) {
	s := redistest.New(t)
	r := lead(t, Options{RedisURL: s.URL()})
	tenServers(t, r)
	want := r.Observed()
	_ = r.Close()
	c := s.Client(t)
	must.Do(t, errors.Join(c.Del(t.Context(), "{ingot}:format").Err(), c.SAdd(t.Context(), "{ingot}:format", "x").Err()))
	wantObserved(t, lead(t, Options{RedisURL: s.URL()}), want)
	if got := c.Get(t.Context(), "{ingot}:format").Val(); got != "1" {
		t.Errorf("format %q", got)
	}
}

func snapshot(t *testing.T, c *redis.Client) (restore func()) {
	t.Helper()
	ctx := t.Context()
	dumps := make(map[string]string)
	for _, key := range c.Keys(ctx, "*").Val() {
		dumps[key] = c.Dump(ctx, key).Val()
	}
	return func() {
		must.Do(t, c.FlushAll(ctx).Err())
		for key, dump := range dumps {
			must.Do(t, c.Restore(ctx, key, 0, dump).Err())
		}
	}
}

// The leader and Redis fail together, and the replica is behind. The standby has newer records
// and keeps them, so that no bound claim is bound again elsewhere.
func TestAStandbyKeepsWhatIsNewerThanTheStore(t *testing.T) {
	s := redistest.New(t)
	o := Options{RedisURL: s.URL(), LeaderTTL: 100 * time.Millisecond}
	leader := lead(t, o)
	tenServers(t, leader)
	restore := snapshot(t, s.Client(t))
	bound := serverRecord(0, model.PurposeClaim)
	bound.Claim.Name = "default/web"
	fact := &model.ServerFacts{Name: "server-0", Power: model.PowerOn}
	save(t, leader, Changes{Servers: []*model.ServerRecord{bound, serverRecord(20, model.PurposeClaim)}, ServerFacts: []*model.ServerFacts{fact}})
	standby := open(t, o)
	want := standby.Observed()
	if got := want.Servers["server-0"]; got.Claim.Name != "default/web" {
		t.Fatalf("the standby has %v", got)
	}
	s.Client(t).Del(t.Context(), "{ingot}:lease")
	_ = leader.Close()
	restore()
	s.Client(t).Del(t.Context(), "{ingot}:lease")
	must.Do(t, standby.AwaitLead(t.Context()))
	if diff := cmp.Diff(want, standby.Observed()); diff != "" {
		t.Errorf("the standby (-before +after):\n%s", diff)
	}
	save(t, standby, Changes{Claims: []*model.ClaimRecord{{Name: "default/new"}}})
	got := standby.Observed()
	if got.Sequence <= want.Sequence {
		t.Errorf("sequence %d after %d", got.Sequence, want.Sequence)
	}
	_ = standby.Close()
	if diff := cmp.Diff(got, open(t, o).Observed()); diff != "" {
		t.Errorf("the store (-memory +store):\n%s", diff)
	}
}

func TestMergeOfMemoryAndStore(t *testing.T) {
	one, two := `{"name":"a"}`, `{"name":"a","fingerprint":"f"}`
	cases := map[string]struct {
		memory, store store.Contents
		behind        bool
		holed         store.Bucket
		want          store.Contents
		ahead         bool
	}{
		"a sound store wins": {
			memory: with(set(store.BucketBMC, "a", one), set(store.BucketBMCFacts, "a", "1")),
			store:  with(set(store.BucketBMC, "a", two), set(store.BucketBMCFacts, "a", "2")),
			want:   with(set(store.BucketBMC, "a", two), set(store.BucketBMCFacts, "a", "2")),
		},
		"memory wins over a store that was rolled back": {
			memory: with(set(store.BucketBMC, "a", one), set(store.BucketBMCFacts, "a", "1"), set(store.BucketSequence, "sequence", "7")),
			store:  with(set(store.BucketBMC, "a", two), set(store.BucketBMCFacts, "a", "2"), set(store.BucketSequence, "sequence", "5")), behind: true,
			want: with(set(store.BucketBMC, "a", one), set(store.BucketBMCFacts, "a", "1"), set(store.BucketSequence, "sequence", "7")), ahead: true,
		},
		"a record that is not in a sound store was deleted": {
			memory: with(set(store.BucketBMC, "a", one)), store: store.NewContents(), want: store.NewContents(),
		},
		"memory has a record that a store lost by a roll-back": {
			memory: with(set(store.BucketBMC, "a", one)), store: store.NewContents(), behind: true,
			want: with(set(store.BucketBMC, "a", one)), ahead: true,
		},
		"memory fills a bucket with holes, and changes nothing else": {
			memory: with(set(store.BucketBMC, "a", one), set(store.BucketBMC, "b", one), set(store.BucketClaim, "c", `{}`)),
			store:  with(set(store.BucketBMC, "b", two)), holed: store.BucketBMC,
			want: with(set(store.BucketBMC, "a", one), set(store.BucketBMC, "b", two)), ahead: true,
		},
		"a record that only the store has is kept": {
			memory: store.NewContents(), store: with(set(store.BucketBMC, "a", one)), behind: true,
			want: with(set(store.BucketBMC, "a", one)), ahead: true,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := store.Loaded{Contents: c.store, Behind: c.behind}
			if c.holed != "" {
				l.Count(func(b store.Bucket) int {
					if b == c.holed {
						return len(c.want[b])
					}
					return 0
				})
			}
			merge(&l, c.memory)
			if diff := cmp.Diff(c.want, l.Contents); diff != "" || l.Ahead != c.ahead || len(l.Damage) > 0 {
				t.Errorf("ahead %v, damage %v, (-want +got):\n%s", l.Ahead, l.Damage, diff)
			}
		})
	}
}
