package routeradvert

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mdlayher/ndp"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/ipv6"

	"ingot/bootsvc/internal/links"
)

const (
	// lookEvery is how often an interface is looked at.
	lookEvery = time.Second
	// writeTime is how long the kernel may take to send.
	writeTime = time.Second
)

// errNoCarrier is why a network waits for its cable: the kernel gives an interface a link-local
// address once it has a carrier. There is nobody to advertise to meanwhile, so nothing is wrong.
var errNoCarrier = errors.New("has no carrier")

// Multicast groups: RFC 4291 §2.7.1.
var (
	allNodes   = netip.MustParseAddr("ff02::1")
	allRouters = netip.MustParseAddr("ff02::2")
)

// Network is a link, and what machines on it are told.
type Network struct {
	Name      string
	Interface string
	Config    Config
}

// Options are the options of New.
type Options struct {
	Networks   []Network
	Log        *slog.Logger
	Registerer prometheus.Registerer
}

// Sender sends router advertisements.
type Sender struct {
	networks []*network
	log      *slog.Logger
}

// Healthy returns nil, or to which networks no advertisements can be sent, and why.
func (s *Sender) Healthy() error {
	var all []error
	for _, n := range s.networks {
		if reason := n.trouble(); reason != "" {
			all = append(all, fmt.Errorf("network %s: %s", n.Name, reason))
		}
	}
	return errors.Join(all...)
}

// network is a Network that is served.
type network struct {
	Network
	links         *links.Reader // of all networks
	log           *slog.Logger
	sent          prometheus.Counter
	contradicting prometheus.Counter
	failing       prometheus.Gauge
	warned        bool // of a router that contradicts

	mu      sync.Mutex
	reason  string // why it cannot be served, as it was said last; "" = it is served, or not begun with yet
	waiting bool   // for a carrier, and so for nothing that is wrong
}

// New returns a Sender. It opens nothing.
func New(o Options) *Sender {
	s, reader := &Sender{log: o.Log}, &links.Reader{}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	m := newMetrics(o.Registerer)
	for _, n := range o.Networks {
		s.networks = append(s.networks, &network{
			Network: n, links: reader, log: s.log.With("network", n.Name),
			sent: m.sent.WithLabelValues(n.Name), contradicting: m.contradicting.WithLabelValues(n.Name), failing: m.failing.WithLabelValues(n.Name),
		})
	}
	return s
}

// Run sends advertisements until ctx ends. Where this machine was a router it then says that it is none
// any more.
func (s *Sender) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for _, n := range s.networks {
		all.Go(func() { n.run(ctx) })
	}
	all.Wait()
	return nil
}

// run serves a network. It follows an interface that goes and comes back.
func (n *network) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := n.serve(ctx)
		if ctx.Err() == nil {
			n.say(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(lookEvery):
		}
	}
}

// say says why a network is not served, once.
func (n *network) say(err error) {
	waiting := errors.Is(err, errNoCarrier)
	switch isNew := n.setTrouble(err.Error(), waiting); {
	case isNew && waiting:
		n.log.Info("router advertisements wait for a carrier", "interface", n.Interface)
	case isNew:
		n.log.Warn("router advertisements are not sent; this is retried", "err", err)
	}
}

// setTrouble notes why a network is not served, "" if it is, and whether it only waits for a
// carrier, and reports whether that is new.
func (n *network) setTrouble(reason string, waiting bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failing.Set(map[bool]float64{false: 1}[reason == "" || waiting])
	isNew := n.reason != reason
	n.reason, n.waiting = reason, waiting
	return isNew
}

// trouble returns why a network is not served, "" if it is or only waits for a carrier.
func (n *network) trouble() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.waiting {
		return ""
	}
	return n.reason
}

// link is an interface that is served.
type link struct {
	*ndp.Conn
	ifi  *net.Interface
	addr netip.Addr // that we send from
}

// open opens a socket on n's interface as it is now.
func (n *network) open() (*link, error) {
	all, err := n.links.Read()
	if err != nil {
		return nil, err
	}
	found, ok := all[n.Interface]
	if !ok {
		return nil, fmt.Errorf("%s does not exist; it is waited for", n.Interface)
	}
	ifi := &found.Interface
	conn, addr, err := ndp.Listen(ifi, ndp.LinkLocal)
	switch {
	case errors.Is(err, os.ErrPermission):
		return nil, fmt.Errorf("not permitted: run as root, or with CAP_NET_RAW: %w", err)
	case err != nil && ifi.Flags&net.FlagUp != 0 && ifi.Flags&net.FlagRunning == 0:
		return nil, fmt.Errorf("%s %w", n.Interface, errNoCarrier)
	case err != nil:
		return nil, fmt.Errorf("%s has no link-local address that can be used yet: %w", n.Interface, err)
	}
	err = errors.Join(conn.SetICMPFilter(filter()), conn.SetControlMessage(ipv6.FlagHopLimit, true), conn.JoinGroup(allRouters))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("hear solicitations on %s: %w", n.Interface, err), conn.Close())
	}
	return &link{conn, ifi, addr}, nil
}

// isAsOpened reports whether the interface is among all as it was opened, with its address.
func (l *link) isAsOpened(all map[string]links.Link) bool {
	now, ok := all[l.ifi.Name]
	return ok && now.Index == l.ifi.Index && now.Flags&net.FlagUp != 0 &&
		slices.ContainsFunc(now.Addresses, func(p netip.Prefix) bool { return p.Addr() == l.addr.WithZone("") })
}

// serve advertises on n's interface until it changes, or ctx ends.
func (n *network) serve(ctx context.Context) error {
	l, err := n.open()
	if err != nil {
		return err
	}
	ours := n.Config.Message(l.ifi.HardwareAddr)
	solicited := make(chan struct{}, 1)
	var reading sync.WaitGroup
	reading.Go(func() { n.read(l, ours, solicited) })
	defer reading.Wait()
	defer func() { _ = l.Close() }()
	n.begin()
	plan := schedule{interval: n.Config.interval()}
	err = n.follow(ctx, l, ours, &plan, solicited)
	if ctx.Err() != nil && plan.sent > 0 && ours.RouterLifetime > 0 {
		last := *ours
		last.RouterLifetime = 0 // RFC 4861 §6.2.5
		_ = n.send(l, &last)    // who does not hear it notices when it has ended
	}
	return err
}

// begin says that a network is served.
func (n *network) begin() {
	n.setTrouble("", false)
	n.log.Info("router advertisements are sent", "interface", n.Interface, "router", n.Config.RouterLifetime > 0)
	forwards, err := os.ReadFile("/proc/sys/net/ipv6/conf/" + n.Interface + "/forwarding")
	if n.Config.RouterLifetime > 0 && err == nil && strings.TrimSpace(string(forwards)) == "0" {
		n.log.Warn("this machine is advertised as a router (routerLifetime) and forwards no packets: sysctl net.ipv6.conf.all.forwarding=1",
			"interface", n.Interface)
	}
}

// follow sends when it is time.
func (n *network) follow(ctx context.Context, l *link, ours *ndp.RouterAdvertisement, plan *schedule, solicited <-chan struct{}) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-solicited:
			plan.solicited(time.Now(), rand.Float64())
		case <-look.C:
			if all, err := n.links.Read(); err == nil && !l.isAsOpened(all) {
				return fmt.Errorf("%s went away or has another address; it is looked at again", n.Interface)
			}
		case <-time.After(plan.wait(time.Now())):
			if err := n.send(l, ours); err != nil {
				return err
			}
			plan.sentAt(time.Now(), rand.Float64())
		}
	}
}

// send sends one advertisement to all machines on the link.
func (n *network) send(l *link, m *ndp.RouterAdvertisement) error {
	_ = l.SetWriteDeadline(time.Now().Add(writeTime))
	if err := l.WriteTo(m, nil, allNodes); err != nil {
		return fmt.Errorf("advertise on %s: %w", n.Interface, err)
	}
	n.sent.Inc()
	return nil
}

// read takes in what others send, until l is closed.
func (n *network) read(l *link, ours *ndp.RouterAdvertisement, solicited chan<- struct{}) {
	buf := make([]byte, 1<<16)
	for {
		size, cm, from, err := l.ReadRaw(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // the interface went down, which serve finds out
			continue
		}
		if cm == nil || from == l.addr {
			continue
		}
		m, ok := packet{buf[:size], from, cm.HopLimit}.message()
		if !ok {
			continue
		}
		switch m := m.(type) {
		case *ndp.RouterSolicitation:
			select {
			case solicited <- struct{}{}:
			default: // one answer is for all
			}
		case *ndp.RouterAdvertisement:
			n.compare(ours, m, from)
		}
	}
}

// compare counts a router that contradicts us, and warns of the first.
func (n *network) compare(ours, theirs *ndp.RouterAdvertisement, from netip.Addr) {
	says := contradiction(ours, theirs)
	if says == "" {
		return
	}
	n.contradicting.Inc()
	if !n.warned {
		n.warned = true
		n.log.Warn("another router contradicts the router advertisements of this network: make both say the same, or remove routerAdvertisements",
			"router", from, "says", says)
	}
}
