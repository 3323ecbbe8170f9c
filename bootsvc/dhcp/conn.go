package dhcp

import (
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"

	"ingot/bootsvc/internal/socket"
)

type conn struct {
	*socket.Socket
	v6    bool
	port  uint16 // that it serves: 67, 547 or 4011, whatever it is bound to
	bound bool   // to an interface
	// senders are known of clients of DHCPv6 on an interface; nil = they are not.
	senders *senders
	// offers receives the answers of other DHCP servers on an interface; nil = they are not seen.
	offers *os.File
	// opened is from when on the kernel keeps packets for it.
	opened time.Time
	packet [maxPacket + 1]byte // of the reader; of a longer packet enough to refuse it
}

// listen opens a UDP socket that hears one interface only, or where name is empty
// the address. It is bound to the interface before it is bound to its address, so
// that the sockets of two interfaces do not clash. It shares its port with no other socket:
// a second daemon would take half of the packets without a word.
func listen(name string, to netip.AddrPort) (*conn, error) {
	c := &conn{v6: to.Addr().Is6(), port: to.Port(), bound: name != ""}
	var err error
	c.Socket, err = socket.Listen("udp"+family(c.v6), to.String(), socketBuffer, func(fd int) error {
		if name == "" {
			return nil
		}
		return os.NewSyscallError("bind to interface", unix.BindToDevice(fd, name))
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Close closes the socket, and its reader returns.
func (c *conn) Close() error {
	if c.senders != nil {
		_ = c.senders.Close()
	}
	if c.offers != nil {
		_ = c.offers.Close()
	}
	return c.Socket.Close()
}

func (c *conn) join(group netip.Addr, index int) error {
	return ipv6.NewPacketConn(c.UDPConn).JoinGroup(&net.Interface{Index: index}, &net.UDPAddr{IP: group.AsSlice()})
}

// receive waits for a packet, which is valid until the next call.
func (c *conn) receive() (data []byte, from netip.AddrPort, err error) {
	n, from, err := c.ReadFromUDPAddrPort(c.packet[:])
	return c.packet[:n], c.clientOf(from), err
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

// openFrames returns a socket for Ethernet frames, which receives nothing until it is bound.
func openFrames(kind int) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_PACKET, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	return os.NewFile(uintptr(fd), "frames"), nil
}

// sendFrame sends an Ethernet frame with an IPv4 packet on an interface.
func sendFrame(s *os.File, frame []byte, index int, to net.HardwareAddr) error {
	at := unix.SockaddrLinklayer{Protocol: ethIPv4, Ifindex: index}
	at.Halen = uint8(copy(at.Addr[:], to))
	return socket.Control(s, func(fd int) error { return unix.Sendto(fd, frame, 0, &at) })
}

// ethIPv4 is the protocol IPv4 in network order.
var ethIPv4 = binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_IP))
