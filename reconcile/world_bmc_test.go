package reconcile

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

// simulatedBMCs are how all BMCs behave, and what was asked of them.
type simulatedBMCs struct {
	uuids   map[model.BMCName]string // that they show
	cert    string                   // of all of them, "" = "f"
	devices map[string]*device       // that are found by DHCP, by their IP address
	leases  map[string]time.Time     // when each was renewed last, by MAC address
	hangs   bool                     // they do not answer Discover until it is given up
	asks    int                      // Discovers begun
	slow    time.Duration            // of setting the boot override
	setting int                      // overrides being set now
	most    int                      // that were set at the same time
	// mostStarting is how many machines were powering on at the same time.
	mostStarting int
}

// device is a BMC on the network.
type device struct {
	mac, uuid, password string
	uri                 string // of its machine
	refused             []time.Time
	last                string // the password that was tried last
}

// leased is when one of these MAC addresses last renewed its lease.
func (w *loopWorld) leased(macs []string) (last time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, mac := range macs {
		if at := w.leases[mac]; at.After(last) {
			last = at
		}
	}
	return last
}

func (w *loopWorld) Discover(ctx context.Context, t model.BMCTarget) (*model.BMCFacts, error) {
	w.mu.Lock()
	w.asks++
	if w.hangs {
		w.mu.Unlock()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	silent := false
	for _, m := range w.machines {
		silent = silent || m.frozen && m.bmc == t.Name
	}
	w.mu.Unlock()
	if silent {
		time.Sleep(silence)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	f := &model.BMCFacts{Name: t.Name, Fingerprint: cmp.Or(w.cert, "f"), UUID: w.uuids[t.Name]}
	if t.Fingerprint != "" && t.Fingerprint != f.Fingerprint {
		return nil, &resetError{model.ReasonCertificateChanged, "another certificate"}
	}
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
		if m.dead || m.frozen {
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

// silence is how long a BMC that does not answer is waited for.
const silence = 15 * time.Second

// awaitSilent waits for the BMC of a machine in vain, if it is silent.
func (w *loopWorld) awaitSilent(uri string) {
	w.mu.Lock()
	m := w.machines[uri]
	silent := m != nil && m.frozen
	w.mu.Unlock()
	if silent {
		time.Sleep(silence)
	}
}

// logIn finds the device at a BMC's address, nil in a world without any.
func (w *loopWorld) logIn(t model.BMCTarget) (*device, error) {
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
func (w *loopWorld) at(t model.SystemTarget) (*machine, error) {
	m := w.machines[t.URI]
	dev, err := w.logIn(t.BMC)
	if err != nil {
		return nil, err
	}
	if dev != nil && dev.uri != t.URI {
		w.t.Errorf("%s was asked about %s, which is behind another BMC", dev.mac, t.URI)
		return nil, errDead
	}
	if m == nil || m.dead || m.frozen {
		return nil, errDead
	}
	if t.UUID != m.uuid || t.UUID == "" && t.Board != m.board {
		return nil, otherMachine{}
	}
	return m, nil
}

func (w *loopWorld) Inventory(_ context.Context, t model.SystemTarget) (*model.ServerFacts, error) {
	w.awaitSilent(t.URI)
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
	inv := &model.Inventory{UUID: m.uuid, Manufacturer: "Sim", Storages: m.storages, IndicatorLED: m.led.LED, IndicatorOnOff: m.led.OnOff, BootOrder: m.order}
	for _, mac := range m.nics {
		inv.NetworkInterfaces = append(inv.NetworkInterfaces, model.NetworkInterface{MACAddress: mac})
	}
	return &model.ServerFacts{Power: m.power, Inventory: inv}, nil
}

func (w *loopWorld) Power(_ context.Context, t model.SystemTarget) (model.MachineState, error) {
	w.awaitSilent(t.URI)
	w.mu.Lock()
	defer w.mu.Unlock()
	m, err := w.at(t)
	if err != nil {
		return model.MachineState{}, err
	}
	s := model.MachineState{Power: m.flapping()}
	if m.lies > 0 {
		m.lies--
		s.Power = opposite(m.power)
	}
	return s, nil
}

// flapping is the power state that its BMC gives while its readings flap, the true one else.
func (m *machine) flapping() model.Power {
	if m.flapped = !m.flapped && time.Since(m.requested) < m.flaps; m.flapped {
		return opposite(m.power)
	}
	return m.power
}

func opposite(p model.Power) model.Power {
	if p == model.PowerOff {
		return model.PowerOn
	}
	return model.PowerOff
}

func (w *loopWorld) BootOnce(_ context.Context, t model.SystemTarget, method model.BootMethod) (string, error) {
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
	if rec := w.observed.Servers[m.name]; rec == nil || !rec.Boot.Ticket.MayBoot(w.observed.Progress[m.name]) {
		w.t.Errorf("%s is to boot from the network while the record says that it must not: %+v", m.name, rec)
	}
	m.override, m.diskOnce = !m.liar, false
	if m.stubborn {
		return proposal.VariantContinuous, nil
	}
	return "default", nil
}

func (w *loopWorld) ClearBootOverride(_ context.Context, t model.SystemTarget) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	m, err := w.at(t)
	if err == nil {
		m.override = false
	}
	return err
}

func (w *loopWorld) SetIndicator(_ context.Context, t model.SystemTarget, led string) (model.Indicator, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m, err := w.at(t)
	if err != nil {
		return model.Indicator{}, err
	}
	m.ledAsks++
	if m.noLED != nil {
		return model.Indicator{}, m.noLED
	}
	m.led.LED = led
	if m.led.OnOff && led == model.IndicatorBlinking {
		m.led.LED = model.IndicatorLit
	}
	return m.led, nil
}

// Forget implements BMCs.
func (w *loopWorld) Forget(_ context.Context, name model.BMCName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forgotten = append(w.forgotten, name)
}

func (w *loopWorld) SetBootOrder(_ context.Context, t model.SystemTarget, want []model.BootOrder) (model.ShownBootOrder, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	none := model.ShownBootOrder{}
	m, err := w.at(t)
	if err != nil {
		return none, err
	}
	m.orderAsks++
	if rec := w.observed.Servers[m.name]; m.power != model.PowerOff || rec.Life.State != model.StateAvailable {
		w.t.Errorf("the boot order of %s is to be set while it is %s and %s", m.name, m.power, rec.Life.State)
	}
	if m.noOrder != nil {
		return none, m.noOrder
	}
	next, err := model.ArrangedBoot(want, m.order, nil)
	if err != nil {
		return none, err
	}
	if m.ordersLater {
		m.nextOrder = next
		return model.ShownBootOrder{Now: m.order, Next: next}, nil
	}
	m.order = next
	return model.ShownBootOrder{Now: next, Next: next}, nil
}

func (w *loopWorld) Reset(_ context.Context, t model.SystemTarget, r model.ResetKind, from model.Power) (model.ResetResult, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m, err := w.at(t)
	if err != nil {
		return model.ResetResult{}, err
	}
	if rec := w.observed.Servers[m.name]; rec == nil || rec.Power.Asked == nil || rec.Power.Asked.Reset != r || !rec.Power.Asked.Unsure {
		w.t.Errorf("%s is asked for %s, and that is not on record: %+v", m.name, r, rec)
	}
	before := m.flapping()
	done := model.ResetResult{Before: before, Did: r}
	switch {
	case from != "" && before != from:
		return done, refusal("it is " + string(before))
	case m.rude && r == model.ResetGracefulOff:
		return done, unsupported{}
	case m.refuses[r]:
		return done, refusal("the machine does not allow " + string(r))
	case m.power == model.PowerOff && (r == model.ResetForceRestart || r == model.ResetPowerCycle):
		done.Did = model.ResetOn
	case r == model.ResetOn && m.power == model.PowerOn:
		return model.ResetResult{Before: m.power}, nil
	}
	m.requested = time.Now()
	if m.power == model.PowerOn && m.disk != "" && r != model.ResetOn {
		m.disturbed++
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
			if m.mute || m.dark {
				break
			}
			m.starting = true
			w.noteStarting()
			time.AfterFunc(delay, func() { w.boot(m) })
		}
	case model.ResetGracefulOff, model.ResetForceOff:
		if m.stuck || m.deaf && r == model.ResetGracefulOff {
			break
		}
		time.AfterFunc(delay, func() { w.set(m, model.PowerOff) })
	case model.ResetForceRestart, model.ResetGracefulRestart, model.ResetPowerCycle:
		time.AfterFunc(delay, func() { w.boot(m) })
	}
	if m.mute {
		return done, errors.New("no answer in 30 s")
	}
	return done, nil
}

// noteStarting counts the machines that are powering on.
func (w *loopWorld) noteStarting() {
	n := 0
	for _, m := range w.machines {
		if m.starting {
			n++
		}
	}
	w.mostStarting = max(w.mostStarting, n)
}

// authError is what a BMC answers to a wrong password.
type authError struct{}

func (authError) Error() string { return "the BMC refuses the credentials" }

func (authError) Reason() string { return model.ReasonAuthenticationFailed }

var errDead = refusal("connection refused")

// refusal is an error after which it is certain that nothing was done.
type refusal string

func (e refusal) Error() string { return string(e) }

func (e refusal) NotCarriedOut() bool { return true }

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
