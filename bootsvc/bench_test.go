package bootsvc

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ingot/model/must"
)

// BenchmarkScript and BenchmarkIgnition measure what a request of a fleet with armed
// tickets costs the boot service, beside a bare net/http and text/template handler that
// renders the same text (see fleet_test.go).
func BenchmarkScript(b *testing.B) { benchFleets(b, "script") }

func BenchmarkIgnition(b *testing.B) { benchFleets(b, "ignition") }

// How a fleet is measured: in rounds, in which each server is asked in turn, so that
// what else the machine does hits them alike.
const (
	benchRounds   = 9
	benchRequests = 2000 // of each server in a round
	benchClients  = 8    // at a time
	benchMachines = 64   // that ask, of however large a fleet; of a small one each on several connections
)

// benchServer is a server in a process of its own, whose CPU time is its own too.
type benchServer struct {
	name    string
	fleet   int
	machine []*benchMachine
	control string // says how much CPU time was used
	costs   []time.Duration
}

// benchFleets reports the CPU time of a request: for each fleet beside the bare
// handler's (ratio-bare), and of the largest fleet beside the smallest (flatness).
func benchFleets(b *testing.B, what string) {
	fleets := []int{10, 1000, 10_000}
	var servers []*benchServer
	for _, fleet := range fleets {
		servers = append(servers, startBench(b, "bare", what, fleet), startBench(b, "ingot", what, fleet))
		same(b, servers[len(servers)-2], servers[len(servers)-1])
	}
	for b.Loop() {
		for round := range benchRounds + 1 {
			for _, s := range servers {
				if cost := s.round(b); round > 0 { // the first warms up
					s.costs = append(s.costs, cost)
				}
			}
		}
	}
	for n, fleet := range fleets {
		bare, ingot := servers[2*n], servers[2*n+1]
		b.ReportMetric(micros(ingot.cost()), fmt.Sprintf("cpu-µs/%d", fleet))
		b.ReportMetric(ratio(ingot, bare), fmt.Sprintf("ratio-bare/%d", fleet))
	}
	b.ReportMetric(ratio(servers[5], servers[1]), "flatness")
	b.ReportMetric(ratio(servers[4], servers[0]), "flatness-bare")
	b.ReportMetric(0, "ns/op")
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

func (s *benchServer) cost() time.Duration {
	sorted := slices.Sorted(slices.Values(s.costs))
	return sorted[len(sorted)/2]
}

func ratio(of, to *benchServer) float64 {
	var all []float64
	for n := range of.costs {
		all = append(all, float64(of.costs[n])/float64(to.costs[n]))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// startBench starts this program again as a server, and connects its machines: each has
// an address and a connection of its own, as in a rack.
func startBench(b *testing.B, name, what string, fleet int) *benchServer {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "BOOTSVC_CHILD="+name, "BOOTSVC_WHAT="+what, "BOOTSVC_FLEET="+strconv.Itoa(fleet))
	cmd.Stderr = os.Stderr
	out := must.Get(cmd.StdoutPipe())(b)
	must.Do(b, cmd.Start())
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	s := &benchServer{name: name, fleet: fleet}
	var addr string
	must.Get(fmt.Fscanln(out, &addr, &s.control))(b)
	for n := range benchMachines {
		which := n % fleet
		if fleet > benchMachines {
			which = n * fleet / benchMachines
		}
		s.machine = append(s.machine, connect(b, addr, what, which))
	}
	return s
}

// benchMachine is one machine of a fleet, that asks for its own thing.
type benchMachine struct {
	conn    net.Conn
	in      *bufio.Reader
	request string
}

func connect(b *testing.B, addr, what string, n int) *benchMachine {
	b.Helper()
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(fleetAddr(n), 0))}
	conn := must.Get(d.DialContext(b.Context(), "tcp", addr))(b)
	b.Cleanup(func() { conn.Close() })
	return &benchMachine{conn, bufio.NewReader(conn), "GET " + fleetPath(what, n) + " HTTP/1.1\r\nHost: boot.example\r\n\r\n"}
}

func (m *benchMachine) ask() (string, error) {
	if _, err := io.WriteString(m.conn, m.request); err != nil {
		return "", err
	}
	resp, err := http.ReadResponse(m.in, nil)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s", resp.Status, body)
	}
	return string(body), err
}

func same(b *testing.B, one, other *benchServer) {
	b.Helper()
	for n := range one.machine {
		got, err := one.machine[n].ask()
		if err != nil {
			b.Fatal(err)
		}
		if want, err := other.machine[n].ask(); err != nil || got != want {
			b.Fatalf("%s answers\n%s\n%s answers\n%s\n%v", one.name, got, other.name, want, err)
		}
	}
}

func (s *benchServer) round(b *testing.B) time.Duration {
	b.Helper()
	before := s.cpu(b)
	var clients sync.WaitGroup
	for c := range benchClients {
		clients.Go(func() {
			for n := c; n < benchRequests; n += benchClients { // machines that no other client has
				if _, err := s.machine[n%benchMachines].ask(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	clients.Wait()
	return (s.cpu(b) - before) / benchRequests
}

func (s *benchServer) cpu(b *testing.B) time.Duration {
	b.Helper()
	conn := must.Get(net.Dial("tcp", s.control))(b)
	defer conn.Close()
	text := must.Get(io.ReadAll(conn))(b)
	return must.Get(time.ParseDuration(strings.TrimSpace(string(text))))(b)
}
