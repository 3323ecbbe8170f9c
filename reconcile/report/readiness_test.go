package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/internal/plantest"
	"ingot/reconcile/plan"
	"ingot/reconcile/plan/bind"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/world"
)

// withRule is a settled fleet with a rule that requires label burn-in/passed, which the
// first server has.
func withRule(servers int) *world.Input {
	in := plantest.BigFleet(servers, 0)
	in.Desired.Add(&model.ServerReadinessRule{Meta: model.Meta{Name: "burn-in"}, Spec: model.ServerReadinessRuleSpec{
		Conditions:      []model.RequiredCondition{{Type: "burn-in/passed", RequiredStatus: model.StatusTrue}},
		EnforcementMode: model.Continuous, Taint: model.Taint{Key: "burn-in", Value: "due", Effect: model.TaintNoBind},
	}})
	in.Desired.BMCs[model.BMCName(fleettest.BMCName(0))].Labels["burn-in/passed"] = "true"
	return in
}

func TestARuleSaysForWhichServersItIsMet(t *testing.T) {
	in := withRule(bind.MaxUnready + 3)
	r := reportOf(in)
	got := r.Documents["serverreadinessrules/burn-in.yaml"].Object.(*Document).Status.(ReadinessRuleStatus)
	unmet := "burn-in/passed is Unknown and has to be True"
	want := ReadinessRuleStatus{Servers: bind.MaxUnready + 3, Ready: 1, LeftOut: "2 servers more"}
	for i := range bind.MaxUnready {
		want.Unready = append(want.Unready, UnreadyServer{fleettest.ServerName(i + 1), unmet})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	in.Policy.Tenants = model.Tenants{{Path: "alpha", Kinds: []model.Kind{model.KindServerReadinessRule}}}
	in.Desired.ReadinessRules["burn-in"].Tenant = "alpha"
	refused := reportOf(in).Documents["serverreadinessrules/burn-in.yaml"].Object.(*Document).Status.(ReadinessRuleStatus)
	if !strings.HasPrefix(refused.Message, "refused: those below alpha may define no Server") || refused.Servers != 0 {
		t.Errorf("a tenant's rule says %+v", refused)
	}
}

func TestAServerShowsTheTaintsOfRules(t *testing.T) {
	in := withRule(2)
	fleettest.ChangeRecord(in.Observed, 0, func(rec *model.ServerRecord) { rec.Life.BootstrapCompleted = []string{"firmware"} })
	in.Observed.ServerFacts[fleettest.ServerName(0)].Inventory.Problems = []string{"memory: 500"}
	files := fleettest.Rendered(t, reportOf(in))
	for i, want := range [][]string{
		{
			"readiness.metal.ironcore.dev/bootstrap-completed-firmware: \"true\"", "bootstrapCompleted:\n    - firmware",
			"message: 'memory: 500'\n    reason: PartsUnreadable\n    status: \"False\"\n    type: InventoryComplete",
		},
		{"taints:\n  - effect: NoBind\n    key: burn-in\n    message: burn-in/passed is Unknown and has to be True\n    rule: burn-in\n    value: due"},
	} {
		for _, text := range want {
			if got := string(files["servers/"+string(fleettest.ServerName(i))+".yaml"]); !strings.Contains(got, text) {
				t.Errorf("server %d does not show %q:\n%s", i, text, got)
			}
		}
	}
	docs := documentsOf(in)
	unready := docs.Get(Servers, string(fleettest.ServerName(1)))
	taint := Fact{Name: "taint", Value: "burn-in=due, by ServerReadinessRule burn-in: burn-in/passed is Unknown and has to be True"}
	if w := unready.Overview().First(); !slices.Contains(docs.Facts(unready), taint) || !strings.Contains(w.Message, "keeps taint burn-in on it") ||
		w.Actor != proposal.RackOperator || w.Next == "" {
		t.Errorf("it has facts %v and waits for %+v", docs.Facts(unready), w)
	}
	if st := serverStatusOf(in, fleettest.ServerName(0)); len(st.Taints) > 0 || conditions(st.Conditions).of("Ready").Status != metav1.ConditionTrue {
		t.Errorf("the server that is ready has taints %v and conditions %+v", st.Taints, st.Conditions)
	}
}

func TestNewsOfARuleAreItsCounts(t *testing.T) {
	in := withRule(3)
	var p Projector
	var story Story
	first := reportBy(&p, in)
	story.Published(plan.Plan(in), first)
	d := in.Desired.Clone()
	passed := *d.BMCs["bmc00001"]
	passed.Labels = map[string]string{"burn-in/passed": "True"}
	d.Add(&passed)
	in.Desired = d
	second := reportBy(&p, in)
	story.Describe(in.Desired, plan.Plan(in), second)
	want := []string{"bmc00001-system-0: Available", "readiness rule burn-in: 2 of 3 servers ready", "BMC bmc00001: details"}
	if diff := cmp.Diff(want, second.Body); diff != "" {
		t.Errorf("once the label is set (-want +got):\n%s", diff)
	}
	if first.Documents["servers/bmc00002-system-0.yaml"] != second.Documents["servers/bmc00002-system-0.yaml"] {
		t.Error("a server of which nothing changed is shown anew")
	}
	fleettest.ChangeRecord(in.Observed, 2, func(rec *model.ServerRecord) { rec.Life.State = model.StateReserved; rec.Claim.Name = "default/gone" })
	third := reportBy(&p, in)
	story.Published(plan.Plan(in), third)
	d = in.Desired.Clone()
	delete(d.ReadinessRules, "burn-in")
	in.Desired = d
	fourth := reportBy(&p, in)
	story.Describe(in.Desired, plan.Plan(in), fourth)
	if diff := cmp.Diff([]string{"readiness rule burn-in: gone", "bmc00002-system-0: 0 taints"}, fourth.Body); diff != "" {
		t.Errorf("once the rule is gone, of a bound server (-want +got):\n%s", diff)
	}
}
