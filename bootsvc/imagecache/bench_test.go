package imagecache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/sys/unix"

	"ingot/bootsvc/internal/filebench"
	"ingot/model/must"
)

func cpu() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

const gib = 1 << 30

// benchBlob makes a blob in a file, and returns a Fetch of it as a registry on
// loopback serves it.
func benchBlob(b *testing.B, size int) (path string, key Key, fetch Fetch) {
	b.Helper()
	blob := content(size, 1)
	path = filepath.Join(b.TempDir(), "blob")
	must.Do(b, os.WriteFile(path, blob, 0o644))
	_, url := helper(b, "bare", path)
	return path, keyOf(blob), overHTTP(url)
}

func overHTTP(url string) Fetch {
	return func(ctx context.Context, offset int64) (io.ReadCloser, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, err
		}
		return resp.Body, nil
	}
}

// helper starts this program again as a server, whose CPU time is then its own.
func helper(b *testing.B, what, path string) (cmd *exec.Cmd, url string) {
	b.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "IMAGECACHE_CHILD="+what, "IMAGECACHE_DIR="+b.TempDir(), "IMAGECACHE_BLOB="+path)
	cmd.Stderr = os.Stderr
	out := must.Get(cmd.StdoutPipe())(b)
	must.Do(b, cmd.Start())
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	must.Get(fmt.Fscanln(out, &url))(b)
	return cmd, url
}

func childServer(what string) error {
	path := os.Getenv("IMAGECACHE_BLOB")
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, path) })
	if what == "cache" {
		key, err := keyOfFile(path)
		if err != nil {
			return err
		}
		c, err := openAt(settings{Path: os.Getenv("IMAGECACHE_DIR")})
		if err != nil {
			return err
		}
		fetch := func(context.Context, int64) (io.ReadCloser, error) { return os.Open(path) }
		blob := handler(c, key, fetch)
		serve = func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/upstream" {
				fmt.Fprint(w, testutil.ToFloat64(c.metrics.fetched))
				return
			}
			blob(w, r)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + l.Addr().String() + "/blob")
	return (&http.Server{Handler: serve, ReadHeaderTimeout: time.Second}).Serve(l)
}

// keyOfFile returns the key of a blob without holding it in memory.
func keyOfFile(path string) (Key, error) {
	f, err := os.Open(path)
	if err != nil {
		return Key{}, err
	}
	defer f.Close()
	s := sha256.New()
	n, err := io.Copy(s, f)
	return Key{Digest: "sha256:" + hex.EncodeToString(s.Sum(nil)), Size: n}, err
}

func fetchedBy(b *testing.B, url string) (n float64) {
	b.Helper()
	resp := must.Get(http.Get(strings.TrimSuffix(url, "/blob") + "/upstream"))(b)
	defer resp.Body.Close()
	must.Get(fmt.Fscan(resp.Body, &n))(b)
	return n
}

// memory returns how much memory a process has resident (VmRSS:), or had at most
// (VmHWM:), in MiB.
func memory(b *testing.B, pid int, which string) float64 {
	b.Helper()
	raw := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)))(b)
	var kib float64
	if _, after, ok := strings.Cut(string(raw), which); ok {
		_, _ = fmt.Sscan(after, &kib)
	}
	return kib / 1024
}

// drain reads a URL with 50 clients at once, and returns how many bytes came.
func drain(b *testing.B, url string) int64 {
	b.Helper()
	return must.Get(filebench.Drain(url, 50))(b)
}

// BenchmarkFiftyClients measures what it costs the server to send a blob to 50 clients
// once it is cached: CPU seconds per GiB, beside a bare file server and nginx. Their
// rounds alternate, for the machine is not always as fast. The first round fills the
// cache: how many copies the registry sent, for 50 clients at once, is told too.
func BenchmarkFiftyClients(b *testing.B) {
	const size = 32 << 20
	path, _, _ := benchBlob(b, size)
	type server struct {
		name string
		pid  int
		url  string
		cpu  time.Duration
		sent int64
	}
	ours, url := helper(b, "cache", path)
	servers := []*server{{name: "cache", pid: ours.Process.Pid, url: url}}
	bare, url := helper(b, "bare", path)
	servers = append(servers, &server{name: "bare", pid: bare.Process.Pid, url: url})
	if pid, url := filebench.StartNginx(b, filepath.Dir(path)); pid != 0 {
		servers = append(servers, &server{name: "nginx", pid: pid, url: url + "/blob"})
	}
	idle := memory(b, ours.Process.Pid, "VmRSS:")
	for _, s := range servers {
		drain(b, s.url)
	}
	for b.Loop() {
		for _, s := range servers {
			before := filebench.CPUOf(b, s.pid)
			s.sent += drain(b, s.url)
			s.cpu += filebench.CPUOf(b, s.pid) - before
		}
	}
	per := func(s *server) float64 { return s.cpu.Seconds() / float64(s.sent) * gib }
	for _, s := range servers {
		b.ReportMetric(per(s), s.name+"-cpu-s/GiB")
		if s != servers[0] {
			b.ReportMetric(per(servers[0])/per(s), "ratio-"+s.name)
		}
	}
	copies := fetchedBy(b, servers[0].url) / size
	if copies != 1 {
		b.Errorf("the registry sent %v copies", copies)
	}
	b.ReportMetric(copies, "upstream-copies")
	b.ReportMetric(memory(b, servers[0].pid, "VmHWM:")-idle, "MiB-above-idle")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkFirstPull measures a blob's way from a registry on loopback to disk, verified:
// GiB per second of CPU, for a prefetch and for one client that reads it as it comes.
// Beside them are a bare sha256 over io.Copy, and one that writes a file, too. Their
// rounds alternate.
func BenchmarkFirstPull(b *testing.B) {
	const size = 256 << 20
	_, key, fetch := benchBlob(b, size)
	ways := []struct {
		name string
		pull func(dir string) error
		cpu  time.Duration
	}{
		{name: "bare", pull: func(string) error { return barePull(b, fetch, io.Discard) }},
		{name: "bare-file", pull: func(dir string) error {
			f, err := os.Create(filepath.Join(dir, "blob"))
			if err != nil {
				return err
			}
			defer f.Close()
			return errors.Join(barePull(b, fetch, f), f.Sync())
		}},
		{name: "prefetch", pull: func(dir string) error { return prefetch(b, dir, key, fetch) }},
		{name: "client", pull: func(dir string) error { return pull(b, dir, key, fetch) }},
	}
	for b.Loop() {
		for n := range ways {
			dir := b.TempDir()
			start := cpu()
			if err := ways[n].pull(dir); err != nil {
				b.Fatal(err)
			}
			ways[n].cpu += cpu() - start
			if err := os.RemoveAll(dir); err != nil {
				b.Fatal(err)
			}
		}
	}
	for _, w := range ways {
		b.ReportMetric(float64(b.N)*size/gib/w.cpu.Seconds(), w.name+"-GiB/cpu-s")
	}
	b.ReportMetric(0, "ns/op")
}

func barePull(b *testing.B, fetch Fetch, w io.Writer) error {
	body, err := fetch(b.Context(), 0)
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = io.CopyBuffer(struct{ io.Writer }{io.MultiWriter(sha256.New(), w)}, body, make([]byte, 512<<10))
	return err
}

func prefetch(b *testing.B, dir string, key Key, fetch Fetch) error {
	c, err := openAt(settings{Path: dir})
	if err != nil {
		return err
	}
	defer c.Close()
	return c.Prefetch(b.Context(), []Key{key}, func(Key) Fetch { return fetch })
}

func pull(b *testing.B, dir string, key Key, fetch Fetch) error {
	c, err := openAt(settings{Path: dir})
	if err != nil {
		return err
	}
	defer c.Close()
	blob, err := c.Get(b.Context(), key, fetch)
	if err != nil {
		return err
	}
	defer blob.Close()
	if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, blob, make([]byte, 128<<10)); err != nil {
		return err
	}
	landed(b, c)
	return nil
}

// BenchmarkFirstByte measures what the cache adds to the time until the registry's
// first byte is a client's.
func BenchmarkFirstByte(b *testing.B) {
	up := &upstreamFake{blob: content(1<<20, 1), silent: 300_000}
	for b.Loop() {
		c := newCache(b, b.TempDir())
		key := keyOf(up.blob)
		srv := httptest.NewServer(handler(c, key, up.fetch))
		start := time.Now()
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		if _, err := io.ReadFull(conn, make([]byte, 1024)); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(time.Since(start).Microseconds())/1000, "ms-to-first-byte")
		conn.Close()
		shut(c)
		srv.Close()
	}
}
