package tftp

import (
	"net/netip"
	"time"

	"ingot/model"
)

const (
	// maxPerAddress is how many transfers one address may have: a rack may share one (NAT).
	maxPerAddress = 64
	// maxTransfers bounds all of them: each has a file open, and up to 32 KiB of it in memory.
	maxTransfers = 1024
)

const (
	// refusalPause is how often one address is told that it has too many transfers.
	refusalPause = time.Second
	// maxRefusals bounds the errors about limits, and about requests that cannot be read, that
	// are sent within a second. A source address can be forged, and nobody is to be flooded with what he did not ask for.
	maxRefusals = 64
)

// overLimit is why a transfer may not begin: its result, nothing when it may, and what its
// client is told. The client asks again in a while, by when there may be room.
type overLimit struct{ result, text string }

var full = overLimit{resultBusy, "too many transfers, ask again"}

// overLimit returns which limit one more transfer to an address would be over. Who is not there gets none while packets
// wait for many of those, and is not told so.
func (s *Server) overLimit(client netip.Addr) overLimit {
	switch c := s.callers[client]; {
	case s.stopped, !s.reaches(client):
		return overLimit{result: resultBusy}
	case c != nil && c.transfers >= s.maxPerAddress:
		return overLimit{resultLimited, "too many from this address, ask again"}
	case len(s.all) >= s.maxTransfers:
		return full
	}
	return overLimit{}
}

// reaches reports whether a packet to a client does not have others wait, see socket.Crowded.
func (s *Server) reaches(client netip.Addr) bool {
	return s.conn == nil || !s.conn.Crowded() || s.isThere(client.Unmap())
}

// makeRoom ends the transfer that waits longest for a first acknowledgement, and reports whether there was one:
// requests whose addresses are forged must not keep all others out. A client that is there acknowledges within
// milliseconds, or asks again. It is done for a request that has options alone, as firmware's has: the first
// answer to that is no longer than itself, and so nobody is flooded by way of us.
func (s *Server) makeRoom(r readRequest, client netip.Addr) bool {
	if r.optionsPacket(client, 0) == nil {
		return false
	}
	var longest *transfer
	for t := range s.all {
		if t.result == "" && !t.confirmed && t.waiting() && (longest == nil || t.started.Before(longest.started)) {
			longest = t
		}
	}
	if longest == nil {
		return false
	}
	s.end(longest, resultTimeout)
	return true
}

// refuse counts a request over a limit, and tells its client (RFC 1350 §5), as otherwise nobody
// learns what a machine waits for.
func (s *Server) refuse(over overLimit, client netip.AddrPort, control []byte, r readRequest, now time.Time) {
	s.metrics.requests[over.result].Inc()
	if over.text == "" {
		return
	}
	at := unmapped(client).Addr()
	s.since.note(at, model.CardEvent{
		At: now, Protocol: model.CardTFTP, Asked: clean(cleanName(r.name)), From: at.String(), Result: model.CardLimited, Answer: over.text, Routine: true,
	})
	s.sendRefusal(errorPacket(codeOther, over.text), client, control, now)
}

// refuseIllegal counts a request that cannot be read, and tells its client what is wrong with it
// (RFC 1350 §5), which otherwise repeats it until it gives up. The answer is no
// longer than the request.
func (s *Server) refuseIllegal(wrong string, packet []byte, client netip.AddrPort, control []byte, now time.Time) {
	s.metrics.requests[resultRefused].Inc()
	answer := errorPacket(codeIllegal, wrong)
	if len(answer) > len(packet) {
		answer = errorPacket(codeIllegal, "") // the code says it as well
	}
	if len(answer) <= len(packet) {
		s.sendRefusal(answer, client, answerFrom(control, client.Addr()), now)
	}
}

// sendRefusal sends an error to a client that gets no transfer. An address is told once in a while,
// and so are all together: the others get no answer.
func (s *Server) sendRefusal(packet []byte, client netip.AddrPort, control []byte, now time.Time) {
	c := s.callers[unmapped(client).Addr()]
	if c != nil && now.Sub(c.refused) < refusalPause || !s.errors.allow(now) || !s.reaches(client.Addr()) {
		return
	}
	if c != nil {
		c.refused = now
	}
	s.send(packet, client, control)
}

// refusals counts the errors of the present second.
type refusals struct {
	since time.Time
	sent  int
}

// allow reports whether one more may be sent, and counts it.
func (r *refusals) allow(now time.Time) bool {
	if age := now.Sub(r.since); age < 0 || age >= time.Second {
		*r = refusals{since: now}
	}
	r.sent++
	return r.sent <= maxRefusals
}

func (t *transfer) event(took time.Duration) model.CardEvent {
	at := unmapped(t.client).Addr()
	e := model.CardEvent{
		At: t.started, Protocol: model.CardTFTP, Asked: clean(t.name), From: at.String(), Bytes: t.bytes, Seconds: took.Seconds(), Answer: t.result,
	}
	switch t.result {
	case resultOK:
		e.Result, e.Answer = model.CardServed, ""
	case resultDeclined:
		e.Result, e.Answer, e.Bytes = model.CardAnswered, "its size", 0
	case resultNotFound:
		e.Result, e.Routine = model.CardRefused, true
	default:
		e.Result = model.CardFailed
	}
	return e
}
