package world

import (
	"time"

	"ingot/model"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/reading"
)

// Input is all that a plan is made from. The planner does not change the values that it points to.
type Input struct {
	Desired  *model.Desired
	Observed *model.Observed
	// Readings are what was last read of each server's power in this process.
	Readings map[model.ServerName]reading.State
	// BMCRead is when each BMC's own facts were last read in this process.
	BMCRead map[model.BMCName]time.Time
	// Unconfirmed is when BMCs showed something for the first time that contradicts what is recorded of their
	// servers, and that is not believed yet.
	Unconfirmed map[model.BMCName]time.Time
	// Busy are the servers and BMCs with a move under way. They are planned with as if their move were done, for
	// their records in Observed say so, and they are not moved again.
	Busy     map[model.ServerName]bool
	BusyBMCs map[model.BMCName]bool
	// Shown are the intents that the status branch shows; nil = this process has pushed nothing yet.
	Shown map[model.ServerName]model.Intent
	// Unannounced is since when the status branch cannot be pushed; zero = it can.
	Unannounced time.Time
	// ObserveOnly says why nothing may be done at all, HealOnly why nothing but to power on from their disks what is
	// bound; empty = all may be done.
	ObserveOnly, HealOnly string
	// Started is when this process began, Serving when machines that boot could reach it; zero = they cannot yet.
	Started, Serving time.Time
	// LongGap is set if decisions may be lost that are newer than all that is known: no Ingot had run for long. First
	// is the first revision that this process read from Git.
	LongGap bool
	First   model.Revision
	// Nonce is fresh and random for each plan: what people approve by is made of it.
	Nonce string
	// Pools are those that DHCP gives addresses from.
	Pools []model.PoolFacts
	// DigestKey makes the digests that records hold, zero = they are plain.
	DigestKey model.DigestKey
	Policy    policy.Options
	Now       time.Time
	// Hold holds proposals in tests; nil = none.
	Hold func(*proposal.Proposal) bool
}
