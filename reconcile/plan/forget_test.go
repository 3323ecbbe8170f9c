package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/proposal"
)

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
	asks := func(in *input, _ *record) {
		fleettest.AddManifest(in.Desired, 0, model.ServerSpec{})
		in.Desired.Servers[fleettest.ServerName(0)].Annotations = map[string]string{model.AnnotationOperation: "forget#1"}
	}
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
			for _, c := range tc.changes {
				c(in, rec)
			}
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
