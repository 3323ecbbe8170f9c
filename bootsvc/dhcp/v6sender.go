package dhcp

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"net/netip"
	"os"
	"sync"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"ingot/bootsvc/internal/socket"
	"ingot/model"
)

const (
	headerIPv6 = 40 // RFC 8200 §3
	headerUDP  = 8  // RFC 768
	// maxSenders is more packets than the buffer of a socket keeps for us.
	maxSenders = 1 << 13
)

// senders tells which Ethernet addresses the packets of DHCPv6 clients on a link come from. The
// kernel does not say so of what a UDP socket receives, so a socket for frames receives the
// same packets besides, and before it.
type senders struct {
	*os.File
	seed maphash.Seed

	mu   sync.Mutex
	seen map[uint64]string // by what was sent; "" = by two
	last []uint64          // the keys of seen, a ring
	next int
}

func openSenders(index int) (*senders, error) {
	frames, err := listenFrames(index, clients6, socketBuffer)
	if err != nil {
		return nil, err
	}
	return &senders{File: frames, seed: maphash.MakeSeed(), seen: make(map[uint64]string), last: make([]uint64, maxSenders)}, nil
}

// listenFrames returns a socket that receives the IP packets on a link that pass a filter. A buffer of 0 is the kernel's default.
func listenFrames(index int, filter *unix.SockFprog, buffer int) (*os.File, error) {
	s, err := openFrames(unix.SOCK_DGRAM)
	if err != nil {
		return nil, err
	}
	err = socket.Control(s, func(fd int) error {
		return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, filter)
	}, func(fd int) error {
		if buffer > 0 {
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, buffer)
		}
		_ = unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1) // which costs less; Linux 4.20
		// Of all protocols, because those sockets receive before the ones of the kernel's own
		// protocols.
		return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: binary.NativeEndian.Uint16([]byte{0, unix.ETH_P_ALL}), Ifindex: index})
	})
	if err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("receive frames: %w", err)
	}
	return s, nil
}

// senders returns the senders on the interface, nil where they cannot be opened.
func (s *sockets) senders(l *link) *senders {
	opened, err := openSenders(l.index)
	if err != nil {
		s.log.Warn("DHCPv6 clients whose addresses are not made of their MAC addresses are not known by these, which needs CAP_NET_RAW",
			"network", s.network.Name, "err", err)
	}
	return opened
}

// clients6 lets UDP packets over IPv6 to port 547 pass that are not a relay's.
var clients6 = filterOf(
	bpf.LoadExtension{Num: bpf.ExtProto},
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.ETH_P_IPV6, SkipTrue: 7},
	bpf.LoadAbsolute{Off: 6, Size: 1}, // next header
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.IPPROTO_UDP, SkipTrue: 5},
	bpf.LoadAbsolute{Off: headerIPv6 + 2, Size: 2}, // destination port
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: port6Server, SkipTrue: 3},
	bpf.LoadAbsolute{Off: headerIPv6 + headerUDP, Size: 1},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(dhcpv6.MessageTypeRelayForward), SkipTrue: 1},
	bpf.RetConstant{Val: headerIPv6 + headerUDP + maxPacket},
	bpf.RetConstant{Val: 0},
)

// filterOf assembles a filter, which has no reason to fail.
func filterOf(program ...bpf.Instruction) *unix.SockFprog {
	raw, err := bpf.Assemble(program)
	if err != nil {
		panic(err)
	}
	filter := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filter[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
}

// sender returns the Ethernet address that a client's packet from an address came from, or "". What a relay sends
// has that of the relay, and is not among the frames.
func (c *conn) sender(packet []byte, from netip.Addr) string {
	if c == nil || c.senders == nil || len(packet) > 0 && packet[0] == byte(dhcpv6.MessageTypeRelayForward) {
		return ""
	}
	return c.senders.of(packet, from)
}

// of returns the MAC address that a packet came from, "" if that is not known, or if the same packet
// came from two.
func (s *senders) of(packet []byte, from netip.Addr) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catchUp()
	return s.seen[s.key(from.As16(), packet)]
}

// catchUp takes in what came since.
func (s *senders) catchUp() {
	var buf [headerIPv6 + headerUDP + maxPacket]byte
	_ = socket.Control(s, func(fd int) error {
		for {
			size, from, err := unix.Recvfrom(fd, buf[:], unix.MSG_DONTWAIT)
			if err == unix.EINTR { //nolint:errorlint // a bare number
				continue
			}
			if err != nil {
				return err
			}
			if link, ok := from.(*unix.SockaddrLinklayer); ok && link.Halen == uint8(len(model.MAC{})) {
				s.took(buf[:size], clientMAC(link.Addr[:link.Halen]))
			}
		}
	})
}

// took takes in a packet of IPv6, whose beginning the filter has seen.
func (s *senders) took(packet []byte, mac string) {
	if len(packet) < headerIPv6+headerUDP {
		return
	}
	length := int(binary.BigEndian.Uint16(packet[headerIPv6+4:]))
	if length < headerUDP || headerIPv6+length > len(packet) {
		return
	}
	key := s.key([16]byte(packet[8:]), packet[headerIPv6+headerUDP:headerIPv6+length])
	if known, again := s.seen[key]; again {
		if known != mac {
			s.seen[key] = ""
		}
		return
	}
	delete(s.seen, s.last[s.next])
	s.seen[key], s.last[s.next] = mac, key
	s.next = (s.next + 1) % len(s.last)
}

func (s *senders) key(from [16]byte, payload []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	_, _ = h.Write(from[:])
	_, _ = h.Write(payload)
	return h.Sum64()
}
