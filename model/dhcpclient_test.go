package model

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestIdentifiers(t *testing.T) {
	for text, want := range map[string]string{
		"0x01A0b1":      "\x01\xa0\xb1",
		"hex:01a0b1":    "\x01\xa0\xb1",
		"01:a0:B1":      "\x01\xa0\xb1",
		"Eth1/7":        "Eth1/7",
		"text:01:a0":    "01:a0",
		"text:text:x":   "text:x",
		"rack 4, unit7": "rack 4, unit7",
	} {
		got, err := decodeIdentifier(text, 2)
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
		if again, err := decodeIdentifier(FormatIdentifier(got), 2); err != nil || string(again) != want {
			t.Errorf("%s is written as %s, which is %q, %v", text, FormatIdentifier(got), again, err)
		}
	}
	for text, want := range map[string]string{
		"0x":                            "it is shorter than 2 bytes",
		"0x0":                           "it is not pairs of hexadecimal digits",
		"a":                             "it is shorter than 2 bytes",
		"é1":                            "character 1 cannot be printed in ASCII",
		"text:":                         "it is empty",
		"0x" + strings.Repeat("0", 258): "it is longer than 128 bytes",
	} {
		if got, err := decodeIdentifier(text, 2); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %q, %v, want …%s", text, got, err, want)
		}
	}
}

func TestWhoGetsTheAddressOfAnEndpoint(t *testing.T) {
	manifest := func(annotations, spec string) string {
		return "apiVersion: metal.ironcore.dev/v1alpha1\nkind: Endpoint\nmetadata:\n  name: e\n  annotations:\n" + annotations + "spec:\n" + spec
	}
	for name, tt := range map[string]struct {
		annotations, spec string
		clientID          string
		port              RelayPort
		want              string
	}{
		"a client identifier beside a MAC address": {
			annotations: "    ingot/dhcp-client-id: 01:a0\n", spec: "  macAddress: 02:00:00:00:00:01\n  ip: 192.0.2.1\n", clientID: "01a0",
		},
		"a client identifier alone": {
			annotations: "    ingot/dhcp-client-id: blade-7\n", spec: "  ip: 192.0.2.1\n", clientID: "626c6164652d37",
		},
		"the port of a relay": {
			annotations: "    ingot/dhcp-circuit-id: Eth1/7\n    ingot/dhcp-remote-id: '0x00ff'\n", spec: "  ip: 192.0.2.1\n",
			port: RelayPort{"Eth1/7", "\x00\xff"},
		},
		"a port counts alone": {
			annotations: "    ingot/dhcp-client-id: blade-7\n    ingot/dhcp-remote-id: leaf1\n", spec: "  ip: 192.0.2.1\n", port: RelayPort{RemoteID: "leaf1"},
			want: "e.yaml:6:27: warning: Endpoint e: metadata.annotations[ingot/dhcp-client-id]: has no effect beside a relay port, which alone says who gets the address: take one of the two out\n",
		},
		"nothing of a device": {
			annotations: "    ingot/dhcp-client-id: ''\n", spec: "  ip: 192.0.2.1\n",
			want: "e.yaml:7:1: Endpoint e: spec.macAddress: is required: " + wantMAC + "\n",
		},
		"an identifier that is none": {
			annotations: "    ingot/dhcp-circuit-id: 0x0g\n", spec: "  ip: 192.0.2.1\n",
			want: "e.yaml:6:28: Endpoint e: metadata.annotations[ingot/dhcp-circuit-id]: found \"0x0g\", want " + wantIdentifier +
				": it is not pairs of hexadecimal digits\n",
		},
		"a port for DHCPv6": {
			annotations: "    ingot/dhcp-circuit-id: Eth1/7\n", spec: "  ip: fd00::1\n", port: RelayPort{CircuitID: "Eth1/7"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects, problems := Decode("e.yaml", []byte(manifest(tt.annotations, tt.spec)), DecodeOptions{})
			if diff := cmp.Diff(tt.want, problemLines(problems)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if HasErrors(problems) {
				return
			}
			e := objects[0].(*Endpoint)
			if e.ClientID() != tt.clientID || e.RelayPort() != tt.port {
				t.Errorf("client %q, port %q", e.ClientID(), e.RelayPort())
			}
		})
	}
}

func TestNoTwoEndpointsAreForOneClient(t *testing.T) {
	d := NewDesired()
	for i, e := range []struct{ annotation, ip string }{
		{"ingot/dhcp-client-id: '0x6162'", "192.0.2.1"}, {"ingot/dhcp-client-id: ab", "192.0.2.2"},
		{"ingot/dhcp-circuit-id: p1", "192.0.2.3"}, {"ingot/dhcp-circuit-id: text:p1", "192.0.2.4"},
		{"ingot/dhcp-remote-id: r", "192.0.2.5"}, {"ingot/dhcp-remote-id: r", "192.0.2.6"},
		{"{ingot/dhcp-circuit-id: p1, ingot/dhcp-remote-id: r}", "192.0.2.7"},
		// A port has an address of each family.
		{"ingot/dhcp-circuit-id: p1", "fd00::1"}, {"ingot/dhcp-remote-id: r", "fd00::2"}, {"ingot/dhcp-remote-id: '0x72'", "fd00::3"},
	} {
		text := fmt.Sprintf("apiVersion: metal.ironcore.dev/v1alpha1\nkind: Endpoint\nmetadata: {name: e%d, annotations:\n  %s }\nspec: {ip: %q}\n", i, braced(e.annotation), e.ip)
		objects, problems := Decode(fmt.Sprintf("e%d.yaml", i), []byte(text), DecodeOptions{})
		if HasErrors(problems) {
			t.Fatal(problemLines(problems))
		}
		e := objects[0].(*Endpoint)
		d.Endpoints[e.Name] = e
	}
	const only = ": only one of them can have it\n"
	want := "e0.yaml:4:26: Endpoint e0: metadata.annotations[ingot/dhcp-client-id]: has the client identifier 0x6162 in 192.0.2.0/25 of Endpoint e1 (e1.yaml:1)" + only +
		"e1.yaml:4:26: Endpoint e1: metadata.annotations[ingot/dhcp-client-id]: has the client identifier 0x6162 in 192.0.2.0/25 of Endpoint e0 (e0.yaml:1)" + only +
		"e2.yaml:4:27: Endpoint e2: metadata.annotations[ingot/dhcp-circuit-id]: has the relay port circuit p1 in 192.0.2.0/25 of Endpoint e3 (e3.yaml:1)" + only +
		"e3.yaml:4:27: Endpoint e3: metadata.annotations[ingot/dhcp-circuit-id]: has the relay port circuit p1 in 192.0.2.0/25 of Endpoint e2 (e2.yaml:1)" + only +
		"e4.yaml:4:26: Endpoint e4: metadata.annotations[ingot/dhcp-remote-id]: has the relay remote r in 192.0.2.0/25 of Endpoint e5 (e5.yaml:1)" + only +
		"e5.yaml:4:26: Endpoint e5: metadata.annotations[ingot/dhcp-remote-id]: has the relay remote r in 192.0.2.0/25 of Endpoint e4 (e4.yaml:1)" + only +
		"e8.yaml:4:26: Endpoint e8: metadata.annotations[ingot/dhcp-remote-id]: has the relay remote r in fd00::/64 of Endpoint e9 (e9.yaml:1)" + only +
		"e9.yaml:4:26: Endpoint e9: metadata.annotations[ingot/dhcp-remote-id]: has the relay remote r in fd00::/64 of Endpoint e8 (e8.yaml:1)" + only
	if diff := cmp.Diff(want, problemLines(CrossChecker{Subnets: testSubnets}.Check(d))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func braced(annotation string) string { return "{" + strings.Trim(annotation, "{}") + "}" }
