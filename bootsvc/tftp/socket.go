package tftp

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"ingot/bootsvc/internal/socket"
)

// receiveBuffer holds the requests of a row of machines that is powered on at
// once, in bytes.
const receiveBuffer = 1 << 20

// controlSize is more than a control message with an address takes, in bytes.
const controlSize = 128

// listen returns a UDP socket whose packets have their destination address in a control message.
func listen(address string) (*socket.Socket, error) {
	conn, err := socket.Listen("udp", address, receiveBuffer)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on UDP %s: %w", address, bindError(err))
	}
	if conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Is4() {
		err = ipv4.NewPacketConn(conn).SetControlMessage(ipv4.FlagDst, true)
	} else {
		err = ipv6.NewPacketConn(conn).SetControlMessage(ipv6.FlagDst|ipv6.FlagInterface, true)
	}
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("listen on UDP %s: %w", address, err)
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

// send sends a packet from the address that the client asked, else from any. One that cannot be sent is lost.
func (s *Server) send(p []byte, client netip.AddrPort, control []byte) {
	_ = s.conn.Send(p, control, client)
}

// routes makes control messages, and remembers the last, as most packets came to the same
// address.
type routes struct {
	received []byte
	local    bool // the client's address is link-local
	answer   []byte
}

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
