package dhcp

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/insomniacslk/dhcp/dhcpv4"

	"ingot/model"
)

// recorder is told of cards, by goroutines of the server, and keeps a line of each event.
type recorder struct {
	all   chan string
	lines []string
}

func newRecorder() *recorder { return &recorder{all: make(chan string, 100)} }

func (r *recorder) next(t *testing.T) {
	t.Helper()
	select {
	case line := <-r.all:
		r.lines = append(r.lines, line)
	case <-time.After(10 * time.Second):
		t.Fatal("nothing is told for 10 s")
	}
}

func (r *recorder) told(mac string, e model.CardEvent) {
	line := fmt.Sprintf("%s %s %s from %s: %s, %s", mac, e.Protocol, e.Asked, e.From, e.Result, e.Answer)
	if e.Routine {
		line += " (routine)"
	}
	r.all <- line
}

func (r *recorder) want(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, r.lines); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	r.lines = nil
}

func TestWhatIsToldOfACard(t *testing.T) {
	relayed := func(p *dhcpv4.DHCPv4) { p.GatewayIPAddr = net.IP{192, 0, 2, 1} }
	renewing := func(p *dhcpv4.DHCPv4) { p.ClientIPAddr = net.IP{192, 0, 2, 10} }
	with := func(more map[byte]any) map[byte]any {
		all := maps.Clone(firmwares["Dell, BIOS"].options)
		maps.Copy(all, more)
		return all
	}
	eth7 := []byte{1, 4, 'e', 't', 'h', '7'}
	r := newRecorder()
	cfg := hosts()
	cfg.MACDeny = []string{mac3}
	store := newMemory()
	s := testServer(t, Options{
		Networks: []Network{cfg}, Store: store, Tickets: tickets{uuid: discovery()}, Loaders: loaders(t), Told: r.told, Clock: func() time.Time { return t0 },
	})
	say := func(kind dhcpv4.MessageType, mac, from string, change func(*dhcpv4.DHCPv4), options map[byte]any) {
		t.Helper()
		service4{s.networks[0]}.handle4(packetOf(t, kind, mac, change, options), netip.MustParseAddrPort(from), port4Server)
		r.next(t)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.committer.Run(ctx) })
	defer running.Wait()
	defer stop()
	say(dhcpv4.MessageTypeDiscover, mac1, "192.0.2.1:67", relayed, with(map[byte]any{82: eth7}))
	say(dhcpv4.MessageTypeRequest, mac1, "192.0.2.1:67", relayed, with(map[byte]any{82: eth7, 50: addr("192.0.2.10"), 54: addr("192.0.2.2")}))
	say(dhcpv4.MessageTypeRequest, mac1, "192.0.2.10:68", renewing, nil)
	say(dhcpv4.MessageTypeRelease, mac1, "192.0.2.10:68", renewing, nil)
	r.want(t,
		mac1+" DHCPv4 DISCOVER by pxe from hosts, relay 192.0.2.1 port eth7: answered, OFFER 192.0.2.10, boots undionly.kpxe",
		mac1+" DHCPv4 REQUEST by pxe from hosts, relay 192.0.2.1 port eth7: served, ACK 192.0.2.10, boots undionly.kpxe",
		mac1+" DHCPv4 REQUEST from hosts: served, ACK 192.0.2.10 (routine)",
		mac1+" DHCPv4 RELEASE from hosts: answered, released",
	)
	say(dhcpv4.MessageTypeDiscover, mac2, anyone, nil, with(map[byte]any{97: append([]byte{0}, make([]byte, 16)...)}))
	say(dhcpv4.MessageTypeRequest, mac2, anyone, nil, map[byte]any{50: addr("203.0.113.9"), 54: addr("192.0.2.2")})
	say(dhcpv4.MessageTypeDiscover, mac3, anyone, nil, nil)
	say(dhcpv4.MessageTypeDiscover, mac2, "203.0.113.1:68", nil, nil)
	r.want(t,
		mac2+" DHCPv4 DISCOVER by pxe from hosts: answered, OFFER 192.0.2.11, no boot file: no ticket",
		mac2+" DHCPv4 REQUEST from hosts: refused, NAK",
		mac3+" DHCPv4 DISCOVER from hosts: unanswered, macAllow or macDeny keeps it out (routine)",
		mac2+" DHCPv4 DISCOVER from hosts: unanswered, it is on another link, and came by no relay (routine)",
	)
	store.fail(errAway)
	say(dhcpv4.MessageTypeRequest, mac2, anyone, nil, map[byte]any{50: addr("192.0.2.12"), 54: addr("192.0.2.2")})
	r.want(t, mac2+" DHCPv4 REQUEST from hosts: unanswered, the lease could not be stored (routine)")
	for range clientBurst + 1 {
		say(dhcpv4.MessageTypeInform, "02:00:00:00:00:09", anyone, nil, nil)
	}
	r.lines = r.lines[clientBurst:]
	r.want(t, "02:00:00:00:00:09 DHCPv4 INFORM from hosts: limited, more than 8 packets per second (routine)")
}

func TestWhatIsToldOfACard6(t *testing.T) {
	r := newRecorder()
	l := newLab6(t, plain6())
	l.server.told = r.told
	l.says(onLink6, "SOLICIT 000001\n 1 $client"+na6, "ADVERTISE 000001"+ids+given)
	l.lease(mac6)
	l.says(onLink6, "RENEW 000001"+ids+naHas6, "REPLY 000001"+ids+given)
	elsewhere := netip.MustParseAddrPort("[2001:db8::1]:546")
	x, err := l.hear6(l.table("SOLICIT 000001\n 1 $client"+na6), elsewhere, mac6)
	l.drop6(t.Context(), x, elsewhere, err)
	for range 4 {
		r.next(t)
	}
	r.want(t,
		mac6+" DHCPv6 SOLICIT from "+l.Network.Name+": answered, ADVERTISE fd00::10",
		mac6+" DHCPv6 REQUEST from "+l.Network.Name+": served, REPLY fd00::10",
		mac6+" DHCPv6 RENEW from "+l.Network.Name+": served, REPLY fd00::10 (routine)",
		mac6+" DHCPv6 SOLICIT from "+l.Network.Name+": unanswered, it is on another link, and came by no relay (routine)",
	)
}

func TestWhatIsToldOfACardByAProxy(t *testing.T) {
	r := newRecorder()
	cfg := hosts()
	cfg.Mode, cfg.Subnets = ModeProxy, nil
	s := testServer(t, Options{Networks: []Network{cfg}, Tickets: tickets{uuid: discovery()}, Loaders: loaders(t), Told: r.told, Clock: func() time.Time { return t0 }})
	for _, kind := range []dhcpv4.MessageType{dhcpv4.MessageTypeDiscover, dhcpv4.MessageTypeRequest} {
		service4{s.networks[0]}.handle4(packetOf(t, kind, mac1, nil, firmwares["Dell, BIOS"].options), netip.MustParseAddrPort(anyone), port4Server)
		r.next(t)
	}
	r.want(t,
		mac1+" DHCPv4 DISCOVER by pxe from hosts: answered, PROXY OFFER, boots undionly.kpxe",
		mac1+" DHCPv4 REQUEST from hosts: unanswered, it is another server's to answer (routine)",
	)
}
