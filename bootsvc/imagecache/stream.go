package imagecache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

// errBackwards is returned to a reader that goes back in a blob of which nothing is
// kept.
var errBackwards = errors.New("the disk has no room for the blob, so it is streamed and cannot be read backwards")

// stream is a blob that passes the cache by, for one reader. It holds back a piece of
// the blob's end as a download does.
type stream struct {
	up   *upstream
	read func(p []byte) (int, error) // from up, for as long as the reader stays
	sum  sum

	at      int64        // where the next byte for the reader is
	buffer  []byte       // what was read from up and hashed
	ready   []byte       // the part of buffer that the reader has not taken yet
	right   bool         // all bytes are verified
	arrived atomic.Int64 // how many bytes were read from up
	done    func()       // called when it is closed
}

// newStream returns the stream of a blob whose reader has read head already.
func newStream(ctx context.Context, up *upstream, head io.Reader, at int64) (*stream, error) {
	s := &stream{up: up, sum: newSum(up.key.Digest), at: at, buffer: make([]byte, 0, 2*holdback)}
	if at > 0 {
		if _, err := io.CopyN(s.sum, head, at); err != nil {
			return nil, fmt.Errorf("read what was fetched already: %w", err)
		}
	}
	up.offset = at
	s.read = func(p []byte) (int, error) {
		n, err := up.read(ctx, p)
		s.arrived.Add(int64(n))
		return n, err
	}
	if err := up.open(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *stream) close() {
	s.up.close()
	s.done()
}

// readAt reads from pos on; it passes over what lies before.
func (s *stream) readAt(p []byte, pos int64) (int, error) {
	if pos < s.at {
		return 0, errBackwards
	}
	for {
		if len(s.ready) == 0 {
			if err := s.fill(); err != nil {
				return 0, err
			}
		}
		passed := min(pos-s.at, int64(len(s.ready)))
		s.take(int(passed))
		if n := copy(p, s.ready); n > 0 {
			s.take(n)
			return n, nil
		}
	}
}

func (s *stream) take(n int) {
	s.ready = s.ready[n:]
	s.at += int64(n)
}

// fill reads until there is something that may be given out. What is held back stays
// at the front of the buffer.
func (s *stream) fill() error {
	if s.right {
		return io.EOF
	}
	held := s.up.offset - s.at
	copy(s.buffer[:held], s.buffer[int64(len(s.buffer))-held:])
	s.buffer = s.buffer[:held]
	for len(s.ready) == 0 && !s.right {
		if err := s.more(); err != nil {
			return err
		}
	}
	return nil
}

func (s *stream) more() error {
	n, err := s.read(s.buffer[len(s.buffer):cap(s.buffer)])
	if errors.Is(err, io.EOF) {
		if !s.sum.right() {
			return ErrCorrupt
		}
		s.right = true
		s.ready = s.buffer
		return nil
	}
	if err != nil {
		return err
	}
	s.buffer = s.buffer[:len(s.buffer)+n]
	s.sum.add(s.buffer[len(s.buffer)-n:])
	open := max(0, min(s.up.key.Size-holdback-s.at, int64(len(s.buffer))))
	s.ready = s.buffer[:open]
	return nil
}
