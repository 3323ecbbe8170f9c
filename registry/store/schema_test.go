package store

import (
	"strconv"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"ingot/registry/internal/redistest"
)

func setSchema(t *testing.T, s Store, to uint64) {
	t.Helper()
	switch s := s.(type) {
	case *Bolt:
		wantErr(t, s.db.Update(func(tx *bolt.Tx) error { return tx.Bucket(boltMeta).Put(boltSchema, bytesOf(to)) }), nil)
	case *Redis:
		wantErr(t, s.client.Set(t.Context(), s.key("schema"), to, 0).Err(), nil)
	}
}

func wantSchema(t *testing.T, s Store, want uint64) {
	t.Helper()
	var got uint64
	switch s := s.(type) {
	case *Bolt:
		wantErr(t, s.db.View(func(tx *bolt.Tx) error { got = number(tx.Bucket(boltMeta).Get(boltSchema)); return nil }), nil)
	case *Redis:
		got = parseNumber(s.client.Get(t.Context(), s.key("schema")).Val())
	}
	if got != want {
		t.Errorf("schema %d, want %d", got, want)
	}
}

// An upgrade that ends before anything was written can be taken back; afterwards the
// older Ingot would drop what it does not know.
func TestTheSchemaIsRaisedByTheFirstCommit(t *testing.T) {
	for name, make := range storeCases() {
		t.Run(name, func(t *testing.T) {
			c := make(t)
			s, _ := c.leader(t)
			wantErr(t, s.Commit(t.Context(), Batch{set(BucketServer, "s1", "1")}), nil)
			setSchema(t, s, schemaVersion-1)
			wantErr(t, s.Close(), nil)
			s, _ = c.leader(t)
			wantErr(t, s.Renew(t.Context()), nil)
			wantSchema(t, s, schemaVersion-1)
			for range 2 {
				wantErr(t, s.Commit(t.Context(), Batch{set(BucketServer, "s2", "2")}), nil)
				wantSchema(t, s, schemaVersion)
			}
			wantContents(t, s, with(set(BucketServer, "s1", "1"), set(BucketServer, "s2", "2")))
		})
	}
}

// Redis is shared: the Ingots of a rolling upgrade know different schemas.
func TestWhoLeadsBySchema(t *testing.T) {
	for name, tt := range map[string]struct {
		schema uint64 // of the store
		holder string // of the lease
		leads  bool
		err    string
	}{
		"nobody leads what a newer ingot wrote":                        {schema: schemaVersion + 1, err: "run the newer ingot"},
		"an older ingot leads a store of its own schema":               {schema: 1, holder: "old/abc"},
		"an older ingot cannot lead a newer store, and is passed over": {schema: schemaVersion, holder: "old/abc", leads: true},
		"an ingot that knows the schema leads":                         {schema: schemaVersion, holder: "other/abc#" + strconv.Itoa(schemaVersion)},
		"a newer ingot leads":                                          {schema: 1, holder: "other/abc#" + strconv.Itoa(schemaVersion+1)},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.New(t)
			s, err := OpenRedis(t.Context(), RedisConfig{
				URL: server.URL(), Prefix: "ingot", Owner: "test", TTL: time.Minute, Clock: func() time.Time { return now }, Log: testLog(t),
			})
			wantErr(t, err, nil)
			t.Cleanup(func() { _ = s.Close() })
			setSchema(t, s, tt.schema)
			wantErr(t, s.client.Set(t.Context(), s.key("fence"), 7, 0).Err(), nil)
			if tt.holder != "" {
				wantErr(t, s.client.Set(t.Context(), s.key("lease"), tt.holder, time.Minute).Err(), nil)
			}
			fence, holder, err := s.Acquire(t.Context())
			if tt.err == "" {
				wantErr(t, err, nil)
			} else if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, want %s", err, tt.err)
			}
			wantFence, wantHolder := uint64(8), ""
			if !tt.leads {
				wantFence, wantHolder = 7, strings.Split(tt.holder, "#")[0]
			}
			if got := parseNumber(s.client.Get(t.Context(), s.key("fence")).Val()); got != wantFence || holder != wantHolder || tt.leads != (fence > 0) {
				t.Errorf("fence %d, in the store %d, holder %q", fence, got, holder)
			}
		})
	}
}

func TestWhatANewerIngotWroteIsRefused(t *testing.T) {
	for name, make := range storeCases() {
		t.Run(name, func(t *testing.T) {
			c := make(t)
			s, _ := c.leader(t)
			file := ""
			if b, ok := s.(*Bolt); ok {
				file = b.path
			}
			setSchema(t, s, schemaVersion+1)
			wantErr(t, s.Close(), nil)
			_, err := c.open(t)
			if err == nil || !strings.Contains(err.Error(), "run the newer ingot") {
				t.Errorf("opening it: %v", err)
			}
			if file == "" {
				return
			}
			if err := CheckFile(file); err == nil || !strings.Contains(err.Error(), "run the newer ingot") {
				t.Errorf("checking it: %v", err)
			}
		})
	}
}
