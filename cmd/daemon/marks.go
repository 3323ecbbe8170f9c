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
func (l *leader) mark(ctx context.Context, change func(*model.Marks)) error {
	l.marking.Lock()
	defer l.marking.Unlock()
	marks := l.registry.Observed().Marks
	marks.Pushing = slices.Clone(marks.Pushing)
	change(&marks)
	return l.registry.SaveMarks(ctx, marks)
}

// maxPushing is how many pushes are noted whose answer is not known.
const maxPushing = 200

// pushing notes a push before it is sent, because its answer may be lost, and returns its mark. An older
// copy of the store, which lacks the note, has no commit of that number either.
func (l *leader) pushing(ctx context.Context, m model.Mark) (model.Mark, error) {
	l.marking.Lock()
	defer l.marking.Unlock()
	m.Push = orNew("")
	return l.registry.NotePush(ctx, func(marks *model.Marks, number uint64) {
		m.Sequence = number
		if marks.Base.Process != l.holder.ID {
			marks.Opened = l.clock()
		}
		marks.Pushing = append(slices.Clone(marks.Pushing[max(0, len(marks.Pushing)-maxPushing+1):]), m)
	})
}

func (l *leader) pushed(ctx context.Context, m model.Mark) error {
	if marks := l.registry.Observed().Marks; marks.Base == m && len(marks.Pushing) == 0 {
		return nil
	}
	return l.mark(ctx, func(marks *model.Marks) { marks.Base, marks.Pushing = m, nil })
}

// errMoved is returned for a head that came after this process had compared store and status branch,
// and before its first commit.
var errMoved = fmt.Errorf("%w: it was written while this process started", reconcile.ErrFenced)

// checkHead decides what to do about a head of the status branch that this process neither read
// at its start nor is known to have pushed. An error keeps it from being overwritten.
func (l *leader) checkHead(ctx context.Context, h model.BranchHead) error {
	marks := l.registry.Observed().Marks
	if marks.Ended {
		return fmt.Errorf("%w: process %s has taken over", reconcile.ErrFenced, h.Process)
	}
	next := truth.Watch(marks, l.holder.ID, marks.Base.Process == l.holder.ID, h)
	if next != truth.GoOn {
		l.log.Warn("the status branch is not what this Ingot pushed last", "next", string(next), "head", h.Sequence, "process", h.Process, "base", marks.Base.Sequence)
	}
	switch next {
	case truth.GoOn:
		return nil
	case truth.Note:
		return l.pushed(ctx, h.Mark)
	case truth.Overwrite:
		l.observe()
		l.marking.Lock()
		defer l.marking.Unlock()
		marks := l.registry.Observed().Marks
		marks.Continues = truth.Continues(marks, h)
		return l.registry.Adopt(ctx, nil, false, marks, h.Sequence)
	case truth.Again:
		return errMoved
	case truth.End:
	}
	l.end(ctx, h)
	return fmt.Errorf("%w: process %s has written the status branch, and knows what this one pushed", reconcile.ErrFenced, h.Process)
}

// end notes that another process has taken over, which has judged what this one pushed. Processes
// that share a store have one deployment, and it goes on.
func (l *leader) end(ctx context.Context, h model.BranchHead) {
	marks := l.registry.Observed().Marks
	if h.Line != marks.Base.Line || l.opts.Redis.URL != "" && h.Deployment == marks.Deployment {
		return
	}
	err := l.mark(ctx, func(m *model.Marks) {
		m.Deployment, m.Base, m.Pushing = orNew(""), h.Mark, nil
		m.Continues, m.Ended = max(m.Continues, h.Sequence), true
	})
	if err != nil {
		l.log.Error("it is not noted in the store that another Ingot has taken over", "err", err)
	}
}

// maxLookInterval bounds how long another process with a copy of the store may not see this one's commits.
const maxLookInterval = 5 * time.Minute

// lookInterval is how often the status branch is polled.
func (l *leader) lookInterval() time.Duration { return min(l.opts.Git.Interval, maxLookInterval) }

// watch polls the status branch, and notes every five minutes that this process lives.
func (l *leader) watch(ctx context.Context) error {
	for sleep(ctx, l.lookInterval()) == nil {
		err := l.status.Look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errMoved):
			return err
		case errors.Is(err, reconcile.ErrFenced):
			l.registry.Lead.End() // before the next request to a BMC
			return err
		case err != nil:
			l.log.Warn("status branch cannot be read", "err", err)
			l.loop.Wake() // what may be done depends on when it was seen last
		default:
			l.sighted()
		}
		if l.clock().Sub(l.registry.Observed().Marks.Alive) >= aliveEvery {
			if err := l.mark(ctx, func(m *model.Marks) { m.Alive = l.clock() }); err != nil {
				l.log.Warn("it is not noted in the store that this process lives", "err", err)
			}
		}
	}
	return nil
}

// aliveEvery is how often a process notes that it lives.
const aliveEvery = maxLookInterval

// observe has this process do nothing but restore power until its next commit has been on the status
// branch for two polls: one that has a copy of its store sees it meanwhile, and ends.
func (l *leader) observe() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.observing, l.observeFrom = true, time.Time{}
}

// seen notes that a commit of this process is on the status branch.
func (l *leader) seen() {
	l.sighted()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.observing && l.observeFrom.IsZero() {
		l.observeFrom = l.clock()
		time.AfterFunc(2*l.lookInterval(), l.observed)
	}
}

// observed ends observing, unless that began again.
func (l *leader) observed() {
	l.mu.Lock()
	if l.observing = l.observing && (l.observeFrom.IsZero() || l.clock().Before(l.observeFrom.Add(2*l.lookInterval()))); !l.observing {
		l.observeFrom = time.Time{}
	}
	l.mu.Unlock()
	l.loop.Wake()
}

// sighted notes that the status branch was seen to be this Ingot's.
func (l *leader) sighted() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seenAt = l.clock()
}

// setState sets what this process may do, and has it planned with.
func (l *leader) setState(s reconcile.State) {
	l.mu.Lock()
	l.state = s
	l.mu.Unlock()
	l.loop.Wake()
}

// present returns what the plan has to know of this process now. Without a shared store another
// process may act once it has not seen the branch for two polls.
func (l *leader) present() reconcile.State {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.state
	s.Serving = l.serving
	switch blind := l.opts.Redis.URL == "" && !l.seenAt.IsZero() && l.clock().Sub(l.seenAt) > 2*l.lookInterval(); {
	case s.ObserveOnly != "" || s.HealOnly != "":
	case l.observing:
		s.HealOnly = "another Ingot may act with a copy of this one's store: waiting until it must have seen this one's commit on the status branch"
	case blind:
		s.HealOnly = "the status branch was not seen since " + l.seenAt.UTC().Format(time.RFC3339) + ", and another Ingot may have taken over; see the check status of /readyz"
	}
	return s
}

// servesNow notes that machines can boot from this process from now on.
func (l *leader) servesNow() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.serving.IsZero() {
		l.serving = l.clock()
	}
}

// permit is asked before each request that changes a machine: an Ingot that no longer
// leads, or that cannot record what it does, makes none.
func (l *leader) permit(ctx context.Context, _ model.BMCTarget, _ string) error {
	if err := l.registry.Lead.Healthy(); err != nil {
		return fmt.Errorf("nothing is asked for while the store is not healthy: %w", err)
	}
	if !l.registry.Lead.Leading() {
		return errors.New("nothing is asked for by an Ingot that does not lead")
	}
	return l.registry.Confirm(ctx)
}
