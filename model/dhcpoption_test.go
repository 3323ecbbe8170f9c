package model

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDHCPOptions(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       map[byte]string // in hexadecimal
		wrong      string
	}{
		{name: "host-name", text: "rack1-07", want: map[byte]string{12: "7261636b312d3037"}},
		{name: "12", text: "rack1-07", want: map[byte]string{12: "7261636b312d3037"}},
		{name: "host-name", text: "rack 1", wrong: "no domain name"},
		{name: "mtu", text: "9000", want: map[byte]string{26: "2328"}},
		{name: "mtu", text: "67", wrong: "a number from 68"},
		{name: "26", text: "65536", wrong: "a number from 68"},
		{name: "ntp-servers", text: "192.0.2.1, 192.0.2.2", want: map[byte]string{42: "c0000201c0000202"}},
		{name: "42", text: "ntp.example", wrong: `"ntp.example" is not the IPv4 address of a device`},
		{name: "42", text: "", wrong: "it is empty"},
		{name: "42", text: "192.0.2.1,,192.0.2.2", wrong: "it is empty"},
		{name: "42", text: strings.Repeat("192.0.2.1,", 8) + "192.0.2.1", wrong: "there are 9, at most 8"},
		{name: "vendor", text: "hex:0104c0000201", want: map[byte]string{43: "0104c0000201"}},
		{name: "vendor", text: "hex:0", wrong: "odd length"},
		{name: "vendor", text: "hex:", wrong: "it is empty"},
		{name: "tftp-server", text: "10.0.0.9", want: map[byte]string{66: "31302e302e302e39"}},
		{name: "boot-file", text: "switch.cfg", want: map[byte]string{67: "7377697463682e636667"}},
		{name: "boot-file", text: "switch\x00", wrong: "character 7 cannot be printed"},
		{name: "boot-file", text: strings.Repeat("a", 256), wrong: "it takes 256 bytes"},
		{name: "ipv6-only", text: "1800", want: map[byte]string{108: "00000708"}},
		{name: "108", text: "299", wrong: "from 300 on"},
		{name: "captive-portal", text: "https://a.example/x", want: map[byte]string{114: "68747470733a2f2f612e6578616d706c652f78"}},
		{name: "captive-portal", text: "a.example", wrong: "no scheme"},
		// RFC 1035 §3.1: labels by their lengths, without compression
		{name: "domain-search", text: "a.example, b", want: map[byte]string{119: "0161076578616d706c6500016200"}},
		{name: "domain-search", text: "a..example", wrong: "no domain name"},
		{name: "domain-search", text: strings.Repeat("a.", 127) + "ab", wrong: "longer than a domain name"},
		// RFC 3442, its examples of descriptors
		{
			name: "routes", text: "0.0.0.0/0 via 192.0.2.1, 10.17.0.0/16 via 192.0.2.2, 10.27.129.64/26 via 0.0.0.0",
			want: map[byte]string{121: "00c0000201100a11c00002021a0a1b814000000000", 249: "00c0000201100a11c00002021a0a1b814000000000"},
		},
		{name: "249", text: "10.0.0.0/8 via 192.0.2.1", want: map[byte]string{249: "080ac0000201"}},
		{name: "routes", text: "10.0.0.1/8 via 192.0.2.1", wrong: "write 10.0.0.0/8"},
		{name: "routes", text: "10.0.0.0/8 192.0.2.1", wrong: "is no route"},
		{name: "routes", text: "10.0.0.0/8 via fd00::1", wrong: "address of a router"},
		{name: "capwap", text: "192.0.2.1", want: map[byte]string{138: "c0000201"}},
		{name: "tftp-servers", text: "192.0.2.1", want: map[byte]string{150: "c0000201"}},
		{name: "wpad", text: "http://w/p", want: map[byte]string{252: "687474703a2f2f772f70"}},
		{name: "224", text: "hex:0a", want: map[byte]string{224: "0a"}},
		{name: "224", text: "own", want: map[byte]string{224: "6f776e"}},
		{name: "mut", text: "9000", wrong: `did you mean "mtu"?`},
		{name: "256", text: "a", wrong: "is no option"},
		{name: "012", text: "a", wrong: `"012" has leading zeros: write 12`},
		{name: "3", text: "192.0.2.1", wrong: "option 3 cannot be set: write gateway"},
		{name: "53", text: "hex:05", wrong: "part of how DHCP works"},
		{name: "82", text: "hex:05", wrong: "part of how DHCP works"},
		{name: "0", text: "hex:05", wrong: "it is no option"},
	} {
		t.Run(tc.name+" "+shorten(tc.text), func(t *testing.T) {
			got := make(DHCPOptions)
			err := got.Set(tc.name, tc.text)
			if tc.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wrong) || len(got) > 0 {
					t.Errorf("got %v, %v, want an error that says %q", got, err, tc.wrong)
				}
				return
			}
			encoded := make(map[byte]string)
			for code, value := range got {
				encoded[code] = hex.EncodeToString(value)
			}
			if diff := cmp.Diff(tc.want, encoded); diff != "" || err != nil {
				t.Errorf("%v, -want +got:\n%s", err, diff)
			}
		})
	}
}

func TestDHCPOptionsOfAnEndpoint(t *testing.T) {
	const text = "apiVersion: metal.ironcore.dev/v1alpha1\nkind: %s\nmetadata:\n  name: e\n  annotations:\n" +
		"    dhcp.ingot/mtu: '9000'\n    dhcp.ingot/252: http://w/p\n    dhcp.ingot/host-name: rack 1\nspec: {macAddress: '020000000001', ip: 192.0.2.1}\n"
	objects, problems := Decode("e.yaml", fmt.Appendf(nil, text, KindEndpoint), DecodeOptions{})
	want := "e.yaml:8:27: Endpoint e: metadata.annotations[dhcp.ingot/host-name]: found \"rack 1\", " +
		"want a host name, as rack1-07: \"rack 1\" is no domain name\n"
	if diff := cmp.Diff(want, problemLines(problems)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if len(objects) > 0 {
		t.Fatalf("an Endpoint with a wrong option is taken: %+v", objects)
	}
	right := strings.Replace(fmt.Sprintf(text, KindEndpoint), "rack 1", "rack1", 1)
	objects, problems = Decode("e.yaml", []byte(right), DecodeOptions{})
	if len(objects) != 1 || len(problems) > 0 {
		t.Fatalf("got %+v and %s", objects, problemLines(problems))
	}
	options := DHCPOptions{12: []byte("rack1"), 26: {0x23, 0x28}, 252: []byte("http://w/p")}
	if diff := cmp.Diff(options, objects[0].(*Endpoint).DHCPOptions()); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
	bmc := strings.Replace(right, "kind: Endpoint", "kind: Server", 1)
	if _, problems := Decode("e.yaml", []byte(bmc), DecodeOptions{}); !strings.Contains(problemLines(problems), "has no effect on a Server") {
		t.Errorf("got %s, want a warning", problemLines(problems))
	}
}

func TestADHCPOptionIsSetOnce(t *testing.T) {
	const text = "apiVersion: metal.ironcore.dev/v1alpha1\nkind: Endpoint\nmetadata:\n  name: e\n  annotations:\n" +
		"    dhcp.ingot/host-name: a\n    dhcp.ingot/249: 10.0.0.0/8 via 192.0.2.1\n    dhcp.ingot/12: b\n" +
		"    dhcp.ingot/routes: 10.0.0.0/8 via 192.0.2.1\nspec: {macAddress: '020000000001', ip: 192.0.2.1}\n"
	_, problems := Decode("e.yaml", []byte(text), DecodeOptions{})
	want := "e.yaml:7:21: Endpoint e: metadata.annotations[dhcp.ingot/249]: option 249 is set by routes, too: keep one of them\n" +
		"e.yaml:8:20: Endpoint e: metadata.annotations[dhcp.ingot/12]: option 12 is set by host-name, too: keep one of them\n"
	if diff := cmp.Diff(want, problemLines(problems)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func FuzzDHCPOption(f *testing.F) {
	for name, text := range map[string]string{
		"host-name": "rack1-07", "mtu": "9000", "ntp-servers": "192.0.2.1, 192.0.2.2", "vendor": "hex:0104c0000201", "boot-file": "leaf1.cfg",
		"ipv6-only": "1800", "captive-portal": "http://192.0.2.1/x", "domain-search": "a.example, b.example", "routes": "10.0.0.0/8 via 192.0.2.1, 0.0.0.0/0 via 192.0.2.2",
		"capwap": "192.0.2.1", "224": "hex:0a0b", "53": "hex:01", "121": "10.0.0.0/33 via ::1", "wpad": "javascript:x",
	} {
		f.Add(name, text)
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		o := make(DHCPOptions)
		if err := o.Set(name, text); err != nil {
			if len(o) > 0 {
				t.Errorf("%q %q is refused, and set: %v", name, text, err)
			}
			return
		}
		for code, value := range o {
			if _, own := ownDHCPOptions[code]; own || len(value) == 0 || len(value) > maxDHCPOption {
				t.Errorf("%q %q is option %d of %d bytes", name, text, code, len(value))
			}
		}
	})
}
