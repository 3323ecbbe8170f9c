package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ingot/model"
	"ingot/reconcile"
	"ingot/reconcile/truth"
)

// orNew is an ID, made at random where there is none.
func orNew(id string) string {
	if id == "" {
		return strings.ToLower(rand.Text())
	}
	return id
}

// mark changes what the store knows of the status branch.
func (d *daemon) mark(ctx context.Context, change func(*model.Marks)) error {
	d.marking.Lock()
	defer d.marking.Unlock()
	marks := d.registry.Observed().Marks
	marks.Pushing = slices.Clone(marks.Pushing)
	change(&marks)
	return d.registry.SaveMarks(ctx, marks)
}

// maxPushing is how many pushes are noted whose answer is not known.
const maxPushing = 200

// pushing notes a push before it is sent, because its answer may be lost, and returns its mark. An older
// copy of the store, which lacks the note, has no commit of that number either.
func (d *daemon) pushing(ctx context.Context, m model.Mark) (model.Mark, error) {
	d.marking.Lock()
	defer d.marking.Unlock()
	m.Push = orNew("")
	return d.registry.NotePush(ctx, func(marks *model.Marks, number uint64) {
		m.Sequence = number
		if marks.Base.Process != d.holder.ID {
			marks.Opened = d.clock()
		}
		marks.Pushing = append(slices.Clone(marks.Pushing[max(0, len(marks.Pushing)-maxPushing+1):]), m)
	})
}

// pushed notes that the branch shows what was pushed.
func (d *daemon) pushed(ctx context.Context, m model.Mark) error {
	if marks := d.registry.Observed().Marks; marks.Base == m && len(marks.Pushing) == 0 {
		return nil
	}
	return d.mark(ctx, func(marks *model.Marks) { marks.Base, marks.Pushing = m, nil })
}

// errMoved is returned for a head that came after this process had compared store and status branch,
// and before its first commit.
var errMoved = fmt.Errorf("%w: it was written while this process started", reconcile.ErrFenced)

// checkHead decides what to do about a head of the status branch that this process neither read
// at its start nor is known to have pushed. An error keeps it from being overwritten.
func (d *daemon) checkHead(ctx context.Context, h model.BranchHead) error {
	marks := d.registry.Observed().Marks
	if marks.Ended {
		return fmt.Errorf("%w: process %s has taken over", reconcile.ErrFenced, h.Process)
	}
	next := truth.Watch(marks, d.holder.ID, marks.Base.Process == d.holder.ID, h)
	if next != truth.GoOn {
		d.log.Warn("the status branch is not what this Ingot pushed last", "next", string(next), "head", h.Sequence, "process", h.Process, "base", marks.Base.Sequence)
	}
	switch next {
	case truth.GoOn:
		return nil
	case truth.Note:
		return d.pushed(ctx, h.Mark)
	case truth.Overwrite:
		d.observe()
		d.marking.Lock()
		defer d.marking.Unlock()
		marks := d.registry.Observed().Marks
		marks.Continues = truth.Continues(marks, h)
		return d.registry.Adopt(ctx, nil, false, marks, h.Sequence)
	case truth.Again:
		return errMoved
	case truth.End:
	}
	d.end(ctx, h)
	return fmt.Errorf("%w: process %s has written the status branch, and knows what this one pushed", reconcile.ErrFenced, h.Process)
}

// end notes that another process has taken over, which has judged what this one pushed. Processes
// that share a store have one deployment, and it goes on.
func (d *daemon) end(ctx context.Context, h model.BranchHead) {
	marks := d.registry.Observed().Marks
	if h.Line != marks.Base.Line || d.opts.Redis.URL != "" && h.Deployment == marks.Deployment {
		return
	}
	err := d.mark(ctx, func(m *model.Marks) {
		m.Deployment, m.Base, m.Pushing = orNew(""), h.Mark, nil
		m.Continues, m.Ended = max(m.Continues, h.Sequence), true
	})
	if err != nil {
		d.log.Error("it is not noted in the store that another Ingot has taken over", "err", err)
	}
}

// maxLookInterval bounds how long another process with a copy of the store may not see this one's commits.
const maxLookInterval = 5 * time.Minute

// lookInterval is how often the status branch is polled.
func (d *daemon) lookInterval() time.Duration { return min(d.opts.Git.Interval, maxLookInterval) }

// watch polls the status branch, and notes every five minutes that this process lives.
func (d *daemon) watch(ctx context.Context) error {
	for sleep(ctx, d.lookInterval()) == nil {
		err := d.status.Look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errMoved):
			return err
		case errors.Is(err, reconcile.ErrFenced):
			d.registry.Lead.End() // before the next request to a BMC
			return err
		case err != nil:
			d.log.Warn("status branch cannot be read", "err", err)
			d.loop.Wake() // what may be done depends on when it was seen last
		default:
			d.sighted()
		}
		if d.clock().Sub(d.registry.Observed().Marks.Alive) >= aliveEvery {
			if err := d.mark(ctx, func(m *model.Marks) { m.Alive = d.clock() }); err != nil {
				d.log.Warn("it is not noted in the store that this process lives", "err", err)
			}
		}
	}
	return nil
}

// aliveEvery is how often a process notes that it lives.
const aliveEvery = maxLookInterval

// observe has this process do nothing but restore power until its next commit has been on the status
// branch for two polls: one that has a copy of its store sees it meanwhile, and ends.
func (d *daemon) observe() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.observing, d.observeFrom = true, time.Time{}
}

// seen notes that a commit of this process is on the status branch.
func (d *daemon) seen() {
	d.sighted()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.observing && d.observeFrom.IsZero() {
		d.observeFrom = d.clock()
		time.AfterFunc(2*d.lookInterval(), d.observed)
	}
}

// observed ends observing, unless that began again.
func (d *daemon) observed() {
	d.mu.Lock()
	if d.observing = d.observing && (d.observeFrom.IsZero() || d.clock().Before(d.observeFrom.Add(2*d.lookInterval()))); !d.observing {
		d.observeFrom = time.Time{}
	}
	d.mu.Unlock()
	d.loop.Wake()
}

// sighted notes that the status branch was seen to be this Ingot's.
func (d *daemon) sighted() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seenAt = d.clock()
}

// setState sets what this process may do, and has it planned with.
func (d *daemon) setState(s reconcile.State) {
	d.mu.Lock()
	d.state = s
	d.mu.Unlock()
	d.loop.Wake()
}

// present returns what the plan has to know of this process now. Without a shared store another
// process may act once it has not seen the branch for two polls.
func (d *daemon) present() reconcile.State {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.state
	s.Serving = d.serving
	switch blind := d.opts.Redis.URL == "" && !d.seenAt.IsZero() && d.clock().Sub(d.seenAt) > 2*d.lookInterval(); {
	case s.ObserveOnly != "" || s.HealOnly != "":
	case d.observing:
		s.HealOnly = "another Ingot may act with a copy of this one's store: waiting until it must have seen this one's commit on the status branch"
	case blind:
		s.HealOnly = "the status branch was not seen since " + d.seenAt.UTC().Format(time.RFC3339) + ", and another Ingot may have taken over; see the check status of /readyz"
	}
	return s
}

// servesNow notes that machines can boot from this process from now on.
func (d *daemon) servesNow() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.serving.IsZero() {
		d.serving = d.clock()
	}
}

// permit is asked before each request that changes a machine: an Ingot that no longer
// leads, or that cannot record what it does, makes none.
func (d *daemon) permit(ctx context.Context, _ model.BMCTarget, _ string) error {
	if err := d.registry.Lead.Healthy(); err != nil {
		return fmt.Errorf("nothing is asked for while the store is not healthy: %w", err)
	}
	if !d.registry.Lead.Leading() {
		return errors.New("nothing is asked for by an Ingot that does not lead")
	}
	return d.registry.Confirm(ctx)
}
