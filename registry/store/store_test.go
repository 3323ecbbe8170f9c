package store

import (
	"context"
	"crypto/rand"
	"reflect"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"

	"ingot/registry/internal/redistest"
)

// storeCase is one store under the conformance suite. open opens it another time,
// as another process would, after close of the one before if it is exclusive.
type storeCase struct {
	open      func(t *testing.T) (Store, error)
	lose      func(t *testing.T)
	exclusive bool
}

func storeCases() map[string]func(t *testing.T) storeCase {
	ofRedis := func(t *testing.T, url string) func(t *testing.T) (Store, error) {
		return func(t *testing.T) (Store, error) {
			return OpenRedis(t.Context(), RedisConfig{
				URL: url, Owner: "test/" + rand.Text(), TTL: 300 * time.Millisecond,
				Clock: func() time.Time { return now }, Log: testLog(t),
			})
		}
	}
	return map[string]func(t *testing.T) storeCase{
		"bbolt": func(t *testing.T) storeCase {
			dir := t.TempDir()
			return storeCase{
				open: func(t *testing.T) (Store, error) {
					return OpenBolt(dir, func() time.Time { return now }, testLog(t))
				},
				lose: func(t *testing.T) { loseFiles(t, dir) }, exclusive: true,
			}
		},
		"miniredis": func(t *testing.T) storeCase {
			m := miniredis.RunT(t)
			return storeCase{open: ofRedis(t, "redis://"+m.Addr()), lose: func(*testing.T) { m.FlushAll() }}
		},
		"redis-server": func(t *testing.T) storeCase {
			s := redistest.New(t, redistest.Durable...)
			return storeCase{open: ofRedis(t, s.URL()), lose: func(t *testing.T) { s.Client(t).FlushAll(t.Context()) }}
		},
	}
}

func (c storeCase) newStore(t *testing.T) Store {
	t.Helper()
	s, err := c.open(t)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func (c storeCase) leader(t *testing.T) (Store, uint64) {
	t.Helper()
	s := c.newStore(t)
	fence, holder, err := s.Acquire(t.Context())
	if err != nil || holder != "" {
		t.Fatalf("acquire: holder %q, %v", holder, err)
	}
	l, err := s.Load(t.Context())
	if err == nil && l.Fresh {
		err = s.Replace(t.Context(), NewContents())
	}
	if err != nil {
		t.Fatal(err)
	}
	return s, fence
}

func wantContents(t *testing.T, s Store, want Contents) {
	t.Helper()
	if got, _ := mustLoad(t, s); !reflect.DeepEqual(got, want) { // cmp takes seconds for megabytes
		t.Errorf("contents (-want +got):\n%s", cmp.Diff(want, got))
	}
}

func TestStoreConformance(t *testing.T) {
	promises := map[string]func(t *testing.T, c storeCase){
		"a new store is fresh and empty": func(t *testing.T, c storeCase) {
			s := c.newStore(t)
			if got, fresh := mustLoad(t, s); !fresh || !got.Empty() {
				t.Errorf("fresh %v, contents %v", fresh, got)
			}
		},
		"what was committed is there after closing and opening": func(t *testing.T, c storeCase) {
			s, _ := c.leader(t)
			wantErr(t, s.Commit(t.Context(), Batch{set(BucketServer, "s1", "1"), set(BucketClaim, "ns/a", "x")}), nil)
			wantErr(t, s.Commit(t.Context(), Batch{set(BucketServer, "s1", "2"), del(BucketClaim, "ns/a"), del(BucketBMC, "none")}), nil)
			wantErr(t, s.Close(), nil)
			wantContents(t, c.newStore(t), with(set(BucketServer, "s1", "2")))
		},
		"bytes of any kind are kept as they are": func(t *testing.T, c storeCase) {
			s, _ := c.leader(t)
			wantErr(t, s.Commit(t.Context(), Batch{set(BucketPayload, "t\x00\n\xff", "\x00\xff\r\n$-1")}), nil)
			wantContents(t, s, with(set(BucketPayload, "t\x00\n\xff", "\x00\xff\r\n$-1")))
		},
		"each leader has a higher fencing number": func(t *testing.T, c storeCase) {
			s, first := c.leader(t)
			wantErr(t, s.Close(), nil)
			if _, second := c.leader(t); second <= first || first == 0 {
				t.Errorf("fencing numbers %d, then %d", first, second)
			}
		},
		"a leader renews": func(t *testing.T, c storeCase) {
			s, _ := c.leader(t)
			wantErr(t, s.Renew(t.Context()), nil)
		},
		"a lost store says so and writes nothing": func(t *testing.T, c storeCase) {
			s, _ := c.leader(t)
			wantErr(t, s.Commit(t.Context(), Batch{set(BucketServer, "s1", "1")}), nil)
			c.lose(t)
			wantErr(t, s.Renew(t.Context()), ErrLost)
			wantErr(t, s.Commit(t.Context(), Batch{set(BucketServer, "s2", "1")}), ErrLost)
		},
		"a lost store can be filled again by its leader": func(t *testing.T, c storeCase) {
			s, _ := c.leader(t)
			c.lose(t)
			want := with(set(BucketServer, "s1", "1"), set(BucketFleet, "fleet", "{}"))
			wantErr(t, s.Replace(t.Context(), want), nil)
			wantErr(t, s.Renew(t.Context()), nil)
			want.Set(set(BucketBMC, "b", "2"))
			wantErr(t, s.Commit(t.Context(), Batch{set(BucketBMC, "b", "2")}), nil)
			wantErr(t, s.Close(), nil)
			wantContents(t, c.newStore(t), want)
		},
		"filling forgets what is not in it": func(t *testing.T, c storeCase) {
			s, _ := c.leader(t)
			wantErr(t, s.Commit(t.Context(), Batch{set(BucketServer, "old", "1")}), nil)
			want := with(set(BucketServer, "new", "1"))
			wantErr(t, s.Replace(t.Context(), want), nil)
			wantContents(t, s, want)
		},
		"more than fits one piece is filled": func(t *testing.T, c storeCase) {
			s, _ := c.leader(t)
			want := NewContents()
			for i := range 40 {
				want.Set(set(BucketPayload, uuidOf(i), string(make([]byte, 300<<10))))
			}
			wantErr(t, s.Replace(t.Context(), want), nil)
			wantContents(t, s, want)
		},
		"leases are kept apart, and outlive all else being filled": func(t *testing.T, c storeCase) {
			s, _ := c.leader(t)
			wantStoredLeases(t, s, map[string]string{})
			want := with(set(BucketServer, "s1", "1"))
			wantErr(t, s.Commit(t.Context(), Batch{
				set(BucketLease, "a\x00", "1"), set(BucketServer, "s1", "1"),
				set(BucketLease, "b", "\xff"), set(BucketLease, "c", ""),
			}), nil)
			wantErr(t, s.Commit(t.Context(), Batch{set(BucketLease, "a\x00", "2"), del(BucketLease, "c"), del(BucketLease, "none")}), nil)
			wantContents(t, s, want)
			wantErr(t, s.Replace(t.Context(), want), nil)
			wantErr(t, s.Close(), nil)
			again := c.newStore(t)
			wantContents(t, again, want)
			wantStoredLeases(t, again, map[string]string{"a\x00": "2", "b": "\xff"})
		},
		"leases and what is new among them are counted": func(t *testing.T, c storeCase) {
			s, _ := c.leader(t)
			for _, want := range []int{2, 1} {
				b := Batch{set(BucketLease, "a", "1"), set(BucketLease, "b", "1"), del(BucketLease, "c")}
				total, fresh, err := s.CountLeases(t.Context(), b)
				if err != nil || total != 2-want || fresh != want {
					t.Errorf("%d leases and %d new, %v", total, fresh, err)
				}
				wantErr(t, s.Commit(t.Context(), b[:1]), nil)
			}
		},
		"leases of a lost store are lost": func(t *testing.T, c storeCase) {
			s, _ := c.leader(t)
			wantErr(t, s.Commit(t.Context(), Batch{set(BucketLease, "a", "1")}), nil)
			c.lose(t)
			wantErr(t, s.Commit(t.Context(), Batch{set(BucketLease, "b", "1")}), ErrLost)
			wantErr(t, s.Replace(t.Context(), NewContents()), nil)
			wantStoredLeases(t, s, map[string]string{})
		},
		"another one leads only after the lease ran out, and fences the first": func(t *testing.T, c storeCase) {
			if c.exclusive {
				t.Skip("only one process can open it at all")
			}
			first, fence := c.leader(t)
			second := c.newStore(t)
			mustLoad(t, second)
			if _, holder, err := second.Acquire(t.Context()); err != nil || holder == "" {
				t.Fatalf("two leaders: %v", err)
			}
			if m, ok := first.(*Redis); ok {
				expireLease(t, m)
			}
			higher, holder, err := second.Acquire(t.Context())
			if err != nil || holder != "" || higher <= fence {
				t.Fatalf("fence %d after %d, holder %q, %v", higher, fence, holder, err)
			}
			wantErr(t, first.Commit(t.Context(), Batch{set(BucketServer, "s1", "stale")}), ErrFenced)
			wantErr(t, first.Replace(t.Context(), with(set(BucketServer, "s1", "stale"))), ErrFenced)
			wantErr(t, first.Commit(t.Context(), Batch{set(BucketLease, "l1", "stale")}), ErrFenced)
			wantErr(t, first.Renew(t.Context()), ErrFenced)
			wantStoredLeases(t, second, map[string]string{})
			wantErr(t, second.Commit(t.Context(), Batch{set(BucketServer, "s1", "new")}), nil)
			wantContents(t, second, with(set(BucketServer, "s1", "new")))
		},
		"commits of the leader are followed": func(t *testing.T, c storeCase) {
			if c.exclusive {
				t.Skip("only one process can open it at all")
			}
			first, _ := c.leader(t)
			second := c.newStore(t)
			mustLoad(t, second)
			want := Batch{set(BucketServer, "s1", "1")}
			wantErr(t, first.Commit(t.Context(), want), nil)
			got, stale, err := second.Follow(t.Context())
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(Change{}, Key{})); diff != "" || stale || err != nil {
				t.Errorf("stale %v, %v, (-want +got):\n%s", stale, err, diff)
			}
			wantErr(t, first.Commit(t.Context(), Batch{del(BucketServer, "s1")}), nil)
			if got, _, err = second.Follow(t.Context()); err != nil || len(got) != 1 || got[0].Value != nil {
				t.Errorf("after deletion: %v, %v", got, err)
			}
		},
		"a follower that missed commits is told to load again": func(t *testing.T, c storeCase) {
			if c.exclusive {
				t.Skip("only one process can open it at all")
			}
			first, _ := c.leader(t)
			second := c.newStore(t)
			mustLoad(t, second)
			wantErr(t, first.Commit(t.Context(), Batch{set(BucketServer, "s1", "1")}), nil)
			s := first.(*Redis)
			s.client.Del(t.Context(), s.key("feed"))
			wantErr(t, first.Commit(t.Context(), Batch{set(BucketServer, "s2", "1")}), nil)
			if _, stale, err := second.Follow(t.Context()); !stale || err != nil {
				t.Errorf("stale %v, %v", stale, err)
			}
		},
		"a store that was rolled back is lost": func(t *testing.T, c storeCase) {
			if c.exclusive {
				t.Skip("a file does not go back")
			}
			s, _ := c.leader(t)
			wantErr(t, s.Commit(t.Context(), Batch{set(BucketServer, "s1", "1")}), nil)
			wantErr(t, s.Commit(t.Context(), Batch{set(BucketServer, "s1", "2")}), nil)
			r := s.(*Redis)
			r.client.Decr(t.Context(), r.key("revision")) // a fail-over to a replica that lagged (X04)
			wantErr(t, s.Renew(t.Context()), ErrLost)
			wantErr(t, s.Commit(t.Context(), Batch{set(BucketServer, "s1", "3")}), ErrLost)
		},
		"a commit whose answer got lost may be made again": func(t *testing.T, c storeCase) {
			if c.exclusive {
				t.Skip("a file answers")
			}
			s, _ := c.leader(t)
			wantErr(t, s.Commit(t.Context(), Batch{set(BucketServer, "s1", "1")}), nil)
			s.(*Redis).revision-- // as if it had not been answered
			wantErr(t, s.Commit(t.Context(), Batch{set(BucketServer, "s1", "1")}), nil)
			wantContents(t, s, with(set(BucketServer, "s1", "1")))
		},
		"after a loss a follower leaves the lease to the leader for a while": func(t *testing.T, c storeCase) {
			if c.exclusive {
				t.Skip("only one process can open it at all")
			}
			first, fence := c.leader(t)
			second := c.newStore(t)
			mustLoad(t, second)
			c.lose(t)
			if _, holder, err := second.Acquire(t.Context()); err != nil || holder == "" {
				t.Fatalf("it leads at once: %v", err)
			}
			wantErr(t, first.Replace(t.Context(), NewContents()), nil)
			wantErr(t, first.Close(), nil)
			got, holder, err := second.Acquire(t.Context())
			if err != nil || holder != "" || got <= fence {
				t.Errorf("fence %d after %d, holder %q, %v", got, fence, holder, err)
			}
		},
	}
	for name, newCase := range storeCases() {
		t.Run(name, func(t *testing.T) {
			for promise, check := range promises {
				t.Run(promise, func(t *testing.T) { check(t, newCase(t)) })
			}
		})
	}
}

func wantStoredLeases(t *testing.T, s Store, want map[string]string) {
	t.Helper()
	got := make(map[string]string)
	err := s.EachLease(t.Context(), func(name, value []byte) { got[string(name)] = string(value) })
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("leases, %v (-want +got):\n%s", err, diff)
	}
}

func expireLease(t *testing.T, s *Redis) {
	t.Helper()
	if err := s.client.Del(context.WithoutCancel(t.Context()), s.key("lease")).Err(); err != nil {
		t.Fatal(err)
	}
}
