package query

import (
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/internal/plantest"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/world"
	"ingot/reconcile/report"
)

// reports makes one report after another.
type reports struct {
	projector *report.Projector
	in        *world.Input
}

func (r *reports) next() *model.Report {
	return r.projector.Report(r.in, plan.Plan(r.in), 1, model.Holder{})
}

func newReports(in *world.Input) *reports { return &reports{report.NewProjector(), in} }

// shown leaves out what is not shown.
var shown = cmpopts.IgnoreUnexported(Common{}, Rows{})

func TestAReportHasARowForEachObject(t *testing.T) {
	in := plantest.BigFleet(2, 1)
	fleettest.ChangeRecord(in.Observed, 1, func(r *model.ServerRecord) { r.Life.State, r.Life.Reason = model.StateError, model.ReasonCleanupFailed })
	in.Desired.BMCs["bmc00000"].Labels = map[string]string{"rack": "r7", "location": "berlin", "shelf": "U04"}
	in.Desired.BMCs["bmc00000"].Source = "bmcs/a.yaml:3"
	server := &model.Server{Meta: model.Meta{Name: string(fleettest.ServerName(0)), Source: "servers/a.yaml:1"}}
	in.Desired.Add(server)
	plantest.Waiting(in, 1, func(int, *model.ServerClaim) {})
	in.Desired.Problems = []model.Problem{
		{Severity: model.SeverityError, File: "claims/web.yaml", Line: 7, Column: 3, Object: "ServerClaim default/web", Field: "spec.imge", Message: "unknown field"},
		{Severity: model.SeverityWarning, File: "a.yaml", Message: "is no manifest"},
	}
	rows := NewKeeper().Rows(newReports(in).next(), in.Desired)

	s := rows.Servers[0]
	want := &Server{
		Common: Common{
			Name: "bmc00000-system-0", State: "Reserved", Since: s.Since, Manifest: server.Source,
			Labels: map[string]string{"rack": "r7", "location": "berlin", "shelf": "U04"},
		},
		Power: "On", BMC: "bmc00000", Claim: "default/c00000", InstallStage: s.InstallStage, Location: "berlin", Rack: "r7", Unit: 4, Height: 1,
		UUID: "00000000-0000-4000-8000-000000000001",
	}
	if diff := cmp.Diff(want, s, shown); diff != "" {
		t.Errorf("server (-want +got):\n%s", diff)
	}
	if s := rows.Servers[1]; s.State != "Error" || s.Why == "" || s.Actor != string(proposal.RackOperator) || s.WhySince.IsZero() {
		t.Errorf("a server in Error does not say why, since when and who has to act: %+v", s)
	}
	wantClaims := []*Claim{
		{Common: Common{Name: "default/c00000", State: "Booted"}, Kind: "claim", Namespace: "default", Server: "bmc00000-system-0", Image: "os:1"},
		{Common: Common{Name: "default/w00000", State: "Unbound"}, Kind: "claim", Namespace: "default", Image: "os:1"},
	}
	if diff := cmp.Diff(wantClaims, rows.Claims, shown, cmpopts.IgnoreFields(Common{}, "Since", "Why", "Actor", "WhySince", "Labels")); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	if b := rows.BMCs[0]; b.Name != "bmc00000" || b.State != "Enabled" || b.Servers != 1 || b.Manifest != "bmcs/a.yaml:3" || b.Address == "" {
		t.Errorf("BMC: %+v", b)
	}
	wantProblems := []*Problem{
		{Common: Common{Name: "a.yaml", State: "warning", Why: "is no manifest", Manifest: "a.yaml"}, File: "a.yaml"},
		{
			Common: Common{Name: "claims/web.yaml:7:3", State: "error", Why: "unknown field", Manifest: "claims/web.yaml:7"},
			File:   "claims/web.yaml", Line: 7, Column: 3, Object: "ServerClaim default/web", Field: "spec.imge",
		},
	}
	if diff := cmp.Diff(wantProblems, rows.Problems, shown); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if rows.Revision == nil || rows.Revision.Applied != "main@sha1:1" {
		t.Errorf("revision: %+v", rows.Revision)
	}
}

func TestWhatDidNotChangeIsTheSameRow(t *testing.T) {
	r := newReports(plantest.BigFleet(20, 5))
	k := NewKeeper()
	first := k.Rows(r.next(), r.in.Desired)
	if again := k.Rows(r.next(), r.in.Desired); again != first {
		t.Error("a report in which nothing changed has other rows")
	}
	fleettest.ChangeRecord(r.in.Observed, 3, func(rec *model.ServerRecord) {
		rec.Life.State, rec.Life.Reason = model.StateError, model.ReasonCleanupFailed
	})
	second := k.Rows(r.next(), r.in.Desired)
	if second == first || second.Generation != first.Generation+1 {
		t.Fatalf("a server changed, and the rows are those of generation %d", second.Generation)
	}
	for i := range first.Servers {
		if same := second.Servers[i] == first.Servers[i]; same == (i == 3) {
			t.Errorf("row of server %d is the same: %v", i, same)
		}
	}
	if first.Servers[3].State == "Error" || second.Servers[3].State != "Error" {
		t.Errorf("states before and after: %s, %s", first.Servers[3].State, second.Servers[3].State)
	}
	if &first.BMCs[0] != &second.BMCs[0] {
		t.Error("the list of BMCs was made anew")
	}
}

func TestRowsComeAndGoWithTheirObjects(t *testing.T) {
	r := newReports(plantest.BigFleet(3, 0))
	k := NewKeeper()
	k.Rows(r.next(), r.in.Desired)
	claim := fleettest.Claim("new")
	r.in.Desired.Add(claim)
	r.in.Observed.Claims[claim.ClaimName()] = &model.ClaimRecord{Name: claim.ClaimName()}
	if rows := k.Rows(r.next(), r.in.Desired); len(rows.Claims) != 1 || rows.Claims[0].Name != "default/new" {
		t.Errorf("claims: %v", rows.Claims)
	}
	delete(r.in.Desired.Claims, claim.ClaimName())
	delete(r.in.Observed.Claims, claim.ClaimName())
	before := k.Rows(r.next(), r.in.Desired)
	if len(before.Claims) != 0 {
		t.Errorf("claims: %v", before.Claims)
	}
	delete(r.in.Observed.Servers, fleettest.ServerName(1))
	delete(r.in.Desired.BMCs, model.BMCName(fleettest.BMCName(1)))
	after := k.Rows(r.next(), r.in.Desired)
	if got := names(after.Servers); len(got) != 2 || got[0] != "bmc00000-system-0" || got[1] != "bmc00002-system-0" {
		t.Errorf("servers: %v", got)
	}
	if len(before.Servers) != 3 {
		t.Errorf("the rows that were given out before lost some: %v", names(before.Servers))
	}
}

func TestAManifestThatIsMovedIsFoundWhereItIs(t *testing.T) {
	r := newReports(plantest.BigFleet(1, 0))
	k := NewKeeper()
	for _, at := range []string{"servers/a.yaml:1", "servers/b.yaml:9"} {
		d := *r.in.Desired
		d.Servers = map[model.ServerName]*model.Server{fleettest.ServerName(0): {Meta: model.Meta{Name: string(fleettest.ServerName(0)), Source: at}}}
		if got := k.Rows(r.next(), &d).Servers[0].Manifest; got != at {
			t.Errorf("manifest is at %s, want %s", got, at)
		}
	}
}

func TestWhoHasSeenAGenerationIsToldWhatChangedSince(t *testing.T) {
	r := newReports(plantest.BigFleet(3, 1))
	k := NewKeeper()
	first := k.Rows(r.next(), r.in.Desired)
	fleettest.ChangeRecord(r.in.Observed, 2, func(rec *model.ServerRecord) { rec.Life.State = model.StateInitial })
	k.Rows(r.next(), r.in.Desired)
	fleettest.ChangeRecord(r.in.Observed, 2, func(rec *model.ServerRecord) {
		rec.Life.State, rec.Life.Reason = model.StateError, model.ReasonCleanupFailed
	})
	r.in.Desired.Revision, r.in.Observed.Fleet.Applied.Commit, r.in.Observed.Sequence = "main@sha1:2", "2", 7
	r.in.Desired.Problems = []model.Problem{{Severity: model.SeverityError, File: "a.yaml", Message: "wrong"}}
	third := k.Rows(r.next(), r.in.Desired)
	delete(r.in.Observed.Servers, fleettest.ServerName(1))
	delete(r.in.Desired.BMCs, model.BMCName(fleettest.BMCName(1)))
	fourth := k.Rows(r.next(), r.in.Desired)
	for name, tc := range map[string]struct {
		rows  *Rows
		since uint64
		want  []Change
		ok    bool
	}{
		"nothing": {third, third.Generation, []Change{}, true},
		"each object once": {third, first.Generation, []Change{
			{Kind: "server", Name: "bmc00002-system-0", State: "Error"},
			{Kind: "revision", State: "main@sha1:2"}, {Kind: "problems"},
		}, true},
		"what is gone": {fourth, third.Generation, []Change{
			{Kind: "server", Name: "bmc00001-system-0", Gone: true}, {Kind: "bmc", Name: "bmc00001", Gone: true},
		}, true},
		"what others have not seen, either": {third, fourth.Generation, nil, false},
	} {
		got, ok := tc.rows.Since(tc.since)
		if diff := cmp.Diff(tc.want, got); diff != "" || ok != tc.ok {
			t.Errorf("%s: known %v, changes (-want +got):\n%s", name, ok, diff)
		}
	}
}

func TestWhatIsRememberedOfChangesIsBounded(t *testing.T) {
	var steps []step
	for n := range 3 * maxSteps {
		steps = next(steps, step{uint64(n + 1), []Change{{Kind: kindServer}}})
	}
	rows := &Rows{Generation: 3 * maxSteps, steps: steps}
	if _, ok := rows.Since(2 * maxSteps); len(steps) != maxSteps || !ok {
		t.Errorf("there are %d steps, known %v", len(steps), ok)
	}
	if _, ok := rows.Since(2*maxSteps - 1); ok {
		t.Error("what was forgotten is known")
	}
	steps = next(steps, step{3*maxSteps + 1, make([]Change, maxChanges)})
	if len(steps) != 1 {
		t.Errorf("after very many changes there are %d steps", len(steps))
	}
	if steps = next(steps, step{3*maxSteps + 2, make([]Change, maxChanges+1)}); len(steps) != 0 {
		t.Errorf("after too many changes there are %d steps", len(steps))
	}
}

func TestARowIsFoundByItsName(t *testing.T) {
	rows := someServers()
	for _, want := range rows {
		if got, found := Servers.Find(rows, want.Name); !found || got != want {
			t.Errorf("%s is %v, %v", want.Name, got, found)
		}
	}
	if got, found := Servers.Find(rows, "s4"); found || got != nil {
		t.Errorf("s4 is %v, %v", got, found)
	}
}

// The rows of the status branch's files are those of the report that was written there, but
// for where manifests stand.
func TestRowsOfTheStatusBranchAreThoseOfTheReport(t *testing.T) {
	in := plantest.BigFleet(5, 2)
	in.Desired.Problems = []model.Problem{{Severity: model.SeverityError, File: "a.yaml", Message: "wrong"}}
	r := newReports(in).next()
	want := NewKeeper().Rows(r, nil)
	got, err := ReadRows(fleettest.Rendered(t, r))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, shown, cmpopts.IgnoreFields(Rows{}, "Revision")); diff != "" {
		t.Errorf("rows (-of the report +of the files):\n%s", diff)
	}
}

// BenchmarkRows makes the rows of a second report: one in which nothing changed, and one in
// which a server did. Their yardstick is the first, of which all rows are made.
func BenchmarkRows(b *testing.B) {
	r := newReports(plantest.BigFleet(10000, 2000))
	first := r.next()
	second := r.next()
	fleettest.ChangeRecord(r.in.Observed, 3, func(rec *model.ServerRecord) {
		rec.Life.State, rec.Life.Reason = model.StateError, model.ReasonCleanupFailed
	})
	changed := r.next()
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			NewKeeper().Rows(first, r.in.Desired)
		}
	})
	b.Run("nothing changed", func(b *testing.B) {
		k := NewKeeper()
		k.Rows(first, r.in.Desired)
		for b.Loop() {
			k.Rows(first, r.in.Desired)
			k.Rows(second, r.in.Desired)
		}
	})
	b.Run("one server changed", func(b *testing.B) {
		k := NewKeeper()
		k.Rows(first, r.in.Desired)
		for b.Loop() {
			k.Rows(first, r.in.Desired)
			k.Rows(changed, r.in.Desired)
		}
	})
}

// BenchmarkSelect asks for a page of 10,000 servers.
func BenchmarkSelect(b *testing.B) {
	r := newReports(plantest.BigFleet(10000, 2000))
	rows := NewKeeper().Rows(r.next(), r.in.Desired)
	for _, asked := range []string{"", "state=Available&sort=-rack,name", "q=bmc0777", "label=rack+in+(7,8)&sort=-since"} {
		values, _ := url.ParseQuery(asked)
		q, err := Servers.Parse(values)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("?"+asked, func(b *testing.B) {
			for b.Loop() {
				Servers.Select(rows.Servers, q)
			}
		})
	}
}
