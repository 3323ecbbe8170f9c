package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/proposal"
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

// A request for an install in Git may have been carried out before the store was lost.
func TestADoubtfulInstallIsNotRepeated(t *testing.T) {
	in, rec := serving()
	rec.Doubt, rec.Install.Digest = &model.Doubt{Reason: model.DoubtInstallUnknown}, ""
	in.Desired.Claims[rec.Claim.Name].Annotations = map[string]string{model.AnnotationReprovision: "1", model.AnnotationOverwrite: "yes"}
	m := plan.Plan(in).Moves[first]
	if m == nil || m.Then.Requests.HandledReprovision != "1" || m.Then.Requests.HandledOverwrite != "yes" || m.Then.Install.Reprovision != "" {
		t.Errorf("the move is %+v", m)
	}
}

// An edited file of the status branch affects its own server alone.
func TestAnEmptyAwaitedApprovalIsIgnored(t *testing.T) {
	in, rec := serving()
	rec.Maintenance.Awaits = &model.AwaitedApproval{}
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

// orphaned is a fleet of which a commit took the first BMC away a day ago.
func orphaned() (*input, *record) {
	in := bigFleet(2, 0)
	bmc := model.BMCName(fleettest.BMCName(0))
	delete(in.Desired.BMCs, bmc)
	in.Desired.Removed = map[model.Identity][]model.Removal{bmc.Identity(): {{Revision: "main@sha1:1", At: in.Now}}}
	fleettest.ChangeRecord(in.Observed, 0, func(rec *record) { rec.Orphaned = in.Now.Add(-24 * time.Hour) })
	return in, in.Observed.Servers[fleettest.ServerName(0)]
}

// decidedOfFirst is the decision about the first server.
func decidedOfFirst(r *plan.Result) string {
	name := fleettest.ServerName(0)
	if slices.Contains(r.Decided.DropServers, name) {
		return "forgotten"
	}
	m := r.Moves[name]
	if m == nil || len(m.Do) > 0 {
		return ""
	}
	said := ""
	if i := m.Then.Intent; i != nil {
		said = string(i.Kind) + " " + i.Value
	}
	if op := m.Then.Requests.Operation; op != nil {
		said += string(op.Outcome) + " " + op.Value + ": " + op.Message
	}
	if m.Then.Orphaned.IsZero() {
		said += "not orphaned"
	} else if said == "" {
		said = "orphaned"
	}
	return said
}

func TestWhatBecomesOfAServerWhoseBMCLeftGit(t *testing.T) {
	const bmc = "bmc00000"
	intent := func(value string) func(*input, *record) {
		return func(_ *input, rec *record) { rec.Intent = &model.Intent{Kind: model.IntentForget, Value: value} }
	}
	asks := git("", "forget#1")
	back := func(in *input, _ *record) { in.Desired.BMCs[bmc] = in.Desired.BMCs["bmc00001"] }
	claimed := func(_ *input, rec *record) { rec.Life.State, rec.Claim.Name = model.StateReserved, "default/web" }
	removed := func(in *input, _ *record) {
		in.Desired.Removed[model.ClaimName("default/web").Identity()] = []model.Removal{{Revision: "main@sha1:1"}}
	}
	held := func(in *input, _ *record) {
		for _, name := range []model.ServerName{"a", "b", "c"} {
			in.Observed.Fleet.Done = append(in.Observed.Fleet.Done, model.Disruption{Action: proposal.StepRelease, Server: name, At: in.Now.Add(-time.Minute)})
		}
	}
	replaced := func(in *input, _ *record) {
		fleettest.AddManifest(in.Desired, 0, model.ServerSpec{SystemUUID: "00000000-0000-4000-8000-0000000000ff"})
	}
	for name, tc := range map[string]struct {
		changes []change
		want    string
	}{
		"when it does, that is noted": {[]change{func(_ *input, rec *record) { rec.Orphaned = time.Time{} }}, "orphaned"},
		"and so when the Server did that described it within itself": {[]change{func(in *input, rec *record) {
			rec.Orphaned = time.Time{}
			in.Desired.Removed = map[model.Identity][]model.Removal{model.ServerName(bmc).Identity(): {{Revision: "r"}}}
		}}, "orphaned"},
		"and once that is known from the records alone": {[]change{func(in *input, rec *record) {
			rec.Orphaned, in.Desired.Removed = time.Time{}, nil
			in.Observed.Fleet.Removed = []model.RemovedObject{{Identity: model.BMCName(bmc).Identity()}}
		}}, "orphaned"},
		"not where no commit is known":           {[]change{func(in *input, rec *record) { rec.Orphaned, in.Desired.Removed = time.Time{}, nil }}, ""},
		"what was noted holds without that":      {[]change{func(in *input, _ *record) { in.Desired.Removed = nil }}, "Forget bmc00000"},
		"a day later that it is to be forgotten": {nil, "Forget bmc00000"},
		"and not sooner":                         {[]change{func(in *input, rec *record) { rec.Orphaned = in.Now.Add(time.Second - 24*time.Hour) }}, ""},
		"and not by a clock that was ahead":      {[]change{func(in *input, rec *record) { in.Started, rec.Orphaned = in.Now, in.Now.Add(time.Hour) }}, ""},
		"once that is shown":                     {[]change{intent(bmc)}, "forgotten"},
		"not while a move of it is under way":    {[]change{intent(bmc), func(in *input, rec *record) { in.Busy = map[model.ServerName]bool{rec.Name: true} }}, ""},
		"not while its BMC is being read":        {[]change{intent(bmc), func(in *input, _ *record) { in.BusyBMCs = map[model.BMCName]bool{bmc: true} }}, ""},
		"not before each BMC was asked for its":  {[]change{intent(bmc), func(in *input, _ *record) { delete(in.Observed.BMCFacts, "bmc00001") }}, ""},
		"not before Git was read":                {[]change{intent(bmc), func(in *input, _ *record) { in.Desired.KeptOverRestart = true }}, ""},
		"not while nothing may be decided":       {[]change{intent(bmc), func(in *input, _ *record) { in.ObserveOnly = "the store is away" }}, ""},
		"not while the status branch lacks it": {[]change{intent(bmc), func(in *input, rec *record) {
			in.Policy.ShowFirst, in.Shown = true, map[model.ServerName]model.Intent{}
		}}, ""},
		"a BMC that is back ends it":                           {[]change{intent(bmc), back}, "Forget bmc00000not orphaned"},
		"and so does a manifest that names it":                 {[]change{intent(bmc), func(in *input, _ *record) { fleettest.AddManifest(in.Desired, 0, model.ServerSpec{}) }}, "orphaned"},
		"but not one of its name for the machine in its place": {[]change{intent(bmc), replaced}, "forgotten"},
		"a person may say so at once":                          {[]change{asks, func(in *input, rec *record) { rec.Orphaned = in.Now }}, "Forget forget#1"},
		"and it is done once that is shown":                    {[]change{asks, intent("forget#1")}, "forgotten"},
		"whatever it is":                                       {[]change{asks, intent("forget#1"), func(_ *input, rec *record) { rec.Life.State = model.StateError }}, "forgotten"},
		"not what was handled":                                 {[]change{asks, func(_ *input, rec *record) { rec.Requests.HandledOperation = "forget#1" }}, ""},
		"not what Git no longer asks for":                      {[]change{intent("forget#1"), func(_ *input, rec *record) { rec.Life.State = model.StateError }}, "orphaned"},
		"not while its BMC is in Git":                          {[]change{asks, back}, "Refused forget#1: its BMC bmc00000 is in Git (): remove that first, then give the annotation a new value" + "not orphaned"},
		"not while a claim has it":                             {[]change{asks, claimed}, "Refused forget#1: claim default/web has it: remove that first, then give the annotation a new value"},
		"nor while that is in Git and cannot be used": {[]change{asks, claimed, removed, func(in *input, _ *record) {
			in.Desired.Quarantined[model.ClaimName("default/web").Identity()] = []string{""}
		}}, "Refused forget#1: claim default/web has it: remove that first, then give the annotation a new value"},
		"it waits for the guard to let it go": {[]change{asks, claimed, removed, held}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in, rec := orphaned()
			all(tc.changes...)(in, rec)
			r := plan.Plan(in)
			if got := decidedOfFirst(r); got != tc.want && !(strings.HasSuffix(tc.want, "not orphaned") && got == "not orphaned") {
				t.Errorf("got %q, want %q; it is said %+v", got, tc.want, r.Servers[0].Why)
			}
			if facts := r.Decided.DropBMCFacts; (tc.want == "forgotten") != slices.Equal(facts, []model.BMCName{bmc}) {
				t.Errorf("what was read of BMCs %v is dropped", facts)
			}
			if len(r.Decided.DropServers) > 1 || r.Servers[1].Why.Reason != "" && tc.changes != nil && in.ObserveOnly == "" && in.Observed.BMCFacts["bmc00001"] != nil {
				t.Errorf("something becomes of the other server: %v, %+v", r.Decided.DropServers, r.Servers[1].Why)
			}
		})
	}
}
