package dhcp

import (
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"ingot/bootsvc/netboot"
	"ingot/model"
	"ingot/model/must"
)

func booting(t *testing.T, note func(told netboot.Answer)) (to *net.UDPAddr) {
	t.Helper()
	cfg := relays("127.0.0.1:0")
	cfg.Role = model.RoleHost
	s, _ := start(t, Options{
		Networks: []Network{cfg}, Store: newMemory(), Tickets: tickets{mac1: discovery(), mac2: discovery()}, Loaders: loaders(t),
		Site: func(string, netip.Addr) netboot.Site {
			return netboot.Site{HTTP: "http://127.0.0.1:8082", TFTP: addr("127.0.0.1")}
		},
		Note: func(told netboot.Answer, _ netip.Addr) { note(told) },
	})
	return localAddr(t, s.networks[0].sockets.v4.Load())
}

func pxe(wish netip.Addr) map[byte]any {
	return map[byte]any{50: wish, 60: "PXEClient:Arch:00000:UNDI:002001", 93: []byte{0, 0}}
}

func TestAPanicBehindTheStoreEndsNothing(t *testing.T) {
	var panicked atomic.Bool
	to := booting(t, func(told netboot.Answer) {
		if told.MAC == mac1 {
			panicked.Store(true)
			panic("one packet")
		}
	})
	conn := must.Get(net.Dial("udp4", to.String()))(t)
	defer func() { _ = conn.Close() }()
	wish := addr("127.0.9.2")
	must.Get(conn.Write(
		packetOf(t, dhcpv4.MessageTypeRequest, mac1, func(p *dhcpv4.DHCPv4) { p.GatewayIPAddr = net.IP{127, 0, 0, 1} }, pxe(wish)),
	))(t)
	eventually(t, "it panicked", panicked.Load)
	exchange(t, to, dhcpv4.MessageTypeRequest, mac2, pxe(wish.Next()))
}

// Firmware asks for more within a millisecond of its answer, by when what was told has to
// be known.
func TestWhatIsToldIsNotedBeforeItIsSent(t *testing.T) {
	var noted atomic.Bool
	to := booting(t, func(netboot.Answer) {
		time.Sleep(50 * time.Millisecond) // by when an answer would be there
		noted.Store(true)
	})
	exchange(t, to, dhcpv4.MessageTypeRequest, mac1, pxe(addr("127.0.9.2")))
	if !noted.Load() {
		t.Error("it is answered before it is noted")
	}
}

// TestNoOfferWithoutTheStore: the lead has expired, or Redis does not respond, and no lease was tried since.
func TestNoOfferWithoutTheStore(t *testing.T) {
	storable := true
	s := testServer(t, Options{Clock: func() time.Time { return t0 }, Storable: func() bool { return storable }})
	leaseTo(t, s, mac1)
	storable = false
	for mac, want := range map[string]string{mac1: "offer", mac2: "not stored"} {
		if got, _ := hear(t, s, packetOf(t, dhcpv4.MessageTypeDiscover, mac, nil, nil), anyone, port4Server); got.Outcome != want {
			t.Errorf("%s: %s, want %s", mac, got.Outcome, want)
		}
	}
}

func TestWhatCameInWhileNobodyReadIsNotAnswered(t *testing.T) {
	store := newMemory()
	store.fail(errAway)
	s, _ := start(t, Options{Networks: []Network{relays("127.0.0.1:0")}, Store: store})
	c := s.networks[0].sockets.v4.Load()
	c.opened = c.opened.Add(-time.Hour)
	to := must.Get(net.Dial("udp4", localAddr(t, c).String()))(t)
	defer func() { _ = to.Close() }()
	for range 3 {
		must.Get(to.Write(
			packetOf(t, dhcpv4.MessageTypeDiscover, mac1, func(p *dhcpv4.DHCPv4) { p.GatewayIPAddr = net.IP{127, 0, 0, 1} }, nil),
		))(t)
	}
	store.fail(nil)
	eventually(t, "the leases are read", func() bool { return s.loaded.Load() })
	exchange(t, localAddr(t, c), dhcpv4.MessageTypeDiscover, mac2, nil)
	if n := testutil.ToFloat64(s.metrics.packets.WithLabelValues("relays", "4", "discover", "offer")); n != 1 {
		t.Errorf("%v clients have offers, want the one that asks now", n)
	}
}
