package registry

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"go.uber.org/goleak"

	"ingot/model"
	"ingot/model/must"
	"ingot/registry/internal/killtest"
	"ingot/registry/internal/redistest"
	"ingot/registry/store"
)

func TestMain(m *testing.M) {
	killtest.Child(saveUntilKilled) // see TestLeasesOutliveAKill
	goleak.VerifyTestMain(m)
}

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func testSealKey() []byte { return []byte("0123456789abcdef0123456789abcdef") }

func testLog(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// fill gives test options their usual values.
func testOptions(t *testing.T, o Options) Options {
	o.SealKey = testSealKey()
	o.Log = testLog(t)
	if o.Clock == nil {
		o.Clock = func() time.Time { return now }
	}
	return o
}

func open(t *testing.T, o Options) *Registry {
	t.Helper()
	r := must.Get(Open(t.Context(), testOptions(t, o)))(t)
	t.Cleanup(func() { _ = r.Close() }) // closed by the test already, or not
	return r
}

func lead(t *testing.T, o Options) *Registry {
	t.Helper()
	r := open(t, o)
	must.Do(t, r.AwaitLead(t.Context()))
	return r
}

func run(t *testing.T, r *Registry) (stop func(), done <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	result, finished := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(finished)
		result <- r.Run(ctx)
	}()
	stop = func() {
		cancel()
		<-finished
	}
	t.Cleanup(stop)
	return stop, result
}

// eventually waits until ok, which must become so within seconds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 10 s: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// backend is a store that tests run against.
type backend struct {
	options Options
	// lose empties the store behind the registry's back.
	lose func(t *testing.T)
}

var backends = map[string]func(t *testing.T) backend{
	"bbolt": func(t *testing.T) backend {
		dir := t.TempDir()
		return backend{Options{Dir: dir}, func(t *testing.T) { loseFiles(t, dir) }}
	},
	"miniredis": func(t *testing.T) backend {
		m := miniredis.RunT(t)
		return backend{Options{RedisURL: "redis://" + m.Addr()}, func(*testing.T) { m.FlushAll() }}
	},
	"redis-server": func(t *testing.T) backend {
		s := redistest.New(t, redistest.Durable...)
		return backend{Options{RedisURL: s.URL()}, func(t *testing.T) {
			must.Do(t, s.Client(t).FlushAll(t.Context()).Err())
		}}
	},
}

func loseFiles(t *testing.T, dir string) {
	t.Helper()
	must.Do(t, os.Remove(filepath.Join(dir, store.FileName)))
}

// onEachBackend runs a test against all stores.
func onEachBackend(t *testing.T, test func(t *testing.T, b backend)) {
	for name, make := range backends {
		t.Run(name, func(t *testing.T) { test(t, make(t)) })
	}
}

func uuidOf(i int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012x", i+1) }

func serverRecord(i int, purpose model.TicketPurpose) *model.ServerRecord {
	name := model.ServerName(fmt.Sprintf("server-%d", i))
	return &model.ServerRecord{
		RecordIdentity: model.RecordIdentity{Name: name, BMC: model.BMCName(fmt.Sprintf("bmc-%d", i)), SystemURI: "/redfish/v1/Systems/1", UUID: uuidOf(i)},
		Life:           model.RecordLife{State: model.StateDiscovery, Since: now},
		Boot: model.RecordBoot{Ticket: &model.Ticket{
			ID: fmt.Sprintf("%s-1", name), Server: name, UUID: uuidOf(i), Purpose: purpose, ArmedAt: now, Digest: "d",
			Image: model.PinnedImage{
				Repository: "registry.example.com/os", Digest: "sha256:m", Architecture: "amd64",
				Kernel: &model.Layer{Digest: "sha256:k", Size: 1}, Initrd: &model.Layer{Digest: "sha256:i", Size: 2},
			},
		}},
	}
}

func save(t testing.TB, r *Registry, c Changes) {
	t.Helper()
	must.Do(t, r.Save(t.Context(), c))
}

func startSentinel(t *testing.T, conf string) {
	t.Helper()
	cmd := exec.Command("redis-server", conf, "--sentinel")
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

var large = strings.Repeat("x", 64<<10)

func (r *Registry) SavePayload(ctx context.Context, ticketID string, ignition model.Sensitive) error {
	return r.Save(ctx, Changes{Payloads: map[string]model.Sensitive{ticketID: ignition}})
}

// isEmpty reports whether the fleet has no record.
func isEmpty(r *Registry) bool { return r.Observed().Fleet.At.IsZero() }
