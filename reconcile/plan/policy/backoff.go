package policy

import (
	"hash/fnv"
	"time"
)

// Jitter is a number in [0, 1) that belongs to a name, so that fleets spread and
// tests repeat.
func Jitter[N ~string](name N) float64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return float64(h.Sum64()>>11) / (1 << 53)
}

// Backoff is the pause after so many failures in a row: doubled each time from
// the least to the most, less up to a quarter that belongs to the name.
func Backoff[N ~string](name N, failures int, p Options) time.Duration {
	d := p.BackoffMin
	for i := 1; i < failures && d < p.BackoffMax; i++ {
		d *= 2
	}
	d = min(d, p.BackoffMax)
	return d - time.Duration(float64(d)/4*Jitter(name))
}

// PauseEnd is the end of a recorded pause. A pause that ends later than longest from now was recorded by a
// clock that was ahead, and does not count.
func PauseEnd(recorded time.Time, longest time.Duration, now time.Time) time.Time {
	if recorded.After(now.Add(longest)) {
		return time.Time{}
	}
	return recorded
}
