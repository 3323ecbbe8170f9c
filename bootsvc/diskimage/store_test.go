package diskimage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"ingot/bootsvc/diskimage/diskimagetest"
	"ingot/model"
	"ingot/model/must"
)

func tiny(seed byte) []byte {
	return diskimagetest.Disk(diskimagetest.Options{BootCode: true, Bytes: 8 * mib, Data: diskimagetest.Noise(mib, seed)})
}

func gated(raw []byte, open <-chan struct{}) Source {
	src := sourceOf(raw)
	src.Fetch = func(ctx context.Context, from int64) (io.ReadCloser, error) {
		select {
		case <-open:
			return io.NopCloser(bytes.NewReader(raw[from:])), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return src
}

func TestPreparationGoesOnWithoutItsCaller(t *testing.T) {
	store := storeFor(t, func(o *settings) { o.Patience = -1 })
	raw, open := tiny(1), make(chan struct{})
	src := gated(raw, open)
	ctx, cancel := context.WithCancel(t.Context())
	var preparing *Preparing
	if _, err := store.Prepare(ctx, src); !errors.As(err, &preparing) {
		t.Fatalf("got %v", err)
	}
	cancel()
	close(open)
	store.patience = waitLong
	img, err := store.Prepare(t.Context(), src)
	if err != nil || img.Disk.Bytes != 8*mib || img.Disk.Ref != src.Ref {
		t.Errorf("%+v, %v", img, err)
	}
}

func TestCallersShareOnePreparation(t *testing.T) {
	store := storeFor(t, nil)
	raw := tiny(1)
	var fetches atomic.Int32
	src := sourceOf(raw)
	inner := src.Fetch
	src.Fetch = func(ctx context.Context, from int64) (io.ReadCloser, error) {
		fetches.Add(1)
		return inner(ctx, from)
	}
	var group sync.WaitGroup
	for n := range 10 {
		group.Go(func() {
			mine := src
			mine.Ref = fmt.Sprintf("other.example/os:%d", n)
			img, err := store.Prepare(t.Context(), mine)
			if err != nil || img.Disk.Ref != mine.Ref {
				t.Errorf("%v, %v", img.Disk, err)
			}
		})
	}
	group.Wait()
	if fetches.Load() != 1 {
		t.Errorf("it was fetched %d times", fetches.Load())
	}
}

// A server that sends drop by drop keeps no image of another waiting.
func TestASlowSourceDelaysOnlyItself(t *testing.T) {
	store := storeFor(t, func(o *settings) { o.Patience = -1; o.Fetches = 1 })
	store.turn = 50 * time.Millisecond
	open := make(chan struct{})
	slow := gated(tiny(1), open)
	_, _ = store.Prepare(t.Context(), slow)
	store.patience = waitLong
	prepared(t, store, tiny(2))
	prepared(t, store, tiny(3)) // the place is there once, not twice
	if len(store.fetches) != 0 || len(store.converting) != 0 {
		t.Errorf("%d and %d places are taken", len(store.fetches), len(store.converting))
	}
	close(open)
	if _, err := store.Prepare(t.Context(), slow); err != nil {
		t.Errorf("the slow one: %v", err)
	}
}

func TestCloseEndsAPreparation(t *testing.T) {
	store := storeFor(t, func(o *settings) { o.Patience = -1 })
	src := gated(tiny(1), nil)
	_, _ = store.Prepare(t.Context(), src)
	store.Close()
	if _, err := store.Prepare(t.Context(), src); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
	if left, _ := os.ReadDir(dirOf(store)); len(left) != 1 {
		t.Errorf("%v is left", left)
	}
}

func TestProgressIsTold(t *testing.T) {
	store := storeFor(t, func(o *settings) { o.Patience = -1; o.Fetches = 1 })
	raw := tiny(1)
	half, more := make(chan struct{}), make(chan struct{})
	src := sourceOf(raw)
	src.Fetch = func(ctx context.Context, _ int64) (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(bytes.NewReader(raw[:mib]), waitingReader{half, more}, bytes.NewReader(raw[mib:]))), nil
	}
	_, _ = store.Prepare(t.Context(), src)
	<-half
	var p *Preparing
	if _, err := store.Prepare(t.Context(), src); !errors.As(err, &p) || *p != (Preparing{StageFetch, mib, 8 * mib}) ||
		p.Error() != "the disk image is being fetched: 1.0 MiB of 8.0 MiB" {
		t.Errorf("got %v", p)
	}
	if _, err := store.Prepare(t.Context(), sourceOf(tiny(2))); !errors.As(err, &p) || p.Stage != StageQueued {
		t.Errorf("the second of one fetch at a time: %v", p)
	}
	close(more)
}

// waitingReader says that it was come to, and ends when it is let.
type waitingReader struct{ reached, more chan struct{} }

func (w waitingReader) Read([]byte) (int, error) {
	close(w.reached)
	<-w.more
	return 0, io.EOF
}

func TestWrongFileReachesNobody(t *testing.T) {
	raw := tiny(1)
	packed := gzipOf(raw)
	for name, test := range map[string]struct {
		digest string
		sent   []byte
		says   string
	}{
		"N03 another file":                        {diskimagetest.SHA256(raw), tiny(2), "that is wanted: it was replaced"},
		"N03 a file that ends early":              {diskimagetest.SHA256(raw), raw[:len(raw)-1], "the file does not have the digest"},
		"N02 the digest of the unpacked image":    {diskimagetest.SHA256(raw), packed, "is the digest of the unpacked image: write the digest of the file as it is published"},
		"N15 a file that was replaced since then": {diskimagetest.SHA256(packed), gzipOf(tiny(2)), "that is wanted: it was replaced"},
	} {
		t.Run(name, func(t *testing.T) {
			var logged bytes.Buffer
			store := storeFor(t, func(o *settings) { o.Log = slog.New(slog.NewTextHandler(&logged, nil)) })
			src := Source{Ref: "https://images.example/os", Digest: test.digest, Fetch: fetchOf(test.sent)}
			_, err := store.Prepare(t.Context(), src)
			if reasonOf(err) != model.ReasonDigestMismatch || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v", err)
			}
			for _, fact := range []string{strings.TrimPrefix(diskimagetest.SHA256(test.sent), "sha256:"), strconv.Itoa(len(test.sent))} {
				if strings.Contains(err.Error(), fact) || strings.Contains(logged.String(), fact) {
					t.Errorf("%s describes the answer: %v\n%s", fact, err, &logged)
				}
			}
			if n := testutil.ToFloat64(store.metrics.fetched); n != 0 {
				t.Errorf("the metrics show an answer of %v bytes", n)
			}
			if _, err := store.Open(test.digest); !errors.Is(err, ErrNotHere) {
				t.Errorf("it can be opened: %v", err)
			}
		})
	}
}

func TestFailuresAreRememberedForAWhile(t *testing.T) {
	now := time.Unix(1e9, 0)
	store := storeFor(t, func(o *settings) { o.Clock = func() time.Time { return now } })
	var fetches int
	counted := func(digest string, sent []byte) Source {
		return Source{Ref: "a", Digest: digest, Fetch: func(context.Context, int64) (io.ReadCloser, error) {
			fetches++
			return io.NopCloser(bytes.NewReader(sent)), nil
		}}
	}
	mismatch := counted(diskimagetest.SHA256(tiny(1)), tiny(2))
	noDisk := make([]byte, mib)
	for name, test := range map[string]struct {
		src     Source
		elapsed time.Duration
		ref     string
		want    int // fetches
	}{
		"a mismatch at once":                       {mismatch, 0, "a", 1},
		"a mismatch a minute later":                {mismatch, time.Minute, "a", 2},
		"a mismatch from elsewhere":                {mismatch, 0, "b", 2},
		"what is wrong with the image, days later": {counted(diskimagetest.SHA256(noDisk), noDisk), 100 * time.Hour, "b", 1},
	} {
		fetches = 0
		clear(store.failed)
		_, first := store.Prepare(t.Context(), test.src)
		now = now.Add(test.elapsed)
		test.src.Ref = test.ref
		_, second := store.Prepare(t.Context(), test.src)
		if fetches != test.want || first == nil || second == nil || reasonOf(first) != reasonOf(second) {
			t.Errorf("%s: fetched %d times: %v, %v", name, fetches, first, second)
		}
	}
}

func TestImagesAreFoundAfterARestart(t *testing.T) {
	dir := t.TempDir()
	open := func() *Store { return storeFor(t, func(o *settings) { o.Path = dir }) }
	first := open()
	whole, short, old := prepared(t, first, tiny(1)), prepared(t, first, tiny(2)), prepared(t, first, tiny(3))
	shut(first)
	must.Do(t, os.Truncate(filepath.Join(pathOf(first, short.Disk.Digest), chunksName), 100))
	record := filepath.Join(pathOf(first, old.Disk.Digest), recordName)
	raw := must.Get(os.ReadFile(record))(t)
	must.Do(t, os.WriteFile(record, bytes.Replace(raw, []byte(`"version":1`), []byte(`"version":9`), 1), 0o600))
	if err := os.WriteFile(filepath.Join(dir, "notes"), nil, 0o600); err != nil { // somebody else's
		t.Fatal(err)
	}
	second := open()
	left, err := os.ReadDir(dir)
	var names []string
	for _, e := range left {
		names = append(names, e.Name())
	}
	if want := []string{".lock", "notes", filepath.Base(pathOf(first, whole.Disk.Digest))}; err != nil || !slices.Equal(names, want) {
		t.Errorf("%v is left, want %v", names, want)
	}
	if got := diskOf(t, second, whole.Disk.Digest); !bytes.Equal(got, tiny(1)) {
		t.Error("the disk is another")
	}
	if _, err := second.Open(old.Disk.Digest); !errors.Is(err, ErrNotHere) {
		t.Errorf("what another version kept is opened: %v", err)
	}
}

func TestImagesNotUsedLongestMakeRoom(t *testing.T) {
	now := time.Unix(1e9, 0)
	var spared string
	store := storeFor(t, func(o *settings) {
		o.MaxBytes = 12 * mib // a file of 8 MiB, and three images of a bit more than 1 MiB
		o.Pinned = func(digest string) bool { return digest == spared }
		o.Clock = func() time.Time { now = now.Add(time.Second); return now }
	})
	var digests []string
	for seed := range byte(3) {
		digests = append(digests, prepared(t, store, tiny(seed)).Disk.Digest)
	}
	spared = digests[1]
	o, err := store.Open(digests[0]) // it is used now
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	prepared(t, store, tiny(3))
	for n, want := range []bool{true, true, false} {
		o, err := store.Open(digests[n])
		if (err == nil) != want {
			t.Errorf("image %d: %v", n, err)
		}
		if err == nil {
			o.Close()
		}
	}
	prepared(t, store, tiny(4))
	prepared(t, store, tiny(5))
	if _, err := store.Open(digests[0]); !errors.Is(err, ErrNotHere) {
		t.Errorf("image 0 is still there: %v", err)
	}
	if _, err := o.Chunks.ReadAt(make([]byte, mib), 0); err != nil {
		t.Errorf("an image that is open cannot be read after its eviction: %v", err)
	}
	spared = ""
	small := storeFor(t, func(o *settings) { o.MaxBytes = 4 * mib })
	if _, err := small.Prepare(t.Context(), sourceOf(tiny(1))); reasonOf(err) != model.ReasonImageTooLarge || small.dir.CanTake(4*mib) != nil {
		t.Errorf("an image larger than the cache: %v, and room is taken", err)
	}
}

// An image for which there is no room takes none, and nobody fetches it.
func TestAnImageThatIsTooLargeEvictsNothing(t *testing.T) {
	for title, change := range map[string]func(*Source){
		"its size is known":        func(*Source) {},
		"the server says its size": func(src *Source) { src.Bytes = 0 },
	} {
		t.Run(title, func(t *testing.T) {
			store := storeFor(t, func(o *settings) { o.MaxBytes = 10 * mib })
			before := prepared(t, store, tiny(1)).Disk.Digest
			large := sourceOf(make([]byte, 11*mib))
			change(&large)
			fetch, read := large.Fetch, int64(0)
			large.Fetch = func(ctx context.Context, from int64) (io.ReadCloser, error) {
				body, err := fetch(ctx, from)
				return sizedBody{io.NopCloser(&countingReader{body, &read}), 11 * mib, false}, err
			}
			if _, err := store.Prepare(t.Context(), large); reasonOf(err) != model.ReasonImageTooLarge {
				t.Errorf("got %v", err)
			}
			if read > 0 {
				t.Errorf("%d bytes of it were read", read)
			}
			o, err := store.Open(before)
			if err != nil {
				t.Errorf("the image before it: %v", err)
			}
			o.Close()
		})
	}
}

// countingReader counts what is read.
type countingReader struct {
	io.Reader
	bytes *int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	*c.bytes += int64(n)
	return n, err
}

func TestImageThatIsDamagedOnDiskIsPreparedAnew(t *testing.T) {
	store := storeFor(t, nil)
	img := prepared(t, store, tiny(1))
	must.Do(t, os.Remove(filepath.Join(pathOf(store, img.Disk.Digest), chunksName)))
	if _, err := store.Open(img.Disk.Digest); !errors.Is(err, ErrNotHere) {
		t.Errorf("got %v", err)
	}
	prepared(t, store, tiny(1))
	if got := diskOf(t, store, img.Disk.Digest); !bytes.Equal(got, tiny(1)) {
		t.Error("the disk is another")
	}
}

func TestImageWhoseChunksRotIsFoundByACheck(t *testing.T) {
	for name, file := range map[string]string{"chunks": chunksName, "table": tableName} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			store := storeFor(t, func(o *settings) { o.Clock = func() time.Time { return now } })
			img := prepared(t, store, tiny(1))
			digest := img.Disk.Digest
			check := func(isHere bool) {
				t.Helper()
				must.Do(t, store.Check(t.Context(), digest))
				o, err := store.Open(digest)
				if err == nil {
					o.Close()
				}
				if isHere != (err == nil) {
					t.Errorf("it can be opened: %v, want %t", err, isHere)
				}
			}
			check(true)
			path := filepath.Join(pathOf(store, digest), file)
			content := must.Get(os.ReadFile(path))(t)
			content[len(content)-1] ^= 1
			must.Do(t, os.WriteFile(path, content, 0o600))
			check(true) // so soon it is not read again
			now = now.Add(checkedFor)
			check(false)
			check(false) // one that is not here is no error
			prepared(t, store, tiny(1))
			if got := diskOf(t, store, digest); !bytes.Equal(got, tiny(1)) {
				t.Error("the disk is another")
			}
		})
	}
}

// webServer serves a file, and cuts connections after some bytes.
type webServer struct {
	file    []byte
	cut     int  // bytes after which each answer is cut; 0 = none
	noRange bool // parts are not served
	mu      sync.Mutex
	ranges  []string
}

func (s *webServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.ranges = append(s.ranges, r.Header.Get("Range"))
	s.mu.Unlock()
	if s.noRange {
		r.Header.Del("Range")
	}
	w.Header().Set("ETag", `"1"`)
	if s.cut > 0 {
		w = &cuttingWriter{w, s.cut}
	}
	http.ServeContent(w, r, "disk", time.Time{}, bytes.NewReader(s.file))
}

type cuttingWriter struct {
	http.ResponseWriter
	left int
}

func (c *cuttingWriter) Write(p []byte) (int, error) {
	if len(p) > c.left {
		_, _ = c.ResponseWriter.Write(p[:c.left])
		c.ResponseWriter.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	c.left -= len(p)
	return c.ResponseWriter.Write(p)
}

func urlSource(t *testing.T, url string, raw []byte, named bool) Source {
	t.Helper()
	ref := url + "/disk.raw#" + diskimagetest.SHA256(raw)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return FromURL(ref, must.Get(model.ParseImageURL(ref))(t), &http.Client{Transport: transport}, named)
}

func TestFetchGoesOnWhereItWasCut(t *testing.T) {
	raw := tiny(1)
	for name, test := range map[string]struct {
		server *webServer
		want   int // requests
		err    string
	}{
		"in one go":                        {&webServer{file: raw}, 1, ""},
		"N38 cut after each 3 MiB":         {&webServer{file: raw, cut: 3 * mib}, 3, ""},
		"cut where parts cannot be had":    {&webServer{file: raw, cut: 3 * mib, noRange: true}, maxFetches, "unexpected EOF"},
		"N03 cut at once, again and again": {&webServer{file: raw, cut: 1}, maxFetches, "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(test.server)
			defer server.Close()
			store := storeFor(t, nil)
			store.pause = func(int) time.Duration { return 0 }
			_, err := store.Prepare(t.Context(), urlSource(t, server.URL, raw, true))
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("got %v, want %q", err, test.err)
			}
			if n := len(test.server.ranges); n != test.want && !(test.server.noRange && n > 2) {
				t.Errorf("asked %d times: %v", n, test.server.ranges)
			}
		})
	}
}

// The progress would be the size of an answer that the claim's author must not learn.
func TestProgressShowsNoSizeOfAnInternalAnswer(t *testing.T) {
	raw, more := tiny(1), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(raw)))
		_, _ = w.Write(raw[:2*mib])
		w.(http.Flusher).Flush()
		<-more
		_, _ = w.Write(raw[2*mib:])
	}))
	defer server.Close()
	for _, named := range []bool{true, false} {
		store := storeFor(t, func(o *settings) { o.Patience = -1 })
		src := urlSource(t, server.URL, raw, named)
		arrived := make(chan struct{})
		fetch := src.Fetch
		src.Fetch = func(ctx context.Context, from int64) (io.ReadCloser, error) {
			body, err := fetch(ctx, from)
			if err != nil {
				return nil, err
			}
			return &notedBody{sizedBody: body.(sizedBody), arrived: arrived}, nil
		}
		_, _ = store.Prepare(t.Context(), src)
		<-arrived
		_, err := store.Prepare(t.Context(), src)
		p, ok := errors.AsType[*Preparing](err)
		if !ok || p.Stage != StageFetch || (p.Total > 0) != named || (p.Done > 0) != named {
			t.Errorf("named %t: got %+v, %v", named, p, err)
		}
		shut(store)
	}
	close(more)
}

// notedBody closes arrived at its second read, when a part of the file is there.
type notedBody struct {
	sizedBody
	arrived chan struct{}
	reads   int
}

func (b *notedBody) Read(p []byte) (int, error) {
	if b.reads++; b.reads == 2 {
		close(b.arrived)
	}
	return b.sizedBody.Read(p)
}

// A file that is another when the fetch goes on is fetched anew, and not put together.
func TestFileThatIsReplacedMeanwhileIsFetchedAnew(t *testing.T) {
	raw := tiny(1)
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			w.Header().Set("ETag", `"old"`)
			http.ServeContent(&cuttingWriter{w, mib}, r, "disk", time.Time{}, bytes.NewReader(diskimagetest.Noise(8*mib, 9)))
			return
		}
		w.Header().Set("ETag", `"new"`)
		http.ServeContent(w, r, "disk", time.Time{}, bytes.NewReader(raw))
	}))
	defer server.Close()
	store := storeFor(t, nil)
	store.pause = func(int) time.Duration { return 0 }
	if _, err := store.Prepare(t.Context(), urlSource(t, server.URL, raw, true)); err != nil {
		t.Error(err)
	}
}

func TestWhatAServerAnswersIsTold(t *testing.T) {
	raw := tiny(1)
	for name, test := range map[string]struct {
		code         int
		named        bool
		reason, says string
	}{
		"the file is gone":               {404, true, model.ReasonNotFound, "404 Not Found: publishers remove old images"},
		"it asks for credentials":        {401, true, model.ReasonUnauthorized, "none are sent to a URL"},
		"it is out of order":             {503, true, model.ReasonRegistryUnreachable, "503 Service Unavailable"},
		"within the networks here, less": {404, false, model.ReasonRegistryUnreachable, "127.0.0.1 did not send the file; Ingot's log says more"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(test.code) }))
			defer server.Close()
			store := storeFor(t, nil)
			store.pause = func(int) time.Duration { return 0 }
			_, err := store.Prepare(t.Context(), urlSource(t, server.URL, raw, test.named))
			if reasonOf(err) != test.reason || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %s: %v", reasonOf(err), err)
			}
		})
	}
	store := storeFor(t, nil)
	store.pause = func(int) time.Duration { return 0 }
	loop := httptest.NewServer(http.RedirectHandler("/again", http.StatusFound))
	defer loop.Close()
	if _, err := store.Prepare(t.Context(), urlSource(t, loop.URL, raw, true)); err == nil || !strings.Contains(err.Error(), "more than 5 redirects") {
		t.Errorf("redirects without end: %v", err)
	}
}

func TestServerThatSendsNothingIsLeft(t *testing.T) {
	store := storeFor(t, func(o *settings) { o.Stall = 20 * time.Millisecond })
	store.pause = func(int) time.Duration { return 0 }
	_, err := store.Prepare(t.Context(), gated(tiny(1), nil))
	if !errors.Is(err, errStalled) {
		t.Errorf("got %v", err)
	}
}

func containerDisk(files map[string][]byte) []byte { return gzipOf(tarOf(files)) }

func TestDiskInAContainerImage(t *testing.T) {
	raw := tiny(1)
	packed := qcow2Of(t, raw)
	for name, test := range map[string]struct {
		layer        []byte
		reason, says string
	}{
		"a raw disk":                          {layer: containerDisk(map[string][]byte{"disk/disk.img": raw})},
		"a qcow2":                             {layer: containerDisk(map[string][]byte{"./disk/fedora.qcow2": packed, "etc/passwd": []byte("x")})},
		"a layer that is not packed":          {layer: tarOf(map[string][]byte{"disk/disk.img": raw})},
		"bootc: a container without a disk":   {containerDisk(map[string][]byte{"usr/bin/bootc": nil}), model.ReasonImageFormat, "bootc-image-builder"},
		"two disks":                           {containerDisk(map[string][]byte{"disk/a.img": raw, "disk/b.img": raw}), model.ReasonImageFormat, "two disk images"},
		"a layer that is cut off":             {containerDisk(map[string][]byte{"disk/disk.img": raw})[:100000], model.ReasonImageFormat, "end is missing"},
		"a disk that is cut off in its layer": {gzipOf(tarOf(map[string][]byte{"disk/disk.img": raw})[:5*mib]), model.ReasonImageFormat, "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			store := storeFor(t, nil)
			src := sourceOf(test.layer)
			src.Container = true
			_, err := store.Prepare(t.Context(), src)
			if reasonOf(err) != test.reason || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Fatalf("got %v", err)
			}
			if test.reason == "" && !bytes.Equal(diskOf(t, store, src.Digest), raw) {
				t.Error("the disk is another")
			}
		})
	}
}

func TestAnImageIsWhatItsFirstBytesSay(t *testing.T) {
	s := storeFor(t, nil)
	raw := diskimagetest.Disk(diskimagetest.Options{BootCode: true, ESP: diskimagetest.Bootable()})
	for name, tc := range map[string]struct {
		file []byte
		kind string
		note string
	}{
		"as it is called":          {raw, "raw", ""},
		"as it is called, packed":  {gzipOf(raw), "raw+gzip", ""},
		"what is called by nobody": {raw, "", ""},
		"raw that is called qcow2": {raw, "qcow2", "it is called qcow2 and is raw: its first bytes count, not what it is called"},
		"a qcow2 that is called an image": {
			qcow2Of(t, raw), "raw", "it is called raw and is qcow2: its first bytes count, not what it is called",
		},
		"packed in another way": {gzipOf(raw), "raw+xz", "it is called raw+xz and is raw+gzip: its first bytes count, not what it is called"},
	} {
		src := sourceOf(tc.file)
		src.Kind = tc.kind
		for _, again := range []bool{false, true} {
			img, err := s.Prepare(t.Context(), src)
			if err != nil || img.Disk.Note != tc.note {
				t.Errorf("%s (again %t): note %q, %v; want %q", name, again, img.Disk.Note, err, tc.note)
			}
		}
	}
}

func TestWhatTheNameInAURLSays(t *testing.T) {
	const digest = "#sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for url, want := range map[string]string{
		"https://images.example/ubuntu-24.04-server-cloudimg-amd64.img": "raw",
		"https://images.example/a/metal.raw.xz?key=value":               "raw+xz",
		"https://images.example/download?file=disk.qcow2":               "",
	} {
		u := must.Get(model.ParseImageURL(url + digest))(t)
		if got := FromURL(url, u, http.DefaultClient, false).Kind; got != want {
			t.Errorf("%s: got %q, want %q", url, got, want)
		}
	}
}
