// Package socket has the UDP sockets of DHCP and TFTP.
package socket

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// sendTimeout bounds the wait for room in the send buffer. Clients ask again.
const sendTimeout = 100 * time.Millisecond

// Socket is a UDP socket. Any goroutine may send.
type Socket struct {
	*net.UDPConn
	room int // bytes of the send buffer
}

// Listen returns a socket of network udp, udp4 or udp6 that is bound to an address. The options are set before. The kernel
// keeps receiveBuffer bytes of packets that are not read yet, or as many as it allows.
func Listen(network, address string, receiveBuffer int, options ...func(fd int) error) (*Socket, error) {
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error { return control(raw, options) }}
	conn, err := config.ListenPacket(context.Background(), network, address)
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return nil, op.Err // the caller names network and address
	}
	if err != nil {
		return nil, err
	}
	s := &Socket{UDPConn: conn.(*net.UDPConn)}
	_ = s.SetReadBuffer(receiveBuffer)
	err = Control(s, func(fd int) (err error) {
		s.room, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF)
		return err
	})
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// Control calls steps with the file descriptor of c until one fails.
func Control(c syscall.Conn, steps ...func(fd int) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	return control(raw, steps)
}

func control(raw syscall.RawConn, steps []func(fd int) error) error {
	var err error
	closed := raw.Control(func(fd uintptr) {
		for _, step := range steps {
			if err == nil {
				err = step(int(fd))
			}
		}
	})
	return errors.Join(closed, err)
}

// Send sends a packet. A control message names the source address; if the packet cannot be sent from there, the kernel
// chooses one.
func (s *Socket) Send(packet, control []byte, to netip.AddrPort) error {
	_ = s.SetWriteDeadline(time.Now().Add(sendTimeout))
	_, _, err := s.WriteMsgUDPAddrPort(packet, control, to)
	if err != nil && control != nil {
		_, _, err = s.WriteMsgUDPAddrPort(packet, nil, to)
	}
	return err
}

// Crowded reports whether a quarter of the send buffer is in use. The kernel keeps a packet for three seconds if its
// neighbor does not answer, and with many of those Send waits, whatever address its packet is for. Meanwhile send packets
// only to known neighbors.
func (s *Socket) Crowded() bool {
	waiting := 0
	_ = Control(s, func(fd int) (err error) {
		waiting, err = unix.IoctlGetInt(fd, unix.SIOCOUTQ)
		return err
	})
	return waiting > s.room/4
}

// Interrupt ends the reader of the socket. The socket can still send.
func (s *Socket) Interrupt() { _ = s.SetReadDeadline(time.Unix(1, 0)) }

// IsEnded reports whether reading failed because of Interrupt or Close.
func IsEnded(err error) bool {
	return errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded)
}
