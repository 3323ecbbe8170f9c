package lab

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ingot/bmc/sim"
	"ingot/features/internal/rig"
	"ingot/model/must"
)

// hostileRack is a rack beside which somebody else is plugged in, who knows every UUID.
type hostileRack struct {
	*rack
	ingot  *rig.Ingot
	victim rig.SimulatedServer
	other  rig.SimulatedServer
	image  string // that servers may boot
}

// newHostileRack waits until both servers may boot. The rack's own machines reach no boot
// service: those of the test boot in their place.
func newHostileRack(t *testing.T, r *rack, config string) *hostileRack {
	t.Helper()
	facts := r.server.StartRack(t, rig.RackOrder{BMCs: 2, BootURL: "http://127.0.0.1:1", Delays: sim.FastDelays()})
	image := pretendedProbe(t, r.server)
	i := rig.NewIngot(t, r.server, config+fmt.Sprintf("discovery: {image: %q}\n", image))
	i.CommitRack(t, facts)
	i.Start(t)
	for _, s := range facts.Servers {
		i.StatusHas(t, rig.Patience, "servers/"+s.Name+".yaml", "Discovery")
	}
	return &hostileRack{r, i, facts.Servers[0], facts.Servers[1], image}
}

func (r *hostileRack) leased(t *testing.T, relayed bool, mac string) *rig.Namespace {
	t.Helper()
	n := r.host(t, relayed, mac)
	c := newClient(t, udhcpc, n)
	c.start(t)
	c.mustAwait(t)
	return n
}

func (r *hostileRack) static(t *testing.T, relayed bool, mac, address string) *rig.Namespace {
	t.Helper()
	n := r.host(t, relayed, mac)
	n.Address(device, address)
	if relayed {
		n.IP("route", "add", "default", "via", relayAddress)
	}
	return n
}

func (r *hostileRack) scriptURL() string { return rig.BootURL + "/ipxe/" + r.victim.UUID }

// MAC addresses that are no server's; the liar is who pretends to be at another.
const (
	strangersMAC = "52:54:00:77:66:01"
	liarsMAC     = "52:54:00:77:66:02"
)

func wantCode(t *testing.T, from *rig.Namespace, url string, want int) (body string) {
	t.Helper()
	resp, err := from.Web().Get(url)
	if err != nil {
		t.Errorf("%s: %v", url, err)
		return ""
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != want {
		t.Errorf("%s from %s: %s, want %d: %s", url, from.MAC, resp.Status, want, text)
	}
	return string(text)
}

func (r *hostileRack) wantRefused(t *testing.T, words ...string) {
	t.Helper()
	r.ingot.StatusHas(t, rig.Patience, "servers/"+r.victim.Name+".yaml", words...)
}

// TestAHostileNeighbour has somebody ask for a server's script who knows its UUID, on each
// of the networks that a rack may have, while the server itself is served.
func TestAHostileNeighbour(t *testing.T) {
	t.Run("where Ingot leases", func(t *testing.T) {
		t.Parallel()
		r := newHostileRack(t, newRack(t), rackNetwork)
		neighbour := r.leased(t, false, strangersMAC)
		wantCode(t, neighbour, r.scriptURL(), http.StatusForbidden)
		r.wantRefused(t, "BootRefused", "UnknownInterface", strangersMAC, "ingot/mac-addresses")
		wantCode(t, r.leased(t, false, r.other.MAC), r.scriptURL(), http.StatusForbidden)
		r.wantRefused(t, "TicketRefused", r.other.MAC)
		wantCode(t, r.static(t, false, rig.MAC(0x77), "10.77.1.201/24"), r.scriptURL(), http.StatusForbidden)
		victim := r.leased(t, false, r.victim.MAC)
		wantCode(t, victim, r.scriptURL(), http.StatusOK)
		r.pretendsToBe(t, r.leased(t, false, liarsMAC), r.victim.MAC, r.victim.MAC+" answers for it")
		r.livesBeside(t, victim, neighbour)
	})
	t.Run("where Ingot leases by a relay", func(t *testing.T) {
		t.Parallel()
		k := newRack(t)
		k.addRelay(t)
		r := newHostileRack(t, k, rackNetwork)
		neighbour := r.leased(t, true, strangersMAC)
		wantCode(t, neighbour, r.scriptURL(), http.StatusForbidden)
		wantCode(t, r.leased(t, true, r.other.MAC), r.scriptURL(), http.StatusForbidden)
		wantCode(t, r.static(t, true, rig.MAC(0x77), "10.77.2.201/24"), r.scriptURL(), http.StatusForbidden)
		r.wantRefused(t, "BootRefused", "CannotTell", "helper", "Endpoint", strangersMAC, r.other.MAC, "port")
		r.livesBeside(t, r.leased(t, true, r.victim.MAC), neighbour)
	})
	t.Run("beside another DHCP server", func(t *testing.T) {
		rig.Need(t, rig.ToolDnsmasq)
		t.Parallel()
		k := newRack(t)
		besideDnsmasq(t, k, "--dhcp-range=10.77.1.200,10.77.1.210,1h")
		r := newHostileRack(t, k, proxyNetwork)
		neighbour := r.leased(t, false, strangersMAC)
		wantCode(t, neighbour, r.scriptURL(), http.StatusForbidden)
		wantCode(t, r.leased(t, false, r.other.MAC), r.scriptURL(), http.StatusForbidden)
		victim := r.leased(t, false, r.victim.MAC)
		r.pretendsToBe(t, r.leased(t, false, liarsMAC), r.victim.MAC, r.victim.MAC+" answers for it")
		r.livesBeside(t, victim, neighbour)
	})
	t.Run("beside another DHCP server, by a relay to both", func(t *testing.T) {
		rig.Need(t, rig.ToolDnsmasq)
		t.Parallel()
		k := newRack(t)
		k.addRelay(t, "10.77.1.5")
		other := besideDnsmasq(t, k, "--dhcp-range=10.77.2.200,10.77.2.210,255.255.255.0,1h", "--dhcp-option=3,"+relayAddress)
		other.IP("route", "add", "10.77.2.0/24", "via", "10.77.1.2")
		r := newHostileRack(t, k, proxyNetworkRelayed)
		neighbour := r.leased(t, true, strangersMAC)
		wantCode(t, neighbour, r.scriptURL(), http.StatusForbidden)
		wantCode(t, r.leased(t, true, r.other.MAC), r.scriptURL(), http.StatusForbidden)
		wantCode(t, r.static(t, true, rig.MAC(0x77), "10.77.2.111/24"), r.scriptURL(), http.StatusForbidden)
		r.livesBeside(t, r.leased(t, true, r.victim.MAC), neighbour)
	})
	t.Run("without any DHCP", func(t *testing.T) {
		t.Parallel()
		k := newRack(t)
		k.addRelay(t) // which is a router here
		r := newHostileRack(t, k, "")
		neighbour := r.static(t, false, strangersMAC, "10.77.1.101/24")
		wantCode(t, neighbour, r.scriptURL(), http.StatusForbidden)
		wantCode(t, r.static(t, false, r.other.MAC, "10.77.1.102/24"), r.scriptURL(), http.StatusForbidden)
		r.pretendsToBe(t, r.static(t, false, liarsMAC, "10.77.1.104/24"), r.victim.MAC, "a moment ago")
		far := r.static(t, true, r.victim.MAC, "10.77.2.103/24")
		wantCode(t, far, r.scriptURL(), http.StatusForbidden) // nobody sees who that is
		r.ingot.Commit(t, "victim.yaml", rig.Endpoint("victim", r.victim.MAC, "10.77.2.103"))
		rig.Eventually(t, rig.Patience, func() error {
			_, err := far.Get(r.scriptURL())
			return err
		})
		r.livesBeside(t, r.static(t, false, r.victim.MAC, "10.77.1.103/24"), neighbour)
	})
	t.Run("where there is IPv6 alone, by link-local addresses", func(t *testing.T) {
		t.Parallel()
		r := newHostileRack(t, newRack(t), network6)
		r.server.IP("address", "add", "fe80::1/64", "dev", rig.BridgeName, "nodad")
		linkLocal := func(mac, address string) *rig.Namespace {
			n := r.host(t, false, mac)
			n.IP("address", "add", address+"/64", "dev", device, "nodad")
			return n
		}
		script := rig.BootURL6 + "/ipxe/" + r.victim.UUID
		wantCode(t, linkLocal(strangersMAC, "fe80::66"), script, http.StatusForbidden)
		victim := linkLocal(r.victim.MAC, "fe80::77")
		wantCode(t, victim, script, http.StatusOK)
		wantCode(t, victim, rig.BootURL6+"/ignition/"+r.victim.UUID+"/"+strings.Repeat("a", 26), http.StatusForbidden)
		r.wantRefused(t, "BootProgress")
		if status, err := r.ingot.Status("servers/" + r.victim.Name + ".yaml"); err != nil || strings.Contains(status, "TicketRefused") {
			t.Errorf("the server itself is said to be refused: %v\n%s", err, status)
		}
	})
}

const proxyNetworkRelayed = `
dhcp:
- {name: rack, interface: br0, role: host, mode: proxy, subnets: [{cidr: 10.77.2.0/24}]}
`

func besideDnsmasq(t *testing.T, r *rack, options ...string) *rig.Namespace {
	t.Helper()
	other := r.other(t)
	startDnsmasq(t, other, options...)
	return other
}

var (
	configInScript  = regexp.MustCompile(`ignition\.config\.url=(\S+)`)
	tokenForReports = regexp.MustCompile(`(?:/|%2[Ff])r(?:/|%2[Ff])([a-z2-7]{26})`)
)

// patient is how long each step of a life may take: its power and its status are several.
const patient = 3 * rig.Patience

// livesBeside has the victim be discovered, run a claim and be wiped beside somebody who
// asks and reports in its name, and knows all that the victim knows.
func (r *hostileRack) livesBeside(t *testing.T, victim, neighbour *rig.Namespace) {
	t.Helper()
	file := "servers/" + r.victim.Name + ".yaml"
	token := r.boots(t, victim, neighbour, "Discovery")
	r.reports(t, neighbour, token, "register", inventoryOf(neighbour), http.StatusForbidden)
	r.reports(t, victim, token, "register", inventoryOf(victim), http.StatusCreated)
	r.reports(t, neighbour, token, "register", inventoryOf(neighbour), http.StatusForbidden)
	r.wantRefused(t, "TicketRefused", strangersMAC) // for the token was the server's
	r.probeEnds(t)
	r.ingot.StatusHas(t, patient, file, "state: Available")

	r.ingot.Commit(t, "claim.yaml", fmt.Sprintf(claimOfVictim, r.image, r.victim.Name))
	token = r.boots(t, victim, neighbour, "Reserved")
	r.reports(t, victim, token, "bootstate", `"booted": true`, http.StatusOK)
	r.ingot.StatusHas(t, patient, "serverclaims/default/web.yaml", "reason: Booted")

	r.ingot.Remove(t, "claim.yaml")
	token = r.boots(t, victim, neighbour, "Cleanup")
	r.reports(t, neighbour, token, "wipe", `"mode": "quick", "disks": []`, http.StatusForbidden)
	if status := r.ingot.StatusHas(t, patient, file, "state: Cleanup"); strings.Contains(status, "CleanupFailed") {
		t.Errorf("a forged report of a wipe counts:\n%s", status)
	}
	r.reports(t, victim, token, "wipe", `"mode": "quick", "disks": []`, http.StatusCreated)
	r.probeEnds(t)
	r.ingot.StatusHas(t, patient, file, "CleanupFailed") // for it has disks
}

// probeEnds has the victim switch itself off, as a probe does once it has reported.
func (r *hostileRack) probeEnds(t *testing.T) {
	t.Helper()
	must.Do(t, r.server.Meddle("/servers/"+r.victim.Name+"/power-cut"))
}

func inventoryOf(n *rig.Namespace) string {
	return fmt.Sprintf(`"data": {"networkInterfaces": [{"name": "eth0", "macAddress": %q, "carrierStatus": "up"}]}`, n.MAC)
}

const claimOfVictim = `apiVersion: metal.ironcore.dev/v1alpha1
kind: ServerClaim
metadata: {name: web, namespace: default}
spec: {power: "On", image: %q, serverRef: {name: %q}, ignitionSecretRef: {name: web}}
---
apiVersion: v1
kind: Secret
metadata: {name: web, namespace: default}
stringData: {ignition: '{"ignition": {"version": "3.4.0"}}'}
`

// boots has the victim, once it was switched on for what a state boots, fetch its script and
// its Ignition, which somebody else asks for in vain before and after. It returns the token
// to report with.
func (r *hostileRack) boots(t *testing.T, victim, neighbour *rig.Namespace, state string) (token string) {
	t.Helper()
	r.ingot.StatusHas(t, patient, "servers/"+r.victim.Name+".yaml", "state: "+state, `powerState: "On"`)
	var config string
	rig.Eventually(t, patient, func() error {
		script, err := victim.Get(r.scriptURL())
		if found := configInScript.FindStringSubmatch(script); found != nil {
			config = found[1]
			return nil
		}
		return fmt.Errorf("the victim is not served a script that names Ignition: %w: %s", err, script)
	})
	for _, url := range []string{r.scriptURL(), config} {
		wantCode(t, neighbour, url, http.StatusForbidden)
	}
	found := tokenForReports.FindStringSubmatch(wantCode(t, victim, config, http.StatusOK))
	if found == nil {
		t.Fatal("the Ignition has no token to report with")
	}
	wantCode(t, neighbour, config, http.StatusForbidden)
	return found[1]
}

func (r *hostileRack) reports(t *testing.T, from *rig.Namespace, token, what, body string, want int) {
	t.Helper()
	url := "http://" + rig.ServerAddress + ":10000/r/" + token + "/" + what
	resp := must.Get(from.Web().Post(url, "application/json", strings.NewReader(fmt.Sprintf(`{"systemUUID": %q, %s}`, r.victim.UUID, body))))(t)
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != want {
		t.Errorf("%s from %s: %s, want %d: %s", what, from.MAC, resp.Status, want, text)
	}
}

// lockTime is how long the kernel keeps to an entry of its neighbour table whatever
// replies say (net.ipv4.neigh.*.locktime is a second).
const lockTime = 1500 * time.Millisecond

// pretendsToBe has somebody connect under its own MAC address, say that it is at the
// victim's while it asks, and take that back for the answer, which tells what was in doubt.
func (r *hostileRack) pretendsToBe(t *testing.T, neighbour *rig.Namespace, victim, doubt string) {
	t.Helper()
	var conn net.Conn
	must.Do(t, neighbour.Do(func() (err error) {
		conn, err = net.DialTimeout("tcp", rig.ServerAddress+":8082", 5*time.Second)
		return err
	}))
	defer conn.Close()
	own := conn.LocalAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
	time.Sleep(lockTime)
	sayARP(t, neighbour, own, victim)
	rig.Eventually(t, rig.Patience, func() error {
		out, err := r.server.Run(t, rig.Patience, "ip", "neighbour", "show", own.String())
		if err == nil && !strings.Contains(out, victim) {
			sayARP(t, neighbour, own, victim)
			err = fmt.Errorf("the server was not fooled: %s", out)
		}
		return err
	})
	must.Get(fmt.Fprintf(conn, "GET /ipxe/%s HTTP/1.1\r\nHost: boot\r\n\r\n", r.victim.UUID))(t)
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	done := make(chan struct{})
	go func() { // until the answer is there
		for {
			select {
			case <-done:
				return
			case <-time.After(lockTime):
				sayARP(t, neighbour, own, neighbour.MAC)
			}
		}
	}()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	close(done)
	if err != nil {
		t.Fatalf("no answer reaches who pretends: %v", err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusForbidden || !strings.Contains(string(body), doubt) {
		t.Errorf("who pretends to be the victim is answered %s: %s", resp.Status, body)
	}
	r.wantRefused(t, "Contested")
}

func sayARP(t *testing.T, on *rig.Namespace, address netip.Addr, mac string) {
	t.Helper()
	own, _ := net.ParseMAC(on.MAC)
	at, _ := net.ParseMAC(mac)
	broadcast := net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	frame := append(append(append([]byte{}, broadcast...), own...), 0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 2)
	frame = append(append(frame, at...), address.AsSlice()...)
	frame = append(append(frame, broadcast...), address.AsSlice()...)
	err := on.Do(func() error {
		link, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		protocol := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_ARP))
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, int(protocol))
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(fd) }()
		return unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: link.Index, Halen: 6})
	})
	if err != nil {
		t.Errorf("say by ARP that %s is at %s: %v", address, mac, err)
	}
}
