package dhcp

import (
	"net/netip"
	"testing"
	"time"

	"ingot/bootsvc/internal/netnstest"
	"ingot/model"
)

// TestRelaysThatDoNotExistKeepNobodyWaiting: whoever names an address of a subnet as that of a relay has an answer
// sent there, for which the kernel waits three seconds.
func TestRelaysThatDoNotExistKeepNobodyWaiting(t *testing.T) {
	netnstest.Run(t, [][]string{
		{"link", "add", "rack", "type", "veth", "peer", "name", "far"},
		{"address", "add", "10.9.0.1/16", "dev", "rack"},
		{"address", "add", "fe80::1/64", "dev", "rack", "nodad"},
		{"link", "set", "far", "up"},
		{"link", "set", "rack", "up"},
		{"neighbour", "add", "10.9.0.2", "lladdr", "02:00:00:00:00:02", "dev", "rack"},
		{"neighbour", "add", "fe80::2", "lladdr", "02:00:00:00:00:02", "dev", "rack"},
	}, func(func(...string)) {
		subnets := []Subnet{{CIDR: netip.MustParsePrefix("10.9.0.0/16")}, {CIDR: netip.MustParsePrefix("fd09::/64")}}
		s, err := New(Options{
			Networks: []Network{{Name: "rack", Interface: "rack", Role: model.RoleHost, Subnets: subnets}},
			IsThere: func(a netip.Addr) bool {
				return a.WithZone("") == addr("10.9.0.2") || a.WithZone("") == addr("fe80::2") && a.Zone() != ""
			},
		})
		if err == nil {
			err = s.Listen(t.Context())
		}
		if err != nil {
			t.Error(err)
			return
		}
		defer s.Close()
		n := s.networks[0]
		began := time.Now()
		for i, to4, to6 := 0, addr("10.9.1.1"), addr("fe80::1:1"); i < 1000; i, to4, to6 = i+1, to4.Next(), to6.Next() {
			n.sockets.send4(port4Server, netip.AddrPortFrom(to4, port4Server), make([]byte, 300))
			n.sockets.send6(netip.AddrPortFrom(to6, 546), make([]byte, 300))
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("%d answers to nobody took %s", i, took)
				return
			}
		}
		for _, c := range []struct {
			conn *conn
			to   string
		}{{n.sockets.v4.Load(), "10.9.0.2:67"}, {n.sockets.v6.Load(), "[fe80::2]:546"}} {
			if !c.conn.Crowded() {
				t.Errorf("%s: 1000 answers to nobody left", c.to)
			}
			if to := netip.MustParseAddrPort(c.to); !s.isThere(n.sockets.zoned(to.Addr())) || c.conn.Send(make([]byte, 300), nil, to) != nil {
				t.Errorf("%s, who is there, is sent no answer", c.to)
			}
		}
	})
}
