package dhcp

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"net/netip"
	"testing"
)

func newSenders() *senders {
	return &senders{seed: maphash.MakeSeed(), seen: make(map[uint64]string), last: make([]uint64, maxSenders)}
}

// frame6 is a packet of IPv6 with a UDP packet, from where its Ethernet frame's header ends.
func frame6(from netip.Addr, payload string) []byte {
	b := make([]byte, headerIPv6+headerUDP, headerIPv6+headerUDP+len(payload))
	b[0], b[6] = 0x60, 17
	copy(b[8:], from.AsSlice())
	binary.BigEndian.PutUint16(b[headerIPv6+2:], port6Server)
	binary.BigEndian.PutUint16(b[headerIPv6+4:], uint16(headerUDP+len(payload)))
	return append(b, payload...)
}

func TestWhichFrameAPacketCameIn6(t *testing.T) {
	const one, two = "52:54:00:12:00:01", "52:54:00:12:00:02"
	a, b := netip.MustParseAddr("fe80::a"), netip.MustParseAddr("fe80::b")
	s := newSenders()
	wants := func(from netip.Addr, payload, want string) {
		t.Helper()
		if got := s.seen[s.key(from.As16(), []byte(payload))]; got != want {
			t.Errorf("%q of %s came from %q, want %q", payload, from, got, want)
		}
	}
	s.took(frame6(a, "solicit"), one)
	s.took(append(frame6(b, "solicit"), "padding of a short frame"...), two)
	s.took(frame6(a, "solicit"), one) // once more
	wants(a, "solicit", one)
	wants(b, "solicit", two)
	wants(a, "request", "")
	s.took(frame6(a, "solicit"), two) // says somebody else
	s.took(frame6(a, "solicit"), one)
	wants(a, "solicit", "")
	for _, short := range [][]byte{nil, frame6(a, "")[:headerIPv6], frame6(a, "longer")[:headerIPv6+headerUDP+3]} {
		s.took(short, two)
	}
	for i := range maxSenders {
		s.took(frame6(a, fmt.Sprint(i)), one)
	}
	wants(b, "solicit", "") // it is long ago
	wants(a, fmt.Sprint(maxSenders-1), one)
	if len(s.seen) > maxSenders {
		t.Errorf("%d are remembered", len(s.seen))
	}
}

func FuzzFrames6(f *testing.F) {
	f.Add(frame6(netip.MustParseAddr("fe80::a"), "solicit"))
	f.Add(frame6(netip.MustParseAddr("fe80::a"), "")[:41])
	s := newSenders()
	f.Fuzz(func(_ *testing.T, packet []byte) { s.took(packet, "52:54:00:12:00:01") })
}
