package socket

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

	"ingot/model/must"
)

func bound(t *testing.T, at string) (*Socket, netip.AddrPort) {
	t.Helper()
	domain, addr := unix.AF_INET6, netip.MustParseAddrPort(at)
	if addr.Addr().Is4() {
		domain = unix.AF_INET
	}
	s := must.Get(New(domain, unix.SOCK_DGRAM))(t)
	t.Cleanup(s.Close)
	s.Inbox(4, 16, 64)
	must.Do(t, s.Set(func(fd int) error { return syscall.Bind(fd, Sockaddr(addr)) }, func(fd int) error {
		sa, err := syscall.Getsockname(fd)
		addr = AddrPort(sa)
		return err
	}))
	return s, addr
}

func TestPacketsComeInOrderAndFromTheirSender(t *testing.T) {
	for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
		reader, to := bound(t, at)
		sender, from := bound(t, at)
		out := sender.Outbox(3, 32, 64)
		const packets = 11
		for n := range packets {
			out.Add(fmt.Appendf(out.Packet(), "packet %d", n), nil, to)
		}
		out.Flush()
		out.Flush() // there is nothing left
		waiting := 0
		for n := range packets {
			p, err := reader.Receive(0)
			if want := fmt.Sprint("packet ", n); err != nil || string(p.Data) != want || p.From != from {
				t.Errorf("%s: got %q from %s, %v; want %q from %s", at, p.Data, p.From, err, want, from)
			}
			if reader.Waiting() {
				waiting++
			}
		}
		if waiting == 0 || reader.Waiting() {
			t.Errorf("%s: after %d packets more were waiting, and at the end: %v", at, waiting, reader.Waiting())
		}
	}
}

func TestALongPacketIsCutOffAndTheNextIsNot(t *testing.T) {
	reader, to := bound(t, "127.0.0.1:0")
	for _, text := range []string{"longer than the room", "short", "", "as long as it is"} {
		must.Do(t, reader.Send([]byte(text), nil, Sockaddr(to)))
		p, err := reader.Receive(0)
		if want := text[:min(len(text), 16)]; err != nil || string(p.Data) != want {
			t.Errorf("got %q, %v; want %q", p.Data, err, want)
		}
	}
}

func TestWhatCannotComeFromItsAddressComesFromAny(t *testing.T) {
	reader, to := bound(t, "127.0.0.1:0")
	sender, from := bound(t, "127.0.0.1:0")
	out := sender.Outbox(4, 16, 64)
	foreign := (&ipv4.ControlMessage{Src: netip.MustParseAddr("192.0.2.1").AsSlice()}).Marshal()
	out.Add(append(out.Packet(), "one"...), nil, to)
	out.Add(append(out.Packet(), "foreign"...), foreign, to)
	out.Add(append(out.Packet(), "nowhere"...), nil, netip.AddrPortFrom(to.Addr(), 0)) // is lost
	out.Add(append(out.Packet(), "last"...), nil, to)
	if first, again := out.Flush(), out.Flush(); first != 1 || again != 0 {
		t.Errorf("%d packets were lost, and then %d, want one", first, again)
	}
	for _, want := range []string{"one", "foreign", "last"} {
		if p, err := reader.Receive(0); err != nil || string(p.Data) != want || p.From != from {
			t.Errorf("got %q from %s, %v; want %q", p.Data, p.From, err, want)
		}
	}
}

func TestWhatIsLostIsCounted(t *testing.T) {
	sender, to := bound(t, "127.0.0.1:0")
	out := sender.Outbox(2, 16, 0)
	for range 3 { // more than there is room for
		out.Add(append(out.Packet(), "nowhere"...), nil, netip.AddrPortFrom(to.Addr(), 0))
	}
	if lost := out.Flush(); lost != 3 {
		t.Errorf("%d packets were lost, want 3", lost)
	}
	out.Add(append(out.Packet(), "late"...), nil, to)
	sender.Close()
	if lost := out.Flush(); lost != 1 {
		t.Errorf("of a closed socket %d packets were lost, want one", lost)
	}
}

func TestAddressesAreWrittenAsTheyAreRead(t *testing.T) {
	for _, text := range []string{"192.0.2.1:69", "[2001:db8::1]:65535", "[::ffff:192.0.2.1]:1", "[fe80::1%7]:2"} {
		b, want := newBatch(1, 0, 0), netip.MustParseAddrPort(text)
		b.prepare(0, putName(b.envelopes[0].name[:], want), 0, 0)
		if got := b.from(0); got != want {
			t.Errorf("%s is read as %s", want, got)
		}
	}
}

func TestTheReaderOfAClosedSocketReturns(t *testing.T) {
	s, _ := bound(t, "127.0.0.1:0")
	ended := make(chan error)
	go func() {
		_, err := s.Receive(0)
		ended <- err
	}()
	s.Close()
	if err := <-ended; !errors.Is(err, ErrEnded) {
		t.Errorf("it returned %v", err)
	}
	out := s.Outbox(1, 1, 1)
	out.Add(append(out.Packet(), 0), nil, netip.MustParseAddrPort("127.0.0.1:9"))
	out.Flush()
}

func TestASocketIsLeftAloneWhilePacketsCome(t *testing.T) {
	const gather = 2 * time.Millisecond
	in, now := &inbox{gather: gather}, time.Now()
	for _, c := range []struct {
		title string
		after time.Duration
		came  []int // by one call each
		want  time.Duration
	}{
		{"the first packet", time.Hour, []int{1}, 0},
		{"the next of the same client", time.Millisecond, []int{1}, gather},
		{"one after nothing came for a while", 3 * time.Millisecond, []int{1}, 0},
		{"a few at once", time.Hour, []int{manyPackets - 1}, gather},
		{"many at once", 3 * time.Millisecond, []int{manyPackets}, 4 * gather},
		{"many by several calls", 3 * time.Millisecond, []int{manyPackets - 1, 1}, 4 * gather},
		{"one shortly after many", time.Millisecond, []int{1}, gather},
	} {
		now = now.Add(c.after)
		for _, n := range c.came {
			in.count = n
			in.took(now)
		}
		if got := in.pause(); got != c.want {
			t.Errorf("%s: it is left alone for %s, want %s", c.title, got, c.want)
		}
	}
}
