package reconcile

import (
	"context"
	"errors"
	"fmt"
	"ingot/model"
	"ingot/reconcile/merge"
	"ingot/reconcile/plan"
	"ingot/reconcile/report"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// world is a rack in memory: machines whose power changes some time after it was
// asked, that boot what their ticket offers, report, wipe and run.
type world struct {
	t         *testing.T
	mu        sync.Mutex
	desired   *model.Desired
	changed   chan struct{}
	observed  *model.Observed
	stored    chan struct{}
	machines  map[string]*machine // by system URI
	saves     int
	seq       uint64
	may       State                   // what the process may do
	hidden    map[model.Identity]bool // gone in a revision of which something cannot be read
	delay     time.Duration           // of power changes, and of boots
	slow      time.Duration           // of setting the boot override
	setting   int                     // overrides being set now
	most      int                     // that were set at the same time
	limit     int                     // of concurrent power-ons, 0 = the default
	mirror    bool                    // bindings wait for the status branch
	protected bool                    // the status branch takes nothing at first
	publisher *Publisher              // nil = none
	deposed   atomic.Bool             // another leads
	cut       int                     // how many of the next saves of server records fail
	hangs     bool                    // BMCs do not answer Discover until it is given up
	asks      int                     // Discovers begun
	arms      int                     // Arms begun
	broken    bool                    // no image can be booted
	tickets   []*model.Ticket         // that were saved, each as it was last
	loaders   []string                // architectures of UEFI boot loaders; nil = not known
	loop      *Loop
	stop      func()

	devices  map[string]*device // BMCs that are found by DHCP, by their IP address
	database *model.MACPrefixes
	networks []string             // that Ingot gives leases on; nil = all
	pools    []model.PoolFacts    // of DHCP
	leases   map[string]time.Time // when each was renewed last, by MAC address
	tenants  model.Tenants
}

// device is a BMC on the network.
type device struct {
	mac, uuid, password string
	uri                 string // of its machine
	refused             []time.Time
	last                string // the password that was tried last
}

// authError is what a BMC answers to a wrong password.
type authError struct{}

func (authError) Error() string { return "the BMC refuses the credentials" }

func (authError) Reason() string { return model.ReasonAuthenticationFailed }

type machine struct {
	name     model.ServerName
	bmc      model.BMCName
	uuid     string
	board    model.Board // of one that shows no UUID
	power    model.Power
	override bool // from the network
	// diskOnce is an override to boot from disk, noDisk why its BMC has none.
	diskOnce bool
	noDisk   error
	// netFirst is set for firmware that asks the network first without an override;
	// asked counts how often it did, for whatever reason.
	netFirst bool
	asked    int
	sets     int  // boot overrides asked for
	dead     bool // its BMC does not answer
	hidden   int  // how many of the next readings of its BMC leave it out
	unread   bool // its BMC lists it and shows nothing of it
	liar     bool // its BMC accepts the override and forgets it
	stubborn bool // its BMC keeps the override until it is cleared
	wipeFail bool
	silent   bool // what it boots to be discovered does not report
	// wipeHangs is set while what wipes it comes to no result.
	wipeHangs bool
	disks     []model.ProbeDisk // that its probe sees, in discovery and in a wipe
	noNotice  bool              // what it boots does not say that it is up
	nics      []string          // MAC addresses that its BMC shows
	cards     []string          // those that its probe finds
	sights    []string          // those that ask DHCP when it boots from the network
	refused   string            // the address of somebody who was refused what it asked for, then
	readings  int               // of all its parts
	lies      int               // how many of the next power readings say the opposite
	noParts   bool              // its BMC does not show its inventory
	refuses   map[model.ResetKind]bool
	rude      bool // it knows no graceful shutdown
	deaf      bool // what it runs does not hear that it is to shut down
	bmcReset  time.Time
	storages  []model.Storage
	forced    int
	offs      int    // requests to go off, of either kind
	disk      string // digest of what is installed, "" = empty
	ons       int
	installs  int
	boots     []string
}

var errDead = refusal("connection refused")

// refusal is an error after which it is certain that nothing was done.
type refusal string

func (e refusal) Error() string { return string(e) }

func (e refusal) NotCarriedOut() bool { return true }

func newWorld(t *testing.T, servers int) *world {
	w := &world{
		t: t, desired: model.NewDesired(), changed: make(chan struct{}, 1), observed: model.NewObserved(),
		hidden: make(map[model.Identity]bool),
		stored: make(chan struct{}, 1), machines: make(map[string]*machine), delay: 2 * time.Second,
	}
	w.desired.Revision = "main@sha1:1"
	for i := range servers {
		bmc := fmt.Sprintf("bmc%02d", i)
		w.desired.Add(&model.BMC{
			Meta: model.Meta{Name: bmc, Labels: map[string]string{"rack": string(rune('a' + i%2))}},
			Spec: model.BMCSpec{
				Access: &model.InlineEndpoint{IP: "192.0.2.1"}, BMCSecretRef: model.LocalRef{Name: "s"},
				Protocol: model.Protocol{Name: "Redfish", Port: int32(1000 + i)},
			},
		})
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

func (w *world) policy() plan.Policy {
	p := plan.DefaultPolicy()
	p.DiscoveryImage = "registry/probe:1"
	if w.limit > 0 {
		p.MaxConcurrentPowerOns = w.limit
	}
	p.MirrorFirst, p.LoaderArchitectures = w.mirror, w.loaders
	p.MACPrefixes, p.LeaseNetworks = w.database, w.networks
	p.Tenants = w.tenants
	return p
}

// leased is when one of these MAC addresses last renewed its lease.
func (w *world) leased(macs []string) (last time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, mac := range macs {
		if at := w.leases[mac]; at.After(last) {
			last = at
		}
	}
	return last
}

// start runs a loop on the world, as a daemon's start does.
func (w *world) start() {
	ctx, cancel := context.WithCancel(w.t.Context())
	w.loop = NewLoop(Options{
		Desired: w.Desired, DesiredChanged: w.changed, Store: w, BMCs: w, Boots: w, Policy: w.policy(),
		Leading: func() bool { return !w.deposed.Load() }, Pools: func() []model.PoolFacts { return w.pools },
		State: func() State { return w.may }, Leased: w.leased,
	})
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

func (w *world) Desired() *model.Desired {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.desired
}

// commit makes a new revision.
func (w *world) commit(change func(d *model.Desired)) {
	w.mu.Lock()
	d := w.desired.Clone()
	d.Removed = maps.Clone(d.Removed)
	change(d)
	d.Revision += "1"
	w.removals(d)
	w.desired = d
	w.mu.Unlock()
	signal(w.changed)
}

// tokens are what people approve the guard's lists by.
func (w *world) tokens() []string {
	var all []string
	for _, h := range w.Observed().Fleet.Holds {
		all = append(all, h.Token)
	}
	return all
}

// removals notes in a revision what it took away, as the source does: what cannot be
// read is not removed.
func (w *world) removals(d *model.Desired) {
	if d.Removed == nil {
		d.Removed = make(map[model.Identity][]model.Removal)
	}
	gone := func(id model.Identity, before, after bool) {
		switch {
		case after:
			delete(d.Removed, id)
		case before && d.Quarantined[id]:
			w.hidden[id] = true
		case before:
			d.Removed[id] = []model.Removal{{Revision: d.Revision, At: time.Now()}}
		}
	}
	for id := range w.hidden {
		if !d.Quarantined[id] {
			delete(w.hidden, id)
			gone(id, true, false)
		}
	}
	for name := range w.desired.Claims {
		gone(name.Identity(), true, d.Claims[name] != nil)
	}
	for name := range d.Claims {
		gone(name.Identity(), false, true)
	}
	for name := range w.desired.Servers {
		gone(name.Identity(), true, d.Servers[name] != nil)
	}
	for name := range d.Servers {
		gone(name.Identity(), false, true)
	}
	for name := range w.desired.Maintenances {
		gone(model.MaintenanceIdentity(name), true, d.Maintenances[name] != nil)
	}
	for name := range d.Maintenances {
		gone(model.MaintenanceIdentity(name), false, true)
	}
	for id := range d.Renamed {
		delete(d.Removed, id.Identity())
	}
}

func (w *world) Observed() *model.Observed {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.snapshot()
}

func (w *world) snapshot() *model.Observed {
	o := *w.observed
	o.Servers, o.BMCs, o.Claims = maps.Clone(o.Servers), maps.Clone(o.BMCs), maps.Clone(o.Claims)
	o.BMCFacts, o.ServerFacts = maps.Clone(o.BMCFacts), maps.Clone(o.ServerFacts)
	o.Endpoints, o.EndpointFacts = maps.Clone(o.Endpoints), maps.Clone(o.EndpointFacts)
	o.Probes, o.BootStates, o.Wipes, o.Progress = maps.Clone(o.Probes), maps.Clone(o.BootStates), maps.Clone(o.Wipes), maps.Clone(o.Progress)
	o.WipeProgress = maps.Clone(o.WipeProgress)
	return &o
}

// stamped is a server's record as the store keeps it.
func stamped(r *model.ServerRecord, v model.Version) *model.ServerRecord {
	c := *r
	c.Version = v
	if c.Intent != nil && c.Intent.At.IsZero() {
		i := *c.Intent
		i.At = v
		c.Intent = &i
	}
	return &c
}

func (w *world) Changed() <-chan struct{} { return w.stored }

func (w *world) Save(_ context.Context, c plan.Changes) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.saves++
	if w.cut > 0 && len(c.Servers) > 0 {
		w.cut--
		return errors.New("killed before the record was saved")
	}
	w.seq++
	v := model.Version{Fence: 1, Seq: w.seq}
	if c.Fleet != nil {
		w.observed.Fleet = *c.Fleet
		w.observed.Fleet.Version = v
	}
	for _, r := range c.Servers {
		r = stamped(r, v)
		w.letsBoot(w.observed.Servers[r.Name], r)
		w.observed.Servers[r.Name] = r
		if n := len(w.tickets); r.Ticket != nil && n > 0 && w.tickets[n-1].ID == r.Ticket.ID {
			w.tickets[n-1] = r.Ticket
		} else if r.Ticket != nil {
			w.tickets = append(w.tickets, r.Ticket)
		}
	}
	for _, r := range c.BMCs {
		w.observed.BMCs[r.Name] = r
	}
	for _, r := range c.Claims {
		w.observed.Claims[r.Name] = r
	}
	for _, n := range c.DropClaims {
		delete(w.observed.Claims, n)
	}
	for _, r := range c.Endpoints {
		w.observed.Endpoints[r.Name] = r
	}
	for _, n := range c.DropEndpoints {
		delete(w.observed.Endpoints, n)
	}
	for _, r := range c.BMCFacts {
		w.observed.BMCFacts[r.Name] = r
	}
	for _, r := range c.ServerFacts {
		w.observed.ServerFacts[r.Name] = r
	}
	return nil
}

// letsBoot looks that a record which lets a machine boot with a ticket, where the one
// before did not, is of a machine that is off: one that runs would get what is not
// its own. One that was given up is left as it is, for a person to boot it.
func (w *world) letsBoot(before, after *model.ServerRecord) {
	t, m := after.Ticket, w.machines[after.SystemURI]
	if m == nil || !t.Open() || !t.MayBoot(w.observed.Progress[after.Name]) || after.Attempts >= w.policy().BootAttempts {
		return
	}
	if before != nil && before.Ticket != nil && before.Ticket.ID == t.ID && before.Ticket.MayBoot(nil) {
		return
	}
	if m.power != model.PowerOff {
		w.t.Errorf("%s may boot with ticket %s of %s while it is %s", after.Name, t.ID, t.Purpose, m.power)
	}
}

func (w *world) Arm(_ context.Context, b plan.Boot) (model.Ticket, error) {
	t := b.Ticket
	w.mu.Lock()
	defer w.mu.Unlock()
	w.arms++
	switch {
	case b.Image == "broken" || w.broken:
		return t, &armError{"ValidationFailed", "image " + b.Image + " has no kernel layer"}
	case b.Secret["ignition"].Reveal() == "bad":
		return t, &armError{model.ReasonSourceInvalid, "ignition: line 3, column 5: unknown key"}
	}
	t.Image = model.PinnedImage{
		Ref: b.Image, Repository: "registry/os", Digest: "sha256:" + b.Image, Architecture: b.Architecture,
		Kernel: &model.Layer{Digest: "sha256:1", Size: 1 << 20}, Initrd: &model.Layer{Digest: "sha256:2", Size: 3 << 19},
	}
	return t, nil
}

// armError is why nothing can be armed, as the image service and the Ignition
// compiler have it.
type armError struct{ reason, message string }

func (e *armError) Error() string { return e.message }

func (e *armError) Reason() string { return e.reason }

func (w *world) Discover(ctx context.Context, t model.BMCTarget) (*model.BMCFacts, error) {
	w.mu.Lock()
	w.asks++
	if w.hangs {
		w.mu.Unlock()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	w.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	f := &model.BMCFacts{Name: t.Name, Fingerprint: "f"}
	dev, err := w.logIn(t)
	if err != nil {
		return nil, err
	}
	if dev != nil {
		f.UUID = dev.uuid
	}
	for uri, m := range w.machines {
		if dev == nil && m.bmc != t.Name || dev != nil && dev.uri != uri {
			continue
		}
		if m.dead {
			return nil, errDead
		}
		f.LastResetTime = m.bmcReset
		switch {
		case m.hidden > 0:
			m.hidden--
		case m.unread:
			f.Systems = append(f.Systems, model.SystemFact{URI: uri, Unread: true})
		default:
			f.Systems = append(f.Systems, model.SystemFact{URI: uri, UUID: m.uuid, Board: m.board, Power: m.power})
		}
	}
	slices.SortFunc(f.Systems, func(a, b model.SystemFact) int { return strings.Compare(a.URI, b.URI) })
	return f, nil
}

// logIn finds the device at a BMC's address, nil in a world without any.
func (w *world) logIn(t model.BMCTarget) (*device, error) {
	if w.devices == nil {
		return nil, nil
	}
	host, _, _ := net.SplitHostPort(t.Address)
	dev := w.devices[host]
	switch {
	case dev == nil || w.machines[dev.uri] != nil && w.machines[dev.uri].dead:
		return nil, errDead
	case t.Password.Reveal() != dev.password:
		dev.refused, dev.last = append(dev.refused, time.Now()), t.Password.Reveal()
		return nil, authError{}
	}
	return dev, nil
}

// at finds the machine of a target, or that its BMC is dead.
func (w *world) at(t model.SystemTarget) (*machine, error) {
	m := w.machines[t.URI]
	dev, err := w.logIn(t.BMC)
	if err != nil {
		return nil, err
	}
	if dev != nil && dev.uri != t.URI {
		w.t.Errorf("%s was asked about %s, which is behind another BMC", dev.mac, t.URI)
		return nil, errDead
	}
	if m.dead {
		return nil, errDead
	}
	if t.UUID != m.uuid || t.UUID == "" && t.Board != m.board {
		return nil, otherMachine{}
	}
	return m, nil
}

// unsupported is what BMCs says of what a machine does not have.
type unsupported struct{}

func (unsupported) Error() string { return "the machine knows no graceful shutdown" }

func (unsupported) Reason() string { return "Unsupported" }

func (unsupported) NotCarriedOut() bool { return true }

// otherMachine is what BMCs says of a machine that is not the one that is meant.
type otherMachine struct{}

func (otherMachine) Error() string { return "the BMC shows another machine" }

func (otherMachine) Reason() string { return model.ReasonIdentityMismatch }

func (otherMachine) NotCarriedOut() bool { return true }

func (w *world) Inventory(_ context.Context, t model.SystemTarget) (*model.ServerFacts, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m, err := w.at(t)
	if err != nil {
		return nil, err
	}
	if m.noParts {
		return nil, errDead
	}
	m.readings++
	inv := &model.Inventory{UUID: m.uuid, Manufacturer: "Sim", Storages: m.storages}
	for _, mac := range m.nics {
		inv.NetworkInterfaces = append(inv.NetworkInterfaces, model.NetworkInterface{MACAddress: mac})
	}
	return &model.ServerFacts{Power: m.power, Inventory: inv}, nil
}

func (w *world) Power(_ context.Context, t model.SystemTarget) (model.MachineState, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m, err := w.at(t)
	if err != nil {
		return model.MachineState{}, err
	}
	s := model.MachineState{Power: m.power}
	if m.lies > 0 {
		m.lies--
		s.Power = model.PowerOff
		if m.power == model.PowerOff {
			s.Power = model.PowerOn
		}
	}
	return s, nil
}

func (w *world) BootOnce(_ context.Context, t model.SystemTarget, method model.BootMethod) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.setting++
	w.most = max(w.most, w.setting)
	w.mu.Unlock()
	time.Sleep(w.slow)
	w.mu.Lock()
	w.setting--
	m, err := w.at(t)
	if err != nil {
		return "", err
	}
	m.sets++
	if method == model.BootDisk {
		if m.noDisk != nil {
			return "", m.noDisk
		}
		m.override, m.diskOnce = false, true
		return "default", nil
	}
	if rec := w.observed.Servers[m.name]; rec == nil || !rec.Ticket.MayBoot(w.observed.Progress[m.name]) {
		w.t.Errorf("%s is to boot from the network while the record says that it must not: %+v", m.name, rec)
	}
	m.override, m.diskOnce = !m.liar, false
	if m.stubborn {
		return plan.VariantContinuous, nil
	}
	return "default", nil
}

func (w *world) ClearBootOverride(_ context.Context, t model.SystemTarget) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	m, err := w.at(t)
	if err == nil {
		m.override = false
	}
	return err
}

func (w *world) Reset(_ context.Context, t model.SystemTarget, r model.ResetKind, from model.Power) (model.ResetResult, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m, err := w.at(t)
	if err != nil {
		return model.ResetResult{}, err
	}
	if rec := w.observed.Servers[m.name]; rec == nil || rec.Asked == nil || rec.Asked.Reset != r || !rec.Asked.Unsure {
		w.t.Errorf("%s is asked for %s, and that is not on record: %+v", m.name, r, rec)
	}
	done := model.ResetResult{Before: m.power, Did: r}
	switch {
	case from != "" && m.power != from:
		return done, refusal("it is " + string(m.power))
	case m.rude && r == model.ResetGracefulOff:
		return done, unsupported{}
	case m.refuses[r]:
		return done, refusal("the machine does not allow " + string(r))
	case m.power == model.PowerOff && (r == model.ResetForceRestart || r == model.ResetPowerCycle):
		done.Did = model.ResetOn
	case r == model.ResetOn && m.power == model.PowerOn:
		return model.ResetResult{Before: m.power}, nil
	}
	if r == model.ResetForceOff || r == model.ResetGracefulOff {
		m.offs++
	}
	if r == model.ResetForceOff {
		m.forced++
	}
	delay := w.delay
	switch r {
	case model.ResetOn:
		if m.power == model.PowerOff {
			m.ons++
			time.AfterFunc(delay, func() { w.boot(m) })
		}
	case model.ResetGracefulOff, model.ResetForceOff:
		if m.deaf && r == model.ResetGracefulOff {
			break
		}
		time.AfterFunc(delay, func() { w.set(m, model.PowerOff) })
	case model.ResetForceRestart, model.ResetGracefulRestart, model.ResetPowerCycle:
		time.AfterFunc(delay, func() { w.boot(m) })
	}
	return done, nil
}

func (w *world) set(m *machine, p model.Power) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m.power = p
}

// boot is a machine's firmware and what it boots.
func (w *world) boot(m *machine) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m.power = model.PowerOn
	rec := w.observed.Servers[m.name]
	network := m.override || m.netFirst && !m.diskOnce
	m.override, m.diskOnce = m.override && m.stubborn, false
	if network {
		m.asked++
	}
	if !network || rec == nil || !rec.Ticket.MayBoot(w.observed.Progress[m.name]) {
		m.boots = append(m.boots, "disk "+m.disk)
		return
	}
	time.AfterFunc(w.delay, func() { w.booted(m, rec.Ticket) })
}

func (w *world) booted(m *machine, t *model.Ticket) {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer signal(w.stored)
	if m.power != model.PowerOn {
		return
	}
	now := time.Now()
	m.boots = append(m.boots, "network "+t.Image.Ref)
	progress := model.Progress{Ticket: t.ID, ScriptAt: now, IgnitionAt: now}
	for _, mac := range m.sights {
		progress, _ = progress.Sighted(mac, now)
	}
	if m.refused != "" {
		progress, _ = progress.Used(model.ThingScript, m.refused, model.RefusedUnknown, now)
	}
	w.observed.Progress[m.name] = &progress
	switch t.Purpose {
	case model.PurposeDiscovery:
		if m.silent {
			return
		}
		w.observed.Probes[m.name] = &model.ProbeReport{Ticket: t.ID, ReceivedAt: now, Data: model.ProbeData{
			NetworkInterfaces: probed(m.cards), Storage: m.disks,
		}}
	case model.PurposeCleanup:
		if m.wipeHangs {
			return
		}
		wiped := make([]model.DiskWipe, len(m.disks))
		for i, d := range m.disks {
			wiped[i] = model.DiskWipe{Name: d.Name, Serial: d.Serial, SizeBytes: d.SizeBytes, Result: model.WipeDone}
			if m.wipeFail && i == 0 {
				wiped[i].Result, wiped[i].Error = model.WipeFailed, "I/O error"
			}
		}
		if !m.wipeFail {
			m.disk = ""
		}
		w.observed.Wipes[m.name] = &model.WipeReport{Ticket: t.ID, ReceivedAt: now, Disks: wiped}
	case model.PurposeClaim:
		m.disk, m.installs = t.Digest, m.installs+1
		if !m.noNotice {
			w.observed.BootStates[m.name] = &model.BootState{Ticket: t.ID, ReceivedAt: now}
		}
	}
}

// probed are the network interfaces that a probe finds.
func probed(macs []string) []model.ProbeNetworkInterface {
	all := []model.ProbeNetworkInterface{{Name: "lo0"}}
	for _, mac := range macs {
		all = append(all, model.ProbeNetworkInterface{Name: "eth", MACAddress: mac})
	}
	return all
}

func claim(name string, change ...func(*model.ServerClaim)) *model.ServerClaim {
	c := &model.ServerClaim{
		Meta: model.Meta{Name: name, Namespace: "default"},
		Spec: model.ServerClaimSpec{Power: model.PowerOn, Image: "os:1"},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

// state sums a server up: state, power, claim.
func (w *world) state(i int) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.machines[fmt.Sprintf("/redfish/v1/Systems/%d", i)]
	rec := w.observed.Servers[m.name]
	if rec == nil {
		return "unknown"
	}
	s := string(rec.State) + " " + string(m.power)
	if rec.Claim != "" {
		s += " " + string(rec.Claim)
	}
	return s
}

// why is the reason for which the server of a machine is not where it should be.
func (w *world) why(i int) string {
	for _, s := range plan.Plan(w.loop.Input(time.Now())).Servers {
		if s.Name == w.machine(i).name {
			return s.Why.Reason
		}
	}
	return "unknown"
}

func (w *world) machine(i int) *machine {
	return w.machines[fmt.Sprintf("/redfish/v1/Systems/%d", i)]
}

// seen is a machine as it is now.
func (w *world) seen(i int) machine {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := *w.machine(i)
	m.boots = slices.Clone(m.boots)
	return m
}

// change changes a machine.
func (w *world) change(i int, how func(m *machine)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	how(w.machine(i))
}

// expect lets virtual time pass and compares.
func (w *world) expect(after time.Duration, server int, want string) {
	w.t.Helper()
	pass(after)
	if got := w.state(server); got != want {
		for _, s := range plan.Plan(w.loop.Input(time.Now())).Servers {
			w.t.Logf("%s %s: %+v", s.Name, s.Record.State, s.Why)
		}
		w.t.Fatalf("server %d is %q after %v, want %q", server, got, after, want)
	}
}

// pass lets virtual time pass, and everything that it brings come to rest.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// restored are the records that a lost store is filled with from the status branch.
func restored(files map[string][]byte) (model.Records, []error) {
	b, problems := report.ReadBranch(files)
	none := model.NewObserved().Records
	r := merge.Records(merge.Input{Store: &none, Branch: &b, Now: time.Now(), Seed: "seed"})
	return r.Records, problems
}
