package tftp

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"time"
)

const (
	// maxUnanswered is how often the first packet may be due again for a client that is
	// silent, until the transfer is given up.
	maxUnanswered = 5
	// restartAfter is after how much silence a client that repeats its request has
	// begun anew, rather than the network repeated it.
	restartAfter = 3 * time.Second

	// chunkSize is how much of a file is read at a time, and lowWater how much may be left
	// to send when the next chunk is asked for, in bytes: more than a window.
	chunkSize = 16 << 10
	lowWater  = chunkSize / 2
)

// transfer is one file on its way to one client. The server's lock guards it.
//
// Blocks are numbered from 1 and on beyond 65535, of which packets show 16 bits.
type transfer struct {
	client  netip.AddrPort // as the socket has it
	control []byte         // control message that makes answers come from where the request went
	packet  []byte         // the request, as it came
	request readRequest
	name    string // of the file
	block   int    // bytes of a block
	window  int    // blocks that may be sent before they are acknowledged
	started time.Time

	more    chan struct{} // asks the file's goroutine for more, and is closed at the end
	reading bool          // that goroutine is reading or opening the file
	opened  bool          // it has read something, or it cannot
	data    []byte        // of the file, from the first block that is not acknowledged
	room    []byte        // that data lies in
	whole   bool          // data reaches to the end of the file
	err     error         // why there is no more of it

	options   []byte // the answer to the request's options, until it is acknowledged
	acked     int64  // the last block that is acknowledged, with all before it
	sent      int64  // the last block that was sent
	last      int64  // the last block of the file, 0 = not known yet
	trusted   int64  // the first block whose acknowledgement means loss when it comes twice
	confirmed bool   // the client acknowledged something: its address is its own
	heard     time.Time
	sentAt    time.Time // when something was last sent, or due again
	repeats   int       // how often that was due again
	bytes     int64     // of the file that were sent
	result    string    // "" = it is under way
}

// goesOn reports whether the transfer goes on after its client sent a read request:
// when it is the same again, before there is anything to begin anew for.
func (t *transfer) goesOn(packet []byte, now time.Time) bool {
	return t != nil && bytes.Equal(packet, t.packet) && (!t.confirmed || now.Sub(t.heard) < restartAfter)
}

// acknowledge notes that the client acknowledged a block, and reports whether that
// changes what is to be sent.
//
// An acknowledgement that comes a second time counts for nothing: were it answered,
// each block from there on would be sent twice (RFC 1123 §4.2.3.1). Within a window it
// is how a client says that the next block was lost (RFC 7440 §4), but it says so of
// each block that it did not expect, also of those that were sent twice; so it is
// believed once, and again after a window for which nothing was repeated.
func (t *transfer) acknowledge(number uint16, now time.Time) bool {
	count := int64(number - uint16(t.acked))
	switch {
	case t.options != nil && number == 0:
		t.options = nil
	case !t.waiting() || t.options != nil || count > t.sent-t.acked:
		return false
	case count == 0:
		believed := t.window > 1 && t.acked >= t.trusted
		if believed {
			t.rewind()
		}
		return believed
	}
	t.data = t.data[min(int(count)*t.block, len(t.data)):]
	t.acked += count
	if t.acked < t.sent {
		t.rewind()
	}
	t.confirmed, t.heard, t.repeats = true, now, 0
	return true
}

// rewind makes the blocks that are not acknowledged the next to be sent.
func (t *transfer) rewind() {
	t.sent, t.trusted = t.acked, t.acked+int64(t.window)+1
}

func (t *transfer) waiting() bool { return t.options != nil || t.sent > t.acked }

// full reports whether nothing may be sent until the client acknowledges something.
func (t *transfer) full() bool {
	return t.options != nil || t.sent-t.acked >= int64(t.window) || t.last > 0 && t.sent == t.last
}

func (t *transfer) done() bool { return t.last > 0 && t.acked == t.last }

// next appends to p the next block that is to be sent, or returns nil when the client
// has to acknowledge something first, or the block is not read yet.
func (t *transfer) next(p []byte) []byte {
	rest := t.unsent()
	if t.full() || len(rest) < t.block && !t.whole {
		return nil
	}
	data := rest[:min(t.block, len(rest))]
	t.sent++
	if len(data) < t.block {
		t.last = t.sent
	}
	t.bytes = max(t.bytes, (t.sent-1)*int64(t.block)+int64(len(data)))
	return appendData(p, t.sent, data)
}

// unsent returns what was read of the file and is still to be sent.
func (t *transfer) unsent() []byte {
	return t.data[min(int(t.sent-t.acked)*t.block, len(t.data)):]
}

// add adds what was read of the file, and why nothing comes after it: io.EOF at the
// end, else what broke. What comes last is kept as it is, not copied: data may be a whole
// file that is in memory anyhow.
func (t *transfer) add(data []byte, err error) {
	if t.whole = errors.Is(err, io.EOF); !t.whole {
		t.err = err
	}
	if t.whole && len(t.data) == 0 {
		t.data, t.room = data, nil
		return
	}
	t.room = append(append(t.room[:0], t.data...), data...)
	t.data = t.room
}

// broken reports whether the client waits for a block that cannot be read.
func (t *transfer) broken() bool { return t.err != nil && !t.full() }

// hungry reports whether more of the file is to be read.
func (t *transfer) hungry() bool {
	return !t.reading && !t.whole && t.err == nil && len(t.unsent()) < lowWater
}

// due reports whether the client has not acknowledged what was sent for as long as
// it may take, and notes it.
func (t *transfer) due(now time.Time, answer time.Duration) bool {
	if !t.waiting() || now.Sub(t.sentAt) < answer {
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

// answerable reports whether the client may be sent an error: it is the first packet
// that it is sent, or the client has shown that its address is its own.
func (t *transfer) answerable() bool { return t.confirmed || !t.waiting() }
