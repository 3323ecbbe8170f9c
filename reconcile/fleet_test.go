package reconcile

import "ingot/reconcile/internal/fleettest"

// The fixtures that these tests speak of most, under short names.
var (
	annotated   = fleettest.Annotated
	cardOf      = fleettest.CardOf
	claim       = fleettest.Claim
	conditionOf = fleettest.ConditionOf
	drive       = fleettest.Drive
	macs        = fleettest.MACs
	of          = fleettest.OfTenant
	rendered    = fleettest.Rendered
	sdbGone     = fleettest.SDBGone
	sdbMissing  = fleettest.SDBMissing
	serverFile  = fleettest.ServerFile
)
