package dhcp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/nclient4"

	"ingot/bootsvc/dhcp/lease"
	"ingot/model"
	"ingot/model/must"
)

func relays(listen string) Network {
	return Network{
		Name: "relays", Listen: listen, Role: model.RoleBMC,
		Subnets: []Subnet{{CIDR: netip.MustParsePrefix("127.0.0.0/8"), Ranges: []lease.Range{rangeOf("127.0.9.1-127.0.9.9")}}},
	}
}

func start(t *testing.T, o Options) (s *Server, stop func()) {
	t.Helper()
	s = must.Get(New(o))(t)
	ctx, cancel := context.WithCancel(t.Context())
	must.Do(t, s.Listen(ctx))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
	t.Cleanup(stop)
	return s, stop
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if cond() {
			return
		}
	}
	t.Fatalf("not in time: %s", what)
}

func localAddr(t testing.TB, c *conn) *net.UDPAddr {
	t.Helper()
	return c.LocalAddr().(*net.UDPAddr)
}

// exchange sends a packet as a relay on an unprivileged port would, and returns
// the answer.
func exchange(t *testing.T, to net.Addr, kind dhcpv4.MessageType, mac string, options map[byte]any) *dhcpv4.DHCPv4 {
	t.Helper()
	c, err := net.Dial("udp4", to.String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	all := map[byte]any{82: []byte{19, 0}} // RFC 8357: answer to the port that this came from
	maps.Copy(all, options)
	data := packetOf(t, kind, mac, func(p *dhcpv4.DHCPv4) { p.GatewayIPAddr = net.IP{127, 0, 0, 1} }, all)
	buf, size := make([]byte, maxPacket), 0
	for range 20 { // devices ask again, too
		must.Get(c.Write(data))(t)
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
		if size, err = c.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return must.Get(dhcpv4.FromBytes(buf[:size]))(t)
}

func TestRunThroughARelay(t *testing.T) {
	store := newMemory()
	dora := func(s *Server) string {
		to := localAddr(t, s.networks[0].sockets.v4.Load())
		offer := exchange(t, to, dhcpv4.MessageTypeDiscover, mac1, nil)
		you := netip.AddrFrom4([4]byte(offer.YourIPAddr.To4()))
		ack := exchange(t, to, dhcpv4.MessageTypeRequest, mac1, map[byte]any{50: you, 54: addr("127.0.0.1")})
		if ack.MessageType() != dhcpv4.MessageTypeAck {
			t.Fatalf("got %s", ack.Summary())
		}
		if mac, _ := s.Holder(you); mac != mac1 {
			t.Errorf("%s is held by %q", you, mac)
		}
		return ack.YourIPAddr.String()
	}
	s, stop := start(t, Options{Networks: []Network{relays("127.0.0.1:0")}, Store: store})
	first := dora(s)
	if err := s.Healthy(); err != nil {
		t.Errorf("Healthy: %v", err)
	}
	stop()
	s, _ = start(t, Options{Networks: []Network{relays("127.0.0.1:0")}, Store: store})
	if second := dora(s); second != first {
		t.Errorf("after a restart: %s, before: %s", second, first)
	}
	if diff := cmp.Diff([]model.PoolFacts{{Network: "relays", Subnet: "127.0.0.0/8", Size: 9, Used: 1}}, s.Pools()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A row of machines that is powered on asks at once, and nobody has to ask again.
func TestARowThatAsksAtOnceIsAnswered(t *testing.T) {
	const machines = 48
	row := relays("127.0.0.1:0")
	row.Subnets[0].Ranges = []lease.Range{rangeOf("127.0.9.1-127.0.9.200")}
	s, _ := start(t, Options{Networks: []Network{row}, Store: newMemory()})
	c := must.Get(net.Dial("udp4", localAddr(t, s.networks[0].sockets.v4.Load()).String()))(t)
	defer func() { _ = c.Close() }()
	options := func(n int) map[byte]any { return map[byte]any{82: []byte{19, 0}} }
	for _, kind := range []dhcpv4.MessageType{dhcpv4.MessageTypeDiscover, dhcpv4.MessageTypeRequest} {
		for n := range machines {
			mac := fmt.Sprintf("02:00:00:00:00:%02x", n)
			must.Get(c.Write(packetOf(t, kind, mac, func(p *dhcpv4.DHCPv4) { p.GatewayIPAddr = net.IP{127, 0, 0, 1} }, options(n))))(t)
		}
		given := make(map[string]netip.Addr)
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
		for buf := make([]byte, maxPacket); len(given) < machines; {
			size, err := c.Read(buf)
			if err != nil {
				t.Fatalf("%d of %d are answered a %s, %v", len(given), machines, kind, err)
			}
			p := must.Get(dhcpv4.FromBytes(buf[:size]))(t)
			given[p.ClientHWAddr.String()] = netip.AddrFrom4([4]byte(p.YourIPAddr.To4()))
		}
		options = func(n int) map[byte]any {
			return map[byte]any{82: []byte{19, 0}, 50: given[fmt.Sprintf("02:00:00:00:00:%02x", n)], 54: addr("127.0.0.1")}
		}
	}
	eventually(t, "all have their leases", func() bool { return s.Pools()[0].Used == machines })
}

func TestNothingIsAnsweredBeforeLeasesAreKnown(t *testing.T) {
	store := newMemory()
	store.fail(errAway)
	s, _ := start(t, Options{Networks: []Network{relays("127.0.0.1:0")}, Store: store})
	if err := s.Healthy(); err == nil || !strings.Contains(err.Error(), "not read yet") {
		t.Errorf("Healthy: got %v, want that leases are not read yet", err)
	}
	store.fail(nil)
	exchange(t, localAddr(t, s.networks[0].sockets.v4.Load()), dhcpv4.MessageTypeDiscover, mac1, nil)
}

func TestTheOtherServerOfAProxyIsOnAnotherMachine(t *testing.T) {
	got := listenError(syscall.EADDRINUSE, "eth0", netip.MustParseAddrPort("0.0.0.0:67"), ModeProxy)
	if !strings.Contains(got.Error(), "mode proxy goes with a DHCP server on another machine") || !errors.Is(got, syscall.EADDRINUSE) {
		t.Error(got)
	}
}

func TestListenErrors(t *testing.T) {
	taken := must.Get(net.ListenPacket("udp4", "127.0.0.1:0"))(t)
	defer func() { _ = taken.Close() }()
	for name, tc := range map[string]struct {
		listen, says string
		is           error
	}{
		"a port in use": {
			listen: taken.LocalAddr().String(), says: "address already in use: stop the program that listens there", is: syscall.EADDRINUSE,
		},
		"an address that is not of this machine": {"192.0.2.77:6767", "this machine has no such address", syscall.EADDRNOTAVAIL},
	} {
		t.Run(name, func(t *testing.T) {
			n := relays(tc.listen)
			s, err := New(Options{Networks: []Network{n}})
			if err != nil {
				t.Fatal(err)
			}
			err = s.Listen(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.says) ||
				!errors.Is(err, tc.is) || !strings.Contains(err.Error(), "network relays") {
				t.Errorf("got %v, want one that says %q", err, tc.says)
			}
		})
	}
	for name, err := range map[string]error{"EPERM": syscall.EPERM, "EACCES": syscall.EACCES} {
		t.Run("not permitted, "+name, func(t *testing.T) {
			if got := listenError(err, "eth0", netip.MustParseAddrPort("0.0.0.0:67"), ModeServer).Error(); !strings.Contains(
				got, "CAP_NET_BIND_SERVICE and CAP_NET_RAW",
			) {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestNewRefusesABadConfiguration(t *testing.T) {
	n := hosts()
	n.Role = "switch"
	if _, err := New(Options{Networks: []Network{n}}); err == nil || !strings.Contains(
		err.Error(), `dhcp[0].role: "switch" must be bmc or host`,
	) {
		t.Errorf("got %v", err)
	}
}

func TestFrame4(t *testing.T) {
	f := frame4(
		nil, net.HardwareAddr{2, 0, 0, 0, 0, 1}, net.HardwareAddr{2, 0, 0, 0, 0, 2}, addr("192.0.2.2"), addr("192.0.2.10"), []byte("abc"),
	)
	ip := f[14:34]
	if sum16(0, ip) != 0xffff {
		t.Error("the checksum of the IP header is wrong")
	}
	udp := f[34:]
	if sum16(uint32(sum16(17+uint32(len(udp)), ip[12:])), udp) != 0xffff {
		t.Error("the checksum of UDP is wrong")
	}
	if len(f) != 14+20+8+3 || string(udp[8:]) != "abc" {
		t.Errorf("got % x", f)
	}
}

const inNamespace = "INGOT_DHCP_TEST_NAMESPACE"

func run(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...) //nolint:gosec // the test's own words
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// insideNamespace runs the test that calls it once more, in a network namespace of
// its own, and reports whether this is that run.
func insideNamespace(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inNamespace) != "" {
		return true
	}
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: network namespaces need root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("SKIPPED: network namespaces need the program ip (package iproute2)")
	}
	name := fmt.Sprintf("ingot-dhcp-%d", os.Getpid())
	run(t, "ip", "netns", "add", name)
	defer func() { _ = exec.Command("ip", "netns", "delete", name).Run() }() //nolint:gosec // the test's own words
	args := []string{"netns", "exec", name, os.Args[0], "-test.run=^" + t.Name() + "$", "-test.timeout=100s"}
	cmd := exec.CommandContext(t.Context(), "ip", args...) //nolint:gosec // the test itself
	cmd.Env = append(os.Environ(), inNamespace+"="+name)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("in the namespace: %v\n%s", err, out)
	}
	return false
}

func plug(t *testing.T, name, peer string) {
	t.Helper()
	run(t, "ip", "link", "add", name, "type", "veth", "peer", "name", peer)
	run(t, "ip", "addr", "add", "192.0.2.2/24", "dev", name)
	run(t, "ip", "link", "set", peer, "up")
	run(t, "ip", "link", "set", name, "up")
}

// boots gets a lease as a client without an address does.
func boots(t *testing.T, ifname, mac string, mods ...dhcpv4.Modifier) *nclient4.Lease {
	t.Helper()
	hw, _ := net.ParseMAC(mac)
	c := must.Get(nclient4.New(ifname, nclient4.WithHWAddr(hw), nclient4.WithTimeout(2*time.Second), nclient4.WithRetry(5)))(t)
	defer func() { _ = c.Close() }()
	l, err := c.Request(t.Context(), mods...)
	if err != nil {
		t.Fatalf("%s gets no lease: %v", mac, err)
	}
	return l
}

func TestInterfaces(t *testing.T) {
	if !insideNamespace(t) {
		return
	}
	n := hosts()
	n.Interface = "srv0"
	store := newMemory()
	s, _ := start(t, Options{Networks: []Network{n}, Store: store})
	unhealthy := func(says string) func() bool {
		return func() bool { err := s.Healthy(); return err != nil && strings.Contains(err.Error(), says) }
	}
	healthy := func() bool { return s.Healthy() == nil }

	eventually(t, "a missing interface is said", unhealthy("srv0 does not exist"))
	plug(t, "srv0", "cli0")
	eventually(t, "an interface that came is served", healthy)
	hw, _ := net.InterfaceByName("cli0")
	mac := hw.HardwareAddr.String()
	unicast := boots(t, "cli0", mac)
	broadcast := boots(t, "cli0", mac, dhcpv4.WithBroadcast(true))
	if unicast.ACK.YourIPAddr.String() != "192.0.2.10" || broadcast.ACK.YourIPAddr.String() != "192.0.2.10" {
		t.Errorf("got %s by unicast, %s by broadcast, want 192.0.2.10", unicast.ACK.YourIPAddr, broadcast.ACK.YourIPAddr)
	}
	if s.networks[0].sockets.frames.Load() == nil {
		t.Error("no frame was sent to a client without address: it was broadcast")
	}

	other := n
	other.Name = "other"
	second := must.Get(New(Options{Networks: []Network{other}}))(t)
	if err := second.Listen(t.Context()); err == nil || !strings.Contains(err.Error(), "UDP port 67 of srv0: address already in use") {
		t.Errorf("a second server on port 67: got %v, want an error", err)
	}

	plug2 := other
	plug2.Interface, plug2.Subnets = "srv1", []Subnet{{CIDR: netip.MustParsePrefix("198.51.100.0/24")}}
	run(t, "ip", "link", "add", "srv1", "type", "veth", "peer", "name", "cli1")
	run(t, "ip", "addr", "add", "198.51.100.2/24", "dev", "srv1")
	run(t, "ip", "link", "set", "srv1", "up")
	third := must.Get(New(Options{Networks: []Network{plug2}}))(t)
	if err := third.Listen(t.Context()); err != nil {
		t.Errorf("another interface beside it: %v", err)
	}
	third.Close()

	run(t, "ip", "link", "set", "srv0", "down")
	eventually(t, "an interface that is down is said", unhealthy("srv0 is down"))
	run(t, "ip", "link", "set", "srv0", "up")
	eventually(t, "an interface that is up again is served", healthy)
	boots(t, "cli0", mac)

	run(t, "ip", "link", "delete", "srv0")
	eventually(t, "an interface that went away is said", unhealthy("srv0 does not exist"))
	plug(t, "srv0", "cli0")
	eventually(t, "an interface that came back is served", healthy)
	if again := boots(t, "cli0", mac); again.ACK.YourIPAddr.String() != "192.0.2.10" {
		t.Errorf("got %s, want 192.0.2.10", again.ACK.YourIPAddr)
	}
}

func TestCloseWithoutRun(t *testing.T) {
	s := must.Get(New(Options{Networks: []Network{relays("127.0.0.1:0")}}))(t)
	s.Close() // before Listen there is nothing to close
	must.Do(t, s.Listen(t.Context()))
	at := localAddr(t, s.networks[0].sockets.v4.Load())
	s.Close()
	s.Close()
	c, err := net.ListenPacket("udp4", at.String())
	if err != nil {
		t.Fatalf("the port is not free: %v", err)
	}
	_ = c.Close()
}

func TestWhatANetworkDoes(t *testing.T) {
	type does struct{ Serves, Leases, Boots bool }
	for name, tc := range map[string]struct {
		n    Network
		want does
	}{
		"servers get addresses and boot files": {Network{Role: model.RoleHost, Mode: ModeServer}, does{true, true, true}},
		"so they do when no mode is named":     {Network{Role: model.RoleHost}, does{true, true, true}},
		"BMCs get addresses":                   {Network{Role: model.RoleBMC}, does{true, true, false}},
		"a proxy tells boot files only":        {Network{Role: model.RoleHost, Mode: ModeProxy}, does{true, false, true}},
		"a network that is off does nothing":   {Network{Role: model.RoleHost, Mode: ModeOff}, does{}},
		"neither does one of BMCs that is off": {Network{Role: model.RoleBMC, Mode: ModeOff}, does{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (does{tc.n.Serves(), tc.n.Leases(), tc.n.Boots()}); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestAsk(t *testing.T) {
	if !insideNamespace(t) {
		return
	}
	n := hosts()
	n.Interface = "srv0"
	plug(t, "srv0", "cli0")
	if server, err := Ask(t.Context(), "cli0", 300*time.Millisecond); err != nil || server.IsValid() {
		t.Errorf("nobody answers: got %v, %v", server, err)
	}
	store := newMemory()
	start(t, Options{Networks: []Network{n}, Store: store})
	var server netip.Addr
	var err error
	eventually(t, "a server answers", func() bool {
		server, err = Ask(t.Context(), "cli0", time.Second)
		return err != nil || server.IsValid()
	})
	if want := netip.MustParseAddr("192.0.2.2"); err != nil || server != want {
		t.Errorf("got %v, %v; want %v", server, err, want)
	}
	if leases, err := store.Leases(t.Context()); err != nil || len(leases) != 0 {
		t.Errorf("to ask took an address: %v, %v", leases, err)
	}
	if _, err := Ask(t.Context(), "none0", time.Second); err == nil {
		t.Error("an interface that is not there was asked on")
	}
}
