package registry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	bolt "go.etcd.io/bbolt"

	"ingot/model"
	"ingot/model/must"
	"ingot/registry/internal/redistest"
	"ingot/registry/store"
)

func everything() Changes {
	return Changes{
		Fleet:       &model.FleetRecord{Applied: model.Applied{Branch: "main", Commit: "1"}, Sequence: 3, At: now},
		Servers:     []*model.ServerRecord{serverRecord(0, model.PurposeDiscovery)},
		BMCs:        []*model.BMCRecord{{Name: "bmc-0", Fingerprint: "f"}},
		Claims:      []*model.ClaimRecord{{Name: "default/web", Sequence: 2, FirstSeen: now}},
		BMCFacts:    []*model.BMCFacts{{Name: "bmc-0", Manufacturer: "Dell"}},
		ServerFacts: []*model.ServerFacts{{Name: "server-0", Power: model.PowerOff}},
		Endpoints: []*model.EndpointRecord{{
			Name: "bmc-0", MACAddress: "02:00:00:00:00:01", IP: "192.0.2.1", Since: now, Tried: []string{"d"},
		}},
	}
}

func observed(c Changes) *model.Observed {
	o := model.NewObserved()
	o.Fleet = *c.Fleet
	o.Servers["server-0"], o.BMCs["bmc-0"], o.Claims["default/web"] = c.Servers[0], c.BMCs[0], c.Claims[0]
	o.BMCFacts["bmc-0"], o.ServerFacts["server-0"] = c.BMCFacts[0], c.ServerFacts[0]
	o.Endpoints["bmc-0"] = c.Endpoints[0]
	return o
}

var anySequence = cmpopts.IgnoreFields(model.Observed{}, "Sequence")

func wantObserved(t *testing.T, r *Registry, want *model.Observed) {
	t.Helper()
	if diff := cmp.Diff(want, r.Observed(), anySequence); diff != "" {
		t.Errorf("observed (-want +got):\n%s", diff)
	}
}

func TestWhatIsSavedSurvives(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		r := lead(t, b.options)
		if !isEmpty(r) {
			t.Error("a new registry is not empty")
		}
		save(t, r, everything())
		wantObserved(t, r, observed(everything()))
		if isEmpty(r) {
			t.Error("empty with a fleet record")
		}
		must.Do(t, r.Close())
		again := open(t, b.options)
		wantObserved(t, again, observed(everything()))
	})
}

func TestDeletedObjectsAreForgotten(t *testing.T) {
	r := lead(t, Options{Dir: t.TempDir()})
	save(t, r, everything())
	rec := r.Observed().Servers["server-0"]
	must.Do(t, r.Boots.Note(t.Context(), rec.Boot.Ticket, model.StageScript, netip.Addr{}))
	save(t, r, Changes{DeleteClaims: []model.ClaimName{"default/web"}, DeleteEndpoints: []string{"bmc-0"}})
	remove(t, r, "server-0", serverBuckets...)
	remove(t, r, "bmc-0", store.BucketBMC, store.BucketBMCFacts, store.BucketSession)
	want := model.NewObserved()
	want.Fleet = *everything().Fleet
	wantObserved(t, r, want)
	if _, ok := r.Boots.Find(uuidOf(0)); ok {
		t.Error("a deleted server still has a ticket")
	}
	if _, ok := r.Boots.Pinned("registry.example.com/os", "sha256:k"); ok {
		t.Error("a deleted server still pins a layer")
	}
}

// TestAServerThatIsForgottenLeavesNothing: neither in the store nor in memory, and others keep all that
// is theirs.
func TestAServerThatIsForgottenLeavesNothing(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		r := lead(t, b.options)
		all := everything()
		other := serverRecord(1, model.PurposeCleanup)
		all.Servers = append(all.Servers, other)
		all.Servers[0].MACs = []model.ServerMAC{{Address: macOf(7), IdentifiedBy: model.MACByBMC}}
		all.ServerFacts = append(all.ServerFacts, &model.ServerFacts{Name: other.Name, Power: model.PowerOn})
		all.BMCFacts = append(all.BMCFacts, &model.BMCFacts{Name: other.BMC})
		all.Payloads = map[string]model.Sensitive{"server-0-1": model.NewSensitive("secret"), "server-1-1": model.NewSensitive("other")}
		save(t, r, all)
		for _, rec := range all.Servers {
			for _, err := range []error{
				r.Boots.SaveReport(t.Context(), rec.Boot.Ticket, &model.ProbeReport{Ticket: rec.Boot.Ticket.ID}),
				r.Boots.SaveReport(t.Context(), rec.Boot.Ticket, &model.BootState{Ticket: rec.Boot.Ticket.ID}),
				r.Boots.SaveReport(t.Context(), rec.Boot.Ticket, &model.WipeProgress{Ticket: rec.Boot.Ticket.ID}),
				r.Boots.Note(t.Context(), rec.Boot.Ticket, model.StageScript, netip.Addr{}),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		want := *r.Observed()
		gone := func(o *model.Observed) {
			o.Servers, o.ServerFacts, o.BMCFacts = maps.Clone(o.Servers), maps.Clone(o.ServerFacts), maps.Clone(o.BMCFacts)
			o.Probes, o.BootStates, o.Progress = maps.Clone(o.Probes), maps.Clone(o.BootStates), maps.Clone(o.Progress)
			o.WipeProgress = maps.Clone(o.WipeProgress)
			delete(o.Servers, "server-0")
			delete(o.ServerFacts, "server-0")
			delete(o.BMCFacts, "bmc-0")
			delete(o.Probes, "server-0")
			delete(o.BootStates, "server-0")
			delete(o.Progress, "server-0")
			delete(o.WipeProgress, "server-0")
		}
		gone(&want)
		save(t, r, Changes{DeleteServers: []model.ServerName{"server-0"}, DeleteBMCFacts: []model.BMCName{"bmc-0"}})
		check := func(r *Registry) {
			t.Helper()
			wantObserved(t, r, &want)
			for _, id := range []string{uuidOf(0), macOf(7)} {
				if _, known := r.Boots.Find(id); known || r.Boots.Named(id) {
					t.Errorf("%s is still a server's", id)
				}
			}
			if _, err := r.Secrets.Payload(t.Context(), "server-0-1"); !errors.Is(err, ErrNotFound) {
				t.Errorf("what its ticket serves is kept: %v", err)
			}
			if p, err := r.Secrets.Payload(t.Context(), "server-1-1"); err != nil || p.Reveal() != "other" {
				t.Errorf("what another's ticket serves: %v", err)
			}
		}
		check(r)
		// What was on its way comes too late.
		if err := r.Boots.SaveReport(t.Context(), all.Servers[0].Boot.Ticket, &model.ProbeReport{Ticket: "server-0-1"}); !errors.Is(err, model.ErrTicketSpent) {
			t.Errorf("a late report: %v", err)
		}
		if err := r.Boots.Note(t.Context(), all.Servers[0].Boot.Ticket, model.StageKernel, netip.Addr{}); !errors.Is(err, model.ErrTicketSpent) {
			t.Errorf("a late stage: %v", err)
		}
		must.Do(t, r.Close())
		check(open(t, b.options))
	})
}

// A copy of the file taken right after Save returned holds what was saved, as the
// disk does after a crash.
func TestSavedIsOnDisk(t *testing.T) {
	dir, copied := t.TempDir(), t.TempDir()
	r := lead(t, Options{Dir: dir})
	for i := range 20 {
		save(t, r, Changes{Servers: []*model.ServerRecord{serverRecord(i, model.PurposeClaim)}})
		raw := must.Get(os.ReadFile(filepath.Join(dir, store.FileName)))(t)
		must.Do(t, os.WriteFile(filepath.Join(copied, store.FileName), raw, 0o600))
		crashed := open(t, Options{Dir: copied})
		if got := len(crashed.Observed().Servers); got != i+1 {
			t.Fatalf("%d servers after %d saves", got, i+1)
		}
		_ = crashed.Close()
	}
}

func TestUnchangedIsNotWritten(t *testing.T) {
	r := lead(t, Options{Dir: t.TempDir()})
	save(t, r, everything())
	before, writes := r.Observed(), testutil.ToFloat64(r.metrics.writes.WithLabelValues("server"))
	<-r.Changed()
	save(t, r, everything())
	if r.Observed() != before {
		t.Error("the snapshot is another one")
	}
	if got := testutil.ToFloat64(r.metrics.writes.WithLabelValues("server")); got != writes || writes != 1 {
		t.Errorf("%v writes, then %v", writes, got)
	}
	select {
	case <-r.Changed():
		t.Error("told of a change")
	default:
	}
}

func TestIdleFleetWritesNothing(t *testing.T) {
	s := redistest.New(t)
	r := lead(t, Options{RedisURL: s.URL(), LeaderTTL: 60 * time.Millisecond})
	save(t, r, everything())
	stop, _ := run(t, r)
	revision := s.Client(t).Get(t.Context(), "{ingot}:revision").Val()
	start := *r.Lead.until.Load()
	eventually(t, "renewed", func() bool { return r.Lead.until.Load().After(start.Add(100 * time.Millisecond)) })
	stop()
	if got := s.Client(t).Get(t.Context(), "{ingot}:revision").Val(); got != revision {
		t.Errorf("revision %s, then %s", revision, got)
	}
}

func TestSnapshotDoesNotChange(t *testing.T) {
	r := lead(t, Options{Dir: t.TempDir()})
	rec := serverRecord(0, model.PurposeDiscovery)
	save(t, r, Changes{Servers: []*model.ServerRecord{rec}})
	before := r.Observed()
	rec.Life.State = model.StateError // the caller may change the value
	save(t, r, Changes{Servers: []*model.ServerRecord{serverRecord(1, model.PurposeClaim)}})
	remove(t, r, "server-0", serverBuckets...)
	want := map[model.ServerName]*model.ServerRecord{"server-0": serverRecord(0, model.PurposeDiscovery)}
	if diff := cmp.Diff(want, before.Servers); diff != "" {
		t.Errorf("snapshot changed (-want +got):\n%s", diff)
	}
	if len(r.Observed().Servers) != 1 || r.Observed().Servers["server-1"] == nil {
		t.Errorf("now %v", r.Observed().Servers)
	}
}

// TestLostStoreIsWrittenAgain: FLUSHALL, or the file deleted, under us (law 3).
func TestLostStoreIsWrittenAgain(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		r := lead(t, b.options)
		save(t, r, everything())
		must.Do(t, r.SavePayload(t.Context(), "t1", model.NewSensitive("ignition")))
		fence := r.Lead.Fence()

		b.lose(t)
		save(t, r, Changes{Servers: []*model.ServerRecord{serverRecord(7, model.PurposeClaim)}})

		b.lose(t)
		run(t, r)
		eventually(t, "the loss is noticed without a save", func() bool { return testutil.ToFloat64(r.metrics.lost) == 2 })
		eventually(t, "the turn is over", func() bool { return r.Lead.Healthy() == nil && len(r.turn) == 0 })
		if r.Lead.Fence() != fence {
			t.Errorf("fence %d, then %d", fence, r.Lead.Fence())
		}
		must.Do(t, r.Close())

		want := observed(everything())
		want.Servers["server-7"] = serverRecord(7, model.PurposeClaim)
		again := open(t, b.options)
		wantObserved(t, again, want)
		if got, err := again.Secrets.Payload(t.Context(), "t1"); err != nil || got.Reveal() != "ignition" {
			t.Errorf("payload %v", err)
		}
	})
}

func TestReplacedFileIsWrittenAgain(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	other := lead(t, Options{Dir: elsewhere})
	save(t, other, Changes{Servers: []*model.ServerRecord{serverRecord(5, model.PurposeClaim)}})
	_ = other.Close()
	r := lead(t, Options{Dir: dir})
	save(t, r, everything())
	must.Do(t, os.Rename(filepath.Join(elsewhere, store.FileName), filepath.Join(dir, store.FileName)))
	save(t, r, Changes{Claims: []*model.ClaimRecord{{Name: "default/db"}}})
	_ = r.Close()
	want := observed(everything())
	want.Claims["default/db"] = &model.ClaimRecord{Name: "default/db"}
	wantObserved(t, open(t, Options{Dir: dir}), want)
}

func TestASecondIngotCannotUseTheFile(t *testing.T) {
	dir := t.TempDir()
	lead(t, Options{Dir: dir})
	_, err := Open(t.Context(), testOptions(t, Options{Dir: dir}))
	if err == nil || !strings.Contains(err.Error(), "another ingot uses "+filepath.Join(dir, store.FileName)) {
		t.Errorf("got %v", err)
	}
}

func TestAnIngotThatTookTheFileFencesUs(t *testing.T) {
	dir := t.TempDir()
	r := lead(t, Options{Dir: dir})
	must.Do(t, os.Remove(filepath.Join(dir, store.FileName)))
	lead(t, Options{Dir: dir})
	err := r.Save(t.Context(), everything())
	if !errors.Is(err, store.ErrFenced) {
		t.Errorf("got %v", err)
	}
	if err := r.Run(t.Context()); !errors.Is(err, ErrLeadershipLost) {
		t.Errorf("Run: %v", err)
	}
}

func TestAnotherFormatIsRefused(t *testing.T) {
	s := redistest.New(t)
	s.Client(t).Set(t.Context(), "{ingot}:format", "99", 0)
	if _, err := Open(t.Context(), testOptions(t, Options{RedisURL: s.URL()})); err == nil || !strings.Contains(err.Error(), `format "99"`) {
		t.Errorf("redis: %v", err)
	}
	dir := t.TempDir()
	_ = lead(t, Options{Dir: dir}).Close()
	db, err := bolt.Open(filepath.Join(dir, store.FileName), 0o600, nil)
	if err == nil {
		err = db.Update(func(tx *bolt.Tx) error {
			return tx.Bucket([]byte("meta")).Put([]byte("format"), []byte("99"))
		})
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), testOptions(t, Options{Dir: dir})); err == nil || !strings.Contains(err.Error(), `format "99"`) {
		t.Errorf("bbolt: %v", err)
	}
}

func TestEvictingRedisIsRefused(t *testing.T) {
	s := redistest.New(t, "--maxmemory-policy", "allkeys-lru")
	_, err := Open(t.Context(), testOptions(t, Options{RedisURL: s.URL()}))
	if err == nil || !strings.Contains(err.Error(), "noeviction") {
		t.Errorf("got %v", err)
	}
}

func TestCorruptValueIsIgnored(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		r := lead(t, b.options)
		save(t, r, everything())
		bad := store.Batch{
			set(store.BucketServer, "server-1", "{"),
			set(store.BucketProbe, "server-2", `[]`),
		}
		must.Do(t, r.store.Commit(t.Context(), bad))
		_ = r.Close()
		again := open(t, b.options)
		wantObserved(t, again, observed(everything()))
		if got := testutil.ToFloat64(again.metrics.corrupt); got != 2 {
			t.Errorf("%v corrupt values counted", got)
		}
	})
}

func TestSaveGivesUpWithItsContext(t *testing.T) {
	r := lead(t, Options{Dir: t.TempDir()})
	r.turn <- struct{}{} // the store hangs
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := r.Save(ctx, everything()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	<-r.turn
	if err := r.Save(ctx, everything()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with a context that ended: %v", err)
	}
	save(t, r, Changes{Fleet: &model.FleetRecord{Sequence: 9}})
	want := model.NewObserved()
	want.Fleet.Sequence = 9
	wantObserved(t, r, want)
}

func TestMetricsAreRegisteredOnce(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	lead(t, Options{Dir: t.TempDir(), Registerer: reg})
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
}

// All columns have a bucket and all buckets but the sealed ones a column.
func TestEachBucketHasAMeaning(t *testing.T) {
	for _, b := range store.Buckets {
		_, meaning := columns[b]
		sealed := b == store.BucketPayload || b == store.BucketSession || b == store.BucketSeal
		if meaning == sealed {
			t.Errorf("bucket %s: meaning %v", b, meaning)
		}
	}
	if len(columns)+3 != len(store.Buckets) {
		t.Error(fmt.Sprint("columns ", len(columns), ", buckets ", len(store.Buckets)))
	}
}
