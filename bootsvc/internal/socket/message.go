package socket

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// message is a packet as recvmmsg(2) and sendmmsg(2) have it: struct mmsghdr.
type message struct {
	header unix.Msghdr
	size   uint32 // bytes of the packet that were received or sent
}

// envelope is what the header of a message points to.
type envelope struct {
	vector  unix.Iovec
	name    [unix.SizeofSockaddrInet6]byte // struct sockaddr_in or sockaddr_in6
	packet  []byte
	control []byte
}

// batch is room for the messages that one call receives or sends.
type batch struct {
	messages  []message
	envelopes []envelope
}

// newBatch returns room for so many messages, with packets and control messages of as many
// bytes.
func newBatch(messages, packet, control int) batch {
	b := batch{make([]message, messages), make([]envelope, messages)}
	for i := range messages {
		h, e := &b.messages[i].header, &b.envelopes[i]
		e.packet, e.control = make([]byte, packet), make([]byte, control)
		e.vector.Base = unsafe.SliceData(e.packet)
		h.Name, h.Iov = &e.name[0], &e.vector
		h.SetIovlen(1)
	}
	return b
}

// prepare sets how many bytes the parts of a message have, or have room for.
func (b *batch) prepare(i, name, packet, control int) {
	h, e := &b.messages[i].header, &b.envelopes[i]
	h.Namelen = uint32(name)
	e.vector.SetLen(packet)
	h.Control = nil
	if control > 0 {
		h.Control = &e.control[0]
	}
	h.SetControllen(control)
}

// call has the kernel receive or send the messages from first up to end, and returns how
// many it did.
func (b *batch) call(trap uintptr, fd uintptr, first, end, flags int) (int, error) {
	n, _, errno := unix.Syscall6(trap, fd, uintptr(unsafe.Pointer(&b.messages[first])), uintptr(end-first), uintptr(flags), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// from returns the address and port that a message was received from; its zone is a number.
// It is the zero value for what is no packet of IP.
func (b *batch) from(i int) netip.AddrPort {
	name := b.envelopes[i].name[:min(b.messages[i].header.Namelen, unix.SizeofSockaddrInet6)]
	if len(name) < unix.SizeofSockaddrInet4 {
		return netip.AddrPort{}
	}
	port := binary.BigEndian.Uint16(name[2:])
	switch family := binary.NativeEndian.Uint16(name); {
	case family == unix.AF_INET:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(name[4:8])), port)
	case family == unix.AF_INET6 && len(name) == unix.SizeofSockaddrInet6:
		a := netip.AddrFrom16([16]byte(name[8:24]))
		if zone := binary.NativeEndian.Uint32(name[24:]); zone != 0 {
			a = a.WithZone(strconv.Itoa(int(zone)))
		}
		return netip.AddrPortFrom(a, port)
	}
	return netip.AddrPort{}
}

// putName writes an address as the kernel takes it, and returns how many bytes it has.
func putName(name []byte, to netip.AddrPort) int {
	a := to.Addr()
	clear(name)
	binary.BigEndian.PutUint16(name[2:], to.Port())
	if a.Is4() {
		binary.NativeEndian.PutUint16(name, unix.AF_INET)
		copy(name[4:], a.AsSlice())
		return unix.SizeofSockaddrInet4
	}
	binary.NativeEndian.PutUint16(name, unix.AF_INET6)
	bytes := a.As16()
	copy(name[8:], bytes[:])
	if a.Zone() != "" {
		zone, _ := strconv.Atoi(a.Zone()) // as from wrote it
		binary.NativeEndian.PutUint32(name[24:], uint32(zone))
	}
	return unix.SizeofSockaddrInet6
}
