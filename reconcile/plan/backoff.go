package plan

import (
	"hash/fnv"
	"time"
)

// jitter is a number in [0, 1) that belongs to a name, so that fleets spread and
// tests repeat.
func jitter[N ~string](name N) float64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return float64(h.Sum64()>>11) / (1 << 53)
}

// pauseEnd is when a pause that was noted ends. One that lasts longer than any was noted by a clock
// that was ahead, and is none.
func (f *fleet) pauseEnd(noted time.Time, longest time.Duration) time.Time {
	if noted.After(f.in.Now.Add(longest)) {
		return time.Time{}
	}
	return noted
}

// notBefore is when the server's next attempt may be made after one that failed.
func (s *server) notBefore() time.Time {
	return s.fleet.pauseEnd(s.rec.Life.NotBefore, s.fleet.in.Policy.BackoffMax)
}

// notedAt is when what was noted took place: the start of this process, if the clock that noted it was
// ahead of the present one.
func (s *server) notedAt(noted time.Time) time.Time {
	if noted.After(s.now()) {
		return s.fleet.in.Started
	}
	return noted
}

// Backoff is the pause after so many failures in a row: doubled each time from
// the least to the most, less up to a quarter that belongs to the name.
func Backoff[N ~string](name N, failures int, p Policy) time.Duration {
	d := p.BackoffMin
	for i := 1; i < failures && d < p.BackoffMax; i++ {
		d *= 2
	}
	d = min(d, p.BackoffMax)
	return d - time.Duration(float64(d)/4*jitter(name))
}
