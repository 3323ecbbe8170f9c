package dhcp

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ingot/bootsvc/internal/socket"
	"ingot/model/must"
)

// reading opens a socket on loopback that somebody reads, and returns what its
// reader came back with.
func reading(t *testing.T) (c *conn, ended <-chan error) {
	t.Helper()
	c = must.Get(listen("", netip.MustParseAddrPort("127.0.0.1:0")))(t)
	t.Cleanup(c.Close)
	got := make(chan error, 1)
	go func() {
		for {
			if _, _, err := c.receive(); err != nil {
				got <- err
				return
			}
		}
	}()
	return c, got
}

// isEnded waits for a reader's end, for less time than it takes to look by itself.
func isEnded(t *testing.T, ended <-chan error) {
	t.Helper()
	select {
	case err := <-ended:
		if !errors.Is(err, socket.ErrEnded) {
			t.Errorf("the reader ended with %v", err)
		}
	case <-time.After(socket.WakeEvery / 2):
		t.Fatal("the reader does not end")
	}
}

func taken(to *net.UDPAddr) bool {
	c, err := net.ListenUDP("udp4", to)
	if err == nil {
		_ = c.Close()
	}
	return errors.Is(err, unix.EADDRINUSE)
}

func TestClosingASocketEndsItsReader(t *testing.T) {
	c, ended := reading(t)
	address := localAddr(t, c)
	c.Close()
	isEnded(t, ended)
	eventually(t, "its port is free again", func() bool { return !taken(address) })
	if err := c.send([]byte("late"), address.AddrPort()); err == nil {
		t.Error("it sends afterwards")
	}
	if _, _, err := c.receive(); !errors.Is(err, socket.ErrEnded) {
		t.Errorf("receiving afterwards: %v", err)
	}
}

func TestAnInterruptedSocketStillSends(t *testing.T) {
	c, ended := reading(t)
	other := must.Get(net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}))(t)
	defer func() { _ = other.Close() }()
	c.Interrupt()
	isEnded(t, ended)
	must.Do(t, c.send([]byte("the last answer"), other.LocalAddr().(*net.UDPAddr).AddrPort()))
	_ = other.SetReadDeadline(time.Now().Add(10 * time.Second))
	buf := make([]byte, 64)
	if size, _, err := other.ReadFromUDP(buf); err != nil || string(buf[:size]) != "the last answer" {
		t.Errorf("got %q, %v", buf[:size], err)
	}
}

func TestAnswersGatherUntilAllOfThemAreMade(t *testing.T) {
	c := must.Get(listen("", netip.MustParseAddrPort("127.0.0.1:0")))(t)
	defer c.Close()
	at := localAddr(t, c).AddrPort()
	long := strings.Repeat("x", roomToSend+1)
	send := func(text string, to netip.AddrPort) {
		t.Helper()
		if err := c.send([]byte(text), to); err != nil {
			t.Fatalf("%.10s: %v", text, err)
		}
	}
	send("alone", at)
	c.hold()
	send("one", at)
	c.hold()
	send("nowhere", netip.AddrPortFrom(at.Addr(), 0))
	send("two", at)
	send(long, at)
	if lost := c.release(); lost != 1 {
		t.Errorf("%d packets were lost, want one", lost)
	}
	send("three", at)
	send(long, at)
	if lost := c.release(); lost != 0 {
		t.Errorf("then %d packets were lost, want none", lost)
	}
	send("four", at)
	defer time.AfterFunc(10*time.Second, c.Close).Stop() // what never leaves is not waited for
	for _, want := range []string{"alone", long, "one", "two", long, "three", "four"} {
		if data, _, err := c.receive(); err != nil || string(data) != want {
			t.Errorf("got %.10q, %v; want %.10q", data, err, want)
		}
	}
}

func TestAnEmptyPacketIsAPacket(t *testing.T) {
	c := must.Get(listen("", netip.MustParseAddrPort("127.0.0.1:0")))(t)
	defer c.Close()
	must.Do(t, c.send(nil, localAddr(t, c).AddrPort()))
	data, from, err := c.receive()
	if err != nil || len(data) != 0 || from != localAddr(t, c).AddrPort() {
		t.Errorf("got %d bytes from %s, %v", len(data), from, err)
	}
}

func TestPacketsThatWaitAreReadWithoutAPause(t *testing.T) {
	c := must.Get(listen("", netip.MustParseAddrPort("127.0.0.1:0")))(t)
	defer c.Close()
	const packets = 200
	for range packets {
		must.Do(t, c.send([]byte("packet"), localAddr(t, c).AddrPort()))
	}
	start := time.Now()
	for range packets {
		if _, _, err := c.receive(); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(start); took >= packets*gatherTime {
		t.Errorf("%d packets took %s", packets, took)
	}
}
