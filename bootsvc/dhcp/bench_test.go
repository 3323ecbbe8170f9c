package dhcp

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// writeFile writes a small file.
func writeFile(t testing.TB, dir, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
		t.Fatal(err)
	}
}

// large is a server with a pool of a /16.
func large(b *testing.B) *Server {
	cfg := hosts()
	cfg.Subnets[0].CIDR, cfg.Subnets[0].Gateway = netip.MustParsePrefix("10.0.0.0/16"), netip.Addr{}
	cfg.Subnets[0].Range = rangeOf("10.0.1.0-10.0.255.254")
	s := testServer(b, Options{Networks: []Network{cfg}, Store: newMemory()})
	s.networks[0].sockets.current.Store(&link{name: "eth0", index: 1, v4: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/16")}})
	return s
}

// packets returns discover and request templates; the MAC address is at byte 28,
// the address asked for at the returned offset.
func packets(b *testing.B) (discover, request []byte, at int) {
	discover = packetOf(b, dhcpv4.MessageTypeDiscover, mac1, nil, map[byte]any{55: pxeAsks})
	request = packetOf(b, dhcpv4.MessageTypeRequest, mac1, nil, map[byte]any{50: addr("10.99.99.99"), 54: addr("10.0.0.1"), 55: pxeAsks})
	for at = 240; string(request[at:at+4]) != "\x0a\x63\x63\x63"; at++ {
	}
	return discover, request, at
}

// BenchmarkDORA is a whole exchange: discover, offer, request, durable lease,
// acknowledgement. The yardstick is what the packets alone cost: parse, reply,
// encode, twice.
func BenchmarkDORA(b *testing.B) {
	from := netip.MustParseAddrPort(anyone)
	b.Run("table", func(b *testing.B) {
		s := large(b)
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		wg.Go(func() { s.committer.Run(ctx) })
		defer wg.Wait()
		defer cancel()
		n := s.networks[0]
		discover, request, at := packets(b)
		answers := make(chan struct{}, 512) // exchanges under way
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			binary.BigEndian.PutUint32(discover[30:], uint32(i%50000))
			binary.BigEndian.PutUint32(request[30:], uint32(i%50000))
			p, _ := n.accept4(discover, from, port4Server, t0)
			a := n.decide4(p, t0)
			_ = a.reply.append(make([]byte, 0, 2048), maxReply4(p))
			you := a.reply.yiaddr.As4()
			copy(request[at:], you[:])
			p, _ = n.accept4(request, from, port4Server, t0)
			a = n.decide4(p, t0)
			if a.lease == nil {
				b.Fatal(a.outcome)
			}
			answers <- struct{}{}
			s.committer.Commit(*a.lease, func(err error) {
				if err != nil {
					panic(fmt.Sprint(err))
				}
				_ = a.reply.append(make([]byte, 0, 2048), maxReply4(p))
				<-answers
			})
		}
	})
	b.Run("yardstick", func(b *testing.B) {
		discover, request, _ := packets(b)
		b.ReportAllocs()
		for b.Loop() {
			for _, data := range [][]byte{discover, request} {
				p, err := dhcpv4.FromBytes(data)
				if err != nil {
					b.Fatal(err)
				}
				r, err := dhcpv4.NewReplyFromRequest(
					p, dhcpv4.WithYourIP(net.IP{10, 0, 0, 9}), dhcpv4.WithNetmask(net.IPMask{255, 255, 0, 0}),
				)
				if err != nil {
					b.Fatal(err)
				}
				_ = r.ToBytes()
			}
		}
	})
}
