package report

import (
	"strings"
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/internal/plantest"
)

func TestAClaimThatIsUnconfirmedIsNotReady(t *testing.T) {
	in, rec := plantest.Ticketed(model.StateReserved, model.PurposeClaim)
	rec.Installed, rec.Unconfirmed, rec.Ticket.IgnitionAt = rec.Ticket.Digest, in.Now, in.Now.Add(-time.Hour)
	conds := claimConditionsOf(in, rec.Claim)
	for _, kind := range []string{"Ready", model.ReasonUnconfirmed} {
		if got := fleettest.ConditionOf(conds, kind); !strings.Contains(got, "Unconfirmed") ||
			!strings.Contains(got, "ingot/booted: served, or kernel") {
			t.Errorf("condition %s is %s", kind, got)
		}
	}
}
