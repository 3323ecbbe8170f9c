package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/internal/plantest"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/world"
	"ingot/reconcile/report"
)

// loopWorld is a rack in memory: machines whose power changes some time after it was
// asked, that boot what their ticket offers, report, wipe and run.
type loopWorld struct {
	t         *testing.T
	mu        sync.Mutex
	machines  map[string]*machine // by system URI
	delay     time.Duration       // of power changes, and of boots
	may       State               // what the process may do
	deposed   atomic.Bool         // another leads
	holds     atomic.Uint64       // seed of the held proposals; 0 = none is held
	protected bool                // the status branch takes nothing at first
	publisher *Publisher          // nil = none
	unlimited bool                // it publishes as often as there is something
	logged    slog.Handler        // takes what the publisher logs; nil = nobody does
	counts    *Metrics            // of the loop; nil = none
	arms      int                 // Arms begun
	forgotten []model.BMCName     // BMCs that were logged out of
	broken    bool                // no image can be booted
	loop      *Loop
	stop      func()
	source
	memory
	simulatedBMCs
	configured
	diskImages
}

type configured struct {
	limit    int      // of concurrent power-ons, 0 = the default
	mirror   bool     // bindings wait for the status branch
	loaders  []string // architectures of UEFI boot loaders; nil = not known
	database *model.MACPrefixes
	networks []string                   // that Ingot gives leases on; nil = all
	pools    []model.PoolFacts          // of DHCP
	address  atomic.Pointer[netip.Addr] // that DHCP leases to every machine
	tenants  model.Tenants
	check    func(context.Context, proposal.Boot) error // of boots; nil = none is checked
}

func newLoopWorld(t *testing.T, servers int) *loopWorld {
	w := &loopWorld{
		t: t, machines: make(map[string]*machine), delay: 2 * time.Second,
		source:     source{desired: model.NewDesired(), changed: make(chan struct{}, 1), hidden: make(map[model.Identity]bool)},
		memory:     memory{observed: model.NewObserved(), stored: make(chan struct{}, 1)},
		diskImages: diskImages{installStep: 5 * time.Second},
	}
	w.desired.Revision = "main@sha1:1"
	for i := range servers {
		w.desired.Add(worldBMC(i))
		bmc := worldBMC(i).Name
		uri := fmt.Sprintf("/redfish/v1/Systems/%d", i)
		w.machines[uri] = &machine{
			name: model.ServerName(bmc + "-system-0"), bmc: model.BMCName(bmc),
			uuid: fmt.Sprintf("00000000-0000-4000-8000-%012d", i+1), power: model.PowerOff,
			disks: []model.ProbeDisk{{Name: "sda", Serial: "S1", Model: "M", SizeBytes: 1 << 40}},
		}
	}
	w.desired.Add(&model.BMCSecret{Meta: model.Meta{Name: "s"}, Values: map[string]model.Sensitive{
		"username": model.NewSensitive("u"), "password": model.NewSensitive("p"),
	}})
	return w
}

// worldBMC is the BMC of machine i in Git.
func worldBMC(i int) *model.BMC {
	return &model.BMC{
		Meta: model.Meta{Name: fmt.Sprintf("bmc%02d", i), Labels: map[string]string{"rack": string(rune('a' + i%2))}},
		Spec: model.BMCSpec{
			Access: &model.InlineEndpoint{IP: "192.0.2.1"}, BMCSecretRef: model.LocalRef{Name: "s"},
			Protocol: model.Protocol{Name: "Redfish", Port: int32(1000 + i)},
		},
	}
}

func (w *loopWorld) policy() policy.Options {
	p := policy.Default()
	p.DiscoveryImage = "registry/probe:1"
	if w.limit > 0 {
		p.MaxConcurrentPowerOns = w.limit
	}
	p.ShowFirst, p.LoaderArchitectures = w.mirror, w.loaders
	p.MACPrefixes, p.LeaseNetworks = w.database, w.networks
	p.Tenants = w.tenants
	return p
}

// start runs a loop on the world, as a daemon's start does.
func (w *loopWorld) start() {
	ctx, cancel := context.WithCancel(w.t.Context())
	w.loop = NewLoop(Options{
		Desired: w.Desired, DesiredChanged: w.changed, Store: w, BMCs: w, Boots: w, Policy: w.policy(),
		Leading: func() bool { return !w.deposed.Load() }, Pools: func() []model.PoolFacts { return w.pools },
		State: func() State { return w.may }, Check: w.check, Leased: w.leased, Metrics: w.counts,
		Addresses: func([]string) []netip.Addr {
			if a := w.address.Load(); a != nil {
				return []netip.Addr{*a}
			}
			return nil
		},
	})
	w.loop.hold = func(p *proposal.Proposal) bool { return plantest.Hold(w.holds.Load(), p) }
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := w.loop.Run(ctx, 2*time.Minute); err != nil {
			w.t.Error(err)
		}
	}()
	w.stop = func() {
		cancel()
		<-done
	}
}

// restartWith has Ingot start anew, with the record of the first server changed.
func (w *loopWorld) restartWith(change func(rec *model.ServerRecord)) {
	w.stop()
	w.mu.Lock()
	rec := *w.observed.Servers["bmc00-system-0"]
	change(&rec)
	w.observed.Servers[rec.Name] = &rec
	w.mu.Unlock()
	w.start()
}

func (w *loopWorld) plan() *plan.Result { return plan.Plan(w.loop.Input(time.Now())) }

// files are what the status branch would say now.
func (w *loopWorld) files() map[string][]byte {
	in := w.loop.Input(time.Now())
	return rendered(w.t, reportBy(new(report.Projector), in))
}

// reportBy is the next report of a projector.
func reportBy(p *report.Projector, in *world.Input) *model.Report {
	r, _ := p.Report(in, plan.Plan(in), 1, model.Holder{})
	return r
}

// why is the reason for which the server of a machine is not where it should be.
func (w *loopWorld) why(i int) string {
	for _, s := range w.plan().Servers {
		if s.Name == w.machine(i).name {
			return s.Why.Reason
		}
	}
	return "unknown"
}

func live(t *testing.T, servers int, test func(t *testing.T, w *loopWorld)) {
	prepared(t, servers, func(*loopWorld) {}, test)
}

// prepared is live for a world that is changed before it starts.
func prepared(t *testing.T, servers int, change func(w *loopWorld), test func(t *testing.T, w *loopWorld)) {
	synctest.Test(t, func(t *testing.T) {
		w := newLoopWorld(t, servers)
		change(w)
		w.start()
		defer w.stop()
		test(t, w)
	})
}

// serve waits for the servers to be Available, and has them serve claims of these names.
func (w *loopWorld) serve(names ...string) {
	w.t.Helper()
	w.expect(2*time.Minute, len(w.machines)-1, "Available Off")
	w.commit(func(d *model.Desired) {
		for _, n := range names {
			d.Add(claim(n))
		}
	})
	for i, n := range names {
		w.expect(time.Minute, i, "Reserved On default/"+n)
	}
}

// bmcWhy says why a BMC is not usable.
func (w *loopWorld) bmcWhy(name string) proposal.Why {
	for _, b := range w.plan().BMCs {
		if string(b.Name) == name {
			return b.Why
		}
	}
	return proposal.Why{Reason: "unknown"}
}

// document returns a file of the status branch.
func (w *loopWorld) document(path string) string {
	return string(w.files()[path])
}

// Short names of the most used fixtures.
var (
	annotated   = fleettest.Annotated
	cardOf      = fleettest.CardOf
	claim       = fleettest.Claim
	conditionOf = fleettest.ConditionOf
	drive       = fleettest.Drive
	macs        = fleettest.MACs
	of          = fleettest.OfTenant
	rendered    = fleettest.Rendered
	sdbGone     = fleettest.SDBGone
	sdbMissing  = fleettest.SDBMissing
	serverFile  = fleettest.ServerFile
)
