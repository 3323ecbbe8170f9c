package dhcp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"ingot/bootsvc/internal/links"
	"ingot/bootsvc/internal/socket"
)

// Ports of DHCP: RFC 2131 §4.1, RFC 8415 §7.2, and that of PXE boot servers.
const (
	port4Server = 67
	port4Client = 68
	portPXE     = 4011
	port6Server = 547
)

const (
	// maxPacket is the longest packet that is read. RFC 2131 lets clients send 576
	// bytes without asking; relays nest DHCPv6 packets.
	maxPacket = 4096
	// socketBuffer is what the kernel keeps while we are busy: a row that is powered
	// on asks at once.
	socketBuffer = 4 << 20
	// maxDiscarded is more packets than such a buffer holds.
	maxDiscarded = 1 << 16
	// askAgain is how soon clients ask again, at first (RFC 2131 §4.1).
	askAgain = 4 * time.Second
)

// errNoInterface is returned while the interface of a network does not exist, is
// down or has no address.
var errNoInterface = errors.New("interface is not ready")

// groups6 are All_DHCP_Relay_Agents_and_Servers and All_DHCP_Servers (RFC 8415
// §7.1).
var groups6 = []netip.Addr{netip.MustParseAddr("ff02::1:2"), netip.MustParseAddr("ff05::1:3")}

// link is what is known of the interface, or the address, that a network is heard
// on.
type link struct {
	name   string // empty for an address
	index  int
	mac    net.HardwareAddr
	v4, v6 []netip.Prefix
}

func (l *link) addresses() []netip.Prefix { return slices.Concat(l.v4, l.v6) }

func (l *link) of(v6 bool) []netip.Prefix {
	if v6 {
		return l.v6
	}
	return l.v4
}

type sockets struct {
	network *Network
	log     *slog.Logger
	isThere func(netip.Addr) bool // see Options
	metrics networkMetrics

	current  atomic.Pointer[link]
	v4       atomic.Pointer[conn]
	v6       atomic.Pointer[conn]
	proxy    atomic.Pointer[conn]    // port 4011
	frames   atomic.Pointer[os.File] // for Ethernet frames
	noFrames atomic.Bool             // opening them failed

	mu     sync.Mutex
	fresh  []*conn // not read yet
	reason error   // why the network is not served
}

func (s *sockets) link() *link {
	if l := s.current.Load(); l != nil {
		return l
	}
	return &link{}
}

// lookAll makes sure that the sockets of all networks are those of their interfaces as they are now. It calls each with
// what is wrong with a network, or nil, until each returns an error.
func (s *Server) lookAll(each func(*network, error) error) error {
	var all map[string]links.Link
	var unread error
	if slices.ContainsFunc(s.networks, func(n *network) bool { return n.Interface != "" }) {
		all, unread = links.Read()
	}
	for _, n := range s.networks {
		wrong := unread // then it stays as it is
		if wrong == nil || n.Interface == "" {
			wrong = n.sockets.look(all)
		}
		n.sockets.note(wrong)
		if err := each(n, wrong); err != nil {
			return err
		}
	}
	return nil
}

// look opens the sockets of the network's interface as it is now, and closes those of a former one; all are the interfaces by name.
func (s *sockets) look(all map[string]links.Link) error {
	l, err := s.findLink(all)
	if before := s.current.Load(); before != nil && (l == nil || l.index != before.index) {
		s.close()
	}
	if l != nil {
		s.current.Store(l)
		if e := s.open(l); e != nil {
			err = e
		}
	}
	return err
}

// note sets the reason for which the network is not served, nil if it is served, and logs a change.
func (s *sockets) note(wrong error) {
	s.mu.Lock()
	before := s.reason
	s.reason = wrong
	s.mu.Unlock()
	switch {
	case wrong != nil && (before == nil || before.Error() != wrong.Error()):
		s.log.Error("a network is not served", "network", s.network.Name, "err", wrong)
	case wrong == nil && before != nil:
		s.log.Info("a network is served again", "network", s.network.Name)
	}
}

// findLink returns the network's interface as it is now, nil when there is none, and an
// error when it cannot be served as it should.
func (s *sockets) findLink(all map[string]links.Link) (*link, error) {
	if s.network.Interface == "" {
		return listenLink(s.network.Listen), nil
	}
	ifi, ok := all[s.network.Interface]
	if !ok {
		return nil, fmt.Errorf("%w: %s does not exist; it is waited for", errNoInterface, s.network.Interface)
	}
	l := &link{name: ifi.Name, index: ifi.Index, mac: ifi.HardwareAddr}
	for _, p := range ifi.Addresses {
		if p.Addr().Is4() {
			l.v4 = append(l.v4, p)
		} else {
			l.v6 = append(l.v6, p)
		}
	}
	switch {
	case ifi.Flags&net.FlagUp == 0:
		return l, fmt.Errorf("%w: %s is down; set it up: ip link set %[2]s up", errNoInterface, s.network.Interface)
	case s.network.has4() && len(l.v4) == 0:
		return l, fmt.Errorf("%w: %s has no IPv4 address, which answers come from; add one", errNoInterface, s.network.Interface)
	}
	return l, nil
}

func listenLink(listen string) *link {
	ap, _ := parseListen(listen) // Check has seen it
	l := &link{}
	p := []netip.Prefix{netip.PrefixFrom(ap.Addr(), ap.Addr().BitLen())}
	if ap.Addr().Is4() {
		l.v4 = p
	} else {
		l.v6 = p
	}
	return l
}

// has4 reports whether n answers DHCPv4.
func (n Network) has4() bool {
	return n.Mode == ModeProxy || slices.ContainsFunc(n.Subnets, func(s Subnet) bool { return s.CIDR.Addr().Is4() })
}

// has6 reports whether n answers DHCPv6.
func (n Network) has6() bool {
	return slices.ContainsFunc(n.Subnets, func(s Subnet) bool { return s.CIDR.Addr().Is6() })
}

func (s *sockets) open(l *link) error {
	if s.network.Interface == "" {
		ap, _ := parseListen(s.network.Listen)
		if ap.Addr().Is4() {
			return s.openOne(&s.v4, l, ap, port4Server)
		}
		return s.openOne(&s.v6, l, ap, port6Server)
	}
	any4 := func(port uint16) netip.AddrPort { return netip.AddrPortFrom(netip.IPv4Unspecified(), port) }
	if s.network.has4() {
		if err := s.openOne(&s.v4, l, any4(port4Server), port4Server); err != nil {
			return err
		}
	}
	if s.network.Mode == ModeProxy {
		if err := s.openOne(&s.proxy, l, any4(portPXE), portPXE); err != nil {
			return err
		}
	}
	if s.network.has6() {
		return s.openOne(&s.v6, l, netip.AddrPortFrom(netip.IPv6Unspecified(), port6Server), port6Server)
	}
	return nil
}

func (s *sockets) openOne(at *atomic.Pointer[conn], l *link, to netip.AddrPort, port uint16) error {
	if at.Load() != nil {
		return nil
	}
	c, err := listen(l.name, to)
	if err != nil {
		return listenError(err, l.name, to, s.network.Mode)
	}
	c.port, c.opened = port, time.Now()
	if c.v6 && l.name != "" {
		for _, group := range groups6 {
			if err := c.join(group, l.index); err != nil {
				_ = c.Close()
				return fmt.Errorf("join the multicast groups of DHCPv6 on %s: %w", l.name, err)
			}
		}
		c.senders = s.senders(l)
	}
	if port == port4Server && l.name != "" && s.network.Boots() {
		if c.offers, err = openOffers(l.index); err != nil {
			s.log.Warn("boot offers of other DHCP servers are not noticed, which needs CAP_NET_RAW", "network", s.network.Name, "err", err)
		}
	}
	at.Store(c)
	s.mu.Lock()
	s.fresh = append(s.fresh, c)
	s.mu.Unlock()
	return nil
}

// listenError says what to do about a socket that cannot be opened.
func listenError(err error, name string, to netip.AddrPort, mode Mode) error {
	where := to.String()
	if name != "" {
		where = fmt.Sprintf("UDP port %d of %s", to.Port(), name)
	}
	switch {
	case errors.Is(err, unix.EADDRINUSE) && mode == ModeProxy:
		return fmt.Errorf("listen on %s: address already in use: mode proxy goes with a DHCP server on another machine, as both would hear the port; run Ingot elsewhere, or write mode: server and stop the one on this machine: %w", where, err)
	case errors.Is(err, unix.EADDRINUSE):
		return fmt.Errorf("listen on %s: address already in use: stop the program that listens there (dnsmasq, isc-dhcp-server, kea …), or another network of the configuration does: %w", where, err)
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("listen on %s: not permitted: run as root, or with CAP_NET_BIND_SERVICE and CAP_NET_RAW: %w", where, err)
	case errors.Is(err, unix.EADDRNOTAVAIL):
		return fmt.Errorf("listen on %s: this machine has no such address; name one of its own: %w", where, err)
	case errors.Is(err, unix.ENODEV):
		return fmt.Errorf("%w: %s went away: %w", errNoInterface, name, err)
	}
	return fmt.Errorf("listen on %s: %w", where, err)
}

func (s *sockets) trouble() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reason
}

func (s *sockets) unread() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh := s.fresh
	s.fresh = nil
	return fresh
}

func (s *sockets) all() [3]*atomic.Pointer[conn] {
	return [...]*atomic.Pointer[conn]{&s.v4, &s.v6, &s.proxy}
}

// interrupt makes the readers return; the sockets can still send.
func (s *sockets) interrupt() {
	for _, at := range s.all() {
		if c := at.Load(); c != nil {
			c.Interrupt()
		}
	}
}

func (s *sockets) close() {
	for _, at := range s.all() {
		if c := at.Swap(nil); c != nil {
			_ = c.Close()
		}
	}
	if frames := s.frames.Swap(nil); frames != nil {
		_ = frames.Close()
	}
	s.noFrames.Store(false)
	s.current.Store(nil)
	s.unread()
}

// read hands over the packets of c, one after the other, until c is closed or
// interrupted.
func (n *network) read(ctx context.Context, c *conn) {
	if time.Since(c.opened) > askAgain {
		c.discard()
	}
	for {
		data, from, err := c.receive()
		switch {
		case socket.IsEnded(err), ctx.Err() != nil:
			return
		case err != nil: // such as an ICMP error for an answer, or an interface that went down
			if !pause(ctx, 10*time.Millisecond) {
				return
			}
		case len(data) > maxPacket:
			n.metrics.drop(family(c.v6), "too long")
		default:
			n.handle(ctx, c, data, from)
		}
	}
}

// discard throws away what came in while nobody read: while another Ingot led, or the
// store could not be read. Who sent it has given up, or has sent it again since; a
// client that was there hours ago must neither get a lease nor be refused one.
func (c *conn) discard() {
	_ = socket.Control(c, func(fd int) error {
		var b [1]byte
		for range maxDiscarded {
			if _, _, err := unix.Recvfrom(fd, b[:], unix.MSG_DONTWAIT); err != nil {
				return err
			}
		}
		return nil
	})
}

// pause waits, and is false when ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// handle handles one packet. A packet that makes us panic costs nobody else
// anything.
func (n *network) handle(ctx context.Context, c *conn, data []byte, from netip.AddrPort) {
	defer n.recoverPanic(c.v6, from)
	if c.v6 {
		service6{n}.handle6(ctx, data, from)
		return
	}
	service4{n}.handle4(data, from, c.port)
}

// recoverPanic, deferred, keeps a panic about one packet from ending the process.
func (n *network) recoverPanic(v6 bool, from netip.AddrPort) {
	if r := recover(); r != nil {
		n.metrics.drop(family(v6), "panic")
		n.server.options.Log.Error("a packet was not handled because of an error in Ingot", "network", n.Name, "from", from, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
	}
}

// send4 sends an answer to an address that can be reached by UDP.
func (s *sockets) send4(from uint16, to netip.AddrPort, data []byte) {
	c := s.v4.Load()
	if from == portPXE {
		c = s.proxy.Load()
	}
	s.send(c, to, data)
}

// send6 sends an answer from the network's DHCPv6 socket. A link-local address
// needs no zone: the socket knows one interface only.
func (s *sockets) send6(to netip.AddrPort, data []byte) { s.send(s.v6.Load(), to, data) }

// send sends an answer, if its socket is still there: clients ask again.
func (s *sockets) send(c *conn, to netip.AddrPort, data []byte) {
	if c == nil {
		return
	}
	err := errNobodyThere
	if !c.Crowded() || s.isThere(s.zoned(to.Addr())) {
		err = c.Send(data, nil, to)
	}
	if err != nil {
		s.metrics.drop(family(c.v6), "not sent")
		s.log.Debug("an answer was not sent", "network", s.network.Name, "to", to, "err", err)
	}
}

// errNobodyThere is why an answer is not sent while others wait for addresses that are made up, such as those of
// relays that do not exist.
var errNobodyThere = errors.New("nobody on the link answers for the address, and too many answers wait for such addresses")

// zoned returns an address with the interface that a link-local one is on.
func (s *sockets) zoned(a netip.Addr) netip.Addr {
	if index := s.link().index; index > 0 && a.Is6() && a.IsLinkLocalUnicast() {
		return a.WithZone(strconv.Itoa(index))
	}
	return a
}

// unicast4 sends an answer to a client that does not answer ARP for its address
// yet, in an Ethernet frame made here; by broadcast where that is not possible
// (RFC 2131 §4.1). The frame is made in buf, if it has room.
func (s *sockets) unicast4(mac net.HardwareAddr, src, dst netip.Addr, data, buf []byte) {
	l := s.link()
	if frames := s.frameSocket(l); frames != nil && len(l.mac) == 6 && src.Is4() && dst.Is4() {
		if sendFrame(frames, frame4(buf, mac, l.mac, src, dst, data), l.index, mac) == nil {
			return
		}
	}
	s.send4(port4Server, everybody4, data)
}

// frameSocket returns the socket for Ethernet frames, nil where the system has none.
func (s *sockets) frameSocket(l *link) *os.File {
	if d := s.frames.Load(); d != nil || l.name == "" || s.noFrames.Load() {
		return d
	}
	s.mu.Lock() // two may be the first to send
	defer s.mu.Unlock()
	if d := s.frames.Load(); d != nil {
		return d
	}
	d, err := openFrames(unix.SOCK_RAW)
	if err != nil {
		s.noFrames.Store(true)
		s.log.Warn("answers are broadcast, because Ethernet frames cannot be sent: that needs CAP_NET_RAW", "network", s.network.Name, "err", err)
		return nil
	}
	s.frames.Store(d)
	return d
}

// frame4 returns an Ethernet frame with an IPv4 packet with a UDP packet from port
// 67 to port 68 (RFC 894, 791, 768), in buf if it has room.
func frame4(buf []byte, to, from net.HardwareAddr, src, dst netip.Addr, data []byte) []byte {
	const ethernet, ip, udp = 14, 20, 8
	f := slices.Grow(buf[:0], ethernet+ip+udp+len(data))[:ethernet+ip+udp+len(data)]
	clear(f[:ethernet+ip+udp])
	copy(f[0:], to)
	copy(f[6:], from)
	binary.BigEndian.PutUint16(f[12:], unix.ETH_P_IP)

	h := f[ethernet:]
	h[0] = 0x45 // version 4, five words
	binary.BigEndian.PutUint16(h[2:], uint16(ip+udp+len(data)))
	h[8], h[9] = 64, unix.IPPROTO_UDP // time to live
	a, b := src.As4(), dst.As4()
	copy(h[12:], a[:])
	copy(h[16:], b[:])
	binary.BigEndian.PutUint16(h[10:], ^sum16(0, h[:ip]))

	u := h[ip:]
	binary.BigEndian.PutUint16(u[0:], port4Server)
	binary.BigEndian.PutUint16(u[2:], port4Client)
	binary.BigEndian.PutUint16(u[4:], uint16(udp+len(data)))
	copy(u[udp:], data)
	pseudo := sum16(unix.IPPROTO_UDP+uint32(udp+len(data)), h[12:ip])
	check := ^sum16(uint32(pseudo), u)
	if check == 0 { // 0 means: no checksum
		check = 0xffff
	}
	binary.BigEndian.PutUint16(u[6:], check)
	return f
}

// sum16 adds up b in words of 16 bits, in ones' complement (RFC 1071).
func sum16(sum uint32, b []byte) uint16 {
	for ; len(b) >= 2; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		sum += uint32(b[0]) << 8
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return uint16(sum)
}
