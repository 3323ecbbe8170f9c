package proposal

import (
	"time"

	"ingot/model"
)

// PauseAfterForce is how long a server may take to go off that was forced to so many times.
func (p Policy) PauseAfterForce(times int) time.Duration {
	return min(p.PowerOnLimit<<min(max(times-1, 0), 16), max(p.PowerOnLimit, p.PowerPauseMax))
}

// AwaitsOn reports whether a power-on was asked for that was not seen to take effect and
// still may: it takes one of the places of guard.maxConcurrentPowerOns.
func AwaitsOn(asked *model.PowerAsked, r Reading, p *Policy, now time.Time) bool {
	if asked == nil || asked.Want != model.PowerOn || asked.Reached || r.Reached || asked.At.After(now) {
		return false
	}
	limit := p.PowerOnLimit
	if asked.Unsure {
		limit = p.UnsureAfter
	}
	return now.Before(asked.At.Add(limit))
}
