package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"ingot/registry/internal/redistest"
)

func TestRedisThatRefusesWrites(t *testing.T) {
	check := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	configure := func(key, value string) func(*testing.T, *redistest.Server, *redis.Client) {
		return func(t *testing.T, _ *redistest.Server, c *redis.Client) {
			check(t, c.ConfigSet(t.Context(), key, value).Err())
		}
	}
	for name, tt := range map[string]struct {
		befalls func(*testing.T, *redistest.Server, *redis.Client)
		want    string // "" = nothing is wrong
	}{
		"an ordinary one": {befalls: func(*testing.T, *redistest.Server, *redis.Client) {}},
		"a replica": {
			befalls: func(t *testing.T, _ *redistest.Server, c *redis.Client) {
				check(t, c.ReplicaOf(t.Context(), "127.0.0.1", "1").Err())
			},
			want: "it is a read-only replica: set redis.url to the Sentinels (redis+sentinel://), or to its master 127.0.0.1:1 (link down): READONLY ",
		},
		"one that cannot save": {
			befalls: func(t *testing.T, s *redistest.Server, c *redis.Client) {
				configure("save", "3600 1")(t, s, c)
				check(t, os.MkdirAll(filepath.Join(s.Dir, "dump.rdb", "full"), 0o700)) // is in the way of the snapshot
				check(t, c.BgSave(t.Context()).Err())
				for deadline := time.Now().Add(30 * time.Second); infoField(t.Context(), c, "persistence", "rdb_last_bgsave_status") != "err"; {
					if time.Now().After(deadline) {
						t.Fatal("the snapshot does not fail")
					}
				}
			},
			want: "it refuses writes because it cannot save them to its disk: free some space there, and see its log: MISCONF ",
		},
		"one with too few replicas": {
			befalls: configure("min-replicas-to-write", "1"),
			want:    "it refuses writes because fewer replicas follow it than min-replicas-to-write: start them, or lower that setting: NOREPLICAS ",
		},
		"one without memory": {
			befalls: configure("maxmemory", "1"),
			want:    "it refuses writes because its memory is full: raise its maxmemory: OOM ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.New(t)
			s, err := OpenRedis(t.Context(), RedisConfig{URL: server.URL(), TTL: time.Minute, Clock: time.Now, Log: testLog(t)})
			check(t, err)
			defer s.Close()
			client := server.Client(t)
			tt.befalls(t, server, client)
			err = s.CheckWrites(t.Context())
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("the check: %v", err)
			case tt.want == "":
				if keys := client.DBSize(t.Context()).Val(); keys != 0 {
					t.Errorf("the check has written %d keys", keys)
				}
			case err == nil || !strings.HasPrefix(err.Error(), "redis: "+tt.want):
				t.Errorf("the check\nsays %v\nwant redis: %s", err, tt.want)
			}
			// the scripts of a running Ingot meet the same errors
			if _, _, err := s.Acquire(t.Context()); tt.want != "" && (err == nil || !strings.HasPrefix(err.Error(), "ask redis for the lease: "+tt.want)) {
				t.Errorf("the lease\nsays %v\nwant ask redis for the lease: %s", err, tt.want)
			}
		})
	}
}
