package imagecache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// cpu returns the CPU time that this process has used.
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
	if err := os.WriteFile(path, blob, 0o644); err != nil {
		b.Fatal(err)
	}
	_, url := helper(b, "bare", path)
	return path, keyOf(blob), overHTTP(url)
}

// overHTTP returns a Fetch from a URL.
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
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if _, err := fmt.Fscanln(out, &url); err != nil {
		b.Fatal(err)
	}
	return cmd, url
}

// childServer serves a blob, from the cache or barely, until it is killed.
func childServer(what string) error {
	path := os.Getenv("IMAGECACHE_BLOB")
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, path) })
	if what == "cache" {
		key, err := keyOfFile(path)
		if err != nil {
			return err
		}
		c, err := Open(Options{Dir: os.Getenv("IMAGECACHE_DIR")})
		if err != nil {
			return err
		}
		fetch := func(context.Context, int64) (io.ReadCloser, error) { return os.Open(path) }
		if err := c.Prefetch(context.Background(), []Key{key}, func(Key) Fetch { return fetch }); err != nil {
			return err
		}
		serve = handler(c, key, never)
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

// startNginx serves a folder with nginx, whose worker sends files by sendfile.
func startNginx(b *testing.B, dir string) (worker int, url string) {
	b.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil {
		b.Log("WITHOUT YARDSTICK: nginx is not installed")
		return 0, ""
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	own := b.TempDir()
	conf := filepath.Join(own, "nginx.conf")
	text := fmt.Sprintf("user root; daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/error;\nevents {}\nhttp { access_log off; sendfile on; server { listen %[2]s; root %[3]s; } }\n", own, addr, dir)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(program, "-p", own, "-c", conf)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	until(b, "nginx listens", func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return cmd.Process.Pid, "http://" + addr + "/blob"
}

// cpuOf returns the CPU time that a process has used (proc(5), stat).
func cpuOf(b *testing.B, pid int) time.Duration {
	b.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+2:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// peak returns the most memory that a process had resident, in MiB.
func peak(b *testing.B, pid int) float64 {
	b.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	var kib float64
	if _, after, ok := strings.Cut(string(raw), "VmHWM:"); ok {
		_, _ = fmt.Sscan(after, &kib)
	}
	return kib / 1024
}

// drain reads a URL with 50 clients at once, and returns how many bytes came.
func drain(b *testing.B, url string) (n int64) {
	b.Helper()
	var clients sync.WaitGroup
	var mu sync.Mutex
	host, _ := strings.CutPrefix(url, "http://")
	host, _, _ = strings.Cut(host, "/")
	for range 50 {
		clients.Go(func() {
			conn, err := net.Dial("tcp", host)
			if err != nil {
				b.Error(err)
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "GET /blob HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			// MSG_TRUNC throws bytes away in the kernel, so that clients cost little.
			got := discard(conn.(*net.TCPConn))
			mu.Lock()
			n += got
			mu.Unlock()
		})
	}
	clients.Wait()
	return n
}

// discard reads a connection to its end without copying.
func discard(conn *net.TCPConn) (total int64) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0
	}
	scratch := make([]byte, 1<<20)
	for {
		n := -1
		_ = raw.Read(func(fd uintptr) bool {
			var err error
			n, _, err = unix.Recvfrom(int(fd), scratch, unix.MSG_TRUNC)
			return err != unix.EAGAIN
		})
		if n <= 0 {
			return total
		}
		total += int64(n)
	}
}

// BenchmarkFiftyClients measures what it costs the server to send a cached blob to 50
// clients: CPU seconds per GiB, beside a bare file server and nginx. Their rounds
// alternate, for the machine is not always as fast.
func BenchmarkFiftyClients(b *testing.B) {
	path, _, _ := benchBlob(b, 32<<20)
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
	if pid, url := startNginx(b, filepath.Dir(path)); pid != 0 {
		servers = append(servers, &server{name: "nginx", pid: pid, url: url})
	}
	for _, s := range servers {
		drain(b, s.url)
	}
	for b.Loop() {
		for _, s := range servers {
			before := cpuOf(b, s.pid)
			s.sent += drain(b, s.url)
			s.cpu += cpuOf(b, s.pid) - before
		}
	}
	per := func(s *server) float64 { return s.cpu.Seconds() / float64(s.sent) * gib }
	for _, s := range servers {
		b.ReportMetric(per(s), s.name+"-cpu-s/GiB")
		if s != servers[0] {
			b.ReportMetric(per(servers[0])/per(s), "ratio-"+s.name)
		}
	}
	b.ReportMetric(peak(b, servers[0].pid), "peak-MiB")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkFirstPull measures a blob's way from a registry on loopback to disk and to
// one client, verified: GiB per second of CPU, beside a bare sha256 over io.Copy.
func BenchmarkFirstPull(b *testing.B) {
	const size = 256 << 20
	_, key, fetch := benchBlob(b, size)
	measure := func(b *testing.B, pull func() error) {
		start := cpu()
		for b.Loop() {
			if err := pull(); err != nil {
				b.Fatal(err)
			}
		}
		b.SetBytes(size)
		b.ReportMetric(float64(b.N)*size/gib/(cpu()-start).Seconds(), "GiB/cpu-s")
	}
	b.Run("bare", func(b *testing.B) {
		measure(b, func() error {
			body, err := fetch(b.Context(), 0)
			if err != nil {
				return err
			}
			defer body.Close()
			_, err = io.Copy(sha256.New(), body)
			return err
		})
	})
	b.Run("cache", func(b *testing.B) {
		measure(b, func() error { return pull(b, key, fetch) })
	})
}

// pull fetches a blob into a new cache and reads it.
func pull(b *testing.B, key Key, fetch Fetch) error {
	c, err := Open(Options{Dir: b.TempDir()})
	if err != nil {
		return err
	}
	defer c.Close()
	blob, err := c.Get(b.Context(), key, fetch)
	if err != nil {
		return err
	}
	defer blob.Close()
	if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, blob, make([]byte, 32<<10)); err != nil {
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
		c.Close()
		srv.Close()
	}
}
