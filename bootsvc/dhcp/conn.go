package dhcp

import (
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ingot/bootsvc/internal/socket"
)

// gatherTime is how long packets gather before a reader that found none looks again. To be
// woken costs more than a packet does, and nobody who boots notices.
const gatherTime = 2 * time.Millisecond

// packetsAtOnce bounds the packets that are received, or sent, by one call. A longer packet
// than roomToSend, in bytes, is sent by itself.
const (
	packetsAtOnce = 16
	roomToSend    = 1024
)

// conn is one UDP socket.
type conn struct {
	*socket.Socket
	v6    bool
	port  uint16 // that it serves: 67, 547 or 4011, whatever it is bound to
	bound bool   // to an interface
	// senders are known of clients of DHCPv6 on an interface; nil = they are not.
	senders *senders
	// opened is from when on the kernel keeps packets for it.
	opened time.Time

	mu   sync.Mutex
	out  *socket.Outbox // what gathers
	held int            // how many have it gather
}

// listen opens a UDP socket that hears one interface only, or where name is empty
// the address. It is bound to the interface before it is bound to its address, so
// that the sockets of two interfaces do not clash; it shares its port with nobody, or
// a second daemon would take half of the packets without a word.
func listen(name string, to netip.AddrPort) (*conn, error) {
	c := &conn{v6: to.Addr().Is6(), port: to.Port(), bound: name != ""}
	domain := unix.AF_INET
	if c.v6 {
		domain = unix.AF_INET6
	}
	var err error
	if c.Socket, err = socket.New(domain, unix.SOCK_DGRAM); err != nil {
		return nil, err
	}
	err = c.Set(func(fd int) error {
		if !c.v6 {
			return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BROADCAST, 1)
		}
		return unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1)
	}, func(fd int) error {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, socketBuffer) // the kernel gives what it allows
		if name == "" {
			return nil
		}
		return os.NewSyscallError("bind to interface", unix.BindToDevice(fd, name))
	}, func(fd int) error {
		return os.NewSyscallError("bind", syscall.Bind(fd, socket.Sockaddr(to)))
	})
	if err != nil {
		c.Close()
		return nil, err
	}
	c.Inbox(packetsAtOnce, maxPacket+1, 0) // of a longer packet enough to refuse it
	c.out = c.Outbox(packetsAtOnce, roomToSend, 0)
	return c, nil
}

// Close closes the socket, and its reader returns.
func (c *conn) Close() {
	c.Socket.Close()
	if c.senders != nil {
		c.senders.Close()
	}
}

// join joins a multicast group on an interface.
func (c *conn) join(group netip.Addr, index int) error {
	return c.Set(func(fd int) error {
		return unix.SetsockoptIPv6Mreq(fd, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP, &unix.IPv6Mreq{Multiaddr: group.As16(), Interface: uint32(index)})
	})
}

// receive waits for a packet. It is socket.ErrEnded once the socket was closed or
// interrupted.
func (c *conn) receive() (data []byte, from netip.AddrPort, err error) {
	p, err := c.Receive(gatherTime)
	if err != nil {
		return nil, from, err
	}
	return p.Data, c.clientOf(p.From), nil
}

// clientOf returns the address that a packet came from. It has a zone only where the
// answer would not find its way without.
func (c *conn) clientOf(at netip.AddrPort) netip.AddrPort {
	a := at.Addr().Unmap()
	if c.bound {
		a = a.WithZone("")
	}
	return netip.AddrPortFrom(a, at.Port())
}

// send sends a packet, with others if it is to gather.
func (c *conn) send(data []byte, to netip.AddrPort) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == 0 || len(data) > roomToSend {
		return c.Send(data, nil, socket.Sockaddr(to))
	}
	c.out.Add(append(c.out.Packet(), data...), nil, to)
	return nil
}

// hold has packets gather until release, which sends them by one call.
func (c *conn) hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held++
}

// release sends what has gathered, and returns how many packets could not be sent. Others may go on
// to gather.
func (c *conn) release() (lost int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held--
	return c.out.Flush()
}

// newFrames returns a socket that sends Ethernet frames and receives nothing.
func newFrames() (*socket.Socket, error) { return socket.New(unix.AF_PACKET, unix.SOCK_RAW) }

// sendFrame sends an Ethernet frame with an IPv4 packet on an interface.
func sendFrame(s *socket.Socket, frame []byte, index int, to net.HardwareAddr) error {
	sa := syscall.SockaddrLinklayer{Protocol: ethIPv4, Ifindex: index}
	sa.Halen = uint8(copy(sa.Addr[:], to))
	return s.Send(frame, nil, &sa)
}

// ethIPv4 is the protocol IPv4 in network order.
var ethIPv4 = binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_IP))
