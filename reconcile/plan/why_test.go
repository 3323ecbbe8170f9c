package plan

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan/proposal"
)

func TestAnUnboundClaimSaysWhy(t *testing.T) {
	rack := func(c *model.ServerClaim) { c.Spec.ServerSelector = requires("rack", "1") }
	cases := map[string]struct {
		fleet func(in *Input)
		claim func(c *model.ServerClaim)
		want  proposal.Why
	}{
		"no server is known": {
			fleet: func(in *Input) { clear(in.Desired.BMCs); clear(in.Observed.Servers) },
			want:  proposal.Why{Reason: "NoServerFree", Message: "no server is known yet", Actor: proposal.RackOperator},
		},
		"the server that fits is being discovered": {
			fleet: func(in *Input) {
				in.Policy.DiscoveryImage = "registry.example.com/probe:1"
				for i := range 90 {
					fleettest.ChangeRecord(in.Observed, i, func(r *model.ServerRecord) { r.Life.State = model.StateDiscovery })
				}
			},
			want: proposal.Why{Reason: "NoServerFree", Message: "90 servers: 90 Discovery"},
		},
		"one that does not fit is being discovered": {
			fleet: func(in *Input) {
				for i := range 90 {
					fleettest.ChangeRecord(in.Observed, i, func(r *model.ServerRecord) { r.Life.State = model.StateDiscovery })
					fleettest.AddManifest(in.Desired, i, model.ServerSpec{Taints: []model.Taint{{Key: "k", Effect: model.TaintNoBind}}})
				}
			},
			want: proposal.Why{Reason: "NoServerFree", Message: "90 servers: 90 Discovery", Actor: proposal.RackOperator},
		},
		"the one that would fit is cordoned": {
			fleet: func(in *Input) {
				for i := range 90 {
					fleettest.ChangeRecord(in.Observed, i, func(r *model.ServerRecord) { r.Life.State = model.StateDiscovery })
					fleettest.AddManifest(in.Desired, i, model.ServerSpec{Unclaimable: true})
				}
			},
			want: proposal.Why{Reason: "NoServerFree", Message: "90 servers: 90 Discovery", Actor: proposal.RackOperator},
		},
		"the server it names is being discovered": {
			fleet: func(in *Input) {
				fleettest.ChangeRecord(in.Observed, 3, func(r *model.ServerRecord) { r.Life.State = model.StateDiscovery })
			},
			claim: func(c *model.ServerClaim) { c.Spec.ServerRef = &model.LocalRef{Name: "bmc00003-system-0"} },
			want:  proposal.Why{Reason: "ServerNotFree", Message: "server bmc00003-system-0 is Discovery"},
		},
		"every server is counted under the first thing that speaks against it": {
			fleet: func(in *Input) {
				fleettest.ChangeRecord(in.Observed, 1, func(r *model.ServerRecord) { r.Life.State = model.StateReserved })
				fleettest.ChangeRecord(in.Observed, 41, func(r *model.ServerRecord) { r.Life.State = model.StateCleanup })
				fleettest.AddManifest(in.Desired, 81, model.ServerSpec{Unclaimable: true})
				for i := range 90 { // all but those of rack 1 lack the label
					if i%40 != 1 && i < 88 {
						fleettest.ChangeRecord(in.Observed, i, func(r *model.ServerRecord) { r.Life.State = model.StateDiscovery })
					}
				}
			},
			claim: rack,
			want: proposal.Why{
				Reason: "NoServerFree", Message: "90 servers: 85 Discovery, 2 lack label rack=1, 1 Cleanup, 1 Reserved, 1 cordoned",
				Actor: proposal.RackOperator,
			},
		},
		"a taint that is not tolerated": {
			fleet: func(in *Input) {
				for i := range 90 {
					fleettest.AddManifest(in.Desired, i, model.ServerSpec{Taints: []model.Taint{{Key: "k", Effect: model.TaintNoBind}}})
				}
			},
			want: proposal.Why{Reason: "NoServerFree", Message: "90 servers: 90 tainted", Actor: proposal.RackOperator},
		},
		"the server it names is not known": {
			claim: func(c *model.ServerClaim) { c.Spec.ServerRef = &model.LocalRef{Name: "s"} },
			want:  proposal.Why{Reason: "ServerUnknown", Message: "server s is not known", Actor: proposal.Tenant},
		},
		"the server it names serves another": {
			fleet: func(in *Input) {
				fleettest.ChangeRecord(in.Observed, 3, func(r *model.ServerRecord) {
					r.Life.State, r.Claim.Name = model.StateReserved, "default/other"
				})
			},
			claim: func(c *model.ServerClaim) { c.Spec.ServerRef = &model.LocalRef{Name: "bmc00003-system-0"} },
			want:  proposal.Why{Reason: "ServerNotFree", Message: "server bmc00003-system-0 is Reserved for default/other", Actor: proposal.RackOperator},
		},
		"the server it names does not match its selector": {
			claim: func(c *model.ServerClaim) {
				c.Spec.ServerRef = &model.LocalRef{Name: "bmc00003-system-0"}
				rack(c)
			},
			want: proposal.Why{
				Reason: "SelectorMismatch", Actor: proposal.Tenant,
				Message: "server bmc00003-system-0 does not match the claim's serverSelector rack=1",
			},
		},
		"its Ignition is not in Git": {
			claim: func(c *model.ServerClaim) { c.Spec.IgnitionSecretRef = &model.LocalRef{Name: "ign"} },
			want:  proposal.Why{Reason: "SecretMissing", Message: "Secret default/ign is not in Git", Actor: proposal.Tenant},
		},
		"its Ignition is in another namespace (C14)": {
			fleet: func(in *Input) { in.Desired.Add(&model.Secret{Meta: model.Meta{Name: "ign", Namespace: "other"}}) },
			claim: func(c *model.ServerClaim) { c.Spec.IgnitionSecretRef = &model.LocalRef{Name: "ign"} },
			want:  proposal.Why{Reason: "SecretMissing", Message: "Secret default/ign is not in Git", Actor: proposal.Tenant},
		},
		"the only server that is Available is not off yet (C12)": {
			fleet: func(in *Input) {
				for name := range in.Observed.Servers {
					if name == "bmc00003-system-0" {
						in.Observed.ServerFacts[name] = &model.ServerFacts{Name: name, Power: model.PowerOn}
					} else {
						delete(in.Observed.Servers, name)
						delete(in.Desired.BMCs, model.BMCName(strings.TrimSuffix(string(name), "-system-0")))
					}
				}
			},
			want: proposal.Why{Reason: "NoServerFree", Message: "1 server: 1 not yet powered off", Actor: proposal.RackOperator},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := bigFleet(90, 0)
			if tc.fleet != nil {
				tc.fleet(in)
			}
			c := claim("web")
			if tc.claim != nil {
				tc.claim(c)
			}
			in.Desired.Add(c)
			if got := claimWhy(in, c.ClaimName()); got != tc.want {
				t.Errorf("got  %+v\nwant %+v", got, tc.want)
			}
			for name, m := range Plan(in).Moves {
				if m.Then.Claim.Name == c.ClaimName() {
					t.Errorf("bound to %s all the same", name)
				}
			}
		})
	}
}

func TestClaimsAreServedByPriorityThenAgeThenName(t *testing.T) {
	in := bigFleet(2, 0)
	for name, seq := range map[string]int64{"old": 1, "b-new": 2, "a-new": 2, "urgent": 9} {
		c := claim(name)
		if name == "urgent" {
			c.Annotations = map[string]string{model.AnnotationPriority: "10"}
		}
		in.Desired.Add(c)
		in.Observed.Claims[c.ClaimName()] = &model.ClaimRecord{Name: c.ClaimName(), Sequence: seq}
	}
	got, r := make(map[model.ServerName]model.ClaimName), Plan(in)
	for name, m := range r.Moves {
		got[name] = m.Then.Claim.Name
	}
	for _, c := range r.Claims {
		want := map[model.ClaimName]string{
			"default/urgent": "server bmc00000-system-0 is chosen for it", "default/old": "server bmc00001-system-0 is chosen for it",
			"default/a-new": "2 servers: 2 taken by claims before it", "default/b-new": "2 servers: 2 taken by claims before it",
		}[c.Name]
		if c.Why.Message != want {
			t.Errorf("%s: %s, want %s", c.Name, c.Why.Message, want)
		}
	}
	if got["bmc00000-system-0"] != "default/urgent" || got["bmc00001-system-0"] != "default/old" {
		t.Errorf("got %v, want the urgent claim first and then the old one", got)
	}
}

func TestAScarceServerIsLeftToTheClaimThatNeedsIt(t *testing.T) {
	in := bigFleet(2, 0)
	any, picky := claim("a-any"), claim("b-picky", func(c *model.ServerClaim) { c.Spec.ServerSelector = requires("slot", "0") })
	in.Desired.Add(any)
	in.Desired.Add(picky)
	r := Plan(in)
	if got := r.Moves["bmc00001-system-0"]; got == nil || got.Then.Claim.Name != any.ClaimName() {
		t.Errorf("the claim that takes any server did not take the one that no other claim can use: %+v", got)
	}
	if got := r.Moves["bmc00000-system-0"]; got == nil || got.Then.Claim.Name != picky.ClaimName() {
		t.Errorf("the claim that can use one server only did not get it: %+v", got)
	}
}

func TestExpressionsAndTolerationsSelect(t *testing.T) {
	in := bigFleet(2, 0)
	fleettest.AddManifest(in.Desired, 0, model.ServerSpec{Taints: []model.Taint{{Key: "gpu", Value: "yes", Effect: model.TaintNoBind}}})
	in.Desired.Add(claim("gpu", func(c *model.ServerClaim) {
		c.Spec.Tolerations = []model.Toleration{{Key: "gpu", Operator: "Exists"}}
		c.Spec.ServerSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "slot", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"1"}},
		}}
	}))
	if got := Plan(in).Moves["bmc00000-system-0"]; got == nil || got.Then.Claim.Name != "default/gpu" {
		t.Errorf("the tainted server was not given to the claim that tolerates the taint: %+v", got)
	}
}

// TestWhySoManyServersAreNotFreeIsCountedByLabel compares what is counted by label with
// what is counted server by server.
func TestWhySoManyServersAreNotFreeIsCountedByLabel(t *testing.T) {
	for seed := range 200 {
		r := rand.New(rand.NewPCG(1, uint64(seed)))
		in := bigFleet(1+r.IntN(60), 0)
		for i := range in.Observed.Servers {
			rec := *in.Observed.Servers[i]
			rec.Life.State = model.ServerStates[r.IntN(len(model.ServerStates))]
			if r.IntN(2) == 0 {
				rec.Life.State = model.StateAvailable
			}
			in.Observed.Servers[i] = &rec
			if r.IntN(3) == 0 {
				in.Desired.Add(&model.Server{
					Meta: model.Meta{Name: string(i), Labels: map[string]string{"rack": "x", "own": fmt.Sprint(r.IntN(3))}},
					Spec: model.ServerSpec{Unclaimable: r.IntN(2) == 0},
				})
			}
			if r.IntN(4) == 0 {
				in.Observed.ServerFacts[i] = &model.ServerFacts{Name: i, Power: model.PowerOn}
			}
		}
		if r.IntN(4) == 0 {
			in.Policy.Tenants = model.Tenants{{Path: "alpha", Servers: requires("rack", "1")}}
		}
		waiting(in, 8, func(i int, c *model.ServerClaim) {
			sel := &metav1.LabelSelector{MatchLabels: map[string]string{}}
			for _, k := range []string{"rack", "slot", "own"} {
				if r.IntN(2) == 0 {
					sel.MatchLabels[k] = fmt.Sprint(r.IntN(4))
				}
			}
			if r.IntN(3) == 0 {
				sel.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "own", Operator: metav1.LabelSelectorOpExists}}
			}
			if r.IntN(4) > 0 {
				c.Spec.ServerSelector = sel
			}
			if r.IntN(2) == 0 {
				c.Tenant = "alpha"
			}
		})
		f := newFleet(in)
		f.guard()
		f.bindClaims()
		for i := range f.memory.claims {
			c := f.memory.claims[i]
			want := make(map[string]int)
			for _, s := range f.servers {
				want[f.against(c.claim, s, c.claim.RequiredKeys())]++
			}
			if diff := cmp.Diff(want, f.countAgainst(f.memory.asks(c), c.claim)); diff != "" {
				t.Fatalf("seed %d, claim %s, %+v (-want +got):\n%s", seed, c.name, c.claim.Spec, diff)
			}
		}
	}
}

// TestMoreClaimsThanServers: a hundred claims for fifty servers get them all, in the order of
// their names, and the others wait; another plan says the same (C13).
func TestMoreClaimsThanServers(t *testing.T) {
	given := func() map[model.ClaimName]model.ServerName {
		all := make(map[model.ClaimName]model.ServerName)
		for name, m := range Plan(waiting(bigFleet(50, 0), 100, nil)).Moves {
			if before, twice := all[m.Then.Claim.Name]; twice {
				t.Errorf("%s has %s and %s", m.Then.Claim.Name, before, name)
			}
			all[m.Then.Claim.Name] = name
		}
		return all
	}
	first := given()
	if len(first) != 50 || first["default/w00000"] == "" || first["default/w00049"] == "" {
		t.Errorf("%d claims have a server: %v", len(first), first)
	}
	if diff := cmp.Diff(first, given()); diff != "" {
		t.Errorf("another plan gives others:\n%s", diff)
	}
}
