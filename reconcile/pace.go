package reconcile

import (
	"time"

	"golang.org/x/time/rate"
)

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

// pace limits the time that planning takes.
type pace struct {
	budget *rate.Limiter // in nanoseconds of planning
	at     time.Time     // when the last plan ended
}

func newPace() *pace {
	return &pace{budget: rate.NewLimiter(rate.Limit(time.Second/planShare), int(maxSavedUp))}
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
	saved := time.Duration(p.budget.TokensAt(now))
	// a longer plan than a pause can make up for does not delay the next ones
	took = min(took, saved+maxPause/planShare, maxSavedUp)
	p.budget.ReserveN(now, int(took))
	saved -= took
	next := pause{until(0, saved), until(keptBack, saved)}
	if since < 2*planEvery { // the fleet is busy
		next.most = max(next.most, planEvery-took)
	}
	return next
}

// until is the pause after which as much time as wanted is saved up.
func until(wanted, saved time.Duration) time.Duration {
	return min(max(wanted-saved, 0)*planShare, maxPause)
}
