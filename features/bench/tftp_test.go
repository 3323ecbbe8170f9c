package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"ingot/features/internal/rig"
)

// What Ingot is held to, each a ratio to the best of the other servers.
const (
	goalTFTPTime = 1.0
	goalTFTPCPU  = 1.25
)

const (
	tftpLarge  = "ipxe.efi"
	tftpSmall  = "undionly.kpxe"
	tftpBlock  = 1468 // bytes, what fits an Ethernet frame
	tftpRounds = 3
	tftpTurns  = 4 // of each server in a round: what else the machine does hits them alike
)

// tftpSizes are the files, in bytes.
var tftpSizes = map[string]int{tftpLarge: 1 << 20, tftpSmall: 4 << 10}

// tftpLoads are what clients do: each of Clients fetches Files of them.
var tftpLoads = []struct {
	name  string
	order tftpOrder
}{
	{"1 MB", tftpOrder{Clients: 1, Files: 12, Name: tftpLarge}},
	{"1 MB, 10 clients", tftpOrder{Clients: 10, Files: 2, Name: tftpLarge}},
	{"1 MB, 50 clients", tftpOrder{Clients: 50, Files: 1, Name: tftpLarge}},
	{"100 files of 4 KB", tftpOrder{Clients: 1, Files: 100, Name: tftpSmall}},
	{"1 MB, windowsize 8", tftpOrder{Clients: 1, Files: 20, Name: tftpLarge, Window: 8}},
}

// tftpServer is a TFTP server on a link of its own.
type tftpServer struct {
	name string
	link *link
	cpu  func() time.Duration // that it has used; nil = that cannot be told
}

// tftpCost is what the files of a load took, on the average.
type tftpCost struct{ time, cpu time.Duration }

// BenchmarkTFTP fetches boot loaders over a link, from Ingot and from other servers in
// turn, and prints a table. A server that grants no window is asked for one all the same:
// its clients wait for each block.
func BenchmarkTFTP(b *testing.B) {
	need(b, rig.ToolDnsmasq)
	servers := []*tftpServer{ingotTFTP(b, build(b)), dnsmasqTFTP(b)}
	servers = append(servers, otherTFTP(b)...)
	costs := make([][][]tftpCost, len(tftpLoads)) // by load, server and turn
	for i, load := range tftpLoads {
		costs[i] = make([][]tftpCost, len(servers))
		for turn := range tftpRounds*tftpTurns + 1 {
			for n, s := range servers {
				if c := s.fetch(load.order); turn > 0 { // the first is for the caches
					costs[i][n] = append(costs[i][n], c)
				}
			}
		}
	}
	printTFTP(b, servers, costs)
}

// printTFTP prints what each server took for each load, and Ingot against the best of the
// others.
func printTFTP(b *testing.B, servers []*tftpServer, costs [][][]tftpCost) {
	b.Helper()
	out := tabwriter.NewWriter(os.Stderr, 0, 0, 2, ' ', 0)
	fmt.Fprint(out, "\nTFTP, of a file: time, CPU")
	for _, s := range servers {
		fmt.Fprint(out, "\t"+s.name)
	}
	fmt.Fprintf(out, "\ttime/best\tgoal\tCPU/best\tgoal\t\n")
	for i, load := range tftpLoads {
		fmt.Fprint(out, load.name)
		var middles []tftpCost
		for n := range servers {
			m := middleTFTP(costs[i][n])
			middles = append(middles, m)
			fmt.Fprintf(out, "\t%s, %s", short(m.time), short(m.cpu))
		}
		best := bestTFTP(middles[1:])
		inTime, inCPU := float64(middles[0].time)/float64(best.time), float64(middles[0].cpu)/float64(best.cpu)
		verdict := ""
		if inTime > goalTFTPTime || inCPU > goalTFTPCPU {
			verdict = "MISSED"
		}
		fmt.Fprintf(out, "\t%.2f\t≤ %.2g\t%.2f\t≤ %.3g\t%s\n", inTime, goalTFTPTime, inCPU, goalTFTPCPU, verdict)
		unit := strings.NewReplacer(" ", "-", ",", "").Replace(load.name)
		b.ReportMetric(inTime, unit+"-time/best")
		b.ReportMetric(inCPU, unit+"-CPU/best")
	}
	if err := out.Flush(); err != nil {
		b.Error(err)
	}
}

// bestTFTP returns the least of what servers took.
func bestTFTP(of []tftpCost) tftpCost {
	best := of[0]
	for _, c := range of {
		best.time = min(best.time, c.time)
		if c.cpu > 0 {
			best.cpu = min(best.cpu, c.cpu)
		}
	}
	return best
}

// middleTFTP returns the medians of rounds, which are averages of their turns.
func middleTFTP(of []tftpCost) tftpCost {
	var times, cpus []time.Duration
	for round := range slices.Chunk(of, tftpTurns) {
		var sum tftpCost
		for _, c := range round {
			sum.time += c.time
			sum.cpu += c.cpu
		}
		times, cpus = append(times, sum.time/tftpTurns), append(cpus, sum.cpu/tftpTurns)
	}
	return tftpCost{median(times), median(cpus)}
}

// ingotTFTP serves with Ingot.
func ingotTFTP(b *testing.B, program string) *tftpServer {
	b.Helper()
	l := newTFTPLink(b)
	pid := l.ingot(b, program)
	return &tftpServer{"Ingot", l, func() time.Duration { return processCPU(b, pid) }}
}

// dnsmasqTFTP serves with dnsmasq.
func dnsmasqTFTP(b *testing.B) *tftpServer {
	b.Helper()
	l := newTFTPLink(b)
	pid := l.serve("TFTP root is", nil, "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--pid-file=", "--user=root",
		"--port=0", "--interface="+serverDevice, "--log-facility=-", "--enable-tftp", "--tftp-root="+l.dir, "--quiet-tftp", "--tftp-max=200").Process.Pid
	return &tftpServer{"dnsmasq", l, func() time.Duration { return processCPU(b, pid) }}
}

// otherTFTP serves with what else is installed. Debian's atftpd and tftpd-hpa exclude one
// another.
func otherTFTP(b *testing.B) (servers []*tftpServer) {
	b.Helper()
	for name, args := range map[string][]string{
		"atftpd":   {"atftpd", "--daemon", "--no-fork", "--user", "root", "--group", "root", "--logfile", "-", "--maxthread", "200", "--bind-address", serverAddress},
		"in.tftpd": {"in.tftpd", "--foreground", "--listen", "--user", "root", "--address", serverAddress + ":69", "--secure"},
	} {
		path, err := exec.LookPath(args[0])
		if err != nil {
			b.Logf("WITHOUT %s: it is not installed (packages atftpd, tftpd-hpa)", name)
			continue
		}
		l := newTFTPLink(b)
		pid := l.serve("", nil, append(append([]string{path}, args[1:]...), l.dir)...).Process.Pid
		l.await(name+" listens", "", func() bool {
			sockets, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/udp", pid))
			return bytes.Contains(sockets, []byte(":0045 "))
		})
		cpu := func() time.Duration { return processCPU(b, pid) }
		if name == "in.tftpd" { // it has a process for each file, for whose end it does not wait
			cpu = nil
		}
		servers = append(servers, &tftpServer{name, l, cpu})
	}
	return servers
}

// tftpClients are addresses of the client machine, tftpClient is that of the first client:
// one address may not have many transfers.
const (
	tftpClients = "10.9.2.0/24"
	tftpClient  = "10.9.2.1"
)

// newTFTPLink returns a link with the files in its folder.
func newTFTPLink(b *testing.B) *link {
	b.Helper()
	l := newLink(b)
	l.must("ip", "-n", l.client, "route", "add", "local", tftpClients, "dev", "lo")
	if err := os.Chmod(l.dir, 0o755); err != nil { //nolint:gosec // as TFTP wants it
		b.Fatal(err)
	}
	for name, size := range tftpSizes {
		l.file(name, bytes.Repeat([]byte("boot loader "), size)[:size])
	}
	return l
}

// fetch has clients fetch files, and returns what a file took.
func (s *tftpServer) fetch(o tftpOrder) tftpCost {
	s.link.Helper()
	o.Server = netip.AddrPortFrom(netip.MustParseAddr(serverAddress), 69)
	o.First, o.Size = netip.MustParseAddr(tftpClient), tftpSizes[o.Name]
	in, err := json.Marshal(o)
	if err != nil {
		s.link.Fatal(err)
	}
	program, err := filepath.Abs(os.Args[0])
	if err != nil {
		s.link.Fatal(err)
	}
	cmd := command(s.link.client, program)
	cmd.Env = append(os.Environ(), tftpVariable+"=1")
	var problems bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &problems
	cpu := func() time.Duration { return 0 }
	if s.cpu != nil {
		cpu = s.cpu
	}
	before := cpu()
	out, err := cmd.Output()
	used := cpu() - before
	took, scanned := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil || scanned != nil {
		s.link.Fatalf("fetch from %s: %v: %s", s.name, err, &problems)
	}
	files := time.Duration(o.Clients * o.Files)
	return tftpCost{time.Duration(took) / files, used / files}
}
