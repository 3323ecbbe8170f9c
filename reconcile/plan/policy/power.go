package policy

import "time"

// PauseAfterForce is how long a server may take to go off that was forced to so many times.
func (p Options) PauseAfterForce(times int) time.Duration {
	return min(p.PowerOnLimit<<min(max(times-1, 0), 16), max(p.PowerOnLimit, p.PowerPauseMax))
}
