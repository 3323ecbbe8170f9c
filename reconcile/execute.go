package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"ingot/model"
	"ingot/reconcile/plan"
)

// Undone is an error of BMCs.Reset after which it is certain that the request was not
// carried out. After any other error nobody knows.
type Undone interface {
	error
	NotCarriedOut() bool
}

// notCarriedOut reports whether a request that failed is certain to have had no effect.
func notCarriedOut(err error) bool {
	u, ok := errors.AsType[Undone](err)
	return ok && u.NotCarriedOut()
}

// errNotSaved is returned where an effect was not begun, for it could not be recorded
// first.
var errNotSaved = errors.New("not asked for, because it cannot be recorded before")

// job is one move being carried out.
type job struct {
	name    model.ServerName
	target  model.SystemTarget
	old     *model.ServerRecord // nil for a new server
	rec     model.ServerRecord  // what the record will be
	facts   *model.ServerFacts  // as known
	reading plan.Reading
	// bmcReset is when its BMC was restarted last, as far as is known.
	bmcReset time.Time
	round    uint64              // of the plan that wanted the move
	asked    *model.ServerRecord // what was saved before the last power request
	learned  bool                // facts are new
	decided  bool                // the record is to be saved, not only what was read
}

// macs are the MAC addresses of the server, as far as anybody knows.
func (j *job) macs() []string {
	var all []string
	if j.facts != nil {
		all = j.facts.Inventory.MACs()
	}
	for _, m := range j.rec.MACs {
		all = append(all, m.Address)
	}
	return all
}

// start begins a move unless one is under way.
func (l *Loop) start(ctx context.Context, in *plan.Input, name model.ServerName, m *plan.Move) {
	j := &job{
		name: name, target: m.Target, old: in.Observed.Servers[name], rec: *m.Then,
		facts: in.Observed.ServerFacts[name], reading: in.Readings[name],
	}
	if b := in.Observed.BMCFacts[m.Then.BMC]; b != nil {
		j.bmcReset = b.LastResetTime
	}
	j.decided = m.Then != j.old
	l.mu.Lock()
	l.busy[name], j.round = m.Then, l.round
	l.mu.Unlock()
	l.moves.Go(func() {
		release := l.acquireWorker(ctx)
		defer release()
		ctx, cancel := context.WithTimeout(ctx, moveLimit)
		defer cancel()
		err := l.carryOut(ctx, j, m)
		passedOver := l.finish(ctx, j, err)
		if !m.Routine || j.learned || err != nil || passedOver {
			l.Wake()
		}
	})
}

// acquireWorker waits for a worker, which is released by the caller or after workerLimit,
// whichever is first.
func (l *Loop) acquireWorker(ctx context.Context) (release func()) {
	select {
	case l.workers <- struct{}{}:
	case <-ctx.Done():
		return func() {}
	}
	var once sync.Once
	done := func() { once.Do(func() { <-l.workers }) }
	timer := time.AfterFunc(workerLimit, done)
	return func() {
		timer.Stop()
		done()
	}
}

// carryOut does a move's actions, stopping at the first that fails.
func (l *Loop) carryOut(ctx context.Context, j *job, m *plan.Move) error {
	for _, a := range m.Do {
		if l.Leading != nil && !l.Leading() {
			return context.Canceled
		}
		start := l.Clock()
		err := l.do(ctx, j, a)
		l.Metrics.acted(a, l.Clock().Sub(start), err)
		if err != nil {
			return &actionError{a, err}
		}
	}
	return nil
}

// actionError says which action failed.
type actionError struct {
	action plan.Action
	err    error
}

func (e *actionError) Error() string { return fmt.Sprintf("%s: %v", e.action, e.err) }
func (e *actionError) Unwrap() error { return e.err }

// reads reports whether the action that failed only reads.
func (e *actionError) reads() bool {
	_, ok := e.action.(plan.Inspect)
	return ok
}

// do does one action.
func (l *Loop) do(ctx context.Context, j *job, a plan.Action) error {
	switch a := a.(type) {
	case plan.Inspect:
		return l.inspect(ctx, j, a)
	case plan.Arm:
		return l.arm(ctx, j, a.Boot)
	case plan.BootOnce:
		variant, err := l.BMCs.BootOnce(ctx, j.target, a.Method)
		j.rec.BootOverrideVariant = variant
		return err
	case plan.DiskOnce:
		return l.diskOnce(ctx, j, a)
	case plan.ClearBoot:
		err := l.BMCs.ClearBootOverride(ctx, j.target)
		if err == nil {
			j.rec.BootOverrideVariant = ""
		}
		return err
	case plan.SetPower:
		return l.setPower(ctx, j, a)
	default:
		panic(fmt.Sprintf("unhandled action %T", a))
	}
}

// noDiskReasons are the reasons of errors of BMCs that will be no other the next time.
var noDiskReasons = []model.Reason{model.ReasonUnsupported, model.ReasonBootOverrideNotKept, model.ReasonNotFound}

// diskOnce asks the BMC for a one-time boot from disk. One that has none is not asked
// for it again; whatever it answers, the server is powered on next.
func (l *Loop) diskOnce(ctx context.Context, j *job, a plan.DiskOnce) error {
	_, err := l.BMCs.BootOnce(ctx, j.target, model.BootDisk)
	switch {
	case err == nil:
		j.rec.NoDiskBoot = nil
		return nil
	case ctx.Err() != nil:
		return err
	}
	r, ok := errors.AsType[plan.Reasoner](err)
	if !ok || !slices.Contains(noDiskReasons, r.Reason()) {
		l.Log.Warn("one-time boot from disk not set, it is left to the boot order", "server", j.name, "bmc", j.rec.BMC, "err", err)
		return nil
	}
	j.rec.NoDiskBoot = &model.NoDiskBoot{Reason: r.Reason(), Message: r.Error(), Since: l.Clock(), Firmware: a.Firmware}
	l.Log.Warn("BMC sets no one-time boot from disk, it is left to the boot order from now on", "server", j.name, "bmc", j.rec.BMC, "err", err)
	return nil
}

// setPower makes one power request, which is recorded before it is made: whoever finds
// the record after a crash knows that it may have been carried out.
func (l *Loop) setPower(ctx context.Context, j *job, a plan.SetPower) error {
	before := aboutToAsk(j.old, &j.rec)
	if err := l.Store.Save(ctx, plan.Changes{Servers: []*model.ServerRecord{&before}}); err != nil {
		return fmt.Errorf("%w: %w", errNotSaved, err)
	}
	l.Log.Info("power request", "server", j.name, "action", a.Reset, "state", j.rec.State, "claim", j.rec.Claim)
	r, err := l.reset(ctx, j, a)
	switch {
	case err == nil:
		j.asked, j.reading = &before, j.reading.Asked()
		j.reset(a.Reset, r)
	case !notCarriedOut(err):
		j.asked, j.reading = &before, j.reading.Asked()
	case a.From != "" && r.Before != "" && r.Before != a.From:
		return &overtaken{err, r.Before}
	}
	return err
}

// reset asks for a power change. A machine that knows no graceful shutdown is powered
// off in the only way that it has, unless that is forbidden.
func (l *Loop) reset(ctx context.Context, j *job, a plan.SetPower) (model.ResetResult, error) {
	r, err := l.BMCs.Reset(ctx, j.target, a.Reset, a.From)
	if a.Reset == model.ResetGracefulOff && !a.Gently && plan.ReasonOf(err) == model.ReasonUnsupported && notCarriedOut(err) {
		return l.BMCs.Reset(ctx, j.target, model.ResetForceOff, a.From)
	}
	return r, err
}

// reset notes what a power request came to.
func (j *job) reset(wanted model.ResetKind, r model.ResetResult) {
	asked := *j.rec.Asked
	asked.Before, asked.Reset = r.Before, cmp.Or(r.Did, wanted)
	j.rec.Asked = &asked
	if op := j.rec.Operation; op != nil && op.Outcome == "" && !op.AskedAt.IsZero() {
		done := *op
		done.Outcome = model.OutcomeDone
		if r.Did == model.ResetOn && wanted != model.ResetOn {
			done.Message = "it was off, so it was switched on instead"
		}
		j.rec.Operation = &done
	}
}

// overtaken is why a power request was not made: the machine is no longer in the power
// state that it was for.
type overtaken struct {
	error
	power model.Power
}

// Unwrap returns what the BMC said.
func (e *overtaken) Unwrap() error { return e.error }

// aboutToAsk is the record that is saved before a power request is made: old, with what
// rec says of the request, and of what counts as done once it was.
func aboutToAsk(old, rec *model.ServerRecord) model.ServerRecord {
	before := *rec
	if old != nil {
		before = *old
	}
	asked := *rec.Asked
	asked.Unsure = true
	before.Asked, before.Operation = &asked, rec.Operation
	before.Ticket, before.Serial, before.BootOverrideVariant = rec.Ticket, rec.Serial, rec.BootOverrideVariant
	before.HandledOperation, before.HandledReprovision, before.HandledDiscover = rec.HandledOperation, rec.HandledReprovision, rec.HandledDiscover
	before.HandledBefore = rec.HandledBefore
	return before
}

// arm has a boot ticket made, and sees whether the server can start what it pins.
func (l *Loop) arm(ctx context.Context, j *job, b plan.Boot) error {
	t, err := l.Boots.Arm(ctx, b)
	if err != nil {
		return err
	}
	if err := b.Needs.Unmet(&t.Image); err != nil {
		return err
	}
	j.rec.Ticket, j.decided = &t, true
	j.rec.Serial++
	if !plan.FailedBoot(j.rec.BootProblem) {
		j.rec.BootProblem = nil
	}
	return nil
}

// inspect reads power, and the inventory if it is asked for.
func (l *Loop) inspect(ctx context.Context, j *job, a plan.Inspect) error {
	facts, post := &model.ServerFacts{Name: j.name}, j.reading.POST
	if a.Inventory {
		read, err := l.BMCs.Inventory(ctx, j.target)
		if err != nil {
			return err
		}
		facts.Power, facts.Inventory = read.Power, merged(j.facts, read.Inventory)
	} else {
		s, err := l.BMCs.Power(ctx, j.target)
		if err != nil {
			return err
		}
		facts.Power, post = s.Power, s.POST
		if j.facts != nil {
			facts.Inventory = j.facts.Inventory
		}
	}
	if j.facts == nil || a.Inventory || facts.Power != j.facts.Power {
		j.facts, j.learned = facts, true
	}
	j.reading = j.reading.Under(j.bmcReset).Saw(facts.Power, j.rec.Asked, l.Clock())
	j.reading.POST = post
	if l.Leased != nil && j.reading.Offs > 0 && !j.rec.FoundRunning.IsZero() {
		j.reading = j.reading.Heard(l.Leased(j.macs()))
	}
	if a.Inventory {
		j.reading.InventoryAt = j.reading.At
	}
	if asked := j.rec.Asked; j.reading.Reached && asked != nil && !asked.Reached {
		reached := *asked
		reached.Reached = true
		j.rec.Asked, j.decided = &reached, true
	}
	return nil
}

// merged is a new inventory, with the parts that a server that is off did not
// show taken from what was known.
func merged(old *model.ServerFacts, inv *model.Inventory) *model.Inventory {
	if old == nil || old.Inventory == nil || inv == nil {
		return inv
	}
	m, known := *inv, old.Inventory
	if len(m.Processors) == 0 {
		m.Processors = known.Processors
	}
	if len(m.Memory) == 0 {
		m.Memory = known.Memory
	}
	if m.MemoryBytes == 0 {
		m.MemoryBytes = known.MemoryBytes
	}
	if len(m.Storages) == 0 {
		m.Storages = known.Storages
	}
	if len(m.NetworkInterfaces) == 0 {
		m.NetworkInterfaces = known.NetworkInterfaces
	}
	if len(m.MACAddresses) == 0 {
		m.MACAddresses = known.MACAddresses
	} else if len(m.Problems) > 0 { // a card that was not read has not lost its addresses
		m.MACAddresses = united(m.MACAddresses, known.MACAddresses)
	}
	if m.Manufacturer == "" {
		m.Manufacturer, m.Model = known.Manufacturer, known.Model
	}
	if m.BIOSVersion == "" {
		m.BIOSVersion = known.BIOSVersion
	}
	return &m
}

// united are sorted texts of both lists, each once.
func united(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// finish saves what became of a move. Decisions are kept after success only; a
// failed move leaves the record as it was, but for the failure. finish reports
// whether a plan may have passed the server over meanwhile, because it was busy.
func (l *Loop) finish(ctx context.Context, j *job, err error) (passedOver bool) {
	var c plan.Changes
	switch {
	case err == nil && !j.decided:
	case err == nil:
		j.rec.Failures, j.rec.LastError, j.rec.NotBefore = 0, "", time.Time{}
		c.Servers = append(c.Servers, &j.rec)
		l.logTransition(j.old, &j.rec)
		if tellsMore(j.old, &j.rec) {
			l.hurry()
		}
	case errors.Is(err, context.Canceled), errors.Is(ctx.Err(), context.Canceled):
		// Ingot is being stopped: nothing is known of the outcome, and what was noted
		// before the request says so.
	default:
		l.failed(j, err, &c)
	}
	if j.learned {
		c.ServerFacts = append(c.ServerFacts, j.facts)
	}
	if err := l.save(ctx, c, "server", string(j.name)); err != nil {
		// What is not on record would be asked for again at once.
		j.reading = j.reading.Lost("what was done could not be saved: "+err.Error(), j.name, l.Policy, l.Clock())
	} else if len(c.Servers) > 0 {
		j.reading.Unsaved = 0
	}
	l.mu.Lock()
	if l.readings[j.name].Shown(l.Policy) != j.reading.Shown(l.Policy) {
		l.changed()
	}
	l.readings[j.name], l.snapshot = j.reading, nil
	delete(l.busy, j.name)
	passedOver = l.round != j.round
	l.mu.Unlock()
	return passedOver
}

// failed notes a failed move: one that only reads in the readings of this
// process, any other in the server's record.
func (l *Loop) failed(j *job, err error, c *plan.Changes) {
	now := l.Clock()
	if o, ok := errors.AsType[*overtaken](err); ok {
		l.overtaken(j, o.power, c)
		return
	}
	l.Metrics.failed()
	if ae, ok := errors.AsType[*actionError](err); ok && (ae.reads() || j.asked == nil && plan.OtherMachine(err)) {
		next := j.reading.Failures + 1
		j.reading = j.reading.Missed(err.Error(), now.Add(plan.Backoff(j.name, next, l.Policy)), now).Because(err)
		if next == 1 {
			l.Log.Warn("BMC gives no answer of use", "server", j.name, "bmc", j.rec.BMC, "err", err)
		}
		if !ae.reads() && j.old != nil {
			c.Servers = append(c.Servers, j.old) // nothing was asked for
		}
		return
	}
	l.Log.Warn("move failed", "server", j.name, "bmc", j.rec.BMC, "state", j.rec.State, "err", err)
	rec := j.rec
	if j.old != nil {
		rec = *j.old
	}
	if j.asked != nil {
		c.Servers = append(c.Servers, unsure(*j.asked, err))
		return
	}
	if errors.Is(err, errNotSaved) {
		j.reading = j.reading.Lost(err.Error(), j.name, l.Policy, now)
		return
	}
	if arm, ok := failedArm(err); ok {
		rec.BootProblem = plan.ArmProblem(rec.BootProblem, j.name, &arm.Boot, err, now, l.Policy)
	} else {
		rec.Failures++
		rec.NotBefore = now.Add(plan.Backoff(j.name, rec.Failures, l.Policy))
		rec.LastError = err.Error()
	}
	c.Servers = append(c.Servers, &rec)
}

// overtaken notes that a machine's power has changed since the plan: nothing was asked
// for, and what is to be done now is thought over again.
func (l *Loop) overtaken(j *job, power model.Power, c *plan.Changes) {
	l.Log.Info("power has changed meanwhile, nothing is asked for", "server", j.name, "bmc", j.rec.BMC, "power", power)
	facts := model.ServerFacts{Name: j.name}
	if j.facts != nil {
		facts = *j.facts
	}
	facts.Power = power
	j.facts, j.learned = &facts, true
	if j.old != nil {
		j.reading = j.reading.Saw(power, j.old.Asked, l.Clock())
		c.Servers = append(c.Servers, j.old)
	}
}

// unsure is the record after a power request of which nobody knows whether it was
// carried out. A restart is not asked for again (law 3).
func unsure(rec model.ServerRecord, err error) *model.ServerRecord {
	rec.LastError = err.Error()
	if op := rec.Operation; op != nil && op.Outcome == "" && !op.AskedAt.IsZero() {
		lost := *op
		lost.Outcome, lost.Message = model.OutcomeUnknown, err.Error()
		rec.Operation = &lost
	}
	return &rec
}

// failedArm is the Arm that failed, if it was one: that is held against what it is
// about, and not against the server.
func failedArm(err error) (plan.Arm, bool) {
	ae, ok := errors.AsType[*actionError](err)
	if !ok {
		return plan.Arm{}, false
	}
	arm, ok := ae.action.(plan.Arm)
	return arm, ok
}

// save writes changes, and says so to the publisher. What cannot be saved is
// planned again from what is stored.
func (l *Loop) save(ctx context.Context, c plan.Changes, kind, name string) error {
	if len(c.Servers)+len(c.BMCs)+len(c.BMCFacts)+len(c.ServerFacts)+len(c.Endpoints) == 0 {
		return nil
	}
	// The outcome of an effect is saved even while Ingot is being stopped.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := l.Store.Save(ctx, c); err != nil {
		l.Log.Error("outcome not saved, it is looked at anew", kind, name, "err", err)
		return err
	}
	l.changed()
	return nil
}

// startBMC begins the reading of one BMC.
func (l *Loop) startBMC(ctx context.Context, in *plan.Input, name model.BMCName, m *plan.BMCMove) {
	old := in.Observed.BMCs[name]
	l.mu.Lock()
	l.busyBMCs[name] = true
	l.mu.Unlock()
	l.moves.Go(func() {
		defer l.Wake()
		release := l.acquireWorker(ctx)
		defer release()
		limited, cancel := context.WithTimeout(ctx, moveLimit)
		defer cancel()
		facts, err := l.BMCs.Discover(limited, m.Target)
		believed := err != nil || l.confirmed(facts, l.Store.Observed())
		if believed && (ctx.Err() == nil || err == nil) {
			if l.finishBMC(ctx, old, m, facts, err) != nil {
				sleep(ctx, l.Policy.BackoffMin) // what is not on record would be read again at once
			}
		}
		l.mu.Lock()
		delete(l.sightings, name)
		switch {
		case !believed:
			l.sightings[name] = sighting{l.Clock(), facts.Systems}
			l.Log.Warn("BMC shows other systems than it did, it is read again", "bmc", name)
		case err == nil:
			l.bmcRead[name], l.bmcsSeen = l.Clock(), nil
		}
		delete(l.busyBMCs, name)
		l.mu.Unlock()
	})
}

// finishBMC saves what became of the reading of one BMC. Nobody else writes the
// record of its endpoint meanwhile.
func (l *Loop) finishBMC(ctx context.Context, old *model.BMCRecord, m *plan.BMCMove, facts *model.BMCFacts, err error) error {
	observed, now := l.Store.Observed(), l.Clock()
	endpoint := observed.Endpoints[m.Endpoint]
	if err == nil {
		err = plan.CheckIdentity(m.Target.Address, m.Known, facts, observed.BMCFacts)
	}
	if err != nil {
		return l.failedBMC(ctx, old, m, endpoint, err)
	}
	rec := *m.Then
	if old == nil || old.Reason != "" {
		rec.Since = now
	}
	rec.Failures, rec.NotBefore, rec.Reason, rec.LastError = 0, time.Time{}, "", ""
	if rec.Fingerprint == "" {
		rec.Fingerprint = facts.Fingerprint
	}
	c := plan.Changes{BMCs: []*model.BMCRecord{&rec}, BMCFacts: []*model.BMCFacts{facts}}
	if endpoint != nil && m.Credential != "" {
		c.Endpoints = append(c.Endpoints, plan.CredentialAccepted(endpoint, m.Credential))
		l.Log.Info("BMC takes default credentials", "bmc", rec.Name, "credential", m.Credential)
	}
	return l.save(ctx, c, "bmc", string(rec.Name))
}

// failedBMC notes that a BMC could not be read, or is another one.
func (l *Loop) failedBMC(ctx context.Context, old *model.BMCRecord, m *plan.BMCMove, endpoint *model.EndpointRecord, err error) error {
	now := l.Clock()
	rec := model.BMCRecord{Name: m.Then.Name}
	if old != nil {
		rec = *old
	}
	rec.HandledOperation, rec.Fingerprint = m.Then.HandledOperation, m.Then.Fingerprint
	reason := cmp.Or(plan.ReasonOf(err), model.ReasonConnectionFailed)
	rec.Failures++
	rec.NotBefore = now.Add(plan.Backoff(rec.Name, rec.Failures, l.Policy))
	if rec.Reason != reason {
		rec.Reason, rec.LastError, rec.Since = reason, err.Error(), now
		l.Log.Warn("BMC cannot be used", "bmc", rec.Name, "reason", reason, "err", err)
	}
	c := plan.Changes{BMCs: []*model.BMCRecord{&rec}}
	if endpoint != nil && m.Credential != "" && reason == model.ReasonAuthenticationFailed {
		c.Endpoints = append(c.Endpoints, plan.CredentialRefused(endpoint, m.Credential, now, l.Policy))
		l.Log.Warn("BMC refuses default credentials", "bmc", rec.Name, "credential", m.Credential)
	}
	return l.save(ctx, c, "bmc", string(rec.Name))
}
