package bootsvc

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"ingot/bootsvc/imagecache"
	"ingot/model"
)

// withCache gives a rack a cache.
func withCache(t testing.TB, change ...func(*imagecache.Options)) func(*Options) {
	t.Helper()
	o := imagecache.Options{Dir: t.TempDir()}
	for _, f := range change {
		f(&o)
	}
	cache, err := imagecache.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cache.Close)
	return func(o *Options) { o.Cache = cache }
}

func TestARackThatBootsCostsTheRegistryOneCopy(t *testing.T) {
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	var fetches atomic.Int64
	var down atomic.Bool
	r := newRack(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			fetches.Add(1)
			if down.Load() {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			next.ServeHTTP(w, req)
		})
	}, nil)
	img := r.ticket.Image
	rack := func() {
		var clients sync.WaitGroup
		for range 50 {
			clients.Go(func() {
				for name, layer := range map[string]*model.Layer{"kernel": img.Kernel, "initrd": img.Initrd, "squashfs": img.Squashfs} {
					resp, body, err := get(t, r.layerURL(layer))
					if err != nil || resp.StatusCode != http.StatusOK || !bytes.Equal(body, r.parts[name]) || resp.Header.Get("ETag") != etag(layer) {
						t.Errorf("%s: got %s, %d bytes, %v", name, resp.Status, len(body), err)
					}
				}
			})
		}
		clients.Wait()
	}
	rack()
	down.Store(true) // I12
	rack()
	if n := fetches.Load(); n != 3 {
		t.Errorf("I11: the registry was asked %d times for three layers", n)
	}
	resp, body, _ := get(t, r.layerURL(img.Squashfs), "Range", "bytes=500000-")
	if want := fmt.Sprintf("bytes 500000-1000000/%d", len(r.parts["squashfs"])); resp.StatusCode != http.StatusPartialContent ||
		resp.Header.Get("Content-Range") != want || !bytes.Equal(body, r.parts["squashfs"][500_000:]) {
		t.Errorf("T09: got %s, %q, %d bytes", resp.Status, resp.Header.Get("Content-Range"), len(body))
	}
}

func TestPrefetchedLayersNeedNoRegistry(t *testing.T) {
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	var down atomic.Bool
	r := newRack(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if down.Load() {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			next.ServeHTTP(w, req)
		})
	}, nil)
	if err := r.service.images.Prefetch(t.Context(), r.service.cache, r.ticket.Image); err != nil {
		t.Fatal(err)
	}
	down.Store(true)
	if _, body, err := get(t, r.layerURL(r.ticket.Image.Initrd)); err != nil || !bytes.Equal(body, r.parts["initrd"]) {
		t.Errorf("got %d bytes, %v", len(body), err)
	}
}

func TestACacheThatIsBusySaysComeAgain(t *testing.T) {
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	begun, release := make(chan struct{}, 9), make(chan struct{})
	r := newRack(t, onBlobs(func(w http.ResponseWriter, req *http.Request) {
		begun <- struct{}{}
		<-release
		w.WriteHeader(http.StatusBadGateway)
	}), withCache(t, func(o *imagecache.Options) { o.MaxFetches, o.Patience = 1, 20*time.Millisecond }))
	var first sync.WaitGroup
	first.Go(func() {
		if resp, _, _ := get(t, r.layerURL(r.ticket.Image.Kernel)); resp.StatusCode != http.StatusBadGateway {
			t.Errorf("the first got %s", resp.Status)
		}
	})
	<-begun
	resp, _, _ := get(t, r.layerURL(r.ticket.Image.Initrd))
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
		t.Errorf("T11: got %s, Retry-After %q", resp.Status, resp.Header.Get("Retry-After"))
	}
	close(release)
	first.Wait()
}

// A client that takes nothing is not waited for (T12), whether the kernel sends it or what
// comes from the registry is passed on.
func TestAClientThatStalls(t *testing.T) {
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	t.Run("by a layer in the cache", func(t *testing.T) { stalls(t, true) })
	t.Run("by one that is on its way", func(t *testing.T) { stalls(t, false) })
}

func stalls(t *testing.T, prefetched bool) {
	t.Helper()
	r := newRack(t, nil, nil)
	r.service.stall = 200 * time.Millisecond
	ticket := r.bootsBig(t, pattern(64<<20, 5))
	if prefetched {
		if err := r.service.images.Prefetch(t.Context(), r.service.cache, ticket.Image); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := net.Dial("tcp", r.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", layerPath(ticket, ticket.Image.Kernel))
	served := r.service.metrics.requests.WithLabelValues("/image", "200")
	for end := time.Now().Add(20 * time.Second); testutil.ToFloat64(served) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a client that takes nothing keeps its connection")
		}
	}
	if sent := testutil.ToFloat64(r.service.metrics.imageBytes); sent == 0 || sent >= 64<<20 {
		t.Errorf("%v bytes were counted as sent", sent)
	}
}

// push puts a layer into a rack's cache alone.
func push(t *testing.T, r *rack, raw []byte) *model.Layer {
	t.Helper()
	layer := &model.Layer{Digest: digest.FromBytes(raw).String(), Size: int64(len(raw))}
	key := imagecache.Key{Digest: layer.Digest, Size: layer.Size}
	fetch := func(context.Context, int64) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil }
	if err := r.service.cache.Prefetch(t.Context(), []imagecache.Key{key}, func(imagecache.Key) imagecache.Fetch { return fetch }); err != nil {
		t.Fatal(err)
	}
	return layer
}
