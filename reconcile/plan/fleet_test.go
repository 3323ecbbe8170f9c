package plan

import (
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan/proposal"
)

// The fixtures that tables speak of most, under short names.
var (
	annotated  = fleettest.Annotated
	cardOf     = fleettest.CardOf
	claim      = fleettest.Claim
	drive      = fleettest.Drive
	macs       = fleettest.MACs
	uuidOf     = fleettest.UUIDOf
	wipedDisks = fleettest.WipedDisks
)

// bigFleet is a settled fleet: as many servers as are named, the first bound of
// them serving a claim, the others Available. plantest makes the same for what stands
// on this package, and so cannot be imported here.
func bigFleet(servers, bound int) *Input {
	d, o := fleettest.BigFleet(servers, bound)
	return &Input{
		Desired: d, Observed: o, Policy: proposal.DefaultPolicy(), Now: fleettest.Now,
		Readings: fleettest.OfEach(o.Servers, proposal.Reading{At: fleettest.Now.Add(-time.Second), Offs: 3, Reached: true}),
		BMCRead:  fleettest.OfEach(o.BMCs, fleettest.Now),
	}
}

// waiting adds claims without a server; ask says what each asks for.
func waiting(in *Input, n int, ask func(i int, c *model.ServerClaim)) *Input {
	fleettest.AddWaiting(in.Desired, n, ask)
	return in
}

// ticketed is a fleet of one server with an open ticket that was armed a minute ago,
// and a power-on with it half a minute ago.
func ticketed(state model.ServerState, purpose model.TicketPurpose) (*Input, *model.ServerRecord) {
	in := bigFleet(1, 1)
	in.Policy.DiscoveryImage = "probe:1"
	return in, fleettest.Ticketed(in.Observed, state, purpose)
}

// claimWhy is why a claim has no server.
func claimWhy(in *Input, name model.ClaimName) proposal.Why {
	for _, c := range Plan(in).Claims {
		if c.Name == name {
			return c.Why
		}
	}
	return proposal.Why{Reason: "unknown"}
}

// withBMCs gives a fleet its BMCs, whose names are all different.
func withBMCs(f *fleet, bmcs ...*bmcView) *fleet {
	names := make([]model.BMCName, len(bmcs))
	for i, b := range bmcs {
		names[i] = b.name
	}
	f.memory, f.bmcs = new(Memory), bmcs
	f.bmcAt = f.memory.bmcPlaces.of(names)
	return f
}
