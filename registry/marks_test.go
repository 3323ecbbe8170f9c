package registry

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/model/must"
	"ingot/registry/internal/redistest"
)

func testMarks() model.Marks {
	mark := model.Mark{Line: "l", Deployment: "d", Process: "p", Sequence: 7}
	return model.Marks{
		Deployment: "d", Line: "l", Base: mark, Pushing: []model.Mark{mark, {Sequence: 8}},
		Continues: 5, Ended: true, Opened: now, Alive: now,
	}
}

// adopt calls Adopt with the sequence above 0.
func adopt(t *testing.T, r *Registry, records *model.Records, only bool) {
	t.Helper()
	must.Do(t, r.Adopt(t.Context(), records, only, testMarks(), 0))
}

func TestMarksAndSequenceArePersistent(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		r := lead(t, b.options)
		save(t, r, everything())
		must.Do(t, r.SaveMarks(t.Context(), testMarks()))
		want := observed(everything())
		want.Marks, want.Sequence = testMarks(), max(r.Observed().Sequence, 1)
		for range 2 { // the second time of a store that was lost
			_ = r.Close()
			r = lead(t, b.options)
			if diff := cmp.Diff(want, r.Observed()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			b.lose(t)
			must.Do(t, r.keep(t.Context()))
		}
	})
}

func TestOnlyChangesOfRecordsRaiseTheSequence(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		r, ctx := lead(t, b.options), t.Context()
		for _, step := range []struct {
			name   string
			change func() error
			raises bool
		}{
			{"records", func() error { return r.Save(ctx, everything()) }, true},
			{"equal records", func() error { return r.Save(ctx, everything()) }, false},
			{"leases", func() error { return r.Leases.SaveLeases(ctx, []model.Lease{leaseOf(1)}) }, false},
			{"facts", func() error { return r.Save(ctx, Changes{ServerFacts: []*model.ServerFacts{facts(0)}}) }, false},
			{"marks", func() error { return r.SaveMarks(ctx, testMarks()) }, false},
			{"a boot stage", func() error {
				return r.Boots.Note(ctx, r.Observed().Servers["server-0"].Boot.Ticket, model.StageScript, netip.Addr{})
			}, false},
			{"the fleet", func() error { return r.Save(ctx, Changes{Fleet: &model.FleetRecord{Sequence: 9}}) }, true},
			{"the fleet after KeepSequence", func() error {
				r.KeepSequence(true)
				defer r.KeepSequence(false)
				return r.Save(ctx, Changes{Fleet: &model.FleetRecord{Sequence: 10}})
			}, false},
			{"a deletion", func() error { return r.Save(ctx, Changes{DeleteClaims: []model.ClaimName{"default/web"}}) }, true},
			{"Adopt without records", func() error { return r.Adopt(ctx, nil, false, testMarks(), 0) }, true},
		} {
			before := r.Observed().Sequence
			must.Do(t, step.change())
			if after := r.Observed().Sequence; after < before || (after > before) != step.raises {
				t.Errorf("%s: sequence %d, then %d", step.name, before, after)
			}
		}
	})
}

func TestAdopt(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		r := lead(t, b.options)
		save(t, r, everything())
		check := func(records model.Records, only bool, want model.Records) {
			t.Helper()
			above := r.Observed().Sequence + 1000
			must.Do(t, r.Adopt(t.Context(), &records, only, testMarks(), above))
			got := r.Observed()
			if got.Sequence <= above || r.store.Next() != got.Sequence+1 {
				t.Errorf("sequence %d above %d, the next is %d", got.Sequence, above, r.store.Next())
			}
			if diff := cmp.Diff(want, got.Records) + cmp.Diff(testMarks(), got.Marks); diff != "" {
				t.Errorf("only %v (-want +got):\n%s", only, diff)
			}
			_ = r.Close()
			r = lead(t, b.options)
			if diff := cmp.Diff(got, r.Observed()); diff != "" {
				t.Errorf("after a restart (-before +after):\n%s", diff)
			}
		}
		one, both := model.NewObserved().Records, observed(everything()).Records
		one.Fleet.Sequence, one.Servers["server-1"] = 9, serverRecord(1, model.PurposeClaim)
		both.Fleet, both.Servers["server-1"] = one.Fleet, one.Servers["server-1"]
		check(one, false, both)
		check(one, true, one)
	})
}

func TestNumbersRiseAfterALoss(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		at, last := now, uint64(0)
		b.options.Clock = func() time.Time { at = at.Add(time.Second); return at }
		for _, lostAtStart := range []bool{false, false, true} {
			if lostAtStart {
				b.lose(t)
			}
			r := lead(t, b.options)
			for i := range int64(6) {
				if i == 3 {
					b.lose(t)
				}
				save(t, r, Changes{Fleet: &model.FleetRecord{Sequence: i + 1}})
				if got := r.Observed().Sequence; got <= last {
					t.Errorf("number %d after %d", got, last)
				}
				last = r.Observed().Sequence
			}
			_ = r.Close()
		}
	})
}

// A commit without an answer may have been made, and seen by a follower.
func TestNumbersOfFailedCommitsAreNotReused(t *testing.T) {
	s := redistest.New(t, redistest.Durable...)
	r := lead(t, Options{RedisURL: s.URL()})
	failed := r.store.Next()
	s.Stop()
	if err := r.Save(t.Context(), everything()); err == nil {
		t.Fatal("saved without a store")
	}
	s.Start(t)
	save(t, r, everything())
	if got := r.Observed().Sequence; got <= failed {
		t.Errorf("number %d, the failed commit had %d", got, failed)
	}
}

func TestALeaderRepairsAReplicaThatIsBehind(t *testing.T) {
	s := redistest.New(t)
	r := lead(t, Options{RedisURL: s.URL()})
	save(t, r, everything())
	rollBack := snapshot(t, s.Client(t))
	tenServers(t, r)
	want := r.Observed()
	rollBack()
	must.Do(t, r.keep(t.Context()))
	_ = r.Close()
	if diff := cmp.Diff(want, open(t, r.options).Observed()); diff != "" {
		t.Errorf("(-memory +store):\n%s", diff)
	}
}
