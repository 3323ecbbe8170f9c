package imagecache

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ingot/model/must"
)

func spoilAt(t *testing.T, c *Cache, key Key, at int64) {
	t.Helper()
	f := must.Get(os.OpenFile(pathOf(c, key.Digest), os.O_RDWR, 0))(t)
	defer f.Close()
	var b [1]byte
	_, readErr := f.ReadAt(b[:], at)
	b[0] ^= 1
	if _, err := f.WriteAt(b[:], at); err != nil || readErr != nil {
		t.Fatal(err, readErr)
	}
}

// A disk that lies, found while a client is being served: the client never gets to the
// end of it, and the next one is given the blob from its registry.
func TestAFileThatIsDamagedWhileItIsServed(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, c *Cache, key Key){
		"a byte has changed": func(t *testing.T, c *Cache, key Key) { spoilAt(t, c, key, 900_000) },
		"it was cut short": func(t *testing.T, c *Cache, key Key) {
			must.Do(t, os.Truncate(pathOf(c, key.Digest), 500_000))
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCache(t, t.TempDir())
			up := &upstreamFake{blob: content(1<<20, 1)}
			key := keyOf(up.blob)
			mustRead(t, c, up.blob, up.fetch)
			landed(t, c)
			b := get(t, c, key, never)
			must.Get(io.ReadFull(b, make([]byte, 100_000)))(t)
			damage(t, c, key)
			if _, err := b.SyscallConn(); !errors.Is(err, errChanged) {
				t.Errorf("the kernel may send on: %v", err)
			}
			if n, err := io.Copy(io.Discard, b); !errors.Is(err, errChanged) || n > 0 {
				t.Errorf("the client read on for %d bytes, %v", n, err)
			}
			if b.Err() == nil {
				t.Error("Err says that all is well")
			}
			mustRead(t, c, up.blob, up.fetch)
			counted(t, "failures", c.metrics.failures.WithLabelValues(sourceDisk), 1)
		})
	}
}

// Noting its use changes a file's times, which is no damage to those who read it.
func TestAFileWhoseUseIsNotedIsNotDamaged(t *testing.T) {
	now := time.Now()
	c := newCache(t, t.TempDir(), func(o *settings) { o.Clock = func() time.Time { return now } })
	up := &upstreamFake{blob: content(300_000, 1)}
	mustRead(t, c, up.blob, up.fetch)
	landed(t, c)
	b := get(t, c, keyOf(up.blob), never)
	now = now.Add(2 * time.Minute)
	mustRead(t, c, up.blob, never)
	if got, err := io.ReadAll(b); err != nil || !bytes.Equal(got, up.blob) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}

// A disk that fails at each step of keeping a blob: whoever asked gets the blob from its
// registry, verified, nothing is left behind, and a disk that works again is used again.
func TestADiskThatFailsAtEachStep(t *testing.T) {
	for name, tt := range map[string]struct {
		fail    func(d *disk, with error)
		fetches int // at most: a client may have all of a blob that is right before it is durable
	}{
		"before the first byte": {func(d *disk, with error) {
			d.allocate = func(*os.File, int64) error { return with }
		}, 1},
		"when all is there and is to be made durable": {func(d *disk, with error) {
			d.flush = func(*os.File) error { return with }
		}, 2},
		"when it is to have its name": {func(d *disk, _ error) {
			d.flush = func(f *os.File) error { return os.Remove(f.Name()) }
		}, 2},
	} {
		for _, with := range []error{unix.ENOSPC, unix.EIO, unix.EDQUOT} {
			t.Run(name+", "+with.Error(), func(t *testing.T) {
				c := newCache(t, t.TempDir())
				allocate, flush := c.disk.allocate, c.disk.flush
				tt.fail(&c.disk, with)
				up := &upstreamFake{blob: content(1<<20, 1)}
				mustRead(t, c, up.blob, up.fetch)
				landed(t, c)
				if got := len(up.opened()); got > tt.fetches {
					t.Errorf("fetched %d times, want %d at most", got, tt.fetches)
				}
				if left := names(t, pathOf(c, "")); left != nil {
					t.Errorf("files left: %v", left)
				}
				taken(t, c, 0)
				err := c.Prefetch(t.Context(), []Key{keyOf(up.blob)}, func(Key) Fetch { return up.fetch })
				if !errors.Is(err, ErrNoRoom) {
					t.Errorf("prefetch: %v", err)
				}
				c.disk.allocate, c.disk.flush = allocate, flush
				mustRead(t, c, up.blob, up.fetch)
				landed(t, c)
				mustRead(t, c, up.blob, never)
			})
		}
	}
}

// What is under way is told in sums, whatever the number of blobs.
func TestProgressIsMeasured(t *testing.T) {
	c := newCache(t, t.TempDir())
	good := &upstreamFake{blob: content(1<<20, 1), gate: make(chan struct{}, 1), piece: 100_000}
	bad := &upstreamFake{blob: content(1<<20, 2), gate: make(chan struct{}, 1), piece: 100_000}
	wrong := keyOf(content(1<<20, 3))
	good.gate <- struct{}{}
	bad.gate <- struct{}{}
	get(t, c, keyOf(good.blob), good.fetch)
	get(t, c, wrong, bad.fetch)
	until(t, "both arrive in part", func() bool { return good.bytes()+bad.bytes() == 200_000 })
	until(t, "progress is counted", func() bool {
		done, _, _ := c.Progress(keyOf(good.blob).Digest)
		also, _, _ := c.Progress(wrong.Digest)
		return done+also == 200_000
	})
	counted(t, "fetches", c.metrics.fetches, 2)
	counted(t, "wanted", c.metrics.wanted, 2<<20)
	counted(t, "done", c.metrics.done, 200_000)
	close(good.gate)
	close(bad.gate)
	landed(t, c)
	counted(t, "fetches", c.metrics.fetches, 0)
	counted(t, "wanted", c.metrics.wanted, 0)
	counted(t, "done", c.metrics.done, 0)
}

// A client that reads over HTTP knows that what it has of a damaged file is not whole.
func TestADamagedFileIsNeverWholeOverHTTP(t *testing.T) {
	c := newCache(t, t.TempDir())
	up := &upstreamFake{blob: content(8<<20, 1)}
	mustRead(t, c, up.blob, up.fetch)
	landed(t, c)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := c.Get(r.Context(), keyOf(up.blob), never)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer b.Close()
		w.Header().Set("Content-Length", "8388608")
		_, _ = io.CopyN(w, b, 4<<20)
		spoilAt(t, c, keyOf(up.blob), 7<<20)
		_, _ = io.Copy(w, b)
	}))
	defer srv.Close()
	resp := must.Get(srv.Client().Get(srv.URL))(t)
	defer resp.Body.Close()
	if n, err := io.Copy(io.Discard, resp.Body); err == nil || n >= 8<<20 {
		t.Errorf("the client has %d bytes and takes them for whole", n)
	}
}
