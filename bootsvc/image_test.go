package bootsvc

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"ingot/bootsvc/cachedir"
	"ingot/bootsvc/imagecache"
	"ingot/model"
	"ingot/model/must"
)

func withCache(t testing.TB, change ...func(*imagecache.Options)) func(*Options) {
	t.Helper()
	o := imagecache.Options{Dir: must.Get(cachedir.Open(cachedir.Options{Path: t.TempDir()}))(t)}
	for _, f := range change {
		f(&o)
	}
	cache := must.Get(imagecache.Open(o))(t)
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
					if err != nil || resp.StatusCode != http.StatusOK ||
						!bytes.Equal(body, r.parts[name]) || resp.Header.Get("ETag") != etag(layer) {
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
	must.Do(t, r.service.images.Prefetch(t.Context(), r.service.cache, r.ticket.Image))
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
	}), withCache(t, func(o *imagecache.Options) { o.MaxFetches, o.QueueTimeout = 1, 20*time.Millisecond }))
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
		must.Do(t, r.service.images.Prefetch(t.Context(), r.service.cache, ticket.Image))
	}
	conn := must.Get(net.Dial("tcp", r.Listener.Addr().String()))(t)
	defer conn.Close()
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", layerPath(ticket, ticket.Image.Kernel))
	served := r.service.metrics.requests.WithLabelValues("/image", "200")
	for end := time.Now().Add(20 * time.Second); testutil.ToFloat64(served) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a client that takes nothing keeps its connection")
		}
	}
	if sent := imageBytes(r.service); sent == 0 || sent >= 64<<20 {
		t.Errorf("%v bytes were counted as sent", sent)
	}
}

// push puts a layer into a rack's cache alone.
func push(t *testing.T, r *rack, raw []byte) *model.Layer {
	t.Helper()
	layer := &model.Layer{Digest: digest.FromBytes(raw).String(), Size: int64(len(raw))}
	key := imagecache.Key{Digest: layer.Digest, Size: layer.Size}
	fetch := func(context.Context, int64) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil }
	fetchOf := func(imagecache.Key) imagecache.Fetch { return fetch }
	must.Do(t, r.service.cache.Prefetch(t.Context(), []imagecache.Key{key}, fetchOf))
	return layer
}

func TestRanges(t *testing.T) {
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	r := newRack(t, nil, nil)
	kernel := r.parts["kernel"]
	tag := etag(r.ticket.Image.Kernel)
	for title, tc := range map[string]struct {
		header []string
		code   int
		from   int
	}{
		"T09: the rest from a byte on":               {[]string{"Range", "bytes=131073-"}, 206, 131073},
		"T09: the last byte":                         {[]string{"Range", "bytes=299999-"}, 206, 299_999},
		"T09: the rest, if it is the same layer":     {[]string{"Range", "bytes=5-", "If-Range", tag}, 206, 5},
		"another layer is sent whole":                {[]string{"Range", "bytes=5-", "If-Range", `"x"`}, 200, 0},
		"from the first byte on is the whole":        {[]string{"Range", "bytes=0-"}, 206, 0},
		"the last bytes":                             {[]string{"Range", "bytes=-9"}, 206, 299_991},
		"several ranges are the whole":               {[]string{"Range", "bytes=1-,5-"}, 200, 0},
		"a range behind the end cannot be satisfied": {[]string{"Range", "bytes=300000-"}, 416, 0},
	} {
		t.Run(title, func(t *testing.T) {
			resp, body, err := get(t, r.layerURL(r.ticket.Image.Kernel), tc.header...)
			if err != nil || resp.StatusCode != tc.code {
				t.Fatal(resp.Status, err)
			}
			if tc.code == 416 {
				if got := resp.Header.Get("Content-Range"); got != "bytes */300000" {
					t.Errorf("Content-Range is %q", got)
				}
				return
			}
			if !bytes.Equal(body, kernel[tc.from:]) {
				t.Errorf("%d bytes, want %d", len(body), len(kernel)-tc.from)
			}
			if want := fmt.Sprintf("bytes %d-299999/300000", tc.from); tc.code == 206 && resp.Header.Get("Content-Range") != want {
				t.Errorf("Content-Range is %q, want %q", resp.Header.Get("Content-Range"), want)
			}
		})
	}
}

func onBlobs(answer http.HandlerFunc) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/blobs/") {
				answer(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

func TestACorruptLayerIsNeverWhole(t *testing.T) {
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	kernel := pattern(300_000, 1)
	corrupt := bytes.Clone(kernel)
	corrupt[7] ^= 1
	for title, answer := range map[string]http.HandlerFunc{
		"I09: one bit is wrong": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(corrupt) },
		"I09: the layer is short and says so not": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(kernel[:200_000])
			_ = http.NewResponseController(w).Flush()
		},
		"I09: the layer is long and says so not": func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).Flush()
			_, _ = w.Write(append(bytes.Clone(kernel), 0))
		},
		"I09: the registry goes away": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "300000")
			_, _ = w.Write(kernel[:200_000])
			panic(http.ErrAbortHandler)
		},
		"the registry hangs half way": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "300000")
			_, _ = w.Write(kernel[:200_000])
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
	} {
		t.Run(title, func(t *testing.T) {
			r := newRack(t, onBlobs(answer), withCache(t, func(o *imagecache.Options) { o.Stall = 300 * time.Millisecond }))
			resp, body, err := get(t, r.layerURL(r.ticket.Image.Kernel))
			r.Close()
			aborted := testutil.ToFloat64(r.service.metrics.requests.WithLabelValues("/image", "aborted"))
			cutOff := resp.StatusCode == http.StatusOK && err != nil && len(body) < len(kernel) && aborted == 1
			if !cutOff && resp.StatusCode != http.StatusBadGateway {
				t.Errorf("%s with %d of %d bytes, %v; %v answers are counted as aborted", resp.Status, len(body), len(kernel), err, aborted)
			}
		})
	}
}

func TestALayerThatCannotBeFetched(t *testing.T) {
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	for title, answer := range map[string]http.HandlerFunc{
		"the registry lost it":        http.NotFound,
		"the registry is down":        func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		"the registry wants a login":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		"the length is another":       func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("short")) },
		"the registry leads to cloud": http.RedirectHandler("http://169.254.169.254/", http.StatusFound).ServeHTTP,
	} {
		t.Run(title, func(t *testing.T) {
			r := newRack(t, onBlobs(answer), nil)
			resp, body, err := get(t, r.layerURL(r.ticket.Image.Kernel))
			if err != nil || resp.StatusCode != http.StatusBadGateway || !strings.Contains(string(body), "does not give this layer") {
				t.Errorf("%s %s, %v", resp.Status, body, err)
			}
			if notes := r.desk.notes(); notes != nil {
				t.Errorf("a kernel that was not served is noted: %v", notes)
			}
		})
	}
}

func TestTheRequestToTheRegistryIsOurOwn(t *testing.T) {
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	got := make(chan *http.Request, 1)
	r := newRack(t, onBlobs(func(w http.ResponseWriter, req *http.Request) {
		got <- req.Clone(req.Context())
		http.NotFound(w, req)
	}), nil)
	_, _, _ = get(
		t, r.layerURL(r.ticket.Image.Kernel)+"&evil=1", "Cookie", "a=b", "Authorization", "Bearer x", "X-Evil", "1", "Range", "bytes=5-",
	)
	up := <-got
	if up.URL.RawQuery != "" {
		t.Errorf("Y14: the client's query %q went on", up.URL.RawQuery)
	}
	for name := range up.Header {
		if !slices.Contains([]string{"User-Agent", "Accept-Encoding"}, name) {
			t.Errorf("Y14: header %s: %s went to the registry", name, up.Header.Get(name))
		}
	}
}

func (r *rack) bootsBig(t *testing.T, kernel []byte) *model.Ticket {
	t.Helper()
	ref, _, _ := r.registry.PushBootImage("os/big", "1", kernel, []byte("i"), nil)
	img := must.Get(r.service.images.Resolve(t.Context(), ref, "amd64"))(t)
	ticket := *r.ticket
	ticket.Image = img
	r.desk.arm(&ticket, "{}")
	return &ticket
}

// TestAClientThatIsSlow has a client that takes longer than the stall for the
// whole, but never so long for a piece.
func TestAClientThatIsSlow(t *testing.T) {
	big := pattern(48<<20, 6)
	r := newRack(t, nil, nil)
	r.service.stall = 500 * time.Millisecond
	ticket := r.bootsBig(t, big)
	conn, err := net.Dial("tcp", r.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", layerPath(ticket, ticket.Image.Kernel))
	pace := time.NewTicker(40 * time.Millisecond)
	defer pace.Stop()
	start, got := time.Now(), int64(0)
	for err == nil {
		var n int64
		n, err = io.CopyN(io.Discard, conn, 2<<20)
		got += n
		<-pace.C
	}
	if got < int64(len(big)) || time.Since(start) < r.service.stall {
		t.Errorf("T12: %d of %d bytes in %s, %v", got, len(big), time.Since(start), err)
	}
}
