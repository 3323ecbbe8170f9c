package socket

import (
	"net/netip"
	"testing"
	"time"

	"golang.org/x/net/ipv4"

	"ingot/bootsvc/internal/netnstest"
	"ingot/model/must"
)

func bound(t *testing.T) (*Socket, netip.AddrPort) {
	t.Helper()
	s := must.Get(Listen("udp4", "127.0.0.1:0", 1<<20))(t)
	t.Cleanup(func() { _ = s.Close() })
	return s, netip.MustParseAddrPort(s.LocalAddr().String())
}

func receive(t *testing.T, s *Socket) (string, netip.AddrPort) {
	t.Helper()
	var buf [64]byte
	_ = s.SetReadDeadline(time.Now().Add(10 * time.Second))
	n, from, err := s.ReadFromUDPAddrPort(buf[:])
	if err != nil {
		t.Fatal(err)
	}
	return string(buf[:n]), from
}

func TestSendFallsBackToAnySourceAddress(t *testing.T) {
	reader, to := bound(t)
	sender, from := bound(t)
	foreign := (&ipv4.ControlMessage{Src: netip.MustParseAddr("192.0.2.1").AsSlice()}).Marshal()
	for _, control := range [][]byte{nil, foreign} {
		must.Do(t, sender.Send([]byte("packet"), control, to))
		if got, at := receive(t, reader); got != "packet" || at != from {
			t.Errorf("got %q from %s, want a packet from %s", got, at, from)
		}
	}
	if sender.Send([]byte("nowhere"), foreign, netip.AddrPortFrom(to.Addr(), 0)) == nil {
		t.Error("a packet to port 0 is reported as sent")
	}
}

func TestInterruptEndsTheReaderAlone(t *testing.T) {
	reader, _ := bound(t)
	other, to := bound(t)
	ended := make(chan error)
	go func() {
		_, _, err := reader.ReadFromUDPAddrPort(make([]byte, 1))
		ended <- err
	}()
	reader.Interrupt()
	if err := <-ended; !IsEnded(err) {
		t.Errorf("the reader ended with %v", err)
	}
	must.Do(t, reader.Send([]byte("last"), nil, to))
	if got, _ := receive(t, other); got != "last" {
		t.Errorf("got %q", got)
	}
	_ = reader.Close()
	if _, _, err := reader.ReadFromUDPAddrPort(make([]byte, 1)); !IsEnded(err) {
		t.Errorf("after Close: %v", err)
	}
}

// The kernel keeps packets until it knows that no neighbor answers.
func TestCrowded(t *testing.T) {
	netnstest.Run(t, netnstest.Rack, func(func(...string)) {
		s, err := Listen("udp4", "0.0.0.0:0", 1<<20)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = s.Close() }()
		send := func(to netip.Addr) {
			if err := s.Send(make([]byte, 512), nil, netip.AddrPortFrom(to, 9)); err != nil {
				t.Errorf("send to %s: %v", to, err)
			}
		}
		for range 1000 {
			send(netip.MustParseAddr("10.9.0.2"))
		}
		if s.Crowded() {
			t.Error("packets to a known neighbor remain in the buffer")
		}
		sent := 0
		for to := netip.MustParseAddr("10.9.1.1"); !s.Crowded() && sent < 1000; to = to.Next() {
			send(to)
			sent++
		}
		if sent < 10 || sent > s.room/2048 { // each takes more than 1024 bytes of it
			t.Errorf("crowded after %d packets to unknown neighbors", sent)
		}
	})
}
