package socket

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// Outbox gathers packets that are sent by one call. It is not safe for concurrent use.
type Outbox struct {
	socket *Socket
	batch  batch
	used   int
	lost   int // since Flush returned it
	send   func(fd uintptr)
}

// Outbox returns an outbox for at most so many packets, with control messages, of as many
// bytes.
func (s *Socket) Outbox(packets, packet, control int) *Outbox {
	o := &Outbox{socket: s, batch: newBatch(packets, packet, control)}
	o.send = o.sendAll // made once, not for each call
	return o
}

// Packet returns room for the next packet, of no bytes yet.
func (o *Outbox) Packet() []byte {
	if o.used == len(o.batch.messages) {
		o.flush()
	}
	return o.batch.envelopes[o.used].packet[:0]
}

// Add adds the packet that was written into what Packet returned last. Its control message
// says where it is to come from; nil = the kernel chooses.
func (o *Outbox) Add(packet, control []byte, to netip.AddrPort) {
	e := &o.batch.envelopes[o.used]
	o.batch.prepare(o.used, putName(e.name[:], to), len(packet), copy(e.control, control))
	o.socket.count(len(packet))
	o.used++
}

// Flush sends what was gathered. A packet that cannot be sent is lost, as packets are: Flush
// returns how many were.
func (o *Outbox) Flush() (lost int) {
	o.flush()
	lost, o.lost = o.lost, 0
	return lost
}

func (o *Outbox) flush() {
	if o.used == 0 {
		return
	}
	if o.socket.raw.Control(o.send) != nil { // it is closed
		o.lost += o.used
	}
	o.used = 0
}

// sendAll sends everything. What cannot come from where it is to come from is sent from any
// address.
func (o *Outbox) sendAll(fd uintptr) {
	for next := 0; next < o.used; {
		n, err := o.batch.call(unix.SYS_SENDMMSG, fd, next, o.used, 0)
		next += n
		if err == nil || err == unix.EINTR { //nolint:errorlint // a bare number
			continue
		}
		if h := &o.batch.messages[next].header; h.Control != nil {
			h.Control = nil
			h.SetControllen(0)
			continue
		}
		next++
		o.lost++
	}
}
