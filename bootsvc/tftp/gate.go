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

	// maxUnanswered is how often the first packet may be due again for a client that is
	// silent, until the transfer is given up.
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
//
// It keeps the library ahead of each client: the block that a client waits for is
// sent from the loop that reads its acknowledgement, for to wake the library's
// goroutine in between takes longer than all the rest. Of the time, too, the gate
// keeps account: the library only wakes it by repeating what it wrote.
type gate struct {
	*net.UDPConn
	metrics metrics
	clock   func() time.Time
	answer  time.Duration            // within which a block is to be acknowledged
	seen    func(netip.Addr, string) // see Options

	mu      sync.Mutex
	stopped bool
	number  uint64
	current map[netip.AddrPort]*transfer // by the client's address, without IPv4 in IPv6
	clients map[netip.Addr]int           // transfers of each, until the library is done with them
	all     map[string]*transfer         // by number, until the library is done with them

	early    []*transfer // whose blocks are acknowledged to the library, though no packet came
	woken    bool        // the reader, for the sake of early
	deadline time.Time   // that the library has set
}

// newGate returns the gate of a server before the socket that it reads.
func newGate(conn *net.UDPConn, s *Server) *gate {
	return &gate{
		UDPConn: conn, metrics: s.metrics, clock: s.clock, answer: s.answer, seen: s.seen,
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

// SetReadDeadline implements net.PacketConn.
func (g *gate) SetReadDeadline(at time.Time) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.deadline = at
	if g.woken {
		return nil // the reader sets it
	}
	return g.UDPConn.SetReadDeadline(at)
}

// ReadFrom implements net.PacketConn: it returns the next packet that belongs.
func (g *gate) ReadFrom(p []byte) (int, net.Addr, error) {
	var control [128]byte
	for {
		if n, from := g.nextEarly(p); n > 0 {
			return n, from, nil
		}
		n, controlled, _, client, err := g.ReadMsgUDPAddrPort(p, control[:])
		if err != nil {
			var timeout net.Error
			switch {
			case !errors.As(err, &timeout) || !timeout.Timeout():
				time.Sleep(10 * time.Millisecond) // the library asks again at once
			case g.wasWoken():
				continue
			}
			return 0, nil, err
		}
		if n, from := g.admit(p, n, client, control[:controlled]); n > 0 {
			return n, from, nil
		}
	}
}

// nextEarly writes to p the next acknowledgement that the library is given early,
// and returns its length and of which transfer it is; 0 = there is none.
func (g *gate) nextEarly(p []byte) (int, *net.UDPAddr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.woken {
		g.woken = false
		_ = g.UDPConn.SetReadDeadline(g.deadline) // a socket that is closed says so when it is read
	}
	for len(g.early) > 0 {
		t := g.early[0]
		g.early = g.early[1:]
		if g.all[t.number] == t {
			return t.acknowledgement(p), t.remote
		}
	}
	return 0, nil
}

// wasWoken reports whether the reader was woken by the gate.
func (g *gate) wasWoken() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.woken
}

// handEarly gives the library an acknowledgement that no packet brings.
func (g *gate) handEarly(t *transfer) {
	g.early = append(g.early, t)
	if !g.woken {
		g.woken = true
		_ = g.UDPConn.SetReadDeadline(time.Unix(1, 0))
	}
}

// admit returns how many bytes of p the library is to see, and of which transfer; 0
// = the packet was dealt with. A request is rewritten, and so is an acknowledgement.
func (g *gate) admit(p []byte, n int, client netip.AddrPort, control []byte) (int, *net.UDPAddr) {
	if n < 4 {
		return 0, nil
	}
	packet, now := p[:n], g.clock()
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.current[plain(client)]
	switch asks := binary.BigEndian.Uint16(packet) == opRead; {
	case asks && !t.goesOn(packet, now):
		return g.begin(p, n, client, control, now)
	case asks && t.first != nil:
		t.repeats = 0
		_, _ = g.send(t.first, t.client, t.control)
	case asks:
	case t == nil:
		g.refuse(packet, client, control)
	case t.declines(packet):
		return n, t.remote
	case t.acknowledged(packet, now):
		return g.goOn(t, p, now)
	}
	return 0, nil
}

// goOn sends the next block to a client that has acknowledged all before, and
// returns what the library is to see.
func (g *gate) goOn(t *transfer, p []byte, now time.Time) (int, *net.UDPAddr) {
	if t.cut() {
		_ = g.transmit(t, now) // what is lost is sent again
	}
	if t.delivered && !t.told {
		t.told = true
		g.seen(t.client.Addr().Unmap(), t.name)
	}
	if !t.hand() {
		return 0, nil
	}
	return t.acknowledgement(p), t.remote
}

// transmit sends what is to be acknowledged next for the first time.
func (g *gate) transmit(t *transfer, now time.Time) error {
	t.sentAt, t.repeats = now, 0
	if !t.confirmed {
		t.first = bytes.Clone(t.sent)
	}
	_, err := g.send(t.sent, t.client, t.control)
	return err
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
func (g *gate) begin(p []byte, n int, client netip.AddrPort, control []byte, now time.Time) (int, *net.UDPAddr) {
	r, ok := parseRead(p[:n])
	at := plain(client)
	switch {
	case !ok:
		g.metrics.requests.WithLabelValues(resultRefused).Inc()
		return 0, nil
	case g.stopped || len(g.all) >= maxTransfers || g.clients[at.Addr()] >= maxPerClient:
		// without an answer the client asks again in a while
		g.metrics.requests.WithLabelValues(resultBusy).Inc()
		return 0, nil
	}
	g.number++
	granted := r.blockFor(client.Addr())
	t := &transfer{
		number: strconv.FormatUint(g.number, 10), client: client, control: answerFrom(control, client.Addr()),
		request: bytes.Clone(p[:n]), name: cleanName(r.name), granted: granted, block: max(granted, defaultBlock), heard: now,
	}
	t.written = t.block * stockFor(len(g.all))
	t.remote = &net.UDPAddr{IP: client.Addr().AsSlice(), Port: int(client.Port()), Zone: t.number}
	g.current[at], g.all[t.number] = t, t
	g.clients[at.Addr()]++
	return r.pack(p, t.name, t.written), t.remote
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
	case t == nil || g.current[plain(t.client)] != t || t.declined:
		return 0, errOver // its client has begun another one, or wants no more
	case g.stopped:
		return 0, errStopped
	case binary.BigEndian.Uint16(p) == opError:
		return len(p), g.fail(t, p)
	case t.isRepeated(p):
		return len(p), g.repeat(t, g.clock())
	}
	return len(p), g.pass(t, p, g.clock())
}

// fail sends the error with which the library ends a transfer.
func (g *gate) fail(t *transfer, p []byte) error {
	if !t.confirmed {
		if t.first != nil {
			return errSilent
		}
		t.first = bytes.Clone(p)
	}
	_, err := g.send(p, t.client, t.control)
	return err
}

// repeat sends again what a client has not acknowledged in time.
func (g *gate) repeat(t *transfer, now time.Time) error {
	switch {
	case !t.due(now, g.answer):
		return nil
	case t.silent():
		return errSilent
	case !t.confirmed:
		return nil
	}
	_, err := g.send(t.sent, t.client, t.control)
	return err
}

// pass sends a client what it waits for, now that the library has written more.
func (g *gate) pass(t *transfer, p []byte, now time.Time) error {
	if t.write(p) || t.cut() {
		if err := g.transmit(t, now); err != nil {
			return err
		}
	}
	if t.hand() {
		g.handEarly(t)
	}
	return nil
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
