package dhcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ingot/bootsvc/dhcp/lease"
	"ingot/bootsvc/netboot"
	"ingot/model"
)

// lookEvery is how often the interfaces are looked at.
const lookEvery = time.Second

// Options are the options of New.
type Options struct {
	Networks []Network
	Store    lease.Store // nil = leases are forgotten with the process
	// Identity is what the DUID that DHCPv6 clients know us by is made of (RFC 8415
	// §11): the same for ever, and secret. When empty it is made of the network's
	// hardware address, which a bridge changes as ports join it.
	Identity []byte
	Tickets  netboot.Tickets
	Loaders  *netboot.Loaders
	// Rescue says which machines without a ticket are led to the rescue script; nil = none.
	Rescue *netboot.Rescue
	// Storable reports whether Store takes leases: it responds, and no other Ingot may lead. It must not block;
	// nil = always.
	Storable func() bool
	// Site returns where clients of a network reach the boot service; local is our
	// address on that network, of the client's family.
	Site func(network string, local netip.Addr) netboot.Site
	// Note notes that the server of a ticket is told its boot file, before that is sent. It
	// must not block.
	Note func(told netboot.Answer, client netip.Addr)
	// Heard is told what clients ask other DHCP servers for, and on which ports relays
	// hear them; nil = nobody is.
	Heard *netboot.Heard
	// Prober is asked whether somebody uses an address before it is given; nil = nobody is.
	Prober Prober
	// InVain notes that the firmware of a ticket's server asked what to boot, and was
	// told nothing: the ticket does not let it boot any more. It must not block.
	InVain func(t *model.Ticket, mac string)
	// Keep reports whether a MAC address is that of a Reserved server, whose address
	// is not given to others even when its lease has ended. It must neither block nor
	// call the Server.
	Keep func(mac string) bool
	// PoolsChanged is called when Pools has something new to say of a pool that ran
	// out. It must neither block nor call the Server.
	PoolsChanged func()
	// IsThere reports whether a packet to an address leaves at once: somebody on its link answers for it, or a
	// router does. It must not wait for an answer; nil = everybody is there.
	IsThere func(netip.Addr) bool
	// Told is called for each packet of a network card, once it is known what becomes of it. It
	// must not block. Nil is allowed.
	Told func(mac string, e model.CardEvent)

	Log        *slog.Logger
	Registerer prometheus.Registerer
	Clock      func() time.Time // nil means time.Now
}

// Server answers DHCP clients and relays. It is safe for concurrent use.
type Server struct {
	networks    []*network
	table       *lease.Table
	committer   *lease.Committer
	options     Options
	loopLimiter *netboot.LoopLimiter
	limiter     *limiter
	conflicts   *conflicts
	foreign     foreignServers
	ignored     *netboot.LoopLimiter // of scripts that iPXE is offered in mode proxy
	metrics     metrics

	loaded atomic.Bool // the leases of the store are known

	mu  sync.Mutex // guards own, and looks at interfaces one at a time
	own map[netip.Addr]bool
}

// New returns a Server of networks that Check finds nothing wrong with. It opens
// nothing.
func New(o Options) (*Server, error) {
	if problems := Check(o.Networks); len(problems) > 0 {
		return nil, fmt.Errorf("dhcp%s: %s", problems[0].Path, problems[0].Message)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.IsThere == nil {
		o.IsThere = func(netip.Addr) bool { return true }
	}
	if o.Storable == nil {
		o.Storable = func() bool { return true }
	}
	if o.Store == nil {
		o.Store = forgetful{}
	}
	s := &Server{
		options: o, loopLimiter: netboot.NewLoaderLimiter(), ignored: netboot.NewLoaderLimiter(), limiter: newLimiter(), conflicts: newConflicts(o.Prober), metrics: newMetrics(o.Registerer),
	}
	for _, cfg := range o.Networks {
		if !cfg.Serves() {
			continue
		}
		s.networks = append(s.networks, newNetwork(s, cfg))
	}
	var networks []*lease.Network
	for _, n := range s.networks {
		networks = append(networks, n.leases)
	}
	s.table = lease.NewTable(lease.Options{
		Networks: networks, Keep: o.Keep, Changed: o.PoolsChanged, Log: o.Log, Registerer: o.Registerer, Clock: o.Clock,
	})
	s.committer = lease.NewCommitter(o.Store, s.table, o.Registerer, o.Log)
	return s, nil
}

// forgetful is a store that keeps nothing.
type forgetful struct{}

// Leases implements lease.Store.
func (forgetful) Leases(context.Context) ([]model.Lease, error) { return nil, nil }

// SaveLeases implements lease.Store.
func (forgetful) SaveLeases(context.Context, []model.Lease) error { return nil }

// Listen binds what can be bound now. An address in use or a lack of permission
// is an error; an interface that is missing is waited for, and Healthy says so.
func (s *Server) Listen(context.Context) error {
	err := s.lookAll(func(n *network, err error) error {
		if err != nil && !errors.Is(err, errNoInterface) {
			return fmt.Errorf("network %s: %w", n.Name, err)
		}
		return nil
	})
	if err != nil {
		s.Close()
		return fmt.Errorf("dhcp: %w", err)
	}
	s.learnOwn()
	return nil
}

// Run reads the leases from the store, unless Load did, and then answers until ctx
// ends. It follows interfaces that go and come back.
func (s *Server) Run(ctx context.Context) error {
	defer s.Close()
	if !s.loaded.Load() && !s.Load(ctx) {
		return nil
	}
	s.options.Log.Info("DHCP answers", "networks", len(s.networks))
	var committing sync.WaitGroup
	stopped, stop := context.WithCancel(context.WithoutCancel(ctx))
	committing.Go(func() { s.committer.Run(stopped) })
	s.follow(ctx)
	s.conflicts.asking.Wait()
	stop() // after the readers, so that what they took in is still stored and answered
	committing.Wait()
	return nil
}

// follow answers what comes in on the sockets, and looks at the interfaces again
// and again. It returns when ctx has ended and nobody reads any longer.
func (s *Server) follow(ctx context.Context) {
	var readers sync.WaitGroup
	defer readers.Wait()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		_ = s.lookAll(func(n *network, _ error) error { // it logs what is new, and Healthy says the rest
			for _, c := range n.sockets.unread() {
				readers.Go(func() { n.read(ctx, c) })
			}
			service4{n}.overhear()
			return nil
		})
		s.learnOwn()
		select {
		case <-ctx.Done():
			for _, n := range s.networks {
				n.sockets.interrupt()
			}
			return
		case <-ticker.C:
		}
	}
}

// Load reads the leases from the store, so that Holder and Leased know them before Run
// is called. Nothing is answered before, because the holders of addresses are not known. It is
// false when ctx ended first.
func (s *Server) Load(ctx context.Context) bool {
	for said := false; ; said = true {
		all, err := s.options.Store.Leases(ctx)
		if err == nil {
			s.table.Load(all, s.options.Clock())
			s.loaded.Store(true)
			s.options.Log.Info("leases read", "leases", len(all))
			return true
		}
		if !said && ctx.Err() == nil {
			s.options.Log.Warn("leases cannot be read: no device is answered until they are", "err", err)
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(lookEvery):
		}
	}
}

// learnOwn tells the table which addresses are this machine's.
func (s *Server) learnOwn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := make(map[netip.Addr]bool)
	for _, n := range s.networks {
		for _, p := range n.sockets.link().addresses() {
			own[p.Addr()] = true
		}
	}
	if !maps.Equal(own, s.own) {
		s.own = own
		s.table.SetOwn(maps.Clone(own))
	}
}

// isOwn reports whether an address is this machine's.
func (s *Server) isOwn(a netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.own[a]
}

// Close closes the sockets that Listen bound, for a caller that does not call Run,
// which closes them itself when it ends. It may be called again.
func (s *Server) Close() {
	for _, n := range s.networks {
		n.sockets.close()
	}
}

// SetReservations replaces the reservations. A device that holds an address which
// is now reserved for another keeps it until its lease ends.
func (s *Server) SetReservations(all []lease.Reservation) {
	byPort := slices.IndexFunc(all, func(r lease.Reservation) bool { return r.Port != model.RelayPort{} })
	if byPort >= 0 && !slices.ContainsFunc(s.networks, func(n *network) bool { return len(n.relays) > 0 }) {
		s.options.Log.Warn("addresses that are reserved for the port of a relay are not given: no network names its relays (dhcp[].relays), "+
			"and anybody may say what he likes of his port", "endpoint", all[byPort].Name)
	}
	s.table.SetReservations(all)
}

// Holder returns the MAC address that has a live lease on a, unless that is only the
// client's own word.
func (s *Server) Holder(a netip.Addr) (mac string, ok bool) {
	mac, unproven, ok := s.table.At(a.Unmap().WithZone(""), s.options.Clock())
	if unproven {
		return "", false
	}
	return mac, ok
}

// Leased returns when one of these MAC addresses was last given a lease, or had one
// renewed, to the second; zero = it is not known.
func (s *Server) Leased(macs []string) time.Time { return s.table.Leased(macs) }

// Addresses returns the addresses that are leased to these MAC addresses.
func (s *Server) Addresses(macs []string) []netip.Addr {
	return s.table.Addresses(macs, s.options.Clock())
}

// Pools returns how full the ranges are.
func (s *Server) Pools() []model.PoolFacts { return s.table.Pools(s.options.Clock()) }

// Healthy returns nil, or what keeps networks from being served.
func (s *Server) Healthy() error {
	var all []error
	if !s.loaded.Load() {
		all = append(all, errors.New("the leases are not read yet"))
	}
	for _, n := range s.networks {
		if err := n.sockets.trouble(); err != nil {
			all = append(all, fmt.Errorf("network %s: %w", n.Name, err))
		}
	}
	return errors.Join(all...)
}
