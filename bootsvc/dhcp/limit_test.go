package dhcp

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestClientOverLimitIsNotAnswered(t *testing.T) {
	s := testServer(t, Options{Registerer: prometheus.NewRegistry(), Clock: func() time.Time { return t0 }})
	n := service4{s.networks[0]}
	discover := packetOf(t, dhcpv4.MessageTypeDiscover, mac1, nil, nil)
	for range clientBurst + 7 {
		n.handle4(discover, netip.MustParseAddrPort(anyone), port4Server)
	}
	if got := testutil.ToFloat64(s.metrics.dropped.WithLabelValues(n.Name, "4", overClient)); got != 7 {
		t.Errorf("%v packets are dropped, want 7", got)
	}
	if n.isOverLimit(mac2, netip.Addr{}, "", t0) {
		t.Error("another client is limited")
	}
	later := 0
	for range clientBurst {
		if !n.isOverLimit(mac1, netip.Addr{}, "", t0.Add(time.Second)) {
			later++
		}
	}
	if later != clientRate {
		t.Errorf("a second later %d packets are processed, want %d", later, clientRate)
	}
}

func TestLimiterCountsEachTrustedPort(t *testing.T) {
	relay, other := netip.MustParseAddr("192.0.2.5"), netip.MustParseAddr("192.0.2.6")
	for name, tc := range map[string]struct {
		relays []string
		want   bool // the same MAC address behind other ports is limited
	}{
		"trusted relay":   {[]string{"192.0.2.0/24"}, false},
		"untrusted relay": {nil, true},
	} {
		cfg := hosts()
		cfg.Relays = tc.relays
		n := testServer(t, Options{Networks: []Network{cfg}}).networks[0]
		for range clientBurst {
			n.isOverLimit(mac1, relay, "eth1", t0)
		}
		if !n.isOverLimit(mac1, relay, "eth1", t0) {
			t.Errorf("%s: the port itself is not limited", name)
		}
		for _, c := range []client{{relay: relay, port: "eth2"}, {relay: other, port: "eth1"}} {
			if got := n.isOverLimit(mac1, c.relay, c.port, t0); got != tc.want {
				t.Errorf("%s: behind port %s of %s limited is %t, want %t", name, c.port, c.relay, got, tc.want)
			}
		}
	}
}

func TestLimiterForgetsTheLeastRecentClient(t *testing.T) {
	l := newLimiter()
	noisy := client{id: "noisy"}
	for range clientBurst {
		l.allow(noisy, t0)
	}
	for i := range 2 * maxClients {
		l.allow(client{id: fmt.Sprint(i)}, t0)
		if i%(maxClients/2) == 0 && l.allow(noisy, t0) {
			t.Fatal("made-up clients reset the count of a noisy one")
		}
	}
	if n, _ := l.clients.Size(); n != maxClients {
		t.Errorf("%d clients are counted, want %d", n, maxClients)
	}
}
