package inuse

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
)

// How often, and for how long, is asked. Clients ask again after 4 s.
const (
	asks      = 2
	onLink    = 150 * time.Millisecond // for an answer to each
	routed    = 300 * time.Millisecond
	wakeEvery = 500 * time.Millisecond // for a reader to check whether it is to end
)

// Link is a link of this machine.
type Link struct {
	Index int
	MAC   net.HardwareAddr // of this machine's interface
}

// Prober asks. It is safe for concurrent use.
type Prober struct {
	arp   int     // packet socket that hears ARP on all links
	nonce [8]byte // that answers to ICMP bring back
	echo  net.PacketConn
	icmp6 *ipv6.PacketConn // nil where there is no IPv6

	mu      sync.Mutex
	closed  bool
	waiting map[question][]chan string
}

// question is an address that is asked for, on a link, or 0 by an echo.
type question struct {
	link int
	addr netip.Addr
}

// Open returns a Prober. Run is to be called, which closes it.
func Open() (*Prober, error) {
	echo, err := net.ListenPacket("ip4:icmp", "0.0.0.0")
	if err != nil {
		return nil, fmt.Errorf("hear answers to ICMP: %w", err)
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, int(ethARP))
	if err != nil {
		_ = echo.Close()
		return nil, fmt.Errorf("hear ARP: %w", os.NewSyscallError("socket", err))
	}
	timeout := unix.NsecToTimeval(int64(wakeEvery))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
		_, _ = echo.Close(), unix.Close(fd)
		return nil, fmt.Errorf("hear ARP: %w", os.NewSyscallError("setsockopt", err))
	}
	icmp6, err := open6()
	if err != nil {
		_, _ = echo.Close(), unix.Close(fd)
		return nil, err
	}
	p := &Prober{arp: fd, echo: echo, icmp6: icmp6, waiting: make(map[question][]chan string)}
	_, _ = rand.Read(p.nonce[:]) // never fails
	return p, nil
}

// ethARP is the protocol ARP in network order.
var ethARP = binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_ARP))

// Run hears answers until ctx ends. Nobody is asked from then on.
func (p *Prober) Run(ctx context.Context) error {
	var readers sync.WaitGroup
	readers.Go(func() { p.readARP(ctx) })
	readers.Go(func() { p.readEcho() })
	if p.icmp6 != nil {
		readers.Go(p.readICMP6)
	}
	<-ctx.Done()
	err := p.echo.Close()
	if p.icmp6 != nil {
		err = errors.Join(err, p.icmp6.Close())
	}
	readers.Wait()
	return errors.Join(err, p.close())
}

func (p *Prober) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	return unix.Close(p.arp)
}

// InUse reports whether somebody answers for an address, and by which MAC address, "" where that
// cannot be seen. A link without index is behind a router.
func (p *Prober) InUse(addr netip.Addr, link Link) (by string, used bool) {
	q, answered := question{link.Index, addr}, make(chan string, 1)
	p.mu.Lock()
	p.waiting[q] = append(p.waiting[q], answered)
	p.mu.Unlock()
	defer p.forget(q, answered)
	wait := onLink
	if link.Index == 0 {
		wait = routed
	}
	for range asks {
		if p.ask(q, link.MAC) != nil {
			return "", false // there is no way there
		}
		select {
		case by := <-answered:
			return by, true
		case <-time.After(wait):
		}
	}
	return "", false
}

func (p *Prober) forget(q question, answered chan string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := slices.DeleteFunc(p.waiting[q], func(c chan string) bool { return c == answered })
	if p.waiting[q] = left; len(left) == 0 {
		delete(p.waiting, q)
	}
}

// tell tells who waits that somebody answers for an address.
func (p *Prober) tell(q question, by string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.waiting[q] {
		select {
		case c <- by:
		default: // it has an answer
		}
	}
}

func (p *Prober) ask(q question, from net.HardwareAddr) error {
	p.mu.Lock()
	defer p.mu.Unlock() // the descriptor may be another's once it is closed
	switch {
	case p.closed:
		return net.ErrClosed
	case q.addr.Is6():
		return p.ask6(q, from)
	case q.link == 0:
		_, err := p.echo.WriteTo(echoRequest(echoRequest4, p.nonce), &net.IPAddr{IP: q.addr.AsSlice()})
		return err
	}
	to := unix.SockaddrLinklayer{Protocol: ethARP, Ifindex: q.link, Halen: 6, Addr: [8]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}
	return unix.Sendto(p.arp, arpProbe(q.addr, from), unix.MSG_DONTWAIT, &to)
}

// Kinds of ARP (RFC 826), and lengths.
const (
	arpRequest = 1
	arpLength  = 28
)

// arpProbe asks who has an address. Its sender has none, so that nobody's table changes (RFC 5227
// §2.1.1).
func arpProbe(addr netip.Addr, from net.HardwareAddr) []byte {
	b := make([]byte, arpLength)
	binary.BigEndian.PutUint16(b[0:], 1) // Ethernet
	binary.BigEndian.PutUint16(b[2:], unix.ETH_P_IP)
	b[4], b[5] = 6, 4
	binary.BigEndian.PutUint16(b[6:], arpRequest)
	copy(b[8:14], from)
	copy(b[24:], addr.AsSlice())
	return b
}

// arpSender returns who says that an address is its own: by a reply, or by a request with a sender.
func arpSender(b []byte) (mac string, addr netip.Addr, ok bool) {
	if len(b) < arpLength || binary.BigEndian.Uint16(b[0:]) != 1 || binary.BigEndian.Uint16(b[2:]) != unix.ETH_P_IP || b[4] != 6 || b[5] != 4 {
		return "", addr, false
	}
	addr = netip.AddrFrom4([4]byte(b[14:18]))
	return net.HardwareAddr(b[8:14]).String(), addr, !addr.IsUnspecified()
}

// readARP tells of answers on links.
func (p *Prober) readARP(ctx context.Context) {
	buf := make([]byte, 128)
	for ctx.Err() == nil {
		n, from, err := unix.Recvfrom(p.arp, buf, 0)
		at, isLink := from.(*unix.SockaddrLinklayer)
		if err != nil || !isLink || at.Pkttype == unix.PACKET_OUTGOING {
			if err != nil && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
				time.Sleep(10 * time.Millisecond) // such as a link that went down
			}
			continue
		}
		if mac, addr, ok := arpSender(buf[:n]); ok {
			p.tell(question{at.Ifindex, addr}, mac)
		}
	}
}

// Types of ICMP (RFC 792).
const (
	echoReply4   = 0
	echoRequest4 = 8
)

// echoRequest is an echo request of ICMP (RFC 792), or of ICMPv6 (RFC 4443 §4.1), which differ in the type. Its
// answer is told by who sends it.
func echoRequest(request byte, nonce [8]byte) []byte {
	b := append([]byte{request, 0, 0, 0, 0, 0, 0, 0}, nonce[:]...)
	sum := uint32(0)
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	sum = sum>>16 + sum&0xffff // RFC 1071
	binary.BigEndian.PutUint16(b[2:], ^uint16(sum>>16+sum))
	return b
}

// isEchoReply reports whether an ICMP message is the answer, of a type, to echoRequest.
func isEchoReply(b []byte, reply byte, nonce [8]byte) bool {
	const header = 8
	return len(b) == header+len(nonce) && b[0] == reply && bytes.Equal(b[header:], nonce[:])
}

// readEcho tells of answers to ICMP, until the socket is closed.
func (p *Prober) readEcho() {
	buf := make([]byte, 1500)
	for {
		n, from, err := p.echo.ReadFrom(buf)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			time.Sleep(10 * time.Millisecond)
			continue
		}
		p.tellEcho(buf[:n], echoReply4, from)
	}
}

// tellEcho tells of a message that somebody sent, if it is the answer to echoRequest.
func (p *Prober) tellEcho(message []byte, reply byte, from net.Addr) {
	at, isIP := from.(*net.IPAddr)
	if !isIP || !isEchoReply(message, reply, p.nonce) {
		return
	}
	if addr, ok := netip.AddrFromSlice(at.IP); ok {
		p.tell(question{0, addr.Unmap()}, "")
	}
}
