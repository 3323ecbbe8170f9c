package bench

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"ingot/features/internal/rig"
)

// goalTFTP is the time of a transfer divided by dnsmasq's.
const goalTFTP = 1.0

const (
	tftpFile      = "ipxe.efi"
	tftpBlock     = 1468 // bytes, what fits an Ethernet frame
	tftpTransfers = 31
)

// BenchmarkTFTP fetches a boot loader of 1 MB over a link, from Ingot and from
// dnsmasq in turn, and prints a table.
func BenchmarkTFTP(b *testing.B) {
	need(b, rig.ToolDnsmasq, rig.ToolCurl)
	program := build(b)
	loader := bytes.Repeat([]byte("boot loader "), 1<<20/12)
	dnsmasq := dnsmasqDHCP(b)
	ingot := newLink(b)
	for _, l := range []*link{ingot, dnsmasq.link} {
		l.file(tftpFile, loader)
	}
	pid := ingot.ingot(b, program)
	var ours, theirs []time.Duration
	fetch := func(l *link) time.Duration { return l.fetchTFTP(tftpFile, len(loader)) }
	fetch(ingot) // the first is for the caches
	fetch(dnsmasq.link)
	before, beforeOther := cpuOf(b, pid), dnsmasq.cpu()
	for range tftpTransfers {
		ours, theirs = append(ours, fetch(ingot)), append(theirs, fetch(dnsmasq.link))
	}
	t := &table{TB: b, title: "TFTP of 1 MB"}
	t.duration("time of a transfer, median", median(ours), time.Duration(goalTFTP*float64(median(theirs))), median(theirs))
	t.duration("  the longest", longest(ours), none, longest(theirs))
	t.duration("CPU of a transfer", (cpuOf(b, pid)-before)/tftpTransfers, none, (dnsmasq.cpu()-beforeOther)/tftpTransfers)
	t.print(os.Stderr)
	b.ReportMetric(float64(median(ours))/float64(median(theirs)), "time/dnsmasq")
	b.ReportMetric(median(ours).Seconds()*1000, "ms-median")
}

// fetchTFTP fetches a file and returns how long that took.
func (l *link) fetchTFTP(name string, size int) time.Duration {
	l.Helper()
	out, err := command(l.client, "curl", "--silent", "--show-error", "--max-time", "20", "--tftp-blksize", strconv.Itoa(tftpBlock),
		"--output", "/dev/null", "--write-out", "%{time_total} %{size_download}", "tftp://"+serverAddress+"/"+name).CombinedOutput()
	var seconds float64
	var got int
	if _, scanned := fmt.Sscanf(string(out), "%f %d", &seconds, &got); err != nil || scanned != nil || got != size {
		l.Fatalf("fetch %s by TFTP: %v: %s", name, err, out)
	}
	return time.Duration(seconds * float64(time.Second))
}
