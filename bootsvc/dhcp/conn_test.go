package dhcp

import (
	"net"
	"net/netip"
	"testing"

	"ingot/bootsvc/internal/socket"
	"ingot/model/must"
)

func TestClosedSocketFreesItsPort(t *testing.T) {
	c := must.Get(listen("", netip.MustParseAddrPort("127.0.0.1:0")))(t)
	ended := make(chan error)
	go func() {
		_, _, err := c.receive()
		ended <- err
	}()
	must.Do(t, c.Close())
	if err := <-ended; !socket.IsEnded(err) {
		t.Errorf("the reader ended with %v", err)
	}
	if c.Send([]byte("late"), nil, localAddr(t, c).AddrPort()) == nil {
		t.Error("it sends afterwards")
	}
	must.Do(t, must.Get(net.ListenUDP("udp4", localAddr(t, c)))(t).Close())
}

func TestAnEmptyPacketIsAPacket(t *testing.T) {
	c := must.Get(listen("", netip.MustParseAddrPort("127.0.0.1:0")))(t)
	defer func() { _ = c.Close() }()
	must.Do(t, c.Send(nil, nil, localAddr(t, c).AddrPort()))
	data, from, err := c.receive()
	if err != nil || len(data) != 0 || from != localAddr(t, c).AddrPort() {
		t.Errorf("got %d bytes from %s, %v", len(data), from, err)
	}
}
