package report

import (
	"ingot/model"
	"ingot/reconcile/plan"
	"time"
)

// ticketed is a fleet of one server with an open ticket that was armed a minute ago,
// and a power-on with it half a minute ago.
func ticketed(state model.ServerState, purpose model.TicketPurpose) (*plan.Input, *model.ServerRecord) {
	in := bigFleet(1, 1)
	rec := in.Observed.Servers["bmc00000-system-0"]
	rec.State, rec.Installed, rec.Since = state, "", in.Now.Add(-time.Minute)
	rec.Ticket = &model.Ticket{
		ID: "t", Server: rec.Name, Purpose: purpose, ArmedAt: in.Now.Add(-time.Minute),
		Digest: digestOf("os:1"), Image: model.PinnedImage{Ref: "os:1", Architecture: "amd64"},
	}
	switch purpose {
	case model.PurposeClaim:
		rec.Ticket.Claim = rec.Claim
	case model.PurposeDiscovery, model.PurposeCleanup:
		rec.Claim, rec.Ticket.CleanupMode = "", model.CleanupQuick
	}
	rec.Asked = &model.PowerAsked{Want: model.PowerOn, At: in.Now.Add(-30 * time.Second), Reached: true}
	in.Policy.DiscoveryImage = "probe:1"
	return in, rec
}
