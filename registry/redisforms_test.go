package registry

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/redis/go-redis/v9"

	"ingot/model/must"
	"ingot/registry/internal/redistest"
)

// freePort returns a TCP port that nobody uses just now, low enough for a cluster
// bus above it.
func freePort(t *testing.T) int {
	t.Helper()
	for range 100 {
		l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		port := l.Addr().(*net.TCPAddr).Port
		_ = l.Close()
		if port < 55_000 {
			return port
		}
	}
	t.Skip("NO FREE PORT BELOW 55000")
	return 0
}

// saveAndReopen is what a registry must be able to do, whatever the form of URL.
func saveAndReopen(t *testing.T, url string) {
	t.Helper()
	r := lead(t, Options{RedisURL: url})
	save(t, r, everything())
	if err := r.keep(t.Context()); err != nil {
		t.Error(err)
	}
	must.Do(t, r.Close())
	again := lead(t, Options{RedisURL: url})
	wantObserved(t, again, observed(everything()))
}

func TestRegistryOnACluster(t *testing.T) {
	port := freePort(t)
	s := redistest.New(t, "--port", fmt.Sprint(port), "--cluster-enabled", "yes")
	must.Do(t, s.Client(t).ClusterAddSlotsRange(t.Context(), 0, 16383).Err())
	eventually(t, "the cluster is up", func() bool {
		return s.Client(t).Set(t.Context(), "probe", "1", 0).Err() == nil
	})
	saveAndReopen(t, fmt.Sprintf("redis-cluster://127.0.0.1:%d", port))
}

func TestRegistryBehindSentinel(t *testing.T) {
	port, watch := freePort(t), freePort(t)
	redistest.New(t, "--port", fmt.Sprint(port))
	conf := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("port %d\nsentinel monitor main 127.0.0.1 %d 1\n", watch, port)
	must.Do(t, os.WriteFile(conf, []byte(text), 0o600))
	startSentinel(t, conf)
	c := redis.NewSentinelClient(&redis.Options{Addr: fmt.Sprintf("127.0.0.1:%d", watch)})
	defer c.Close()
	eventually(t, "sentinel answers", func() bool {
		return c.GetMasterAddrByName(t.Context(), "main").Err() == nil
	})
	saveAndReopen(t, fmt.Sprintf("redis+sentinel://127.0.0.1:%d/main", watch))
}
