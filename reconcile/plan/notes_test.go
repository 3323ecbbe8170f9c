package plan_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/policy"
)

func TestRecordsOfClaimsComeAndGo(t *testing.T) {
	for name, tt := range map[string]struct {
		change     func(d *model.Desired)
		news, gone []model.ClaimName
	}{
		"the same claims have their records": {change: func(*model.Desired) {}},
		"a new one gets one":                 {change: func(d *model.Desired) { d.Add(claim("new")) }, news: []model.ClaimName{"default/new"}},
		"one that is gone loses it":          {change: func(d *model.Desired) { delete(d.Claims, "default/w00001") }, gone: []model.ClaimName{"default/w00001"}},
		"one that is gone loses it, though a new one came": {
			change: func(d *model.Desired) { delete(d.Claims, "default/w00001"); d.Add(claim("new")) },
			news:   []model.ClaimName{"default/new"}, gone: []model.ClaimName{"default/w00001"},
		},
		"one that a server still serves keeps it": {change: func(d *model.Desired) { delete(d.Claims, "default/c00000") }},
	} {
		t.Run(name, func(t *testing.T) {
			in := bigFleet(1, 1)
			fleettest.AddWaiting(in.Desired, 2, nil)
			for name := range in.Desired.Claims {
				in.Observed.Claims[name] = &model.ClaimRecord{Name: name}
			}
			tt.change(in.Desired)
			decided := plan.Plan(in).Decided
			var news []model.ClaimName
			for _, c := range decided.Claims {
				news = append(news, c.Name)
			}
			if diff := cmp.Diff([][]model.ClaimName{tt.news, tt.gone}, [][]model.ClaimName{news, decided.DropClaims}); diff != "" {
				t.Errorf("records that are made and dropped (-want +got):\n%s", diff)
			}
		})
	}
}

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

// What asks for an install in Git may be what was installed before the store was lost.
func TestADoubtfulInstallIsNotRepeated(t *testing.T) {
	in := bigFleet(1, 1)
	var name model.ClaimName
	fleettest.ChangeRecord(in.Observed, 0, func(r *record) {
		r.Doubt, r.Install.Digest, name = &model.Doubt{Reason: model.DoubtInstallUnknown}, "", r.Claim.Name
	})
	c := *in.Desired.Claims[name]
	c.Annotations = map[string]string{model.AnnotationReprovision: "1", model.AnnotationOverwrite: "yes"}
	in.Desired.Add(&c)
	m := plan.Plan(in).Moves[fleettest.ServerName(0)]
	if m == nil || m.Then.Requests.HandledReprovision != "1" || m.Then.Requests.HandledOverwrite != "yes" || m.Then.Install.Reprovision != "" {
		t.Errorf("the move is %+v", m)
	}
}

// An edited file of the status branch affects its own server alone.
func TestAnEmptyAwaitedApprovalIsIgnored(t *testing.T) {
	in := bigFleet(1, 1)
	fleettest.ChangeRecord(in.Observed, 0, func(r *record) { r.Maintenance.Awaits = &model.AwaitedApproval{} })
	if s := plan.Plan(in).Servers[0]; s.Why.Reason == model.ReasonApprovalAwaited {
		t.Errorf("it waits for %+v", s.Why)
	}
}

func TestAnUnreadableServerThatIsBackIsNotListed(t *testing.T) {
	in := &input{Desired: model.NewDesired(), Observed: model.NewObserved(), Now: fleettest.Now, Policy: policy.Default()}
	in.Observed.Servers["s1"] = &record{RecordIdentity: model.RecordIdentity{Name: "s1"}, Life: model.RecordLife{State: model.StateAvailable}}
	in.Observed.Fleet.Unreadable = []model.UnreadableRecord{{Server: "s1", Token: "one"}, {Server: "s2", Token: "two"}}
	got := plan.Plan(in).Decided.Fleet
	if got == nil || len(got.Unreadable) != 1 || got.Unreadable[0].Server != "s2" {
		t.Errorf("got %+v", got)
	}
	if len(in.Observed.Fleet.Unreadable) != 2 || in.Observed.Fleet.Unreadable[0].Server != "s1" {
		t.Errorf("the record that is in force was changed: %+v", in.Observed.Fleet.Unreadable)
	}
	in.ObserveOnly = "waiting"
	if got := plan.Plan(in).Decided.Fleet; got != nil {
		t.Errorf("one that only observes decided %+v", got)
	}
}
