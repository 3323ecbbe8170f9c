package tftp

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"time"
)

// caller is an address with transfers under way.
type caller struct {
	transfers int
	refused   time.Time // when it was last told that they are too many
}

func (s *Server) handle(packet []byte, client netip.AddrPort, control []byte, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(packet) < 4 {
		return
	}
	t := s.current[unmapped(client)]
	switch op := binary.BigEndian.Uint16(packet); {
	case op == opWrite:
		s.metrics.requests[resultRefused].Inc()
		s.sendRefusal(errorPacket(codeReadOnly, "files are only read here"), client, answerFrom(control, client.Addr()), now)
	case op == opRead && t.goesOn(packet, now):
		s.askedAgain(t, now)
	case op == opRead:
		s.begin(packet, client, control, now)
	case t == nil: // what is left of a transfer that is over
	case op == opAcknowledge:
		s.acknowledged(t, binary.BigEndian.Uint16(packet[2:]), now)
	case op == opError && len(packet) > 4:
		s.declined(t)
	}
}

// begin begins the transfer that a read request asks for.
func (s *Server) begin(packet []byte, client netip.AddrPort, control []byte, now time.Time) {
	r, wrong := parseRead(packet)
	if wrong != "" {
		s.refuseIllegal(wrong, packet, client, control, now)
		return
	}
	at, control := unmapped(client), s.routes.back(control, client.Addr())
	if before := s.current[at]; before != nil {
		s.end(before, resultAborted)
	}
	over := s.overLimit(at.Addr())
	if over == full && s.makeRoom(r, at.Addr()) {
		over = overLimit{}
	}
	if over.result != "" {
		s.refuse(over, client, control, r, now)
		return
	}
	t := &transfer{
		client: client, control: control, packet: bytes.Clone(packet), request: r, name: cleanName(r.name),
		block: max(r.blockFor(client.Addr()), defaultBlock), window: max(r.window, 1),
		started: now,
	}
	s.current[at] = t
	s.all[t] = true
	if s.callers[at.Addr()] == nil {
		s.callers[at.Addr()] = &caller{}
	}
	s.callers[at.Addr()].transfers++
	s.metrics.active.Inc()
	if contents, ok := s.since.held[t.name]; ok && r.mode == modeOctet {
		s.proceed(t, contents, int64(len(contents)), io.EOF, now)
		return
	}
	t.more, t.reading = make(chan struct{}, 1), true
	s.running.Go(func() { s.read(t) })
}

// askedAgain answers a client that repeats its request. Once it has acknowledged
// something, the network repeats it.
func (s *Server) askedAgain(t *transfer, now time.Time) {
	if !t.confirmed && t.waiting() {
		t.repeats = 0
		s.repeat(t, now)
	}
}

// acknowledged sends what comes after the block that a client acknowledged.
func (s *Server) acknowledged(t *transfer, number uint16, now time.Time) {
	had := t.acked
	if !t.acknowledge(number, now) {
		return
	}
	if t.done() {
		s.end(t, resultOK)
	} else {
		s.pump(t, now)
	}
	if at := t.client.Addr().Unmap(); had == 0 && t.acked > 0 && s.since.sees(at, t.name) {
		s.seen(at, t.name)
	}
}

// declined ends a transfer whose client sent an error. UEFI asks for the size of a
// file first, and goes away before it has a block.
func (s *Server) declined(t *transfer) {
	if t.acked == 0 {
		s.end(t, resultDeclined)
	} else {
		s.end(t, resultAborted)
	}
}

// pump sends the blocks that a client may be sent, as far as they are read, and asks
// for more of the file. What is lost is sent again in its time.
func (s *Server) pump(t *transfer, now time.Time) {
	for p := t.next(s.block[:0]); p != nil; p = t.next(s.block[:0]) {
		t.sentAt = now
		s.send(p, t.client, t.control)
	}
	switch {
	case t.broken():
		s.failed(t)
	case t.hungry():
		t.reading = true
		t.more <- struct{}{} // it has room, as the goroutine is asked once at a time
	}
}

func (s *Server) repeat(t *transfer, now time.Time) {
	if t.options != nil {
		t.sentAt = now
		s.send(t.options, t.client, t.control)
		return
	}
	t.rewind()
	s.pump(t, now)
}

// tick sends again what was not acknowledged in time, and gives up what takes too long.
// A client that has acknowledged nothing is sent nothing twice, unless it asks
// twice: the address may be forged.
func (s *Server) tick(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for t := range s.all {
		switch {
		case t.result != "": // its file is still being read
		case now.Sub(t.started) > transferLimit:
			s.giveUp(t, resultTimeout, codeOther, fmt.Sprintf("the transfer took longer than %s", transferLimit))
		case !t.due(now, s.answer):
		case t.silent():
			s.giveUp(t, resultTimeout, codeOther, "the client acknowledges nothing")
		case t.confirmed && s.reaches(t.client.Addr()):
			s.repeat(t, now)
		}
	}
}

// giveUp ends a transfer with an error for its client.
func (s *Server) giveUp(t *transfer, result string, code byte, text string) {
	if t.answerable() {
		s.send(errorPacket(code, text), t.client, t.control)
	}
	s.end(t, result)
}

// end ends a transfer. Its place is free at once, unless its file is being read at
// this moment, which may take as long as it likes.
func (s *Server) end(t *transfer, result string) {
	t.result = result
	delete(s.current, unmapped(t.client))
	if t.more != nil {
		close(t.more)
	}
	if !t.reading {
		s.release(t)
	}
}

// release frees the place of a transfer that has ended, and counts how it went.
func (s *Server) release(t *transfer) {
	delete(s.all, t)
	at := unmapped(t.client).Addr()
	if s.callers[at].transfers--; s.callers[at].transfers == 0 {
		delete(s.callers, at)
	}
	took := s.clock().Sub(t.started)
	s.metrics.active.Dec()
	s.metrics.requests[t.result].Inc()
	s.metrics.bytes.Add(float64(t.bytes))
	if t.result == resultOK {
		s.metrics.durations.Observe(took.Seconds())
	}
	s.since.note(at, t.event(took))
	if ctx := context.Background(); s.log.Enabled(ctx, slog.LevelDebug) {
		s.log.LogAttrs(ctx, slog.LevelDebug, "TFTP transfer", slog.String("client", at.String()), slog.String("file", clean(t.name)),
			slog.String("result", t.result), slog.Int64("bytes", t.bytes), slog.Duration("took", took))
	}
}

// stop lets no transfer begin any more.
func (s *Server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
}

func (s *Server) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all) == 0
}

func (s *Server) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	for _, t := range s.current {
		s.end(t, resultFailed)
	}
}

// unmapped returns an address in the one form that maps are keyed by.
func unmapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}
