package tftp

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"time"
)

// The library writes stocks of blocks, so many at a time: each costs a wake-up of its
// goroutine, and while it is on its way three times its size of memory. The library
// takes no more than 65464 bytes. While many transfers are under way stocks are small.
const (
	stockBlocks   = 40
	smallStock    = 8
	manyTransfers = 128
)

// stockFor returns how many blocks a stock has, by the transfers under way.
func stockFor(transfers int) int {
	if transfers >= manyTransfers {
		return smallStock
	}
	return stockBlocks
}

// transfer is one file on its way to one client. The gate's lock guards it.
//
// The library writes the file in stocks of many blocks, which are its blocks, and
// here they are cut into those of the client. From the client's first acknowledgement
// on the library is a stock ahead: it is told that the client has a stock when the
// first block of it is sent, and what it writes next is held meanwhile. The last
// stock it is told of only when the client has it all, for then its work is done.
type transfer struct {
	number  string
	client  netip.AddrPort // as the socket has it
	remote  *net.UDPAddr   // as the library has it, which only reads it
	control []byte         // control message that makes answers come from where the request went
	request []byte         // as it came
	name    string         // of the file
	granted int            // block size that the client's option is answered with, 0 = none
	block   int            // bytes of a block
	written int            // bytes of a stock
	heard   time.Time      // when the client last acknowledged

	first   []byte    // the packet that the client has not acknowledged yet, until it acknowledges one
	sent    []byte    // the packet that was last sent: options or a block
	sentAt  time.Time // when, or when it was last due again
	repeats int       // how often it was due again
	waiting bool      // for its acknowledgement
	count   uint16    // of the last block that was sent

	stock  []byte  // of the file: what is left of what was written
	held   []byte  // what was written after it
	room   []byte  // that stock lies in, for the one after the next
	ended  bool    // nothing comes after held
	wrote  [4]byte // the beginning of what the library wrote last
	handed bool    // the library has the acknowledgement of that

	confirmed bool  // the client acknowledged something: its address is its own
	delivered bool  // it has the first block
	told      bool  // Seen is
	done      bool  // it has the last
	declined  bool  // it sent an error
	ending    bool  // the library is about to send its last packet, an error
	bytes     int64 // of the file that were sent
}

// goesOn reports whether the transfer goes on after its client sent a read request:
// when it is the same again, before there is anything to begin anew for.
func (t *transfer) goesOn(request []byte, now time.Time) bool {
	return t != nil && !t.done && !t.declined && bytes.Equal(request, t.request) &&
		(!t.confirmed || now.Sub(t.heard) < restartAfter)
}

// declines reports whether packet is the client's error, and notes it.
func (t *transfer) declines(packet []byte) bool {
	if binary.BigEndian.Uint16(packet) != opError || len(packet) < 5 || t.declined {
		return false
	}
	t.declined = true
	return true
}

// acknowledged reports whether packet acknowledges what was last sent, and notes it.
// One that comes a second time counts for nothing: were it answered, each block from
// there on would be sent twice (RFC 1123 §4.2.3.1).
func (t *transfer) acknowledged(packet []byte, now time.Time) bool {
	if binary.BigEndian.Uint16(packet) != opAcknowledge || !t.waiting || t.declined || binary.BigEndian.Uint16(packet[2:]) != t.count {
		return false
	}
	t.waiting, t.confirmed, t.first, t.heard = false, true, nil, now
	if isData(t.sent) {
		t.delivered, t.done = true, len(t.sent) < 4+t.block
	}
	return true
}

// write takes options or data that the library writes for the first time, and
// reports whether there are options to be sent.
func (t *transfer) write(p []byte) bool {
	t.handed = false
	copy(t.wrote[:], p)
	if isData(p) {
		t.held = append(t.held[:0], p[4:]...)
		t.ended = len(p) < 4+t.written
		return false
	}
	t.sent = optionsPacket(p, t.granted)
	t.waiting = t.sent != nil
	return t.waiting
}

// cut makes the next block of the file the packet that is sent, if the client waits
// for one and the library has written it.
func (t *transfer) cut() bool {
	if t.waiting || t.done {
		return false
	}
	if len(t.stock) == 0 && len(t.held) > 0 {
		t.stock, t.room, t.held = t.held, t.held, t.room[:0]
	}
	n := min(t.block, len(t.stock))
	if n < t.block && !t.ended {
		return false
	}
	t.count++
	t.sent = append(binary.BigEndian.AppendUint16(append(t.sent[:0], 0, opData), t.count), t.stock[:n]...)
	t.stock, t.waiting = t.stock[n:], true
	t.bytes += int64(n)
	return true
}

// isRepeated reports whether p is what the library wrote last.
func (t *transfer) isRepeated(p []byte) bool { return bytes.Equal(t.wrote[:], p[:4]) }

// due reports whether the client has not acknowledged what was sent for as long as
// it may take, and notes it.
func (t *transfer) due(now time.Time, answer time.Duration) bool {
	if !t.waiting || now.Sub(t.sentAt) < answer {
		return false
	}
	t.sentAt = now
	t.repeats++
	return true
}

// silent reports whether what was sent was due again too often.
func (t *transfer) silent() bool {
	return t.repeats > retries || !t.confirmed && t.repeats > maxUnanswered
}

// hand reports whether the library is now to be told that the client has what it
// wrote last, and notes that it is.
func (t *transfer) hand() bool {
	if t.handed || len(t.held) > 0 || t.waiting && !t.confirmed || t.ended && !t.done {
		return false
	}
	// the library takes one at a time: a second of the same stock would be in the way
	// of the next one's
	t.handed = true
	return true
}

// acknowledgement writes to p the acknowledgement of what the library wrote last,
// and returns its length.
func (t *transfer) acknowledgement(p []byte) int {
	n := copy(p, []byte{0, opAcknowledge, 0, 0})
	if isData(t.wrote[:]) {
		copy(p[2:n], t.wrote[2:])
	}
	return n
}

// isData reports whether a packet is a block of a file.
func isData(p []byte) bool { return binary.BigEndian.Uint16(p) == opData }
