package plan

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan/proposal"
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
func attest(in *Input, i int, value string) {
	in.Desired.BMCs[model.BMCName(fleettest.BMCName(i))].Labels["burn-in/passed"] = value
}

func TestARuleKeepsClaimsOffUntilItsConditionsHold(t *testing.T) {
	tests := map[string]struct {
		rules     []*model.ServerReadinessRule
		change    func(in *Input)
		tolerates string // a key
		bound     int    // which of three servers the claim gets, -1 = none
		why       string
	}{
		"no rule": {bound: 0},
		"no server has the label": {
			rules: []*model.ServerReadinessRule{readinessRule("burn-in")}, bound: -1,
			why: "3 servers: 3 tainted by ServerReadinessRule burn-in",
		},
		"one server has it": {
			rules: []*model.ServerReadinessRule{readinessRule("burn-in")}, bound: 1,
			change: func(in *Input) { attest(in, 1, "true") },
		},
		"the label says that it does not hold": {
			rules: []*model.ServerReadinessRule{readinessRule("burn-in")}, bound: -1,
			change: func(in *Input) { attest(in, 1, "False") }, why: "3 servers: 3 tainted by ServerReadinessRule burn-in",
		},
		"the label says nothing of the kind": {
			rules: []*model.ServerReadinessRule{readinessRule("burn-in")}, bound: -1,
			change: func(in *Input) { attest(in, 1, "yes") }, why: "3 servers: 3 tainted by ServerReadinessRule burn-in",
		},
		"a claim that tolerates the taint": {rules: []*model.ServerReadinessRule{readinessRule("burn-in")}, tolerates: "burn-in", bound: 0},
		"a claim that tolerates another":   {rules: []*model.ServerReadinessRule{readinessRule("burn-in")}, tolerates: "gpu", bound: -1},
		"a rule for other servers":         {rules: []*model.ServerReadinessRule{readinessRule("burn-in", ofRack("0"))}, bound: 1},
		"the effect Evict keeps nobody off": {
			rules: []*model.ServerReadinessRule{readinessRule("burn-in", evicting)}, bound: 0,
		},
		"of several rules the first that is not met is counted": {
			rules: []*model.ServerReadinessRule{
				readinessRule("a", ofRack("2"), requiring("Discovered", "True")), readinessRule("b", requiring("Discovered", "True")),
			},
			bound: -1, why: "3 servers: 2 tainted by ServerReadinessRule b, 1 tainted by ServerReadinessRule a",
		},
		"a taint of a manifest is another": {
			rules: []*model.ServerReadinessRule{readinessRule("burn-in", ofRack("1"))}, bound: -1,
			change: func(in *Input) {
				for _, i := range []int{0, 2} {
					fleettest.AddManifest(in.Desired, i, model.ServerSpec{Taints: []model.Taint{{Key: "gpu"}}})
				}
			},
			why: "3 servers: 2 tainted, 1 tainted by ServerReadinessRule burn-in",
		},
		"done once is enough for BootstrapOnly": {
			rules: []*model.ServerReadinessRule{readinessRule("burn-in", bootstrap)}, bound: 2,
			change: func(in *Input) {
				in.Observed.Servers[fleettest.ServerName(2)].Life.BootstrapCompleted = []string{"a", "burn-in"}
			},
		},
		"done once is not enough for Continuous": {
			rules: []*model.ServerReadinessRule{readinessRule("burn-in")}, bound: -1,
			change: func(in *Input) {
				in.Observed.Servers[fleettest.ServerName(2)].Life.BootstrapCompleted = []string{"burn-in"}
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := waiting(bigFleet(3, 0), 1, func(_ int, c *model.ServerClaim) {
				if tt.tolerates != "" {
					c.Spec.Tolerations = []model.Toleration{{Key: tt.tolerates, Operator: "Exists"}}
				}
			})
			for _, r := range tt.rules {
				in.Desired.Add(r)
			}
			if tt.change != nil {
				tt.change(in)
			}
			got := -1
			for i := range 3 {
				if m := Plan(in).Moves[fleettest.ServerName(i)]; m != nil && m.Then.Claim.Name == "default/w00000" {
					got = i
				}
			}
			if got != tt.bound {
				t.Errorf("the claim gets server %d, want %d: %s", got, tt.bound, claimWhy(in, "default/w00000").Message)
			}
			if why := claimWhy(in, "default/w00000"); tt.why != "" && why.Message != tt.why {
				t.Errorf("the claim says %q, want %q", why.Message, tt.why)
			}
		})
	}
}

func TestTheConditionsThatARuleMayRequire(t *testing.T) {
	name := fleettest.ServerName(0)
	tests := map[string]struct {
		kind   string
		change func(in *Input, rec *model.ServerRecord)
		want   string
	}{
		"a BMC that answers":                  {kind: "BMCReadable", want: "True"},
		"after a restart the BMC counts, too": {kind: "BMCReadable", change: func(in *Input, _ *model.ServerRecord) { clear(in.Readings) }, want: "True"},
		"a BMC that missed one question": {
			kind: "BMCReadable", change: func(in *Input, _ *model.ServerRecord) { in.Readings[name] = proposal.Reading{Failures: 1} }, want: "True",
		},
		"a BMC that does not answer": {
			kind: "BMCReadable", change: func(in *Input, _ *model.ServerRecord) { in.Readings[name] = proposal.Reading{Failures: 2} }, want: "False",
		},
		"a BMC that refuses the password": {
			kind: "BMCReadable", want: "False",
			change: func(in *Input, rec *model.ServerRecord) {
				in.Observed.BMCs[rec.BMC] = &model.BMCRecord{Name: rec.BMC, Reason: model.ReasonAuthenticationFailed}
			},
		},
		"a BMC that is not in Git": {
			kind: "BMCReadable", change: func(in *Input, rec *model.ServerRecord) { delete(in.Desired.BMCs, rec.BMC) }, want: "Unknown",
		},
		"a server without report": {kind: "Discovered", want: "False"},
		"a server whose probe reported": {
			kind: "Discovered", want: "True",
			change: func(in *Input, _ *model.ServerRecord) { in.Observed.Probes[name] = &model.ProbeReport{} },
		},
		"a report that the store has lost": {
			kind: "Discovered", change: func(_ *Input, rec *model.ServerRecord) { rec.Disks.KnownAt = rec.Life.Since }, want: "True",
		},
		"an inventory": {kind: "InventoryComplete", want: "True"},
		"an inventory that is not whole": {
			kind: "InventoryComplete", want: "False",
			change: func(in *Input, _ *model.ServerRecord) {
				in.Observed.ServerFacts[name].Inventory.Problems = []string{"memory: 500"}
			},
		},
		"no inventory yet": {
			kind: "InventoryComplete", want: "Unknown",
			change: func(in *Input, _ *model.ServerRecord) { in.Observed.ServerFacts[name].Inventory = nil },
		},
		"a server that was never wiped": {kind: "Wiped", want: "Unknown"},
		"a wipe": {
			kind: "Wiped", change: func(_ *Input, rec *model.ServerRecord) { rec.Disks.Wiped = wipedDisks("S1") }, want: "True",
		},
		"a wipe that failed": {
			kind: "Wiped", want: "False",
			change: func(_ *Input, rec *model.ServerRecord) {
				rec.Disks.Wiped = []model.DiskWipe{{Result: model.WipeFailed}}
			},
		},
		"a wipe that lacks a disk": {
			kind: "Wiped", change: func(_ *Input, rec *model.ServerRecord) { rec.Disks.Missing = []model.MissingDisk{fleettest.SDBMissing} }, want: "False",
		},
		"a wipe that lacks a disk that was accepted": {
			kind: "Wiped", want: "True",
			change: func(_ *Input, rec *model.ServerRecord) {
				rec.Disks.Wiped, rec.Disks.Missing = wipedDisks("S1"), []model.MissingDisk{fleettest.SDBGone}
			},
		},
		"no label":           {kind: "burn-in/passed", want: "Unknown"},
		"a label":            {kind: "burn-in/passed", change: func(in *Input, _ *model.ServerRecord) { attest(in, 0, "TRUE") }, want: "True"},
		"a label that is no": {kind: "burn-in/passed", change: func(in *Input, _ *model.ServerRecord) { attest(in, 0, "false") }, want: "False"},
		"a label of the server over that of its BMC": {
			kind: "burn-in/passed", want: "False",
			change: func(in *Input, _ *model.ServerRecord) {
				attest(in, 0, "true")
				in.Desired.Add(&model.Server{Meta: model.Meta{Name: string(name), Labels: map[string]string{"burn-in/passed": "False"}}})
			},
		},
		"a label without prefix": {kind: "slot", want: "Unknown"},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			in := bigFleet(1, 0)
			if tt.change != nil {
				tt.change(in, in.Observed.Servers[name])
			}
			for _, status := range []string{model.StatusTrue, model.StatusFalse, model.StatusUnknown} {
				in.Desired.Add(readinessRule(status, requiring(tt.kind, status)))
			}
			var holds []string
			for _, r := range Plan(in).ReadinessRules {
				if r.Servers != 1 {
					t.Errorf("rule %s is for %d servers", r.Name, r.Servers)
				}
				if r.Ready == 1 {
					holds = append(holds, r.Name)
				}
			}
			if diff := cmp.Diff([]string{tt.want}, holds); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.kind, diff)
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
	r := Plan(in)
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
		change func(in *Input, rec *model.ServerRecord)
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
		"nothing while only observing": {
			rule: rule, passed: true, change: func(in *Input, _ *model.ServerRecord) { in.ObserveOnly = "a test" },
		},
		"a rule that is merely not there": {known: []string{"burn-in"}},
		"a rule that cannot be read": {
			known: []string{"burn-in"}, change: func(in *Input, _ *model.ServerRecord) { in.Desired.Quarantined[id] = []string{""} },
		},
		"a rule that a commit took away": {
			known: []string{"a", "burn-in"}, want: []string{"a"},
			change: func(in *Input, _ *model.ServerRecord) { in.Desired.Removed = removed },
		},
		"a rule that a commit took away before a restart": {
			known: []string{"a", "burn-in"}, want: []string{"a"},
			change: func(in *Input, _ *model.ServerRecord) {
				in.Observed.Fleet.Removed = []model.RemovedObject{{Identity: id, Removal: removed[id][0]}}
			},
		},
		"a rule that is back": {
			rule: rule, known: []string{"burn-in"},
			change: func(in *Input, _ *model.ServerRecord) { in.Desired.Removed = removed },
		},
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
			m := Plan(in).Moves[rec.Name]
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

// A removal is noted in the fleet's record until no server remembers the rule: a restart in
// between does not leave a mark that a rule of the same name would be met by.
func TestThatARuleWasRemovedIsNotedWhileAServerRemembersIt(t *testing.T) {
	in := bigFleet(1, 0)
	id := model.ReadinessRuleIdentity("burn-in")
	in.Desired.Removed = map[model.Identity][]model.Removal{id: {{Revision: "main@sha1:1"}}}
	rec := in.Observed.Servers[fleettest.ServerName(0)]
	rec.Life.BootstrapCompleted = []string{"burn-in"}
	r := Plan(in)
	if f := r.Decided.Fleet; f == nil || len(f.Removed) != 1 || f.Removed[0].Identity != id {
		t.Fatalf("noted is %+v", f)
	}
	in.Observed.Fleet = *r.Decided.Fleet
	rec.Life.BootstrapCompleted = nil
	if f := Plan(in).Decided.Fleet; f == nil || len(f.Removed) != 0 {
		t.Errorf("noted is %+v, though nothing depends on it", f)
	}
}

func TestARuleNamesTheFirstServersThatAreNotReady(t *testing.T) {
	in := bigFleet(MaxUnready+10, 0)
	attest(in, 3, "True")
	in.Desired.Add(readinessRule("burn-in"))
	r := Plan(in).ReadinessRules[0]
	if r.Servers != MaxUnready+10 || r.Ready != 1 || len(r.Unready) != MaxUnready {
		t.Fatalf("%d servers, %d ready, %d named", r.Servers, r.Ready, len(r.Unready))
	}
	want := UnreadyServer{fleettest.ServerName(4), "burn-in/passed is Unknown and has to be True"}
	if r.Unready[3] != want {
		t.Errorf("the fourth is %+v, want %+v", r.Unready[3], want)
	}
}

func TestEachServerSaysWhatItLacksItself(t *testing.T) {
	in := bigFleet(4, 0)
	in.Desired.Add(readinessRule("burn-in", func(s *model.ServerReadinessRuleSpec) {
		s.Conditions = append(s.Conditions, model.RequiredCondition{Type: "Discovered", RequiredStatus: "True"})
	}))
	attest(in, 1, "True")
	attest(in, 3, "True")
	for _, i := range []int{2, 3} {
		in.Observed.Probes[fleettest.ServerName(i)] = &model.ProbeReport{}
	}
	label, report := "burn-in/passed is Unknown and has to be True", "Discovered is False and has to be True"
	want := []string{label + ", " + report, report, label, ""}
	for i, s := range Plan(in).Servers {
		got := ""
		for _, t := range s.Taints {
			got = t.Unmet
		}
		if got != want[i] {
			t.Errorf("server %d lacks %q, want %q", i, got, want[i])
		}
	}
}

func TestATenantWithoutServersKeepsNoneFromOthers(t *testing.T) {
	in := waiting(bigFleet(1, 0), 1, nil)
	in.Policy.Tenants = model.Tenants{
		{Path: "ops", Kinds: []model.Kind{"*"}}, {Path: "alpha", Kinds: []model.Kind{model.KindServerReadinessRule}},
	}
	rule := readinessRule("burn-in")
	in.Desired.Add(rule)
	for tenant, refused := range map[string]bool{"alpha": true, "ops": false} {
		rule.Tenant = tenant
		r := Plan(in)
		if got := r.ReadinessRules[0]; got.Refused != refused || (got.Servers == 0) != refused || (len(r.Moves) == 1) != refused {
			t.Errorf("of %s: %+v with moves %v", tenant, got, r.Moves)
		}
	}
}
