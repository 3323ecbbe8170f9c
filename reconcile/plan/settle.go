package plan

import (
	"cmp"
	"fmt"
	"reflect"
	"time"

	"ingot/model"
	"ingot/reconcile/plan/disks"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/reading"
	"ingot/reconcile/plan/world"
)

// known is what was known of a server when its move was planned.
type known struct {
	old      *model.ServerRecord // nil for a new server
	facts    *model.ServerFacts  // nil = none were read
	reading  reading.State
	bmcReset time.Time // when its BMC was restarted last, as far as is known
	policy   *policy.Options
}

// knownOf is what is known of a server before its step.
func (f *planner) knownOf(s *world.Server, then *model.ServerRecord) known {
	in := f.In
	k := known{old: in.Observed.Servers[s.Name], facts: in.Observed.ServerFacts[s.Name], reading: in.Readings[s.Name], policy: &in.Policy}
	if b := in.Observed.BMCFacts[then.BMC]; b != nil {
		k.bmcReset = b.LastResetTime
	}
	return k
}

// Next returns the action that follows on these answers, or false when the move is over:
// all is done, or something failed.
func (m *Move) Next(answers []proposal.Answer) (proposal.Action, bool) {
	if len(answers) == len(m.Do) || m.replay(answers).failed != nil {
		return nil, false
	}
	return m.Do[len(answers)], true
}

// Addresses are the MAC addresses of a server whose leases tell that it runs, for it was
// found running; inv is what was just read of it, nil if nothing was.
func (m *Move) Addresses(inv *model.Inventory) []string {
	if m.Then.Life.FoundRunning.IsZero() {
		return nil
	}
	switch {
	case inv != nil:
		inv = disks.Merged(m.was.facts, inv)
	case m.was.facts != nil:
		inv = m.was.facts.Inventory
	}
	var all []string
	if inv != nil {
		all = inv.MACs()
	}
	for _, mac := range m.Then.MACs {
		all = append(all, mac.Address)
	}
	return all
}

// BeforeAsking is what is saved before a power request is made, after these answers:
// whoever finds the record after a crash knows that it may have been carried out.
func (m *Move) BeforeAsking(answers []proposal.Answer) proposal.Changes {
	o := m.replay(answers)
	before := o.aboutToAsk()
	return proposal.Changes{Servers: []*model.ServerRecord{&before}, Payloads: o.payloads}
}

// Settle is the result of a move, by the answers to its actions; where the move was not over and
// there are no more of them, Ingot is being stopped. Decisions are kept after
// success only: a failed move leaves the record as it was, but for the failure.
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

// Look is the reading of power that follows on a power request, after a while, and false
// if the move made none that was answered. It is a part of the same move, because a plan
// would have nothing to decide before it.
func (m *Move) Look(s *proposal.Settled) (look *Move, after time.Duration, ok bool) {
	if s.Outcome != proposal.MoveDone || len(s.Servers) != 1 || len(m.Do) == 0 {
		return nil, 0, false
	}
	if _, asked := m.Do[len(m.Do)-1].(proposal.SetPower); !asked {
		return nil, 0, false
	}
	was := known{old: s.Servers[0], facts: m.was.facts, reading: s.Reading, bmcReset: m.was.bmcReset, policy: m.was.policy}
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

	action proposal.Action   // the last
	failed *proposal.Failure // why that was not done
	// unmeant is the power state in which the machine was found, though the request was
	// meant for another.
	unmeant model.Power
	// force is set when the machine knows no graceful shutdown, and may be forced off.
	force bool
}

// replay goes through the answers to a move's actions.
func (m *Move) replay(answers []proposal.Answer) *outcome {
	o := &outcome{Move: m, rec: *m.Then, facts: m.was.facts, reading: m.was.reading, decided: m.Then != m.was.old}
	for i := range answers {
		o.take(m.Do[i], &answers[i])
	}
	return o
}

// take notes what came of one action.
func (o *outcome) take(do proposal.Action, a *proposal.Answer) {
	o.action, o.failed = do, a.Failed
	switch do := do.(type) {
	case proposal.DiskOnce:
		o.diskOnce(do, a)
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
	case proposal.BootOnce:
		o.rec.Boot.OverrideVariant = a.Variant
	case proposal.ClearBoot:
		o.rec.Boot.OverrideVariant = ""
	default:
		panic(fmt.Sprintf("unhandled action %T", do))
	}
}

// inspect notes what was read of the machine.
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
	o.reading = o.reading.Under(o.was.bmcReset).Saw(facts.Power, o.rec.Power.Asked, o.was.policy.OffReadings, a.At)
	o.reading.POST = post
	o.reading = o.reading.Leased(a.Leased)
	if do.Inventory {
		o.reading = o.reading.ReadParts(a.Facts.Inventory)
	}
	if asked := o.rec.Power.Asked; o.reading.Reached && asked != nil && !asked.Reached {
		reached := *asked
		reached.Reached = true
		o.rec.Power.Asked, o.decided = &reached, true
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

// setPower notes what a power request came to.
func (o *outcome) setPower(do proposal.SetPower, a *proposal.Answer) {
	f, r := a.Failed, a.Reset
	switch {
	case f != nil && f.Kind == proposal.FailureUnrecorded:
	case f != nil && f.Kind == proposal.FailureUndone:
		if do.From != "" && r.Before != "" && r.Before != do.From {
			o.unmeant = r.Before
		}
		o.force = do.Reset == model.ResetGracefulOff && !do.Gently && f.Reason == model.ReasonUnsupported
	default:
		before := o.aboutToAsk()
		o.asked, o.reading = &before, o.reading.Asked()
	}
	if f != nil {
		return
	}
	asked := *o.rec.Power.Asked
	asked.Before, asked.Reset = r.Before, cmp.Or(r.Did, do.Reset)
	o.rec.Power.Asked, o.rec.Power.NoShutdown = &asked, time.Time{}
	o.operated(do.Reset, r.Did)
}

// operated notes that the operation which asked for a reset is done, by the one that was
// carried out.
func (o *outcome) operated(asked, did model.ResetKind) {
	op := o.rec.Requests.Operation
	if op == nil || op.Outcome != "" || op.AskedAt.IsZero() {
		return
	}
	done := *op
	done.Outcome = model.OutcomeDone
	if did == model.ResetOn && asked != model.ResetOn {
		done.Message = "it was off, so it was switched on instead"
	}
	o.rec.Requests.Operation = &done
}

// aboutToAsk is the record that is saved before a power request is made: the old one, with
// what the new one says of the request, and of what counts as done once it was.
func (o *outcome) aboutToAsk() model.ServerRecord {
	rec, before := &o.rec, o.rec
	if o.was.old != nil {
		before = *o.was.old
	}
	asked := *rec.Power.Asked
	asked.Unsure = true
	before.Power.Asked, before.Requests.Operation, before.Power.NoShutdown = &asked, rec.Requests.Operation, time.Time{}
	before.Boot.Ticket, before.Boot.Serial, before.Boot.OverrideVariant = rec.Boot.Ticket, rec.Boot.Serial, rec.Boot.OverrideVariant
	before.Requests.HandledOperation, before.Requests.HandledReprovision = rec.Requests.HandledOperation, rec.Requests.HandledReprovision
	before.Requests.HandledDiscover, before.Requests.HandledBefore = rec.Requests.HandledDiscover, rec.Requests.HandledBefore
	return before
}

// done keeps what the move decided.
func (o *outcome) done(s *proposal.Settled) {
	if !o.decided {
		return
	}
	if !proposal.Aside(o.action) { // a failed step of the server's life has still to be done
		o.rec.Life.Failures, o.rec.Life.LastError, o.rec.Life.NotBefore = 0, "", time.Time{}
	}
	s.Servers, s.Payloads = append(s.Servers, &o.rec), o.payloads
}

// fails notes a failed move: one that only reads in the readings of this process, any
// other in the server's record.
func (o *outcome) fails(s *proposal.Settled, f *proposal.Failure, now time.Time) {
	inspect, reads := o.action.(proposal.Inspect)
	arm, arms := o.action.(proposal.Arm)
	p, name := *o.was.policy, o.rec.Name
	switch {
	case f.Kind == proposal.FailureStopped:
		s.Outcome = proposal.MoveStopped
	case o.unmeant != "":
		s.Outcome = proposal.MoveOvertaken
		o.overtaken(s, now)
	case o.force:
		s.Outcome = proposal.MoveNoShutdown
		rec := o.before()
		rec.Power.NoShutdown = now
		s.Servers = append(s.Servers, rec)
	case reads || o.asked == nil && f.OtherMachine():
		s.Outcome = proposal.MoveUnanswered
		until := now.Add(policy.Backoff(name, o.reading.Failures+1, p))
		o.reading = o.reading.Missed(s.Err, until, now).Because(f.Reason)
		if inspect.Inventory {
			o.reading = o.reading.MissedParts(now)
		}
		if !reads && o.was.old != nil {
			s.Servers = append(s.Servers, o.was.old) // nothing was asked for
		}
	case o.asked != nil:
		s.Outcome = proposal.MoveFailed
		s.Servers = append(s.Servers, unsure(*o.asked, s.Err))
	case f.Kind == proposal.FailureUnrecorded:
		s.Outcome = proposal.MoveFailed
		o.reading = o.reading.Lost(s.Err, name, p, now)
	case arms:
		o.notArmed(s, arm, f, now)
	default:
		s.Outcome = proposal.MoveFailed
		rec := o.before()
		rec.Life.Failures++
		rec.Life.NotBefore = now.Add(policy.Backoff(name, rec.Life.Failures, p))
		rec.Life.LastError = s.Err
		s.Servers = append(s.Servers, rec)
	}
}

// notArmed notes why a boot could not be armed. That its image is being prepared is no failure.
func (o *outcome) notArmed(s *proposal.Settled, arm proposal.Arm, f *proposal.Failure, now time.Time) {
	if f.Reason == model.ReasonImagePreparing {
		s.Outcome = proposal.MovePreparing
		o.prepares(s, arm, f, now)
		return
	}
	s.Outcome = proposal.MoveFailed
	rec := o.before()
	rec.Boot.Problem = armProblem(rec.Boot.Problem, rec.Name, arm, f, now, *o.was.policy)
	s.Servers = append(s.Servers, rec)
}

// before is a copy of the record as it was; that of a new server is what it will be.
func (o *outcome) before() *model.ServerRecord {
	if o.was.old != nil {
		return new(*o.was.old)
	}
	return new(o.rec)
}

// overtaken notes that a machine's power has changed since the plan: nothing was asked
// for, and what is to be done now is thought over again.
func (o *outcome) overtaken(s *proposal.Settled, now time.Time) {
	facts := model.ServerFacts{Name: o.rec.Name}
	if o.facts != nil {
		facts = *o.facts
	}
	facts.Power = o.unmeant
	o.facts, o.learned = &facts, true
	if old := o.was.old; old != nil {
		o.reading = o.reading.Saw(o.unmeant, old.Power.Asked, o.was.policy.OffReadings, now)
		s.Servers = append(s.Servers, old)
	}
}

// unsure is the record after a power request of which nobody knows whether it was
// carried out. A restart is not asked for again (law 3).
func unsure(rec model.ServerRecord, err string) *model.ServerRecord {
	rec.Life.LastError = err
	if op := rec.Requests.Operation; op != nil && op.Outcome == "" && !op.AskedAt.IsZero() {
		lost := *op
		lost.Outcome, lost.Message = model.OutcomeUnknown, err
		rec.Requests.Operation = &lost
	}
	return &rec
}
