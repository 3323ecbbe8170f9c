package reconcile

import (
	"time"

	"golang.org/x/time/rate"
)

// The rate of pushes. Forges want few requests: GitHub recommends at most six
// pushes a minute to one repository.
const (
	pushBurst    = 6
	pushEvery    = 10 * time.Second
	pushReserved = pushBurst / 2 // of the burst, for pushes that something waits for
	// maxPostponed bounds how long a server may put off what is urgent.
	maxPostponed = 30 * time.Minute
)

// PushLimiter limits pushes of the status branch: six at once, and one every ten seconds in the long run.
// Half of the burst is kept for urgent pushes, so that a fleet with much to publish does not
// delay the binding of a server. It is not for concurrent use.
type PushLimiter struct {
	pushes *rate.Limiter
	away   time.Time // the server wants no push before
}

// NewPushLimiter returns a limiter with the whole burst.
func NewPushLimiter() *PushLimiter {
	return &PushLimiter{pushes: rate.NewLimiter(rate.Every(pushEvery), pushBurst)}
}

// Next returns when a push may be made: now, or later.
func (l *PushLimiter) Next(now time.Time, urgent bool) time.Time {
	missing := 1 - l.pushes.TokensAt(now)
	if !urgent {
		missing += pushReserved
	}
	wait := time.Duration(max(missing, 0) * float64(pushEvery)).Round(time.Millisecond)
	// a clock that was set back must not delay pushes for longer
	return now.Add(max(wait, min(l.away.Sub(now), maxPostponed)))
}

// Pushed notes a push, whatever its result: the server was asked. More pushes than allowed do not delay later ones.
func (l *PushLimiter) Pushed(now time.Time) {
	if l.pushes.TokensAt(now) > 0 {
		l.pushes.ReserveN(now, 1)
	}
}

// Postpone keeps even urgent pushes away for as long as the server asked for.
func (l *PushLimiter) Postpone(now time.Time, away time.Duration) {
	l.away = now.Add(min(away, maxPostponed))
}
