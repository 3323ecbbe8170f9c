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

// TestUnboundClaim has a claim and a server that cannot be bound to it yet.
func TestUnboundClaim(t *testing.T) {
	const operator = string(proposal.RackOperator)
	cordoned := func(in *input, _ *record) { fleettest.AddManifest(in.Desired, 0, model.ServerSpec{Unclaimable: true}) }
	faulty := func(in *input, rec *record) { in.Desired.Quarantined[rec.Name.Identity()] = []string{""} }
	on := func(in *input, rec *record) { in.Observed.ServerFacts[rec.Name].Power = model.PowerOn }
	silent := readAs(func(r *reading.State) { *r = reading.State{Failed: reading.Failed{Failures: 1}} })
	for title, tt := range map[string]struct {
		want, actor string
		change      change
	}{
		"in discovery":                {"Discovery", "", state(model.StateDiscovery)},
		"before its discovery":        {"Initial", "", state(model.StateInitial)},
		"while it is wiped":           {"Cleanup", "", state(model.StateCleanup)},
		"in discovery and cordoned":   {"Discovery", operator, all(state(model.StateDiscovery), cordoned)},
		"in discovery, not reachable": {"Discovery", operator, all(state(model.StateDiscovery), silent)},
		"cordoned":                    {"cordoned", operator, cordoned},
		"not reachable":               {"out of reach", operator, silent},
		"not off yet (C12)":           {"not yet powered off", operator, on},
		"with a faulty manifest":      {"without a manifest that can be read", operator, faulty},
		"before a maintenance":        {"about to enter Maintenance", operator, toBeServiced},
	} {
		t.Run(title, func(t *testing.T) {
			in := waiting(bigFleet(1, 0), 1, nil)
			in.Policy.DiscoveryImage = "registry.example.com/probe:1"
			tt.change(in, in.Observed.Servers[first])
			want := proposal.Why{Reason: model.ReasonNoServerFree, Message: "1 server: 1 " + tt.want, Actor: proposal.Actor(tt.actor)}
			if got := claimWhy(in, "default/w00000"); got != want {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestMaintenanceOfUnknownServer(t *testing.T) {
	const unknown = "server rack-7 is not known"
	for title, tt := range map[string]struct {
		change func(*input)
		want   string // the warning
	}{
		"all BMCs were read":  {func(*input) {}, unknown},
		"a BMC was not asked": {func(in *input) { delete(in.Observed.BMCFacts, "bmc00001") }, ""},
		"a BMC never answered": {func(in *input) {
			delete(in.Observed.BMCFacts, "bmc00001")
			in.Observed.BMCs["bmc00001"] = &model.BMCRecord{Name: "bmc00001", BMCScratch: model.BMCScratch{Reason: model.ReasonConnectionFailed}}
		}, unknown + "; 1 BMC could not be read yet"},
		"the record of the server cannot be read": {func(in *input) { in.Observed.Fleet.Unreadable = []model.UnreadableRecord{{Server: "rack-7"}} }, ""},
	} {
		in := bigFleet(2, 0)
		toBeServiced(in, &record{RecordIdentity: model.RecordIdentity{Name: "rack-7"}})
		in.Desired.Maintenances["m"].References = []model.Reference{{To: model.ServerName("rack-7").Identity()}}
		tt.change(in)
		r, got := plan.Plan(in), ""
		for _, p := range r.Unmatched {
			got += p.Message
		}
		if got != tt.want || r.Maintenances[0].Unknown != unknown {
			t.Errorf("%s: warning %q, want %q; the maintenance says %q", title, got, tt.want, r.Maintenances[0].Unknown)
		}
	}
}

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
	disks := func(wiped []model.DiskWipe, missing ...model.MissingDisk) func(*input, *record) {
		return func(_ *input, rec *record) { rec.Disks.Wiped, rec.Disks.Missing = wiped, missing }
	}
	for title, tt := range map[string]struct {
		kind, want string
		change     change
	}{
		"a BMC that answers":                  {"BMCReadable", "True", nil},
		"after a restart the BMC counts, too": {"BMCReadable", "True", func(in *input, _ *record) { clear(in.Readings) }},
		"a BMC that missed one question":      {"BMCReadable", "True", readAs(func(r *reading.State) { r.Failures = 1 })},
		"a BMC that does not answer":          {"BMCReadable", "False", readAs(func(r *reading.State) { r.Failures = 2 })},
		"a BMC that refuses the password": {"BMCReadable", "False", func(in *input, rec *record) {
			in.Observed.BMCs[rec.BMC] = &model.BMCRecord{Name: rec.BMC, BMCScratch: model.BMCScratch{Reason: model.ReasonAuthenticationFailed}}
		}},
		"a BMC that is not in Git":      {"BMCReadable", "Unknown", func(in *input, rec *record) { delete(in.Desired.BMCs, rec.BMC) }},
		"a server whose probe reported": {"Discovered", "True", func(in *input, _ *record) { in.Observed.Probes[name] = &model.ProbeReport{} }},
		"an inventory":                  {"InventoryComplete", "True", nil},
		"an inventory with problems": {"InventoryComplete", "False", func(in *input, _ *record) {
			in.Observed.ServerFacts[name].Inventory.Problems = []string{"memory: 500"}
		}},
		"no inventory yet":                   {"InventoryComplete", "Unknown", func(in *input, _ *record) { in.Observed.ServerFacts[name].Inventory = nil }},
		"a wipe":                             {"Wiped", "True", disks(wipedDisks("S1"))},
		"a wipe that failed":                 {"Wiped", "False", disks([]model.DiskWipe{{Result: model.WipeFailed}})},
		"a wipe without a disk":              {"Wiped", "False", disks(nil, fleettest.SDBMissing)},
		"a wipe without a disk, as accepted": {"Wiped", "True", disks(wipedDisks("S1"), fleettest.SDBGone)},
		"a label of the server over that of its BMC": {"burn-in/passed", "False", func(in *input, _ *record) {
			attest(in, 0, "true")
			in.Desired.Add(&model.Server{Meta: model.Meta{Name: string(name), Labels: map[string]string{"burn-in/passed": "False"}}})
		}},
	} {
		t.Run(title, func(t *testing.T) {
			in := bigFleet(1, 0)
			all(tt.change)(in, in.Observed.Servers[name])
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
	rule, one := readinessRule("burn-in", bootstrap), []string{"burn-in"}
	removes := func(in *input, _ *record) { in.Desired.Removed = removed }
	for name, tt := range map[string]struct {
		rule   *model.ServerReadinessRule
		known  []string
		passed bool
		change change
		want   []string // nil = nothing is saved
	}{
		"the conditions hold":                  {rule: rule, passed: true, want: one},
		"they do not":                          {rule: rule},
		"the list is sorted":                   {rule: rule, known: []string{"a", "z"}, passed: true, want: []string{"a", "burn-in", "z"}},
		"it is remembered already":             {rule: rule, known: one, passed: true},
		"the conditions hold no more":          {rule: rule, known: one},
		"a Continuous rule is not remembered":  {rule: readinessRule("burn-in"), passed: true},
		"one that became Continuous stays":     {rule: readinessRule("burn-in"), known: one},
		"no more than the record may remember": {rule: rule, known: many, passed: true},
		"nothing while only observing":         {rule: rule, passed: true, change: func(in *input, _ *record) { in.ObserveOnly = "a test" }},
		"a rule that is merely not there":      {known: one},
		"a rule that cannot be read":           {known: one, change: func(in *input, _ *record) { in.Desired.Quarantined[id] = []string{""} }},
		"a rule that a commit took away":       {known: []string{"a", "burn-in"}, want: []string{"a"}, change: removes},
		"a rule that a commit took away before a restart": {known: []string{"a", "burn-in"}, want: []string{"a"}, change: func(in *input, _ *record) {
			in.Observed.Fleet.Removed = []model.RemovedObject{{Identity: id, Removal: removed[id][0]}}
		}},
		"a rule that is back": {rule: rule, known: one, change: removes},
	} {
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
			all(tt.change)(in, rec)
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
