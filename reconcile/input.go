package reconcile

import (
	"hash/fnv"
	"time"

	"ingot/model"
)

// Input is all that Plan and Status look at. Nobody changes what it points to.
type Input struct {
	Desired  *model.Desired
	Observed *model.Observed
	// Readings are what was last read of each server's power in this process.
	Readings map[model.ServerName]Reading
	// BMCRead is when each BMC's own facts were last read in this process.
	BMCRead map[model.BMCName]time.Time
	// Busy are the servers and BMCs with a move under way. They are planned with as
	// if their move were done, for their records in Observed say so, and they are
	// not moved again.
	Busy     map[model.ServerName]bool
	BusyBMCs map[model.BMCName]bool
	// Mirrored are the bindings that the status branch shows.
	Mirrored map[model.ServerName]model.ClaimName
	// Pools are those that DHCP gives addresses from.
	Pools []model.PoolFacts
	// Digests are kept from one plan to the next; nil = none are.
	Digests *Digests
	Policy  Policy
	Now     time.Time
}

// Reading is what was read of one server's power since this process began. It
// is not kept: after a restart everything is read anew before anything is done.
type Reading struct {
	At time.Time // of the last answer; zero = none yet
	// Offs counts the newest answers in a row that said Off.
	Offs int
	// Reached is set once the power state that was last asked for has been read.
	Reached bool

	// Failures counts the newest attempts in a row that got no answer, Err is the
	// last one's error, Since when they began, NotBefore when to try again.
	Failures  int
	Err       string
	Since     time.Time
	NotBefore time.Time
}

// Saw is the reading after an answer.
func (r Reading) Saw(p model.Power, asked *model.PowerAsked, now time.Time) Reading {
	next := Reading{At: now, Reached: r.Reached || asked != nil && (asked.Reached || p == asked.Want)}
	// Off says nothing while a power-on has yet to take effect.
	starting := asked != nil && asked.Want == model.PowerOn && !next.Reached
	if p == model.PowerOff && !starting {
		next.Offs = r.Offs + 1
	}
	return next
}

// Missed is the reading after an attempt that got no answer.
func (r Reading) Missed(err string, notBefore, now time.Time) Reading {
	if r.Failures == 0 {
		r.Since = now
	}
	r.Failures++
	r.Offs = 0
	r.Err, r.NotBefore = err, notBefore
	return r
}

// Asked is the reading after a power request: the power state is to be read anew.
func (r Reading) Asked() Reading {
	r.Offs, r.Reached = 0, false
	return r
}

// shown is what of the reading decides about what the status branch says.
func (r Reading) shown(p Policy) Reading {
	return Reading{Offs: min(r.Offs, p.OffReadings), Reached: r.Reached, Failures: min(r.Failures, 2), Err: r.Err}
}

// jitter is a number in [0, 1) that belongs to a name, so that fleets spread and
// tests repeat.
func jitter[N ~string](name N) float64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return float64(h.Sum64()>>11) / (1 << 53)
}

// backoff is the pause after so many failures in a row: doubled each time from
// the least to the most, less up to a quarter that belongs to the name.
func backoff[N ~string](name N, failures int, p Policy) time.Duration {
	d := p.BackoffMin
	for i := 1; i < failures && d < p.BackoffMax; i++ {
		d *= 2
	}
	d = min(d, p.BackoffMax)
	return d - time.Duration(float64(d)/4*jitter(name))
}
