// Package socket has the sockets of DHCP and TFTP, which are used by blocking calls.
//
// The runtime's poller does not know them: it is woken for each packet that comes, and
// again for each that has left, and hands what came to another thread, which costs more
// than the packet does.
package socket

import (
	"errors"
	"net/netip"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// WakeEvery is how often, at the least, a reader checks whether it is to end, if the
	// kernel should not wake it.
	WakeEvery = 5 * time.Second
	// sendTimeout bounds the wait for room in a link's queue. Clients ask again.
	sendTimeout = 100 * time.Millisecond
)

// ErrEnded is returned to the reader of a socket that was closed or interrupted.
var ErrEnded = errors.New("the socket is read no longer")

// Socket is a socket of packets. One goroutine reads it; any may send.
type Socket struct {
	file  *os.File // closed once nobody uses it any longer
	raw   syscall.RawConn
	ended atomic.Bool
	inbox *inbox // of the reader; nil = nobody reads
	room  int    // bytes that may be on their way, as the kernel counts them
	// unlooked is how many bytes were sent since Crowded looked last, crowded what it saw then.
	unlooked atomic.Int64
	crowded  atomic.Bool
}

// New returns a new socket.
func New(domain, kind int) (*Socket, error) {
	fd, err := unix.Socket(domain, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	s := &Socket{file: os.NewFile(uintptr(fd), "socket")}
	if s.raw, err = s.file.SyscallConn(); err == nil {
		err = s.Set(timeout(unix.SO_SNDTIMEO, sendTimeout), timeout(unix.SO_RCVTIMEO, WakeEvery), func(fd int) (err error) {
			s.room, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF)
			return err
		})
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// timeout returns the step that bounds a kind of call.
func timeout(option int, d time.Duration) func(fd int) error {
	return func(fd int) error {
		limit := unix.NsecToTimeval(int64(d))
		return unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, option, &limit)
	}
}

// Set calls steps, one after the other, with the file descriptor, until one fails.
func (s *Socket) Set(steps ...func(fd int) error) error {
	var err error
	closed := s.raw.Control(func(fd uintptr) {
		for _, step := range steps {
			if err == nil {
				err = step(int(fd))
			}
		}
	})
	return errors.Join(closed, err)
}

// Send sends one packet.
func (s *Socket) Send(packet, control []byte, to syscall.Sockaddr) error {
	var err error
	closed := s.raw.Control(func(fd uintptr) {
		for {
			if _, err = syscall.SendmsgN(int(fd), packet, control, to, 0); err != syscall.EINTR { //nolint:errorlint // a bare number
				return
			}
		}
	})
	s.count(len(packet))
	if closed != nil {
		return closed
	}
	return err
}

// count counts a packet that was sent, by no fewer bytes than the kernel does.
func (s *Socket) count(size int) { s.unlooked.Add(int64(2*size + 1024)) }

// Crowded reports whether a good part of what may be on its way has not left. The kernel keeps packets for three seconds
// for an address on a link that nobody answers for yet, and with many of those Send waits, whatever address
// its packet is for. Meanwhile packets are to be sent only to machines that are there. The kernel is asked
// once enough was sent to make a difference: to ask costs half of what a packet does.
func (s *Socket) Crowded() bool {
	if !s.crowded.Load() && s.unlooked.Load() < int64(s.room/8) {
		return false
	}
	s.unlooked.Store(0)
	waiting := 0
	_ = s.Set(func(fd int) (err error) {
		waiting, err = unix.IoctlGetInt(fd, unix.SIOCOUTQ)
		return err
	})
	crowded := waiting > s.room/4
	s.crowded.Store(crowded)
	return crowded
}

// Interrupt makes the reader return; the socket can still send.
func (s *Socket) Interrupt() {
	s.ended.Store(true)
	// It wakes the reader, though it is an error for a socket that is not connected.
	_ = s.Set(func(fd int) error { return unix.Shutdown(fd, unix.SHUT_RD) })
}

// Close closes the socket, and its reader returns.
func (s *Socket) Close() {
	s.Interrupt()
	_ = s.file.Close()
}

// AddrPort returns the address and port that sa has; its zone is a number.
func AddrPort(sa syscall.Sockaddr) netip.AddrPort {
	switch sa := sa.(type) {
	case *syscall.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))
	case *syscall.SockaddrInet6:
		a := netip.AddrFrom16(sa.Addr)
		if sa.ZoneId != 0 {
			a = a.WithZone(strconv.Itoa(int(sa.ZoneId)))
		}
		return netip.AddrPortFrom(a, uint16(sa.Port))
	}
	return netip.AddrPort{}
}

// Sockaddr returns an address as the kernel takes it.
func Sockaddr(a netip.AddrPort) syscall.Sockaddr {
	if a.Addr().Is4() {
		return &syscall.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	zone, _ := strconv.Atoi(a.Addr().Zone()) // as AddrPort wrote it
	return &syscall.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16(), ZoneId: uint32(zone)}
}
