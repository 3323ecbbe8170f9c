package reconcile

import "time"

// Planning takes a third of a core at most, however much happens. What was not planned
// for a while is saved up, so that a few plans in a row, such as those of one claim, need
// no pause.
const (
	planShare  = 3
	maxSavedUp = time.Second
	maxPause   = 250 * time.Millisecond
)

// pace says how long to pause after each plan.
type pace struct {
	savedUp time.Duration // of planning; less than 0 = there was too much
	at      time.Time     // when the last plan ended
}

// pause is how long to pause after a plan that took a time and ended now.
func (p *pace) pause(now time.Time, took time.Duration) time.Duration {
	since := took
	if !p.at.IsZero() {
		since = now.Sub(p.at)
	}
	p.at = now
	p.savedUp = min(p.savedUp+since/planShare, maxSavedUp) - took
	if p.savedUp >= 0 {
		return 0
	}
	pause := min(-p.savedUp*planShare, maxPause)
	p.savedUp = max(p.savedUp, -maxPause/planShare) // what a pause cannot make up for is let go
	return pause
}
