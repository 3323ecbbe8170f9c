package tftp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/pin/tftp/v3"
	"github.com/prometheus/client_golang/prometheus"
)

const (
	// answerTime is how long a client may take to acknowledge a block until it is
	// sent again, and retries how often it is.
	answerTime = time.Second
	retries    = 12
	// transferLimit bounds a whole transfer: 1 MB in blocks of 512 bytes takes so
	// long when each takes 300 ms.
	transferLimit = 10 * time.Minute
	// shutdownLimit is how long transfers may go on once the server is to stop.
	shutdownLimit = 3 * time.Second
	// receiveBuffer holds the requests of a row of machines that is powered on at
	// once, in bytes.
	receiveBuffer = 1 << 20
)

// errTransferLimit ends a transfer that takes too long.
var errTransferLimit = fmt.Errorf("the transfer took longer than %s", transferLimit)

// Files are the files that are served.
type Files interface {
	// Open opens the file with exactly this name, and returns its size in bytes. The
	// error wraps fs.ErrNotExist when there is none.
	Open(name string) (io.ReadSeekCloser, int64, error)
}

// Options are the options of New.
type Options struct {
	Loaders Files
	// Seen is told of each transfer once its client has acknowledged the first block:
	// not of one that only asked for the size. It must not block. Nil is allowed.
	Seen func(client netip.Addr, name string)

	Log        *slog.Logger
	Registerer prometheus.Registerer
	Clock      func() time.Time // nil means time.Now
}

// Server serves files by TFTP, to read only.
type Server struct {
	files   Files
	seen    func(netip.Addr, string)
	log     *slog.Logger
	metrics metrics
	clock   func() time.Time
	gate    *gate // nil before Listen
	answer  time.Duration
	limit   time.Duration
}

// New returns a Server that does not listen yet.
func New(o Options) (*Server, error) {
	if o.Loaders == nil {
		return nil, errors.New("TFTP has no files to serve")
	}
	s := &Server{files: o.Loaders, seen: o.Seen, log: o.Log, metrics: newMetrics(o.Registerer), clock: o.Clock, answer: answerTime, limit: shutdownLimit}
	if s.seen == nil {
		s.seen = func(netip.Addr, string) {}
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	return s, nil
}

// Listen binds a UDP address: host:port, or :69 for all.
func (s *Server) Listen(ctx context.Context, address string) error {
	var lc net.ListenConfig
	conn, err := lc.ListenPacket(ctx, "udp", address)
	if err != nil {
		return fmt.Errorf("cannot listen on UDP %s: %w", address, bindError(err))
	}
	udp := conn.(*net.UDPConn)
	if err := receiveControl(udp); err != nil {
		_ = conn.Close()
		return fmt.Errorf("listen on UDP %s: learn which address a client asks: %w", address, err)
	}
	_ = udp.SetReadBuffer(receiveBuffer) // the default serves fewer at once
	s.gate = newGate(udp, s)
	return nil
}

// bindError says what to do about a socket that could not be opened.
func bindError(err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w; stop the TFTP server that listens there, or set another address", syscall.EADDRINUSE)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%w; give Ingot the capability CAP_NET_BIND_SERVICE, for firmware asks port 69", syscall.EACCES)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%w; this machine has no such address, set one that it has or leave the host out", syscall.EADDRNOTAVAIL)
	}
	return err
}

// Addr returns where the server listens, nil before Listen.
func (s *Server) Addr() net.Addr {
	if s.gate == nil {
		return nil
	}
	return s.gate.UDPConn.LocalAddr()
}

// Run serves until ctx is done; transfers under way may go on for a short while
// then. It closes the socket.
func (s *Server) Run(ctx context.Context) error {
	if s.gate == nil {
		return errors.New("TFTP does not listen")
	}
	defer s.Close()
	library := s.library()
	done := make(chan error, 1)
	go func() { done <- s.serve(library) }()
	select {
	case err := <-done:
		return fmt.Errorf("serve TFTP on %s: %w", s.Addr(), err)
	case <-ctx.Done():
	}
	library.Shutdown()
	limit := time.AfterFunc(s.limit, s.gate.stop)
	defer limit.Stop()
	<-done //nolint:errcheck // that it was stopped
	return nil
}

// Close closes the socket that Listen bound, for who does not come to call Run,
// which closes it itself when it ends. It may be called again.
func (s *Server) Close() {
	if s.gate != nil {
		_ = s.gate.Close() // the library may have closed it
	}
}

// library returns the protocol's engine. It is to leave block sizes to the gate,
// for on one port it takes none but 512 by itself; and the gate decides what is sent
// again and when a client is given up, so the library repeats what it wrote without
// an end, as the gate's clock.
func (s *Server) library() *tftp.Server {
	l := tftp.NewServer(s.serveRead, nil)
	l.EnableSinglePort()
	l.SetBlockSizeNegotiation(false)
	l.SetBlockSize(stockBlocks * blockV4)
	l.SetTimeout(s.answer / 4)
	l.SetRetries(math.MaxInt)
	l.SetBackoff(func(int) time.Duration { return 0 })
	return l
}

// serve runs the library. It hands packets to transfers that may end at the same
// moment, which makes it panic; the transfers of others go on.
func (s *Server) serve(l *tftp.Server) error {
	for {
		err, again := s.serveOnce(l)
		if !again {
			return err
		}
	}
}

func (s *Server) serveOnce(l *tftp.Server) (err error, panicked bool) { //nolint:revive // the panic is no error
	defer func() {
		if p := recover(); p != nil {
			s.log.Warn("TFTP lost a packet", "err", fmt.Sprint(p))
			panicked = true
		}
	}()
	return l.Serve(s.gate), false
}

// serveRead serves one file. The library calls it in a goroutine of its own, which
// it waits for; an error that it returns before anything was sent goes to the
// client.
func (s *Server) serveRead(name string, to io.ReaderFrom) (err error) {
	out := to.(tftp.OutgoingTransfer) // the library's senders are
	remote := out.RemoteAddr()
	c := &contents{name: name, number: remote.Zone, client: clientOf(remote), server: s, start: s.clock()}
	defer func() {
		if p := recover(); p != nil {
			s.metrics.requests.WithLabelValues(resultFailed).Inc()
			s.log.Error("TFTP request panicked", "file", clean(name), "err", fmt.Sprint(p), "stack", string(debug.Stack()))
			s.gate.ending(c.number)
			err = errors.New("internal error")
		}
	}()
	file, size, err := s.files.Open(name)
	if err != nil {
		s.gate.ending(c.number)
		return s.cannotOpen(c, err)
	}
	defer file.Close()
	c.Reader = file
	out.SetSize(size)
	return s.send(c, to)
}

// clientOf returns the address of a client, whose zone is the gate's.
func clientOf(remote net.UDPAddr) netip.Addr {
	addr, _ := netip.AddrFromSlice(remote.IP)
	return addr.Unmap()
}

// cannotOpen counts a request for a file that there is none of, and returns what
// the client is told: firmware and iPXE ask for many names on the chance, and go
// on at once.
func (s *Server) cannotOpen(c *contents, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		s.metrics.requests.WithLabelValues(resultNotFound).Inc()
		s.log.Debug("TFTP file not found", "client", c.client.String(), "file", clean(c.name))
		return errors.New("file not found")
	}
	s.metrics.requests.WithLabelValues(resultFailed).Inc()
	s.log.Error("TFTP file cannot be read", "client", c.client.String(), "file", clean(c.name), "err", err)
	return errors.New("the file cannot be read")
}

// send sends a file and counts how that went.
func (s *Server) send(c *contents, to io.ReaderFrom) error {
	s.metrics.active.Inc()
	defer s.metrics.active.Dec()
	defer s.gate.end(c.number) // when it panics
	_, err := to.ReadFrom(c)
	was := s.gate.end(c.number)
	result := resultOf(was, err)
	took := s.clock().Sub(c.start)
	s.metrics.requests.WithLabelValues(result).Inc()
	s.metrics.bytes.Add(float64(was.bytes))
	if result == resultOK {
		s.metrics.durations.Observe(took.Seconds())
	}
	s.log.Debug("TFTP transfer", "client", c.client.String(), "file", c.name, "result", result, "bytes", was.bytes, "took", took)
	return err
}

// resultOf says how a transfer went. A client that has the last block has the file,
// though the library may not have heard of it when the client's next request ends the
// transfer.
func resultOf(t transfer, err error) string {
	switch {
	case err == nil || t.done:
		return resultOK
	case t.declined && !t.delivered:
		return resultDeclined
	case t.declined:
		return resultAborted
	case errors.Is(err, errOver):
		return resultAborted
	case errors.Is(err, errSilent) || errors.Is(err, errTransferLimit):
		return resultTimeout
	}
	return resultFailed
}

// contents is a file on its way.
type contents struct {
	io.Reader
	name   string
	number string // of the transfer
	client netip.Addr
	server *Server
	start  time.Time
}

// Read implements io.Reader.
func (c *contents) Read(p []byte) (int, error) {
	if c.server.clock().Sub(c.start) > transferLimit {
		return 0, errTransferLimit
	}
	return c.Reader.Read(p)
}

// clean makes text from outside fit for a log.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > 0x7e {
			return '?'
		}
		return r
	}, s)
	return s[:min(len(s), 64)]
}
