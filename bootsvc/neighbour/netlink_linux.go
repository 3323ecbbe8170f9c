package neighbour

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Table reads the kernel's neighbour table. It is safe for concurrent use.
type Table struct {
	changes int // socket that receives changes, -1 once it is closed; guarded by memory.mu
	memory  *memory
	clock   func() time.Time
}

// changesBuffer is how many bytes of changes may wait to be read.
const changesBuffer = 4 << 20

// Open returns the table of this machine. Nothing that changes from then on is missed
// without being told. Run is to be called, or Close.
func Open() (*Table, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("receive changes of the neighbour table: %w", err)
	}
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, changesBuffer) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, changesBuffer) // as far as net.core.rmem_max allows
	}
	t := &Table{changes: fd, memory: newMemory(), clock: time.Now}
	if err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1 << (unix.RTNLGRP_NEIGH - 1)}); err == nil {
		err = t.readAll()
	}
	if err != nil {
		t.Close()
		return nil, fmt.Errorf("receive changes of the neighbour table: %w", err)
	}
	return t, nil
}

// Close ends the table, which trusts nobody from then on. Run does so itself. It may be
// called again.
func (t *Table) Close() {
	t.memory.mu.Lock()
	defer t.memory.mu.Unlock()
	if t.changes >= 0 {
		_ = unix.Close(t.changes)
		t.changes = -1
	}
}

// Run receives changes until ctx ends.
func (t *Table) Run(ctx context.Context) error {
	defer t.Close()
	t.memory.mu.Lock()
	changes := []unix.PollFd{{Fd: int32(t.changes), Events: unix.POLLIN}}
	t.memory.mu.Unlock()
	for ctx.Err() == nil {
		_, err := unix.Poll(changes, 500)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("receive changes of the neighbour table: %w", err)
		}
		t.memory.mu.Lock()
		t.catchUp(t.clock())
		t.memory.mu.Unlock()
	}
	return nil
}

// At returns who is at an address now; it waits a moment for an answer where the kernel
// knows of nobody. The zone of an address of IPv6 is the interface
// that it is on. Nothing is remembered in between but changes: who was read is noted as
// one.
func (t *Table) At(addr netip.Addr) (Neighbour, error) { return t.read(addr, resolved) }

// Known is At for who must not wait: it takes the kernel's word that nobody is there.
func (t *Table) Known(addr netip.Addr) (Neighbour, error) {
	return t.read(addr, func(netip.Addr, linkAddress) (entry, error) { return entry{}, nil })
}

// read reads who is at an address; again does where the kernel knows of nobody.
func (t *Table) read(addr netip.Addr, again func(netip.Addr, linkAddress) (entry, error)) (Neighbour, error) {
	addr = addr.Unmap()
	index, onLink, err := wayTo(addr)
	if err != nil || !onLink {
		return Neighbour{}, err
	}
	at := linkAddress{index, addr.WithZone("")}
	e, err := entryAt(at)
	if err == nil && e.mac == "" && !e.bare {
		e, err = again(addr, at)
	}
	if err != nil {
		return Neighbour{}, err
	}
	if e.bare {
		return Neighbour{}, nil
	}
	t.memory.mu.Lock()
	defer t.memory.mu.Unlock()
	now := t.clock()
	t.catchUp(now)
	if e.mac != "" {
		t.memory.sawAt(at, e.mac, now)
	}
	return t.memory.at(at, e.mac, now), nil
}

// How long an address that the kernel knows nobody at may take to answer. It does so at once,
// if at all.
const (
	answerTime = 500 * time.Millisecond
	lookAgain  = 20 * time.Millisecond
)

// portDiscard is where what is sent is thrown away (RFC 863).
const portDiscard = 9

// resolved has the kernel ask the link who is at an address, and reads the entry of that. A
// kernel that had asked in vain while a machine went from its firmware to its boot loader
// holds nobody to be there until it has a packet to send, also when that machine has
// just opened a connection.
func resolved(addr netip.Addr, at linkAddress) (e entry, err error) {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, portDiscard)))
	if err != nil {
		return entry{}, nil // there is no way to it any more
	}
	defer func() { _ = conn.Close() }()
	_, _ = conn.Write([]byte{0}) // what is of use is the question that goes before it
	for end := time.Now().Add(answerTime); err == nil && e.mac == "" && time.Now().Before(end); {
		time.Sleep(lookAgain)
		e, err = entryAt(at)
	}
	return e, err
}

// catchUp takes in the changes that wait. The caller holds the memory's lock.
func (t *Table) catchUp(now time.Time) {
	buffer := buffers.Get().(*[maxMessage]byte)
	defer buffers.Put(buffer)
	for {
		if t.changes < 0 {
			t.memory.lost = now
			return
		}
		n, from, err := unix.Recvfrom(t.changes, buffer[:], 0)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return
		case err != nil: // ENOBUFS: the kernel had no room for some
			t.memory.lost = now
			if !errors.Is(err, unix.ENOBUFS) {
				return
			}
			continue
		}
		if k, ok := from.(*unix.SockaddrNetlink); !ok || k.Pid != 0 {
			continue // not the kernel's word
		}
		_ = eachMessage(buffer[:n], func(kind uint16, body []byte) error {
			t.took(kind, body, now)
			return nil
		})
	}
}

func (t *Table) took(kind uint16, body []byte, now time.Time) {
	at, e, ok := parseEntry(body)
	switch {
	case !ok:
	case kind == unix.RTM_DELNEIGH:
		t.memory.forgot(at, now)
	case kind == unix.RTM_NEWNEIGH && e.mac != "":
		t.memory.sawAt(at, e.mac, now)
	}
}

func (t *Table) readAll() error {
	t.memory.mu.Lock()
	defer t.memory.mu.Unlock()
	now := t.clock()
	return ask(unix.RTM_GETNEIGH, unix.NLM_F_DUMP, unix.NdMsg{Family: unix.AF_UNSPEC}, nil, func(kind uint16, body []byte) error {
		t.took(kind, body, now)
		return nil
	})
}

// errNoLink is returned for a link-local address without a zone (RFC 4007 §11): on each link another
// machine may have it.
var errNoLink = errors.New("the address is link-local, and its link is not known")

// wayTo returns the interface that an address is reached on. onLink is false for what
// is reached by a router, and for this machine itself.
func wayTo(addr netip.Addr) (index int, onLink bool, err error) {
	if addr.IsLoopback() {
		return 0, false, nil
	}
	if zone := addr.Zone(); zone != "" {
		link, err := net.InterfaceByName(zone)
		if index, bad := strconv.Atoi(zone); err != nil && bad == nil {
			return index, true, nil // as the kernel names it
		}
		if err != nil {
			return 0, false, fmt.Errorf("find the interface of %s: %w", addr, err)
		}
		return link.Index, true, nil
	}
	if addr.Is6() && addr.IsLinkLocalUnicast() {
		return 0, false, errNoLink // the kernel would take any
	}
	question := unix.RtMsg{Family: family(addr), Dst_len: uint8(addr.BitLen())}
	err = ask(unix.RTM_GETROUTE, 0, question, []attribute{{unix.RTA_DST, addr.AsSlice()}}, func(kind uint16, body []byte) error {
		if kind != unix.RTM_NEWROUTE || len(body) < unix.SizeofRtMsg {
			return nil
		}
		onLink = body[7] == unix.RTN_UNICAST // struct rtmsg: rtm_type
		return eachAttribute(body[unix.SizeofRtMsg:], func(kind uint16, value []byte) {
			switch {
			case kind == unix.RTA_OIF && len(value) >= 4:
				index = int(binary.NativeEndian.Uint32(value))
			case kind == unix.RTA_GATEWAY, kind == unix.RTA_VIA:
				onLink = false
			}
		})
	})
	if errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EHOSTUNREACH) {
		return 0, false, nil // by the time that it is asked for; nobody gets an answer there
	}
	if err != nil {
		return 0, false, fmt.Errorf("find the way to %s: %w", addr, err)
	}
	return index, onLink && index > 0, nil
}

type entry struct {
	mac  string // "" when nobody answers
	bare bool   // its link has no such addresses
}

// entryAt reads the entry of one address, which needs Linux 5.0.
func entryAt(at linkAddress) (e entry, err error) {
	question := unix.NdMsg{Family: family(at.addr), Ifindex: int32(at.index)}
	err = ask(unix.RTM_GETNEIGH, 0, question, []attribute{{unix.NDA_DST, at.addr.AsSlice()}}, func(kind uint16, body []byte) error {
		if found, read, ok := parseEntry(body); kind == unix.RTM_NEWNEIGH && ok && found == at {
			e = read
		}
		return nil
	})
	if errors.Is(err, unix.ENOENT) {
		err = nil
	}
	if err != nil {
		return entry{}, fmt.Errorf("read the neighbour table's entry of %s: %w", at.addr, err)
	}
	if e.mac == "" && !e.bare {
		e.bare, err = isBare(at.index)
	}
	return e, err
}

// isBare reports whether a link has no Ethernet addresses, such as a tunnel.
func isBare(index int) (bare bool, err error) {
	err = ask(unix.RTM_GETLINK, 0, unix.IfInfomsg{Family: unix.AF_UNSPEC, Index: int32(index)}, nil, func(kind uint16, body []byte) error {
		if kind == unix.RTM_NEWLINK && len(body) >= unix.SizeofIfInfomsg {
			bare = binary.NativeEndian.Uint32(body[8:])&unix.IFF_NOARP != 0 // struct ifinfomsg: ifi_flags
		}
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("read the flags of interface %d: %w", index, err)
	}
	return bare, nil
}

// silent are the states in which an entry's address says nothing.
const silent = unix.NUD_NOARP | unix.NUD_FAILED

// parseEntry reads a message about an entry of IPv4 or IPv6.
func parseEntry(body []byte) (at linkAddress, e entry, ok bool) {
	if len(body) < unix.SizeofNdMsg {
		return at, e, false
	}
	// struct ndmsg: ndm_ifindex, ndm_state, ndm_flags
	at.index = int(int32(binary.NativeEndian.Uint32(body[4:])))
	state, flags := binary.NativeEndian.Uint16(body[8:]), body[10]
	if inet := body[0] == unix.AF_INET || body[0] == unix.AF_INET6; !inet || flags&unix.NTF_PROXY != 0 {
		return at, e, false
	}
	var mac net.HardwareAddr
	err := eachAttribute(body[unix.SizeofNdMsg:], func(kind uint16, value []byte) {
		switch kind {
		case unix.NDA_DST:
			at.addr, _ = netip.AddrFromSlice(value)
		case unix.NDA_LLADDR:
			mac = value
		}
	})
	if err != nil || !at.addr.IsValid() {
		return at, e, false
	}
	e.bare = state&unix.NUD_NOARP != 0
	if state&silent == 0 && len(mac) == 6 {
		e.mac = mac.String()
	}
	return at, e, true
}

func family(a netip.Addr) uint8 {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}
