package dhcp

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func behind(relay, port string) (change func(*dhcpv4.DHCPv4), options map[byte]any) {
	return func(p *dhcpv4.DHCPv4) { p.GatewayIPAddr = addr(relay).AsSlice() }, map[byte]any{82: append([]byte{1, byte(len(port))}, port...)}
}

func TestWhoSendsTooMuchIsNotAnswered(t *testing.T) {
	s := testServer(t, Options{})
	dropped := 0
	for range 2 * DefaultClientRate * limitWindow {
		if got, _ := hear(t, s, packetOf(t, dhcpv4.MessageTypeDiscover, mac1, nil, nil), anyone, port4Server); got.Drop == overClient {
			dropped++
		}
	}
	if dropped != DefaultClientRate*limitWindow {
		t.Errorf("%d packets were dropped, want %d", dropped, DefaultClientRate*limitWindow)
	}
	hear(t, s, packetOf(t, dhcpv4.MessageTypeDiscover, mac3, nil, nil), anyone, port4Server)
	if over, later := s.limits.clients.limited(t0), s.limits.clients.limited(t0.Add(limitWindow*time.Second)); over != 1 || later != 0 {
		t.Errorf("%d are over their limit, and later %d", over, later)
	}
	n := s.networks[0]
	if n.overLimit(mac2, netip.Addr{}, "", t0) != "" || n.overLimit(mac1, netip.Addr{}, "", t0.Add(limitWindow*time.Second)) != "" {
		t.Error("another device, or the same later, is held back")
	}
}

func TestAPortOfARelayCannotStarveTheOthers(t *testing.T) {
	network := func(relays ...string) Network {
		n := hosts()
		n.Relays, n.RateLimit = relays, RateLimit{Client: 2, Port: 4}
		return n
	}
	for title, tc := range map[string]struct {
		network Network
		port    string
		want    map[string]int // how many of the packets of all ports are dropped, and why
	}{
		"a port with many MAC addresses is held back":     {network("192.0.2.5"), "eth1", map[string]int{overPort: 30}},
		"a port that the relay does not tell is not":      {network("192.0.2.5"), "", map[string]int{}},
		"nor one that nothing but the packet speaks for":  {network(), "eth1", map[string]int{}},
		"nor one of a relay that may not send from there": {network("192.0.2.6"), "eth1", map[string]int{"untrusted": 51}},
	} {
		t.Run(title, func(t *testing.T) {
			s := testServer(t, Options{Networks: []Network{tc.network}})
			got := map[string]int{}
			discover := func(mac, port string) {
				change, options := behind("192.0.2.5", port)
				if port == "" {
					delete(options, 82)
				}
				_, drop := s.networks[0].accept4(packetOf(t, dhcpv4.MessageTypeDiscover, mac, change, options), netip.MustParseAddrPort("192.0.2.5:67"), port4Server, t0)
				if drop != drop4None {
					got[string(drop)]++
				}
			}
			for i := range 50 {
				discover(fmt.Sprintf("02:00:00:00:01:%02x", i), tc.port)
			}
			discover(mac1, "eth2")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("dropped (-want +got):\n%s", diff)
			}
		})
	}
}

// A device that shows the MAC address of another port's uses up none of what that one may send.
func TestAMACAddressIsCountedForEachPort(t *testing.T) {
	cfg := hosts()
	cfg.Relays = []string{"192.0.2.5"}
	n := testServer(t, Options{Networks: []Network{cfg}}).networks[0]
	relay := netip.MustParseAddr("192.0.2.5")
	for range DefaultClientRate * limitWindow {
		n.overLimit(mac1, relay, "eth1", t0)
	}
	if got := n.overLimit(mac1, relay, "eth1", t0); got != overClient {
		t.Errorf("one that sends too much is over %q", got)
	}
	for _, port := range []string{"eth2", ""} {
		if got := n.overLimit(mac1, relay, port, t0); got != "" {
			t.Errorf("behind port %q it is over %q", port, got)
		}
	}
	if got := n.overLimit(mac1, netip.MustParseAddr("192.0.2.6"), "eth1", t0); got != "" {
		t.Errorf("behind another relay it is over %q", got)
	}
}

// Over IPv6 a port is the relay's interface ID (RFC 8415 §21.18).
func TestAPortOfARelayIsLimited6(t *testing.T) {
	cfg := plain6()
	cfg.Relays, cfg.RateLimit = []string{"fd00:9::2"}, RateLimit{Port: 1}
	l := newLab6(t, cfg)
	solicit := func(i int, port string) error {
		_, err := l.ask(l.table(relayed6(fmt.Sprintf("SOLICIT 000001\n 1 0003 0001 5254001200%02x", i)+na6, "RELAY-FORW 00 fd00::1 fe80::2\n    18 "+port)), relayed7)
		return err
	}
	for i := range limitWindow {
		if err := solicit(i, "01"); err != nil {
			t.Errorf("packet %d: %v", i, err)
		}
	}
	if err := solicit(99, "01"); !errors.Is(err, drop6(overPort)) {
		t.Errorf("one packet more: %v", err)
	}
	if err := solicit(99, "02"); err != nil {
		t.Errorf("on another port: %v", err)
	}
}

func TestTheLimiterHasAFixedNumberOfPlaces(t *testing.T) {
	l, now := newLimiter(), t0.Add(time.Second)
	noisy := sender{mac: "noisy"}
	var sameSet []sender
	for i := 0; len(sameSet) < 2*limitWays-1; i++ {
		if s := (sender{mac: fmt.Sprint(i)}); l.hash(s)%limitSets == l.hash(noisy)%limitSets {
			sameSet = append(sameSet, s)
		}
	}
	for _, s := range sameSet[:limitWays] { // all places are taken
		l.allow(s, 1, t0)
	}
	for range limitWindow {
		l.allow(noisy, 1, now)
	}
	for _, s := range sameSet[limitWays:] { // each takes the place that was begun longest ago
		l.allow(s, 1, now)
	}
	if l.allow(noisy, 1, now) {
		t.Error("others make room for one that sends too much, though there were older ones")
	}
	if !l.allow(noisy, 1, t0) {
		t.Error("with a clock that was put back it is held back")
	}
}

func TestLimitsAreShown(t *testing.T) {
	cfg := hosts()
	cfg.RateLimit = RateLimit{Client: 1}
	reg := prometheus.NewRegistry()
	s := testServer(t, Options{Networks: []Network{cfg}, Registerer: reg, Clock: func() time.Time { return t0 }})
	for range limitWindow + 1 {
		s.networks[0].handle4(packetOf(t, dhcpv4.MessageTypeDiscover, mac1, nil, nil), netip.MustParseAddrPort(anyone), port4Server)
	}
	if got := testutil.ToFloat64(s.metrics.dropped.WithLabelValues(cfg.Name, "4", overClient)); got != 1 {
		t.Errorf("%v packets are dropped", got)
	}
	for labels, want := range map[string]float64{"client": 1, "port": DefaultPortRate} {
		if got := testutil.ToFloat64(s.metrics.rates.WithLabelValues(cfg.Name, labels)); got != want {
			t.Errorf("the limit of a %s is %v, want %v", labels, got, want)
		}
	}
	clients, ports := limitedGauges(s.limits, s.clock)
	if c, p := testutil.ToFloat64(clients), testutil.ToFloat64(ports); c != 1 || p != 0 {
		t.Errorf("%v clients and %v ports are limited", c, p)
	}
}
