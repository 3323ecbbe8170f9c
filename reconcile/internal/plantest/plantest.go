// Package plantest has the inputs of plans that the tests of what stands on plan begin
// with. They are fleettest's fleets, all of which was read a moment ago.
package plantest

import (
	"fmt"
	"hash/fnv"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/reading"
	"ingot/reconcile/plan/world"
)

// BigFleet is a settled fleet: as many servers as are named, the first bound of
// them serving a claim, the others Available.
func BigFleet(servers, bound int) *world.Input {
	d, o := fleettest.BigFleet(servers, bound)
	return &world.Input{
		Desired: d, Observed: o, Policy: policy.Default(), Now: fleettest.Now,
		Readings: fleettest.OfEach(o.Servers, reading.State{At: fleettest.Now.Add(-time.Second), Offs: 3, Reached: true}),
		BMCRead:  fleettest.OfEach(o.BMCs, fleettest.Now),
	}
}

// Waiting adds claims without a server; ask says what each asks for.
func Waiting(in *world.Input, n int, ask func(i int, c *model.ServerClaim)) *world.Input {
	fleettest.AddWaiting(in.Desired, n, ask)
	return in
}

// Ticketed is a fleet of one server with an open ticket that was armed a minute ago,
// and a power-on with it half a minute ago.
func Ticketed(state model.ServerState, purpose model.TicketPurpose) (*world.Input, *model.ServerRecord) {
	in := BigFleet(1, 1)
	in.Policy.DiscoveryImage = "probe:1"
	return in, fleettest.Ticketed(in.Observed, state, purpose)
}

// ClaimWhy is why a claim has no server.
func ClaimWhy(in *world.Input, name model.ClaimName) proposal.Why {
	for _, c := range plan.Plan(in).Claims {
		if c.Name == name {
			return c.Why
		}
	}
	return proposal.Why{Reason: "unknown"}
}

// ServerOf is a server of an input, as the components of a plan see it.
func ServerOf(in *world.Input, name model.ServerName) *proposal.Server {
	rec, r := in.Observed.Servers[name], in.Readings[name]
	return &proposal.Server{
		Moment: &proposal.Moment{
			Now: in.Now, Started: in.Started, Serving: in.Serving, LongGap: in.LongGap, Policy: &in.Policy, Desired: in.Desired,
			Observed: in.Observed, DigestKey: in.DigestKey, InstallsLeft: in.Policy.MaxConcurrentInstalls,
		},
		Name: name, Manifest: in.Desired.Servers[name], Record: rec, Stored: rec, Facts: in.Observed.ServerFacts[name], Reading: &r,
		Claim: in.Desired.Claims[rec.Claim.Name], Shown: true,
	}
}

// Hold holds one in six of all proposals at random. It lets notes and plain looks pass. Seed 0 holds none.
func Hold(seed uint64, p *proposal.Proposal) bool {
	if seed == 0 || p.Kind == proposal.Note || p.Kind == proposal.Look && !p.Of.Edited {
		return false
	}
	h := fnv.New32()
	fmt.Fprint(h, seed, p.Of.Now, p.Of.Name, p.Kind, p.Do, p.Of.State(), p.Of.Record.Intent)
	return h.Sum32()%6 == 0
}
