package tftp

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"

	"ingot/bootsvc/internal/socket"
)

// receiveBuffer holds the requests of a row of machines that is powered on at
// once, in bytes.
const receiveBuffer = 1 << 20

const (
	// packetsAtOnce bounds the packets that are received, or sent, by one call.
	packetsAtOnce = 32
	// controlSize is more than a control message with an address takes, in bytes.
	controlSize = 128
)

// listen returns a UDP socket whose packets tell the address that they were sent to, and
// where it listens.
func listen(address string) (*socket.Socket, *net.UDPAddr, error) {
	at, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot listen on UDP %s: %w", address, err)
	}
	conn, err := bind(at)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot listen on UDP %s: %w", address, bindError(err))
	}
	var bound syscall.Sockaddr
	err = conn.Set(func(fd int) (err error) {
		bound, err = syscall.Getsockname(fd)
		return err
	})
	if err != nil {
		conn.Close()
		return nil, nil, fmt.Errorf("listen on UDP %s: %w", address, err)
	}
	return conn, net.UDPAddrFromAddrPort(socket.AddrPort(bound)), nil
}

// bind binds a socket to an address; one without a host is that of all, of both families
// where there is IPv6.
func bind(at *net.UDPAddr) (*socket.Socket, error) {
	addr := at.AddrPort()
	if at.IP == nil {
		addr = netip.AddrPortFrom(netip.IPv6Unspecified(), addr.Port())
		if conn, err := bindTo(addr); !errors.Is(err, syscall.EAFNOSUPPORT) {
			return conn, err
		}
		addr = netip.AddrPortFrom(netip.IPv4Unspecified(), addr.Port())
	}
	if ifi, err := net.InterfaceByName(at.Zone); err == nil {
		addr = netip.AddrPortFrom(addr.Addr().WithZone(strconv.Itoa(ifi.Index)), addr.Port())
	}
	return bindTo(unmapped(addr))
}

// bindTo binds a socket to exactly this address.
func bindTo(addr netip.AddrPort) (*socket.Socket, error) {
	domain, tellTo := unix.AF_INET6, func(fd int) error {
		both := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
		return errors.Join(both, unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1))
	}
	if addr.Addr().Is4() {
		domain, tellTo = unix.AF_INET, func(fd int) error { return unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_PKTINFO, 1) }
	}
	conn, err := socket.New(domain, unix.SOCK_DGRAM)
	if err != nil {
		return nil, err
	}
	conn.Inbox(packetsAtOnce, maxRequest+1, controlSize) // of a longer packet enough to refuse it
	err = conn.Set(tellTo, func(fd int) error {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer) // the default serves fewer at once
		return syscall.Bind(fd, socket.Sockaddr(addr))
	})
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// bindError says what to do about a socket that could not be opened.
func bindError(err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w; stop the TFTP server that listens there, or set another address", syscall.EADDRINUSE)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%w; give Ingot the capability CAP_NET_BIND_SERVICE, for firmware asks port 69", syscall.EACCES)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%w; this machine has no such address, set one that it has or leave the host out", syscall.EADDRNOTAVAIL)
	}
	return err
}

// send sends a packet from the address that the client asked, else from any, together with
// others.
func (s *Server) send(p []byte, client netip.AddrPort, control []byte) {
	s.out.Add(append(s.out.Packet(), p...), control, client)
}

// routes makes control messages, and remembers the last, as most packets came to the same
// address.
type routes struct {
	received []byte
	local    bool // the client's address is link-local
	answer   []byte
}

// back is answerFrom.
func (r *routes) back(received []byte, client netip.Addr) []byte {
	if local := client.IsLinkLocalUnicast(); r.received == nil || local != r.local || !bytes.Equal(received, r.received) {
		*r = routes{append([]byte{}, received...), local, answerFrom(received, client)}
	}
	return r.answer
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
