package plan

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/disks"
	"ingot/reconcile/plan/install"
	"ingot/reconcile/plan/laws"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/reading"
	"ingot/reconcile/plan/settings"
)

// A Move is what to do with one server now.
type Move struct {
	Target model.SystemTarget

	Do   []proposal.Action   // in order, stopping at the first that fails
	Then *model.ServerRecord // saved once all of Do succeeded

	Heals   bool // it only restores the power of a bound server: it needs no approval
	Routine bool // it is a look that nothing waits for
	was     known
}

// known is what was known of a server when its move was planned.
type known struct {
	old      *model.ServerRecord // nil for a new server
	facts    *model.ServerFacts  // nil = none were read
	reading  reading.State
	bmcReset time.Time // when its BMC was restarted last, as far as is known
	policy   *policy.Options
}

// Next returns the action that follows on these answers, or false when the move is over.
func (m *Move) Next(answers []proposal.Answer) (proposal.Action, bool) {
	if len(answers) == len(m.Do) || m.replay(answers).failed != nil {
		return nil, false
	}
	return m.Do[len(answers)], true
}

// Addresses are the MAC addresses whose leases show that a server found running runs; inv is what was just read, or nil.
func (m *Move) Addresses(inv *model.Inventory) []string {
	if m.Then.Life.FoundRunning.IsZero() {
		return nil
	}
	if inv != nil {
		inv = disks.Merged(m.was.facts, inv)
	} else if m.was.facts != nil {
		inv = m.was.facts.Inventory
	}
	all := inv.MACs()
	for _, mac := range m.Then.MACs {
		all = append(all, mac.Address)
	}
	return all
}

// BeforeAsking is what is saved before a power request: after a crash it may have been carried out.
func (m *Move) BeforeAsking(answers []proposal.Answer) proposal.Changes {
	o := m.replay(answers)
	return proposal.Changes{Servers: []*model.ServerRecord{o.aboutToAsk()}, Payloads: o.payloads}
}

// Settle is the result of a move by the answers to its actions; if some are missing, Ingot is being stopped. A failed
// move leaves the record as it was, except for the failure.
func (m *Move) Settle(answers []proposal.Answer, now time.Time) proposal.Settled {
	o := m.replay(answers)
	failed := o.failed
	if n := len(answers); failed == nil && n < len(m.Do) {
		failed = &proposal.Failure{Kind: proposal.FailureStopped, Text: "stopped before it was begun"}
		o.action = m.Do[n]
	}
	s := proposal.Settled{Outcome: proposal.MoveDone}
	if failed == nil {
		o.done(&s)
	} else {
		s.Err = failed.By(o.action)
		o.fails(&s, failed, now)
	}
	if o.learned {
		s.ServerFacts = append(s.ServerFacts, o.facts)
	}
	s.Reading, s.News = o.reading, !m.Routine || o.learned || failed != nil
	s.PoweredOn = o.reading.Reached && reading.AwaitsOn(m.Then.Power.Asked, m.was.reading, m.was.policy, now)
	return s
}

// Look is the reading of power that follows on an answered power request after a while, else false. It is part of the
// same move, because a plan would have nothing to decide before it.
func (m *Move) Look(s *proposal.Settled) (look *Move, after time.Duration, ok bool) {
	if s.Outcome != proposal.MoveDone || len(s.Servers) != 1 || len(m.Do) == 0 {
		return nil, 0, false
	}
	if _, asked := m.Do[len(m.Do)-1].(proposal.SetPower); !asked {
		return nil, 0, false
	}
	was := m.was
	was.old, was.reading = s.Servers[0], s.Reading
	if n := len(s.ServerFacts); n > 0 {
		was.facts = s.ServerFacts[n-1]
	}
	return &Move{Target: m.Target, Do: []proposal.Action{proposal.Inspect{}}, Then: s.Servers[0], was: was}, was.policy.Settle, true
}

// outcome is a move whose answers are gone through, one after the other.
type outcome struct {
	*Move
	rec     model.ServerRecord // what the record will be
	facts   *model.ServerFacts
	reading reading.State
	asked   *model.ServerRecord // what was saved before the last power request that may have been made
	learned bool                // facts are new
	decided bool                // the record is to be saved, not only what was read

	payloads map[string]model.Sensitive // of the tickets that were armed

	action  proposal.Action   // the last
	failed  *proposal.Failure // why that was not done
	unmeant model.Power       // the power state of the machine, if the request was meant for another
	force   bool              // the machine knows no graceful shutdown, and may be forced off
}

func (m *Move) replay(answers []proposal.Answer) *outcome {
	o := &outcome{Move: m, rec: *m.Then, facts: m.was.facts, reading: m.was.reading, decided: m.Then != m.was.old}
	for i := range answers {
		o.take(m.Do[i], &answers[i])
	}
	return o
}

func (o *outcome) take(do proposal.Action, a *proposal.Answer) {
	o.action, o.failed = do, a.Failed
	switch do := do.(type) {
	case proposal.DiskOnce: // the server is powered on next in any case
		o.failed = nil
		if a.Failed == nil {
			o.rec.Boot.NoDiskBoot = nil
		} else if a.Failed.Lasting() {
			o.rec.Boot.NoDiskBoot = &model.NoDiskBoot{Reason: a.Failed.Reason, Message: a.Failed.Text, Since: a.At, Firmware: do.Firmware}
		}
		return
	case proposal.SetIndicator:
		o.setIndicator(do, a)
		return
	case proposal.SetBootOrder:
		o.setBootOrder(do, a)
		return
	case proposal.SetPower:
		o.setPower(do, a)
		return
	}
	if a.Failed != nil {
		return
	}
	switch do := do.(type) {
	case proposal.Inspect:
		o.inspect(do, a)
	case proposal.Arm:
		o.arm(do, a)
	case proposal.BootOnce, proposal.ClearBoot: // which leaves no variant
		o.rec.Boot.OverrideVariant = a.Variant
	default:
		panic(fmt.Sprintf("unhandled action %T", do))
	}
}

func (o *outcome) inspect(do proposal.Inspect, a *proposal.Answer) {
	facts := &model.ServerFacts{Name: o.rec.Name, Power: a.Facts.Power}
	post := a.POST
	switch {
	case do.Inventory:
		facts.Inventory, post = disks.Merged(o.facts, a.Facts.Inventory), o.reading.POST
	case o.facts != nil:
		facts.Inventory = o.facts.Inventory
	}
	if o.facts == nil || !reflect.DeepEqual(facts, o.facts) {
		o.facts, o.learned = facts, true
	}
	o.reading = o.reading.Under(o.was.bmcReset).Saw(facts.Power, o.rec.Power.Asked, o.was.policy, a.At)
	o.reading.POST = post
	o.reading = o.reading.Leased(a.Leased)
	if do.Inventory {
		o.reading = o.reading.ReadParts(a.Facts.Inventory)
	}
	if asked := o.rec.Power.Asked; o.reading.Reached && asked != nil && !asked.Reached {
		o.rec.Power.Asked, o.decided = proposal.Changed(asked, func(a *model.PowerAsked) { a.Reached = true }), true
	}
}

// arm notes the ticket and what it serves, unless the server cannot start what it pins.
func (o *outcome) arm(do proposal.Arm, a *proposal.Answer) {
	t := a.Ticket
	if o.failed = do.Boot.Needs.Unmet(&t.Image); o.failed != nil {
		return
	}
	if t.Disk == nil {
		t.Target = nil
	} else {
		t.Config = "" // it is the probe that boots
	}
	o.rec.Boot.Ticket, o.decided = &t, true
	o.payloads = map[string]model.Sensitive{t.ID: a.Payload}
	o.rec.Boot.Serial++
	if !proposal.FailedBoot(o.rec.Boot.Problem) {
		o.rec.Boot.Problem = nil
	}
}

func (o *outcome) setPower(do proposal.SetPower, a *proposal.Answer) {
	f, r := a.Failed, a.Reset
	switch {
	case taskFailed(f):
		o.refusedOn(r.Before, f.Text)
		return
	case f != nil && f.Kind == proposal.FailureUnrecorded:
	case f != nil && f.Kind == proposal.FailureUndone:
		if do.From != "" && r.Before != "" && r.Before != do.From {
			o.unmeant = r.Before
		}
		o.force = do.Reset == model.ResetGracefulOff && !do.Gently && f.Reason == model.ReasonUnsupported
	default:
		o.asked, o.reading = o.aboutToAsk(), o.reading.Asked()
	}
	if f != nil {
		return
	}
	asked, says := *o.rec.Power.Asked, ""
	asked.Before, asked.Reset = r.Before, cmp.Or(r.Did, do.Reset)
	o.rec.Power.Asked, o.rec.Power.NoShutdown = &asked, time.Time{}
	if r.Did == model.ResetOn && do.Reset != model.ResetOn {
		says = "it was off, so it was switched on instead"
	}
	endOperation(&o.rec, model.OutcomeDone, says)
}

// taskFailed reports whether a power-on was accepted, and its task failed.
func taskFailed(f *proposal.Failure) bool {
	return f != nil && f.Kind == proposal.FailureUnsure && f.Reason == model.ReasonPowerOnRefused
}

// refusedOn notes a power-on that the BMC accepted, and whose task failed.
func (o *outcome) refusedOn(before model.Power, problem string) {
	asked := *o.rec.Power.Asked
	asked.Before, asked.Problem = before, problem
	o.rec.Power.Asked, o.reading, o.failed = &asked, o.reading.Asked(), nil
	endOperation(&o.rec, model.OutcomeRefused, problem)
}

// endOperation notes the outcome of the operation that requested a reset, if one did.
func endOperation(rec *model.ServerRecord, outcome model.OperationOutcome, message string) {
	if op := rec.Requests.Operation; op != nil && op.Outcome == "" && !op.AskedAt.IsZero() {
		rec.Requests.Operation = proposal.Changed(op, func(op *model.Operation) { op.Outcome, op.Message = outcome, message })
	}
}

// aboutToAsk is the record that is saved before a power request: the old one, with the request.
func (o *outcome) aboutToAsk() *model.ServerRecord {
	rec, before, asked := &o.rec, o.before(), *o.rec.Power.Asked
	asked.Unsure = true
	before.Power.Asked, before.Power.NoShutdown = &asked, time.Time{}
	before.Boot.Ticket, before.Boot.Serial, before.Boot.OverrideVariant = rec.Boot.Ticket, rec.Boot.Serial, rec.Boot.OverrideVariant
	before.Requests = rec.Requests
	return before
}

// before is a copy of the record as it was; that of a new server is what it will be.
func (o *outcome) before() *model.ServerRecord { return new(*cmp.Or(o.was.old, &o.rec)) }

func (o *outcome) done(s *proposal.Settled) {
	if !o.decided {
		return
	}
	if !proposal.Aside(o.action) { // a failed step of the server's life has still to be done
		o.rec.Life.LifeScratch = model.LifeScratch{}
	}
	s.Servers, s.Payloads = append(s.Servers, &o.rec), o.payloads
}

// fails notes a failed move: one that only reads in the readings, any other in the server's record.
func (o *outcome) fails(s *proposal.Settled, f *proposal.Failure, now time.Time) {
	inspect, reads := o.action.(proposal.Inspect)
	arm, arms := o.action.(proposal.Arm)
	p, name, rec := *o.was.policy, o.rec.Name, o.before()
	s.Outcome = proposal.MoveFailed
	switch {
	case f.Kind == proposal.FailureStopped:
		s.Outcome, rec = proposal.MoveStopped, nil
	case o.unmeant != "":
		s.Outcome, rec = proposal.MoveOvertaken, o.was.old
		o.overtaken(now)
	case o.force:
		s.Outcome = proposal.MoveNoShutdown
		rec.Power.NoShutdown = now
	case reads || o.asked == nil && f.OtherMachine():
		s.Outcome, rec = proposal.MoveUnanswered, o.was.old // nothing was asked for
		until := now.Add(policy.BMCBackoff(name, o.reading.Failures+1, p))
		o.reading = o.reading.Missed(s.Err, until, now)
		o.reading.Reason = f.Reason
		if inspect.Inventory {
			o.reading = o.reading.MissedParts(now)
		}
		if reads {
			rec = nil
		}
	case o.asked != nil: // a restart is not asked for again (law 3)
		rec = o.asked
		rec.Life.LastError, rec.Life.LastReason = s.Err, laws.Specific(f.Reason)
		endOperation(rec, model.OutcomeUnknown, s.Err)
	case f.Kind == proposal.FailureUnrecorded:
		o.reading, rec = o.reading.Lost(s.Err, name, p, now), nil
	case arms:
		rec = o.notArmed(s, rec, arm, f, now)
	default:
		rec.Life.Failures++
		rec.Life.NotBefore = now.Add(policy.BMCBackoff(name, rec.Life.Failures, p))
		rec.Life.LastError, rec.Life.LastReason = s.Err, laws.Specific(f.Reason)
	}
	if rec != nil {
		s.Servers = append(s.Servers, rec)
	}
}

// overtaken notes that a machine's power has changed since the plan: nothing was requested.
func (o *outcome) overtaken(now time.Time) {
	facts := *cmp.Or(o.facts, &model.ServerFacts{Name: o.rec.Name})
	facts.Power = o.unmeant
	o.facts, o.learned = &facts, true
	if old := o.was.old; old != nil {
		o.reading = o.reading.Saw(o.unmeant, old.Power.Asked, o.was.policy, now)
	}
}

// notArmed is the record once a boot could not be armed, nil if it is as it was. Preparing an image does not count as a failure.
func (o *outcome) notArmed(s *proposal.Settled, rec *model.ServerRecord, do proposal.Arm, f *proposal.Failure, now time.Time) *model.ServerRecord {
	b, old, name := &do.Boot, rec.Boot.Problem, rec.Name
	p := model.BootProblem{
		Digest: b.Ticket.Digest, Architecture: b.Architecture, Image: b.Image, Reason: f.Reason, Message: f.Text, Since: now,
	}
	if f.Reason == "" {
		p.Reason, p.Message = model.ReasonArmFailed, f.By(do)
	}
	known := proposal.Concerns(old, b)
	if known && old.Reason == p.Reason {
		p.Since = old.Since
	}
	if f.Reason == model.ReasonImagePreparing {
		s.Outcome = proposal.MovePreparing
		o.reading.PreparedAfter = now.Add(install.PreparedEvery - time.Duration(float64(install.PreparedEvery)/2*policy.Jitter(name)))
		if old != nil && *old == p {
			return nil
		}
	} else {
		if known {
			p.Failures = old.Failures
		}
		p.Failures++
		p.NotBefore = now.Add(policy.Backoff(name, p.Failures, *o.was.policy))
	}
	rec.Boot.Problem = &p
	return rec
}

// settingProblem is the problem of a setting after a failed answer. The move did not fail: nothing waits for a setting.
func (o *outcome) settingProblem(old *model.SettingProblem, want, firmware string, a *proposal.Answer) *model.SettingProblem {
	f := a.Failed
	if f.Kind == proposal.FailureStopped || f.OtherMachine() {
		return old
	}
	p := &model.SettingProblem{Want: want, Reason: f.Reason, Message: f.Text, Since: a.At, Firmware: firmware}
	if old != nil && old.Want == want && old.Firmware == firmware {
		p.Failures = old.Failures
		if old.Reason == p.Reason {
			p.Since = old.Since
		}
	}
	p.Failures++
	p.NotBefore = a.At.Add(policy.Backoff(o.rec.Name, p.Failures, *o.was.policy))
	o.failed, o.decided = nil, true
	return p
}

// learn is a copy of the server's inventory that is saved once a setting is entered in it.
func (o *outcome) learn() *model.Inventory {
	facts := *cmp.Or(o.facts, &model.ServerFacts{Name: o.rec.Name})
	facts.Inventory = new(*cmp.Or(facts.Inventory, new(model.Inventory)))
	o.facts, o.learned = &facts, true
	return facts.Inventory
}

func (o *outcome) setIndicator(do proposal.SetIndicator, a *proposal.Answer) {
	set := &o.rec.Settings
	if a.Failed != nil {
		set.IndicatorProblem = o.settingProblem(set.IndicatorProblem, do.To, do.Firmware, a)
		return
	}
	inv := o.learn()
	inv.IndicatorLED, inv.IndicatorOnOff = a.Indicator.LED, a.Indicator.OnOff
	if set.IndicatorProblem != nil {
		set.IndicatorProblem, o.decided = nil, true
	}
}

func (o *outcome) setBootOrder(do proposal.SetBootOrder, a *proposal.Answer) {
	set, shown := &o.rec.Settings, a.BootOrder
	key := model.BootOrderKey(do.Wanted, do.Firmware, do.Known)
	switch {
	case a.Failed != nil:
		set.BootOrderProblem = o.settingProblem(set.BootOrderProblem, key, do.Firmware, a)
		return
	case do.Started != nil && shown.Pending() && slices.Equal(shown.Next, do.Started.Order):
		set.BootOrderProblem = &model.SettingProblem{
			Want: key, Reason: model.ReasonSettingNotKept, Since: a.At, Firmware: do.Firmware, Failures: settings.Attempts,
			Message: fmt.Sprintf("%s has been pending since %s, and the machine has started since with %s",
				strings.Join(shown.Next, ", "), text.Time(do.Started.Since), strings.Join(shown.Now, ", ")),
		}
		set.BootOrderSet, set.BootOrderPending = "", nil
	default:
		set.BootOrderSet, set.BootOrderProblem = model.BootOrderKey(do.Wanted, do.Firmware, shown.Now), nil
		if old := set.BootOrderPending; !shown.Pending() {
			set.BootOrderPending = nil
		} else if old == nil || !slices.Equal(old.Order, shown.Next) {
			set.BootOrderPending = &model.PendingBootOrder{Order: shown.Next, Since: a.At}
		}
	}
	o.learn().BootOrder = shown.Now
	o.decided = true
}
