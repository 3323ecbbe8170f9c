package model

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model/must"
)

var updateGolden = flag.Bool("update", false, "write the golden files anew")

func problemLines(problems []Problem) string {
	var b strings.Builder
	for _, p := range problems {
		b.WriteString(p.String() + "\n")
	}
	return b.String()
}

func mustDecode(t *testing.T, manifest string) Object {
	t.Helper()
	objects, problems := Decode("a.yaml", []byte(manifest), DecodeOptions{AllowPlaintextSecrets: true})
	if len(objects) != 1 || HasErrors(problems) {
		t.Fatalf("got %d objects and the problems\n%swant one object\n%s", len(objects), problemLines(problems), manifest)
	}
	return objects[0]
}

// TestBrokenManifestsAreExplained compares what is said of wrong manifests with golden files: M05 in yaml-traps, M06 in
// unknown-field and foreign-kinds, M08 in values and contradictions.
func TestBrokenManifestsAreExplained(t *testing.T) {
	files, err := filepath.Glob("testdata/broken/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			data := must.Get(os.ReadFile(file))(t)
			objects, problems := Decode(filepath.Base(file), data, DecodeOptions{AllowPlaintextSecrets: true})
			got := problemLines(problems)
			for _, o := range objects {
				got += "read: " + o.Identity().String() + "\n"
			}
			compareGolden(t, strings.TrimSuffix(file, ".yaml")+".golden", got)
		})
	}
}

// TestSeedsDecode holds the promise that the manifests of upstream's documents
// are read as they stand.
func TestSeedsDecode(t *testing.T) {
	for _, dir := range []string{"../examples/seeds", "../../shared/reference/seeds/examples"} {
		files, _ := filepath.Glob(dir + "/*.yaml")
		if len(files) == 0 && !strings.Contains(dir, "examples/seeds") {
			t.Logf("skipped: %s is not beside this checkout", dir)
			continue
		}
		if len(files) != 6 {
			t.Errorf("%s has %d manifests, want 6", dir, len(files))
		}
		for _, file := range files {
			data := must.Get(os.ReadFile(file))(t)
			objects, problems := Decode(file, data, DecodeOptions{})
			if len(objects) != 1 || HasErrors(problems) {
				t.Errorf("%s: %d objects, problems:\n%s", file, len(objects), problemLines(problems))
			}
		}
	}
}

func TestSeedsAreWarnedAbout(t *testing.T) {
	want := map[string]string{
		"000-bmc-my-bmc-inline.yaml": "000-bmc-my-bmc-inline.yaml:14:3: warning: BMC my-bmc-inline: " +
			"spec.consoleProtocol: has no effect yet: Ingot opens no consoles\n",
		"000-bmc-my-bmc.yaml": "000-bmc-my-bmc.yaml:14:3: warning: BMC my-bmc: " +
			"spec.consoleProtocol: has no effect yet: Ingot opens no consoles\n",
		"000-server-my-server.yaml": `000-server-my-server.yaml:6:3: warning: Server my-server: spec.uuid: is deprecated: write "systemUUID"
000-server-my-server.yaml:7:10: warning: Server my-server: spec.power: is deprecated and ignored: power belongs to the ServerClaim
`,
		"003-serverclaim-my-server-claim.yaml": "003-serverclaim-my-server-claim.yaml:1:13: warning: " +
			"ServerClaim default/my-server-claim: apiVersion: is another name for metal.ironcore.dev/v1alpha1: write that\n",
	}
	got := make(map[string]string)
	files, _ := filepath.Glob("../examples/seeds/*.yaml")
	for _, file := range files {
		data := must.Get(os.ReadFile(file))(t)
		name := filepath.Base(file)
		if _, problems := Decode(name, data, DecodeOptions{}); len(problems) > 0 {
			got[name] = problemLines(problems)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

func TestDecodeReadsEveryField(t *testing.T) {
	yes := true
	tests := map[string]struct {
		manifest string
		want     Object
	}{
		"an Endpoint, its addresses made canonical": {
			manifest: "apiVersion: metal.ironcore.dev/v1alpha1\nkind: Endpoint\nmetadata: {name: e1}\n" +
				"spec: {macAddress: 00-1A-2B-3C-4D-5E, ip: 'FD00:0::1'}\n",
			want: &Endpoint{Meta{Name: "e1", Source: "a.yaml:1"}, EndpointSpec{"00:1a:2b:3c:4d:5e", "fd00::1"}},
		},
		"an Endpoint, its IPv4 address written as IPv6": {
			manifest: "apiVersion: metal.ironcore.dev/v1alpha1\nkind: Endpoint\nmetadata: {name: e1}\n" +
				"spec: {macAddress: 001A2B3C4D5E, ip: '::ffff:192.0.2.1'}\n",
			want: &Endpoint{Meta{Name: "e1", Source: "a.yaml:1"}, EndpointSpec{"00:1a:2b:3c:4d:5e", "192.0.2.1"}},
		},
		"a BMC, with https for want of a scheme": {
			manifest: `apiVersion: metal.ironcore.dev/v1alpha1
kind: BMC
metadata:
  name: b1
  labels: {rack: b}
spec:
  bmcUUID: 123E4567E89B12D3A456426614174000
  access: {ip: 192.0.2.1, macAddress: 001A.2B3C.4D5E}
  bmcSecretRef: {name: s}
  protocol: {name: Redfish, port: 443}
  consoleProtocol: {name: SSHLenovo, port: 22}
  hostname: BMC-1.example.com
`,
			want: &BMC{Meta{Name: "b1", Labels: map[string]string{"rack": "b"}, Source: "a.yaml:1"}, BMCSpec{
				BMCUUID:      "123e4567-e89b-12d3-a456-426614174000",
				Access:       &InlineEndpoint{"00:1a:2b:3c:4d:5e", "192.0.2.1"},
				BMCSecretRef: LocalRef{"s"}, Protocol: Protocol{"Redfish", 443, "https"},
				ConsoleProtocol: &ConsoleProtocol{"SSHLenovo", 22}, Hostname: "BMC-1.example.com",
			}},
		},
		"a Server, with NoBind for want of an effect": {
			manifest: `apiVersion: metal.ironcore.dev/v1alpha1
kind: Server
metadata: {name: s1}
spec:
  systemUUID: "{123E4567-E89B-12D3-A456-426614174000}"
  systemURI: /redfish/v1/Systems/1
  indicatorLED: Lit
  reclaimPolicy: Retain
  serverClaimRef: {name: web}
  bmc:
    protocol: {name: Redfish, port: 443, scheme: http}
    address: 192.0.2.1
    bmcSecretRef: {name: s}
  bootConfigurationRef: {name: web, namespace: a}
  bootOrder: [{name: disk, priority: -1, device: hd}]
  taints: [{key: gpu, value: "1"}]
  unclaimable: true
`,
			want: &Server{Meta{Name: "s1", Source: "a.yaml:1"}, ServerSpec{
				SystemUUID: "123e4567-e89b-12d3-a456-426614174000", SystemURI: "/redfish/v1/Systems/1",
				IndicatorLED: "Lit", ReclaimPolicy: ReclaimRetain, ServerClaimRef: &ObjectRef{"default", "web"},
				BMC:                  &BMCAccess{Protocol{"Redfish", 443, "http"}, "192.0.2.1", LocalRef{"s"}},
				BootConfigurationRef: &ObjectRef{"a", "web"},
				BootOrder:            []BootOrder{{"disk", -1, "hd"}},
				Taints:               []Taint{{"gpu", "1", TaintNoBind}}, Unclaimable: true,
			}},
		},
		"a ServerClaim, with On as YAML 1.2 reads it and nulls as absent": {
			manifest: `apiVersion: metal.ironcore.dev/v1alpha1
kind: ServerClaim
metadata: {name: web, annotations: {ingot/priority: "-5", ingot/boot: always, note: 2026-11-21}}
spec:
  power: On
  serverRef:
  serverSelector:
    matchLabels: {rack: b}
    matchExpressions: [{key: zone, operator: In, values: [x, y]}]
  ignitionSecretRef: {name: ign}
  userDataRef: {name: data}
  image: registry.example.com:5000/os/flatcar:1.0
  tolerations: [{key: gpu, value: "1"}, {operator: Exists, effect: NoBind}]
`,
			want: &ServerClaim{Meta: Meta{
				Name: "web", Namespace: "default", Source: "a.yaml:1",
				Annotations: map[string]string{"ingot/priority": "-5", "ingot/boot": "always", "note": "2026-11-21"},
			}, Spec: ServerClaimSpec{
				Power: PowerOn,
				ServerSelector: &metav1.LabelSelector{
					MatchLabels:      map[string]string{"rack": "b"},
					MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "zone", Operator: "In", Values: []string{"x", "y"}}},
				},
				IgnitionSecretRef: &LocalRef{"ign"}, UserDataRef: &LocalRef{"data"},
				Image:       "registry.example.com:5000/os/flatcar:1.0",
				Tolerations: []Toleration{{"gpu", "Equal", "1", ""}, {"", "Exists", "", TaintNoBind}},
			}},
		},
		"a ServerMaintenance as upstream had it": {
			manifest: "apiVersion: metal.ironcore.dev/v1alpha1\nkind: ServerMaintenance\nmetadata: {name: m}\n" +
				"spec: {serverRef: {name: s1}, policy: Enforced, serverPower: Off, reason: new fan}\n",
			want: &ServerMaintenance{
				Meta{Name: "m", Source: "a.yaml:1"},
				ServerMaintenanceSpec{LocalRef{"s1"}, "Enforced", PowerOff, "new fan"},
			},
		},
		"a ServerMaintenance as upstream's maintenance operator has it": {
			manifest: "apiVersion: maintenance.metal.ironcore.dev/v1alpha1\nkind: ServerMaintenance\nmetadata:\n  name: m\n" +
				"  annotations: {metal.ironcore.dev/maintenance-reason: new fan}\nspec: {serverRef: {name: s1}, policy: Enforced}\n",
			want: &ServerMaintenance{
				Meta{Name: "m", Source: "a.yaml:1", Annotations: map[string]string{AnnotationMaintenanceReason: "new fan"}},
				ServerMaintenanceSpec{LocalRef{"s1"}, "Enforced", "", "new fan"},
			},
		},
		"a ServerReadinessRule": {
			manifest: `apiVersion: metal.ironcore.dev/v1alpha1
kind: ServerReadinessRule
metadata: {name: r}
spec:
  conditions: [{type: Discovered, requiredStatus: "True"}, {type: a/b, requiredStatus: Unknown}]
  enforcementMode: Continuous
  taint: {key: not-ready}
  serverSelector: {}
`,
			want: &ServerReadinessRule{Meta{Name: "r", Source: "a.yaml:1"}, ServerReadinessRuleSpec{
				[]RequiredCondition{{"Discovered", "True"}, {"a/b", "Unknown"}}, "Continuous",
				Taint{"not-ready", "", TaintNoBind}, &metav1.LabelSelector{},
			}},
		},
		"a ServerBootConfiguration in JSON": {
			manifest: `{"apiVersion": "metal.ironcore.dev/v1alpha1", "kind": "ServerBootConfiguration",
	"metadata": {"name": "b", "namespace": "a"},
	"spec": {"serverRef": {"name": "s1"}, "image": "os@sha256:` + strings.Repeat("ab", 32) + `"}}`,
			want: &ServerBootConfiguration{Meta{Name: "b", Namespace: "a", Source: "a.yaml:1"}, ServerBootConfigurationSpec{
				ServerRef: LocalRef{"s1"}, Image: "os@sha256:" + strings.Repeat("ab", 32),
			}},
		},
		"M10 a Secret, of which stringData wins over data": {
			manifest: "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata:\n  a: b25l\n  b: dHdv\nstringData:\n  a: uno\n  c:\n",
			want: summed(&Secret{Meta: Meta{Name: "s", Namespace: "default", Source: "a.yaml:1"}, Values: map[string]Sensitive{
				"a": NewSensitive("uno"), "b": NewSensitive("two"), "c": {},
			}}),
		},
		"a BMCSecret": {
			manifest: "apiVersion: metal.ironcore.dev/v1alpha1\nkind: BMCSecret\nmetadata: {name: s}\nimmutable: true\ntype: Opaque\n" +
				"data:\n  username: |\n    YWRt\n    aW4=\nstringData: {password: 'geheim'}\n",
			want: &BMCSecret{Meta{Name: "s", Source: "a.yaml:1"}, &yes, "Opaque", map[string]Sensitive{
				"username": NewSensitive("admin"), "password": NewSensitive("geheim"),
			}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := mustDecode(t, tt.manifest)
			got.Metadata().References, got.Metadata().Places = nil, nil // see TestReferences
			if diff := cmp.Diff(tt.want, got, cmp.Comparer(func(a, b Sensitive) bool { return a == b })); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		})
	}
}

const endpoint = "apiVersion: metal.ironcore.dev/v1alpha1\nkind: Endpoint\nmetadata:\n  name: %s\nspec:\n  macAddress: " +
	"00:1A:2B:3C:4D:5E\n  ip: 192.0.2.1\n"

// TestFilesOfAllShapesAreRead is M09.
func TestFilesOfAllShapesAreRead(t *testing.T) {
	one, two := fmt.Sprintf(endpoint, "one"), fmt.Sprintf(endpoint, "two")
	list := func(apiVersion, kind string, items ...string) string {
		out := "apiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata: {resourceVersion: \"\"}\nitems:\n"
		for _, item := range items {
			out += "- " + strings.ReplaceAll(strings.TrimSuffix(item, "\n"), "\n", "\n  ") + "\n"
		}
		return out
	}
	tests := map[string]struct {
		data string
		want []string // sources
	}{
		"an empty file holds nothing":              {"", nil},
		"a file of comments holds nothing":         {"# one\n\n# two\n", nil},
		"empty documents hold nothing":             {"---\n---\n# x\n---\nnull\n---\n" + one, []string{"one:7"}},
		"documents are split":                      {one + "---\n" + two, []string{"one:1", "two:9"}},
		"a document may begin after its separator": {"--- # first\n" + one + "---\t\n" + two, []string{"one:2", "two:10"}},
		"a document may end with dots":             {one + "...\n---\n" + two + "...\n", []string{"one:1", "two:10"}},
		"dots alone divide too":                    {one + "...\n" + two, []string{"one:1", "two:9"}},
		"a directive is passed over":               {"%YAML 1.2\n---\n" + one, []string{"one:3"}},
		"a byte order mark is passed over":         {"\xef\xbb\xbf" + one, []string{"one:1"}},
		"a file from Windows is read":              {strings.ReplaceAll(one+"---\n"+two, "\n", "\r\n"), []string{"one:1", "two:9"}},
		"a separator within text does not split": {
			data: strings.Replace(one, "spec:", "  annotations:\n    x: |\n      ---\nspec:", 1),
			want: []string{"one:1"},
		},
		"a List is its items": {list("v1", "List", one, two), []string{"one:5", "two:12"}},
		"Lists nest": {
			data: list("v1", "List", list("metal.ironcore.dev/v1alpha1", "EndpointList", one), two),
			want: []string{"one:9", "two:16"},
		},
		"an empty List is no mistake": {"apiVersion: v1\nkind: List\nitems: []\n", nil},
		"JSON documents may follow each other": {
			data: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"one"}}` + "\n---\n" +
				`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"two"}}`,
			want: []string{"one:1", "two:3"},
		},
		"the alias of the group is in any case": {strings.Replace(one, "ironcore", "openkcm", 1), []string{"one:1"}},
		"what Kubernetes adds is ignored": {
			data: strings.Replace(one, "spec:", "  uid: x\n  managedFields: [{a: b}]\nstatus: {a: b}\nspec:", 1),
			want: []string{"one:1"},
		},
		"a namespace on what has none is passed by": {strings.Replace(one, "spec:", "  namespace: x\nspec:", 1), []string{"one:1"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			objects, problems := Decode("f", []byte(tt.data), DecodeOptions{})
			var got []string
			for _, o := range objects {
				got = append(got, strings.Replace(o.Metadata().Source, "f", o.Metadata().Name, 1))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || HasErrors(problems) {
				t.Errorf("want -, got +:\n%s%s", diff, problemLines(problems))
			}
		})
	}
}

// TestWhatKubernetesAddsIsWarnedAboutOnce is M14.
func TestWhatKubernetesAddsIsWarnedAboutOnce(t *testing.T) {
	manifest := strings.Replace(fmt.Sprintf(endpoint, "e"), "spec:",
		"  uid: x\n  finalizers: [metal.ironcore.dev/endpoint]\nstatus: {}\nspec:", 1)
	_, problems := Decode("f", []byte(manifest), DecodeOptions{})
	want := `f:5:3: warning: Endpoint e: metadata.uid: belongs to Kubernetes' bookkeeping: ignored
f:6:3: warning: Endpoint e: metadata.finalizers: belongs to Kubernetes' bookkeeping: ignored
f:7:1: warning: Endpoint e: status: is written by Ingot on the status branch: ignored
`
	if diff := cmp.Diff(want, problemLines(problems)); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

func TestPlaintextSecretsNeedLeave(t *testing.T) {
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n"
	tests := map[string]struct {
		data    string
		allow   bool
		want    string
		objects int
	}{
		"data is refused": {
			data: secret + "data: {a: b25l}\n",
			want: "f:4:1: Secret default/s: data: a secret in plain text is refused: encrypt the file with SOPS, or set " +
				"git.allowPlaintextSecrets: true\n",
		},
		"stringData is refused": {
			data: secret + "stringData: {a: b}\n",
			want: "f:4:1: Secret default/s: stringData: a secret in plain text is refused: encrypt the file with SOPS, or set " +
				"git.allowPlaintextSecrets: true\n",
		},
		"a secret of nothing is fine": {data: secret + "data: {}\n", objects: 1},
		"data is taken with leave":    {data: secret + "data: {a: b25l}\n", allow: true, objects: 1},
		"one that is still encrypted is of no use": {
			data: secret + "data: {a: 'ENC[AES256_GCM,data:x]'}\nsops: {version: 3}\n", allow: true,
			want: "f:5:1: Secret default/s: sops: the object is encrypted with SOPS and was not decrypted: is git.ageKeyFile set?\n",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			objects, problems := Decode("f", []byte(tt.data), DecodeOptions{AllowPlaintextSecrets: tt.allow})
			if diff := cmp.Diff(tt.want, problemLines(problems)); diff != "" || len(objects) != tt.objects {
				t.Errorf("%d objects, want %d; want -, got +:\n%s", len(objects), tt.objects, diff)
			}
		})
	}
}

// TestNoProblemShowsASecret breaks manifests of secrets in every single place and
// looks for their values.
func TestNoProblemShowsASecret(t *testing.T) {
	manifests := []string{
		"apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\nstringData:\n  a: hunter2\n  b: 'hunter2'\n  c: |\n    hunter2: x\n",
		"apiVersion: metal.ironcore.dev/v1alpha1\nkind: BMCSecret\nmetadata:\n  name: s\n" +
			"data:\n  username: hunter2\n  password: \"hunter2\"\n",
	}
	junk := []string{
		"", "\n", "  ", "\t", ":", ": ", "*", "&x ", "!!int ", "!", "{", "[", "'", "\"", "- ", "@", "%", "|", "---\n", "#", "0x", "`", "? ",
	}
	for _, m := range manifests {
		for at := range len(m) {
			for _, j := range junk {
				for _, drop := range []int{0, 1} {
					broken := m[:at] + j + m[at+drop:]
					for _, allow := range []bool{true, false} {
						_, problems := Decode("f", []byte(broken), DecodeOptions{AllowPlaintextSecrets: allow})
						if lines := problemLines(problems); strings.Contains(lines, "unter") {
							t.Fatalf("%s\nof\n%s", lines, broken)
						}
					}
				}
			}
		}
	}
}

func TestBoundsOfAFile(t *testing.T) {
	tests := map[string]struct {
		data string
		want string
	}{
		"too large": {"#" + strings.Repeat("x", maxFileBytes), "f: the file has 1048577 bytes, at most 1048576 are read: split it\n"},
		"not UTF-8": {"a: b\n# \xff\n", "f:2:1: the file is not UTF-8 text\n"},
		"nested lists": {
			data: strings.Repeat("{apiVersion: v1, kind: List, items: [", 9) + strings.Repeat("]}", 9),
			want: "f:1:333: items: lists are nested too deeply\n",
		},
		"nested forever": {strings.Repeat("[", 20_000), "f:1:1: no valid YAML: exceeded max depth of 10000\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			objects, problems := Decode("f", []byte(tt.data), DecodeOptions{})
			if diff := cmp.Diff(tt.want, problemLines(problems)); diff != "" || len(objects) > 0 {
				t.Errorf("%d objects; want -, got +:\n%s", len(objects), diff)
			}
		})
	}
	t.Run("more problems than anybody reads", func(t *testing.T) {
		_, problems := Decode("f", []byte(strings.Repeat("---\na: b\n", 100_000)), DecodeOptions{})
		if len(problems) > maxProblems+3 || !strings.Contains(problems[len(problems)-1].Message, "the rest of the file was not read") {
			t.Errorf("%d problems, the last %s", len(problems), problems[len(problems)-1])
		}
	})
}

// TestHostileFilesCostLittle feeds files that take minutes when some check looks
// at everything for each thing.
func TestHostileFilesCostLittle(t *testing.T) {
	const claim = "apiVersion: metal.ironcore.dev/v1alpha1\nkind: ServerClaim\nmetadata:\n  name: web\n"
	numbered := func(format string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	tests := map[string]string{
		"empty list entries":     claim + "spec:\n  tolerations:\n" + strings.Repeat("  -\n", 80_000),
		"wrong list entries":     claim + "spec:\n  tolerations:\n" + strings.Repeat("  - {key: a b}\n", 25_000),
		"wrong labels":           claim + "  labels:\n" + numbered("    'k %d': x\n", 20_000),
		"repeated labels":        claim + "  labels:\n" + numbered("    k%d: x\n", 20_000) + strings.Repeat("    k19999: x\n", 5_000),
		"unknown annotations":    claim + "  annotations:\n" + numbered("    ingot/%d: x\n", 20_000),
		"unknown fields":         claim + numbered("k%d: x\n", 30_000),
		"taints":                 strings.Replace(claim, "Claim", "", 1) + "spec:\n  taints:\n" + numbered("  - {key: a%d}\n", 20_000),
		"a large broken file":    claim + numbered("  k%d: x\n", 8_000) + " bad",
		"many broken documents":  strings.Repeat("---\n"+claim+" bad\n", 3_000),
		"comments between lines": strings.Repeat("a:\n  # x\n\n", 30_000),
	}
	for name, data := range tests {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			Decode("f", []byte(data), DecodeOptions{})
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("%d bytes took %v", len(data), took)
			}
		})
	}
}

func TestForeign(t *testing.T) {
	tests := map[string]struct {
		data string
		want bool
	}{
		"another program's settings":       {"extends: [config:recommended]\n", true},
		"a list of texts":                  {"- a\n- b\n", true},
		"a text":                           {"hello\n", true},
		"several documents":                {"a: 1\n---\nb: {kind: x}\n", true},
		"one document of ours":             {"a: 1\n---\nkind: Server\n", false},
		"a manifest":                       {"apiVersion: v1\nkind: Secret\n", false},
		"a manifest without kind":          {"metadata: {name: a}\n", false},
		"a field in another spelling":      {"Kind: Server\n", false},
		"a misspelt field":                 {"apiVerson: v1\n", false},
		"a list of manifests":              {"- {kind: Server}\n", false},
		"what merges another mapping":      {"a: &a {kind: Server}\n<<: *a\n", false},
		"a list that refers to a manifest": {"- &a {b: 1}\n- *a\n", false},
		"what cannot be read":              {"{{ .Values }}\n", false},
		"nothing":                          {"# soon\n", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Foreign("x.yaml", []byte(tt.data)); got != tt.want {
				t.Errorf("foreign: %v, want %v", got, tt.want)
			}
		})
	}
	const settings = "resources: [a.yaml]\n"
	if Foreign("base/kustomization.yml", []byte(settings)) || !Foreign("kustomization.d/x.yml", []byte(settings)) {
		t.Error("a kustomization is known by the name of its file")
	}
	objects, problems := Decode("base/Kustomization.yaml", []byte(settings), DecodeOptions{})
	if len(objects) != 0 || len(problems) != 1 || problems[0].Object != "Kustomization" || !strings.Contains(problems[0].Message, "render it in CI") {
		t.Errorf("got %v, %v, want one problem that says what to do", objects, problems)
	}
}

// TestObjectIsNamedOnlyWhenSure guards law 1: who takes a broken document for
// another object than it was takes the absence of that one for a deletion.
func TestObjectIsNamedOnlyWhenSure(t *testing.T) {
	tests := map[string]struct{ data, want string }{
		"an error in the spec": {
			data: "apiVersion: metal.ironcore.dev/v1alpha1\nkind: ServerClaim\nmetadata: {name: web}\nspec: {}\n",
			want: "ServerClaim default/web",
		},
		"a wrong apiVersion":         {"apiVersion: v1\nkind: ServerClaim\nmetadata: {name: web, namespace: a}\n", "ServerClaim a/web"},
		"a foreign kind":             {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n", "ConfigMap c"},
		"M17 a kustomization":        {"apiVersion: kustomize.config.k8s.io/v1\nkind: Kustomization\n", "Kustomization"},
		"a kind that left upstream":  {"apiVersion: metal.ironcore.dev/v1alpha1\nkind: BMCVersion\nmetadata: {name: c}\n", "BMCVersion c"},
		"a misspelt kind":            {"apiVersion: metal.ironcore.dev/v1alpha1\nkind: SrverClaim\nmetadata: {name: web}\n", ""},
		"a misspelt kind and group":  {"apiVersion: metal.ironcore.dv/v1alpha1\nkind: SrverClaim\nmetadata: {name: web}\n", ""},
		"no kind":                    {"apiVersion: metal.ironcore.dev/v1alpha1\nmetadata: {name: web}\n", ""},
		"no name":                    {"apiVersion: metal.ironcore.dev/v1alpha1\nkind: Server\nmetadata: {nam: web}\n", ""},
		"a name that is none":        {"apiVersion: metal.ironcore.dev/v1alpha1\nkind: Server\nmetadata: {name: We b}\n", ""},
		"a name that is given twice": {"apiVersion: metal.ironcore.dev/v1alpha1\nkind: Server\nmetadata: {name: a, name: b}\n", ""},
		"metadata that is given twice": {
			data: "apiVersion: metal.ironcore.dev/v1alpha1\nkind: Server\nmetadata: {name: a}\nmetadata: {name: b}\n",
		},
		"a document that is no YAML": {"apiVersion: metal.ironcore.dev/v1alpha1\nkind: Server\nmetadata: {name: a\n", ""},
		"a namespace of the wrong type": {
			data: "apiVersion: metal.ironcore.dev/v1alpha1\nkind: ServerClaim\nmetadata: {name: web, namespace: [x]}\n",
		},
		"a namespace with an empty value": {
			data: "apiVersion: metal.ironcore.dev/v1alpha1\nkind: ServerClaim\nmetadata: {name: web, namespace: }\n",
			want: "ServerClaim default/web",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, problems := Decode("f", []byte(tt.data), DecodeOptions{})
			if !HasErrors(problems) {
				t.Fatal("no errors")
			}
			for _, p := range problems {
				if p.Object != tt.want {
					t.Errorf("got %q, want %q: %s", p.Object, tt.want, p)
				}
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	for _, pattern := range []string{"../examples/seeds/*.yaml", "testdata/broken/*.yaml"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			data := must.Get(os.ReadFile(file))(f)
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		// The fuzzing engine takes a hang for a slow input.
		hung := time.AfterFunc(5*time.Second, func() { panic(fmt.Sprintf("%q takes for ever", data)) })
		defer hung.Stop()
		objects, problems := Decode("f.yaml", data, DecodeOptions{AllowPlaintextSecrets: true})
		lines := bytes.Count(data, []byte("\n")) + bytes.Count(data, []byte("\r")) + 1
		for _, o := range objects {
			if o.Identity().Name == "" || o.Metadata().Source == "" {
				t.Errorf("an object without name or source: %+v", o)
			}
		}
		for _, p := range problems {
			if p.Message == "" || p.Line < 0 ||
				p.Line > lines+strings.Count(string(data), "\u0085")+
					strings.Count(string(data), "\u2028")+strings.Count(string(data), "\u2029") {
				t.Errorf("a problem in line %d of %d: %s", p.Line, lines, p)
			}
		}
	})
}

func summed(s *Secret) *Secret {
	s.Sum = NewSensitive(s.BootSum())
	return s
}
