package report

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/reconcile/internal/plantest"
	"ingot/reconcile/plan"
)

// explainable are the files of a small fleet's status branch.
var explainable = map[string][]byte{
	"README.md": []byte("# Fleet"),
	"serverclaims/default/web.yaml": []byte(`
metadata: {name: web, namespace: default}
spec: {image: registry.example.com/os:1}
status:
  phase: Bound
  server: s1
  conditions:
  - {type: Bound, status: "True", reason: Bound, message: "", lastTransitionTime: "2026-11-21T08:00:00Z"}
  - {type: Ready, status: "False", reason: WaitingForBoot, message: "waits for the boot", lastTransitionTime: "2026-11-21T08:00:00Z"}
`),
	"serverclaims/other/web.yaml": []byte("metadata: {name: web, namespace: other}\n"),
	"servers/s1.yaml": []byte(`
metadata: {name: s1}
spec:
  bmcRef: {name: b1}
  systemUUID: u1
  serverClaimRef: {namespace: default, name: web}
  unclaimable: true
  taints: [{key: a}, {key: b, value: c}]
status:
  state: Reserved
  powerState: "On"
  bootTimeline: [{stage: DHCP, at: "2026-11-21T08:00:01Z"}, {stage: TFTP, at: "2026-11-21T08:00:03Z"}]
decided: {life: {since: "2026-11-21T07:59:00Z"}}
`),
	"bmcs/b1.yaml": []byte(`
metadata: {name: b1}
spec: {endpointRef: {name: oob-1}, protocol: {name: Redfish, port: 443}}
status: {state: Enabled, ip: 10.0.0.1, manufacturer: ACME, model: X}
`),
	"endpoints/oob-1.yaml": []byte(`
metadata: {name: oob-1}
spec: {macAddress: "02:00:00:00:00:01", ip: 10.0.0.1}
status: {network: oob}
`),
}

func on(clock string) time.Time {
	t, err := time.Parse(time.RFC3339, "2026-11-21T"+clock+"Z")
	if err != nil {
		panic(err)
	}
	return t
}

func TestAnExplanationGoesDownToTheEndpoint(t *testing.T) {
	got, err := ExplainFiles(explainable, "claim", "default/web")
	if err != nil {
		t.Fatal(err)
	}
	endpoint := Explanation{
		Kind: "endpoint", Name: "oob-1", Facts: []Fact{{"MAC address", "02:00:00:00:00:01"}, {"address", "10.0.0.1"}, {"network", "oob"}},
	}
	bmc := Explanation{
		Kind: "bmc", Name: "b1", State: "Enabled", Facts: []Fact{{"address", "10.0.0.1"}, {"hardware", "ACME X"}},
		Related: []Explanation{endpoint},
	}
	server := Explanation{
		Kind: "server", Name: "s1", State: "Reserved", Since: on("07:59:00"),
		Facts: []Fact{
			{"power", "On"}, {"claim", "default/web"}, {"uuid", "u1"}, {"cordoned", "yes: unclaimable is set"},
			{"taint", "a"}, {"taint", "b=c"},
		},
		Boot:    []model.BootStep{{Stage: "DHCP", At: on("08:00:01")}, {Stage: "TFTP", At: on("08:00:03")}},
		Related: []Explanation{bmc},
	}
	want := Explanation{
		Kind: "claim", Name: "default/web", State: "Bound", Since: on("08:00:00"), Why: "waits for the boot",
		Next:  "nothing: Ingot continues on its own",
		Facts: []Fact{{"image", "registry.example.com/os:1"}}, Related: []Explanation{server},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreTypes([]metav1.Condition{})); diff != "" {
		t.Errorf("explanation (-want +got):\n%s", diff)
	}
	if len(got.Conditions) != 2 {
		t.Errorf("%d conditions, want 2", len(got.Conditions))
	}
}

func TestAnExplanationSaysWhoHasToActAndWhere(t *testing.T) {
	got, err := ExplainFiles(map[string][]byte{"servers/s1.yaml": []byte(`
metadata: {name: s1}
status:
  state: Discovery
  bootTimeline: [{stage: armed, at: "2026-11-21T08:00:00Z"}, {stage: DHCP, at: "2026-11-21T08:00:01Z"}]
  conditions:
  - type: Ready
    status: "False"
    reason: ConnectionFailed
    message: "no route to host (to act: rack operator)"
    lastTransitionTime: "2026-11-21T08:00:00Z"
  - {type: BootProgress, status: "False", reason: DHCP, message: "last seen: DHCP 08:00:01Z", lastTransitionTime: "2026-11-21T08:00:01Z"}
`)}, "server", "s1")
	if err != nil {
		t.Fatal(err)
	}
	if got.Why != "no route to host" || got.Actor != "rack operator" || !strings.Contains(got.Next, "power and link") ||
		!strings.Contains(got.BootHint, "TFTP") {
		t.Errorf("got %+v", got)
	}
}

func TestWhatCannotBeExplainedIsSaid(t *testing.T) {
	for name, tc := range map[string]struct {
		kind, name, want string
		unknown          bool
	}{
		"a server that is misspelt": {kind: "server", name: "s2", want: "server s2 is not known, did you mean s1?", unknown: true},
		"a kind that has no status": {
			kind: "secret", name: "x",
			want: `"secret" is no kind that can be explained: it is bmc, boot-configuration, claim, endpoint, server`,
		},
		"a claim's name in two namespaces": {
			kind: "claim", name: "web",
			want: "there are 2 claims web: name it with its namespace, such as default/web",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ExplainFiles(explainable, tc.kind, tc.name)
			if err == nil || err.Error() != tc.want || errors.Is(err, ErrUnknownObject) != tc.unknown {
				t.Errorf("got %v\nwant %s", err, tc.want)
			}
		})
	}
}

// A claim that Git lacks is explained by the server that has it still.
func TestAClaimThatGitLacksIsExplainedByItsServer(t *testing.T) {
	files := maps.Clone(explainable)
	delete(files, "serverclaims/default/web.yaml")
	delete(files, "serverclaims/other/web.yaml")
	files["servers/s1.yaml"] = []byte(`
metadata: {name: s1}
spec: {serverClaimRef: {namespace: default, name: web}}
status:
  state: Reserved
  conditions:
  - {type: Ready, status: "False", reason: GuardHeld, message: "its release waits (to act: rack operator)", lastTransitionTime: "2026-11-21T08:00:00Z"}
`)
	for _, name := range []string{"web", "default/web"} {
		got, err := ExplainFiles(files, "claim", name)
		if err != nil {
			t.Fatal(err)
		}
		if got.Name != "default/web" || got.State != "not in Git" || got.Why != "server s1 has it still: its release waits" ||
			got.Actor != "rack operator" || len(got.Related) != 1 || got.Related[0].Name != "s1" {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	if _, err := ExplainFiles(files, "claim", "other/web"); !errors.Is(err, ErrUnknownObject) {
		t.Errorf("of a claim that no server has it says %v", err)
	}
}

func TestAnExplanationSaysThatAClaimIsInForceAsItWas(t *testing.T) {
	files := maps.Clone(explainable)
	for behind, want := range map[string]string{
		"":                         "team/web.yaml",
		"behind: [a.yaml, b.yaml]": "a.yaml or b.yaml",
		`behind: ["*"]`:            "any of them",
	} {
		files[model.ReportRevision] = []byte(`
lastGood:
- {identity: {kind: ServerClaim, namespace: other, name: web}, path: x.yaml}
- identity: {kind: ServerClaim, namespace: default, name: web}
  path: team/web.yaml
  since: main@sha1:0123456789abcdef0123456789abcdef01234567
  ` + behind + "\n")
		got, err := ExplainFiles(files, "claim", "default/web")
		if err != nil {
			t.Fatal(err)
		}
		want := Fact{"in force as it was", "as team/web.yaml had it at revision main@0123456, for a file that cannot be used may have it now: " + want}
		if !slices.Contains(got.Facts, want) {
			t.Errorf("its facts are %v, want %v", got.Facts, want)
		}
	}
}

// One word everywhere: what the summary calls a claim, the explanation, the page and the subject of
// the commit call it.
func TestAClaimIsCalledTheSameEverywhere(t *testing.T) {
	in := plantest.BigFleet(1, 1)
	r := reportOf(in)
	var story Story
	result := plan.Plan(in)
	story.Published(result, &model.Report{Documents: map[string]*model.Document{}})
	story.Tell(result, r)
	e, err := Explain(r, "claim", "default/c00000")
	if got := SummaryOf(r).Claims[0].State; err != nil || got != ClaimBooted || e.State != string(got) {
		t.Errorf("the summary says %s, the explanation %s %v", got, e.State, err)
	}
	if page := r.Documents[model.ReportReadme].Text; !strings.Contains(page, "c00000.yaml) | Booted |") {
		t.Errorf("the page says\n%s", page)
	}
	if want := "default/c00000: Booted on bmc00000-system-0"; !slices.Contains(r.Body, want) {
		t.Errorf("the commit says %q, want %q", r.Body, want)
	}
}
