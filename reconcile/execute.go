package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"ingot/model"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/bmcs"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/world"
)

// job is one move being carried out.
type job struct {
	name  model.ServerName
	old   *model.ServerRecord // nil for a new server
	round uint64              // of the plan that wanted the move
	again bool                // the server failed when last tried
	*plan.Move
}

func (l *Loop) start(ctx context.Context, in *world.Input, name model.ServerName, m *plan.Move) {
	j := &job{name: name, old: in.Observed.Servers[name], again: in.Readings[name].Failures > 0, Move: m}
	l.mu.Lock()
	l.busy[name], j.round = m.Then, l.round
	l.mu.Unlock()
	l.run(ctx, j)
}

// queue is what may be begun between two plans.
type queue struct {
	moves []plan.QueuedMove
	in    *world.Input // that they were planned for
}

// startQueued begins a move that waited for a place, unless the next plan is under way or
// would begin with something else.
func (l *Loop) startQueued(ctx context.Context) {
	l.mu.Lock()
	q := &l.queue
	if len(q.moves) == 0 || ctx.Err() != nil || !l.isCurrent(q.in) {
		l.mu.Unlock()
		return
	}
	m := q.moves[0]
	q.moves = q.moves[1:]
	j := &job{name: m.Name, old: q.in.Observed.Servers[m.Name], Move: m.Move, round: l.round}
	l.busy[m.Name] = m.Then
	l.mu.Unlock()
	l.run(ctx, j)
}

func (l *Loop) run(ctx context.Context, j *job) {
	l.moves.Go(func() {
		s := l.work(ctx, j)
		saved := l.keep(ctx, j, &s)
		if look, after, ok := j.Look(&s); ok && saved && sleep(ctx, after) {
			j.old, j.Move = look.Then, look
			s = l.work(ctx, j)
			l.keep(ctx, j, &s)
		}
		passedOver := l.release(j)
		if s.PoweredOn {
			l.startQueued(ctx)
		}
		if s.News || passedOver {
			l.Wake()
		}
	})
}

// work carries a move out once there is a worker for it, and returns what became of it.
func (l *Loop) work(ctx context.Context, j *job) proposal.Settled {
	release := l.workers.acquire(ctx, j.again)
	defer release()
	ctx, cancel := context.WithTimeout(ctx, moveLimit)
	defer cancel()
	s := j.Settle(l.carryOut(ctx, j), l.Clock())
	l.logOutcome(j, &s)
	return s
}

// carryOut does a move's actions and returns their answers, up to the last that was begun.
func (l *Loop) carryOut(ctx context.Context, j *job) (answers []proposal.Answer) {
	for a, ok := j.Next(nil); ok; a, ok = j.Next(answers) {
		if l.Leading != nil && !l.Leading() {
			break
		}
		start := l.Clock()
		answer, err := l.do(ctx, j, a, answers)
		answer.At, answer.Failed = l.Clock(), failure(err, stopped(ctx, err))
		l.Metrics.acted(a, answer.At.Sub(start), answer.Failed)
		answers = append(answers, answer)
	}
	return answers
}

// stopped reports whether what failed did because Ingot is being stopped.
func stopped(ctx context.Context, err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(ctx.Err(), context.Canceled)
}

func (l *Loop) do(ctx context.Context, j *job, a proposal.Action, before []proposal.Answer) (answer proposal.Answer, err error) {
	switch a := a.(type) {
	case proposal.Inspect:
		return l.inspect(ctx, j, a)
	case proposal.Arm:
		answer.Ticket, answer.Payload, err = l.Boots.Arm(ctx, a.Boot)
	case proposal.BootOnce:
		answer.Variant, err = l.BMCs.BootOnce(ctx, j.Target, a.Method)
	case proposal.DiskOnce:
		_, err = l.BMCs.BootOnce(ctx, j.Target, model.BootDisk)
		j.logNoDisk(l.Log, failure(err, stopped(ctx, err)))
	case proposal.ClearBoot:
		err = l.BMCs.ClearBootOverride(ctx, j.Target)
	case proposal.SetIndicator:
		answer.Indicator, err = l.BMCs.SetIndicator(ctx, j.Target, a.To)
		j.logSetting(l.Log, a, failure(err, stopped(ctx, err)))
	case proposal.SetBootOrder:
		answer.BootOrder, err = l.BMCs.SetBootOrder(ctx, j.Target, a.Wanted)
		j.logSetting(l.Log, a, failure(err, stopped(ctx, err)))
	case proposal.SetPower:
		answer.Reset, err = l.setPower(ctx, j, a, before)
	default:
		panic(fmt.Sprintf("unhandled action %T", a))
	}
	return answer, err
}

// setPower makes one power request, which is recorded before it is made.
func (l *Loop) setPower(ctx context.Context, j *job, a proposal.SetPower, before []proposal.Answer) (model.ResetResult, error) {
	err := ctx.Err()
	if err == nil {
		err = l.Store.Save(ctx, j.BeforeAsking(before))
	}
	if err != nil {
		return model.ResetResult{}, fmt.Errorf("%w: %w", errNotSaved, err)
	}
	l.Log.Info("power request", "server", j.name, "action", a.Reset, "state", j.Then.Life.State, "claim", j.Then.Claim.Name)
	return l.BMCs.Reset(ctx, j.Target, a.Reset, a.From)
}

// inspect reads power, and the inventory if it is asked for, and of a server that was
// found running when its lease was last renewed.
func (l *Loop) inspect(ctx context.Context, j *job, a proposal.Inspect) (answer proposal.Answer, err error) {
	if a.Inventory {
		answer.Facts, err = l.BMCs.Inventory(ctx, j.Target)
	} else {
		var s model.MachineState
		s, err = l.BMCs.Power(ctx, j.Target)
		answer.Facts, answer.POST = &model.ServerFacts{Power: s.Power}, s.POST
	}
	if err != nil || l.Leased == nil {
		return answer, err
	}
	if macs := j.Addresses(answer.Facts.Inventory); len(macs) > 0 {
		answer.Leased = l.Leased(macs)
	}
	return answer, nil
}

// logNoDisk logs that a BMC sets no one-time boot from disk.
func (j *job) logNoDisk(log *slog.Logger, f *proposal.Failure) {
	switch log = log.With("server", j.name, "bmc", j.Then.BMC); {
	case f == nil || f.Kind == proposal.FailureStopped:
	case f.Lasting():
		log.Warn("BMC cannot set a one-time boot from disk, the boot order decides from now on", "err", f.Text)
	default:
		log.Warn("one-time boot from disk not set, the boot order decides", "err", f.Text)
	}
}

// logSetting logs whether a setting of the firmware was made.
func (j *job) logSetting(log *slog.Logger, a proposal.Action, f *proposal.Failure) {
	switch log = log.With("server", j.name, "bmc", j.Then.BMC, "setting", a.String()); {
	case f == nil:
		log.Info("setting is as Git says")
	case f.Kind != proposal.FailureStopped:
		log.Warn("setting is not as Git says", "err", f.Text)
	}
}

func (l *Loop) logOutcome(j *job, s *proposal.Settled) {
	log := l.Log.With("server", j.name, "bmc", j.Then.BMC)
	switch s.Outcome {
	case proposal.MoveDone:
		for _, rec := range s.Servers {
			logTransition(l.Log, j.old, rec)
		}
	case proposal.MoveStopped:
	case proposal.MoveOvertaken:
		log.Info("power has changed in the meantime, no request is made", "power", s.ServerFacts[0].Power)
	case proposal.MovePreparing:
		log.Debug("what the server is to boot is being prepared", "progress", s.Err)
	case proposal.MoveNoShutdown:
		log.Info("machine supports no graceful shutdown, it is forced off", "err", s.Err)
	case proposal.MoveUnanswered:
		l.Metrics.failed()
		if s.Reading.Failures == 1 {
			log.Warn("BMC gives no usable answer", "err", s.Err)
		}
	case proposal.MoveFailed:
		l.Metrics.failed()
		log.Warn("move failed", "state", j.Then.Life.State, "err", s.Err)
	}
}

// keep saves what became of a move and notes what was read, and reports whether it is on
// record.
func (l *Loop) keep(ctx context.Context, j *job, s *proposal.Settled) (saved bool) {
	reading := s.Reading
	err := l.save(ctx, s.Changes, "server", string(j.name))
	if err != nil {
		// What is not on record would be asked for again at once.
		reading = reading.Lost("what was done could not be saved: "+err.Error(), j.name, l.Policy, l.Clock())
	} else if len(s.Servers) > 0 {
		reading.Unsaved = 0
		if s.Outcome == proposal.MoveDone && tellsMore(j.old, s.Servers[0]) {
			l.hurry()
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.readings[j.name].Shown(l.Policy) != reading.Shown(l.Policy) {
		l.changed()
	}
	l.readings[j.name], l.snapshot = reading, nil
	l.busy[j.name] = nil // what it decided is on record, or is not to be
	return err == nil
}

// release ends a job, and reports whether a plan may have passed the server over
// meanwhile, because it was busy.
func (l *Loop) release(j *job) (passedOver bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.busy, j.name)
	return l.round != j.round
}

// save writes changes, and says so to the publisher. What cannot be saved is
// planned again from what is stored.
func (l *Loop) save(ctx context.Context, c proposal.Changes, kind, name string) error {
	if len(c.Servers)+len(c.BMCs)+len(c.BMCFacts)+len(c.ServerFacts)+len(c.Endpoints) == 0 {
		return nil
	}
	// The outcome of an effect is saved even while Ingot is being stopped.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := l.Store.Save(ctx, c); err != nil {
		l.Log.Error("outcome not saved, it is checked again", kind, name, "err", err)
		return err
	}
	l.changed()
	return nil
}

func (l *Loop) startBMC(ctx context.Context, in *world.Input, name model.BMCName, m *bmcs.Reading) {
	old := in.Observed.BMCs[name]
	l.mu.Lock()
	l.busyBMCs[name] = true
	l.mu.Unlock()
	l.moves.Go(func() {
		defer l.Wake()
		release := l.workers.acquire(ctx, m.Then.Failures > 0)
		defer release()
		limited, cancel := context.WithTimeout(ctx, moveLimit)
		defer cancel()
		facts, err := l.BMCs.Discover(limited, m.Target)
		answer := proposal.Answer{At: l.Clock(), BMC: facts, Failed: failure(err, ctx.Err() != nil)}
		believed := err != nil || l.confirmed(facts, l.Store.Observed())
		if believed && l.finishBMC(ctx, old, m, answer) != nil {
			sleep(ctx, l.Policy.BackoffMin) // what is not on record would be read again at once
		}
		l.mu.Lock()
		delete(l.sightings, name)
		switch {
		case !believed:
			l.sightings[name] = sighting{l.Clock(), facts.Systems}
			l.Log.Warn("BMC shows different systems than before, it is read again", "bmc", name)
		case err == nil:
			l.bmcRead[name], l.bmcsSeen = l.Clock(), nil
		}
		delete(l.busyBMCs, name)
		l.mu.Unlock()
	})
}

// finishBMC saves what became of the reading of one BMC.
func (l *Loop) finishBMC(ctx context.Context, old *model.BMCRecord, m *bmcs.Reading, a proposal.Answer) error {
	s := m.Settle(a, l.Clock())
	log, credential := l.Log.With("bmc", m.Then.Name), len(s.Endpoints) > 0
	switch s.Outcome {
	case proposal.MoveDone:
		if credential {
			log.Info("BMC accepts default credentials", "credential", m.Credential)
		}
	case proposal.MoveFailed:
		if reason := s.BMCs[0].Reason; old == nil || old.Reason != reason {
			log.Warn("BMC cannot be used", "reason", reason, "err", s.Err)
		}
		if credential {
			log.Warn("BMC refuses default credentials", "credential", m.Credential)
		}
	case proposal.MoveStopped, proposal.MoveOvertaken, proposal.MoveNoShutdown, proposal.MoveUnanswered, proposal.MovePreparing:
	}
	return l.save(ctx, s.Changes, "bmc", string(m.Then.Name))
}
