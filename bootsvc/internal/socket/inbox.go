package socket

import (
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// inbox is where packets are received, many by one call when many wait.
type inbox struct {
	batch   batch
	next    int // of those received, which was not handed over yet
	count   int
	came    int       // since the socket was left alone last
	last    time.Time // when something was received last
	gather  time.Duration
	alone   bool // what came last was one packet, with none shortly before
	flags   int  // of the call
	err     error
	receive func(fd uintptr)
}

// Packet is what was received. It is good until the next one is.
type Packet struct {
	Data    []byte
	Control []byte         // control message: what the kernel says of the packet
	From    netip.AddrPort // its zone is a number
}

// Inbox makes room for at most so many packets that are received by one call, with control
// messages, of as many bytes. It is called once before Receive.
func (s *Socket) Inbox(packets, packet, control int) {
	in := &inbox{batch: newBatch(packets, packet, control), count: packets}
	in.receive = in.fill // made once, not for each call
	in.next = in.count   // all are empty
	s.inbox = in
}

// manyPackets are so many between two pauses that the next is four times as long.
const manyPackets = 4

// Receive waits for a packet. It is ErrEnded once the socket was closed or interrupted. When
// nothing more is there it leaves the socket alone for a time, or four times as long while many come,
// before it waits to be woken: it is woken for a handful of them then. After a packet that came
// alone it waits at once: the next one is another's, who should not wait for that.
func (s *Socket) Receive(gather time.Duration) (Packet, error) {
	in := s.inbox
	in.flags, in.gather = unix.MSG_WAITFORONE, gather
	if gather > 0 {
		in.flags = unix.MSG_DONTWAIT
	}
	for !s.ended.Load() {
		if p, ok := in.take(); ok {
			return p, nil
		}
		closed := s.raw.Control(in.receive)
		switch {
		case closed != nil:
			return Packet{}, ErrEnded
		case in.err == unix.EAGAIN && in.flags == unix.MSG_DONTWAIT: //nolint:errorlint // a bare number
			time.Sleep(in.pause())
			in.flags = unix.MSG_WAITFORONE
		case in.err != nil && in.err != unix.EINTR && in.err != unix.EAGAIN: //nolint:errorlint // bare numbers
			return Packet{}, in.err
		}
	}
	return Packet{}, ErrEnded
}

// Waiting reports whether packets were received that Receive has not returned yet.
func (s *Socket) Waiting() bool { return s.inbox.next < s.inbox.count }

// pause returns how long the socket is left alone.
func (in *inbox) pause() time.Duration {
	came := in.came
	in.came = 0
	switch {
	case in.alone:
		return 0
	case came >= manyPackets:
		return 4 * in.gather
	}
	return in.gather
}

// fill receives what there is.
func (in *inbox) fill(fd uintptr) {
	for i := range in.count { // what was received took some of the room
		e := &in.batch.envelopes[i]
		in.batch.prepare(i, len(e.name), len(e.packet), len(e.control))
	}
	in.next = 0
	in.count, in.err = in.batch.call(unix.SYS_RECVMMSG, fd, 0, len(in.batch.messages), in.flags)
	if in.count > 0 && in.gather > 0 {
		in.took(time.Now())
	}
}

// took notes that something was received.
func (in *inbox) took(now time.Time) {
	in.alone = in.count == 1 && now.Sub(in.last) > in.gather
	in.came, in.last = in.came+in.count, now
}

// take returns the next packet that was received.
func (in *inbox) take() (Packet, bool) {
	for in.next < in.count {
		i := in.next
		in.next++
		m, e := &in.batch.messages[i], &in.batch.envelopes[i]
		if from := in.batch.from(i); from.IsValid() { // it is not once the reader is interrupted
			return Packet{e.packet[:m.size], e.control[:m.header.Controllen], from}, true
		}
	}
	return Packet{}, false
}
