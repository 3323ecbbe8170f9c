package plan_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/reading"
)

// readinessRule is a rule that requires label burn-in/passed, and whatever changes it.
func readinessRule(name string, change ...func(*model.ServerReadinessRuleSpec)) *model.ServerReadinessRule {
	r := &model.ServerReadinessRule{Meta: model.Meta{Name: name}, Spec: model.ServerReadinessRuleSpec{
		Conditions:      []model.RequiredCondition{{Type: "burn-in/passed", RequiredStatus: model.StatusTrue}},
		EnforcementMode: model.Continuous, Taint: model.Taint{Key: "burn-in", Effect: model.TaintNoBind},
	}}
	for _, f := range change {
		f(&r.Spec)
	}
	return r
}

func requiring(kind, status string) func(*model.ServerReadinessRuleSpec) {
	return func(s *model.ServerReadinessRuleSpec) {
		s.Conditions = []model.RequiredCondition{{Type: kind, RequiredStatus: status}}
	}
}

func bootstrap(s *model.ServerReadinessRuleSpec) { s.EnforcementMode = model.BootstrapOnly }

func evicting(s *model.ServerReadinessRuleSpec) { s.Taint.Effect = model.TaintEvict }

func ofRack(rack string) func(*model.ServerReadinessRuleSpec) {
	return func(s *model.ServerReadinessRuleSpec) { s.ServerSelector = requires("rack", rack) }
}

// attest labels a BMC, whose servers have its labels.
func attest(in *input, i int, value string) {
	in.Desired.BMCs[model.BMCName(fleettest.BMCName(i))].Labels["burn-in/passed"] = value
}

func TestReadinessConditions(t *testing.T) {
	name := fleettest.ServerName(0)
	reading := func(failures int) func(*input, *record) {
		return func(in *input, _ *record) { in.Readings[name] = reading.State{Failures: failures} }
	}
	disks := func(wiped []model.DiskWipe, missing ...model.MissingDisk) func(*input, *record) {
		return func(_ *input, rec *record) { rec.Disks.Wiped, rec.Disks.Missing = wiped, missing }
	}
	tests := map[string]struct {
		kind, want string
		change     change
	}{
		"a BMC that answers":                  {"BMCReadable", "True", nil},
		"after a restart the BMC counts, too": {"BMCReadable", "True", func(in *input, _ *record) { clear(in.Readings) }},
		"a BMC that missed one question":      {"BMCReadable", "True", reading(1)},
		"a BMC that does not answer":          {"BMCReadable", "False", reading(2)},
		"a BMC that refuses the password": {"BMCReadable", "False", func(in *input, rec *record) {
			in.Observed.BMCs[rec.BMC] = &model.BMCRecord{Name: rec.BMC, BMCScratch: model.BMCScratch{Reason: model.ReasonAuthenticationFailed}}
		}},
		"a BMC that is not in Git":         {"BMCReadable", "Unknown", func(in *input, rec *record) { delete(in.Desired.BMCs, rec.BMC) }},
		"a server without report":          {"Discovered", "False", nil},
		"a server whose probe reported":    {"Discovered", "True", func(in *input, _ *record) { in.Observed.Probes[name] = &model.ProbeReport{} }},
		"a report that the store has lost": {"Discovered", "True", func(_ *input, rec *record) { rec.Disks.KnownAt = rec.Life.Since }},
		"an inventory":                     {"InventoryComplete", "True", nil},
		"an inventory with problems": {"InventoryComplete", "False", func(in *input, _ *record) {
			in.Observed.ServerFacts[name].Inventory.Problems = []string{"memory: 500"}
		}},
		"no inventory yet":                   {"InventoryComplete", "Unknown", func(in *input, _ *record) { in.Observed.ServerFacts[name].Inventory = nil }},
		"a server that was never wiped":      {"Wiped", "Unknown", nil},
		"a wipe":                             {"Wiped", "True", disks(wipedDisks("S1"))},
		"a wipe that failed":                 {"Wiped", "False", disks([]model.DiskWipe{{Result: model.WipeFailed}})},
		"a wipe without a disk":              {"Wiped", "False", disks(nil, fleettest.SDBMissing)},
		"a wipe without a disk, as accepted": {"Wiped", "True", disks(wipedDisks("S1"), fleettest.SDBGone)},
		"a label of the server over that of its BMC": {"burn-in/passed", "False", func(in *input, _ *record) {
			attest(in, 0, "true")
			in.Desired.Add(&model.Server{Meta: model.Meta{Name: string(name), Labels: map[string]string{"burn-in/passed": "False"}}})
		}},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			in := bigFleet(1, 0)
			if tt.change != nil {
				tt.change(in, in.Observed.Servers[name])
			}
			in.Desired.Add(readinessRule("r", requiring(tt.kind, tt.want)))
			if r := plan.Plan(in).ReadinessRules[0]; r.Ready != 1 {
				t.Errorf("%s is not %s: %+v", tt.kind, tt.want, r.Unready)
			}
		})
	}
}

func TestAnAvailableServerSaysWhichConditionsDoNotHold(t *testing.T) {
	in := bigFleet(2, 1) // the first serves a claim
	in.Desired.Add(readinessRule("burn-in", func(s *model.ServerReadinessRuleSpec) {
		s.Conditions = append(s.Conditions, model.RequiredCondition{Type: "Discovered", RequiredStatus: "True"},
			model.RequiredCondition{Type: "InventoryComplete", RequiredStatus: "True"})
	}))
	in.Desired.Add(readinessRule("evict", evicting))
	r := plan.Plan(in)
	want := proposal.Why{
		Reason: model.ReasonConditionsUnmet, Since: in.Observed.Servers[fleettest.ServerName(1)].Life.Since, Actor: proposal.RackOperator,
		Message: "ServerReadinessRule burn-in keeps taint burn-in on it: burn-in/passed is Unknown and has to be True, " +
			"Discovered is False and has to be True",
	}
	if diff := cmp.Diff(want, r.Servers[1].Why); diff != "" {
		t.Errorf("the free server (-want +got):\n%s", diff)
	}
	if bound := r.Servers[0]; bound.Why != (proposal.Why{}) || len(bound.Taints) != 2 || len(r.Moves) != 0 {
		t.Errorf("the bound server waits for %+v, has the taints %+v; moves %v", bound.Why, bound.Taints, r.Moves)
	}
}

func TestWhatARuleIsReadyForIsRememberedOnce(t *testing.T) {
	id := model.ReadinessRuleIdentity("burn-in")
	removed := map[model.Identity][]model.Removal{id: {{Revision: "main@sha1:1"}}}
	var many []string
	for i := range model.MaxBootstrapCompleted {
		many = append(many, fmt.Sprintf("r%02d", i))
	}
	rule := readinessRule("burn-in", bootstrap)
	tests := map[string]struct {
		rule   *model.ServerReadinessRule
		known  []string
		passed bool
		change change
		want   []string // nil = nothing is saved
	}{
		"the conditions hold":                  {rule: rule, passed: true, want: []string{"burn-in"}},
		"they do not":                          {rule: rule},
		"the list is sorted":                   {rule: rule, known: []string{"a", "z"}, passed: true, want: []string{"a", "burn-in", "z"}},
		"it is remembered already":             {rule: rule, known: []string{"burn-in"}, passed: true},
		"the conditions hold no more":          {rule: rule, known: []string{"burn-in"}},
		"a Continuous rule is not remembered":  {rule: readinessRule("burn-in"), passed: true},
		"one that became Continuous stays":     {rule: readinessRule("burn-in"), known: []string{"burn-in"}},
		"no more than the record may remember": {rule: rule, known: many, passed: true},
		"nothing while only observing":         {rule: rule, passed: true, change: func(in *input, _ *record) { in.ObserveOnly = "a test" }},
		"a rule that is merely not there":      {known: []string{"burn-in"}},
		"a rule that cannot be read":           {known: []string{"burn-in"}, change: func(in *input, _ *record) { in.Desired.Quarantined[id] = []string{""} }},
		"a rule that a commit took away": {
			known: []string{"a", "burn-in"}, want: []string{"a"}, change: func(in *input, _ *record) { in.Desired.Removed = removed },
		},
		"a rule that a commit took away before a restart": {known: []string{"a", "burn-in"}, want: []string{"a"}, change: func(in *input, _ *record) {
			in.Observed.Fleet.Removed = []model.RemovedObject{{Identity: id, Removal: removed[id][0]}}
		}},
		"a rule that is back": {rule: rule, known: []string{"burn-in"}, change: func(in *input, _ *record) { in.Desired.Removed = removed }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := bigFleet(1, 1)
			rec := in.Observed.Servers[fleettest.ServerName(0)]
			rec.Life.BootstrapCompleted = tt.known
			if tt.rule != nil {
				in.Desired.Add(tt.rule)
			}
			if tt.passed {
				attest(in, 0, "True")
			}
			if tt.change != nil {
				tt.change(in, rec)
			}
			m := plan.Plan(in).Moves[rec.Name]
			switch {
			case m == nil && tt.want != nil:
				t.Error("nothing is saved")
			case m != nil && tt.want == nil && len(m.Do) == 0:
				t.Errorf("saved are %v", m.Then.Life.BootstrapCompleted)
			case m != nil && tt.want != nil && (len(m.Do) > 0 || !slices.Equal(m.Then.Life.BootstrapCompleted, tt.want)):
				t.Errorf("saved are %v with %v, want %v alone", m.Then.Life.BootstrapCompleted, m.Do, tt.want)
			}
		})
	}
}
