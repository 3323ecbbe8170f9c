package bootsvc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ingot/bootsvc/bootfiles"
	"ingot/bootsvc/imagecache"
	"ingot/bootsvc/internal/lru"
	"ingot/bootsvc/internal/syntax"
	"ingot/bootsvc/netboot"
	"ingot/bootsvc/oci"
	"ingot/model"
)

// stall is how long a client may take nothing of an answer before its connection
// is dropped. It is measured from progress to progress: a slow client that goes
// on is served for as long as it takes.
const stall = 30 * time.Second

// retryAfter is what a client is told that is to come again, in seconds.
const retryAfter = "5"

// Tickets is where the boot service learns what a server may boot, and notes what
// it fetched.
type Tickets interface {
	// Find returns the boot ticket of the server with a UUID, as it was asked for in
	// lower case, or with a MAC address where firmware has no UUID. It is false when
	// no such server is known; a known server without a ticket has Ticket nil.
	Find(id string) (model.TicketHolder, bool)
	// Payload returns what Ignition made for a ticket, by Claim or by Probe: the same
	// bytes until the ticket ends.
	Payload(ctx context.Context, t *model.Ticket) (model.Sensitive, error)
	// Note records durably that a server reached a stage; client is who asked. It is not
	// called for a script or Ignition that Offer's progress shows already of this boot.
	Note(ctx context.Context, t *model.Ticket, stage model.BootStage, client netip.Addr) error
	// Use tells that somebody asked for a thing that a ticket stands for, and was served
	// it or refused for a reason. It neither blocks nor fails.
	Use(t *model.Ticket, what model.TicketThing, by model.Asker, refused model.TicketRefusal)
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
	// Token returns the token that a ticket's configuration is fetched with in one of the
	// boots that Progress counts.
	Token func(t *model.Ticket, boot int) model.Sensitive
	// Images are where images come from, nil = there are none. Cache keeps their layers on
	// disk, and bounds their fetches.
	Images *oci.Images
	Cache  *imagecache.Cache
	// DiskImages are where the chunks of disk images are; nil means that there are none.
	DiskImages DiskImages
	// Loaders are the boot loaders that are served; nil means none.
	Loaders *netboot.Loaders
	// Files are served below /files/ to everybody; nil means none.
	Files *bootfiles.Folder
	// AddressRules say who may use the servers' tickets, and which server is at an address;
	// the zero value knows nobody.
	AddressRules netboot.AddressRules
	// Settle waits, for a bounded time, until what DHCP heard before it was called is
	// written down: a network card that is known by that alone may ask here within
	// milliseconds. nil means that there is nothing to wait for.
	Settle func(context.Context)
	// DiskBoot says how a server is sent on to its disk; nil means DiskExit for all.
	DiskBoot func(model.ServerName) DiskBoot
	// Told is called for each request, once it is answered, but where nothing shows which card asks;
	// mac is the card's, as far as it was judged. It must not block. Nil is allowed.
	Told func(client netip.Addr, mac string, e model.CardEvent)
	// Rescue is the script for machines without a boot ticket; its zero value is none.
	Rescue RescueScript

	Log        *slog.Logger
	Registerer prometheus.Registerer
	Clock      func() time.Time // nil means time.Now
}

// Server answers machines that boot. It is safe for concurrent use.
type Server struct {
	links    links
	gate     *gate
	images   *oci.Images
	cache    *imagecache.Cache
	disks    DiskImages
	loaders  *netboot.Loaders
	files    *bootfiles.Folder
	diskBoot func(model.ServerName) DiskBoot
	told     func(netip.Addr, string, model.CardEvent)
	rescue   RescueScript
	scripts  *netboot.LoopLimiter
	stall    time.Duration
	log      *slog.Logger
	metrics  metrics
	clock    func() time.Time
}

// NewServer returns a Server, or an error when the URL cannot stand in a boot
// script.
func NewServer(o Options) (*Server, error) {
	base := strings.TrimRight(o.URL, "/")
	if !syntax.URL(base) {
		return nil, fmt.Errorf("boot URL %q must be http or https with a host and a plain path of letters, digits and . _ ~ -", syntax.Printable(o.URL))
	}
	if o.Images != nil && o.Cache == nil {
		return nil, errors.New("images cannot be served without a cache")
	}
	s := &Server{
		links:    links{base, o.URLFromHost},
		images:   o.Images,
		cache:    o.Cache,
		disks:    o.DiskImages,
		loaders:  o.Loaders,
		files:    o.Files,
		diskBoot: o.DiskBoot,
		told:     o.Told,
		rescue:   o.Rescue,
		scripts:  netboot.NewScriptLimiter(),
		stall:    stall,
		log:      logger(o.Log),
		metrics:  newMetrics(o.Registerer),
		clock:    o.Clock,
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	s.gate = &gate{
		tickets: o.Tickets, token: o.Token, rules: o.AddressRules, settle: o.Settle, boots: lru.New[string, *boot](maxBoots),
		refusals: s.metrics.refusals, refusalLog: newLogLimiter(), log: s.log, clock: s.clock,
	}
	if o.Settle == nil {
		s.gate.settle = func(context.Context) {}
	}
	if o.Rescue.Whom != nil {
		if err := o.Rescue.Check(); err != nil {
			s.log.Warn("the rescue script cannot be served: machines without a boot ticket boot from their disks until it can", "err", err)
		}
	}
	return s, nil
}

// NewHTTPServer returns an http.Server with limits that fit machines that boot. They are
// part of what neighbour.Memory must be longer than.
// It has no limit on a whole answer: the handler's write deadline moves on with
// progress. A request has no body to wait for: who takes one gives it a deadline of
// its own.
func NewHTTPServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       10 * time.Second,
		IdleTimeout:       20 * time.Second,
		MaxHeaderBytes:    16 << 10,
	}
}

func logger(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}
