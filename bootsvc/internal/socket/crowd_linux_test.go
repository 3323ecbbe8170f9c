package socket

import (
	"net/netip"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"ingot/bootsvc/internal/netnstest"
)

// TestPacketsForNobodyCrowdASocket: the kernel keeps them until it knows that nobody answers for
// their addresses. Those for who is there leave at once.
func TestPacketsForNobodyCrowdASocket(t *testing.T) {
	netnstest.Run(t, [][]string{
		{"link", "add", "rack", "type", "veth", "peer", "name", "far"},
		{"address", "add", "10.9.0.1/16", "dev", "rack"},
		{"link", "set", "far", "up"},
		{"link", "set", "rack", "up"},
		{"neighbour", "add", "10.9.0.2", "lladdr", "02:00:00:00:00:02", "dev", "rack"},
	}, func(func(...string)) {
		s, err := New(unix.AF_INET, unix.SOCK_DGRAM)
		if err == nil {
			err = s.Set(func(fd int) error { return syscall.Bind(fd, &syscall.SockaddrInet4{}) })
		}
		if err != nil {
			t.Error(err)
			return
		}
		defer s.Close()
		send := func(to netip.Addr) {
			if err := s.Send(make([]byte, 512), nil, Sockaddr(netip.AddrPortFrom(to, 9))); err != nil {
				t.Errorf("send to %s: %v", to, err)
			}
		}
		for range 1000 {
			send(netip.MustParseAddr("10.9.0.2"))
		}
		if s.Crowded() {
			t.Error("it is crowded by packets that left")
		}
		sent := 0
		for to := netip.MustParseAddr("10.9.1.1"); !s.Crowded() && sent < 1000; to = to.Next() {
			send(to)
			sent++
		}
		if sent < 10 || sent > s.room/2048 { // each takes more than 1024 bytes of it
			t.Errorf("it is crowded after %d packets for nobody", sent)
		}
	})
}
