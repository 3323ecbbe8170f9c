package imagecache

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"ingot/model/must"
)

func TestABlobIsServedAndKept(t *testing.T) {
	for name, size := range map[string]int{
		"of one byte":                       1,
		"smaller than what is held back":    holdback - 1,
		"as large as what is held back":     holdback,
		"a byte larger than that":           holdback + 1,
		"larger than the buffers":           1<<20 + 17,
		"larger than the buffers, by bytes": 1 << 20,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c := newCache(t, dir)
			up := &upstreamFake{blob: content(size, 1)}
			mustRead(t, c, up.blob, up.fetch)
			landed(t, c)
			mustRead(t, c, up.blob, never) // the registry is down
			counted(t, "misses", c.metrics.misses, 1)
			counted(t, "hits", c.metrics.hits, 1)
			if diff := cmp.Diff([]string{strings.Replace(keyOf(up.blob).Digest, ":", "-", 1)}, names(t, dir)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			kept, err := os.ReadFile(pathOf(c, keyOf(up.blob).Digest))
			if err != nil || !bytes.Equal(kept, up.blob) {
				t.Errorf("the file differs from the blob: %v", err)
			}
		})
	}
}

func TestSHA512IsUnderstood(t *testing.T) {
	c := newCache(t, t.TempDir())
	up := &upstreamFake{blob: content(100_000, 1)}
	got, err := read(t, c, key512(up.blob), up.fetch)
	if err != nil || !bytes.Equal(got, up.blob) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	wrong := key512(content(100_000, 2))
	if _, err := read(t, c, wrong, up.fetch); !errors.Is(err, ErrCorrupt) {
		t.Errorf("got %v", err)
	}
}

func TestHostileKeysAreRefused(t *testing.T) {
	good := keyOf([]byte("x"))
	dir := t.TempDir()
	c := newCache(t, dir)
	for name, key := range map[string]Key{
		"no digest":               {Size: 1},
		"a path":                  {Digest: "sha256:../../../../etc/passwd", Size: 1},
		"a digest in upper case":  {Digest: strings.ToUpper(good.Digest), Size: 1},
		"a digest with a line":    {Digest: good.Digest + "\n", Size: 1},
		"a digest with a path":    {Digest: good.Digest[:60] + "/../../aaa", Size: 1},
		"an algorithm not taken":  {Digest: "md5:d41d8cd98f00b204e9800998ecf8427e", Size: 1},
		"sha512 with sha256's":    {Digest: "sha512" + good.Digest[6:], Size: 1},
		"no size":                 {Digest: good.Digest},
		"a negative size":         {Digest: good.Digest, Size: -1},
		"an algorithm with a dot": {Digest: "sha256.:" + good.Digest[7:], Size: 1},
	} {
		t.Run(name, func(t *testing.T) {
			if b, err := c.Get(t.Context(), key, never); err == nil || b != nil || strings.Contains(err.Error(), "refused") {
				t.Errorf("got %v, %v", b, err)
			}
			if err := c.Prefetch(t.Context(), []Key{key}, func(Key) Fetch { return never }); err == nil {
				t.Error("prefetched")
			}
		})
	}
	if got := names(t, dir); got != nil {
		t.Errorf("files were made: %v", got)
	}
}

// What registries do wrong (I09), and what a client may see of it.
func TestFaultsOfARegistry(t *testing.T) {
	blob := content(1<<20, 1)
	wrong := bytes.Clone(blob)
	wrong[500_000] ^= 1
	lastWrong := bytes.Clone(blob)
	lastWrong[len(blob)-1] ^= 1
	tests := map[string]struct {
		up    *upstreamFake
		err   string // "" when the blob comes
		opens []int64
	}{
		"a body cut off goes on where it was": {up: &upstreamFake{blob: blob, dropAt: []int{300_000}}, opens: []int64{0, 300_000}},
		"one cut off many times goes on as often": {
			up: &upstreamFake{blob: blob, dropAt: []int{1, 2, 3, 4, 5, 6, 900_000}}, opens: []int64{0, 1, 2, 3, 4, 5, 6, 900_000},
		},
		"a registry that serves no parts is asked for all": {
			up: &upstreamFake{blob: blob, dropAt: []int{300_000}, noOffset: true}, opens: []int64{0, 300_000, 0},
		},
		"a body that ends early is resumed, and then failed": {
			up: &upstreamFake{blob: blob[:600_000]}, err: "at byte 600000 of 1048576: the registry ended the blob before its size",
			opens: []int64{0, 600_000, 600_000, 600_000},
		},
		"a body that breaks at once, always": {
			up: &upstreamFake{blob: blob, dropAt: []int{7, 7, 7, 7, 7}}, err: "given up at byte 7 of 1048576: connection reset",
			opens: []int64{0, 7, 7, 7},
		},
		"a wrong byte in the middle": {up: &upstreamFake{blob: wrong}, err: "other bytes than", opens: []int64{0}},
		"a wrong last byte":          {up: &upstreamFake{blob: lastWrong}, err: "other bytes than", opens: []int64{0}},
		"a body that goes on": {
			up: &upstreamFake{blob: append(bytes.Clone(blob), 'x')}, err: "other bytes than", opens: []int64{0},
		},
		"a registry that is down": {
			up: &upstreamFake{blob: blob, down: errors.New("registry.example: 503")}, err: "registry.example: 503", opens: []int64{0},
		},
	}
	for name, tt := range tests {
		for mode, change := range map[string]func(*settings){
			"cached":   func(*settings) {},
			"streamed": func(o *settings) { o.MaxBytes = 1 },
		} {
			t.Run(name+", "+mode, func(t *testing.T) {
				dir := t.TempDir()
				c := newCache(t, dir, change)
				up := &upstreamFake{
					blob: tt.up.blob, down: tt.up.down,
					dropAt: append([]int(nil), tt.up.dropAt...), noOffset: tt.up.noOffset,
				}
				got, err := read(t, c, keyOf(blob), up.fetch)
				landed(t, c)
				if diff := cmp.Diff(tt.opens, up.opened()); diff != "" {
					t.Errorf("fetches (-want +got):\n%s", diff)
				}
				if tt.err == "" {
					if err != nil || !bytes.Equal(got, blob) {
						t.Fatalf("got %d bytes, %v", len(got), err)
					}
					return
				}
				if !contains(err, tt.err) || !contains(err, "registry.example/image@sha256:") && tt.up.down == nil {
					t.Errorf("got error %v, want %q and the blob's name", err, tt.err)
				}
				if len(got) > len(blob)-holdback {
					t.Errorf("the client has %d of %d bytes of a blob that is wrong", len(got), len(blob))
				}
				if left := names(t, dir); left != nil {
					t.Errorf("files left: %v", left)
				}
				good := &upstreamFake{blob: blob}
				mustRead(t, c, blob, good.fetch)
			})
		}
	}
}

func TestASilentRegistryIsGivenUp(t *testing.T) {
	for name, max := range map[string]int64{"cached": 0, "streamed": 1} {
		t.Run(name, func(t *testing.T) {
			c := newCache(t, t.TempDir(), func(o *settings) { o.Stall, o.MaxBytes = 20*time.Millisecond, max })
			up := &upstreamFake{blob: content(1<<20, 1), silent: 200_000}
			if _, err := read(t, c, keyOf(up.blob), up.fetch); !errors.Is(err, errStalled) {
				t.Errorf("got %v", err)
			}
			silent := func(ctx context.Context, _ int64) (io.ReadCloser, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			if _, err := read(t, c, keyOf([]byte("another")), silent); !errors.Is(err, errStalled) {
				t.Errorf("silent from the first: got %v", err)
			}
		})
	}
}

// A registry that sends drop by drop keeps nobody's blob of another waiting.
func TestASlowRegistryDelaysOnlyItself(t *testing.T) {
	c := newCache(t, t.TempDir(), func(o *settings) { o.MaxFetches, o.QueueTimeout = 1, 10*time.Second })
	c.slowAfter = 50 * time.Millisecond
	slow := &upstreamFake{blob: content(1<<20, 1), gate: make(chan struct{}, 1), piece: 100_000}
	slow.gate <- struct{}{}
	first := get(t, c, keyOf(slow.blob), slow.fetch)
	for seed := range uint64(3) {
		up := &upstreamFake{blob: content(300_000, 2+seed)}
		mustRead(t, c, up.blob, up.fetch)
	}
	close(slow.gate)
	if got, err := io.ReadAll(first); err != nil || !bytes.Equal(got, slow.blob) {
		t.Errorf("of the slow one came %d bytes, %v", len(got), err)
	}
	landed(t, c)
	until(t, "all places are given back", func() bool { return len(c.slots) == 0 && len(c.slow) == 0 })
}

// Nor does a client that takes what is streamed to it drop by drop.
func TestASlowClientDelaysOnlyItself(t *testing.T) {
	c := newCache(t, t.TempDir(), func(o *settings) { o.MaxBytes, o.MaxFetches, o.QueueTimeout = 1000, 1, 10*time.Second })
	c.slowAfter = 50 * time.Millisecond
	streamed := &upstreamFake{blob: content(1<<20, 1)}
	first := get(t, c, keyOf(streamed.blob), streamed.fetch)
	must.Get(io.ReadFull(first, make([]byte, 1000)))(t)
	for seed := range uint64(3) {
		up := &upstreamFake{blob: content(300_000, 2+seed)}
		mustRead(t, c, up.blob, up.fetch)
	}
	if got, err := io.ReadAll(first); err != nil || !bytes.Equal(got, streamed.blob[1000:]) {
		t.Errorf("of the slow one came %d bytes, %v", len(got), err)
	}
	first.Close()
	until(t, "all places are given back", func() bool { return len(c.slots) == 0 && len(c.slow) == 0 })
}

// Only so many slow fetches step aside.
func TestSlowFetchesAreBounded(t *testing.T) {
	c := newCache(t, t.TempDir(), func(o *settings) { o.MaxFetches, o.QueueTimeout = 1, 300*time.Millisecond })
	c.slowAfter = 10 * time.Millisecond
	var gates []chan struct{}
	for seed := range uint64(slowFetches + 1) {
		gate := make(chan struct{}, 1)
		gate <- struct{}{}
		gates = append(gates, gate)
		up := &upstreamFake{blob: content(200_000, seed), gate: gate, piece: 100_000}
		get(t, c, keyOf(up.blob), up.fetch)
	}
	up := &upstreamFake{blob: content(300_000, 99)}
	if _, err := c.Get(t.Context(), keyOf(up.blob), up.fetch); !errors.Is(err, ErrBusy) {
		t.Errorf("one more: %v", err)
	}
	for _, gate := range gates {
		close(gate)
	}
	landed(t, c)
	until(t, "all places are given back", func() bool { return len(c.slots) == 0 && len(c.slow) == 0 })
}

func TestFiftyClientsCostOneCopy(t *testing.T) {
	c := newCache(t, t.TempDir(), func(o *settings) { o.MaxFetches = 1 })
	up := &upstreamFake{blob: content(3<<20, 1), gate: make(chan struct{}), piece: 100_000}
	var clients sync.WaitGroup
	for n := range 50 {
		clients.Go(func() {
			b, err := c.Get(t.Context(), keyOf(up.blob), up.fetch)
			if err != nil {
				t.Error(err)
				return
			}
			defer b.Close()
			from := int64(n * 50_000) // each somewhere else
			if _, err := b.Seek(from, io.SeekStart); err != nil {
				t.Error(err)
			}
			got, err := io.ReadAll(b)
			if err != nil || !bytes.Equal(got, up.blob[from:]) {
				t.Errorf("client %d: got %d bytes, %v", n, len(got), err)
			}
		})
	}
	until(t, "clients come", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		f := c.downloads[keyOf(up.blob).identity()]
		return f != nil && f.refs.n == 51
	})
	close(up.gate)
	clients.Wait()
	landed(t, c)
	if got := up.bytes(); got != len(up.blob) {
		t.Errorf("the registry sent %d bytes for a blob of %d", got, len(up.blob))
	}
	counted(t, "misses", c.metrics.misses, 1)
	counted(t, "joins", c.metrics.joins, 49)
	counted(t, "fetched", c.metrics.fetched, float64(len(up.blob)))
}

func TestBytesAreServedAsTheyArrive(t *testing.T) {
	c := newCache(t, t.TempDir())
	up := &upstreamFake{blob: content(1<<20, 1), gate: make(chan struct{}, 100), piece: 64 << 10}
	up.gate <- struct{}{}
	b := get(t, c, keyOf(up.blob), up.fetch)
	must.Get(io.ReadFull(b, make([]byte, 64<<10)))(t)
	until(t, "progress shows", func() bool {
		done, total, ok := c.Progress(keyOf(up.blob).Digest)
		return ok && done == 64<<10 && total == 1<<20
	})
	for range 15 { // to the last byte, but not to the end that proves it
		up.gate <- struct{}{}
	}
	until(t, "all bytes arrive", func() bool { return up.bytes() == len(up.blob) })
	must.Get(io.ReadFull(b, make([]byte, 1<<20-64<<10-holdback)))(t)
	last := make(chan error)
	go func() {
		_, err := io.ReadAll(b)
		last <- err
	}()
	select {
	case err := <-last:
		t.Fatalf("the last bytes came before they were verified (%v)", err)
	case <-time.After(20 * time.Millisecond):
	}
	close(up.gate)
	must.Do(t, <-last)
	if done, total, ok := c.Progress(keyOf(up.blob).Digest); !ok || done != total {
		t.Errorf("progress is %d of %d, %v", done, total, ok)
	}
	if _, _, ok := c.Progress(keyOf([]byte("x")).Digest); ok {
		t.Error("a blob that nobody asked for has progress")
	}
}

func TestAFetchGoesOnWhenItsClientLeaves(t *testing.T) {
	c := newCache(t, t.TempDir())
	up := &upstreamFake{blob: content(1<<20, 1), gate: make(chan struct{})}
	ctx, leave := context.WithCancel(t.Context())
	b := must.Get(c.Get(ctx, keyOf(up.blob), up.fetch))(t)
	leave()
	if _, err := io.ReadAll(b); !errors.Is(err, errLeft) || b.Err() == nil {
		t.Errorf("the client that left reads on: %v", err)
	}
	b.Close()
	close(up.gate)
	landed(t, c)
	mustRead(t, c, up.blob, never)
}

func TestAClosedCacheEndsItsFetches(t *testing.T) {
	dir := t.TempDir()
	c := newCache(t, dir)
	up := &upstreamFake{blob: content(1<<20, 1), gate: make(chan struct{})}
	b := get(t, c, keyOf(up.blob), up.fetch)
	shut(c)
	if _, err := io.ReadAll(b); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
	if _, err := c.Get(t.Context(), keyOf(up.blob), up.fetch); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
	if left := names(t, dir); left != nil {
		t.Errorf("files left: %v", left)
	}
}

func TestFetchesAndClientsAreBounded(t *testing.T) {
	c := newCache(t, t.TempDir(), func(o *settings) {
		o.MaxFetches, o.MaxWaiting, o.QueueTimeout = 1, 1, time.Second
	})
	slow := &upstreamFake{blob: content(1<<20, 1), gate: make(chan struct{})}
	get(t, c, keyOf(slow.blob), slow.fetch)
	second := &upstreamFake{blob: content(1000, 2)}
	if _, err := c.Get(t.Context(), keyOf(second.blob), second.fetch); !errors.Is(err, ErrBusy) {
		t.Errorf("one that waited for queueTimeout: got %v", err)
	}
	third := &upstreamFake{blob: content(1000, 3)}
	if _, err := c.Get(t.Context(), keyOf(third.blob), third.fetch); !errors.Is(err, ErrBusy) {
		t.Errorf("more downloads than may wait: got %v", err)
	}
	c.waiting <- struct{}{}
	if _, err := c.Get(t.Context(), keyOf(second.blob), second.fetch); !errors.Is(err, ErrBusy) {
		t.Errorf("more clients than may wait: got %v", err)
	}
	<-c.waiting
	counted(t, "busy", c.metrics.busy, 3)
	close(slow.gate)
	landed(t, c)
	mustRead(t, c, second.blob, second.fetch)
}

func TestCompleteBlobsAreServedWhileAllFetchesHang(t *testing.T) {
	c := newCache(t, t.TempDir(), func(o *settings) { o.MaxFetches, o.MaxWaiting = 1, 1 })
	kept := &upstreamFake{blob: content(300_000, 1)}
	mustRead(t, c, kept.blob, kept.fetch)
	landed(t, c)
	slow := &upstreamFake{blob: content(1<<20, 2), gate: make(chan struct{})}
	get(t, c, keyOf(slow.blob), slow.fetch)
	mustRead(t, c, kept.blob, never)
}

func TestPrefetch(t *testing.T) {
	dir := t.TempDir()
	c := newCache(t, dir, func(o *settings) { o.MaxBytes = 2_000_000 })
	ups := map[string]*upstreamFake{}
	var keys []Key
	for n := range 3 {
		up := &upstreamFake{blob: content(300_000+n, uint64(n))}
		keys = append(keys, keyOf(up.blob))
		ups[keyOf(up.blob).Digest] = up
	}
	fetch := func(k Key) Fetch { return ups[k.Digest].fetch }
	for range 2 {
		must.Do(t, c.Prefetch(t.Context(), keys, fetch))
	}
	for _, key := range keys {
		if b := get(t, c, key, never); !b.Complete() {
			t.Error("a blob that was prefetched is not complete")
		}
		if n := len(ups[key.Digest].opened()); n != 1 {
			t.Errorf("fetched %d times", n)
		}
	}
	huge := Key{Digest: keyOf([]byte("huge")).Digest, Size: 3_000_000}
	if err := c.Prefetch(t.Context(), []Key{keys[0], huge}, func(Key) Fetch { return never }); !errors.Is(err, ErrNoRoom) {
		t.Errorf("a blob larger than the cache: %v", err)
	}
	if err := c.Prefetch(t.Context(), []Key{keyOf([]byte("y"))}, func(Key) Fetch { return never }); !contains(err, "connection refused") {
		t.Errorf("a registry that is down: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	slow := &upstreamFake{blob: []byte("slow"), gate: make(chan struct{})}
	if err := c.Prefetch(ctx, []Key{keyOf(slow.blob)}, func(Key) Fetch { return slow.fetch }); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that gave up: %v", err)
	}
	close(slow.gate)
	landed(t, c)
}

func TestAManifestThatLiesAboutASizeSpoilsNobodyElse(t *testing.T) {
	c := newCache(t, t.TempDir())
	up := &upstreamFake{blob: content(1<<20, 1), gate: make(chan struct{})}
	b := get(t, c, keyOf(up.blob), up.fetch)
	lie := keyOf(up.blob)
	lie.Size = 1000
	liar := &upstreamFake{blob: up.blob}
	if _, err := read(t, c, lie, liar.fetch); !errors.Is(err, ErrCorrupt) {
		t.Errorf("while the blob is fetched: %v", err)
	}
	close(up.gate)
	if got, err := io.ReadAll(b); err != nil || !bytes.Equal(got, up.blob) {
		t.Fatalf("got %d bytes, %v", len(got), err)
	}
	landed(t, c)
	if _, err := read(t, c, lie, liar.fetch); !contains(err, "its manifest says that it has 1000 bytes, and it has 1048576") {
		t.Errorf("when the blob is there: %v", err)
	}
	mustRead(t, c, up.blob, never)
}

// Ranges, and what of them arrives (T09).
func TestServeContent(t *testing.T) {
	blob := content(1<<20, 1)
	for name, tt := range map[string]struct {
		header string
		code   int
		want   []byte
	}{
		"all":                       {"", 200, blob},
		"the rest":                  {"bytes=1000-", 206, blob[1000:]},
		"a piece":                   {"bytes=5-6", 206, blob[5:7]},
		"the end":                   {"bytes=-10", 206, blob[len(blob)-10:]},
		"the last byte":             {"bytes=1048575-", 206, blob[len(blob)-1:]},
		"what begins behind it all": {"bytes=1048576-", 416, nil},
	} {
		for state, max := range map[string]int64{"complete": 0, "arriving": 0, "streamed": 1} {
			t.Run(name+", "+state, func(t *testing.T) {
				c := newCache(t, t.TempDir(), func(o *settings) { o.MaxBytes = max })
				up := &upstreamFake{blob: blob, piece: 50_000}
				if state == "complete" {
					mustRead(t, c, blob, up.fetch)
					landed(t, c)
				}
				srv := httptest.NewServer(handler(c, keyOf(blob), up.fetch))
				defer srv.Close()
				req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil)
				if tt.header != "" {
					req.Header.Set("Range", tt.header)
				}
				resp := must.Get(srv.Client().Do(req))(t)
				defer resp.Body.Close()
				got, err := io.ReadAll(resp.Body)
				if resp.StatusCode != tt.code || err != nil || tt.want != nil && !bytes.Equal(got, tt.want) {
					t.Errorf("got %d, %d bytes, %v; want %d, %d bytes", resp.StatusCode, len(got), err, tt.code, len(tt.want))
				}
			})
		}
	}
}

func handler(c *Cache, key Key, fetch Fetch) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		b, err := c.Get(r.Context(), key, fetch)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer b.Close()
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeContent(w, r, "", time.Time{}, b)
	}
}

func TestABlobThatHasArrivedIsSentByTheKernel(t *testing.T) {
	c := newCache(t, t.TempDir())
	up := &upstreamFake{blob: content(1<<20, 1), gate: make(chan struct{}, 1), piece: 200_000}
	up.gate <- struct{}{}
	b := get(t, c, keyOf(up.blob), up.fetch)
	must.Get(io.ReadFull(b, make([]byte, 1000)))(t)
	if _, err := b.SyscallConn(); err == nil {
		t.Error("the kernel could send bytes that are not verified")
	}
	close(up.gate)
	landed(t, c)
	if _, err := b.SyscallConn(); err != nil || !b.Complete() {
		t.Errorf("got %v", err)
	}
	if got, err := io.ReadAll(b); err != nil || !bytes.Equal(got, up.blob[1000:]) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}

// A blob whose fetch ended while it was waited for is read as any other file.
func TestABlobThatArrivedMeanwhileIsReadOnce(t *testing.T) {
	dir := t.TempDir()
	c := newCache(t, dir)
	up := &upstreamFake{blob: content(300_000, 1)}
	mustRead(t, c, up.blob, up.fetch)
	landed(t, c)
	shut(c)
	b := get(t, newCache(t, dir), keyOf(up.blob), never) // after a download that proved the file
	head := make([]byte, 1000)
	must.Get(io.ReadFull(b, head))(t)
	must.Get(b.SyscallConn())(t)
	if rest, err := io.ReadAll(b); err != nil || !bytes.Equal(append(head, rest...), up.blob) {
		t.Errorf("got %d bytes that differ, %v", len(head)+len(rest), err)
	}
}

func TestNoLinksAndDevicesAreFollowed(t *testing.T) {
	blob := content(1000, 1)
	secret := filepath.Join(t.TempDir(), "secret")
	must.Do(t, os.WriteFile(secret, blob, 0o600))
	for name, plant := range map[string]func(path string) error{
		"a link":   func(path string) error { return os.Symlink(secret, path) },
		"a pipe":   func(path string) error { return unix.Mkfifo(path, 0o600) },
		"a folder": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		t.Run(name+" that was there", func(t *testing.T) {
			dir := t.TempDir()
			must.Do(t, plant(filepath.Join(dir, strings.Replace(keyOf(blob).Digest, ":", "-", 1))))
			c := newCache(t, dir)
			up := &upstreamFake{blob: blob}
			mustRead(t, c, blob, up.fetch)
			// who is still reading when a folder is in the way of the file fetches once more
			if up.bytes() < len(blob) {
				t.Errorf("%d bytes were fetched", up.bytes())
			}
		})
		t.Run(name+" that took the blob's place", func(t *testing.T) {
			c := newCache(t, t.TempDir())
			up := &upstreamFake{blob: blob}
			mustRead(t, c, blob, up.fetch)
			landed(t, c)
			path := pathOf(c, keyOf(blob).Digest)
			must.Do(t, errors.Join(os.Remove(path), plant(path)))
			mustRead(t, c, blob, up.fetch)
			if up.bytes() < 2*len(blob) {
				t.Errorf("%d bytes were fetched", up.bytes())
			}
		})
	}
}
