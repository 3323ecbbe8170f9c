package proposal

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
func Backoff[N ~string](name N, failures int, p Policy) time.Duration {
	d := p.BackoffMin
	for i := 1; i < failures && d < p.BackoffMax; i++ {
		d *= 2
	}
	d = min(d, p.BackoffMax)
	return d - time.Duration(float64(d)/4*Jitter(name))
}
