package reading

import (
	"time"

	"ingot/model"
	"ingot/reconcile/plan/policy"
)

// AwaitsOn reports whether a power-on was asked for that was not seen to take effect and
// still may: it takes one of the places of guard.maxConcurrentPowerOns.
func AwaitsOn(asked *model.PowerAsked, r State, p *policy.Options, now time.Time) bool {
	if asked == nil || asked.Want != model.PowerOn || asked.Reached || r.Reached || asked.At.After(now) {
		return false
	}
	limit := p.PowerOnLimit
	if asked.Unsure {
		limit = p.UnsureAfter
	}
	return now.Before(asked.At.Add(limit))
}
