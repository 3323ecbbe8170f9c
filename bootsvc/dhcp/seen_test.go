package dhcp

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"ingot/bootsvc/dhcp/lease"
)

func TestWhatTheLogSaysOfAPacket(t *testing.T) {
	relayed := func(p *dhcpv4.DHCPv4) { p.GatewayIPAddr = net.IP{192, 0, 2, 1} }
	port := map[byte]any{50: addr("192.0.2.10"), 82: []byte{1, 4, 'e', 't', 'h', '7'}}
	for name, tc := range map[string]struct {
		kind    dhcpv4.MessageType
		change  func(*dhcpv4.DHCPv4)
		options map[byte]any
		from    string
		want    string
	}{
		"a lease that its device did not have": {
			kind: dhcpv4.MessageTypeRequest, options: map[byte]any{50: addr("192.0.2.10")}, from: anyone,
			want: `level=INFO msg="new lease" network=hosts mac=02:00:00:00:00:01 address=192.0.2.10 until=2026-11-21T11:00:00.000Z`,
		},
		"a lease by a relay": {
			kind: dhcpv4.MessageTypeRequest, change: relayed, options: port, from: "192.0.2.1:67",
			want: `level=INFO msg="new lease" network=hosts mac=02:00:00:00:00:01 address=192.0.2.10 until=2026-11-21T11:00:00.000Z ` +
				`relay=192.0.2.1 port=eth7`,
		},
		"a lease by a relay that has a name": {
			kind: dhcpv4.MessageTypeRequest, change: relayed, from: "192.0.2.1:67",
			options: map[byte]any{50: addr("192.0.2.10"), 82: []byte{1, 2, 0, 7, 2, 3, 's', 'w', '1'}},
			want: `level=INFO msg="new lease" network=hosts mac=02:00:00:00:00:01 address=192.0.2.10 until=2026-11-21T11:00:00.000Z ` +
				`relay=192.0.2.1 port=0007 remote=sw1`,
		},
		"a packet that is dropped": {
			kind: dhcpv4.MessageTypeDiscover, from: "203.0.113.1:68",
			want: `level=DEBUG msg="a DHCP packet is not answered" network=hosts family=4 from=203.0.113.1:68 mac=02:00:00:00:00:01 reason=source`,
		},
		"a packet that has no answer": {
			kind: dhcpv4.MessageTypeRequest, from: anyone,
			want: `level=DEBUG msg="a DHCP packet is not answered" network=hosts family=4 from=0.0.0.0:68 mac=02:00:00:00:00:01 ` +
				`reason="no address named"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			s := testServer(t, Options{Clock: func() time.Time { return t0 }, Log: slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{
				Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
					if a.Key == slog.TimeKey {
						return slog.Attr{}
					}
					return a
				},
			}))})
			service4{s.networks[0]}.handle4(packetOf(t, tc.kind, mac1, tc.change, tc.options), netip.MustParseAddrPort(tc.from), port4Server)
			ctx, stop := context.WithCancel(t.Context())
			stop()
			s.committer.Run(ctx) // stores what waits
			got := said.String()
			if !strings.Contains(got, tc.want+"\n") || strings.Count(got, "new lease")+strings.Count(got, "not answered") != 1 {
				t.Errorf("said:\n%swant:\n%s", got, tc.want)
			}
		})
	}
}

func TestARenewalIsNoNewLease(t *testing.T) {
	var said bytes.Buffer
	n := service4{testServer(t, Options{Log: slog.New(slog.NewTextHandler(&said, nil))}).networks[0]}
	s := n.server
	leaseTo(t, s, mac1)
	said.Reset()
	q := n.query4(packet4{DHCPv4: &dhcpv4.DHCPv4{}, mac: mac1, link: n.sockets.link()}, addr("192.0.2.10"), t0.Add(time.Minute))
	l, _ := s.table.Renewal(q)
	n.logNew(l)
	l.Expires = time.Time{}
	n.logNew(l)
	if said.Len() > 0 {
		t.Errorf("said: %s", said.String())
	}
}

// TestALeaseThatIsAskedForTwiceIsNewOnce: firmware asks again within the second.
func TestALeaseThatIsAskedForTwiceIsNewOnce(t *testing.T) {
	var said bytes.Buffer
	s := testServer(t, Options{Clock: func() time.Time { return t0 }, Log: slog.New(slog.NewTextHandler(&said, nil))})
	ctx, stop := context.WithCancel(t.Context())
	stop()
	for range 2 {
		data := packetOf(t, dhcpv4.MessageTypeRequest, mac1, nil, map[byte]any{50: addr("192.0.2.10")})
		service4{s.networks[0]}.handle4(data, netip.MustParseAddrPort(anyone), port4Server)
		s.committer.Run(ctx) // stores what waits, once
		s.committer = lease.NewCommitter(newMemory(), s.table, nil, s.log)
	}
	if n := strings.Count(said.String(), "new lease"); n != 1 {
		t.Errorf("said %d times:\n%s", n, said.String())
	}
}
