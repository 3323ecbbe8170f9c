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

// Backoff is the pause after a number of failures in a row: it doubles each time from the least to
// the most, minus up to a quarter that depends on the name.
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

// PauseAfterForce is how long a server may take to go off that was forced off n times.
func (p Options) PauseAfterForce(n int) time.Duration {
	return min(p.PowerOnLimit<<min(max(n-1, 0), 16), max(p.PowerOnLimit, p.PowerPauseMax))
}

// PauseAfter is the pause after a server was powered on again n times in a row.
func (p Options) PauseAfter(n int) time.Duration {
	if n == 0 {
		return 0
	}
	return min(p.PowerPause<<min(n-1, 16), p.PowerPauseMax)
}
