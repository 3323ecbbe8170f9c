package reconcile

import (
	"sync"
	"time"

	"ingot/reconcile/plan"
	"ingot/reconcile/plan/world"
)

// Snapshot is what a plan looked at and what came of it. All who show the fleet read it,
// so that nobody plans a second time to say why each object is where it is.
type Snapshot struct {
	// In has the records as the store has them: a move that is under way may never come
	// to be, and the status branch must not say that it did.
	In *world.Input
	// Result is what was planned for In; nil where the loop planned for other records
	// instead, those that moves under way will leave.
	Result *plan.Result
}

// lateAfter is how long after something was saved, or was due, a plan may come. The
// snapshot before it is not taken for what is so any longer.
const lateAfter = 5 * time.Second

// snapshots keep the newest snapshot, and what it may not show yet.
type snapshots struct {
	mu     sync.Mutex
	newest *Snapshot
	due    time.Time // when newest is to be planned anew; zero = not by time
	saved  saved
	run    chan struct{} // closed once the newest run has ended; nil = there was none
	shown  chan struct{} // closed with the next snapshot; nil = nobody waits for one
}

// saved says that something was saved, or has changed, which a snapshot may not show.
type saved struct {
	since  time.Time // zero = nothing was
	urgent bool      // something waits for the status branch to show it
}

func (s *snapshots) note(now time.Time, urgent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.saved.since.IsZero() {
		s.saved.since = now
	}
	s.saved.urgent = s.saved.urgent || urgent
}

// take returns what was saved and takes the mark away. It is called before the store is
// read: a plan of what is read then shows all of it.
func (s *snapshots) take() saved {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.saved
	s.saved = saved{}
	return taken
}

// keep replaces the newest snapshot; nil = readers have to plan for themselves.
func (s *snapshots) keep(newest *Snapshot, due time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest, s.due = newest, due
	if s.shown != nil {
		close(s.shown)
		s.shown = nil
	}
}

// next returns a channel that is closed with the next snapshot, or once there is none.
func (s *snapshots) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown == nil {
		s.shown = make(chan struct{})
	}
	return s.shown
}

// current returns the newest snapshot, nil when a plan is late.
func (s *snapshots) current(now time.Time) *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range []time.Time{s.saved.since, s.due} {
		if !t.IsZero() && now.Sub(t) > lateAfter {
			return nil
		}
	}
	return s.newest
}

// begin notes that a run begins, and returns what notes that it has ended.
func (s *snapshots) begin() (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	run := make(chan struct{})
	s.run = run
	return func() { close(run) }
}

// ended returns a channel that is closed once the newest run has ended; nil when there
// was none.
func (s *snapshots) ended() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.run
}

// Snapshot returns that of the last plan. It is nil where there is none that shows what
// is so now: the loop does not run or may not act, what it plans for is another, or its
// plan is late. Whoever asks has to plan then, and to carry nothing out.
func (l *Loop) Snapshot() *Snapshot {
	s := l.snapshots.current(l.Clock())
	if s == nil || !l.isCurrent(s.In) {
		return nil
	}
	return s
}

// Shown returns a channel that is closed once there may be something new to show. Who shows
// the fleet as it changes takes it before it looks.
func (l *Loop) Shown() <-chan struct{} { return l.snapshots.next() }

// isCurrent reports whether what is desired, and what this process may do, is still what
// was planned with.
func (l *Loop) isCurrent(in *world.Input) bool {
	return in.Desired == l.Desired() && State{in.ObserveOnly, in.HealOnly, in.Serving, in.LongGap} == l.state()
}

// show keeps a snapshot that shows what was saved, or none, and only then has the
// publisher look: a signal before would have it publish what was so before.
func (l *Loop) show(s *Snapshot, due time.Time, was saved) {
	l.snapshots.keep(s, due)
	if was.since.IsZero() {
		return
	}
	if was.urgent {
		signal(l.urgent) // first, or what it is about would be published as if it could wait
	}
	signal(l.dirty)
}

// changed has the loop plan for what was saved, and the publisher look once it did.
func (l *Loop) changed() {
	l.snapshots.note(l.Clock(), false)
	l.Wake()
}

// hurry is changed for what something waits for: the status branch is pushed at once.
func (l *Loop) hurry() {
	if l.Policy.ShowFirst {
		l.snapshots.note(l.Clock(), true)
		signal(l.soon)
	}
}
