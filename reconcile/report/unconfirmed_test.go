package report

import (
	"strings"
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/internal/plantest"
	"ingot/reconcile/plan"
)

func TestAClaimThatIsUnconfirmedIsNotReady(t *testing.T) {
	in, rec := plantest.Ticketed(model.StateReserved, model.PurposeClaim)
	rec.Install.Digest, rec.Install.Unconfirmed, rec.Boot.Ticket.IgnitionAt = rec.Boot.Ticket.Digest, in.Now, in.Now.Add(-time.Hour)
	conds := claimConditionsOf(in, rec.Claim.Name)
	for _, kind := range []string{"Ready", model.ReasonUnconfirmed} {
		if got := fleettest.ConditionOf(conds, kind); !strings.Contains(got, "Unconfirmed") ||
			!strings.Contains(got, "ingot/booted: served, or kernel") {
			t.Errorf("condition %s is %s", kind, got)
		}
	}
}

func TestAClaimWhoseCloudInitFailedIsReadyAndSaysSo(t *testing.T) {
	in, rec := plantest.Ticketed(model.StateReserved, model.PurposeClaim)
	rec.Install.Digest, rec.Boot.Ticket.Ended = rec.Boot.Ticket.Digest, model.TicketBooted
	in.Observed.BootStates[rec.Name] = &model.BootState{Ticket: rec.Boot.Ticket.ID, ReceivedAt: in.Now}
	p := NewProjector()
	report := func() *model.Report { return p.Report(in, plan.Plan(in), 1, model.Holder{}) }
	if got := fleettest.ConditionOf(report().Documents[ClaimPath(rec.Claim.Name)].Object.(*Document).Status.(ClaimStatus).Conditions, model.ReasonCloudInitFailed); got != "" {
		t.Errorf("before cloud-init's end: %s", got)
	}
	in.Observed.BootStates[rec.Name] = &model.BootState{Ticket: rec.Boot.Ticket.ID, ReceivedAt: in.Now, CloudInit: &model.CloudInitResult{
		ReceivedAt: in.Now, Errors: []string{"stage init, module bootcmd: ProcessExecutionError"},
	}}
	r := report()
	conds := r.Documents[ClaimPath(rec.Claim.Name)].Object.(*Document).Status.(ClaimStatus).Conditions
	if got := fleettest.ConditionOf(conds, "Ready"); !strings.HasPrefix(got, "True") {
		t.Errorf("Ready is %s", got)
	}
	const says = "stage init, module bootcmd: ProcessExecutionError"
	e, err := Explain(r, "claim", string(rec.Claim.Name))
	if err != nil || !strings.Contains(e.Why, says) || e.Actor != "tenant" || !strings.Contains(e.Next, "/var/log/cloud-init.log") {
		t.Errorf("explained as %+v, %v", e, err)
	}
	if c := SummaryOf(r).Claims[0]; c.State != ClaimBooted || !strings.Contains(c.Why, says) {
		t.Errorf("summed up as %+v", c)
	}
}
