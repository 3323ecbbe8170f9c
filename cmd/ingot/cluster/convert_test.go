package cluster

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/model/must"
)

var update = flag.Bool("update", false, "write golden files anew")

func readTestdata(t *testing.T) []Object {
	t.Helper()
	f := must.Get(os.Open("testdata/cluster.yaml"))(t)
	defer f.Close()
	return must.Get(Read(f))(t)
}

func (r *Result) text() string {
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(r.Files)) {
		fmt.Fprintf(&b, "-- %s --\n%s", path, r.Files[path])
	}
	fmt.Fprintf(&b, "-- secrets --\n")
	for _, s := range r.Secrets {
		fmt.Fprintf(&b, "%s %s/%s for %s: %s\n", s.Kind, s.Namespace, s.Name, s.For, s.Path)
	}
	fmt.Fprintf(&b, "-- left out --\n")
	for _, l := range r.LeftOut {
		fmt.Fprintf(&b, "%s: %s\n", l.Object, l.Why)
	}
	fmt.Fprintf(&b, "-- notes --\n%s\nbound: %d\n", strings.Join(r.Notes, "\n"), r.Bound)
	return b.String()
}

func TestAClusterBecomesManifests(t *testing.T) {
	r := must.Get(Convert(readTestdata(t), Options{}))(t)
	const golden = "testdata/cluster.golden"
	if *update {
		must.Do(t, os.WriteFile(golden, []byte(r.text()), 0o600))
	}
	want, err := os.ReadFile(golden)
	if diff := cmp.Diff(string(want), r.text()); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	for _, secret := range []string{"aHVudGVy", "e30=", "c2VjcmV0"} {
		if strings.Contains(r.text(), secret) {
			t.Errorf("a secret is in the result: %s", secret)
		}
	}
	for path, content := range r.Files {
		objects, problems := model.Decode(path, []byte(content), model.DecodeOptions{})
		if len(objects) != 1 || len(problems) > 0 {
			t.Errorf("%s: %d objects, %v", path, len(objects), problems)
		}
	}
}

func TestSecretsAreWrittenIfThatIsAskedForAndTheyAreNamed(t *testing.T) {
	r := must.Get(Convert(readTestdata(t), Options{PlaintextSecrets: true}))(t)
	const want = "apiVersion: v1\ndata:\n  ignition: e30=\nkind: Secret\nmetadata:\n  name: web-ignition\n  namespace: shop\n"
	if got := r.Files["claims/shop/web-ignition.secret.yaml"]; got != want {
		t.Errorf("got\n%s", got)
	}
	if got := r.Files["bmcs/bmc-1.secret.yaml"]; !strings.Contains(got, "aHVudGVyMg==") {
		t.Errorf("the BMCSecret is\n%s", got)
	}
	for path, content := range r.Files {
		if strings.Contains(content, "c2VjcmV0") || strings.Contains(content, "aHVudGVyMw==") {
			t.Errorf("%s has a Secret that nothing names", path)
		}
	}
}

func object(kind, namespace, name string, spec, status map[string]any) Object {
	m := map[string]any{"name": name}
	if namespace != "" {
		m["namespace"] = namespace
	}
	return Object{"apiVersion": model.APIVersion, "kind": kind, "metadata": m, "spec": spec, "status": status}
}

func serverOf(name, claim string) Object {
	return object("Server", "", name, map[string]any{
		"systemUUID": "4c4c4544-0059-3110-8035-b4c04f4d4201", "serverClaimRef": map[string]any{"namespace": "default", "name": claim},
	}, map[string]any{"state": "Reserved", "powerState": "On"})
}

func claimNamed(name string) Object {
	return object("ServerClaim", "default", name, map[string]any{"image": "os:1", "power": "On"}, map[string]any{"phase": "Bound"})
}

func TestAServerThatIsNotToBeTakenForANewOne(t *testing.T) {
	broken := serverOf("s1", "web")
	broken.set("systemUUID", "none", "spec")
	other := claimNamed("web")
	other.set("image", "os:2", "spec")
	for name, tc := range map[string]struct {
		objects    []Object
		err, notes string
		want       map[string]string // what is in which file
	}{
		"it cannot be read": {
			objects: []Object{broken, claimNamed("web")}, err: "Server s1 serves ServerClaim default/web and cannot be read: spec.systemUUID",
		},
		"two say that they serve a claim": {
			objects: []Object{serverOf("s1", "web"), serverOf("s2", "web"), claimNamed("web")},
			notes:   "Server s2 says that it serves ServerClaim default/web, and so does Server s1: it is unclaimable",
			want: map[string]string{
				"servers/s1.yaml": "serverClaimRef", "servers/s2.yaml": "unclaimable: true", "claims/default/web.yaml": "name: s1",
			},
		},
		"its claim is not there": {
			objects: []Object{serverOf("s1", "web")}, notes: "Server s1 was reserved for ServerClaim default/web, which is not there",
			want: map[string]string{"servers/s1.yaml": "unclaimable: true"},
		},
		"its claim is there twice": {
			objects: []Object{serverOf("s1", "web"), claimNamed("web"), other}, err: "ServerClaim default/web is there twice, and not the same",
		},
		"a maintenance has it": {
			objects: []Object{
				serverOf("s1", "web"), claimNamed("web"),
				object("ServerMaintenance", "ops", "dimm", map[string]any{"serverRef": map[string]any{"name": "s1"}},
					map[string]any{"state": "InMaintenance"}),
			},
			notes: "Server s1 is in maintenance by ServerMaintenance ops/dimm: Ingot ignores it",
			want:  map[string]string{"servers/s1.yaml": "operation: ignore", "maintenances/dimm.yaml": "name: s1"},
		},
		"it is not Reserved yet": {
			objects: []Object{
				object("Server", "", "s1", serverOf("s1", "web").mapping("spec"), map[string]any{"state": "Discovery", "powerState": "On"}),
				claimNamed("web"),
			},
			notes: "Server s1 is Discovery, not Reserved: if ServerClaim default/web was not installed on it yet",
			want:  map[string]string{"servers/s1.yaml": "serverClaimRef"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Convert(tc.objects, Options{})
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v, want %s", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(strings.Join(r.Notes, "\n"), tc.notes) {
				t.Errorf("want %q in %q", tc.notes, r.Notes)
			}
			for path, want := range tc.want {
				if !strings.Contains(r.Files[path], want) {
					t.Errorf("%s has not %q:\n%s", path, want, r.Files[path])
				}
			}
		})
	}
}

func TestWhatIsNotOfKubectlIsSaidSo(t *testing.T) {
	for text, want := range map[string]string{
		"a: b\n":                          "a document has no kind: is it what kubectl get -o yaml prints?",
		"kind: List\nitems: [7]\n":        "an item of the List is no object",
		"kind: [":                         "did not find expected node content",
		"kind: List\nitems: [{kind: X}]":  "",
		"---\n---\nkind: X\n---\n{}\n---": "a document has no kind",
	} {
		_, err := Read(strings.NewReader(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func TestWhatTheClusterHadNotDoneIsNoted(t *testing.T) {
	dying := claimNamed("web")
	dying.set("deletionTimestamp", "2026-01-01T00:00:00Z", "metadata")
	pending := object("ServerMaintenance", "default", "m", map[string]any{"serverRef": map[string]any{"name": "s1"}}, map[string]any{"state": "Pending"})
	r := must.Get(Convert([]Object{dying, serverOf("s1", "web"), pending}, Options{}))(t)
	notes := strings.Join(r.Notes, "\n")
	for _, want := range []string{"ServerClaim default/web was deleted in the cluster", "ServerMaintenance default/m has not begun: Ingot takes Server s1"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes lack %q:\n%s", want, notes)
		}
	}
}

func TestAMaintenanceOfUpstreamsNewGroupIsCarriedOver(t *testing.T) {
	m := object("ServerMaintenance", "ops", "dimm", map[string]any{"serverRef": map[string]any{"name": "s1"}, "policy": "Enforced", "priority": 0}, nil)
	m["apiVersion"] = model.MaintenanceVersion
	r, err := Convert([]Object{m}, Options{})
	if err != nil || r.Files["maintenances/dimm.yaml"] == "" || len(r.LeftOut) > 0 {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestWhatIsNoNameOfASecretIsInNoCommand(t *testing.T) {
	claim, server := claimNamed("web"), serverOf("s1", "none")
	claim.set("ignitionSecretRef", map[string]any{"name": "x; reboot #"}, "spec")
	server.set("bmc", map[string]any{"address": "192.0.2.1", "protocol": map[string]any{"name": "Redfish", "port": 443}, "bmcSecretRef": map[string]any{"name": "$(reboot)"}}, "spec")
	r, err := Convert([]Object{claim, server}, Options{})
	if err != nil || len(r.Secrets) > 0 || len(r.LeftOut) != 2 {
		t.Errorf("%v, asked for are %+v, left out %+v", err, r.Secrets, r.LeftOut)
	}
}
