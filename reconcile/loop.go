package reconcile

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"time"

	"ingot/model"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/bmcs"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/reading"
	"ingot/reconcile/plan/world"
	"ingot/reconcile/report"
)

// BMCs reaches the machines. What is read of another machine than the target says, or
// would be done to it, is an error with reason IdentityMismatch or IdentityUnknown.
type BMCs interface {
	Discover(ctx context.Context, t model.BMCTarget) (*model.BMCFacts, error)
	Inventory(ctx context.Context, t model.SystemTarget) (*model.ServerFacts, error)
	Power(ctx context.Context, t model.SystemTarget) (model.MachineState, error)
	// Reset asks for a power change of a machine in power state from, "" = whichever.
	Reset(ctx context.Context, t model.SystemTarget, reset model.ResetKind, from model.Power) (model.ResetResult, error)
	// BootOnce returns the variant of the override that the BMC kept;
	// plan.VariantContinuous is one that does not end by itself.
	BootOnce(ctx context.Context, t model.SystemTarget, m model.BootMethod) (variant string, err error)
	ClearBootOverride(ctx context.Context, t model.SystemTarget) error
	// SetIndicator returns what the indicator shows once it is as it was asked for.
	SetIndicator(ctx context.Context, t model.SystemTarget, led string) (model.Indicator, error)
	// SetBootOrder returns the order once it is as want says, or will be with the next start,
	// of a machine that is Off.
	SetBootOrder(ctx context.Context, t model.SystemTarget, want []model.BootOrder) (model.ShownBootOrder, error)
	// Forget logs out of a BMC that is gone. It does not wait for that.
	Forget(ctx context.Context, name model.BMCName)
}

// Boots prepares what servers boot.
type Boots interface {
	// Arm pins b's image and renders its Ignition. It returns b's ticket with the image
	// filled in, and what is to be served under it: both are saved by the caller. It may be
	// called again for the same ticket.
	Arm(ctx context.Context, b proposal.Boot) (model.Ticket, model.Sensitive, error)
}

// Store keeps what is known. Observed returns a snapshot that nobody changes.
type Store interface {
	Observed() *model.Observed
	Save(ctx context.Context, c proposal.Changes) error
	Changed() <-chan struct{}
}

// State is what the plan has to know of the process that it runs in.
type State struct {
	// ObserveOnly says why nothing may be done, HealOnly why nothing but to power on
	// from their disks what is bound; empty = all may be done.
	ObserveOnly, HealOnly string
	Serving               time.Time // when machines that boot could reach it; zero = not yet
	LongGap               bool      // as of plan.Input
}

// Options are the parts that a Loop is made of.
type Options struct {
	Desired func() *model.Desired // newest in force; nil before the first
	// DesiredChanged signals that Desired returns something new.
	DesiredChanged <-chan struct{}
	Store          Store
	BMCs           BMCs
	Boots          Boots
	// Check reports why a boot of a claim without a server is not possible: its image cannot be resolved, or its Secret
	// cannot be compiled. nil = boots are not checked before claims get servers.
	Check func(ctx context.Context, b proposal.Boot) error
	// Leading reports whether this process may act; nil = always. A replica that
	// has lost the lead, or cannot tell, begins nothing.
	Leading func() bool
	// State returns what the plan has to know of this process; nil = all may be done.
	State func() State
	// Pools returns those that DHCP gives addresses from; nil = there are none.
	Pools func() []model.PoolFacts
	// Addresses returns those that DHCP leases to MAC addresses; nil = no DHCP is served.
	Addresses func(macs []string) []netip.Addr
	// Leased returns when one of these MAC addresses was last given a lease, or had one
	// renewed, zero when it is not known; nil = nobody knows.
	Leased    func(macs []string) time.Time
	Policy    policy.Options
	DigestKey model.DigestKey  // makes the digests that records hold
	Clock     func() time.Time // nil = time.Now
	Log       *slog.Logger     // nil = silent
	Metrics   *Metrics         // nil = none
}

// moveLimit bounds one move whatever its BMC does: the inventory of a slow one
// takes many minutes.
const moveLimit = 15 * time.Minute

// Loop plans and has the moves carried out.
type Loop struct {
	Options
	wake    chan struct{}
	soon    chan struct{} // something waits for the next plan
	dirty   chan struct{} // something the status branch shows may have changed
	workers workers
	checks  *bootChecks
	moves   sync.WaitGroup

	urgent  chan struct{} // a decision waits for the status branch to show it
	started time.Time

	snapshots snapshots

	networks networks        // of the last plan
	bmcs     []model.BMCName // of the last plan, sorted

	mu       sync.Mutex
	round    uint64                                   // counts plans
	busy     map[model.ServerName]*model.ServerRecord // what each will be; nil = what is on record
	busyBMCs map[model.BMCName]bool
	queue    queue // of the last plan
	readings map[model.ServerName]reading.State
	snapshot map[model.ServerName]reading.State // copy of readings; nil when they changed
	bmcRead  map[model.BMCName]time.Time
	bmcsSeen map[model.BMCName]time.Time // copy of bmcRead; nil when it changed
	// sightings are the newest readings of BMCs that are not believed yet.
	sightings map[model.BMCName]sighting
	// shown is what this process has pushed to the status branch, nil = nothing yet,
	// unannounced since when it cannot push.
	shown       map[model.ServerName]model.Intent
	unannounced time.Time
	first       model.Revision // the first that was read from Git

	hold func(*proposal.Proposal) bool // of plan.Input
}

// NewLoop returns a Loop that has not planned yet.
func NewLoop(o Options) *Loop {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Loop{
		Options:  o,
		wake:     make(chan struct{}, 1),
		soon:     make(chan struct{}, 1),
		dirty:    make(chan struct{}, 1),
		urgent:   make(chan struct{}, 1),
		workers:  newWorkers(),
		checks:   newBootChecks(),
		busy:     make(map[model.ServerName]*model.ServerRecord),
		busyBMCs: make(map[model.BMCName]bool),
		readings: make(map[model.ServerName]reading.State),
		bmcRead:  make(map[model.BMCName]time.Time), sightings: make(map[model.BMCName]sighting),
		started: o.Clock(),
	}
}

// Run plans on every change and whenever something is due, and at least every
// resync, until ctx ends; then it waits for the moves under way. What shows the fleet
// plans for itself from then on, and so shows what came of the last moves.
func (l *Loop) Run(ctx context.Context, resync time.Duration) error {
	end := l.snapshots.begin()
	defer func() {
		l.moves.Wait()
		l.show(nil, time.Time{}, l.snapshots.take())
		end()
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	due := l.Clock()
	pace := newPace()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.wake:
		case <-l.soon:
		case <-l.Store.Changed():
			l.snapshots.note(l.Clock(), false)
		case <-l.DesiredChanged:
			l.snapshots.note(l.Clock(), false)
		case <-timer.C:
			l.Metrics.late(l.Clock().Sub(due))
		}
		l.gather()
		woken := l.Clock()
		next, err := l.Step(ctx, woken)
		if ctx.Err() != nil {
			return nil
		}
		took := l.Clock().Sub(woken)
		l.Metrics.planned(took, err)
		if err != nil {
			l.Log.Error("plan not carried out", "err", err)
			next = l.Clock().Add(time.Second)
		}
		wait := resync
		if !next.IsZero() {
			wait = min(wait, max(next.Sub(l.Clock()), 0))
		}
		due = l.Clock().Add(wait)
		timer.Reset(wait)
		if !l.rest(ctx, pace.pause(l.Clock(), took)) {
			return nil
		}
	}
}

// gather takes the signals that are there: the next plan sees what they are about, of which
// boot progress and reports are to be shown, too.
func (l *Loop) gather() {
	drain(l.wake)
	drain(l.soon)
	stored, desired := drain(l.Store.Changed()), drain(l.DesiredChanged)
	if stored || desired {
		l.snapshots.note(l.Clock(), false)
	}
}

// rest pauses between two plans and reports whether ctx still goes on.
func (l *Loop) rest(ctx context.Context, p pause) bool {
	if !sleep(ctx, p.least) {
		return false
	}
	most := time.NewTimer(p.most - p.least)
	defer most.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-most.C:
	case <-l.soon:
		l.Wake()
	case <-l.DesiredChanged:
		l.snapshots.note(l.Clock(), false)
		l.Wake()
	}
	return true
}

// sleep pauses for d and reports whether ctx still goes on.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// Wake has the loop plan soon. It never blocks.
func (l *Loop) Wake() { signal(l.wake) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Step plans once, as of now, starts the moves, and returns when to plan again.
// It is not to be called concurrently with itself.
func (l *Loop) Step(ctx context.Context, now time.Time) (time.Time, error) {
	l.mu.Lock()
	l.round++ // before it is seen which servers are busy, see release
	l.queue = queue{}
	l.mu.Unlock()
	was := l.snapshots.take()
	stored, in := l.inputs(now)
	if stored == nil {
		l.show(nil, time.Time{}, was)
		return time.Time{}, nil
	}
	if l.Leading != nil && !l.Leading() {
		l.show(nil, time.Time{}, was)
		return now.Add(time.Second), nil
	}
	if l.networks.change(in) && was.since.IsZero() {
		was.since = now
	}
	begun := l.Clock()
	r := plan.Plan(in)
	begun = l.Metrics.part("plan", begun, l.Clock())
	snapshot := &Snapshot{In: stored}
	if stored == in {
		snapshot.Result = r
	}
	l.show(snapshot, r.Next, was)
	l.Metrics.saw(stored.Observed)
	l.Metrics.underWay(len(in.Busy) + len(r.Moves) + len(r.Readings))
	l.Metrics.warned(len(r.Unmatched))
	l.workers.failing.Store(int64(failing(in)))
	l.forgetGone(ctx, r.BMCs)
	if err := l.decide(ctx, in, r); err != nil {
		return time.Time{}, fmt.Errorf("save decisions: %w", err)
	}
	begun = l.Metrics.part("save", begun, l.Clock())
	for name, m := range r.Readings {
		l.startBMC(ctx, in, name, m)
	}
	for name, m := range r.Moves {
		if len(m.Do) > 0 {
			l.start(ctx, in, name, m)
		}
	}
	l.mu.Lock()
	l.queue = queue{r.Queued, in}
	l.mu.Unlock()
	next := proposal.Earlier(r.Next, l.checkBoots(ctx, r.Wanted, now))
	l.Metrics.part("start", begun, l.Clock())
	return next, nil
}

// failing counts the servers and BMCs that failed when last tried.
func failing(in *world.Input) (n int) {
	for _, b := range in.Observed.BMCs {
		if b.Failures > 0 {
			n++
		}
	}
	for _, r := range in.Readings {
		if r.Failures > 0 {
			n++
		}
	}
	return n
}

// forgetGone logs out of the BMCs that are gone since the last plan: a BMC keeps few sessions,
// and whoever has it next needs them.
func (l *Loop) forgetGone(ctx context.Context, all []*bmcs.BMC) {
	if slices.EqualFunc(l.bmcs, all, func(name model.BMCName, b *bmcs.BMC) bool { return name == b.Name }) {
		return
	}
	was := l.bmcs
	l.bmcs = make([]model.BMCName, len(all))
	for i := range all {
		l.bmcs[i] = all[i].Name
	}
	for _, name := range was {
		if _, there := slices.BinarySearch(l.bmcs, name); !there {
			l.BMCs.Forget(ctx, name)
		}
	}
}

// decide saves, in one batch, the moves that do nothing but decide.
func (l *Loop) decide(ctx context.Context, in *world.Input, r *plan.Result) error {
	c := r.Decided
	urgent, claimed := false, false
	for name, m := range r.Moves {
		if len(m.Do) == 0 {
			c.Servers = append(c.Servers, m.Then)
			logTransition(l.Log, in.Observed.Servers[name], m.Then)
			urgent = urgent || tellsMore(in.Observed.Servers[name], m.Then)
			claimed = claimed || m.Then.Claim.Name != ""
		}
	}
	if c.Fleet == nil && len(c.Claims)+len(c.DropClaims)+len(c.Servers)+len(c.Endpoints)+len(c.DropEndpoints)+len(c.DropServers) == 0 {
		return nil
	}
	if err := l.Store.Save(ctx, c); err != nil {
		return err
	}
	l.forget(c.DropServers)
	l.changed()
	if urgent {
		l.hurry()
	}
	if claimed {
		signal(l.soon) // a tenant waits for the next step
	}
	return nil
}

// forget drops what was read of servers that are forgotten: one that comes back is a new one.
func (l *Loop) forget(servers []model.ServerName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range servers {
		delete(l.readings, name)
		l.snapshot = nil
		l.Log.Info("server is forgotten, for its BMC is gone from Git", "server", name)
	}
}

// tellsMore reports whether a record has something that the status branch is to show at
// once: a decision that waits for that, or that a server is installed.
func tellsMore(old, rec *model.ServerRecord) bool {
	return intentOf(rec) != intentOf(old) || rec.Install.Digest != "" && (old == nil || old.Install.Digest != rec.Install.Digest)
}

func intentOf(rec *model.ServerRecord) model.Intent {
	if rec == nil || rec.Intent == nil {
		return model.Intent{}
	}
	return *rec.Intent
}

// networks has the facts of DHCP that the status branch shows.
type networks struct {
	exhausted string // the pools without a free address
	addresses map[model.ServerName][]netip.Addr
}

// change takes the facts of a plan, and reports whether a pool became full or has free addresses again, or
// a server with a claim has other addresses.
func (n *networks) change(in *world.Input) bool {
	was := *n
	n.exhausted, n.addresses = fmt.Sprint(report.ExhaustedPools(in.Pools)), in.Addresses
	return n.exhausted != was.exhausted || !maps.EqualFunc(was.addresses, n.addresses, slices.Equal[[]netip.Addr])
}

// leasedTo returns the addresses that DHCP leases to the servers with a claim; lookup may be nil.
func leasedTo(servers map[model.ServerName]*model.ServerRecord, lookup func(macs []string) []netip.Addr) map[model.ServerName][]netip.Addr {
	if lookup == nil {
		return nil
	}
	all := make(map[model.ServerName][]netip.Addr)
	for name, rec := range servers {
		if rec.Claim.Name == "" {
			continue
		}
		macs := make([]string, len(rec.MACs))
		for i, m := range rec.MACs {
			macs[i] = m.Address
		}
		if leased := lookup(macs); len(leased) > 0 {
			all[name] = leased
		}
	}
	return all
}

// Input is what a plan of now looks at; nil while Git was never read.
func (l *Loop) Input(now time.Time) *world.Input {
	_, in := l.inputs(now)
	return in
}

// inputs are what is shown and what is planned for now: the records as the store has
// them, and as moves under way will leave them. Both are one where no such move changes a
// record, and nil while Git was never read.
func (l *Loop) inputs(now time.Time) (stored, in *world.Input) {
	stored, ahead := l.stored(now)
	if stored == nil {
		return nil, nil
	}
	maps.DeleteFunc(ahead, func(name model.ServerName, then *model.ServerRecord) bool {
		return then == nil || stored.Observed.Servers[name] == then
	})
	if len(ahead) == 0 {
		return stored, stored
	}
	// A move under way is planned with as if done, or its claim would be free.
	o, planned := *stored.Observed, *stored
	o.Servers = maps.Clone(o.Servers)
	maps.Copy(o.Servers, ahead)
	planned.Observed = &o
	return stored, &planned
}

// state is what the plan has to know of this process.
func (l *Loop) state() State {
	if l.State == nil {
		return State{}
	}
	return l.State()
}

// stored is what the store has, nil while Git was never read, with the servers that a
// move is under way for and what their records will be.
func (l *Loop) stored(now time.Time) (in *world.Input, busy map[model.ServerName]*model.ServerRecord) {
	d := l.Desired()
	if d == nil {
		return nil, nil
	}
	in = &world.Input{Desired: d, DigestKey: l.DigestKey, Policy: l.Policy, Now: now, Process: world.Process{Started: l.started}, Nonce: rand.Text(), Hold: l.hold}
	st := l.state()
	in.ObserveOnly, in.HealOnly, in.Serving, in.LongGap = st.ObserveOnly, st.HealOnly, st.Serving, st.LongGap
	if l.Pools != nil {
		in.Pools = l.Pools()
	}
	// Taken before the records are read: a server that is idle now stays idle, for
	// only Step starts moves, so its record cannot change under the plan.
	l.mu.Lock()
	busy = maps.Clone(l.busy)
	in.BusyBMCs = maps.Clone(l.busyBMCs)
	if l.snapshot == nil {
		l.snapshot = maps.Clone(l.readings)
	}
	in.Readings = l.snapshot
	if l.bmcsSeen == nil {
		l.bmcsSeen = maps.Clone(l.bmcRead)
	}
	in.BMCRead = l.bmcsSeen
	in.Unconfirmed = make(map[model.BMCName]time.Time, len(l.sightings))
	for name, s := range l.sightings {
		in.Unconfirmed[name] = s.at
	}
	in.Shown, in.Unannounced = l.shown, l.unannounced
	if l.first == "" && !d.KeptOverRestart {
		l.first = d.Revision
	}
	in.First = l.first
	l.mu.Unlock()

	if l.Check != nil {
		in.Checked = l.checks.results(now)
	}
	in.Observed = l.Store.Observed()
	in.Addresses = leasedTo(in.Observed.Servers, l.Addresses)
	in.Busy = make(map[model.ServerName]bool, len(busy))
	for name := range busy {
		in.Busy[name] = true
	}
	return in, busy
}

// isStored reports whether stored would return the same as it last did, but for the time.
func (l *Loop) isStored(in *world.Input) bool {
	l.mu.Lock()
	read := l.snapshot != nil && l.bmcsSeen != nil // nothing was read of a machine since
	announced := reflect.ValueOf(in.Shown).Pointer() == reflect.ValueOf(l.shown).Pointer() && in.Unannounced.Equal(l.unannounced)
	busy := len(in.Busy) == len(l.busy) && len(in.BusyBMCs) == len(l.busyBMCs)
	l.mu.Unlock()
	return read && announced && busy && (l.Check == nil || l.checks.isShown(in.Now)) && in.Observed == l.Store.Observed() && l.isCurrent(in)
}

// Announced notes which intents the status branch shows.
func (l *Loop) Announced(shown map[model.ServerName]model.Intent) {
	l.mu.Lock()
	news := l.shown == nil || !l.unannounced.IsZero() || !maps.Equal(shown, l.shown)
	if news {
		l.shown = shown
	}
	l.unannounced = time.Time{}
	l.mu.Unlock()
	if news {
		signal(l.soon) // what waited for the branch goes on
	}
}

// decided reports whether a result has a decision that waits for the status branch to show
// it.
func (l *Loop) decided(r *plan.Result) bool {
	l.mu.Lock()
	shown := l.shown
	l.mu.Unlock()
	return l.Policy.ShowFirst && slices.ContainsFunc(r.Servers, func(s *plan.Server) bool {
		return s.Record.Intent != nil && shown[s.Name] != *s.Record.Intent
	})
}

// Unannounced notes that the status branch cannot be pushed, and returns since when.
func (l *Loop) Unannounced(now time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unannounced.IsZero() {
		l.unannounced = now
		l.Wake() // what waits for it is shown
	}
	return l.unannounced
}

// logTransition logs a change of state, for people.
func logTransition(log *slog.Logger, old, rec *model.ServerRecord) {
	if old != nil && old.Life.State == rec.Life.State {
		return
	}
	from := model.ServerState("")
	if old != nil {
		from = old.Life.State
	}
	level, because := slog.LevelInfo, rec.Life.Message
	if rec.Life.State == model.StateInitial && from == model.StateDiscovery {
		level, because = slog.LevelWarn, rec.Life.LastError
	}
	log.Log(context.Background(), level, "server changes state", "server", rec.Name, "from", from, "to", rec.Life.State, "claim", rec.Claim.Name,
		"reason", rec.Life.Reason, "message", because)
}
