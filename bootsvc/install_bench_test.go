package bootsvc

import (
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"ingot/bootsvc/internal/filebench"
	"ingot/model/must"
)

// BenchmarkFiftyInstalls measures what it costs to send a disk image's chunks to 50 probes at
// once: CPU seconds per GiB, beside nginx, with rounds that alternate. 1.25 times as much is what
// it may cost. The probes are another process.
func BenchmarkFiftyInstalls(b *testing.B) {
	in := newInstall(b)
	chunks := filepath.Join(in.dir, "chunks")
	must.Do(b, os.WriteFile(chunks, pattern(64<<20, 3), 0o600))
	server := httptest.NewServer(in.service.Handler())
	defer server.Close()
	nginx, url := filebench.StartNginx(b, in.dir)
	if nginx == 0 {
		b.Skip("without nginx there is nothing to compare with")
	}
	var ours, theirs struct {
		cpu  time.Duration
		sent int64
	}
	for b.Loop() {
		before := ownCPU()
		ours.sent += drain(b, server.URL+in.path(0, "chunks"))
		ours.cpu += ownCPU() - before
		before = filebench.CPUOf(b, nginx)
		theirs.sent += drain(b, url+"/chunks")
		theirs.cpu += filebench.CPUOf(b, nginx) - before
	}
	if ours.sent < 50*64<<20*int64(b.N) {
		b.Fatalf("%d bytes were sent, and %d by nginx", ours.sent, theirs.sent)
	}
	perGiB := ours.cpu.Seconds() / float64(ours.sent) * (1 << 30)
	yardstick := theirs.cpu.Seconds() / float64(theirs.sent) * (1 << 30)
	b.ReportMetric(perGiB, "cpu-s/GiB")
	b.ReportMetric(yardstick, "nginx-cpu-s/GiB")
	b.ReportMetric(perGiB/yardstick, "ratio")
	b.ReportMetric(0, "ns/op")
}

// drain has another process read a URL with 50 clients, and returns how many bytes came.
func drain(b *testing.B, url string) (n int64) {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "BOOTSVC_DRAIN="+url)
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	var failed string
	if _, err := fmt.Sscan(string(out), &n, &failed); err != nil || failed != "<nil>" {
		b.Fatalf("clients: %s", out)
	}
	return n
}

// ownCPU is the CPU time that this process has used, without its children.
func ownCPU() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
