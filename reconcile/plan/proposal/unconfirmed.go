package proposal

import (
	"time"

	"ingot/model"
)

// AskedToBoot is when the server was last seen to ask for a network boot, zero = never.
// Others may have asked in its name: then it waits longer.
func AskedToBoot(p *model.Progress) (at time.Time) {
	if p == nil {
		return at
	}
	for _, u := range p.Uses {
		if (u.What == model.ThingScript || u.What == model.ThingBootFile) && u.Refusal != model.RefusedAddress && !u.Refusal.Untold() {
			at = Later(at, u.Last)
		}
	}
	return at
}

// Later is the later of two times.
func Later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
