package dhcp

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"ingot/bootsvc/dhcp/inuse"
	"ingot/bootsvc/dhcp/lease"
	"ingot/model"
)

// neighbours are the devices that answer for addresses.
type neighbours struct {
	macs  map[netip.Addr]string
	all   string // answers for all addresses, "" for nobody
	asked []string
}

func (n *neighbours) InUse(addr netip.Addr, link inuse.Link) (by string, used bool) {
	n.asked = append(n.asked, fmt.Sprintf("%s on %d", addr, link.Index))
	if by, used = n.macs[addr]; !used && n.all != "" {
		return n.all, true
	}
	return by, used
}

// firstAnswer decides about a packet as handle4 does where the link is asked first.
func firstAnswer(t *testing.T, s *Server, data []byte) (a answer4, asked bool) {
	t.Helper()
	n := service4{s.networks[0]}
	p, drop := n.accept4(data, netip.MustParseAddrPort(anyone), port4Server, t0)
	if drop != drop4None {
		t.Fatal(drop)
	}
	a = n.decide4(p, t0)
	if asked = n.asksFirst(a); asked {
		a = n.unused(p, a)
	}
	return a, asked
}

func TestAnAddressThatASilentDeviceUsesIsNotOffered(t *testing.T) {
	const stranger = "02:00:00:00:00:99"
	no := false
	discover := func(t *testing.T, mac string) []byte { return packetOf(t, dhcpv4.MessageTypeDiscover, mac, nil, nil) }
	for name, tc := range map[string]struct {
		others   neighbours
		reserved string // for mac1
		had      bool   // mac1 has 192.0.2.10
		packet   func(t *testing.T) []byte
		change   func(*Network)
		want     string // "" = no address
		asked    bool
	}{
		"nobody uses it":                 {want: "192.0.2.10", asked: true},
		"somebody uses it":               {others: neighbours{macs: map[netip.Addr]string{addr("192.0.2.10"): stranger}}, want: "192.0.2.11", asked: true},
		"somebody behind a router does":  {others: neighbours{macs: map[netip.Addr]string{addr("192.0.2.10"): ""}}, want: "192.0.2.11", asked: true},
		"its own client uses it":         {others: neighbours{macs: map[netip.Addr]string{addr("192.0.2.10"): mac1}}, want: "192.0.2.10", asked: true},
		"all are in use":                 {others: neighbours{macs: map[netip.Addr]string{addr("192.0.2.10"): stranger, addr("192.0.2.11"): "", addr("192.0.2.12"): mac3}}, asked: true},
		"it is reserved, and in use":     {others: neighbours{macs: map[netip.Addr]string{addr("192.0.2.77"): stranger}}, reserved: "192.0.2.77", want: "192.0.2.10", asked: true},
		"the client has it":              {others: neighbours{all: stranger}, had: true, want: "192.0.2.10"},
		"the network is not to be asked": {others: neighbours{all: stranger}, change: func(n *Network) { n.Probe = &no }, want: "192.0.2.10"},
		"a client that asks for what the old server gave it": {
			packet: func(t *testing.T) []byte {
				return packetOf(t, dhcpv4.MessageTypeRequest, mac1, nil, map[byte]any{50: addr("192.0.2.12")})
			},
			want: "192.0.2.12", asked: true,
		},
		"a client that asks for what the old server gave another since": {
			others: neighbours{macs: map[netip.Addr]string{addr("192.0.2.12"): stranger}},
			packet: func(t *testing.T) []byte {
				return packetOf(t, dhcpv4.MessageTypeRequest, mac1, nil, map[byte]any{50: addr("192.0.2.12")})
			},
			asked: true,
		},
		"a client that renews uses it itself": {
			others: neighbours{all: ""},
			packet: func(t *testing.T) []byte {
				return packetOf(t, dhcpv4.MessageTypeRequest, mac1, func(p *dhcpv4.DHCPv4) { p.ClientIPAddr = net.IP{192, 0, 2, 12} }, nil)
			},
			want: "192.0.2.12",
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := hosts()
			if tc.change != nil {
				tc.change(&cfg)
			}
			s := testServer(t, Options{Networks: []Network{cfg}, Prober: &tc.others, Clock: func() time.Time { return t0 }})
			if tc.had {
				leaseTo(t, s, mac1)
			}
			if tc.reserved != "" {
				s.SetReservations([]lease.Reservation{{MAC: mac1, Name: "e", Address: addr(tc.reserved)}})
			}
			data := discover(t, mac1)
			if tc.packet != nil {
				data = tc.packet(t)
			}
			a, asked := firstAnswer(t, s, data)
			got := ""
			if a.reply != nil && !a.reply.nak {
				got = a.reply.yiaddr.String()
			}
			if got != tc.want || asked != tc.asked {
				t.Errorf("got %q, asked %v (%v), want %q, %v", got, asked, tc.others.asked, tc.want, tc.asked)
			}
			for _, l := range leasesOf(s) {
				if l.Declined && l.Expires != t0.Add(10*time.Minute) {
					t.Errorf("set aside until %s", l.Expires)
				}
			}
			if again, asked := firstAnswer(t, s, discover(t, mac1)); tc.want != "" && tc.packet == nil && (asked || again.client != a.client) {
				t.Errorf("asked again: %v, for %s", asked, again.client)
			}
		})
	}
}

// TestADeviceThatAnswersForAllAddressesIsNotBelieved: a router that does proxy ARP would leave nothing.
func TestADeviceThatAnswersForAllAddressesIsNotBelieved(t *testing.T) {
	cfg := hosts()
	cfg.Subnets[0].Ranges = []lease.Range{rangeOf("192.0.2.10-192.0.2.200")}
	s := testServer(t, Options{Networks: []Network{cfg}, Prober: &neighbours{all: "02:00:00:00:00:99"}, Clock: func() time.Time { return t0 }})
	got := 0
	for i := range 20 {
		if a, _ := firstAnswer(t, s, packetOf(t, dhcpv4.MessageTypeDiscover, fmt.Sprintf("02:00:00:00:01:%02x", i), nil, nil)); a.reply != nil {
			got++
		}
	}
	if got != 16 {
		t.Errorf("%d of 20 got an address, want 16: the first four were tried with %d addresses", got, proxyAfter)
	}
}

// TestWhoIsAskedKeepsNobodyWaiting: packets are answered while one waits for its link.
func TestWhoIsAskedKeepsNobodyWaiting(t *testing.T) {
	release := make(chan struct{})
	s := testServer(t, Options{Prober: slow{release}, Clock: func() time.Time { return t0 }})
	n := service4{s.networks[0]}
	n.handle4(packetOf(t, dhcpv4.MessageTypeDiscover, mac1, nil, nil), netip.MustParseAddrPort(anyone), port4Server) // returns
	close(release)
	s.conflicts.asking.Wait()
	if n.asksFirst(answer4{fresh: true, client: addr("192.0.2.10")}) {
		t.Error("the address was not asked for")
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	s.committer.Run(ctx)
}

// slow is a link that takes its time.
type slow struct{ release chan struct{} }

func (s slow) InUse(netip.Addr, inuse.Link) (string, bool) { <-s.release; return "", false }

func leasesOf(s *Server) (all []model.Lease) { all, _ = s.Leases(100); return all }
