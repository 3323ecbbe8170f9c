package reconcile

import "time"

// The rate of pushes. Forges want few requests: GitHub recommends at most six
// pushes a minute to one repository.
const (
	pushBurst    = 6
	pushEvery    = 10 * time.Second
	pushReserved = pushBurst / 2 // of the burst, for pushes that something waits for
)

// PushLimiter says when the status branch may be pushed next: six times at once, and
// every ten seconds in the long run. Half of the burst is kept for urgent pushes, so
// that a fleet with much to publish does not keep a server from being bound. The zero value
// has all of it. It is not for concurrent use.
type PushLimiter struct {
	full time.Time // when all of the burst is there again
	away time.Time // until then the server wants no push at all
}

// Next returns when a push may be made: now, or later.
func (l *PushLimiter) Next(now time.Time, urgent bool) time.Time {
	room := pushBurst
	if !urgent {
		room -= pushReserved
	}
	next := l.fullAt(now).Add(-time.Duration(room-1) * pushEvery)
	for _, t := range []time.Time{now, l.awayAt(now)} {
		if next.Before(t) {
			next = t
		}
	}
	return next
}

// Pushed notes a push, whatever came of it: the server was asked.
func (l *PushLimiter) Pushed(now time.Time) { l.full = l.fullAt(now).Add(pushEvery) }

// Postpone keeps even urgent pushes away for as long as the server asked for.
func (l *PushLimiter) Postpone(now time.Time, away time.Duration) {
	l.away = now.Add(min(away, maxPostponed))
}

// maxPostponed bounds how long a server may put off what is urgent.
const maxPostponed = 30 * time.Minute

// fullAt is full as it counts now. More than the burst cannot be missing: a clock that
// was set back does not make it so.
func (l *PushLimiter) fullAt(now time.Time) time.Time {
	if l.full.Before(now) {
		return now
	}
	if most := now.Add(pushBurst * pushEvery); l.full.After(most) {
		return most
	}
	return l.full
}

func (l *PushLimiter) awayAt(now time.Time) time.Time {
	if most := now.Add(maxPostponed); l.away.After(most) {
		return most
	}
	return l.away
}
