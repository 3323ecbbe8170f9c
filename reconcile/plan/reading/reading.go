// Package reading has what was read of a server's power since this process began.
package reading

import (
	"time"

	"ingot/model"
	"ingot/reconcile/plan/policy"
)

// State is what was read of one server's power since this process began. It is not kept over a restart.
type State struct {
	At       time.Time // when the last answer came; zero = none yet
	Offs     int       // the newest answers in a row that said Off
	OffSince time.Time // when the first of Offs came
	WasOff   bool      // an answer said Off
	Ons      int       // the newest answers in a row that said On
	Unknowns int       // the newest answers in a row that said neither On nor Off nor what is between
	POST     bool      // the machine's firmware runs its power-on self-test
	Reached  bool      // the power state that was last asked for has been read, Off for sure
	BMCReset time.Time // when the BMC had been restarted last, as far as was known then

	PreparedAfter time.Time // when to look next whether the boot of the server is prepared

	Parts
	Failed
}

// Parts are the readings of all parts.
type Parts struct {
	InventoryAt time.Time // when all parts were read last; zero = not since the start
	InventoryOn bool      // they were read while the server was on: some machines show parts only then
	Unread      int       // the newest readings in a row that failed in some parts, or in all
	PartsAfter  time.Time // until when they are not read again, because none was answered
}

// Failed are the attempts to read that failed since the last answer.
type Failed struct {
	Failures  int       // in a row
	Err       string    // of the last of them
	Reason    string    // of Err; "" = it has none
	Since     time.Time // when Failures began
	NotBefore time.Time // when to try again
	Unsaved   int       // the newest attempts in a row that could not be saved
}

// Saw is the reading after an answer. Off is sure after OffReadings in a row.
func (r State) Saw(p model.Power, asked *model.PowerAsked, of *policy.Options, now time.Time) State {
	next := State{
		At: now, WasOff: r.WasOff || p == model.PowerOff, BMCReset: r.BMCReset, PreparedAfter: r.PreparedAfter,
		Parts: r.Parts, Failed: Failed{Unsaved: r.Unsaved},
		Reached: r.Reached || asked != nil && asked.Reached,
	}
	// Off says nothing while a power-on has yet to take effect.
	starting := asked != nil && asked.Want == model.PowerOn && !next.Reached && asked.Problem == "" && now.Before(asked.At.Add(of.PowerOnLimit))
	if p == model.PowerOff && !starting {
		next.Offs, next.OffSince = r.Offs+1, r.OffSince
		if r.Offs == 0 {
			next.OffSince = now
		}
	}
	// Off has to be sure: of a BMC that says On and Off in turn, each Off would have the next On asked to go off again.
	next.Reached = next.Reached || tookEffect(asked, p, next.Offs >= of.OffReadings)
	switch p {
	case model.PowerOn:
		next.Ons = r.Ons + 1
	case model.PowerUnknown:
		next.Unknowns = r.Unknowns + 1
	case model.PowerOff, model.PowerPaused, model.PowerPoweringOn, model.PowerPoweringOff:
	}
	return next
}

func tookEffect(asked *model.PowerAsked, p model.Power, surelyOff bool) bool {
	return asked != nil && p == asked.Want && (p == model.PowerOn || surelyOff)
}

// Under is the reading under a BMC that was restarted at reset: no answer from before counts.
func (r State) Under(reset time.Time) State {
	if Restarted(r.BMCReset, reset) {
		r.Offs, r.OffSince, r.Ons, r.BMCReset = 0, time.Time{}, 0, reset
	}
	return r
}

// Leased is the reading of a machine whose lease was renewed at a time: no Off from before counts.
func (r State) Leased(at time.Time) State {
	if at.After(r.OffSince) {
		r.Offs, r.OffSince = 0, time.Time{}
	}
	return r
}

// resetJitter is by how much a BMC may differ on when it was restarted: some reckon it from their uptime.
const resetJitter = 2 * time.Minute

// Restarted reports whether a BMC was restarted since it gave the time before, as far as it says.
func Restarted(before, now time.Time) bool {
	return !now.IsZero() && (before.IsZero() || now.Sub(before).Abs() > resetJitter)
}

// Missed is the reading after an attempt that got no answer.
func (r State) Missed(err string, notBefore, now time.Time) State {
	if r.Failures == 0 {
		r.Since = now
	}
	r.Failures++
	r.Offs, r.OffSince, r.Ons = 0, time.Time{}, 0
	r.Err, r.Reason, r.NotBefore = err, "", notBefore
	return r
}

// Mistaken reports whether the newest answer was not of the server's machine.
func (r State) Mistaken() bool {
	return r.Failures > 0 && (r.Reason == model.ReasonIdentityMismatch || r.Reason == model.ReasonIdentityUnknown)
}

// Lost is the reading after an attempt that could not be saved: the pause grows each time.
func (r State) Lost(err string, name model.ServerName, p policy.Options, now time.Time) State {
	r.Unsaved++
	return r.Missed(err, now.Add(policy.Backoff(name, r.Unsaved, p)), now)
}

// Asked is the reading after a power request.
func (r State) Asked() State {
	r.Offs, r.OffSince, r.Ons, r.POST, r.Reached = 0, time.Time{}, 0, false, false
	return r
}

// Shown is what of the reading decides about what the status branch says.
func (r State) Shown(p policy.Options) State {
	return State{Offs: min(r.Offs, p.OffReadings), Reached: r.Reached, Unknowns: min(r.Unknowns, Unknown), Failed: Failed{Failures: min(r.Failures, 2), Err: r.Err, Reason: r.Reason}}
}

// Unknown is how many answers that say neither On nor Off are more than a transition between the two.
const Unknown = 5

// AwaitsOn reports whether a power-on was requested and may still take effect. It takes a place until then.
func AwaitsOn(asked *model.PowerAsked, r State, p *policy.Options, now time.Time) bool {
	if asked == nil || asked.Want != model.PowerOn || asked.Reached || asked.Problem != "" || r.Reached || asked.At.After(now) {
		return false
	}
	limit := p.PowerOnLimit
	if asked.Unsure {
		limit = p.UnsureAfter
	}
	return now.Before(asked.At.Add(limit))
}

// When the parts of a server are read.
const (
	PartsEvery    = 24 * time.Hour  // the interval: drives and memory are changed without notice
	PartsRetry    = 5 * time.Minute // the pause after a reading that failed in parts, doubled each time
	PartsRetryMax = 6 * time.Hour   // the longest such pause
	PartsOns      = 3               // the readings of On before: some BMCs show parts once the firmware is up
	PartsLate     = 2 * time.Hour   // spreads the first readings after a start: not all of a fleet's are read at once
)

// Runs reports whether the server has been On for long enough to show its parts.
func (r State) Runs() bool { return r.Ons >= PartsOns && !r.POST }

// PartsPause is how long after a reading that failed in parts they are read again.
func (r State) PartsPause() time.Duration {
	return min(PartsRetry<<min(max(r.Unread-1, 0), 16), PartsRetryMax)
}

// ReadParts is the reading after one of all parts, of which some may have failed.
func (r State) ReadParts(inv *model.Inventory) State {
	r.InventoryAt, r.Unread = r.At, r.Unread+1
	if inv == nil || len(inv.Problems) == 0 {
		r.Unread = 0
	}
	r.InventoryOn = r.InventoryOn || r.Runs()
	return r
}

// MissedParts is the reading after a failed attempt to read all parts: the power may still be read.
func (r State) MissedParts(now time.Time) State {
	r.Unread++
	r.PartsAfter = now.Add(r.PartsPause())
	return r
}
