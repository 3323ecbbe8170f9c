package imagecache

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"ingot/bootsvc/cachedir"
	"ingot/model/must"
)

func TestMain(m *testing.M) {
	if child := os.Getenv("IMAGECACHE_CHILD"); child != "" {
		runChild(child)
		return
	}
	goleak.VerifyTestMain(m)
}

func content(n int, seed uint64) []byte {
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	b := make([]byte, n)
	_, _ = r.Read(b)
	return b
}

func keyOf(b []byte) Key {
	s := sha256.Sum256(b)
	return Key{Digest: "sha256:" + hex.EncodeToString(s[:]), Size: int64(len(b)), From: "registry.example/image"}
}

func key512(b []byte) Key {
	s := sha512.Sum512(b)
	return Key{Digest: "sha512:" + hex.EncodeToString(s[:]), Size: int64(len(b))}
}

var errDropped = errors.New("connection reset")

// upstreamFake is a registry with one blob, and the faults that registries have.
type upstreamFake struct {
	blob     []byte
	down     error         // what a fetch returns
	dropAt   []int         // where the connections break, one after another
	noOffset bool          // it cannot begin in the middle
	silent   int           // it sends nothing more behind this byte; 0 means it sends all
	gate     chan struct{} // each read takes one of it, or goes through once it is closed
	piece    int           // bytes a read; 0 means as many as are asked for

	mu    sync.Mutex
	opens []int64 // at which offsets
	sent  int
}

func (u *upstreamFake) fetch(ctx context.Context, offset int64) (io.ReadCloser, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.opens = append(u.opens, offset)
	switch {
	case u.down != nil:
		return nil, u.down
	case u.noOffset && offset > 0:
		return nil, ErrNoOffset
	}
	b := &body{u: u, ctx: ctx, left: u.blob[min(offset, int64(len(u.blob))):], at: int(offset), dropAt: -1}
	if len(u.dropAt) > 0 {
		b.dropAt, u.dropAt = u.dropAt[0], u.dropAt[1:]
	}
	return b, nil
}

func (u *upstreamFake) opened() []int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.opens)
}

func (u *upstreamFake) bytes() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.sent
}

type body struct {
	u      *upstreamFake
	ctx    context.Context
	left   []byte
	at     int
	dropAt int
}

func (b *body) Read(p []byte) (int, error) {
	if b.u.gate != nil {
		select {
		case <-b.u.gate:
		case <-b.ctx.Done():
			return 0, b.ctx.Err()
		}
	}
	switch {
	case b.u.silent > 0 && b.at >= b.u.silent:
		<-b.ctx.Done()
		return 0, b.ctx.Err()
	case b.dropAt >= 0 && b.at >= b.dropAt:
		return 0, errDropped
	case len(b.left) == 0:
		return 0, io.EOF
	}
	n := len(p)
	if b.u.piece > 0 {
		n = min(n, b.u.piece)
	}
	if b.dropAt >= 0 {
		n = min(n, b.dropAt-b.at)
	}
	if b.u.silent > 0 {
		n = min(n, b.u.silent-b.at)
	}
	n = copy(p[:n], b.left)
	b.left, b.at = b.left[n:], b.at+n
	b.u.mu.Lock()
	b.u.sent += n
	b.u.mu.Unlock()
	return n, nil
}

func (b *body) Close() error { return nil }

// settings are the options of a cache and of its folder.
type settings struct {
	Options
	Path     string
	MaxBytes int64
	Pinned   func(digest string) bool
}

// openAt opens a cache in a folder of its own.
func openAt(o settings) (*Cache, error) {
	dir, err := cachedir.Open(cachedir.Options{Path: o.Path, MaxBytes: o.MaxBytes, Pinned: o.Pinned, Registerer: o.Registerer})
	if err != nil {
		return nil, err
	}
	o.Dir = dir
	return Open(o.Options)
}

// newCache opens a cache that does not wait long.
func newCache(t testing.TB, path string, change ...func(*settings)) *Cache {
	t.Helper()
	o := settings{Path: path, Options: Options{Stall: 5 * time.Second, Registerer: prometheus.NewRegistry()}}
	for _, f := range change {
		f(&o)
	}
	c := must.Get(openAt(o))(t)
	c.backoff = time.Millisecond
	registries.Store(c, o.Registerer)
	t.Cleanup(func() { shut(c) })
	return c
}

// shut closes a cache and its folder.
func shut(c *Cache) {
	c.Close()
	c.dir.Close()
}

// registries have the metrics of each cache.
var registries sync.Map

// taken compares how many bytes the cache takes on disk.
func taken(t testing.TB, c *Cache, want float64) {
	t.Helper()
	registry, _ := registries.Load(c)
	expected := fmt.Sprintf("# HELP ingot_image_cache_size_bytes Disk space used by cached images, including those in preparation.\n"+
		"# TYPE ingot_image_cache_size_bytes gauge\ningot_image_cache_size_bytes %v\n", want)
	if err := testutil.GatherAndCompare(registry.(prometheus.Gatherer), strings.NewReader(expected), "ingot_image_cache_size_bytes"); err != nil {
		t.Error(err)
	}
}

func pathOf(c *Cache, digest string) string { return c.dir.New(c.kind, digest).Path() }

func get(t testing.TB, c *Cache, key Key, fetch Fetch) *Blob {
	t.Helper()
	b := must.Get(c.Get(t.Context(), key, fetch))(t)
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func read(t testing.TB, c *Cache, key Key, fetch Fetch) ([]byte, error) {
	t.Helper()
	b, err := c.Get(t.Context(), key, fetch)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	return io.ReadAll(b)
}

// mustRead gets all of a blob and compares it.
func mustRead(t testing.TB, c *Cache, want []byte, fetch Fetch) {
	t.Helper()
	got := must.Get(read(t, c, keyOf(want), fetch))(t)
	if !bytes.Equal(got, want) {
		t.Fatalf("got %d bytes that are not the %d of the blob", len(got), len(want))
	}
}

func landed(t testing.TB, c *Cache) {
	t.Helper()
	until(t, "fetches end", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.downloads) == 0
	})
}

func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 20 s", what)
		}
	}
}

func names(t testing.TB, dir string) []string {
	t.Helper()
	entries := must.Get(os.ReadDir(dir))(t)
	var names []string
	for _, e := range entries {
		if e.Name() != ".lock" {
			names = append(names, e.Name())
		}
	}
	return names
}

func counted(t testing.TB, what string, c prometheus.Collector, want float64) {
	t.Helper()
	if got := testutil.ToFloat64(c); got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// never is a Fetch of a registry that is down.
func never(context.Context, int64) (io.ReadCloser, error) {
	return nil, errors.New("registry.example: connection refused")
}

func contains(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }
