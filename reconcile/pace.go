package reconcile

import "time"

// In the long run planning takes at most a quarter of a core. A busy fleet has at most one plan per
// planEvery, for the results of all actions since the plan before. Urgent plans come sooner: after a
// new revision, before a push of a decision, after it, and between the steps of a claim. Unused
// time is saved up, half of it for urgent plans: the few plans of one claim need no pause.
const (
	planEvery  = 100 * time.Millisecond
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
	if since < 2*planEvery { // the fleet is busy
		next.most = max(next.most, planEvery-took)
	}
	p.spent = min(p.spent, maxSavedUp+maxPause/planShare) // what a pause cannot make up for is let go
	return next
}

// until is how long to pause until no more than this is spent.
func (p *pace) until(spent time.Duration) time.Duration {
	return min(max(p.spent-spent, 0)*planShare, maxPause)
}
