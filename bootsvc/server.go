package bootsvc

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ingot/bootsvc/imagecache"
	"ingot/bootsvc/netboot"
	"ingot/model"
)

// stall is how long a client may take nothing of an answer before its connection
// is dropped. It is measured from progress to progress: a slow client that goes
// on is served for as long as it takes.
const stall = 30 * time.Second

// retryAfter is what a client is told that is to come again, in seconds.
const retryAfter = "5"

// When a row of machines is powered on they ask at the same time, and iPXE gives a
// boot up at the first refusal. So a fetch waits for its turn, which costs a
// connection each, for as long as firmware is sure to wait.
const (
	patience   = 25 * time.Second
	maxWaiting = 4096
)

// What is remembered of tickets' payloads is bounded, in bytes; mannerOverhead is
// what a ticket costs beside its text.
const (
	mannerCacheSize = 8 << 20
	mannerOverhead  = 256
)

// Tickets is where the boot service learns what a server may boot, and notes what
// it fetched.
type Tickets interface {
	// Offer returns the boot ticket of the server with a UUID, as it was asked for in
	// lower case, or with a MAC address where firmware has no UUID. It is false when
	// no such server is known; a known server without a ticket has Ticket nil.
	Offer(id string) (model.Offer, bool)
	// Payload returns what Ignition made for a ticket, by Claim or by Probe: the same
	// bytes until the ticket ends.
	Payload(ctx context.Context, t *model.Ticket) (model.Sensitive, error)
	// Note records durably that a server reached a stage; client is who asked.
	Note(ctx context.Context, t *model.Ticket, stage model.BootStage, client netip.Addr) error
	// Pinned returns a ticket that is in use and pins a layer of a repository.
	Pinned(repository, digest string) (*model.Ticket, bool)
}

// Options are the options of NewServer.
type Options struct {
	// URL is how servers reach the handler: http://boot.example:8082.
	URL string
	// URLFromHost makes links point to where the request came in, when its Host
	// header is an IP address: for a URL that nobody set, on a machine that has more
	// networks than one.
	URLFromHost bool
	Tickets     Tickets
	// Token returns a ticket's token.
	Token  func(*model.Ticket) model.Sensitive
	Images *Images
	// Cache keeps layers on disk, and bounds their fetches; nil streams each layer
	// from its registry to each client.
	Cache *imagecache.Cache
	// Downloads bounds the layers that are streamed from registries at the same time
	// without a Cache; further clients wait their turn for a while and are then told
	// to come again. Zero means 16.
	Downloads int
	// Loaders are the boot loaders that are served; nil means none.
	Loaders *netboot.Loaders
	// Holder returns the MAC address that holds a lease on an address; nil when no
	// leases are known.
	Holder func(netip.Addr) (mac string, ok bool)
	// DiskBoot says how a server is sent on to its disk; nil means DiskExit for all.
	DiskBoot func(model.ServerName) DiskBoot

	Log        *slog.Logger
	Registerer prometheus.Registerer
	Clock      func() time.Time // nil means time.Now
}

// Server answers machines that boot. It is safe for concurrent use.
type Server struct {
	base      string
	fromHost  bool
	tickets   Tickets
	token     func(*model.Ticket) model.Sensitive
	images    *Images
	cache     *imagecache.Cache
	loaders   *netboot.Loaders
	holder    func(netip.Addr) (string, bool)
	diskBoot  func(model.ServerName) DiskBoot
	manners   *lru[string, manner] // by ticket
	scripts   *netboot.Guard
	downloads chan struct{} // a slot for each layer being fetched
	waiting   chan struct{} // a slot for each that waits for one of those
	patience  time.Duration
	stall     time.Duration
	log       *slog.Logger
	metrics   metrics
	clock     func() time.Time
}

// NewServer returns a Server, or an error when the URL cannot stand in a boot
// script.
func NewServer(o Options) (*Server, error) {
	base := trimURL(o.URL)
	if !plainURLPattern.MatchString(base) {
		return nil, fmt.Errorf("boot URL %q must be http or https with a host and a plain path of letters, digits and . _ ~ -", clean(o.URL))
	}
	s := &Server{
		base:      base,
		fromHost:  o.URLFromHost,
		tickets:   o.Tickets,
		token:     o.Token,
		images:    o.Images,
		cache:     o.Cache,
		loaders:   o.Loaders,
		holder:    o.Holder,
		diskBoot:  o.DiskBoot,
		manners:   newLRU[string, manner](mannerCacheSize),
		scripts:   netboot.NewScriptGuard(),
		downloads: make(chan struct{}, 16),
		waiting:   make(chan struct{}, maxWaiting),
		patience:  patience,
		stall:     stall,
		log:       logger(o.Log),
		metrics:   newMetrics(o.Registerer),
		clock:     o.Clock,
	}
	if o.Downloads > 0 {
		s.downloads = make(chan struct{}, o.Downloads)
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	return s, nil
}

// NewHTTPServer returns an http.Server with limits that fit machines that boot.
// It has no limit on a whole answer: the handler's write deadline moves on with
// progress.
func NewHTTPServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
}

// request is one request on its way through a handler.
type request struct {
	*http.Request
	w    *answer
	args []string // the elements of the path behind its first
	id   string   // the UUID or MAC address that the request is for, for the log
}

// route is one of the paths that machines ask for.
type route struct {
	pattern string
	serve   func(*Server, *request)
}

// The routes. Patterns are what logs and metrics show, so no token is seen.
var (
	routeChain       = route{"/ipxe/", (*Server).serveChain}
	routeScript      = route{"/ipxe/{uuid}", (*Server).serveScript}
	routeIgnition    = route{"/ignition/{uuid}/{token}", (*Server).serveIgnition}
	routeNoCloud     = route{"/nocloud/{uuid}/{token}/{file}", (*Server).serveNoCloud}
	routeNoToken     = route{"/ignition/{uuid}", (*Server).serveNoToken}
	routeImage       = route{"/image", (*Server).serveImage}
	routeUKI         = route{"/httpboot/{image}", (*Server).serveUKI}
	routeHTTPBoot    = route{"/httpboot", (*Server).serveHTTPBoot}
	routeLoader      = route{"/loader/{name}", (*Server).serveLoader}
	routeUnknownPath = route{"other", (*Server).serveNotFound}
)

// find returns the route of a path, and its elements behind the first. Empty
// elements are passed over, for firmware and people join URLs with one slash too
// many, and firmware does not follow the redirect that would mend it.
func find(path string) (route, []string) {
	if len(path) > 2048 {
		return routeUnknownPath, nil
	}
	var elements []string
	for element := range strings.SplitSeq(path, "/") {
		if element != "" {
			elements = append(elements, element)
		}
	}
	if len(elements) == 0 {
		return routeUnknownPath, nil
	}
	args := elements[1:]
	switch {
	case elements[0] == "ipxe" && len(args) == 0:
		return routeChain, nil
	case elements[0] == "ipxe" && len(args) == 1:
		return routeScript, args
	case elements[0] == "ignition" && len(args) == 2:
		return routeIgnition, args
	case elements[0] == "ignition" && len(args) == 1:
		return routeNoToken, args
	case elements[0] == "nocloud" && len(args) == 3:
		return routeNoCloud, args
	case elements[0] == "image" && len(args) == 0:
		return routeImage, nil
	case elements[0] == "httpboot" && len(args) >= 3:
		return routeUKI, args
	case elements[0] == "httpboot" && len(args) == 0:
		return routeHTTPBoot, nil
	case elements[0] == "loader" && len(args) == 1:
		return routeLoader, args
	}
	return routeUnknownPath, nil
}

// Handler returns the handler of all paths.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

// serve finds the route and sees to what all have in common: methods, deadline,
// metrics and log.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	start := s.clock()
	at, args := find(r.URL.Path)
	req := &request{Request: r, w: &answer{ResponseWriter: w, stall: s.stall}, args: args}
	finished := false
	defer func() { s.done(at, req, start, finished) }()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		req.refuse(http.StatusMethodNotAllowed, "only GET and HEAD are served here")
	} else {
		at.serve(s, req)
	}
	finished = true
}

// done counts and logs a request. One that did not finish was cut off by a panic
// that goes on up.
func (s *Server) done(at route, r *request, start time.Time, finished bool) {
	took := s.clock().Sub(start)
	code := strconv.Itoa(r.w.code)
	if !finished {
		code = "aborted"
	}
	s.metrics.requests.WithLabelValues(at.pattern, code).Inc()
	s.metrics.durations.WithLabelValues(at.pattern).Observe(took.Seconds())
	if s.log.Enabled(r.Context(), slog.LevelDebug) {
		s.log.LogAttrs(r.Context(), slog.LevelDebug, "boot request",
			slog.String("route", at.pattern), slog.String("method", r.Method), slog.String("uuid", r.id),
			slog.String("client", r.client().String()), slog.String("code", code), slog.Duration("took", took))
	}
}

func (s *Server) serveNotFound(r *request) {
	r.refuse(http.StatusNotFound, "there is nothing here; /ipxe is where a machine starts")
}

func (s *Server) serveChain(r *request) { r.text(chainScript(s.baseFor(r))) }

// serveScript answers with the script of one machine. That it was served is noted
// first: a server that cannot remember it must not boot anybody.
func (s *Server) serveScript(r *request) {
	id, ok := machineID(r.args[0])
	if !ok {
		r.refuse(http.StatusNotFound, "this is neither a system UUID nor a MAC address")
		return
	}
	r.id = id
	offer, known := s.tickets.Offer(id)
	switch {
	case !known:
		r.refuse(http.StatusNotFound, "no server with this UUID or MAC address is known")
	case !offer.Ticket.MayBoot(offer.Progress):
		s.serveDisk(r, offer.Ticket)
	case s.foreign(r, offer.Ticket):
		r.refuse(http.StatusForbidden, foreignAddress)
	case r.Method == http.MethodGet && !s.scripts.Allow(offer, s.clock()):
		s.log.Warn("server goes round in circles: it fetches its boot script and never its kernel", "server", string(offer.Ticket.Server))
		r.text(loopScript(id))
	default:
		s.serveTicketScript(r, offer.Ticket)
	}
}

// serveDisk sends a machine on to its disk, in the way that its firmware understands.
func (s *Server) serveDisk(r *request, t *model.Ticket) {
	method := DiskExit
	if s.diskBoot != nil && t != nil {
		method = s.diskBoot(t.Server)
	}
	if method == DiskNotFound {
		r.refuse(http.StatusNotFound, "there is no boot ticket for this server, it boots from disk")
		return
	}
	r.text(diskScript(r.id, method))
}

// serveTicketScript answers with the script of a ticket: the claim's own if it brings
// one, else one that boots the image. With a script that is all a claim brings, Ingot
// sees nothing more of the boot, so then it is noted as the last thing served: asked
// again, the machine boots from its disk.
func (s *Server) serveTicketScript(r *request, t *model.Ticket) {
	m, ok := s.mannerOf(r, t)
	if !ok {
		return
	}
	script, ok := s.scriptOf(r, t, m)
	switch {
	case !ok:
	case r.Method == http.MethodGet && !s.note(r, t, model.StageScript):
	case r.Method == http.MethodGet && m.last && !s.note(r, t, model.StageIgnition):
	default:
		r.text(script)
	}
}

// scriptOf returns the script of a ticket, and answers itself when there is none.
func (s *Server) scriptOf(r *request, t *model.Ticket, m manner) (string, bool) {
	if m.own {
		p, ok := s.payload(r, t)
		return p.Script, ok
	}
	script, err := ticketScript(s.baseFor(r), t, s.token(t), m)
	if err != nil {
		s.log.Error("boot ticket cannot be served", "server", t.Server, "err", err)
		r.refuse(http.StatusInternalServerError, "the boot ticket of this server cannot be served; Ingot's log says why")
		return "", false
	}
	return script, true
}

// serveNoToken answers with Ignition to a machine that cannot know its token, for
// it booted a UKI or asks by DHCP: it must ask from the address that it holds the
// lease on.
func (s *Server) serveNoToken(r *request) {
	offer, known := s.asker(r)
	if t := offer.Ticket; known && netboot.WithoutToken(t) && s.ticketOf(r, r.args[0], t) {
		s.serveTicketIgnition(r, t)
		return
	}
	r.refuse(http.StatusForbidden, "the token is missing: /ignition/{uuid}/{token}, as the boot script has it; without it only the machine itself is served, at the address that Ingot leased to it")
}

// ticketOf reports whether t is the ticket of the server with a UUID, in whatever
// spelling.
func (s *Server) ticketOf(r *request, uuid string, t *model.Ticket) bool {
	id, ok := machineID(uuid)
	if !ok {
		return false
	}
	r.id = id
	offer, known := s.tickets.Offer(id)
	return known && offer.Ticket != nil && offer.Ticket.ID == t.ID
}

// asker returns the boot ticket of the machine that holds the lease on the address
// that asks.
func (s *Server) asker(r *request) (model.Offer, bool) { return s.offerAt(r.client()) }

// offerAt returns the boot ticket of the machine that holds the lease on addr.
func (s *Server) offerAt(addr netip.Addr) (model.Offer, bool) {
	if s.holder == nil {
		return model.Offer{}, false
	}
	mac, ok := s.holder(addr)
	if !ok {
		return model.Offer{}, false
	}
	return s.tickets.Offer(mac)
}

// foreignAddress is said to a server that asks for what another one boots.
const foreignAddress = "the address that this comes from is leased to another server: each is served its own only"

// foreign reports whether r comes from an address that is leased to another server
// than t's. UUIDs are no secret, so what runs on one server could otherwise read
// what the next one boots, and use its ticket up (law 5). An address that Ingot
// leased to no server says nothing: it may be a router's.
func (s *Server) foreign(r *request, t *model.Ticket) bool {
	own, ok := s.asker(r)
	return ok && t != nil && own.Ticket != nil && own.Ticket.Server != t.Server
}

// serveIgnition answers with a ticket's Ignition to who has its token, for as
// long as the ticket is in use.
func (s *Server) serveIgnition(r *request) {
	if t, ok := s.bearer(r); ok {
		s.serveTicketIgnition(r, t)
	}
}

func (s *Server) serveTicketIgnition(r *request, t *model.Ticket) {
	p, ok := s.payload(r, t)
	if !ok {
		return
	}
	if p.Ignition == "" {
		r.refuse(http.StatusNotFound, "this server is not configured by Ignition: the Secret of its claim has cloud-init's user-data or a script of its own instead")
		return
	}
	if reads, have, ok := acceptable(r.Header.Values("Accept"), p.Ignition); !ok {
		r.refuse(http.StatusNotAcceptable, "the Ignition has version "+have+" and this machine reads "+reads)
		return
	}
	if r.Method == http.MethodGet && !s.note(r, t, model.StageIgnition) {
		return
	}
	r.body(ignitionMedia, p.Ignition)
}

// note records a stage before its answer goes out, and answers itself when that
// cannot be.
func (s *Server) note(r *request, t *model.Ticket, stage model.BootStage) bool {
	if err := s.tickets.Note(r.Context(), t, stage, r.client()); err != nil {
		s.log.Error("boot progress cannot be recorded", "server", t.Server, "stage", string(stage), "err", err)
		r.unavailable("boot progress cannot be recorded at present")
		return false
	}
	if s.log.Enabled(r.Context(), slog.LevelInfo) {
		s.log.LogAttrs(r.Context(), slog.LevelInfo, "server boots", slog.String("server", string(t.Server)),
			slog.String("uuid", t.UUID), slog.String("purpose", string(t.Purpose)), slog.String("stage", string(stage)))
	}
	return true
}

// baseFor returns the URL that links in r's answer begin with. A Host header that
// is no plain IP address could be anything, and is passed over.
func (s *Server) baseFor(r *request) string {
	if !s.fromHost {
		return s.base
	}
	if host, ok := literalHost(r.Host); ok {
		if r.TLS != nil {
			return "https://" + host
		}
		return "http://" + host
	}
	return s.base
}

// literalHost returns a Host header (RFC 9110 §7.2) that is an IP address which
// other machines can reach, with or without a port, in its canonical form.
func literalHost(host string) (string, bool) {
	at, err := netip.ParseAddrPort(host)
	port := ":" + strconv.Itoa(int(at.Port()))
	if err != nil {
		at, err = netip.ParseAddrPort(host + ":80")
		port = ""
	}
	addr := at.Addr()
	switch {
	case err != nil, at.Port() == 0, addr.Zone() != "", addr.IsUnspecified(), addr.IsMulticast():
		return "", false
	case addr.Is6():
		return "[" + addr.String() + "]" + port, true
	}
	return addr.String() + port, true
}

// client returns who asks, from the connection itself: headers can say anything.
func (r *request) client() netip.Addr {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	addr, _ := netip.ParseAddr(host)
	return addr.Unmap()
}

func (r *request) text(body string) { r.body("text/plain; charset=utf-8", body) }

// body answers 200 with a whole body.
func (r *request) body(contentType, body string) { r.respond(http.StatusOK, contentType, body) }

// refuse answers with a code and a line that says why.
func (r *request) refuse(code int, why string) {
	r.respond(code, "text/plain; charset=utf-8", why+"\n")
}

// unavailable tells the client to come again.
func (r *request) unavailable(why string) {
	r.w.Header().Set("Retry-After", retryAfter)
	r.refuse(http.StatusServiceUnavailable, why)
}

func (r *request) respond(code int, contentType, body string) {
	h := r.w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	r.w.WriteHeader(code)
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(r.w.ResponseWriter, body) // a client that went away is no news
	}
}

// answer is a ResponseWriter that remembers its code, and gives the client a
// while for each piece that it is sent.
type answer struct {
	http.ResponseWriter
	stall time.Duration
	code  int
	sent  int64 // bytes of the body
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(code int) {
	a.code = code
	a.extend()
	a.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	a.extend()
	n, err := a.ResponseWriter.Write(p)
	a.sent += int64(n)
	return n, err
}

// extend moves the write deadline on. A connection keeps its deadline from one
// request to the next, so it is moved for each answer. That a writer in a test has
// no deadlines is no matter.
func (a *answer) extend() {
	_ = http.NewResponseController(a.ResponseWriter).SetWriteDeadline(time.Now().Add(a.stall))
}
