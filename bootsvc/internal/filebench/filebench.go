// Package filebench is for benchmarks of what serves files: nginx as their yardstick, clients
// that cost little, and the CPU time of other processes. Tests alone use it.
package filebench

import (
	"fmt"
	"io"
	"net"
	"net/url"
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

// StartNginx serves a folder with nginx, whose one process sends files by sendfile, until the test
// ends. Without nginx it says so, and returns 0.
func StartNginx(tb testing.TB, dir string) (pid int, base string) {
	tb.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil {
		tb.Log("WITHOUT YARDSTICK: nginx is not installed")
		return 0, ""
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	own := tb.TempDir()
	conf := filepath.Join(own, "nginx.conf")
	text := fmt.Sprintf(
		"user root; daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/error;\nevents {}\n"+
			"http { access_log off; sendfile on; server { listen %[2]s; root %[3]s; } }\n",
		own, addr, dir,
	)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(program, "-p", own, "-c", conf)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
			return cmd.Process.Pid, "http://" + addr
		}
		if time.Now().After(end) {
			tb.Fatalf("nginx does not listen: %v", err)
		}
	}
}

// CPUOf returns the CPU time that a process has used (proc(5), stat).
func CPUOf(tb testing.TB, pid int) time.Duration {
	tb.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		tb.Fatal(err)
	}
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+2:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// Drain reads a URL with so many clients at once, and returns how many bytes came.
func Drain(from string, clients int) (n int64, err error) {
	u, err := url.Parse(from)
	if err != nil {
		return 0, err
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	for range clients {
		all.Go(func() {
			got, failed := drain(u)
			mu.Lock()
			defer mu.Unlock()
			if n += got; failed != nil {
				err = failed
			}
		})
	}
	all.Wait()
	return n, err
}

func drain(u *url.URL) (int64, error) {
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET "+u.RequestURI()+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
		return 0, err
	}
	return discard(conn.(*net.TCPConn))
}

// discard reads a connection to its end without copying: MSG_TRUNC throws bytes away in the
// kernel (tcp(7)).
func discard(conn *net.TCPConn) (total int64, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	scratch := make([]byte, 1<<20)
	for {
		n := -1
		err := raw.Read(func(fd uintptr) bool {
			var err error
			n, _, err = unix.Recvfrom(int(fd), scratch, unix.MSG_TRUNC)
			return err != unix.EAGAIN
		})
		if n <= 0 {
			return total, err
		}
		total += int64(n)
	}
}
