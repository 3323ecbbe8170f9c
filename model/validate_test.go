package model

import (
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// TestNamesAreThoseOfKubernetes compares the checks of names, keys and values
// with apimachinery's, on texts by chance.
func TestNamesAreThoseOfKubernetes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	const letters = "aab01zAZ-._/ é"
	var texts []string
	for range 50_000 {
		var b strings.Builder
		for range rnd.IntN(8) {
			b.WriteRune([]rune(letters)[rnd.IntN(len([]rune(letters)))])
		}
		texts = append(texts, b.String())
	}
	for _, n := range []int{62, 63, 64, 252, 253, 254} {
		texts = append(texts, strings.Repeat("a", n), strings.Repeat("a", n)+"/a", "a/"+strings.Repeat("a", n))
	}
	for _, s := range texts {
		for what, check := range map[string]struct {
			ours  string
			fault []string
		}{
			"name":      {subdomainFault(s), validation.IsDNS1123Subdomain(s)},
			"namespace": {labelFault(s), validation.IsDNS1123Label(s)},
			"key":       {keyFault(s), validation.IsQualifiedName(s)},
			"value":     {valueFault(s), validation.IsValidLabelValue(s)},
		} {
			if (check.ours == "") != (len(check.fault) == 0) {
				t.Fatalf("%s %q: ours %q, Kubernetes' %q", what, s, check.ours, check.fault)
			}
		}
	}
}

func TestParseImageURL(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	for ref, want := range map[string]bool{
		"https://ghcr.io/os":                                                     false,
		"https://images.example.com/os.qcow2#" + digest:                          true,
		"http://[fd00::1]:8080/a/os.raw.zst?v=1#" + digest:                       true,
		"https://images.example.com/os.qcow2#sha512:" + strings.Repeat("0", 128): true,
		"https://images.example.com/os.qcow2#sha512:" + strings.Repeat("0", 64):  false,
		"https://images.example.com/os.qcow2#sha384:" + strings.Repeat("0", 96):  false,
		"https://images.example.com/os.qcow2#" + strings.ToUpper(digest):         false,
		"https://images.example.com/os.qcow2@" + digest:                          false,
		"https://images.example.com/#" + digest:                                  false,
		"https://images.example.com#" + digest:                                   false,
		"https:///os.qcow2#" + digest:                                            false,
		"https://user:pass@images.example.com/os.qcow2#" + digest:                false,
		"https://images.example.com/o s#" + digest:                               false,
		"https://images.example.com/os\"#" + digest:                              false,
		"https://images.example.com/" + strings.Repeat("x", 1024) + "#" + digest: false,
	} {
		got, err := ParseImageURL(ref)
		if (err == nil) != want || want && got.URL+"#"+got.Digest != ref {
			t.Errorf("%q: got %v, %v, want valid %v", ref, got, err, want)
		}
	}
	_, err := ParseImageURL("https://images.example.com/os.qcow2?key=secret")
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "https://images.example.com/os.qcow2#sha256:") {
		t.Errorf("a URL without digest: %v", err)
	}
}

func TestWhatMayNotChange(t *testing.T) {
	yes, no := true, false
	meta := Meta{Name: "a", Source: "d/a.yaml:7"}
	bmc := func(s BMCSpec) Object { return &BMC{meta, s} }
	claim := func(s ServerClaimSpec) Object { return &ServerClaim{Meta: meta, Spec: s} }
	secret := func(immutable *bool, value string) Object {
		return &BMCSecret{Meta: meta, Immutable: immutable, Values: map[string]Sensitive{"password": NewSensitive(value)}}
	}
	rackA := &metav1.LabelSelector{MatchLabels: map[string]string{"rack": "a"}}
	rackB := &metav1.LabelSelector{MatchLabels: map[string]string{"rack": "b"}}
	tests := map[string]struct {
		old, new Object
		denied   string // field
	}{
		"endpointRef may become access": {
			bmc(BMCSpec{EndpointRef: &LocalRef{"e"}}), bmc(BMCSpec{Access: &InlineEndpoint{IP: "192.0.2.1"}}), "",
		},
		"access may change": {
			bmc(BMCSpec{Access: &InlineEndpoint{IP: "192.0.2.1"}}), bmc(BMCSpec{Access: &InlineEndpoint{IP: "192.0.2.2"}}), "",
		},
		"endpointRef must not be removed": {bmc(BMCSpec{EndpointRef: &LocalRef{"e"}}), bmc(BMCSpec{}), "spec.endpointRef"},
		"endpointRef must not change": {
			old: bmc(BMCSpec{EndpointRef: &LocalRef{"e"}}), new: bmc(BMCSpec{EndpointRef: &LocalRef{"f"}}),
			denied: "spec.endpointRef",
		},
		"endpointRef may stay": {
			old: bmc(BMCSpec{EndpointRef: &LocalRef{"e"}}), new: bmc(BMCSpec{EndpointRef: &LocalRef{"e"}, Hostname: "x"}),
		},
		"serverRef may be set": {claim(ServerClaimSpec{}), claim(ServerClaimSpec{ServerRef: &LocalRef{"s"}}), ""},
		"serverRef must not change": {
			old: claim(ServerClaimSpec{ServerRef: &LocalRef{"s"}}), new: claim(ServerClaimSpec{ServerRef: &LocalRef{"t"}}),
			denied: "spec.serverRef",
		},
		"serverRef must not be removed": {claim(ServerClaimSpec{ServerRef: &LocalRef{"s"}}), claim(ServerClaimSpec{}), "spec.serverRef"},
		"serverSelector must not change": {
			old: claim(ServerClaimSpec{ServerSelector: rackA}), new: claim(ServerClaimSpec{ServerSelector: rackB}),
			denied: "spec.serverSelector",
		},
		"serverSelector may stay": {
			old: claim(ServerClaimSpec{ServerSelector: rackA}), new: claim(ServerClaimSpec{ServerSelector: rackA, Image: "x"}),
		},
		"the server of a boot configuration must not change": {
			&ServerBootConfiguration{meta, ServerBootConfigurationSpec{ServerRef: LocalRef{"s"}}},
			&ServerBootConfiguration{meta, ServerBootConfigurationSpec{ServerRef: LocalRef{"t"}}}, "spec.serverRef",
		},
		"a secret may change":             {secret(nil, "a"), secret(&no, "b"), ""},
		"a secret may become immutable":   {secret(&no, "a"), secret(&yes, "b"), ""},
		"immutable must not become false": {secret(&yes, "a"), secret(&no, "a"), "immutable"},
		"immutable must not be removed":   {secret(&yes, "a"), secret(nil, "a"), "immutable"},
		"immutable data must not change":  {secret(&yes, "a"), secret(&yes, "b"), "data"},
		"another object is no new version": {
			bmc(BMCSpec{EndpointRef: &LocalRef{"e"}}), &BMC{Meta{Name: "b"}, BMCSpec{EndpointRef: &LocalRef{"f"}}}, "",
		},
		"another kind is no new version": {bmc(BMCSpec{EndpointRef: &LocalRef{"e"}}), claim(ServerClaimSpec{}), ""},
		"a new object follows none":      {nil, claim(ServerClaimSpec{}), ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := ValidateUpdate(tt.old, tt.new)
			if tt.denied == "" {
				if len(got) > 0 {
					t.Errorf("got %v, want none", got)
				}
				return
			}
			if len(got) != 1 {
				t.Fatalf("got %v, want one problem", got)
			}
			want := Problem{
				Severity: SeverityError, File: "d/a.yaml", Line: 7, Object: tt.new.Identity().String(),
				Field: tt.denied, Message: got[0].Message,
			}
			if diff := cmp.Diff(want, got[0]); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
			if strings.Contains(got[0].Message, "password") {
				t.Error("the message shows a secret")
			}
		})
	}
}

// testSubnets are those of DHCP.
var testSubnets = []netip.Prefix{
	netip.MustParsePrefix("192.0.2.0/25"), netip.MustParsePrefix("192.0.2.128/25"), netip.MustParsePrefix("fd00::/64"),
}

func TestCrossCheck(t *testing.T) {
	at := func(name, source string) Meta { return Meta{Name: name, Source: source} }
	macs := func(name, source, list string) Meta {
		return Meta{Name: name, Source: source, Annotations: map[string]string{AnnotationMACAddresses: list}}
	}
	access := func(ip string, port int32) BMCSpec {
		return BMCSpec{Access: &InlineEndpoint{IP: ip}, Protocol: Protocol{Port: port}}
	}
	within := func(address string) ServerSpec {
		return ServerSpec{BMC: &BMCAccess{Address: address, Protocol: Protocol{Port: 443}}}
	}
	const onlyOne = "only one of them can have it\n"
	tests := map[string]struct {
		objects []Object
		want    string
	}{
		"nothing in common": {
			objects: []Object{
				&Endpoint{at("a", "a:1"), EndpointSpec{"00:00:00:00:00:01", "192.0.2.1"}},
				&Endpoint{at("b", "b:1"), EndpointSpec{"00:00:00:00:00:02", "192.0.2.2"}},
				&BMC{at("a", "a:2"), access("192.0.2.1", 443)},
				&BMC{at("b", "b:2"), access("192.0.2.1", 444)},
				&Server{at("a", "a:3"), ServerSpec{}},
				&Server{at("b", "b:3"), ServerSpec{}},
			},
		},
		"one MAC address of three Endpoints": {
			objects: []Object{
				&Endpoint{at("a", "a:1"), EndpointSpec{"00:00:00:00:00:01", "192.0.2.1"}},
				&Endpoint{at("b", "b:1"), EndpointSpec{"00:00:00:00:00:01", "192.0.2.2"}},
				&Endpoint{at("c", "c:1"), EndpointSpec{"00:00:00:00:00:01", "192.0.2.3"}},
			},
			want: `a:1: Endpoint a: spec.macAddress: has the MAC address 00:00:00:00:00:01 in 192.0.2.0/25 of Endpoint b (b:1): only one of them can have it
b:1: Endpoint b: spec.macAddress: has the MAC address 00:00:00:00:00:01 in 192.0.2.0/25 of Endpoint a (a:1): only one of them can have it
c:1: Endpoint c: spec.macAddress: has the MAC address 00:00:00:00:00:01 in 192.0.2.0/25 of Endpoint a (a:1): only one of them can have it
`,
		},
		"one MAC address in several subnets, in both families and outside": {
			objects: []Object{
				&Endpoint{at("a", "a:1"), EndpointSpec{"00:00:00:00:00:01", "192.0.2.1"}},
				&Endpoint{at("b", "b:1"), EndpointSpec{"00:00:00:00:00:01", "192.0.2.129"}},
				&Endpoint{at("c", "c:1"), EndpointSpec{"00:00:00:00:00:01", "fd00::1"}},
				&Endpoint{at("d", "d:1"), EndpointSpec{"00:00:00:00:00:01", "198.51.100.1"}},
				&Endpoint{at("e", "e:1"), EndpointSpec{"00:00:00:00:00:01", "198.51.100.2"}},
			},
		},
		"one IP address of two Endpoints, in a subnet or not": {
			objects: []Object{
				&Endpoint{at("a", "a:1"), EndpointSpec{"00:00:00:00:00:01", "192.0.2.1"}},
				&Endpoint{at("b", "b:1"), EndpointSpec{"00:00:00:00:00:02", "192.0.2.1"}},
				&Endpoint{at("c", "c:1"), EndpointSpec{"00:00:00:00:00:03", "198.51.100.1"}},
				&Endpoint{at("d", "d:1"), EndpointSpec{"00:00:00:00:00:03", "198.51.100.1"}},
			},
			want: "a:1: Endpoint a: spec.ip: has the IP address 192.0.2.1 of Endpoint b (b:1): " + onlyOne +
				"b:1: Endpoint b: spec.ip: has the IP address 192.0.2.1 of Endpoint a (a:1): " + onlyOne +
				"c:1: Endpoint c: spec.ip: has the IP address 198.51.100.1 of Endpoint d (d:1): " + onlyOne +
				"d:1: Endpoint d: spec.ip: has the IP address 198.51.100.1 of Endpoint c (c:1): " + onlyOne,
		},
		"one address of two BMCs, one by its Endpoint": {
			objects: []Object{
				&Endpoint{at("e", "e:1"), EndpointSpec{"00:00:00:00:00:01", "192.0.2.1"}},
				&BMC{at("a", "a:1"), access("192.0.2.1", 443)},
				&BMC{at("b", "b:1"), BMCSpec{EndpointRef: &LocalRef{"e"}, Protocol: Protocol{Port: 443}}},
				&BMC{at("c", "c:1"), BMCSpec{EndpointRef: &LocalRef{"gone"}, Protocol: Protocol{Port: 443}}},
			},
			want: `a:1: BMC a: spec: has the address 192.0.2.1:443 of BMC b (b:1): only one of them can have it
b:1: BMC b: spec: has the address 192.0.2.1:443 of BMC a (a:1): only one of them can have it
`,
		},
		"one address of two BMCs within Servers, and of one that stands by itself": {
			objects: []Object{
				&Server{at("a", "a:1"), within("192.0.2.1")},
				&Server{at("b", "b:1"), within("192.0.2.1")},
				&BMC{at("c", "c:1"), access("192.0.2.1", 443)},
				&Server{at("d", "d:1"), within("192.0.2.2")},
			},
			want: "a:1: Server a: spec: has the address 192.0.2.1:443 of BMC c (c:1): " + onlyOne +
				"b:1: Server b: spec: has the address 192.0.2.1:443 of BMC c (c:1): " + onlyOne +
				"c:1: BMC c: spec: has the address 192.0.2.1:443 of Server a (a:1): " + onlyOne,
		},
		"a BMC, and one within the Server of its name": {
			objects: []Object{
				&Server{at("a", "a:1"), within("192.0.2.1")},
				&BMC{at("a", "a:2"), access("192.0.2.2", 443)},
			},
			want: "a:1: Server a: spec: describes a BMC a, as does BMC a (a:2): " + onlyOne +
				"a:2: BMC a: spec: describes a BMC a, as does Server a (a:1): " + onlyOne,
		},
		"one UUID of two Servers, one with its bytes swapped": {
			objects: []Object{
				&Server{at("a", "a:1"), ServerSpec{SystemUUID: "4c4c4544-0042-3010-8057-b5c04f4e3532"}},
				&Server{at("b", "b:1"), ServerSpec{SystemUUID: "44454c4c-4200-1030-8057-b5c04f4e3532"}},
			},
			want: "a:1: Server a: spec.systemUUID: has the system UUID 44454c4c-4200-1030-8057-b5c04f4e3532 of Server b (b:1): " + onlyOne +
				"b:1: Server b: spec.systemUUID: has the system UUID 44454c4c-4200-1030-8057-b5c04f4e3532 of Server a (a:1): " + onlyOne,
		},
		"one MAC address of two Servers, in two spellings": {
			objects: []Object{
				&Server{macs("a", "a:1", "02:00:00:00:00:01, 02:00:00:00:00:02"), ServerSpec{}},
				&Server{macs("b", "b:1", "020000000003,02-00-00-00-00-02"), ServerSpec{}},
				&Server{macs("c", "c:1", "02:00:00:00:00:04"), ServerSpec{}},
			},
			want: "a:1: Server a: metadata.annotations[ingot/mac-addresses]: " +
				"has the MAC address 02:00:00:00:00:02 of Server b (b:1): " + onlyOne +
				"b:1: Server b: metadata.annotations[ingot/mac-addresses]: " +
				"has the MAC address 02:00:00:00:00:02 of Server a (a:1): " + onlyOne,
		},
		"bootConfigurationRef names what is for another server": {
			objects: []Object{
				&Server{at("a", "a:1"), ServerSpec{BootConfigurationRef: &ObjectRef{"ops", "burn"}}},
				&Server{at("b", "a:9"), ServerSpec{BootConfigurationRef: &ObjectRef{"ops", "gone"}}},
				&Server{at("c", "a:12"), ServerSpec{BootConfigurationRef: &ObjectRef{"ops", "own"}}},
				&ServerBootConfiguration{
					Meta: Meta{Name: "burn", Namespace: "ops", Source: "b:1"}, Spec: ServerBootConfigurationSpec{ServerRef: LocalRef{"b"}},
				},
				&ServerBootConfiguration{
					Meta: Meta{Name: "own", Namespace: "ops", Source: "b:9"}, Spec: ServerBootConfigurationSpec{ServerRef: LocalRef{"c"}},
				},
			},
			want: "a:1: Server a: spec.bootConfigurationRef: names ServerBootConfiguration ops/burn (b:1), which is for server b: " +
				"correct its serverRef, or take it out here\n",
		},
		"M15 names that differ by case": {
			objects: []Object{
				&ServerClaim{Meta: Meta{Name: "web", Namespace: "x", Source: "a:1"}},
				&ServerClaim{Meta: Meta{Name: "Web", Namespace: "x", Source: "b:1"}},
				&ServerClaim{Meta: Meta{Name: "Web", Namespace: "y", Source: "c:1"}},
			},
			want: "a:1: ServerClaim x/web: metadata.name: differs only by upper and lower case from ServerClaim x/Web (b:1): " + onlyOne +
				"b:1: ServerClaim x/Web: metadata.name: differs only by upper and lower case from ServerClaim x/web (a:1): " + onlyOne,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d := NewDesired()
			for _, o := range tt.objects {
				d.Add(o)
			}
			if diff := cmp.Diff(tt.want, problemLines(CrossChecker{Subnets: testSubnets}.Check(d))); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		})
	}
}
