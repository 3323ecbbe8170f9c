package model

import (
	"net/netip"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var tenants = Tenants{
	{Path: "ops", Kinds: []Kind{"*"}, Namespaces: []string{"*"}, BMCNetworks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}},
	{Path: "tenants/alpha", Servers: &metav1.LabelSelector{MatchLabels: map[string]string{"tenant": "alpha"}}},
	{Path: "tenants/alpha/db", Kinds: []Kind{KindServerClaim}, Namespaces: []string{"db", "cache"}},
}

func TestAFileSaysWhatItsFolderMay(t *testing.T) {
	id := func(kind Kind, namespace string) Identity {
		return Identity{Kind: kind, Namespace: namespace, Name: "x"}
	}
	for name, c := range map[string]struct {
		file string
		id   Identity
		want string
	}{
		"the operator anything":                 {"ops/rack/1.yaml", id(KindBMC, ""), ""},
		"the operator in any namespace":         {"ops/1.yaml", id(KindServerClaim, "alpha"), ""},
		"a tenant claims in its own namespace":  {"tenants/alpha/x.yaml", id(KindServerClaim, "alpha"), ""},
		"a tenant Secrets in its own namespace": {"tenants/alpha/a/b/x.yaml", id(KindSecret, "alpha"), ""},
		"a tenant no BMC": {
			file: "tenants/alpha/x.yaml", id: id(KindBMC, ""),
			want: "below tenants/alpha only ServerClaim, Secret (git.tenants)",
		},
		"a tenant nothing in another's namespace": {
			file: "tenants/alpha/x.yaml", id: id(KindServerClaim, "beta"),
			want: "below tenants/alpha only namespace alpha (git.tenants), not beta",
		},
		"M12 a tenant nothing in the namespace that stands for none": {
			file: "tenants/alpha/x.yaml", id: id(KindServerClaim, DefaultNamespace),
			want: "below tenants/alpha only namespace alpha (git.tenants), not default",
		},
		"the longest path counts": {
			file: "tenants/alpha/db/x.yaml", id: id(KindServerClaim, "alpha"),
			want: "below tenants/alpha/db only namespace db, cache (git.tenants), not alpha",
		},
		"of which kinds are named": {
			file: "tenants/alpha/db/x.yaml", id: id(KindSecret, "db"),
			want: "below tenants/alpha/db only ServerClaim (git.tenants)",
		},
		"a path ends at a slash": {
			file: "tenants/alphabet/x.yaml", id: id(KindServerClaim, "alpha"),
			want: "is below no path of git.tenants, so it does not count",
		},
		"a file that is in no folder does not count": {
			file: "x.yaml", id: id(KindServerClaim, "alpha"),
			want: "is below no path of git.tenants, so it does not count",
		},
	} {
		if got := tenants.Refuse(c.file, c.id); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	if got := Tenants(nil).Refuse("x.yaml", id(KindBMC, "")); got != "" {
		t.Errorf("without tenants one operator owns all: got %q", got)
	}
	whole := append(Tenants{{Path: ".", Kinds: []Kind{"*"}, Namespaces: []string{"*"}}}, tenants...)
	if whole.Owner("x.yaml") != "." || whole.Owner("ops/x.yaml") != "ops" || whole.Refuse("x.yaml", id(KindBMC, "")) != "" {
		t.Error("a tenant may have the rest of the repository")
	}
}

func TestATenantSaysWhatItMayDefine(t *testing.T) {
	for want, tenant := range map[string]Tenant{
		"ops: kinds any; namespaces any":                             {Path: "ops", Kinds: []Kind{"*"}, Namespaces: []string{"*"}},
		"tenants/alpha: kinds ServerClaim, Secret; namespaces alpha": {Path: "tenants/alpha"},
		"b: kinds ServerClaim; namespaces x, y; servers with rack in (7)": {
			Path: "b", Kinds: []Kind{KindServerClaim}, Namespaces: []string{"x", "y"},
			Servers: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "rack", Operator: "In", Values: []string{"7"}}}},
		},
	} {
		if got := tenant.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestEachItemOfAListIsLookedAt(t *testing.T) {
	const list = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: metal.ironcore.dev/v1alpha1\n  kind: ServerMaintenance\n  metadata: " +
		"{name: m}\n  spec: {serverRef: {name: s1}}\n" +
		"- apiVersion: metal.ironcore.dev/v1alpha1\n  kind: ServerClaim\n  metadata: {name: web, namespace: alpha}\n" +
		"  spec: {power: \"On\", image: linux}\n"
	objects, problems := Decode("tenants/alpha/x.yaml", []byte(list), DecodeOptions{})
	if len(objects) != 2 || len(problems) > 0 {
		t.Fatalf("got %v, %v", objects, problems)
	}
	tenants.Place("tenants/alpha/x.yaml", objects)
	got := RefusedProblem(objects[0]).String()
	if got != "tenants/alpha/x.yaml:4: ServerMaintenance: below tenants/alpha only ServerClaim, Secret (git.tenants)" {
		t.Error(got)
	}
	if m := objects[1].Metadata(); m.Refused != "" || m.Tenant != "tenants/alpha" {
		t.Errorf("got %q, %q", m.Refused, m.Tenant)
	}
}

// Who may define Servers and no BMCs does not get one by writing it into a Server.
func TestABMCWithinAServerIsRefused(t *testing.T) {
	mayDefine := func(kinds ...Kind) string {
		s := &Server{Meta: Meta{Name: "s"}, Spec: ServerSpec{BMC: &BMCAccess{Address: "192.0.2.1"}}}
		Tenants{{Path: "t", Kinds: kinds}}.Place("t/s.yaml", []Object{s})
		return s.Refused
	}
	for want, kinds := range map[string][]Kind{
		"": {KindServer, KindBMC},
		"spec.bmc describes a BMC: below t only Server (git.tenants)": {KindServer},
		"below t only BMC (git.tenants)":                              {KindBMC},
	} {
		if got := mayDefine(kinds...); got != want {
			t.Errorf("who may define %v is told %q, want %q", kinds, got, want)
		}
	}
}

func TestTenantsServersAndNetworks(t *testing.T) {
	ops, alpha := tenants.At("ops"), tenants.At("tenants/alpha")
	if !alpha.MayBind(map[string]string{"tenant": "alpha"}) || alpha.MayBind(map[string]string{"tenant": "beta"}) || !ops.MayBind(nil) {
		t.Error("claims are bound to what servers selects")
	}
	in, out := netip.MustParseAddr("::ffff:10.0.1.1"), netip.MustParseAddr("10.1.0.1")
	if !ops.MayReach(in) || ops.MayReach(out) || !alpha.MayReach(out) {
		t.Error("BMCs are where bmcNetworks says")
	}
}
