package daemon

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"

	"ingot/bmc"
	"ingot/bootsvc"
	"ingot/bootsvc/dhcp"
	"ingot/bootsvc/ignition"
	"ingot/bootsvc/imagecache"
	"ingot/bootsvc/metadata"
	"ingot/bootsvc/neighbour"
	"ingot/bootsvc/netboot"
	"ingot/bootsvc/oci"
	"ingot/bootsvc/tftp"
	"ingot/cmd/daemon/holder"
	"ingot/gitsource"
	"ingot/model"
	"ingot/reconcile"
	"ingot/reconcile/plan"
	"ingot/reconcile/report"
	"ingot/registry"
	"ingot/registry/probe"
	registrystore "ingot/registry/store"
)

// Environment is what Run is given by the program around it.
type Environment struct {
	Log *slog.Logger
	// Wake has the repository looked at now, for each value; nil = never.
	Wake <-chan os.Signal
	// Ready is called once all listeners are bound, before anything else starts.
	Ready func(Addresses)
}

// Run runs Ingot until ctx ends or a part of it fails.
func Run(ctx context.Context, opts Options, env Environment) error {
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

// daemon is Ingot with its parts plugged together.
type daemon struct {
	opts       Options
	log        *slog.Logger
	wake       <-chan os.Signal
	metrics    *prometheus.Registry
	listeners  *listeners
	registry   *registry.Registry
	reports    http.Handler // of probes
	source     *gitsource.Source
	status     *gitsource.StatusBranch
	pool       *bmc.Pool
	images     *oci.Images
	cache      *imagecache.Cache
	boots      *boots
	bootsvc    *bootsvc.Server
	loaders    *netboot.Loaders
	dhcp       *dhcp.Server // nil = off
	tftp       *tftp.Server // nil = off
	endpoints  *endpoints
	heard      *netboot.Heard     // by dhcp
	links      *neighbour.Table   // nil = they cannot be read
	neighbours netboot.Neighbours // links, or why not
	identity   []byte             // of this Ingot among DHCP servers, derived from its key
	stages     *stageNotes
	loop       *reconcile.Loop
	publisher  *reconcile.Publisher

	// ready is closed once this process leads and knows the records.
	ready chan struct{}
	// leased is closed once it knows the leases and the Endpoints in Git as well, by which
	// machines are told apart.
	leased chan struct{}

	reporter *reconcile.Reporter

	clock   func() time.Time
	holder  model.Holder
	name    io.Closer     // tells other processes of this machine that holder lives
	healing func()        // ends the healing of power while the status branch is unread
	begun   model.Applied // what the source began with

	mu      sync.Mutex // guards what is below
	state   reconcile.State
	serving time.Time // since when machines that boot can reach this process
	seenAt  time.Time // when the status branch was last seen to be ours
}

// assemble makes all parts, in the order in which they need one another. It is
// one long list because it is the only place that knows them all.
func assemble(ctx context.Context, opts Options, env Environment) (_ *daemon, err error) {
	d := &daemon{opts: opts, log: env.Log, wake: env.Wake, ready: make(chan struct{}), leased: make(chan struct{}), metrics: prometheus.NewRegistry(), clock: steadyClock(time.Now, sinceBoot)}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	d.heard = netboot.NewHeard(nil)
	d.endpoints = &endpoints{desired: func() *model.Desired { return d.source.Desired() }}
	d.openNeighbours()
	d.sayBindings()
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	d.metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if d.listeners, err = listen(ctx, &opts); err != nil {
		return d, err
	}
	bootURL, err := publicURL(opts.Boot.URL, addrOf(d.listeners.boot), net.InterfaceAddrs)
	if err != nil {
		return d, fmt.Errorf("boot.url: %w", err)
	}
	registryURL, err := publicURL(opts.Registry.URL, addrOf(d.listeners.registry), net.InterfaceAddrs)
	if err != nil {
		return d, fmt.Errorf("registry.url: %w", err)
	}
	if d.holder, err = holder.ThisHolder(opts.Git.Interval, opts.Status.TakeOverAfter); err != nil {
		return d, err
	}
	if d.name, err = holder.HoldName(d.holder.ID); err != nil {
		return d, err
	}
	if err = d.openRegistry(ctx); err != nil {
		return d, err
	}
	if err = d.openGit(); err != nil {
		return d, err
	}
	d.openLoaders()
	if err = d.makeBoots(bootURL, registryURL); err != nil {
		return d, err
	}
	ca, err := certificates(opts.BMC.CAFile)
	if err != nil {
		return d, err
	}
	var patience time.Duration // with one request; the pool's default
	if opts.Tuning.Fast {
		patience = 10 * time.Second
	}
	d.pool = bmc.NewPool(bmc.Options{
		Timeout:           patience,
		RequestsPerSecond: opts.BMC.RequestsPerSecond, MaxInFlight: opts.BMC.MaxInFlight, CA: ca, Networks: opts.BMC.Networks,
		Permit: d.permit, Sessions: sessions{d.registry}, Log: d.log, Registerer: d.metrics,
	})
	if how := d.registry.Durability(); how != registrystore.DurableAlways && !opts.Status.MirrorFirst {
		d.log.Warn("the store may lose what it took, and status.mirrorFirst is false: have Redis write each change before it answers (appendonly yes, appendfsync always)", "reason", "StoreNotDurable", "durable", how.String())
	}
	rules := policy(opts, d.loaders.UEFI())
	if rules.MACPrefixes, err = d.macPrefixes(); err != nil {
		return d, err
	}
	counts := reconcile.NewMetrics(d.metrics)
	d.loop = reconcile.NewLoop(reconcile.Options{
		Desired: d.source.Desired, DesiredChanged: d.source.Changed(), Store: store{d.registry},
		BMCs: bmcs{d.pool}, Boots: d.boots, Leading: d.registry.Leading, State: d.present, Pools: d.pools, Leased: d.leasedAt,
		Policy: rules, DigestKey: d.registry.DigestKey(), Clock: d.clock, Log: d.log, Metrics: counts,
	})
	d.reporter = &reconcile.Reporter{Loop: d.loop, Fence: d.registry.Fence, Holder: d.holder}
	d.metrics.MustRegister(reconcile.NewFleetCollector(d.reporter.Report))
	d.publisher = &reconcile.Publisher{
		Reporter: d.reporter, Sink: sink{d}, Note: d.registry.SavePublished,
		Interval: opts.Status.Interval, Unlimited: opts.Tuning.Fast, Log: d.log,
	}
	d.metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ingot_status_unpublished_seconds", Help: "For how long the status branch cannot be pushed; 0 when it can.",
	}, d.unpublished))
	return d, d.makeNetworks(ctx)
}

func (d *daemon) openRegistry(ctx context.Context) error {
	if err := os.MkdirAll(d.opts.State.Dir, 0o700); err != nil {
		return fmt.Errorf("state.dir: %w; create it, or set state.dir to a folder that Ingot may write to", err)
	}
	keyFile, own := d.opts.Redis.SealKeyFile, d.opts.Redis.SealKeyFile == ""
	if own {
		keyFile = filepath.Join(d.opts.State.Dir, "seal.key")
	}
	key, err := registry.LoadSealKey(keyFile, own)
	if err != nil {
		return fmt.Errorf("redis.sealKeyFile: %w", err)
	}
	identity := sha256.Sum256(append([]byte("identity of a DHCP server\x00"), key...))
	d.identity = identity[:]
	host, err := os.Hostname()
	if err != nil {
		host = "ingot"
	}
	o := registry.Options{
		RedisURL: d.opts.Redis.URL, Dir: d.opts.State.Dir, SealKey: key, Owner: host,
		Log: d.log, Registerer: d.metrics,
	}
	if d.opts.Tuning.Fast {
		o.LeaderTTL = 2 * time.Second
	}
	if d.registry, err = registry.Open(ctx, o); err != nil {
		return err
	}
	d.reports = probe.Handler(probe.Options{
		Registry: d.registry, Probes: d.registry, Tokens: d.registry.TokenKey(),
		Open: !d.opts.Registry.RequireToken, Log: d.log, Registerer: d.metrics,
		Bound: func(o model.TicketHolder, client netip.Addr) (model.Asker, model.TicketRefusal, string) {
			v := reportBindings(d.bindings(), o.Ticket, d.opts.Registry.RequireToken).Judge(o, client)
			return v.By, v.Refusal, v.Told
		},
	})
	return nil
}

func (d *daemon) openGit() (err error) {
	o := &d.opts
	auth := o.Git.Auth.files()
	d.source, err = gitsource.New(gitsource.Options{
		URL: o.Git.URL, Branch: o.Git.Branch, Path: o.Git.Path, Interval: o.Git.Interval, Auth: auth,
		Tenants: o.Git.Tenants, Strict: o.Git.Strict, AllowPlaintextSecrets: o.Git.AllowPlaintextSecrets,
		Dir: filepath.Join(o.State.Dir, "git"), Log: d.log, Registerer: d.metrics,
	})
	if err != nil {
		return err
	}
	d.status, err = gitsource.NewStatusBranch(gitsource.StatusOptions{
		URL: o.Git.URL, Branch: o.Status.Branch, Auth: auth, AuthorName: o.Status.AuthorName, AuthorEmail: o.Status.AuthorEmail,
		Log: d.log, Registerer: d.metrics,
	})
	return err
}

// files are the names of the credential files as gitsource wants them.
func (a GitAuth) files() gitsource.Auth {
	return gitsource.Auth{
		UsernameFile: a.UsernameFile, PasswordFile: a.PasswordFile, CAFile: a.CAFile,
		SSHKeyFile: a.SSHKeyFile, KnownHostsFile: a.KnownHostsFile,
	}
}

func (d *daemon) makeBoots(bootURL, registryURL string) (err error) {
	o := &d.opts
	d.images, err = oci.New(oci.Options{
		AllowedRegistries: o.Boot.AllowedRegistries, Own: []string{o.Discovery.Image, o.Cleanup.Image}, Inside: d.isBMCs, PlainHTTP: o.Boot.InsecureRegistries,
		CredentialsFile: o.Boot.CredentialsFile, Pinned: lastPinned(d.registry.Observed),
		Log: d.log, Registerer: d.metrics,
	})
	if err != nil {
		return err
	}
	var template []byte
	if file := o.Discovery.IgnitionTemplateFile; file != "" {
		if template, err = os.ReadFile(file); err != nil {
			return fmt.Errorf("discovery.ignitionTemplateFile: %w", err)
		}
	}
	compiler, err := ignition.New(ignition.Options{ProbeTemplate: template, ProbeImage: o.Discovery.Image})
	if err != nil {
		return fmt.Errorf("discovery.ignitionTemplateFile: %w", err)
	}
	if err = d.openCache(); err != nil {
		return err
	}
	d.boots = &boots{
		registry: d.registry, images: d.images, cache: d.cache, log: d.log, ignition: compiler, registryURL: registryURL, desired: d.source.Desired,
	}
	d.bootsvc, err = bootsvc.NewServer(bootsvc.Options{
		URL: bootURL, URLFromHost: o.Boot.URL == "", Tickets: d.boots, Token: d.registry.TokenKey().Config, Images: d.images,
		Cache: d.cache, Loaders: d.loaders, AddressRules: d.bindings(), DiskBoot: d.boots.diskBoot,
		Settle: func(ctx context.Context) { d.stages.settle(ctx) }, Log: d.log, Registerer: d.metrics,
	})
	return err
}

// openCache opens the cache of image layers.
func (d *daemon) openCache() (err error) {
	dir := d.opts.Boot.CacheDir
	if dir == "" {
		dir = filepath.Join(d.opts.State.Dir, "images")
	}
	held := &pins{observed: d.registry.Observed}
	d.cache, err = imagecache.Open(imagecache.Options{
		Dir: dir, MaxBytes: int64(d.opts.Boot.CacheSize), MaxFetches: d.opts.Boot.MaxConcurrentDownloads, Spare: held.spare,
		Log: d.log, Registerer: d.metrics,
	})
	if err != nil {
		return fmt.Errorf("boot.cacheDir: %w", err)
	}
	return nil
}

// policy is the configuration in the words of the plan.
func policy(o Options, loaders []string) plan.Policy {
	p := plan.DefaultPolicy()
	p.BMCNetworks, p.Tenants = o.BMC.Networks, o.Git.Tenants
	p.PollInterval, p.PowerOffGrace = o.BMC.PollInterval, o.BMC.PowerOffGrace
	p.DiscoveryImage, p.DiscoveryTimeout, p.DiscoveryAttempts = o.Discovery.Image, o.Discovery.Timeout, o.Discovery.Attempts
	p.CleanupMode, p.CleanupImage = o.Cleanup.Mode, o.Cleanup.Image
	p.MaxDisruptions, p.MaxPowerDisruptions, p.GuardWindow = o.Guard.MaxDisruptions, o.Guard.MaxPowerDisruptions, o.Guard.Window
	p.MaxConcurrentReprovisions, p.MaxConcurrentPowerOns = o.Guard.MaxConcurrentReprovisions, o.Guard.MaxConcurrentPowerOns
	p.MirrorFirst = o.Status.MirrorFirst
	p.Architectures, p.LoaderArchitectures = o.Boot.Architectures, loaders
	p.LeaseNetworks = o.leaseNetworks()
	if o.Tuning.Fast {
		p.Settle, p.SettleMax, p.ConfirmEvery = 5*time.Millisecond, 250*time.Millisecond, 5*time.Millisecond
		p.UnsureAfter, p.StrandedAfter, p.StartGrace, p.TrustedOff = time.Second, 2*time.Second, time.Second, time.Second
		p.FoundOffTime, p.BootGrace = time.Second, 5*time.Second
	}
	return p
}

// run starts all parts and stops them together.
func (d *daemon) run(ctx context.Context) error {
	parts, ctx := errgroup.WithContext(ctx)
	d.serve(ctx, parts)
	parts.Go(func() error { return d.source.Run(ctx) })
	if d.links != nil {
		parts.Go(func() error { return d.links.Run(ctx) })
	}
	parts.Go(func() error { return d.wakeSource(ctx) })
	parts.Go(func() error {
		if err := d.registry.Lead(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("take the lead: %w", err)
		}
		parts.Go(func() error { return d.registry.Run(ctx) })
		leased := d.startDHCP(ctx, parts)
		if err := d.takeOver(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		close(d.ready)
		parts.Go(func() error { return d.loop.Run(ctx, d.opts.Resync) })
		parts.Go(func() error { return d.publisher.Run(ctx) })
		parts.Go(func() error { return d.watch(ctx) })
		parts.Go(func() error { return d.boots.janitor(ctx, time.Minute, d.log) })
		parts.Go(func() error { return d.stages.run(ctx) })
		parts.Go(func() error { return d.sayUntold(ctx) })
		if d.tftp != nil {
			parts.Go(func() error { return d.tftp.Run(ctx) })
		}
		select {
		case <-leased:
			d.awaitManifests(ctx, 10*time.Second)
			d.serves()
			close(d.leased)
		case <-ctx.Done():
		}
		return nil
	})
	return d.ended(parts.Wait())
}

// ended is why Run ends. A newer Ingot on the status branch that does not share our
// store is one that a restart would fight with.
func (d *daemon) ended(err error) error {
	fenced := errors.Is(err, reconcile.ErrFenced) || errors.Is(err, registry.ErrLeadershipLost)
	if fenced && d.opts.Redis.URL == "" {
		return fmt.Errorf("%w: %w; this one has ended its lead", ErrAnotherIngot, err)
	}
	return err
}

// startDHCP gives leases out, from before anything else is known: the forge may need
// them. The channel that it returns is closed once the leases are known by which
// machines are told apart.
func (d *daemon) startDHCP(ctx context.Context, parts *errgroup.Group) (leased chan struct{}) {
	leased = make(chan struct{})
	if d.dhcp == nil {
		close(leased)
		return leased
	}
	known := make(chan struct{})
	parts.Go(func() error { return d.reserve(ctx, known) })
	parts.Go(func() error { return d.serveDHCP(ctx, known, leased, 10*time.Second) })
	return leased
}

// awaitManifests waits until Git was read, for its Endpoints tell machines apart. While it
// cannot be read it is not waited for longer than patience.
func (d *daemon) awaitManifests(ctx context.Context, patience time.Duration) {
	over := time.After(patience)
	for d.source.Desired() == nil {
		select {
		case <-ctx.Done():
			return
		case <-over:
			d.log.Warn("machines are served without the Endpoints in Git, which was not read yet", "after", patience)
			return
		case <-time.After(20 * time.Millisecond): // machines wait
		}
	}
}

// unpublished is for how many seconds the status branch cannot be pushed.
func (d *daemon) unpublished() float64 {
	since, _ := d.publisher.Failing()
	if since.IsZero() {
		return 0
	}
	return d.clock().Sub(since).Seconds()
}

// wakeSource has the repository looked at whenever somebody asks for it.
func (d *daemon) wakeSource(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.wake:
			d.source.Wake()
		}
	}
}

// serve answers on the listeners.
func (d *daemon) serve(ctx context.Context, parts *errgroup.Group) {
	if d.listeners.boot != nil {
		parts.Go(func() error { return serve(ctx, d.listeners.boot, d.hold(d.bootsvc.Handler()), d.log) })
	}
	if d.listeners.registry != nil {
		parts.Go(func() error { return serve(ctx, d.listeners.registry, d.hold(d.reports), d.log) })
	}
	if d.listeners.metadata != nil {
		handler := metadata.NewHandler(metadata.Options{Machines: d.tenants(), Static: d.opts.Metadata.Static, Log: d.log, Registerer: d.metrics})
		parts.Go(func() error { return serve(ctx, d.listeners.metadata, d.hold(handler), d.log) })
	}
	if d.listeners.admin != nil {
		a := admin{
			metrics: d.metrics, checks: d.checks(), summary: d.summary, explain: d.explain,
			loopback: isLoopback(d.listeners.admin.Addr()), log: d.log,
		}
		parts.Go(func() error { return serve(ctx, d.listeners.admin, a.handler(), d.log) })
	}
}

// holdLimit is how long a machine's request waits for this process to be ready:
// longer than the lease of a leader that died.
const holdLimit = 20 * time.Second

// hold lets machines wait while this process takes over from another or reads its
// records and leases back: without those any server would be served at any address.
// Firmware that is refused does not ask again, but boots something else.
func (d *daemon) hold(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-d.leased: // which is after ready
			next.ServeHTTP(w, r)
			return
		default:
		}
		timer := time.NewTimer(holdLimit)
		defer timer.Stop()
		select {
		case <-d.leased:
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
		case <-timer.C:
			w.Header().Set("Retry-After", "5")
			http.Error(w, "Ingot is not ready yet: see /readyz of its admin listener", http.StatusServiceUnavailable)
		}
	})
}

// checks say whether each part is ready.
func (d *daemon) checks() []check {
	return []check{
		{"store", func(context.Context) error { return d.registry.Healthy() }},
		{"leadership", func(context.Context) error {
			switch state, why := d.registry.LeadState(); state {
			case registry.Leads:
				return nil
			case registry.Follows:
				return fmt.Errorf("this one stands by: %w", why)
			case registry.StoreSilent:
				return fmt.Errorf("nobody knows who leads, for the store does not answer: %w", why)
			default:
				return why
			}
		}},
		{"status", d.statusReady},
		{"records", func(context.Context) error {
			select {
			case <-d.ready:
				return nil
			default:
				if s := d.present(); cmp.Or(s.ObserveOnly, s.HealOnly) != "" {
					return errors.New(cmp.Or(s.ObserveOnly, s.HealOnly))
				}
				return errors.New("records were not read yet: waiting for the lead, or for the status branch")
			}
		}},
		{"git", func(context.Context) error {
			if s := d.source.State(); s.Reason == model.SourceFetchFailed {
				return errors.New(s.Message)
			}
			if d.source.Desired() == nil {
				return errors.New("no revision was read yet")
			}
			return nil
		}},
		{"networks", d.networksReady},
	}
}

// statusReady says since when the status branch cannot be pushed, if so.
func (d *daemon) statusReady(context.Context) error {
	since, err := d.publisher.Failing()
	if err == nil {
		return nil
	}
	return fmt.Errorf("the status branch cannot be pushed since %s, so nothing disruptive begins: %w", since.UTC().Format(time.RFC3339), err)
}

// networksReady says which network cannot be served, if any.
func (d *daemon) networksReady(context.Context) error {
	if d.dhcp == nil {
		return nil
	}
	return d.dhcp.Healthy()
}

// summary is the fleet at a glance.
func (d *daemon) summary() report.Summary {
	r := d.reporter.Report()
	if r == nil {
		state := d.source.State()
		return report.Summary{Source: &state}
	}
	return report.SummaryOf(r.Report)
}

// explain explains one object.
func (d *daemon) explain(kind, name string) (report.Explanation, error) {
	r := d.reporter.Report()
	if r == nil {
		return report.Explanation{}, fmt.Errorf("%s %s is %w yet: no revision was read; see /readyz", kind, name, report.ErrUnknownObject)
	}
	e, err := report.Explain(r.Report, kind, name)
	e.AddUses(func(server model.ServerName) []string { return report.TicketUses(r.Input.Observed.Progress[server]) })
	return e, err
}

// close gives back what assemble took. Sessions on BMCs are few: they are deleted.
func (d *daemon) close() {
	if d.listeners != nil {
		d.listeners.close()
	}
	if d.links != nil {
		d.links.Close()
	}
	if d.dhcp != nil {
		d.dhcp.Close()
	}
	if d.tftp != nil {
		d.tftp.Close()
	}
	if d.pool != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := d.pool.Close(ctx); err != nil {
			d.log.Warn("sessions on BMCs not closed", "err", err)
		}
	}
	if d.status != nil {
		d.status.Close()
	}
	if d.name != nil {
		_ = d.name.Close()
	}
	if d.cache != nil {
		d.cache.Close()
	}
	if d.images != nil {
		d.images.Close()
	}
	if d.registry != nil {
		if err := d.registry.Close(); err != nil {
			d.log.Warn("store not closed", "err", err)
		}
	}
}

func addrOf(l net.Listener) net.Addr {
	if l == nil {
		return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}
	}
	return l.Addr()
}
