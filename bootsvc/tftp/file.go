package tftp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime/debug"
	"time"
)

// errPanic is why a file cannot be read whose reading panicked.
var errPanic = errors.New("reading the file panicked")

// read opens the file of a transfer and reads it, a chunk whenever the transfer asks
// for more, until its end or that of the transfer. It is the transfer's own goroutine.
// A file that is held in memory is sent from there.
func (s *Server) read(t *transfer) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("TFTP request panicked", "file", clean(t.name), "err", fmt.Sprint(p), "stack", string(debug.Stack()))
			s.supply(t, nil, 0, errPanic)
		}
	}()
	file, size, err := s.files.Open(t.name)
	if err != nil {
		s.supply(t, nil, 0, err)
		return
	}
	defer file.Close()
	if held, ok := file.(interface{ Contents() []byte }); ok && t.request.mode == modeOctet {
		s.hold(t.name, held.Contents())
		s.supply(t, held.Contents(), size, io.EOF)
		return
	}
	chunk, contents := make([]byte, chunkSize), io.LimitReader(file, size) // it may grow, and its client was told its size
	for goesOn := true; goesOn && err == nil; {
		var data []byte
		data, err = fill(chunk, contents)
		if t.request.mode == modeNetASCII {
			data = netascii(data)
		}
		s.supply(t, data, size, err)
		if err == nil {
			_, goesOn = <-t.more
		}
	}
}

// fill reads until chunk is full. Other than io.ReadFull it leaves the end of the file
// to be told from an error of its reader, which may be io.ErrUnexpectedEOF.
func fill(chunk []byte, from io.Reader) ([]byte, error) {
	n := 0
	for n < len(chunk) {
		m, err := from.Read(chunk[n:])
		n += m
		if err != nil {
			return chunk[:n], err
		}
	}
	return chunk, nil
}

// netascii returns text with the ends of lines that netascii has (RFC 764, p. 11).
func netascii(text []byte) []byte {
	text = bytes.ReplaceAll(text, []byte("\r"), []byte("\r\x00"))
	return bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
}

// hold remembers a file that is in memory for those that ask for it now.
func (s *Server) hold(name string, contents []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since.hold(name, contents)
}

// supply hands over what was read of a transfer's file, whose size it is.
func (s *Server) supply(t *transfer, data []byte, size int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wasReading := t.reading
	t.reading = false
	if t.result != "" {
		if wasReading {
			s.release(t)
		}
		return
	}
	s.proceed(t, data, size, err, s.clock())
}

// proceed takes what was read of a transfer's file, and sends what the client waits for.
func (s *Server) proceed(t *transfer, data []byte, size int64, err error, now time.Time) {
	t.add(data, err)
	if !t.opened && t.err == nil {
		if t.options = t.request.optionsPacket(t.client.Addr(), size); t.options != nil {
			s.repeat(t, now)
		}
	}
	t.opened = true
	s.pump(t, now)
}

// failed ends a transfer whose file cannot be read, and tells its client why.
// Firmware and iPXE ask for many names on the chance, and go on at once.
func (s *Server) failed(t *transfer) {
	switch {
	case errors.Is(t.err, fs.ErrNotExist):
		s.giveUp(t, resultNotFound, codeNotFound, "file not found")
		return
	case errors.Is(t.err, errPanic):
		s.giveUp(t, resultFailed, codeNotFound, "internal error")
		return
	}
	s.log.Error("TFTP file cannot be read", "client", t.client.Addr().Unmap().String(), "file", clean(t.name), "err", t.err)
	s.giveUp(t, resultFailed, codeNotFound, "the file cannot be read")
}
