package plan_test

import (
	"fmt"
	"testing"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan"
)

func TestARenameIsPartOfTheServersRecord(t *testing.T) {
	const name = model.ServerName("bmc00000-system-0")
	in := bigFleet(1, 1)
	in.Desired.Revision = "main@sha1:2"
	fleettest.Renamed("c00000", "shop")(in.Desired)
	fleettest.ChangeRecord(in.Observed, 0, func(rec *record) {
		rec.Intent = &model.Intent{Kind: model.IntentBind, Value: "default/c00000"}
		rec.Boot.Ticket = &model.Ticket{ID: "t", Purpose: model.PurposeClaim, Claim: "default/c00000", Ended: model.TicketBooted}
	})
	in.Busy = map[model.ServerName]bool{name: true}
	if r := plan.Plan(in); r.Decided.Fleet != nil && r.Decided.Fleet.Applied == in.Desired.Applied() {
		t.Error("the revision is applied before the record of a busy server says so")
	}
	in.Busy = nil
	m := plan.Plan(in).Moves[name]
	if m == nil || len(m.Do) > 0 {
		t.Fatalf("the move is %+v, want a change of the record alone", m)
	}
	if rec := m.Then; rec.Claim.Name != "default/shop" || rec.Intent.Value != "default/shop" || rec.Boot.Ticket.Claim != "default/shop" {
		t.Errorf("claim %s, intent %+v, ticket %+v", rec.Claim.Name, rec.Intent, rec.Boot.Ticket)
	}
}

func TestAbsencesAreRecordedUpToALimit(t *testing.T) {
	for _, n := range []int{0, 1, model.MaxAbsent, model.MaxAbsent + 3} {
		in := bigFleet(1, 0)
		for i := range n {
			in.Desired.Absent = append(in.Desired.Absent, model.Absence{
				Identity: model.ClaimName(fmt.Sprintf("default/c%05d", i)).Identity(), Token: fmt.Sprint(i),
			})
		}
		in.Desired.AbsentToken = "all"
		rec := plan.Plan(in).Decided.Fleet
		if rec == nil {
			t.Fatalf("%d: nothing is recorded", n)
		}
		if kept := min(n, model.MaxAbsent); len(rec.Absent) != kept || rec.AbsentMore != n-kept || rec.AbsentToken != "all" {
			t.Errorf("of %d absences %d are recorded and %d counted, with token %q", n, len(rec.Absent), rec.AbsentMore, rec.AbsentToken)
		}
	}
}
