// Package plantest has the inputs of plans that the tests of what stands on plan begin
// with. They are fleettest's fleets, all of which was read a moment ago.
package plantest

import (
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/proposal"
)

// BigFleet is a settled fleet: as many servers as are named, the first bound of
// them serving a claim, the others Available.
func BigFleet(servers, bound int) *plan.Input {
	d, o := fleettest.BigFleet(servers, bound)
	return &plan.Input{
		Desired: d, Observed: o, Policy: proposal.DefaultPolicy(), Now: fleettest.Now,
		Readings: fleettest.OfEach(o.Servers, proposal.Reading{At: fleettest.Now.Add(-time.Second), Offs: 3, Reached: true}),
		BMCRead:  fleettest.OfEach(o.BMCs, fleettest.Now),
	}
}

// Waiting adds claims without a server; ask says what each asks for.
func Waiting(in *plan.Input, n int, ask func(i int, c *model.ServerClaim)) *plan.Input {
	fleettest.AddWaiting(in.Desired, n, ask)
	return in
}

// Ticketed is a fleet of one server with an open ticket that was armed a minute ago,
// and a power-on with it half a minute ago.
func Ticketed(state model.ServerState, purpose model.TicketPurpose) (*plan.Input, *model.ServerRecord) {
	in := BigFleet(1, 1)
	in.Policy.DiscoveryImage = "probe:1"
	return in, fleettest.Ticketed(in.Observed, state, purpose)
}

// ClaimWhy is why a claim has no server.
func ClaimWhy(in *plan.Input, name model.ClaimName) proposal.Why {
	for _, c := range plan.Plan(in).Claims {
		if c.Name == name {
			return c.Why
		}
	}
	return proposal.Why{Reason: "unknown"}
}
