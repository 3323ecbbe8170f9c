package report

import (
	"strings"
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/internal/plantest"
	"ingot/reconcile/plan/proposal"
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
	var p Projector
	claim := func() *Document { return reportBy(&p, in).Documents[ClaimPath(rec.Claim.Name)].Object.(*Document) }
	if got := fleettest.ConditionOf(claim().Conditions(), model.ReasonCloudInitFailed); got != "" {
		t.Errorf("before cloud-init's end: %s", got)
	}
	in.Observed.BootStates[rec.Name] = &model.BootState{Ticket: rec.Boot.Ticket.ID, ReceivedAt: in.Now, CloudInit: &model.CloudInitResult{
		ReceivedAt: in.Now, Errors: []string{"stage init, module bootcmd: ProcessExecutionError"},
	}}
	failed := claim()
	if got := fleettest.ConditionOf(failed.Conditions(), "Ready"); !strings.HasPrefix(got, "True") {
		t.Errorf("Ready is %s", got)
	}
	w := failed.Overview().First()
	if w.Reason != model.ReasonCloudInitFailed || !strings.Contains(w.Message, "stage init, module bootcmd: ProcessExecutionError") ||
		w.Actor != proposal.Tenant || !strings.Contains(w.Next, "/var/log/cloud-init.log") || failed.Overview().Summary.State != ClaimBooted {
		t.Errorf("got %+v", failed.Overview())
	}
}
