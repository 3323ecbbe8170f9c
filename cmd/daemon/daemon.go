package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"ingot/bmc"
	"ingot/bootsvc"
	"ingot/bootsvc/bootfiles"
	"ingot/bootsvc/cachedir"
	"ingot/bootsvc/conversation"
	"ingot/bootsvc/diskimage"
	"ingot/bootsvc/ignition"
	"ingot/bootsvc/imagecache"
	"ingot/bootsvc/netboot"
	"ingot/bootsvc/oci"
	"ingot/cmd/daemon/access"
	"ingot/cmd/daemon/adapter"
	"ingot/cmd/daemon/addresses"
	"ingot/cmd/daemon/config"
	"ingot/cmd/daemon/holder"
	"ingot/cmd/daemon/listen"
	"ingot/cmd/daemon/secretfiles"
	"ingot/gitsource"
	"ingot/gitsource/forge"
	"ingot/model"
	"ingot/reconcile"
	"ingot/registry"
)

const (
	// planEvery is how often everything is evaluated again without an event.
	planEvery = 2 * time.Minute
	// publishEvery is the minimum time between two commits of the status branch that no decision waits for.
	publishEvery = 30 * time.Second
)

// Environment is what Run is given by the program around it.
type Environment struct {
	Log *slog.Logger
	// Version is the program's, for metrics.
	Version string
	// Wake has the repository fetched at once, for each value; nil = never.
	Wake <-chan os.Signal
	// Clock is what all parts go by; nil = this machine's, as it was when Run began.
	Clock func() time.Time
	// Ready is called once the addresses of all listeners are known, before anything else starts.
	Ready func(Addresses)
}

// Run runs Ingot until ctx ends or a part of it fails.
func Run(ctx context.Context, opts config.Options, env Environment) error {
	d, err := assemble(ctx, opts, env)
	if err != nil {
		return err
	}
	defer d.close()
	if env.Ready != nil {
		env.Ready(d.listeners.addresses())
	}
	return d.run(ctx)
}

// core has what several parts of the daemon use.
type core struct {
	opts      config.Options
	log       *slog.Logger
	metrics   *prometheus.Registry
	clock     func() time.Time
	holder    model.Holder
	listeners *listeners
	registry  *registry.Registry
	source    *gitsource.Source
	status    *gitsource.StatusBranch
	desired   func() *model.Desired // what Git asks for, with the secrets from elsewhere
	loop      *reconcile.Loop
}

// daemon is Ingot with its parts plugged together.
type daemon struct {
	*core
	leader  *leader
	clients *clients
	network *network

	wake      <-chan os.Signal
	access    *access.Access // of the admin listener; nil = off
	probes    http.Handler   // the endpoint that probes report to
	webhook   *forge.Webhook // nil = off
	poster    *forge.Poster  // nil = off
	pool      *bmc.Pool
	images    *oci.Images
	cacheDir  *cachedir.Dir // of cache and disks
	cache     *imagecache.Cache
	disks     *diskimage.Store
	inUse     *adapter.Pins // what the cache must keep
	boots     *adapter.Boots
	bootsvc   *bootsvc.Server
	files     *bootfiles.Folder // nil = none
	rescue    *netboot.Rescue   // nil = off
	publisher *reconcile.Publisher
	reporter  *reconcile.Reporter

	secrets        *secretfiles.Folder // nil = all are in Git
	desiredChanged <-chan struct{}

	// ready is closed once this process leads and knows the records.
	ready chan struct{}
	// leased is closed once it also knows the leases and the Endpoints in Git, by which
	// machines are told apart.
	leased chan struct{}

	name io.Closer // shows other processes of this machine that holder is alive
}

// assemble makes all parts, in the order in which they need one another. It is
// one long list because it is the only place that knows them all.
func assemble(ctx context.Context, opts config.Options, env Environment) (_ *daemon, err error) {
	c := &core{opts: opts, log: env.Log, metrics: prometheus.NewRegistry(), clock: env.Clock}
	d := newDaemon(c)
	d.wake = env.Wake
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if d.clock == nil {
		d.clock = steadyClock(time.Now, sinceBoot)
	}
	d.clients.heard, d.clients.cards = netboot.NewHeard(d.clock), conversation.New(d.metrics)
	d.clients.endpoints = &addresses.Endpoints{Desired: func() *model.Desired { return d.desired() }}
	d.clients.openNeighbours()
	d.warnAddressRules()
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	registerProcess(d.metrics, env.Version, &opts)
	d.warnFiles()
	if d.listeners, err = openListeners(ctx, &opts); err != nil {
		return d, err
	}
	if err = d.openAccess(); err != nil {
		return d, err
	}
	bootURL, err := listen.PublicURL(opts.Boot.URL, addrOf(d.listeners.boot), net.InterfaceAddrs)
	if err != nil {
		return d, fmt.Errorf("boot.url: %w", err)
	}
	registryURL, err := listen.PublicURL(opts.Registry.URL, addrOf(d.listeners.registry), net.InterfaceAddrs)
	if err != nil {
		return d, fmt.Errorf("registry.url: %w", err)
	}
	if d.holder, err = holder.ThisHolder(); err != nil {
		return d, err
	}
	if d.name, err = holder.HoldName(d.holder.ID); err != nil {
		return d, err
	}
	if err = d.openRegistry(ctx); err != nil {
		return d, err
	}
	compiler, err := ignition.New(ignition.Options{ProbeTemplateFile: opts.Discovery.IgnitionTemplateFile, ProbeImage: opts.Discovery.Image})
	if err != nil {
		return d, fmt.Errorf("discovery.ignitionTemplateFile: %w", err)
	}
	if err = d.openGit(compiler); err != nil {
		return d, err
	}
	if err = d.openForge(); err != nil {
		return d, err
	}
	d.network.openLoaders()
	d.useFiles()
	if err = d.makeBoots(bootURL, registryURL, compiler); err != nil {
		return d, err
	}
	if err = d.openBMCs(); err != nil {
		return d, err
	}
	rules := Policy(opts, d.network.loaders.UEFI())
	if rules.MACPrefixes, err = d.macPrefixes(); err != nil {
		return d, err
	}
	counts := reconcile.NewMetrics(d.metrics)
	d.loop = reconcile.NewLoop(reconcile.Options{
		Desired: d.network.reserveDesired, DesiredChanged: d.desiredChanged, Store: adapter.Store{Records: d.registry.Records},
		BMCs: adapter.BMCs{Pool: d.pool}, Boots: d.boots, Check: d.boots.Check, Leading: d.registry.Lead.Leading, State: d.leader.present, Pools: d.network.pools, Leased: d.network.leasedAt, Addresses: d.network.leasedAddresses,
		Policy: rules, DigestKey: d.registry.DigestKey, Clock: d.clock, Log: d.log, Metrics: counts,
	})
	d.reporter = &reconcile.Reporter{Loop: d.loop, Fence: d.registry.Lead.Fence, Holder: d.holder}
	d.metrics.MustRegister(reconcile.NewFleetCollector(d.reporter.Report, d.opts.Admin.ServerMetrics))
	d.publisher = &reconcile.Publisher{
		Reporter: d.reporter, Sink: d.leader, Note: d.leader.pushed,
		Interval: cmp.Or(opts.Tuning.StatusInterval, publishEvery), Unlimited: opts.Tuning.Fast, Log: d.log,
	}
	d.metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ingot_status_unpublished_seconds", Help: "For how long the status branch could not be pushed; 0 when it can.",
	}, d.unpublished))
	d.leader.startCase = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "ingot_start_case", Help: "1 for what this process found when it compared its store with the status branch, by case; docs/laws.md lists them.",
	}, []string{"case"})
	d.metrics.MustRegister(d.leader.startCase)
	return d, d.network.makeNetworks(ctx, d.files, d.rescue)
}

func newDaemon(c *core) *daemon {
	seen := &clients{core: c}
	return &daemon{
		core: c, leader: &leader{core: c}, clients: seen, network: &network{core: c, clients: seen},
		ready: make(chan struct{}), leased: make(chan struct{}),
	}
}

// parts are the goroutines of a daemon. They end together, but those that act do so before the lead is given up, which
// does not wait for the downloads of machines.
type parts struct {
	*errgroup.Group
	acting sync.WaitGroup
}

func (p *parts) act(part func() error) {
	p.acting.Add(1)
	p.Go(func() error {
		defer p.acting.Done()
		return part()
	})
}

// run starts all parts and stops them together.
func (d *daemon) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	parts := &parts{Group: group}
	d.serveAdmin(ctx, parts)
	parts.act(func() error { return d.source.Run(ctx) })
	if d.secrets != nil {
		parts.act(func() error { return d.secrets.Run(ctx) })
	}
	if d.clients.links != nil {
		parts.Go(func() error { return d.clients.links.Run(ctx) })
	}
	parts.act(func() error { return d.wakeSource(ctx) })
	parts.act(func() error {
		if err := d.lead(ctx, parts); err != nil && ctx.Err() == nil {
			return err
		}
		return nil
	})
	parts.Go(func() error {
		<-ctx.Done()
		parts.acting.Wait()
		d.release()
		return nil
	})
	return d.ended(parts.Wait())
}

// lead waits until this process leads and knows what any other did, and starts the parts
// that act.
func (d *daemon) lead(ctx context.Context, parts *parts) error {
	if err := d.registry.AwaitLead(ctx); err != nil {
		return fmt.Errorf("take the lead: %w", err)
	}
	parts.act(func() error { return d.registry.Run(ctx) })
	if err := d.openSockets(ctx); err != nil {
		return err
	}
	d.serve(ctx, parts)
	leased := d.network.startDHCP(ctx, parts)
	if err := d.leader.takeOver(ctx); err != nil {
		return err
	}
	close(d.ready)
	parts.act(func() error { return d.act(ctx) })
	parts.act(func() error { return d.rememberStatus(ctx) })
	parts.act(func() error { return d.boots.ForgetEnded(ctx, time.Minute) })
	parts.act(func() error { return d.network.stages.Run(ctx) })
	parts.act(func() error { return d.warnIndistinct(ctx) })
	if d.network.tftp != nil {
		parts.Go(func() error { return d.network.tftp.Run(ctx) })
	}
	if d.poster != nil {
		parts.act(func() error { return d.poster.Run(ctx) })
	}
	select {
	case <-leased:
		d.awaitManifests(ctx, 10*time.Second)
		d.leader.servesNow()
		close(d.leased)
	case <-ctx.Done():
	}
	return nil
}

// act runs the parts that decide and do. If another commit comes before this process's first one,
// such as a late one of its predecessor, it compares store and status branch again.
func (d *daemon) act(ctx context.Context) error {
	for {
		parts, acting := errgroup.WithContext(ctx)
		parts.Go(func() error { return d.loop.Run(acting, planEvery) })
		parts.Go(func() error { return d.publisher.Run(acting) })
		parts.Go(func() error { return d.leader.watch(acting) })
		if err := parts.Wait(); !errors.Is(err, errMoved) {
			return err
		}
		if err := d.leader.takeOver(ctx); ctx.Err() != nil {
			return nil // it was stopped meanwhile
		} else if err != nil {
			return err
		}
	}
}

// ended returns why Run ends. Where a newer Ingot that does not share the store writes the
// status branch, it says so: a restart would fight with that one.
func (d *daemon) ended(err error) error {
	fenced := errors.Is(err, reconcile.ErrFenced) || errors.Is(err, registry.ErrLeadershipLost)
	if fenced && d.opts.Redis.URL == "" {
		return fmt.Errorf("%w: %w; this one has ended its lead", ErrAnotherIngot, err)
	}
	return err
}

// unpublished returns for how many seconds the status branch could not be pushed.
func (d *daemon) unpublished() float64 {
	since, _ := d.publisher.Failing()
	if since.IsZero() {
		return 0
	}
	return d.clock().Sub(since).Seconds()
}

// close releases what assemble took.
func (d *daemon) close() {
	if d.listeners != nil {
		d.listeners.close()
	}
	d.network.close()
	if d.clients.links != nil {
		d.clients.links.Close()
	}
	d.release()
	if d.status != nil {
		d.status.Close()
	}
	if d.name != nil {
		_ = d.name.Close()
	}
	if d.cache != nil {
		d.cache.Close()
	}
	if d.disks != nil {
		d.disks.Close()
	}
	if d.cacheDir != nil {
		d.cacheDir.Close()
	}
	if d.images != nil {
		d.images.Close()
	}
}

// release gives up the lead. The sessions on BMCs, of which each allows only a few, stay open for the next leader, which
// finds them in a shared store. Without one they are deleted.
func (d *daemon) release() {
	if d.pool != nil && !shares(&d.opts) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := d.pool.Close(ctx); err != nil {
			d.log.Warn("sessions on BMCs not closed", "err", err)
		}
	}
	if d.registry != nil {
		if err := d.registry.Close(); err != nil {
			d.log.Warn("store not closed", "err", err)
		}
	}
}
