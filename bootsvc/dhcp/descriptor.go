package dhcp

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// A reader looks at least this often whether it is to end, if the kernel should not
	// wake it.
	wakeEvery = 5 * time.Second
	// sendTimeout bounds the wait for room in a link's queue. Clients ask again.
	sendTimeout = 100 * time.Millisecond
	// gatherTime is how long packets gather before a reader that found none looks again. To
	// be woken costs more than a packet does, and nobody who boots notices.
	gatherTime = 2 * time.Millisecond
)

// errEnded is returned to the reader of a socket that was closed or interrupted.
var errEnded = errors.New("the socket is read no longer")

// descriptor is a socket that is used by blocking calls. The runtime's poller does
// not know it: it is woken for each packet that comes, and again for each that has
// left, and hands what came to another thread, which costs more than the packet does.
type descriptor struct {
	file *os.File // closed once nobody uses it any longer
	raw  syscall.RawConn
}

// newDescriptor returns a new socket.
func newDescriptor(domain, kind int) (descriptor, error) {
	fd, err := unix.Socket(domain, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return descriptor{}, os.NewSyscallError("socket", err)
	}
	d := descriptor{file: os.NewFile(uintptr(fd), "socket")}
	if d.raw, err = d.file.SyscallConn(); err == nil {
		err = d.set(func(fd int) error {
			timeout := unix.NsecToTimeval(int64(sendTimeout))
			return unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &timeout)
		})
	}
	if err != nil {
		d.close()
	}
	return d, err
}

// set calls steps, one after the other, with the file descriptor.
func (d descriptor) set(steps ...func(fd int) error) error {
	var err error
	closed := d.raw.Control(func(fd uintptr) {
		for _, step := range steps {
			if err == nil {
				err = step(int(fd))
			}
		}
	})
	return errors.Join(closed, err)
}

// sendTo sends one packet.
func (d descriptor) sendTo(data []byte, to unix.Sockaddr) error {
	var err error
	closed := d.raw.Control(func(fd uintptr) {
		for {
			if err = unix.Sendto(int(fd), data, 0, to); err != unix.EINTR { //nolint:errorlint // a bare number
				return
			}
		}
	})
	if closed != nil {
		return closed
	}
	return err
}

// close closes the socket.
func (d descriptor) close() { _ = d.file.Close() }

// conn is one UDP socket.
type conn struct {
	descriptor
	v6    bool
	port  uint16 // that it serves: 67, 547 or 4011, whatever it is bound to
	bound bool   // to an interface
	ended atomic.Bool
	// senders are known of clients of DHCPv6 on an interface; nil = they are not.
	senders *senders
	// opened is from when on the kernel keeps packets for it.
	opened time.Time
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
	if c.descriptor, err = newDescriptor(domain, unix.SOCK_DGRAM); err != nil {
		return nil, err
	}
	err = c.set(func(fd int) error {
		if !c.v6 {
			return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BROADCAST, 1)
		}
		return unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1)
	}, func(fd int) error {
		timeout := unix.NsecToTimeval(int64(wakeEvery))
		return unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout)
	}, func(fd int) error {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, socketBuffer) // the kernel gives what it allows
		if name == "" {
			return nil
		}
		return os.NewSyscallError("bind to interface", unix.BindToDevice(fd, name))
	}, func(fd int) error {
		return os.NewSyscallError("bind", unix.Bind(fd, sockaddr(to)))
	})
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// join joins a multicast group on an interface.
func (c *conn) join(group netip.Addr, index int) error {
	return c.set(func(fd int) error {
		return unix.SetsockoptIPv6Mreq(fd, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP, &unix.IPv6Mreq{Multiaddr: group.As16(), Interface: uint32(index)})
	})
}

// receive waits for a packet and reads it into buf. It is errEnded once the socket
// was closed or interrupted. When nothing is there it leaves the socket alone for a while
// before it waits to be woken: where many ask, it is woken for a handful of packets.
func (c *conn) receive(buf []byte) (size int, from netip.AddrPort, err error) {
	for flags := syscall.MSG_DONTWAIT; !c.ended.Load(); {
		var sa syscall.Sockaddr
		// unix.Recvfrom would ask for the socket's protocol, too, for each packet.
		closed := c.raw.Control(func(fd uintptr) { size, sa, err = syscall.Recvfrom(int(fd), buf, flags) })
		switch {
		case closed != nil:
			return 0, from, errEnded
		case err == syscall.EAGAIN && flags != 0: //nolint:errorlint // a bare number
			time.Sleep(gatherTime)
			flags = 0
		case err == syscall.EINTR, err == syscall.EAGAIN: //nolint:errorlint // bare numbers
		case err != nil:
			return 0, from, err
		case sa != nil: // none once it was interrupted
			return size, c.addrPort(sa), nil
		}
	}
	return 0, from, errEnded
}

// send sends a packet.
func (c *conn) send(data []byte, to netip.AddrPort) error { return c.sendTo(data, sockaddr(to)) }

// interrupt makes the reader return; the socket can still send.
func (c *conn) interrupt() {
	c.ended.Store(true)
	// It wakes the reader, though it is an error for a socket that is not connected.
	_ = c.set(func(fd int) error { return unix.Shutdown(fd, unix.SHUT_RD) })
}

// close closes the socket, and its reader returns.
func (c *conn) close() {
	c.interrupt()
	c.descriptor.close()
	if c.senders != nil {
		c.senders.close()
	}
}

// addrPort returns the address that a packet came from. It has a zone only where the
// answer would not find its way without.
func (c *conn) addrPort(sa syscall.Sockaddr) netip.AddrPort {
	switch sa := sa.(type) {
	case *syscall.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))
	case *syscall.SockaddrInet6:
		a := netip.AddrFrom16(sa.Addr).Unmap()
		if sa.ZoneId != 0 && !c.bound {
			a = a.WithZone(strconv.Itoa(int(sa.ZoneId)))
		}
		return netip.AddrPortFrom(a, uint16(sa.Port))
	}
	return netip.AddrPort{}
}

// sockaddr returns an address as the kernel takes it.
func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	zone, _ := strconv.Atoi(a.Addr().Zone()) // as addrPort wrote it
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16(), ZoneId: uint32(zone)}
}

// newFrames returns a socket that sends Ethernet frames and receives nothing.
func newFrames() (descriptor, error) { return newDescriptor(unix.AF_PACKET, unix.SOCK_RAW) }

// sendFrame sends an Ethernet frame with an IPv4 packet on an interface.
func (d descriptor) sendFrame(frame []byte, index int, to net.HardwareAddr) error {
	sa := unix.SockaddrLinklayer{Protocol: ethIPv4, Ifindex: index}
	sa.Halen = uint8(copy(sa.Addr[:], to))
	return d.sendTo(frame, &sa)
}

// ethIPv4 is the protocol IPv4 in network order.
var ethIPv4 = binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_IP))
