package registry

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/registry/internal/redistest"
	"ingot/registry/store"
)

func TestVersionsOfEncodedRecords(t *testing.T) {
	v := model.Version{Fence: 7, Seq: 12}
	for _, c := range []struct{ bare, stamped string }{
		{`{}`, `{"version":"7.12"}`},
		{`{"name":"a"}`, `{"version":"7.12","name":"a"}`},
		{`{"name":"version"}`, `{"version":"7.12","name":"version"}`},
	} {
		for _, raw := range []string{c.bare, c.stamped, string(withVersion([]byte(c.bare), model.Version{Fence: 1, Seq: 1 << 63}))} {
			if got := string(withVersion([]byte(raw), v)); got != c.stamped {
				t.Errorf("%s with a version: %s, want %s", raw, got, c.stamped)
			}
			if got := string(withVersion([]byte(raw), model.Version{})); got != c.bare {
				t.Errorf("%s without: %s, want %s", raw, got, c.bare)
			}
		}
		if got, _ := splitVersion([]byte(c.stamped)); got != v {
			t.Errorf("version of %s is %s", c.stamped, got)
		}
	}
	for _, other := range []string{``, `null`, `{"version":"x","name":"a"}`, `{"version":"7.12`} {
		if got, _ := splitVersion([]byte(other)); !got.IsZero() {
			t.Errorf("%s has version %s", other, got)
		}
	}
}

// versions are those of all records.
func versions(o *model.Observed) map[string]model.Version {
	all := map[string]model.Version{"fleet": o.Fleet.Version}
	for name, rec := range o.Servers {
		all["server "+string(name)] = rec.Version
	}
	for name, rec := range o.BMCs {
		all["bmc "+string(name)] = rec.Version
	}
	for name, rec := range o.Claims {
		all["claim "+string(name)] = rec.Version
	}
	for name, rec := range o.Endpoints {
		all["endpoint "+name] = rec.Version
	}
	return all
}

func TestChangedRecordsGetTheVersionOfTheirCommit(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		r := lead(t, b.options)
		given := everything()
		save(t, r, given)
		if !given.Servers[0].Version.IsZero() {
			t.Error("the value that was given has a version now")
		}
		first := versions(r.Observed())
		for name, v := range first {
			if v.Fence != r.Fence() || v.Seq == 0 || v != first["fleet"] {
				t.Errorf("%s has version %s, fence %d", name, v, r.Fence())
			}
		}

		given.Servers[0].Version = model.Version{Fence: 1, Seq: 1} // an old copy
		given.Servers[0].Serial++
		save(t, r, given)
		second := versions(r.Observed())
		if !second["server server-0"].After(first["server server-0"]) {
			t.Errorf("server: %s after %s", second["server server-0"], first["server server-0"])
		}
		delete(first, "server server-0")
		delete(second, "server server-0")
		if diff := cmp.Diff(first, second); diff != "" {
			t.Errorf("what did not change has another version (-before +after):\n%s", diff)
		}

		before := r.Observed()
		_ = r.Close()
		again := lead(t, b.options)
		if diff := cmp.Diff(versions(before), versions(again.Observed())); diff != "" {
			t.Errorf("after a restart (-before +after):\n%s", diff)
		}
		save(t, again, given)
		if diff := cmp.Diff(versions(before), versions(again.Observed())); diff != "" {
			t.Errorf("saved equal by the next leader (-before +after):\n%s", diff)
		}
		if again.store.Next() <= before.Servers["server-0"].Version.Seq {
			t.Errorf("next is %d after %s", again.store.Next(), before.Servers["server-0"].Version)
		}
	})
}

// A version names one state of a record, whatever befell the store meanwhile.
func TestNoVersionIsGivenTwice(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		r := lead(t, b.options)
		seen := make(map[model.Version]int)
		for i := range 12 {
			if i%4 == 3 {
				b.lose(t)
			}
			save(t, r, Changes{Claims: []*model.ClaimRecord{{Name: "default/web", Sequence: int64(i)}}})
			v := r.Observed().Claims["default/web"].Version
			if before, again := seen[v]; again {
				t.Errorf("save %d has version %s, as had save %d", i, v, before)
			}
			seen[v] = i
		}
	})
}

// A commit whose answer was lost may have been made, and seen by a follower.
func TestAFailedCommitUsesItsNumberUp(t *testing.T) {
	s := redistest.New(t, redistest.Durable...)
	r := lead(t, Options{RedisURL: s.URL()})
	failed := r.store.Next()
	s.Stop()
	if err := r.Save(t.Context(), everything()); err == nil {
		t.Fatal("saved without a store")
	}
	s.Start(t)
	for i := range int64(3) {
		save(t, r, Changes{Fleet: &model.FleetRecord{Sequence: i + 1}})
		v := r.Observed().Fleet.Version
		if v.Seq <= failed {
			t.Errorf("save %d has version %s, %d was used", i, v, failed)
		}
		failed = v.Seq
	}
}

func TestIntentsAreDatedOnce(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		r := lead(t, b.options)
		rec := serverRecord(0, model.PurposeClaim)
		rec.Intent = &model.Intent{Kind: model.IntentBind, Value: "default/web", Revision: "main@sha1:1"}
		save(t, r, Changes{Servers: []*model.ServerRecord{rec}})
		stored := func() *model.ServerRecord { return r.Observed().Servers["server-0"] }
		dated := stored().Intent.At
		if dated.IsZero() || dated != stored().Version || !rec.Intent.At.IsZero() {
			t.Fatalf("dated %s, version %s, given %s", dated, stored().Version, rec.Intent.At)
		}
		before := r.Observed()
		save(t, r, Changes{Servers: []*model.ServerRecord{rec}})
		if r.Observed() != before {
			t.Error("saved again, it is written again")
		}
		rec.Serial++
		save(t, r, Changes{Servers: []*model.ServerRecord{rec}})
		if stored().Intent.At != dated || !stored().Version.After(dated) {
			t.Errorf("the same intent: dated %s, then %s, version %s", dated, stored().Intent.At, stored().Version)
		}
		rec.Intent.Value = "default/db"
		save(t, r, Changes{Servers: []*model.ServerRecord{rec}})
		if at := stored().Intent.At; at != stored().Version || !at.After(dated) {
			t.Errorf("a new intent: dated %s, version %s", at, stored().Version)
		}
	})
}

func TestRestoreKeepsVersions(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		r := lead(t, b.options)
		save(t, r, Changes{Claims: []*model.ClaimRecord{{Name: "default/here"}}})
		merged := observed(everything()).Records
		branch := model.Version{Fence: 3, Seq: 9000}
		merged.Servers["server-0"].Version = branch
		merged.Servers["server-0"].Intent = &model.Intent{Kind: model.IntentBind}
		published := model.Published{Commit: "head", Seen: model.Version{Fence: 7, Seq: 9}}
		if err := r.Restore(t.Context(), merged, published); err != nil {
			t.Fatal(err)
		}
		if got := r.Observed().Published; got != published {
			t.Errorf("of the status branch it knows %+v, want %+v", got, published)
		}
		rec := r.Observed().Servers["server-0"]
		if rec.Version != branch || rec.Intent.At != branch {
			t.Errorf("restored with version %s, intent of %s", rec.Version, rec.Intent.At)
		}
		if r.Observed().Claims["default/here"] == nil || r.Observed().Fleet.Version.Fence != r.Fence() {
			t.Errorf("claims %v, fleet %s", r.Observed().Claims, r.Observed().Fleet.Version)
		}
		if r.store.Next() <= branch.Seq {
			t.Errorf("the next commit is %d", r.store.Next())
		}

		merged.Servers["server-0"].Version = model.Version{Fence: 4, Seq: 1} // no other difference
		if err := r.Restore(t.Context(), model.Records{Servers: merged.Servers}, model.Published{}); err != nil {
			t.Fatal(err)
		}
		if got := r.Observed(); got.Servers["server-0"].Version.Fence != 4 || got.Fleet.Sequence != 3 {
			t.Errorf("version %s, fleet %v", got.Servers["server-0"].Version, got.Fleet)
		}
		want := versions(r.Observed())
		_ = r.Close()
		again := lead(t, b.options)
		if diff := cmp.Diff(want, versions(again.Observed())); diff != "" {
			t.Errorf("after a restart (-before +after):\n%s", diff)
		}
		if again.store.Next() <= branch.Seq {
			t.Errorf("after a restart the next commit is %d", again.store.Next())
		}
	})
}

func TestTheFenceIsRaised(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		r := lead(t, b.options)
		fence := r.Fence()
		if err := r.RaiseFence(t.Context(), fence-1); err != nil || r.Fence() != fence {
			t.Errorf("above a lower one: %d, then %d, %v", fence, r.Fence(), err)
		}
		if err := r.RaiseFence(t.Context(), fence+1000); err != nil || r.Fence() != fence+1001 {
			t.Errorf("above %d: %d, %v", fence+1000, r.Fence(), err)
		}
		for _, mad := range []uint64{maxFence + 1, math.MaxUint64} {
			if err := r.RaiseFence(t.Context(), mad); err == nil || r.Fence() != fence+1001 {
				t.Errorf("above %d: %d, %v", mad, r.Fence(), err)
			}
		}
		save(t, r, everything())
		if v := r.Observed().Fleet.Version; v.Fence != fence+1001 {
			t.Errorf("saved with version %s", v)
		}
		b.lose(t)
		if err := r.RaiseFence(t.Context(), fence+2000); err != nil || r.Fence() != fence+2001 {
			t.Errorf("in a lost store: %d, %v", r.Fence(), err)
		}
		if l, err := loadByTurn(t, r); err != nil || l.Fresh || len(l.Contents[store.BucketServer]) != 1 {
			t.Errorf("the lost store was not written again: %v", err)
		}
		_ = r.Close()
		if again := lead(t, b.options); again.Fence() <= fence+2001 {
			t.Errorf("the next leader has %d", again.Fence())
		}
	})
}

// The answer to a raise can be lost. The number that it left in the store is ours for as
// long as the lease is, and another's otherwise.
func TestTheFenceIsRaisedOnceMore(t *testing.T) {
	for name, tt := range map[string]struct {
		lease string // who has it, "" if nobody does
		want  error
	}{
		"after a lost answer":          {"us", nil},
		"by another who leads":         {"another", store.ErrFenced},
		"by another who leads no more": {"", store.ErrFenced},
	} {
		t.Run(name, func(t *testing.T) {
			m := miniredis.RunT(t)
			r := lead(t, Options{RedisURL: "redis://" + m.Addr()})
			above := r.Fence() + 10
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
			if want := map[error]uint64{nil: above + 1}[tt.want]; r.Fence() != want {
				t.Errorf("fence %d, want %d", r.Fence(), want)
			}
		})
	}
}

// A store may lose no more than a fencing number. It is written again, for numbers would
// be given out anew.
func TestALostFenceIsWrittenAgain(t *testing.T) {
	for name, notice := range map[string]func(*Registry) error{
		"by a commit":        func(r *Registry) error { return r.Save(t.Context(), everything()) },
		"by a renewal":       func(r *Registry) error { return r.keep(t.Context()) },
		"by a higher number": func(r *Registry) error { return r.RaiseFence(t.Context(), r.Fence()+1000) },
	} {
		t.Run(name, func(t *testing.T) {
			m := miniredis.RunT(t)
			r := lead(t, Options{RedisURL: "redis://" + m.Addr()})
			_ = m.Set("{ingot}:fence", "1")
			if err := notice(r); err != nil {
				t.Fatal(err)
			}
			if got, _ := m.Get("{ingot}:fence"); got != fmt.Sprint(r.Fence()) {
				t.Errorf("the store shows %s, ours is %d", got, r.Fence())
			}
		})
	}
	t.Run("by the next leader", func(t *testing.T) {
		m := miniredis.RunT(t)
		o := Options{RedisURL: "redis://" + m.Addr()}
		leader, standby := lead(t, o), open(t, o)
		_ = m.Set("{ingot}:fence", "1")
		m.Del("{ingot}:lease")
		if err := standby.Lead(t.Context()); err != nil || standby.Fence() <= leader.Fence() {
			t.Errorf("fence %d after %d, %v", standby.Fence(), leader.Fence(), err)
		}
	})
}

// A fencing number lower than a record's would make all that is saved older than it.
func TestALeaderHasAHigherFenceThanAnyRecord(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		r := lead(t, b.options)
		for _, more := range []uint64{1, 50} { // 1: that which the next leader would have
			rec := &model.ClaimRecord{Name: "default/web", Version: model.Version{Fence: r.Fence() + more, Seq: 3}}
			records := model.Records{Claims: map[model.ClaimName]*model.ClaimRecord{rec.Name: rec}}
			if err := r.Restore(t.Context(), records, model.Published{}); err != nil {
				t.Fatal(err)
			}
			_ = r.Close()
			r = lead(t, b.options)
			if r.Fence() <= rec.Version.Fence {
				t.Errorf("fence %d, a record has %s", r.Fence(), rec.Version)
			}
			save(t, r, everything())
		}
	})
}

func TestPublishedIsKeptWithoutVersion(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		r := lead(t, b.options)
		save(t, r, everything())
		<-r.Changed()
		before := versions(r.Observed())
		want := model.Published{Commit: "c", Version: before["fleet"], Fence: r.Fence(), Holder: model.Holder{ID: "h", Interval: 5}}
		for range 2 {
			if err := r.SavePublished(t.Context(), want); err != nil {
				t.Fatal(err)
			}
		}
		<-r.Changed()
		if diff := cmp.Diff(want, r.Observed().Published); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(before, versions(r.Observed())); diff != "" {
			t.Errorf("records have other versions (-before +after):\n%s", diff)
		}
		b.lose(t)
		save(t, r, Changes{DeleteClaims: []model.ClaimName{"default/web"}})
		_ = r.Close()
		again := lead(t, b.options)
		if diff := cmp.Diff(want, again.Observed().Published); diff != "" {
			t.Errorf("after a loss and a restart (-want +got):\n%s", diff)
		}
		_ = again.Close()
		b.lose(t)
		if got := lead(t, b.options).Observed().Published; got != (model.Published{}) {
			t.Errorf("of a store that was lost while nobody ran: %v", got)
		}
	})
}

func TestALeadThatEndedDoesNotComeBack(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		r := lead(t, b.options)
		_, done := run(t, r)
		r.EndLead()
		if err := <-done; !errors.Is(err, ErrLeadershipLost) {
			t.Errorf("Run: %v", err)
		}
		if err := r.Save(t.Context(), everything()); !errors.Is(err, store.ErrFenced) {
			t.Errorf("Save: %v", err)
		}
		if err := r.RaiseFence(t.Context(), 1); !errors.Is(err, store.ErrFenced) {
			t.Errorf("RaiseFence: %v", err)
		}
		if err := r.Lead(t.Context()); !errors.Is(err, ErrLeadershipLost) {
			t.Errorf("Lead: %v", err)
		}
		r.setFence(7) // as one who was about to when it ended
		if state, _ := r.LeadState(); r.Leading() || r.Fence() != 0 || state != LeadEnded {
			t.Errorf("leading %v, fence %d, %s", r.Leading(), r.Fence(), state)
		}
	})
}

// One that never led ends, too, rather than follow for ever.
func TestAStandbyThatMayNotLeadEnds(t *testing.T) {
	m := miniredis.RunT(t)
	o := Options{RedisURL: "redis://" + m.Addr()}
	lead(t, o)
	standby := open(t, o)
	standby.EndLead()
	if err := standby.Run(t.Context()); !errors.Is(err, ErrLeadershipLost) {
		t.Errorf("Run: %v", err)
	}
}
