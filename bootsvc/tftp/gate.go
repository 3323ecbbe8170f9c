package tftp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

// Bounds of the transfers under way.
const (
	maxTransfers = 1024
	maxPerClient = 16 // more than one machine may ask from behind one address

	// maxUnanswered is how often the library may want to repeat its first packet to a
	// client that is silent, until the transfer is given up.
	maxUnanswered = 5
	// restartAfter is after how much silence a client that repeats its request has
	// begun anew, rather than the network repeated it.
	restartAfter = 3 * time.Second
)

// Errors that end a transfer.
var (
	errSilent  = errors.New("the client acknowledges nothing")
	errStopped = errors.New("the server stops")
	errOver    = errors.New("the transfer is over")
)

// gate is the socket that the library reads and writes. Every packet passes here,
// so here is decided which of them belong to a transfer. It is a net.PacketConn.
//
// The library knows transfers by their clients' addresses, and firmware begins the
// next transfer at the same port before the library is done with the one before.
// So the gate puts a number of its own where an address has its zone: to the
// library each transfer is another client.
type gate struct {
	*net.UDPConn
	metrics metrics
	clock   func() time.Time

	mu      sync.Mutex
	stopped bool
	number  uint64
	current map[netip.AddrPort]*transfer // by the client's address, without IPv4 in IPv6
	clients map[netip.Addr]int           // transfers of each, until the library is done with them
	all     map[string]*transfer         // by number, until the library is done with them
}

// transfer is one file on its way to one client. The gate's lock guards it.
type transfer struct {
	number  string
	client  netip.AddrPort // as the socket has it
	control []byte         // control message that makes answers come from where the request went
	request []byte         // as it came
	block   int            // bytes of a block
	heard   time.Time      // when the client last acknowledged

	first     []byte // the packet that the client has not acknowledged yet, until it acknowledges one
	swallowed int    // repetitions of first that were kept back
	waiting   bool   // for the acknowledgement of count
	count     uint16 // of the block that was last sent; 0 with options
	data      bool   // that is a block of the file
	last      bool   // it is the last

	confirmed bool // the client acknowledged something: its address is its own
	delivered bool // it has the first block
	done      bool // it has the last
	declined  bool // it sent an error
	ending    bool // the library is about to send its last packet, an error
}

func newGate(conn *net.UDPConn, m metrics, clock func() time.Time) *gate {
	return &gate{
		UDPConn: conn, metrics: m, clock: clock,
		current: make(map[netip.AddrPort]*transfer),
		clients: make(map[netip.Addr]int),
		all:     make(map[string]*transfer),
	}
}

// LocalAddr implements net.PacketConn. The library cannot read a zone.
func (g *gate) LocalAddr() net.Addr {
	addr := *g.UDPConn.LocalAddr().(*net.UDPAddr)
	addr.Zone = ""
	return &addr
}

// ReadFrom implements net.PacketConn: it returns the next packet that belongs.
func (g *gate) ReadFrom(p []byte) (int, net.Addr, error) {
	var control [128]byte
	for {
		n, controlled, _, client, err := g.ReadMsgUDPAddrPort(p, control[:])
		if err != nil {
			var timeout net.Error
			if !errors.As(err, &timeout) || !timeout.Timeout() {
				time.Sleep(10 * time.Millisecond) // the library asks again at once
			}
			return 0, nil, err
		}
		if n, number := g.admit(p, n, client, control[:controlled]); n > 0 {
			return n, &net.UDPAddr{IP: client.Addr().AsSlice(), Port: int(client.Port()), Zone: number}, nil
		}
	}
}

// admit returns how many bytes of p the library is to see, and of which transfer; 0
// = the packet was dealt with. A request is rewritten.
func (g *gate) admit(p []byte, n int, client netip.AddrPort, control []byte) (int, string) {
	if n < 4 {
		return 0, ""
	}
	packet, now := p[:n], g.clock()
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.current[plain(client)]
	switch asks := binary.BigEndian.Uint16(packet) == opRead; {
	case asks && !t.goesOn(packet, now):
		return g.begin(p, n, client, control, now)
	case asks && t.first != nil:
		t.swallowed = 0
		_, _ = g.send(t.first, t.client, t.control)
	case asks:
	case t == nil:
		g.refuse(packet, client, control)
	case t.belongs(packet, now):
		return n, t.number
	}
	return 0, ""
}

// goesOn reports whether the transfer goes on after its client sent a read request:
// when it is the same again, before there is anything to begin anew for.
func (t *transfer) goesOn(request []byte, now time.Time) bool {
	return t != nil && !t.done && !t.declined && bytes.Equal(request, t.request) &&
		(!t.confirmed || now.Sub(t.heard) < restartAfter)
}

// belongs reports whether packet is what the transfer waits for, and notes it.
func (t *transfer) belongs(packet []byte, now time.Time) bool {
	switch binary.BigEndian.Uint16(packet) {
	case opAcknowledge:
		if !t.waiting || binary.BigEndian.Uint16(packet[2:]) != t.count {
			return false
		}
		// the library takes one at a time: a second of the same block would be in
		// the way of the next block's
		t.waiting, t.confirmed, t.first, t.heard = false, true, nil, now
		t.delivered, t.done = t.delivered || t.data, t.last
		return true
	case opError:
		if len(packet) < 5 || t.declined {
			return false
		}
		t.declined = true
		return true
	}
	return false
}

// refuse answers a packet that belongs to no transfer.
func (g *gate) refuse(packet []byte, client netip.AddrPort, control []byte) {
	if binary.BigEndian.Uint16(packet) != opWrite {
		return // the end of a transfer that is over
	}
	g.metrics.requests.WithLabelValues(resultRefused).Inc()
	_, _ = g.send(errorPacket(codeReadOnly, "files are only read here"), client, answerFrom(control, client.Addr()))
}

// begin lets a read request in as a new transfer.
func (g *gate) begin(p []byte, n int, client netip.AddrPort, control []byte, now time.Time) (int, string) {
	r, ok := parseRead(p[:n])
	at := plain(client)
	switch {
	case !ok:
		g.metrics.requests.WithLabelValues(resultRefused).Inc()
		return 0, ""
	case g.stopped || len(g.all) >= maxTransfers || g.clients[at.Addr()] >= maxPerClient:
		// without an answer the client asks again in a while
		g.metrics.requests.WithLabelValues(resultBusy).Inc()
		return 0, ""
	}
	g.number++
	granted := r.blockFor(client.Addr())
	t := &transfer{
		number: strconv.FormatUint(g.number, 10), client: client, control: answerFrom(control, client.Addr()),
		request: bytes.Clone(p[:n]), block: max(granted, defaultBlock), heard: now,
	}
	g.current[at], g.all[t.number] = t, t
	g.clients[at.Addr()]++
	return r.pack(p, cleanName(r.name), granted), t.number
}

// forget ends a transfer that the library is done with.
func (g *gate) forget(number string) {
	t := g.all[number]
	if t == nil {
		return
	}
	delete(g.all, number)
	at := plain(t.client)
	if g.current[at] == t {
		delete(g.current, at)
	}
	if g.clients[at.Addr()]--; g.clients[at.Addr()] <= 0 {
		delete(g.clients, at.Addr())
	}
}

// WriteTo implements net.PacketConn. A client that has acknowledged nothing is not
// sent the same packet twice, unless it asks twice: the address may be forged.
func (g *gate) WriteTo(p []byte, addr net.Addr) (int, error) {
	udp, ok := addr.(*net.UDPAddr)
	if !ok || len(p) < 4 {
		return 0, errors.New("not a TFTP packet")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.all[udp.Zone]
	if t != nil && t.ending {
		defer g.forget(t.number)
	}
	switch {
	case t == nil || g.current[plain(t.client)] != t:
		return 0, errOver // its client has begun another one
	case t.declined:
		return len(p), nil
	case g.stopped:
		return 0, errStopped
	case !t.confirmed && t.first != nil:
		if t.swallowed++; t.swallowed > maxUnanswered {
			return 0, errSilent
		}
		return len(p), nil
	}
	t.sends(p)
	return g.send(p, t.client, t.control)
}

// sends notes what the client is to acknowledge next.
func (t *transfer) sends(p []byte) {
	switch binary.BigEndian.Uint16(p) {
	case opData:
		t.waiting, t.data, t.count = true, true, binary.BigEndian.Uint16(p[2:])
		t.last = len(p) < 4+t.block
	case opOptions:
		t.waiting, t.data, t.count = true, false, 0
	}
	if !t.confirmed {
		t.first = bytes.Clone(p)
	}
}

// send sends a packet from the address that the client asked, else from any.
func (g *gate) send(p []byte, client netip.AddrPort, control []byte) (int, error) {
	n, _, err := g.WriteMsgUDPAddrPort(p, control, client)
	if err != nil && control != nil {
		n, _, err = g.WriteMsgUDPAddrPort(p, nil, client)
	}
	return n, err
}

// end forgets a transfer, and returns how it went.
func (g *gate) end(number string) transfer {
	g.mu.Lock()
	defer g.mu.Unlock()
	var was transfer
	if t := g.all[number]; t != nil {
		was = *t
	}
	g.forget(number)
	return was
}

// ending notes that the library's next packet of a transfer is its last.
func (g *gate) ending(number string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t := g.all[number]; t != nil {
		t.ending = true
	}
}

// delivered reports whether the client of a transfer has the first block.
func (g *gate) delivered(number string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.all[number]
	return t != nil && t.delivered
}

// stop lets nothing through any more, so that transfers under way end soon.
func (g *gate) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopped = true
}

// plain returns an address in the one form that maps are keyed by.
func plain(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// receiveControl turns on the control messages that tell where a packet went.
func receiveControl(conn *net.UDPConn) error {
	if conn.LocalAddr().(*net.UDPAddr).IP.To4() != nil {
		return ipv4.NewPacketConn(conn).SetControlMessage(ipv4.FlagDst, true)
	}
	return ipv6.NewPacketConn(conn).SetControlMessage(ipv6.FlagDst|ipv6.FlagInterface, true)
}

// answerFrom makes, of the control message of a packet from client, the one that
// answers it from the address that it was sent to; nil = from whichever.
func answerFrom(received []byte, client netip.Addr) []byte {
	var to4 ipv4.ControlMessage
	var to6 ipv6.ControlMessage
	_ = to4.Parse(received) // it finds nothing in a message of the other version
	_ = to6.Parse(received)
	dst := to6.Dst
	if len(to4.Dst) > 0 {
		dst = to4.Dst
	}
	addr, ok := netip.AddrFromSlice(dst)
	addr = addr.Unmap()
	switch {
	case !ok || addr.IsUnspecified() || addr.IsMulticast() || addr == broadcast:
		return nil
	case addr.Is4():
		return (&ipv4.ControlMessage{Src: addr.AsSlice()}).Marshal()
	case client.IsLinkLocalUnicast():
		return (&ipv6.ControlMessage{Src: addr.AsSlice(), IfIndex: to6.IfIndex}).Marshal()
	}
	return (&ipv6.ControlMessage{Src: addr.AsSlice()}).Marshal()
}

var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})
