package tftp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ingot/bootsvc/internal/socket"
	"ingot/model"
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
	// readPause is how long the socket is left alone after it could not be read.
	readPause = 100 * time.Millisecond
)

// Files are the files that are served.
type Files interface {
	// Open opens the file with exactly this name, and returns its size in bytes. The
	// error wraps fs.ErrNotExist when there is none. A file that is held in memory has a
	// method Contents() []byte; what that returns does not change any more, and it is
	// served without asking again for a quarter of a second.
	Open(name string) (io.ReadSeekCloser, int64, error)
}

// Options are the options of New.
type Options struct {
	Loaders Files
	// Seen is called for each transfer once its client has acknowledged the first block:
	// not of one that only asked for the size, and once for those of a client that follow one
	// another within a quarter of a second. It must not block. Nil is allowed.
	Seen func(client netip.Addr, name string)
	// Told is called with what became of the read requests of a client, within a second,
	// while packets are dealt with. Nil is allowed.
	Told func(client netip.Addr, events []model.CardEvent)
	// IsThere reports whether a packet to an address leaves at once: somebody on its link answers for it, or a
	// router does. It must not wait for an answer; nil = everybody is there.
	IsThere func(client netip.Addr) bool

	Log        *slog.Logger
	Registerer prometheus.Registerer
	Clock      func() time.Time // nil means time.Now
}

// Server serves files by TFTP, to read only.
type Server struct {
	files   Files
	seen    func(netip.Addr, string)
	told    func(netip.Addr, []model.CardEvent)
	isThere func(netip.Addr) bool
	log     *slog.Logger
	metrics metrics
	clock   func() time.Time
	answer  time.Duration
	limit   time.Duration
	// The limits: maxTransfers and maxPerAddress, except in tests.
	maxTransfers, maxPerAddress int
	conn                        *socket.Socket // nil before Listen
	running                     sync.WaitGroup // the reader of the socket and those of files

	mu      sync.Mutex
	stopped bool                         // no transfer begins any more
	current map[netip.AddrPort]*transfer // by the client's address, without IPv4 in IPv6
	callers map[netip.Addr]*caller       // that have transfers in all
	all     map[*transfer]bool           // with those that are over, but whose file is still being read
	block   [headerSize + blockV4]byte   // is sent next
	routes  routes                       // of answers
	since   sinceTick
	errors  refusals // of clients over a limit
}

// New returns a Server that does not listen yet.
func New(o Options) (*Server, error) {
	if o.Loaders == nil {
		return nil, errors.New("TFTP has no files to serve")
	}
	s := &Server{
		files: o.Loaders, seen: o.Seen, told: o.Told, isThere: o.IsThere, log: o.Log, clock: o.Clock, answer: answerTime, limit: shutdownLimit,
		maxTransfers: maxTransfers, maxPerAddress: maxPerAddress,
		current: make(map[netip.AddrPort]*transfer), callers: make(map[netip.Addr]*caller), all: make(map[*transfer]bool),
	}
	s.metrics = newMetrics(o.Registerer)
	if s.seen == nil {
		s.seen = func(netip.Addr, string) {}
	}
	if s.told == nil {
		s.told = func(netip.Addr, []model.CardEvent) {}
	}
	if s.isThere == nil {
		s.isThere = func(netip.Addr) bool { return true }
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
func (s *Server) Listen(_ context.Context, address string) error {
	conn, err := listen(address)
	if err == nil {
		s.conn = conn
	}
	return err
}

// Addr returns where the server listens, nil before Listen.
func (s *Server) Addr() net.Addr {
	if s.conn == nil {
		return nil
	}
	return s.conn.LocalAddr()
}

// Run serves until ctx is done; transfers under way may go on for a short while
// then. It closes the socket.
func (s *Server) Run(ctx context.Context) error {
	if s.conn == nil {
		return errors.New("TFTP does not listen")
	}
	broken := make(chan error, 1)
	s.running.Go(func() { broken <- s.serve() })
	err := s.watch(ctx, broken)
	s.abandon()
	s.Close()
	s.running.Wait()
	s.tell()
	return err
}

// Close closes the socket that Listen bound, for a caller that does not call Run,
// which closes it itself when it ends. It may be called again.
func (s *Server) Close() {
	if s.conn != nil {
		_ = s.conn.Close() // Run may have closed it
	}
}

// serve deals with what comes in on the socket until it is closed.
func (s *Server) serve() error {
	packet, control := make([]byte, maxRequest+1), make([]byte, controlSize) // of a longer packet enough to refuse it
	for {
		n, controls, _, from, err := s.conn.ReadMsgUDPAddrPort(packet, control)
		switch {
		case socket.IsEnded(err):
			return err
		case err != nil:
			s.log.Warn("TFTP lost a packet", "err", err)
			time.Sleep(readPause)
			continue
		}
		s.handle(packet[:n], from, control[:controls], s.clock())
	}
}

// watch looks after the transfers until ctx is done and they have ended, or have
// had their time. It returns an error when the socket breaks before.
func (s *Server) watch(ctx context.Context, broken <-chan error) error {
	ticker := time.NewTicker(s.answer / 4)
	defer ticker.Stop()
	var limit <-chan time.Time // nil = ctx is not done
	done := ctx.Done()
	for {
		select {
		case err := <-broken:
			return fmt.Errorf("serve TFTP on %s: %w", s.Addr(), err)
		case <-ticker.C:
			s.tick(s.clock())
			s.tell()
		case <-done:
			s.stop()
			done, limit = nil, time.After(s.limit)
		case <-limit:
			return nil
		}
		if limit != nil && s.idle() {
			return nil
		}
	}
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
