package registry

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"ingot/model"
	"ingot/model/must"
	"ingot/registry/internal/redistest"
	"ingot/registry/store"
)

func TestSecretsAreSealed(t *testing.T) {
	secret := "correct-horse-battery-staple"
	dir := t.TempDir()
	s := redistest.New(t, redistest.Durable...)
	for name, o := range map[string]Options{"bbolt": {Dir: dir}, "redis-server": {RedisURL: s.URL()}} {
		t.Run(name, func(t *testing.T) {
			r := lead(t, o)
			ctx := t.Context()
			for range 2 { // the second time nothing is written
				must.Do(t, r.SavePayload(ctx, "t1", model.NewSensitive("ignition "+secret)))
			}
			if got := testutil.ToFloat64(r.metrics.writes.WithLabelValues("payload")); got != 1 {
				t.Errorf("%v writes of the same payload", got)
			}
			_ = r.Close()
			for _, path := range []string{dir, s.Dir} {
				mustNotContain(t, path, secret)
			}
			again := open(t, o)
			ignition, err := again.Secrets.Payload(ctx, "t1")
			if err != nil || ignition.Reveal() != "ignition "+secret {
				t.Errorf("payload: %v", err)
			}
		})
	}
}

// A boot ticket and what it hands out are one write: neither is there without the other.
func TestATicketAndItsPayloadAreOneWrite(t *testing.T) {
	r := lead(t, Options{Dir: t.TempDir()})
	with := func(payload string) Changes {
		return Changes{
			Servers:  []*model.ServerRecord{{RecordIdentity: model.RecordIdentity{Name: "s1"}, Boot: model.RecordBoot{Ticket: &model.Ticket{ID: "t1"}}}},
			Payloads: map[string]model.Sensitive{"t1": model.NewSensitive(payload)},
		}
	}
	if err := r.Save(t.Context(), with(strings.Repeat("x", maxPayload+1))); err == nil || r.Observed().Servers["s1"] != nil {
		t.Errorf("with a payload that is too large: %v, and the record is %+v", err, r.Observed().Servers["s1"])
	}
	before := r.store.Next()
	must.Do(t, r.Save(t.Context(), with("ignition")))
	if kept, err := r.Secrets.Payload(t.Context(), "t1"); err != nil || kept.Reveal() != "ignition" {
		t.Errorf("payload: %v", err)
	}
	if r.Observed().Servers["s1"].Boot.Ticket.ID != "t1" || r.store.Next() != before+1 {
		t.Errorf("%d commits, the record is %+v", r.store.Next()-before, r.Observed().Servers["s1"])
	}
}

// mustNotContain greps all files under a folder.
func mustNotContain(t *testing.T, dir, secret string) {
	t.Helper()
	must.Do(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, []byte(secret)) {
			t.Errorf("%s holds the secret in clear", path)
		}
		return err
	}))
}

func TestSealsAreBoundToKeyAndName(t *testing.T) {
	dir := t.TempDir()
	r := lead(t, Options{Dir: dir})
	ctx := t.Context()
	must.Do(t, r.SavePayload(ctx, "t1", model.NewSensitive("a")))
	moved := store.Change{
		Key:   store.Key{Bucket: store.BucketPayload, Name: "t2"},
		Value: r.memory.sealed(store.Key{Bucket: store.BucketPayload, Name: "t1"}),
	}
	must.Do(t, r.write(ctx, always(store.Batch{moved})))
	if _, err := r.Secrets.Payload(ctx, "t2"); err == nil {
		t.Error("the Ignition of another ticket was opened")
	}
	if _, err := r.Secrets.Payload(ctx, "t3"); !errors.Is(err, ErrNotFound) {
		t.Errorf("unknown ticket: %v", err)
	}
	if err := r.SavePayload(ctx, "t4", model.NewSensitive(strings.Repeat("x", maxPayload+1))); err == nil {
		t.Error("a payload of more than 4 MiB was kept")
	}
	must.Do(t, r.Secrets.DropPayloads(ctx, func(id string) bool { return id == "t1" }))
	if _, err := r.Secrets.Payload(ctx, "t2"); !errors.Is(err, ErrNotFound) {
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
	other := must.Get(Open(t.Context(), o))(t)
	t.Cleanup(func() { _ = other.Close() })
	m.Del("{ingot}:lease")
	if err := other.AwaitLead(t.Context()); !errors.Is(err, ErrSealKey) {
		t.Errorf("another key: %v", err)
	}
	save(t, leader, everything())
	_ = leader.Close()
	lead(t, Options{RedisURL: "redis://" + m.Addr()})
}

func TestTokensSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	ticket := serverRecord(0, model.PurposeClaim).Boot.Ticket
	r := lead(t, Options{Dir: dir})
	token := r.TokenKey.Report(ticket)
	_ = r.Close()
	if !open(t, Options{Dir: dir}).TokenKey.MayReport(ticket, token.Reveal()) {
		t.Error("the token is no longer valid")
	}
}
