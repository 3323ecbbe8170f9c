package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"ingot/model"
)

// everything is one value of each kind that is saved.
func everything() Changes {
	return Changes{
		Fleet:       &model.FleetRecord{Applied: model.Applied{Branch: "main", Commit: "1"}, Sequence: 3, At: now},
		Servers:     []*model.ServerRecord{serverRecord(0, model.PurposeDiscovery)},
		BMCs:        []*model.BMCRecord{{Name: "bmc-0", Fingerprint: "f"}},
		Claims:      []*model.ClaimRecord{{Name: "default/web", Sequence: 2, FirstSeen: now}},
		BMCFacts:    []*model.BMCFacts{{Name: "bmc-0", Manufacturer: "Dell"}},
		ServerFacts: []*model.ServerFacts{{Name: "server-0", Power: model.PowerOff}},
		Endpoints:   []*model.EndpointRecord{{Name: "bmc-0", MACAddress: "02:00:00:00:00:01", IP: "192.0.2.1", Since: now, Tried: []string{"d"}}},
	}
}

// observed is what everything looks like afterwards.
func observed(c Changes) *model.Observed {
	o := model.NewObserved()
	o.Fleet = *c.Fleet
	o.Servers["server-0"], o.BMCs["bmc-0"], o.Claims["default/web"] = c.Servers[0], c.BMCs[0], c.Claims[0]
	o.BMCFacts["bmc-0"], o.ServerFacts["server-0"] = c.BMCFacts[0], c.ServerFacts[0]
	o.Endpoints["bmc-0"] = c.Endpoints[0]
	return o
}

// anyVersion leaves out the versions of records, which depend on how often was saved.
var anyVersion = cmpopts.IgnoreTypes(model.Version{})

func wantObserved(t *testing.T, r *Registry, want *model.Observed) {
	t.Helper()
	if diff := cmp.Diff(want, r.Observed(), anyVersion); diff != "" {
		t.Errorf("observed (-want +got):\n%s", diff)
	}
}

func TestWhatIsSavedSurvives(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		r := lead(t, b.options)
		if !r.Empty() {
			t.Error("a new registry is not empty")
		}
		save(t, r, everything())
		wantObserved(t, r, observed(everything()))
		if r.Empty() {
			t.Error("empty with a fleet record")
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		again := open(t, b.options)
		wantObserved(t, again, observed(everything()))
	})
}

func TestRestoreWritesAllRecords(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		r := lead(t, b.options)
		want := observed(everything())
		if err := r.Restore(t.Context(), want.Records, model.Published{}); err != nil {
			t.Fatal(err)
		}
		want.BMCFacts, want.ServerFacts = model.NewObserved().BMCFacts, model.NewObserved().ServerFacts
		wantObserved(t, r, want)
	})
}

func TestDeletedObjectsAreForgotten(t *testing.T) {
	r := lead(t, Options{Dir: t.TempDir()})
	save(t, r, everything())
	rec := r.Observed().Servers["server-0"]
	if err := r.Note(t.Context(), rec.Ticket, model.StageScript, netip.Addr{}); err != nil {
		t.Fatal(err)
	}
	save(t, r, Changes{
		DeleteServers: []model.ServerName{"server-0"}, DeleteBMCs: []model.BMCName{"bmc-0"},
		DeleteClaims: []model.ClaimName{"default/web"}, DeleteEndpoints: []string{"bmc-0"},
	})
	want := model.NewObserved()
	want.Fleet = *everything().Fleet
	wantObserved(t, r, want)
	if _, ok := r.Offer(uuidOf(0)); ok {
		t.Error("a deleted server still has an offer")
	}
	if _, ok := r.Pinned("registry.example.com/os", "sha256:k"); ok {
		t.Error("a deleted server still pins a layer")
	}
}

// A copy of the file taken right after Save returned holds what was saved, as the
// disk does after a crash.
func TestSavedIsOnDisk(t *testing.T) {
	dir, copied := t.TempDir(), t.TempDir()
	r := lead(t, Options{Dir: dir})
	for i := range 20 {
		save(t, r, Changes{Servers: []*model.ServerRecord{serverRecord(i, model.PurposeClaim)}})
		raw, err := os.ReadFile(filepath.Join(dir, boltFile))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(copied, boltFile), raw, 0o600); err != nil {
			t.Fatal(err)
		}
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
	s := newRedisServer(t)
	r := lead(t, Options{RedisURL: s.url(), LeaseTTL: 60 * time.Millisecond})
	save(t, r, everything())
	stop, _ := run(t, r)
	revision := s.client(t).Get(t.Context(), "{ingot}:revision").Val()
	start := *r.leaseEnd.Load()
	eventually(t, "renewed", func() bool { return r.leaseEnd.Load().After(start.Add(100 * time.Millisecond)) })
	stop()
	if got := s.client(t).Get(t.Context(), "{ingot}:revision").Val(); got != revision {
		t.Errorf("revision %s, then %s", revision, got)
	}
}

func TestSnapshotDoesNotChange(t *testing.T) {
	r := lead(t, Options{Dir: t.TempDir()})
	rec := serverRecord(0, model.PurposeDiscovery)
	save(t, r, Changes{Servers: []*model.ServerRecord{rec}})
	before := r.Observed()
	rec.State = model.StateError // who saved may go on with the value
	save(t, r, Changes{Servers: []*model.ServerRecord{serverRecord(1, model.PurposeClaim)}, DeleteServers: []model.ServerName{"server-0"}})
	want := map[model.ServerName]*model.ServerRecord{"server-0": serverRecord(0, model.PurposeDiscovery)}
	if diff := cmp.Diff(want, before.Servers, anyVersion); diff != "" {
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
		if err := r.SavePayload(t.Context(), "t1", model.NewSensitive("ignition")); err != nil {
			t.Fatal(err)
		}
		fence := r.Fence()

		b.lose(t)
		save(t, r, Changes{Servers: []*model.ServerRecord{serverRecord(7, model.PurposeClaim)}})

		b.lose(t)
		run(t, r)
		eventually(t, "the loss is noticed without a save", func() bool { return testutil.ToFloat64(r.metrics.lost) == 2 })
		eventually(t, "the turn is over", func() bool { return r.Healthy() == nil && len(r.turn) == 0 })
		if r.Fence() != fence {
			t.Errorf("fence %d, then %d", fence, r.Fence())
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}

		want := observed(everything())
		want.Servers["server-7"] = serverRecord(7, model.PurposeClaim)
		again := open(t, b.options)
		wantObserved(t, again, want)
		if got, err := again.Payload(t.Context(), "t1"); err != nil || got.Reveal() != "ignition" {
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
	if err := os.Rename(filepath.Join(elsewhere, boltFile), filepath.Join(dir, boltFile)); err != nil {
		t.Fatal(err)
	}
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
	if err == nil || !strings.Contains(err.Error(), "another ingot uses "+filepath.Join(dir, boltFile)) {
		t.Errorf("got %v", err)
	}
}

func TestAnIngotThatTookTheFileFencesUs(t *testing.T) {
	dir := t.TempDir()
	r := lead(t, Options{Dir: dir})
	if err := os.Remove(filepath.Join(dir, boltFile)); err != nil {
		t.Fatal(err)
	}
	lead(t, Options{Dir: dir})
	err := r.Save(t.Context(), everything())
	if !errors.Is(err, ErrFenced) {
		t.Errorf("got %v", err)
	}
	if err := r.Run(t.Context()); !errors.Is(err, ErrLeadershipLost) {
		t.Errorf("Run: %v", err)
	}
}

func TestNewerSchemaIsRefused(t *testing.T) {
	s := newRedisServer(t)
	s.client(t).Set(t.Context(), "{ingot}:schema", "99", 0)
	if _, err := Open(t.Context(), testOptions(t, Options{RedisURL: s.url()})); err == nil || !strings.Contains(err.Error(), "schema 99") {
		t.Errorf("redis: %v", err)
	}
	dir := t.TempDir()
	b, err := openBolt(t.Context(), dir, time.Now, testLog(t))
	if err != nil {
		t.Fatal(err)
	}
	b.fence = 1
	if err := errors.Join(b.replace(t.Context(), newContents()), writeSchema(b, 99), b.close()); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), testOptions(t, Options{Dir: dir})); err == nil || !strings.Contains(err.Error(), "schema 99") {
		t.Errorf("bbolt: %v", err)
	}
}

func TestEvictingRedisIsRefused(t *testing.T) {
	s := newRedisServer(t, "--maxmemory-policy", "allkeys-lru")
	_, err := Open(t.Context(), testOptions(t, Options{RedisURL: s.url()}))
	if err == nil || !strings.Contains(err.Error(), "noeviction") {
		t.Errorf("got %v", err)
	}
}

func TestCorruptValueIsIgnored(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		r := lead(t, b.options)
		save(t, r, everything())
		bad := batch{set(bucketServer, "server-1", "{"), set(bucketProbe, "server-2", `[]`), set(bucketBMC, "bmc-3", `{"name":"bmc-3","of":"tomorrow"}`)}
		if err := r.store.commit(t.Context(), bad); err != nil {
			t.Fatal(err)
		}
		_ = r.Close()
		again := open(t, b.options)
		want := observed(everything())
		want.BMCs["bmc-3"] = &model.BMCRecord{Name: "bmc-3"}
		wantObserved(t, again, want)
		if got := testutil.ToFloat64(again.metrics.corrupt); got != 2 {
			t.Errorf("%v corrupt values counted", got)
		}
	})
}

func TestTwoRegistriesFightForTheLease(t *testing.T) {
	m := miniredis.RunT(t)
	o := Options{RedisURL: "redis://" + m.Addr(), LeaseTTL: 100 * time.Millisecond}
	first := lead(t, o)
	save(t, first, everything())
	_, firstDone := run(t, first)

	second := open(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := second.Lead(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("two leaders: %v", err)
	}
	if err := second.Save(t.Context(), Changes{DeleteBMCs: []model.BMCName{"bmc-0"}}); !errors.Is(err, ErrFenced) {
		t.Errorf("who does not lead saved: %v", err)
	}

	first.turn <- struct{}{} // the first one hangs
	m.FastForward(time.Second)
	if err := second.Lead(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-first.turn
	if second.Fence() <= first.Fence() && first.Fence() != 0 {
		t.Errorf("fence %d after %d", second.Fence(), first.Fence())
	}
	if err := <-firstDone; !errors.Is(err, ErrLeadershipLost) {
		t.Errorf("Run of the first: %v", err)
	}
	if err := first.Save(t.Context(), Changes{DeleteServers: []model.ServerName{"server-0"}}); !errors.Is(err, ErrFenced) {
		t.Errorf("the fenced one saved: %v", err)
	}
	if first.Leading() || !second.Leading() {
		t.Errorf("leading: first %v, second %v", first.Leading(), second.Leading())
	}
	wantObserved(t, second, observed(everything()))
}

func TestWhoLeadsGoesOnLeading(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		r := lead(t, b.options)
		fence := r.Fence()
		if err := r.Lead(t.Context()); err != nil || r.Fence() != fence || fence == 0 {
			t.Errorf("fence %d, then %d, %v", fence, r.Fence(), err)
		}
	})
}

func TestStaleWriterIsFenced(t *testing.T) {
	s := newRedisServer(t)
	o := Options{RedisURL: s.url()}
	first := lead(t, o)
	save(t, first, everything())
	s.client(t).Del(t.Context(), "{ingot}:lease") // it ran out, and the first does not know
	second := lead(t, o)
	save(t, second, Changes{Claims: []*model.ClaimRecord{{Name: "default/new"}}})
	if err := first.Save(t.Context(), Changes{DeleteClaims: []model.ClaimName{"default/web"}}); !errors.Is(err, ErrFenced) {
		t.Errorf("got %v", err)
	}
	if first.Fence() != 0 {
		t.Error("it still believes to lead")
	}
	_ = second.Close()
	third := open(t, o)
	if got := third.Observed().Claims; got["default/web"] == nil || got["default/new"] == nil {
		t.Errorf("claims %v", got)
	}
}

func TestStandbyFollowsTheLeader(t *testing.T) {
	s := newRedisServer(t)
	o := Options{RedisURL: s.url()}
	leader, standby := lead(t, o), open(t, o)
	run(t, standby)
	save(t, leader, everything())
	eventually(t, "the standby has it", func() bool { return cmp.Equal(observed(everything()), standby.Observed(), anyVersion) })
	<-standby.Changed()
	save(t, leader, Changes{DeleteServers: []model.ServerName{"server-0"}})
	eventually(t, "the server is gone", func() bool { return len(standby.Observed().Servers) == 0 })
	_ = leader.Close()
	if err := standby.Lead(t.Context()); err != nil {
		t.Fatal(err)
	}
	save(t, standby, everything())
}

// The leader dies together with what Redis held: all that is left is the copy of
// the standby (law 3).
func TestStandbyWritesALostStoreAgain(t *testing.T) {
	m := miniredis.RunT(t)
	o := Options{RedisURL: "redis://" + m.Addr(), LeaseTTL: 100 * time.Millisecond}
	leader := lead(t, o)
	save(t, leader, everything())
	standby := open(t, o)
	fence := leader.Fence()
	_ = leader.Close()
	m.FlushAll()
	if err := standby.Lead(t.Context()); err != nil {
		t.Fatal(err)
	}
	if standby.Fence() <= fence {
		t.Errorf("fence %d after %d", standby.Fence(), fence)
	}
	wantObserved(t, standby, observed(everything()))
	_ = standby.Close()
	wantObserved(t, open(t, o), observed(everything()))
}

// TestRedisGoesAway: reads go on, saves fail soon, and what was not answered does
// not stay in the store (X07).
func TestRedisGoesAway(t *testing.T) {
	s := newRedisServer(t, aof...)
	o := Options{RedisURL: s.url(), LeaseTTL: 200 * time.Millisecond}
	r := lead(t, o)
	save(t, r, everything())
	run(t, r)
	s.stop()
	start := time.Now()
	err := r.Save(t.Context(), Changes{Claims: []*model.ClaimRecord{{Name: "default/late"}}})
	if took := time.Since(start); err == nil || took > 3*time.Second {
		t.Errorf("save: %v after %v", err, took)
	}
	wantObserved(t, r, observed(everything()))
	eventually(t, "unhealthy", func() bool { return r.Healthy() != nil && !r.Leading() })
	// As if the commit had been made and only its answer was lost.
	r.turn <- struct{}{}
	s.start(t)
	s.client(t).HSet(t.Context(), "{ingot}:data:claim", "default/late", `{"name":"default/late"}`)
	<-r.turn
	eventually(t, "healthy", func() bool { return r.Healthy() == nil && r.Leading() })
	eventually(t, "amended", func() bool {
		return !s.client(t).HExists(t.Context(), "{ingot}:data:claim", "default/late").Val()
	})
	save(t, r, Changes{Claims: []*model.ClaimRecord{{Name: "default/later"}}})
}

func TestSavesAtTheSameTimeShareCommits(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend) {
		r := lead(t, b.options)
		const servers, times = 40, 5
		var wg sync.WaitGroup
		for i := range servers {
			wg.Go(func() {
				for n := range times {
					rec := serverRecord(i, model.PurposeDiscovery)
					rec.Serial = n + 1
					save(t, r, Changes{Servers: []*model.ServerRecord{rec}})
					if got := r.Observed().Servers[rec.Name]; got == nil || got.Serial != n+1 {
						t.Errorf("%s: got %v after save %d", rec.Name, got, n+1)
					}
					_ = r.Note(t.Context(), rec.Ticket, model.StageKernel, netip.MustParseAddr("192.0.2.1"))
				}
			})
		}
		wg.Wait()
		got := r.Observed()
		_ = r.Close()
		wantObserved(t, open(t, b.options), got)
		if len(got.Servers) != servers || len(got.Progress) != servers {
			t.Errorf("%d servers, %d with progress", len(got.Servers), len(got.Progress))
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

func TestProgressIsNotedOncePerStage(t *testing.T) {
	r := lead(t, Options{Dir: t.TempDir()})
	rec := serverRecord(0, model.PurposeClaim)
	save(t, r, Changes{Servers: []*model.ServerRecord{rec}})
	client := netip.MustParseAddr("192.0.2.7")
	var wg sync.WaitGroup
	for _, stage := range []model.BootStage{model.StageScript, model.StageKernel, model.StageScript, model.StageInitrd, model.StageKernel} {
		wg.Go(func() {
			if err := r.Note(t.Context(), rec.Ticket, stage, client); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	want := &model.Progress{Ticket: rec.Ticket.ID, ScriptAt: now, KernelAt: now, InitrdAt: now, Client: "192.0.2.7"}
	offer, ok := r.Offer(uuidOf(0))
	if diff := cmp.Diff(want, offer.Progress); !ok || diff != "" {
		t.Errorf("offer %v (-want +got):\n%s", ok, diff)
	}
	if err := r.Note(t.Context(), rec.Ticket, model.StageKernel, netip.MustParseAddr("192.0.2.9")); err != nil {
		t.Error(err)
	}
	if r.Observed().Progress["server-0"].Client != "192.0.2.7" {
		t.Error("a repeated stage was written")
	}
}

// Progress of an old ticket must not make the new one look unused, for then the
// server would be installed again (law 1).
func TestProgressOfASpentTicketIsRefused(t *testing.T) {
	r := lead(t, Options{Dir: t.TempDir()})
	old, rec := serverRecord(0, model.PurposeClaim), serverRecord(0, model.PurposeClaim)
	rec.Ticket.ID = "server-0-2"
	save(t, r, Changes{Servers: []*model.ServerRecord{rec}})
	if err := r.Note(t.Context(), rec.Ticket, model.StageIgnition, netip.Addr{}); err != nil {
		t.Fatal(err)
	}
	if err := r.Note(t.Context(), old.Ticket, model.StageScript, netip.Addr{}); !errors.Is(err, model.ErrTicketSpent) {
		t.Errorf("old ticket: %v", err)
	}
	rec.Ticket.Ended = model.TicketSpent
	save(t, r, Changes{Servers: []*model.ServerRecord{rec}})
	if err := r.Note(t.Context(), rec.Ticket, model.StageKernel, netip.Addr{}); !errors.Is(err, model.ErrTicketSpent) {
		t.Errorf("ended ticket: %v", err)
	}
	if got := r.Observed().Progress["server-0"].Ticket; got != "server-0-2" {
		t.Errorf("progress is of %s", got)
	}
}

func TestOffer(t *testing.T) {
	r := lead(t, Options{Dir: t.TempDir()})
	twin := serverRecord(3, model.PurposeDiscovery)
	twin.UUID = uuidOf(2)
	bare := serverRecord(4, model.PurposeDiscovery)
	bare.Ticket = nil
	swapped := serverRecord(5, model.PurposeDiscovery)
	swapped.UUID = "4c4c4544-0042-3510-8054-b7c04f4b4832"
	oneWay, otherWay := serverRecord(6, model.PurposeDiscovery), serverRecord(7, model.PurposeDiscovery)
	oneWay.UUID, otherWay.UUID = "00112233-4455-6677-8899-aabbccddeeff", "33221100-5544-7766-8899-AABBCCDDEEFF"
	save(t, r, Changes{Servers: []*model.ServerRecord{
		serverRecord(1, model.PurposeDiscovery), serverRecord(2, model.PurposeDiscovery), twin, bare, swapped, oneWay, otherWay,
	}})
	cases := map[string]struct {
		uuid string
		want string // ID of the ticket, or else name of the server
	}{
		"the server's ticket":                           {uuidOf(1), "server-1-1"},
		"upper case (R07)":                              {strings.ToUpper(uuidOf(1)), "server-1-1"},
		"two servers share the UUID (R12)":              {uuidOf(2), ""},
		"a server without a ticket is known":            {uuidOf(4), "server-4"},
		"nobody has the UUID":                           {uuidOf(99), ""},
		"the other byte order of SMBIOS":                {"44454c4c-4200-1035-8054-b7c04f4b4832", "server-5-1"},
		"two servers share it in different byte orders": {"00112233-4455-6677-8899-aabbccddeeff", ""},
		"no UUID at all":                                {"", ""},
		"a UUID of firmware that has none":              {"00000000-0000-0000-0000-000000000000", ""},
		"something hostile":                             {"../../etc/passwd", ""},
		"a UUID without dashes, as some firmware says":  {strings.ReplaceAll(uuidOf(1), "-", ""), "server-1-1"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			offer, ok := r.Offer(c.uuid)
			got := string(offer.Server)
			if offer.Ticket != nil {
				got = offer.Ticket.ID
			}
			if got != c.want || ok != (c.want != "") {
				t.Errorf("got %q, %v; want %q", got, ok, c.want)
			}
		})
	}
	save(t, r, Changes{DeleteServers: []model.ServerName{twin.Name, oneWay.Name}})
	if offer, ok := r.Offer(oneWay.UUID); !ok || offer.Server != otherWay.Name {
		t.Errorf("after the one with the other byte order is gone: %v %v", offer, ok)
	}
	if offer, ok := r.Offer(uuidOf(2)); !ok || offer.Ticket.ID != "server-2-1" {
		t.Errorf("after the twin is gone: %v %v", offer, ok)
	}
}

func TestPinned(t *testing.T) {
	cases := map[string]struct {
		change     func(*model.Ticket)
		repository string
		digest     string
		want       bool
	}{
		"a layer of an open ticket":              {nil, "registry.example.com/os", "sha256:k", true},
		"the manifest of an open ticket":         {nil, "registry.example.com/os", "sha256:m", true},
		"a layer of another repository":          {nil, "registry.example.com/other", "sha256:k", false},
		"a layer that nobody boots":              {nil, "registry.example.com/os", "sha256:z", false},
		"a layer of a booted ticket":             {func(t *model.Ticket) { t.Ended = model.TicketBooted }, "registry.example.com/os", "sha256:k", false},
		"a layer that is booted always":          {func(t *model.Ticket) { t.Ended, t.Always = model.TicketBooted, true }, "registry.example.com/os", "sha256:k", true},
		"a revoked ticket that was for always":   {func(t *model.Ticket) { t.Ended, t.Always = model.TicketSpent, true }, "registry.example.com/os", "sha256:k", false},
		"a ticket that is replaced by a new one": {func(t *model.Ticket) { t.Image.Kernel.Digest = "sha256:new" }, "registry.example.com/os", "sha256:k", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := lead(t, Options{Dir: t.TempDir()})
			rec := serverRecord(0, model.PurposeClaim)
			save(t, r, Changes{Servers: []*model.ServerRecord{rec}})
			if c.change != nil {
				c.change(rec.Ticket)
				save(t, r, Changes{Servers: []*model.ServerRecord{rec}})
			}
			ticket, ok := r.Pinned(c.repository, c.digest)
			if ok != c.want || (ticket != nil) != c.want {
				t.Errorf("got %v, want %v", ok, c.want)
			}
		})
	}
}

func TestSecretsAreSealed(t *testing.T) {
	secret := "correct-horse-battery-staple"
	dir := t.TempDir()
	s := newRedisServer(t, aof...)
	for name, o := range map[string]Options{"bbolt": {Dir: dir}, "redis-server": {RedisURL: s.url()}} {
		t.Run(name, func(t *testing.T) {
			r := lead(t, o)
			ctx := t.Context()
			for range 2 { // the second time nothing is written
				if err := r.SavePayload(ctx, "t1", model.NewSensitive("ignition "+secret)); err != nil {
					t.Fatal(err)
				}
			}
			if got := testutil.ToFloat64(r.metrics.writes.WithLabelValues("payload")); got != 1 {
				t.Errorf("%v writes of the same payload", got)
			}
			_ = r.Close()
			for _, path := range []string{dir, s.dir} {
				mustNotContain(t, path, secret)
			}
			again := open(t, o)
			ignition, err := again.Payload(ctx, "t1")
			if err != nil || ignition.Reveal() != "ignition "+secret {
				t.Errorf("payload: %v", err)
			}
		})
	}
}

// mustNotContain greps all files under a folder.
func mustNotContain(t *testing.T, dir, secret string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, []byte(secret)) {
			t.Errorf("%s holds the secret in clear", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSealsAreBoundToKeyAndName(t *testing.T) {
	dir := t.TempDir()
	r := lead(t, Options{Dir: dir})
	ctx := t.Context()
	if err := r.SavePayload(ctx, "t1", model.NewSensitive("a")); err != nil {
		t.Fatal(err)
	}
	moved := change{key{bucketPayload, "t2"}, r.memory.kept(key{bucketPayload, "t1"})}
	if err := r.write(ctx, always(batch{moved})); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Payload(ctx, "t2"); err == nil {
		t.Error("the Ignition of another ticket was opened")
	}
	if _, err := r.Payload(ctx, "t3"); !errors.Is(err, ErrNotFound) {
		t.Errorf("unknown ticket: %v", err)
	}
	if err := r.SavePayload(ctx, "t4", model.NewSensitive(strings.Repeat("x", maxPayload+1))); err == nil {
		t.Error("a payload of more than 4 MiB was kept")
	}
	if err := r.DropPayloads(ctx, func(id string) bool { return id == "t1" }); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Payload(ctx, "t2"); !errors.Is(err, ErrNotFound) {
		t.Errorf("dropped: %v", err)
	}
	_ = r.Close()
	o := testOptions(t, Options{Dir: dir})
	o.SealKey = bytes.Repeat([]byte{1}, SealKeySize)
	if _, err := Open(ctx, o); !errors.Is(err, ErrSealKey) || !strings.Contains(err.Error(), "redis.sealKeyFile") {
		t.Errorf("with another key: %v", err)
	}
}

// Who cannot open what is sealed must not lead, nor fence who can.
func TestAnotherSealKeyDoesNotLead(t *testing.T) {
	m := miniredis.RunT(t)
	leader := lead(t, Options{RedisURL: "redis://" + m.Addr()})
	o := testOptions(t, Options{RedisURL: "redis://" + m.Addr()})
	o.SealKey = bytes.Repeat([]byte{1}, SealKeySize)
	other, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	m.Del("{ingot}:lease")
	if err := other.Lead(t.Context()); !errors.Is(err, ErrSealKey) {
		t.Errorf("another key: %v", err)
	}
	save(t, leader, everything())
	_ = leader.Close()
	lead(t, Options{RedisURL: "redis://" + m.Addr()})
}

func TestTokensSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	ticket := serverRecord(0, model.PurposeClaim).Ticket
	r := lead(t, Options{Dir: dir})
	token := r.TokenKey().Report(ticket)
	_ = r.Close()
	if !open(t, Options{Dir: dir}).TokenKey().MayReport(ticket, token.Reveal()) {
		t.Error("the token is no longer valid")
	}
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
	for _, b := range buckets {
		_, meaning := columns[b]
		sealed := b == bucketPayload || b == bucketSession || b == bucketSeal
		if meaning == sealed {
			t.Errorf("bucket %s: meaning %v", b, meaning)
		}
	}
	if len(columns)+3 != len(buckets) || reflect.TypeFor[Changes]().NumField() != 11 {
		t.Error(fmt.Sprint("columns ", len(columns), ", buckets ", len(buckets)))
	}
}
