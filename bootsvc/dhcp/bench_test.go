package dhcp

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"

	"ingot/bootsvc/dhcp/lease"
	"ingot/model/must"
)

func writeFile(t testing.TB, dir, name string) {
	t.Helper()
	must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600))
}

// large is a server with a pool of a /16.
func large(b *testing.B) *Server {
	cfg := hosts()
	cfg.Subnets[0].CIDR, cfg.Subnets[0].Gateway = netip.MustParsePrefix("10.0.0.0/16"), netip.Addr{}
	cfg.Subnets[0].Ranges = []lease.Range{rangeOf("10.0.1.0-10.0.255.254")}
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
		n := service4{s.networks[0]}
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

// BenchmarkSARR is the same of DHCPv6: Solicit, Advertise, Request, durable lease, Reply. Clients
// behind a relay that does not say what it saw are known by their DUIDs, others by their MAC addresses.
func BenchmarkSARR(b *testing.B) {
	for name, c := range map[string]struct {
		from    string
		relayed bool
	}{"relayed": {relayed7, true}, "on link": {onLink6, false}} {
		b.Run(name, func(b *testing.B) {
			cfg := hosts()
			cfg.Subnets = []Subnet{subnet6("fd00:6::/64", "fd00:6::1:0", "fd00:6::ffff:ffff")}
			s := testServer(b, Options{Networks: []Network{cfg}, Store: newMemory(), Registerer: prometheus.NewRegistry(), Identity: []byte("identity")})
			s.limiter.rate = rate.Inf
			n := service6{s.networks[0]}
			n.sockets.current.Store(&link{name: "eth0", index: 1, v6: []netip.Prefix{netip.MustParsePrefix("fe80::1/64"), netip.MustParsePrefix("fd00:6::1/64")}})
			ctx, cancel := context.WithCancel(context.Background())
			var wg sync.WaitGroup
			wg.Go(func() { s.committer.Run(ctx) })
			defer wg.Wait()
			defer cancel()
			from, answers := netip.MustParseAddrPort(c.from), make(chan struct{}, 512) // exchanges under way
			client := []byte{0, 3, 0, 1, 2, 0, 0x7a, 0x7a, 0x7a, 0x7a}
			solicit := message6Of(dhcpv6.MessageTypeSolicit, client, nil, c.relayed)
			request := message6Of(dhcpv6.MessageTypeRequest, client, n.duid6(), c.relayed)
			decide := func(packet []byte, i int) (*exchange6, decision6) {
				binary.BigEndian.PutUint32(packet[bytes.Index(packet, client[:6])+6:], uint32(i%50000))
				x, err := n.hear6(bytes.Clone(packet), from, fmt.Sprintf("02:00:00:00:%02x:%02x", i>>8&0xff, i&0xff))
				if err != nil {
					b.Fatal(err)
				}
				d, err := n.decide6(x)
				if err != nil || !d.client(netip.Addr{}).IsValid() {
					b.Fatal(err, d)
				}
				return x, d
			}
			began := cpuTime(b)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				x, d := decide(solicit, i)
				n.answer6(ctx, x, d, from, nil)
				x, d = decide(request, i)
				answers <- struct{}{}
				commitAll6(s.committer, d.leases, func(err error) {
					if err != nil {
						panic(fmt.Sprint(err))
					}
					n.answer6(ctx, x, d, from, nil)
					<-answers
				})
			}
			b.ReportMetric(float64((cpuTime(b)-began).Nanoseconds())/float64(b.N), "cpu-ns/lease")
		})
	}
}

// cpuTime is how long the processors have worked for this process.
func cpuTime(b *testing.B) time.Duration {
	var u unix.Rusage
	must.Do(b, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// message6Of is a message of a client that asks for an address and for DNS servers, by a relay or not.
func message6Of(kind dhcpv6.MessageType, client, server []byte, relayed bool) []byte {
	var b []byte
	if relayed {
		link, peer := netip.MustParseAddr("fd00:6::1").As16(), netip.MustParseAddr("fe80::2").As16()
		b = append(append(append(b, byte(dhcpv6.MessageTypeRelayForward), 0), link[:]...), peer[:]...)
		return appendOption6(b, dhcpv6.OptionRelayMsg, message6Of(kind, client, server, false))
	}
	b = appendOption6(append(b, byte(kind), 1, 2, 3), dhcpv6.OptionClientID, client)
	if server != nil {
		b = appendOption6(b, dhcpv6.OptionServerID, server)
	}
	b = appendOption6(b, dhcpv6.OptionIANA, []byte{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0})
	return appendOption6(b, dhcpv6.OptionORO, []byte{0, byte(dhcpv6.OptionDNSRecursiveNameServer)})
}
