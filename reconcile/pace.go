package reconcile

import "time"

// Planning takes a quarter of a core at most in the long run, however much happens. What was
// not planned for a while is saved up, and half of that is kept for plans that something
// waits for: a new revision, a decision that the status branch is to show, or a step that
// the branch shows by now. So the few plans of one claim need no pause between them.
const (
	planShare  = 4
	maxSavedUp = time.Second
	keptBack   = maxSavedUp / 2
	maxPause   = 400 * time.Millisecond
)

// pace says how long to pause after each plan.
type pace struct {
	spent time.Duration // of maxSavedUp; more than that = there was too much planning
	at    time.Time     // when the last plan ended
}

// pause is how long to pause before the next plan: at least, and at most while nothing
// waits for it.
type pause struct{ least, most time.Duration }

// pause is that after a plan that took a time and ended now.
func (p *pace) pause(now time.Time, took time.Duration) pause {
	since := took
	if !p.at.IsZero() {
		since = now.Sub(p.at)
	}
	p.at = now
	p.spent = max(p.spent-since/planShare, 0) + took
	next := pause{p.until(maxSavedUp), p.until(maxSavedUp - keptBack)}
	p.spent = min(p.spent, maxSavedUp+maxPause/planShare) // what a pause cannot make up for is let go
	return next
}

// until is how long to pause until no more than this is spent.
func (p *pace) until(spent time.Duration) time.Duration {
	return min(max(p.spent-spent, 0)*planShare, maxPause)
}
