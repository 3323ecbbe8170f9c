package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ingot/bootsvc/ignition"
	"ingot/gitsource/gitserver"
	"ingot/model"
	"ingot/model/must"
	"ingot/registry"
)

// goalBootCPU is the CPU time of a request beside that of a bare net/http handler that
// renders the same text.
const goalBootCPU = 1.15

// How the boot service is measured: in rounds, in which each server is asked in turn, so
// that what else the machine does hits them alike.
const (
	bootRounds   = 60
	bootRequests = 800 // of each server in a round
	bootClients  = 8   // at a time
	bootMachines = 64  // that ask, of however large a fleet
)

var bootFleets = []int{10, 1000, 10_000}

// BenchmarkBoot measures, once, what boot scripts and Ignition cost the real daemon of
// fleets with armed tickets, each beside a bare handler, and prints a table. The
// repository is away, as it may be for a while, so the daemon does nothing else.
func BenchmarkBoot(b *testing.B) {
	program := build(b)
	var servers []*bootServer // of each fleet the daemon, the bare handler, and one that sends the daemon's headers
	for _, size := range bootFleets {
		f := seedBoot(b, b.TempDir(), size, model.PinnedImage{
			Ref: "registry.example:5000/os/linux:1", Repository: "registry.example:5000/os/linux",
			Digest: "sha256:" + strings.Repeat("a", 64), Architecture: "amd64",
			Kernel: bootLayer("1"), Initrd: bootLayer("2"), Squashfs: bootLayer("3"),
		})
		daemon := f.serve(b, f.daemon(b, program))
		servers = append(servers, daemon, f.serve(b, f.bare(b, daemon, nil)), f.serve(b, f.bare(b, daemon, bootHeaders())))
	}
	t := &table{TB: b, title: "armed boot tickets"}
	for _, what := range []string{bootScript, bootIgnition} {
		measureBoot(b, servers, what)
		report(t, servers, what)
	}
	t.print(os.Stderr)
	b.ReportMetric(0, "ns/op")
}

func measureBoot(b *testing.B, servers []*bootServer, what string) {
	for _, s := range servers {
		s.costs = nil
		s.connect(b)
	}
	for of := range slices.Chunk(servers, 3) {
		of[0].same(b, of[1], what)
		of[0].same(b, of[2], what)
	}
	for round := range bootRounds + 1 {
		for _, s := range servers {
			if cost := s.round(b, what); round > 0 {
				s.costs = append(s.costs, cost)
			}
		}
	}
}

func report(t *table, servers []*bootServer, what string) {
	for i, size := range bootFleets {
		daemon, bare, headed := servers[3*i], servers[3*i+1], servers[3*i+2]
		t.duration(fmt.Sprintf("CPU of a request for %s, %d tickets", what, size), daemon.total()/bootRounds, none, bare.total()/bootRounds)
		t.number("  its ratio", daemon.over(bare), goalBootCPU, none)
		t.number("  likewise, beside one that sends the same headers", daemon.over(headed), none, none)
	}
	last := len(servers) - 3
	t.number("  most tickets to fewest", servers[last].over(servers[0]), none, servers[last+1].over(servers[1]))
}

// What machines ask for.
const (
	bootScript   = "the script"
	bootIgnition = "Ignition"
)

// bootFleet is a fleet of servers that each have an armed ticket.
type bootFleet struct {
	dir      string // the daemon's state
	servers  []bootMachine
	ignition string // of the first
}

// bootMachine is a server of the fleet, which asks.
type bootMachine struct{ UUID, Token string }

func (m bootMachine) path(what string) string {
	if what == bootScript {
		return "/ipxe/" + m.UUID
	}
	return "/ignition/" + m.UUID + "/" + m.Token
}

// seedBoot writes the records of a fleet, as the daemon leaves them behind. The machines
// that ask were seen to fetch their kernels: who never does is not sent round for long.
func seedBoot(b *testing.B, dir string, size int, image model.PinnedImage) *bootFleet {
	b.Helper()
	must.Do(b, os.MkdirAll(dir, 0o700))
	f := &bootFleet{dir: dir}
	sealKey := must.Get(registry.LoadSealKey(filepath.Join(f.dir, "seal.key"), true))(b)
	records := must.Get(registry.Open(b.Context(), registry.Options{Dir: f.dir, SealKey: sealKey}))(b)
	defer records.Close()
	compiler := must.Get(ignition.New(ignition.Options{}))(b)
	changes := registry.Changes{Fleet: &model.FleetRecord{Applied: model.Applied{Branch: "seeded"}, Sequence: 1}}
	var tickets []*model.Ticket
	for n := range size {
		t := bootTicket(n, image)
		tickets = append(tickets, t)
		f.servers = append(f.servers, bootMachine{t.UUID, records.TokenKey.Config(t, 0).Reveal()})
		changes.Servers = append(changes.Servers, &model.ServerRecord{
			RecordIdentity: model.RecordIdentity{Name: t.Server, BMC: model.BMCName(t.Server), UUID: t.UUID, MACs: []model.ServerMAC{{Address: bootMAC(n), IdentifiedBy: model.MACByBMC}}},
			Life:           model.RecordLife{State: model.StateReserved, Since: t.ArmedAt},
			Claim:          model.RecordClaim{Name: t.Claim},
			Boot:           model.RecordBoot{Ticket: t},
		})
		changes.ServerFacts = append(changes.ServerFacts, &model.ServerFacts{
			Name: t.Server, Power: model.PowerOn,
			Inventory: &model.Inventory{
				UUID: t.UUID, NetworkInterfaces: []model.NetworkInterface{{Name: "eth0", MACAddress: bootMAC(n)}},
			},
		})
	}
	must.Do(b, records.Save(b.Context(), changes))
	inParallel(b, size, func(n int) error {
		payload, err := compiler.ForClaim(ignition.ClaimBoot{
			UUID: tickets[n].UUID, BootStateURL: "http://boot.example:10000/r/" + f.servers[n].Token + "/bootstate",
		})
		if err != nil {
			return err
		}
		if n == 0 {
			f.ignition = payload.Reveal()
		}
		return records.Save(b.Context(), registry.Changes{Payloads: map[string]model.Sensitive{tickets[n].ID: payload}})
	})
	asking := f.asking()
	inParallel(b, len(asking), func(n int) error {
		for _, stage := range []model.BootStage{model.StageScript, model.StageKernel} {
			if err := records.Boots.Note(b.Context(), tickets[asking[n]], stage, netip.Addr{}); err != nil {
				return err
			}
		}
		return nil
	})
	return f
}

func bootTicket(n int, image model.PinnedImage) *model.Ticket {
	name := model.ServerName(fmt.Sprint("server-", n))
	armed := time.Now()
	return &model.Ticket{
		ID: fmt.Sprintf("%s/1/%d", name, armed.Unix()), Server: name,
		UUID: fmt.Sprintf("4c4c4544-0042-3510-8054-%012x", n), Purpose: model.PurposeClaim,
		Claim: model.ClaimName("default/" + string(name)), ArmedAt: armed, Image: image,
	}
}

// bootLayer is a layer that no machine asks for.
func bootLayer(digit string) *model.Layer {
	return &model.Layer{Digest: "sha256:" + strings.Repeat(digit, 64), Size: 1 << 20}
}

func bootMAC(n int) string { return fmt.Sprintf("02:00:00:00:%02x:%02x", n>>8, n&255) }

// inParallel does things side by side: what is written at the same time is committed
// together.
func inParallel(b *testing.B, count int, do func(n int) error) {
	b.Helper()
	var wg sync.WaitGroup
	for from := range bootMachines {
		wg.Go(func() {
			for n := from; n < count; n += bootMachines {
				if err := do(n); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if b.Failed() {
		b.FailNow()
	}
}

func (f *bootFleet) asking() []int {
	count := min(bootMachines, len(f.servers))
	all := make([]int, count)
	for n := range all {
		all[n] = n * len(f.servers) / count
	}
	return all
}

// daemon is the program with the fleet's records. Its repository has nothing: without
// any, the daemon would not know that its records are the newest, and serve nothing.
func (f *bootFleet) daemon(b *testing.B, program string) *exec.Cmd {
	b.Helper()
	repo := must.Get(gitserver.New(f.dir, "fleet"))(b)
	must.Get(repo.Commit(map[string]string{"README.md": "the fleet\n"}, "begin"))(b)
	cmd := exec.Command(program, "run")
	cmd.Env = append(os.Environ(),
		"INGOT_GIT_URL="+repo.URL(), "INGOT_STATE_DIR="+f.dir,
		"INGOT_BOOT_LISTEN=127.0.0.1:0", "INGOT_REGISTRY_LISTEN=127.0.0.1:0", "INGOT_ADMIN_LISTEN=127.0.0.1:0",
		"INGOT_BOOT_BIND_TICKETS=nothing", // on loopback nobody can be told apart
	)
	return cmd
}

func (f *bootFleet) bare(b *testing.B, daemon *bootServer, headers map[string]http.Header) *exec.Cmd {
	b.Helper()
	script := must.Get(connectBoot(b, daemon.address, f.servers[0]).ask(bootScript))(b)
	// to ask for Ignition would end the script
	order := bareOrder{Pages: map[string]string{bootScript: script, bootIgnition: f.ignition}, Headers: headers}
	for _, m := range f.servers {
		order.Machines = append(order.Machines, bareFields(m))
	}
	in := must.Get(json.Marshal(order))(b)
	cmd := exec.Command(os.Args[0]) //nolint:gosec // this program
	cmd.Env = append(os.Environ(), bareVariable+"=1")
	cmd.Stdin = bytes.NewReader(in)
	return cmd
}

// bootServer is a server in a process of its own.
type bootServer struct {
	fleet       *bootFleet
	process     int
	address     string
	connections []*bootConnection
	costs       []time.Duration // of a request, by round
}

func (f *bootFleet) serve(b *testing.B, cmd *exec.Cmd) *bootServer {
	b.Helper()
	stderr := must.Get(cmd.StderrPipe())(b)
	must.Do(b, cmd.Start())
	found, log := make(chan []string, 1), &tail{}
	var reading sync.WaitGroup
	reading.Go(func() { log.read(stderr, found) })
	b.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
		reading.Wait()
		_ = cmd.Wait() // the yardstick knows no signals
		if b.Failed() {
			b.Errorf("%s said last:\n%s", cmd, strings.Join(log.lines, "\n"))
		}
	})
	at := <-found
	if at == nil {
		b.Fatalf("%s did not begin to listen", cmd)
	}
	return &bootServer{fleet: f, process: cmd.Process.Pid, address: at[1]}
}

// connect connects the machines that ask. Who connects and asks for nothing is soon cut
// off.
func (s *bootServer) connect(b *testing.B) {
	b.Helper()
	asking := s.fleet.asking()
	s.connections = nil
	for n := range bootMachines {
		s.connections = append(s.connections, connectBoot(b, s.address, s.fleet.servers[asking[n%len(asking)]]))
	}
}

func (s *bootServer) same(b *testing.B, other *bootServer, what string) {
	b.Helper()
	for n := range s.connections {
		got, err := s.connections[n].ask(what)
		if err != nil {
			b.Fatal(err)
		}
		if want, err := other.connections[n].ask(what); err != nil || got != want {
			b.Fatalf("one answers\n%s\nthe other answers\n%s\n%v", got, want, err)
		}
	}
}

func (s *bootServer) round(b *testing.B, what string) time.Duration {
	b.Helper()
	before := processCPU(b, s.process)
	var clients sync.WaitGroup
	for c := range bootClients {
		clients.Go(func() {
			for n := c; n < bootRequests; n += bootClients { // connections that no other client has
				if _, err := s.connections[n%bootMachines].ask(what); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	clients.Wait()
	return (processCPU(b, s.process) - before) / bootRequests
}

// over compares what two servers took for all rounds. Rounds are short, so that what slows the
// machine down slows both, and those in which a server collects its garbage count, too.
func (s *bootServer) over(other *bootServer) float64 {
	return float64(s.total()) / float64(other.total())
}

func (s *bootServer) total() (sum time.Duration) {
	for _, cost := range s.costs {
		sum += cost
	}
	return sum
}

func processCPU(tb testing.TB, pid int) time.Duration {
	tb.Helper()
	var used unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|2), &used); err != nil { // clock_getcpuclockid(3)
		tb.Fatal(err)
	}
	return time.Duration(used.Nano())
}
