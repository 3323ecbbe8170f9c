package registry

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/model/must"
	"ingot/registry/internal/redistest"
	"ingot/registry/store"
)

func TestWhoLeads(t *testing.T) {
	s := redistest.New(t)
	o := Options{RedisURL: s.URL(), LeaderTTL: 200 * time.Millisecond, Owner: "here/1"}
	leader := lead(t, o)
	o.Owner = "here/2"
	standby := open(t, o)
	run(t, leader)
	ctx, cancel := context.WithCancel(t.Context())
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		_ = standby.AwaitLead(ctx)
	}()
	t.Cleanup(func() { cancel(); <-waited })
	in := func(r *Registry, want LeadState) func() bool {
		return func() bool { got, _ := r.Lead.State(); return got == want }
	}
	eventually(t, "the standby knows who leads", func() bool {
		state, detail := standby.Lead.State()
		holder := s.Client(t).Get(t.Context(), "{ingot}:lease").Val()
		return state == Follows && strings.HasPrefix(holder, "here/") && detail.Error() == "another ingot leads: "+holder
	})
	if state, detail := leader.Lead.State(); state != Leads || detail != nil {
		t.Errorf("the leader: %s, %v", state, detail)
	}
	s.Stop()
	eventually(t, "the leader says that the store is silent", in(leader, StoreSilent))
	eventually(t, "the standby says that the store is silent", in(standby, StoreSilent))
	if _, detail := standby.Lead.State(); detail == nil {
		t.Error("it does not say why")
	}
	s.Start(t)
	eventually(t, "one leads", func() bool { return in(leader, Leads)() || in(standby, Leads)() })
	eventually(t, "the other follows", func() bool { return in(leader, Follows)() || in(leader, LeadEnded)() || in(standby, Follows)() })
}

func TestLeaseOfDeadProcessIsEnded(t *testing.T) {
	s := redistest.New(t)
	lead(t, Options{RedisURL: s.URL(), LeaderTTL: time.Hour, Owner: "here/dead"})
	next := func(dead string) (*Registry, func()) {
		r := open(t, Options{RedisURL: s.URL(), LeaderTTL: time.Hour, Owner: "here/next", HasDied: func(owner string) bool { return owner == dead }})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = r.AwaitLead(ctx) }()
		return r, func() { cancel(); <-ended }
	}
	r, end := next("here/other")
	eventually(t, "it waits for the leader", func() bool {
		holder := r.Lead.holder.Load()
		return holder != nil && *holder == "here/dead"
	})
	end()
	r, end = next("here/dead")
	eventually(t, "it leads", r.Lead.Leading)
	end()
}

func TestLeadStates(t *testing.T) {
	past := time.Now().Add(-time.Second)
	for name, tt := range map[string]struct {
		befalls func(*Registry)
		want    LeadState
		detail  error
	}{
		"the leader": {
			befalls: func(*Registry) {},
			want:    Leads,
		},
		"whose lease has run out": {
			befalls: func(r *Registry) { r.Lead.until.Store(&past) },
			want:    StoreSilent, detail: errNotRenewed,
		},
		"whom the store fenced": {
			befalls: func(r *Registry) { r.Lead.note(store.ErrFenced) },
			want:    LeadEnded, detail: ErrLeadershipLost,
		},
		"whose store does not answer": {
			befalls: func(r *Registry) { r.Lead.note(context.DeadlineExceeded) },
			want:    StoreSilent, detail: context.DeadlineExceeded,
		},
		"whose lead was ended": {
			befalls: func(r *Registry) { r.Lead.End() },
			want:    LeadEnded, detail: ErrLeadershipLost,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := lead(t, Options{Dir: t.TempDir()})
			tt.befalls(r)
			if got, detail := r.Lead.State(); got != tt.want || !errors.Is(detail, tt.detail) {
				t.Errorf("got %s, %v; want %s, %v", got, detail, tt.want, tt.detail)
			}
		})
	}
}

func TestTwoRegistriesFightForTheLease(t *testing.T) {
	m := miniredis.RunT(t)
	o := Options{RedisURL: "redis://" + m.Addr(), LeaderTTL: 100 * time.Millisecond}
	first := lead(t, o)
	save(t, first, everything())
	_, firstDone := run(t, first)

	second := open(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := second.AwaitLead(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("two leaders: %v", err)
	}
	if err := second.Save(t.Context(), Changes{DeleteEndpoints: []string{"bmc-0"}}); !errors.Is(err, store.ErrFenced) {
		t.Errorf("who does not lead saved: %v", err)
	}

	first.turn <- struct{}{} // the first one hangs
	m.FastForward(time.Second)
	must.Do(t, second.AwaitLead(t.Context()))
	<-first.turn
	if second.Lead.Fence() <= first.Lead.Fence() && first.Lead.Fence() != 0 {
		t.Errorf("fence %d after %d", second.Lead.Fence(), first.Lead.Fence())
	}
	if err := <-firstDone; !errors.Is(err, ErrLeadershipLost) {
		t.Errorf("Run of the first: %v", err)
	}
	if err := first.Save(t.Context(), Changes{DeleteClaims: []model.ClaimName{"default/web"}}); !errors.Is(err, store.ErrFenced) {
		t.Errorf("the fenced one saved: %v", err)
	}
	if first.Lead.Leading() || !second.Lead.Leading() {
		t.Errorf("leading: first %v, second %v", first.Lead.Leading(), second.Lead.Leading())
	}
	wantObserved(t, second, observed(everything()))
}

func TestWhoLeadsGoesOnLeading(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		r := lead(t, b.options)
		fence := r.Lead.Fence()
		if err := r.AwaitLead(t.Context()); err != nil || r.Lead.Fence() != fence || fence == 0 {
			t.Errorf("fence %d, then %d, %v", fence, r.Lead.Fence(), err)
		}
	})
}

func TestStaleWriterIsFenced(t *testing.T) {
	s := redistest.New(t)
	o := Options{RedisURL: s.URL()}
	first := lead(t, o)
	save(t, first, everything())
	s.Client(t).Del(t.Context(), "{ingot}:lease") // it ran out, and the first does not know
	second := lead(t, o)
	save(t, second, Changes{Claims: []*model.ClaimRecord{{Name: "default/new"}}})
	if err := first.Save(t.Context(), Changes{DeleteServers: []model.ServerName{"server-0"}}); !errors.Is(err, store.ErrFenced) {
		t.Errorf("got %v", err)
	}
	if first.Lead.Fence() != 0 {
		t.Error("it still believes to lead")
	}
	_ = second.Close()
	third := open(t, o)
	if got := third.Observed().Claims; got["default/web"] == nil || got["default/new"] == nil {
		t.Errorf("claims %v", got)
	}
}

// A replica that was promoted may have lost that somebody took the lead, and gives the same
// fencing number out once more.
func TestOfTwoLeadersWithOneFencingNumberOneEnds(t *testing.T) {
	s := redistest.New(t)
	o := Options{RedisURL: s.URL()}
	_ = lead(t, o).Close()
	client := s.Client(t)
	before := client.Get(t.Context(), "{ingot}:fence").Val()
	first := lead(t, o)
	client.Set(t.Context(), "{ingot}:fence", before, 0)
	client.Del(t.Context(), "{ingot}:lease")
	second := lead(t, o)
	if first.Lead.Fence() != second.Lead.Fence() {
		t.Fatalf("fencing numbers %d and %d", first.Lead.Fence(), second.Lead.Fence())
	}
	if err := first.RaiseFence(t.Context(), first.Lead.Fence()); !errors.Is(err, store.ErrFenced) {
		t.Errorf("the first raised its number: %v", err)
	}
	first.Lead.setFence(second.Lead.Fence())
	if _, done := run(t, first); !errors.Is(<-done, ErrLeadershipLost) {
		t.Error("the first goes on")
	}
	if err := second.keep(t.Context()); err != nil || !second.Lead.Leading() {
		t.Errorf("the second does not lead: %v", err)
	}
}

func TestStandbyFollowsTheLeader(t *testing.T) {
	s := redistest.New(t)
	o := Options{RedisURL: s.URL()}
	leader, standby := lead(t, o), open(t, o)
	run(t, standby)
	save(t, leader, everything())
	eventually(t, "the standby has it", func() bool { return cmp.Equal(observed(everything()), standby.Observed(), anySequence) })
	<-standby.Changed()
	remove(t, leader, "server-0", serverBuckets...)
	eventually(t, "the server is gone", func() bool { return len(standby.Observed().Servers) == 0 })
	_ = leader.Close()
	must.Do(t, standby.AwaitLead(t.Context()))
	save(t, standby, everything())
}

// The leader dies together with what Redis held: all that is left is the copy of
// the standby (law 3).
func TestStandbyWritesALostStoreAgain(t *testing.T) {
	m := miniredis.RunT(t)
	o := Options{RedisURL: "redis://" + m.Addr(), LeaderTTL: 100 * time.Millisecond}
	leader := lead(t, o)
	save(t, leader, everything())
	standby := open(t, o)
	fence := leader.Lead.Fence()
	_ = leader.Close()
	m.FlushAll()
	must.Do(t, standby.AwaitLead(t.Context()))
	if standby.Lead.Fence() <= fence {
		t.Errorf("fence %d after %d", standby.Lead.Fence(), fence)
	}
	wantObserved(t, standby, observed(everything()))
	_ = standby.Close()
	wantObserved(t, open(t, o), observed(everything()))
}

// TestRedisGoesAway: reads go on, saves fail soon, and what was not answered does
// not stay in the store (X07).
func TestRedisGoesAway(t *testing.T) {
	s := redistest.New(t, redistest.Durable...)
	o := Options{RedisURL: s.URL(), LeaderTTL: 200 * time.Millisecond}
	r := lead(t, o)
	save(t, r, everything())
	run(t, r)
	s.Stop()
	start := time.Now()
	err := r.Save(t.Context(), Changes{Claims: []*model.ClaimRecord{{Name: "default/late"}}})
	if took := time.Since(start); err == nil || took > 3*time.Second {
		t.Errorf("save: %v after %v", err, took)
	}
	wantObserved(t, r, observed(everything()))
	eventually(t, "unhealthy", func() bool { return r.Lead.Healthy() != nil && !r.Lead.Leading() })
	// As if the commit had been made and only its answer was lost.
	r.turn <- struct{}{}
	s.Start(t)
	s.Client(t).HSet(t.Context(), "{ingot}:data:claim", "default/late", `{"name":"default/late"}`)
	<-r.turn
	eventually(t, "healthy", func() bool { return r.Lead.Healthy() == nil && r.Lead.Leading() })
	eventually(t, "amended", func() bool {
		return !s.Client(t).HExists(t.Context(), "{ingot}:data:claim", "default/late").Val()
	})
	save(t, r, Changes{Claims: []*model.ClaimRecord{{Name: "default/later"}}})
}

func TestTheFenceIsRaised(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		r := lead(t, b.options)
		fence := r.Lead.Fence()
		if err := r.RaiseFence(t.Context(), fence-1); err != nil || r.Lead.Fence() != fence {
			t.Errorf("above a lower one: %d, then %d, %v", fence, r.Lead.Fence(), err)
		}
		if err := r.RaiseFence(t.Context(), fence+1000); err != nil || r.Lead.Fence() != fence+1001 {
			t.Errorf("above %d: %d, %v", fence+1000, r.Lead.Fence(), err)
		}
		for _, mad := range []uint64{maxFence + 1, math.MaxUint64} {
			if err := r.RaiseFence(t.Context(), mad); err == nil || r.Lead.Fence() != fence+1001 {
				t.Errorf("above %d: %d, %v", mad, r.Lead.Fence(), err)
			}
		}
		save(t, r, everything())
		b.lose(t)
		if err := r.RaiseFence(t.Context(), fence+2000); err != nil || r.Lead.Fence() != fence+2001 {
			t.Errorf("in a lost store: %d, %v", r.Lead.Fence(), err)
		}
		if l, err := loadByTurn(t, r); err != nil || l.Fresh || len(l.Contents[store.BucketServer]) != 1 {
			t.Errorf("the lost store was not written again: %v", err)
		}
		_ = r.Close()
		if again := lead(t, b.options); again.Lead.Fence() <= fence+2001 {
			t.Errorf("the next leader has %d", again.Lead.Fence())
		}
	})
}

// The answer to a raise can be lost. The number in the store is ours while the lease is.
func TestTheFenceIsRaisedOnceMore(t *testing.T) {
	for name, tt := range map[string]struct {
		lease string // its holder, "" = none
		want  error
	}{
		"after a lost answer":          {"us", nil},
		"by another who leads":         {"another", store.ErrFenced},
		"by another who leads no more": {"", store.ErrFenced},
	} {
		t.Run(name, func(t *testing.T) {
			m := miniredis.RunT(t)
			r := lead(t, Options{RedisURL: "redis://" + m.Addr()})
			above := r.Lead.Fence() + 10
			_ = m.Set("{ingot}:fence", fmt.Sprint(above+1))
			switch tt.lease {
			case "":
				m.Del("{ingot}:lease")
			case "another":
				_ = m.Set("{ingot}:lease", tt.lease)
			}
			if err := r.RaiseFence(t.Context(), above); !errors.Is(err, tt.want) {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
			if want := map[error]uint64{nil: above + 1}[tt.want]; r.Lead.Fence() != want {
				t.Errorf("fence %d, want %d", r.Lead.Fence(), want)
			}
		})
	}
}

// A store that lost only its fencing number is written again: otherwise numbers would repeat.
func TestALostFenceIsWrittenAgain(t *testing.T) {
	for name, notice := range map[string]func(*Registry) error{
		"by a commit":        func(r *Registry) error { return r.Save(t.Context(), everything()) },
		"by a renewal":       func(r *Registry) error { return r.keep(t.Context()) },
		"by a higher number": func(r *Registry) error { return r.RaiseFence(t.Context(), r.Lead.Fence()+1000) },
	} {
		t.Run(name, func(t *testing.T) {
			m := miniredis.RunT(t)
			r := lead(t, Options{RedisURL: "redis://" + m.Addr()})
			_ = m.Set("{ingot}:fence", "1")
			must.Do(t, notice(r))
			if got, _ := m.Get("{ingot}:fence"); got != fmt.Sprint(r.Lead.Fence()) {
				t.Errorf("the store shows %s, ours is %d", got, r.Lead.Fence())
			}
		})
	}
	t.Run("by the next leader", func(t *testing.T) {
		m := miniredis.RunT(t)
		o := Options{RedisURL: "redis://" + m.Addr()}
		leader, standby := lead(t, o), open(t, o)
		_ = m.Set("{ingot}:fence", "1")
		m.Del("{ingot}:lease")
		if err := standby.AwaitLead(t.Context()); err != nil || standby.Lead.Fence() <= leader.Lead.Fence() {
			t.Errorf("fence %d after %d, %v", standby.Lead.Fence(), leader.Lead.Fence(), err)
		}
	})
}

func TestALeadThatEndedDoesNotComeBack(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		r := lead(t, b.options)
		_, done := run(t, r)
		r.Lead.End()
		if err := <-done; !errors.Is(err, ErrLeadershipLost) {
			t.Errorf("Run: %v", err)
		}
		if err := r.Save(t.Context(), everything()); !errors.Is(err, store.ErrFenced) {
			t.Errorf("Save: %v", err)
		}
		if err := r.RaiseFence(t.Context(), 1); !errors.Is(err, store.ErrFenced) {
			t.Errorf("RaiseFence: %v", err)
		}
		if err := r.AwaitLead(t.Context()); !errors.Is(err, ErrLeadershipLost) {
			t.Errorf("Lead: %v", err)
		}
		r.Lead.setFence(7) // as if it had begun to lead just then
		if state, _ := r.Lead.State(); r.Lead.Leading() || r.Lead.Fence() != 0 || state != LeadEnded {
			t.Errorf("leading %v, fence %d, %s", r.Lead.Leading(), r.Lead.Fence(), state)
		}
	})
}

func TestAStandbyThatMayNotLeadEnds(t *testing.T) {
	m := miniredis.RunT(t)
	o := Options{RedisURL: "redis://" + m.Addr()}
	lead(t, o)
	standby := open(t, o)
	standby.Lead.End()
	if err := standby.Run(t.Context()); !errors.Is(err, ErrLeadershipLost) {
		t.Errorf("Run: %v", err)
	}
}
