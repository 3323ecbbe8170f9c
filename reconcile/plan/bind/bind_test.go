package bind_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/model/must"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan/bind"
	"ingot/reconcile/plan/policy"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/reading"
)

// server reads a server: its name and, in any order, its state, labels and other properties.
func server(text string) *bind.View {
	words := strings.Fields(text)
	rec := &model.ServerRecord{
		RecordIdentity: model.RecordIdentity{UUID: "00000000-0000-4000-8000-0000000000" + words[0][1:] + "0"},
		Life:           model.RecordLife{State: model.StateAvailable},
	}
	s := &bind.View{Labels: make(map[string]string), Server: &proposal.Server{
		Moment: &proposal.Moment{Observed: model.NewObserved()}, Name: model.ServerName(words[0]), Record: rec,
		Facts: new(model.ServerFacts), Reading: new(reading.State),
	}}
	for _, word := range words[1:] {
		switch k, v, isLabel := strings.Cut(word, "="); {
		case word == "coming":
			s.Coming = true
		case word == "busy":
			s.Busy = true
		case word == "discovered":
			rec.Disks.KnownAt = fleettest.Now
		case k == "unfree":
			s.Unfree = v
		case k == "claim":
			rec.Claim.Name = model.ClaimName(v)
		case k == "bootstrapped":
			rec.Life.BootstrapCompleted = []string{v}
		case isLabel:
			s.Labels[k] = v
		default:
			rec.Life.State = model.ServerState(word)
		}
	}
	return s
}

func newInput() bind.Input {
	return bind.Input{Moment: &proposal.Moment{Desired: model.NewDesired(), Policy: new(policy.Options)}}
}

// input reads servers, and manifests of the form KIND {METADATA} {SPEC}, one a line.
func input(t *testing.T, text string) bind.Input {
	t.Helper()
	in := newInput()
	for line := range strings.Lines(text) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.HasPrefix(kind, "Server") {
			for text := range strings.SplitSeq(line, ";") {
				in.Servers = append(in.Servers, server(text))
			}
			continue
		}
		meta, spec, _ := strings.Cut(rest, "} {")
		switch {
		case kind == "ServerClaim":
			spec = `power: "On", image: "r.example/os:1", ` + spec
		case kind == "ServerReadinessRule" && !strings.Contains(spec, "taint:"):
			spec = "taint: {key: k}, " + spec
		}
		objects, problems := model.Decode("f", fmt.Appendf(nil, "apiVersion: metal.ironcore.dev/v1alpha1\nkind: %s\nmetadata: %s}\nspec: {%s", kind, meta, spec), model.DecodeOptions{})
		if model.HasErrors(problems) {
			t.Fatal(problems)
		}
		in.Desired.Add(objects[0])
	}
	for _, s := range in.Servers {
		if m := in.Desired.Servers[s.Name]; m != nil && m.Spec.SystemUUID == "" {
			s.Manifest = m
		}
	}
	for _, name := range slices.Sorted(maps.Keys(in.Desired.Claims)) {
		in.Claims = append(in.Claims, &bind.Claim{Name: name, Manifest: in.Desired.Claims[name], Record: new(model.ClaimRecord)})
	}
	return in
}

// shown lists the decisions and the warnings.
func shown(r *bind.Fleet) string {
	var b strings.Builder
	for _, c := range r.Claims {
		fmt.Fprintf(&b, "> %s: %s: %s\n", strings.TrimPrefix(string(c.Name), "default/"), c.Why.Reason, c.Why.Text())
	}
	for _, rule := range r.Rules {
		fmt.Fprintf(&b, "> rule %s: %d of %d ready, refused %t\n", rule.Name, rule.Ready, rule.Servers, rule.Refused)
	}
	for _, s := range r.Servers {
		for _, t := range s.Taints {
			fmt.Fprintf(&b, "> %s has taint %s: %s\n", s.Name, t.Rule, t.Unmet)
		}
		if len(s.Bootstrapped) > 0 {
			fmt.Fprintf(&b, "> %s is ready for %v\n", s.Name, s.Bootstrapped)
		}
	}
	for _, p := range r.Unmatched(0) {
		fmt.Fprintf(&b, "> %s\n", p)
	}
	return b.String()
}

func TestPlan(t *testing.T) {
	changes := map[string]func(*bind.Input){
		"urgent claims first, then old ones, then by name": func(in *bind.Input) {
			for i, sequence := range []int64{2, 2, 1, 9} {
				in.Claims[i].Record.Sequence = sequence
			}
		},
		"claims name servers": func(in *bind.Input) { in.Aliases = map[string]model.ServerName{"rack-7": "s5"} },
		"a claim that must wait and one with a server": func(in *bind.Input) {
			in.Claims[0].Why, in.Claims[1].Server = proposal.Why{Reason: "FoundRunning", Message: "wait"}, "s7"
		},
		"all claims must wait": func(in *bind.Input) { in.Hold = proposal.Why{Reason: "ObserveOnly", Message: "a test"} },
		"a tenant gets his servers, and keeps none from others": func(in *bind.Input) {
			in.Policy.Tenants = model.Tenants{{Path: "alpha", Servers: &metav1.LabelSelector{MatchLabels: map[string]string{"rack": "b"}}}}
			in.Claims[0].Manifest.Tenant, in.Claims[1].Manifest.Tenant, in.Desired.ReadinessRules["burn"].Tenant = "alpha", "alpha", "alpha"
		},
		"a new catalogue changes no claim with a server": func(in *bind.Input) {
			in.Desired.Images = &model.ImageCatalog{Spec: model.ImageCatalogSpec{Images: []model.CatalogImage{{Name: "my-os-0"}, {Name: "my-os-1"}, {Name: "my-os-2"}}}}
			in.Claims[1].Server = "s2"
		},
		"servers that may be unreadable": func(in *bind.Input) {
			in.Unreadable = []model.UnreadableRecord{{Server: "s8"}}
			in.Desired.Quarantined[model.ServerName("s9").Identity()] = []string{""}
		},
	}
	cases, err := txtar.ParseFile("testdata/plan.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range cases.Files {
		t.Run(tt.Name, func(t *testing.T) {
			text, want := string(tt.Data), ""
			if at := strings.Index(text, "> "); at >= 0 {
				text, want = text[:at], text[at:]
			}
			in := input(t, text)
			if change := changes[tt.Name]; change != nil {
				change(&in)
			}
			if diff := cmp.Diff(want, shown(bind.Plan(in))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlanChecksBootsFirst(t *testing.T) {
	plan := func(checked map[proposal.BootKey]proposal.Checked) *bind.Fleet {
		in := input(t, "s1\ns2\nServerClaim {name: a} {}\nServerClaim {name: b} {}")
		in.Checked = checked
		return bind.Plan(in)
	}
	unknown := plan(map[proposal.BootKey]proposal.Checked{})
	if len(unknown.Wanted) != 1 {
		t.Fatalf("%d checks of equal boots", len(unknown.Wanted))
	}
	var key proposal.BootKey
	for key = range unknown.Wanted {
	}
	for name, tc := range map[string]struct {
		result *proposal.Checked // nil = there is none yet
		want   string
		actor  proposal.Actor
		bound  bool
	}{
		"no result yet":                     {nil, model.ReasonInProgress, proposal.ActorNone, false},
		"a check that goes on":              {&proposal.Checked{Pending: true}, model.ReasonInProgress, proposal.ActorNone, false},
		"the registry does not answer":      {&proposal.Checked{Failed: &proposal.Failure{Reason: model.ReasonRegistryUnreachable}}, model.ReasonRegistryUnreachable, proposal.RackOperator, false},
		"no such image":                     {&proposal.Checked{Failed: &proposal.Failure{Reason: model.ReasonNotFound}}, model.ReasonNotFound, proposal.Tenant, false},
		"a registry that is not allowed":    {&proposal.Checked{Failed: &proposal.Failure{Reason: model.ReasonRegistryNotAllowed}}, model.ReasonRegistryNotAllowed, proposal.Tenant, false},
		"an error in the Secret":            {&proposal.Checked{Failed: &proposal.Failure{Reason: model.ReasonSourceInvalid}}, model.ReasonSourceInvalid, proposal.Tenant, false},
		"an image for no server":            {&proposal.Checked{Failed: &proposal.Failure{Reason: model.ReasonNoArchitecture}}, model.ReasonNoArchitecture, proposal.Tenant, false},
		"an image and Secret that are fine": {&proposal.Checked{}, model.ReasonInProgress, proposal.ActorNone, true},
	} {
		t.Run(name, func(t *testing.T) {
			results := map[proposal.BootKey]proposal.Checked{}
			if tc.result != nil {
				results[key] = *tc.result
			}
			r := plan(results)
			for i, c := range r.Claims {
				if c.Why.Reason != tc.want || c.Why.Actor != tc.actor || (r.Servers[i].Binds != nil) != tc.bound {
					t.Errorf("claim %s: %+v, bound = %t", c.Name, c.Why, r.Servers[i].Binds != nil)
				}
			}
		})
	}
}

// A result is used for equal boots only.
func TestPlanChecksEqualBootsOnce(t *testing.T) {
	secret := func(d *model.Desired, name, ignition string) {
		d.Add(&model.Secret{Meta: model.Meta{Name: name, Namespace: "default"}, Values: map[string]model.Sensitive{"ignition": model.NewSensitive(ignition)}})
	}
	for name, tc := range map[string]struct {
		claims int
		change func(i int, c *model.ServerClaim, d *model.Desired)
		want   int
	}{
		"equal claims": {5000, func(int, *model.ServerClaim, *model.Desired) {}, 1},
		"SSH keys of their own": {2, func(i int, c *model.ServerClaim, _ *model.Desired) {
			c.Annotations = map[string]string{model.AnnotationSSHKeys: fmt.Sprint(i)}
		}, 1},
		"images of their own": {2, func(i int, c *model.ServerClaim, _ *model.Desired) { c.Spec.Image += fmt.Sprint(i) }, 2},
		"kernel arguments": {2, func(i int, c *model.ServerClaim, _ *model.Desired) {
			c.Annotations = map[string]string{model.AnnotationKernelArguments: fmt.Sprint(i)}
		}, 2},
		"a boot from the network": {2, func(i int, c *model.ServerClaim, _ *model.Desired) {
			c.Annotations = map[string]string{model.AnnotationBoot: []string{"", "always"}[i]}
		}, 2},
		"Secrets of other content": {2, func(i int, c *model.ServerClaim, d *model.Desired) {
			secret(d, c.Name, fmt.Sprint(i))
			c.Spec.IgnitionSecretRef = &model.LocalRef{Name: c.Name}
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInput()
			in.Checked = map[proposal.BootKey]proposal.Checked{}
			for i := range tc.claims {
				c := fleettest.Claim(fmt.Sprintf("c%04d", i))
				tc.change(i, c, in.Desired)
				in.Servers = append(in.Servers, server(fmt.Sprintf("s%04d", i)))
				in.Claims = append(in.Claims, &bind.Claim{Name: c.ClaimName(), Manifest: c, Record: new(model.ClaimRecord)})
			}
			if got := len(bind.Plan(in).Wanted); got != tc.want {
				t.Errorf("%d checks, want %d", got, tc.want)
			}
		})
	}
}

func TestPlanKeepsServerWhileBootIsChecked(t *testing.T) {
	plan := func(change func(in *bind.Input)) *bind.Fleet {
		in := input(t, `s1`+"\n"+`ServerClaim {name: a, annotations: {ingot/priority: "1"}} {}`+"\n"+`ServerClaim {name: b, annotations: {ingot/kernel-arguments: quiet}} {}`)
		in.Now, in.Checked = fleettest.Now, map[proposal.BootKey]proposal.Checked{}
		change(&in)
		return bind.Plan(in)
	}
	key := func(claim int) (of proposal.BootKey) {
		alone := plan(func(in *bind.Input) { in.Claims = in.Claims[claim : claim+1] })
		for of = range alone.Wanted {
		}
		return of
	}
	first, second := key(0), key(1)
	for name, tc := range map[string]struct {
		result *proposal.Checked // of claim a; that of claim b is fine
		gets   string
	}{
		"a check that begins":             {nil, ""},
		"a check that goes on":            {&proposal.Checked{Pending: true, Since: fleettest.Now.Add(-29 * time.Second)}, ""},
		"a check that goes on for long":   {&proposal.Checked{Pending: true, Since: fleettest.Now.Add(-30 * time.Second)}, "b"},
		"a check that failed":             {&proposal.Checked{Failed: &proposal.Failure{Reason: model.ReasonNotFound}, Since: fleettest.Now}, "b"},
		"a check whose result is correct": {&proposal.Checked{Since: fleettest.Now}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			r, got := plan(func(in *bind.Input) {
				in.Checked[second] = proposal.Checked{}
				if tc.result != nil {
					in.Checked[first] = *tc.result
				}
			}), ""
			if c := r.Servers[0].Binds; c != nil {
				got = c.Name
			}
			if got != tc.gets {
				t.Errorf("claim %q gets the server, want %q", got, tc.gets)
			}
		})
	}
}

// TestUnboundCounts compares the reason of each claim with the reasons that a plan of each server
// alone has for it. Which of several missing labels is named may differ.
func TestUnboundCounts(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(1, seed))
		in := newInput()
		if r.IntN(4) == 0 {
			in.Policy.Tenants = model.Tenants{{Path: "alpha", Servers: &metav1.LabelSelector{MatchLabels: map[string]string{"rack": "1"}}}}
		}
		for i := range 1 + r.IntN(60) {
			s := server(fmt.Sprintf("s%02d rack=%d slot=%d own=%d busy", i, r.IntN(4), r.IntN(4), r.IntN(3)))
			if r.IntN(2) == 0 {
				s.Record.Life.State = model.ServerStates[r.IntN(len(model.ServerStates))]
			}
			if r.IntN(3) == 0 {
				delete(s.Labels, "own")
			}
			s.Unfree = []string{"cordoned", "out of reach", ""}[r.IntN(3)]
			in.Servers = append(in.Servers, s)
		}
		for i := range 8 {
			sel := &metav1.LabelSelector{MatchLabels: map[string]string{}}
			for _, k := range []string{"rack", "slot", "own"} {
				if r.IntN(2) == 0 {
					sel.MatchLabels[k] = fmt.Sprint(r.IntN(4))
				}
			}
			if r.IntN(3) == 0 {
				sel.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "own", Operator: metav1.LabelSelectorOpExists}}
			}
			c := fleettest.Claim(fmt.Sprint("w", i), fleettest.OfTenant([]string{"", "alpha"}[r.IntN(2)]))
			if r.IntN(4) > 0 {
				c.Spec.ServerSelector = sel
			}
			in.Claims = append(in.Claims, &bind.Claim{Name: c.ClaimName(), Manifest: c, Record: new(model.ClaimRecord)})
		}
		reasons := func(in bind.Input, claim int) []string {
			for _, c := range in.Claims {
				c.Why = proposal.Why{}
			}
			message := bind.Plan(in).Claims[claim].Why.Message
			if strings.HasPrefix(message, "no server has label ") {
				return []string{fmt.Sprint(len(in.Servers), " lack a label")}
			}
			lack, rest := 0, []string(nil)
			_, says, _ := strings.Cut(message, ": ")
			for says := range strings.SplitSeq(says, ", ") {
				if n, _, labels := strings.Cut(says, " lack label "); labels {
					lack += must.Get(strconv.Atoi(n))(t)
				} else {
					rest = append(rest, says)
				}
			}
			if lack > 0 {
				rest = append(rest, fmt.Sprint(lack, " lack a label"))
			}
			return rest
		}
		for i := range in.Claims {
			alone, counts := in, make(map[string]int)
			for at := range in.Servers {
				alone.Servers = in.Servers[at : at+1]
				counts[strings.TrimPrefix(reasons(alone, i)[0], "1 ")]++
			}
			var want []string
			for reason, n := range counts {
				want = append(want, fmt.Sprintf("%d %s", n, reason))
			}
			got := reasons(in, i)
			if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got))); diff != "" {
				t.Fatalf("seed %d, claim %+v (-want +got):\n%s", seed, in.Claims[i].Manifest.Spec, diff)
			}
		}
	}
}

// TestUnmatchedTakesLittle checks that the time of very many warnings does not grow by their square.
func TestUnmatchedTakesLittle(t *testing.T) {
	const n = 10_000
	in := newInput()
	for i := range 2000 {
		in.Servers = append(in.Servers, server(fmt.Sprintf("bmc%05d-system-0", i)))
	}
	for i := range n {
		in.Desired.Add(&model.Server{
			Meta: model.Meta{Name: fmt.Sprintf("rack-%05d", i)}, Spec: model.ServerSpec{SystemUUID: fmt.Sprintf("00000000-0000-4000-9000-%012d", i)},
		})
		in.Desired.Add(&model.ServerMaintenance{Meta: model.Meta{Name: fmt.Sprintf("m%05d", i), References: []model.Reference{
			{To: model.Identity{Kind: model.KindServer, Name: fmt.Sprintf("bmc-%05d-system-0", i)}},
		}}})
	}
	guessed, problems := 0, bind.Plan(in).Unmatched(0)
	for _, p := range problems {
		if strings.Contains(p.Message, "did you mean") {
			guessed++
		}
	}
	if len(problems) != 2*n || guessed == 0 || guessed > 20 {
		t.Errorf("got %d warnings, %d of them with a guess, want %d and a few", len(problems), guessed, 2*n)
	}
}

func TestRuleListsFirstUnreadyServers(t *testing.T) {
	in := input(t, `ServerReadinessRule {name: r} {enforcementMode: Continuous, conditions: [{type: Discovered, requiredStatus: "True"}]}`)
	for i := range bind.MaxUnready + 10 {
		in.Servers = append(in.Servers, server(fmt.Sprintf("s%02d", i)))
	}
	in.Servers[3].Record.Disks.KnownAt = fleettest.Now
	r := bind.Plan(in).Rules[0]
	if r.Servers != bind.MaxUnready+10 || r.Ready != 1 || len(r.Unready) != bind.MaxUnready {
		t.Fatalf("%d servers, %d ready, %d listed", r.Servers, r.Ready, len(r.Unready))
	}
	if want := (bind.UnreadyServer{Name: "s04", Unmet: "Discovered is False and has to be True"}); r.Unready[3] != want {
		t.Errorf("the fourth is %+v, want %+v", r.Unready[3], want)
	}
}
