package tftp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

// receiveBuffer holds the requests of a row of machines that is powered on at
// once, in bytes.
const receiveBuffer = 1 << 20

// listen returns a UDP socket whose packets tell the address that they were sent to.
func listen(ctx context.Context, address string) (*net.UDPConn, error) {
	var lc net.ListenConfig
	conn, err := lc.ListenPacket(ctx, "udp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on UDP %s: %w", address, bindError(err))
	}
	udp := conn.(*net.UDPConn)
	if err := receiveControl(udp); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("listen on UDP %s: learn which address a client asks: %w", address, err)
	}
	_ = udp.SetReadBuffer(receiveBuffer) // the default serves fewer at once
	return udp, nil
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

// send sends a packet from the address that the client asked, else from any. One
// that cannot be sent is lost, as packets are.
func (s *Server) send(p []byte, client netip.AddrPort, control []byte) {
	_, _, err := s.conn.WriteMsgUDPAddrPort(p, control, client)
	if err != nil && control != nil {
		_, _, _ = s.conn.WriteMsgUDPAddrPort(p, nil, client)
	}
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
