package report

import (
	"ingot/model"
	"strings"
	"testing"
	"time"
)

func TestAClaimThatIsUnconfirmedIsNotReady(t *testing.T) {
	in, rec := ticketed(model.StateReserved, model.PurposeClaim)
	rec.Installed, rec.Unconfirmed, rec.Ticket.IgnitionAt = rec.Ticket.Digest, in.Now, in.Now.Add(-time.Hour)
	conds := claimConditionsOf(in, rec.Claim)
	for _, kind := range []string{"Ready", model.ReasonUnconfirmed} {
		if got := conditionOf(conds, kind); !strings.Contains(got, "Unconfirmed") || !strings.Contains(got, "ingot/booted: served, or kernel") {
			t.Errorf("condition %s is %s", kind, got)
		}
	}
}
