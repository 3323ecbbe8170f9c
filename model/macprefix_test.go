package model

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const upstreamMACPrefixes = `macPrefixes:
- macPrefix: 23
  manufacturer: Foo
  protocol: Redfish
  port: 8000
  type: bmc
  defaultCredentials:
  - username: foo
    password: bar
  - username: admin
    password: admin
  console:
    type: SSH
    port: 22
- macPrefix: 001122   # to YAML 1.1 an octal number
  protocol: RedfishLocal
  protocolScheme: http
  port: 80
  type: bmc
- macPrefix: "00:11:22:AB"
  protocol: Redfish
  port: 443
  type: bmc
- macPrefix: 6e1
  type: switch
`

// entriesOf are the entries of a database, nil = none, by their prefixes.
func entriesOf(p *MACPrefixes) (all []*MACPrefix) {
	if p == nil {
		return nil
	}
	for _, prefix := range slices.Sorted(maps.Keys(p.byPrefix)) {
		all = append(all, p.byPrefix[prefix])
	}
	return all
}

// TestTheMACPrefixDatabaseOfUpstreamIsRead is M04: a prefix of digits alone is a number to YAML.
func TestTheMACPrefixDatabaseOfUpstreamIsRead(t *testing.T) {
	p, problems := DecodeMACPrefixes("macdb.yaml", []byte(upstreamMACPrefixes), TokenKey{})
	if len(problems) > 0 {
		t.Fatal(problemLines(problems))
	}
	want := []*MACPrefix{
		{Prefix: "001122", Protocol: Protocol{Name: "RedfishLocal", Port: 80, Scheme: "http"}, Type: "bmc"},
		{Prefix: "001122ab", Protocol: Protocol{Name: "Redfish", Port: 443, Scheme: "https"}, Type: "bmc"},
		{
			Prefix: "23", Manufacturer: "Foo", Protocol: Protocol{Name: "Redfish", Port: 8000, Scheme: "https"}, Type: "bmc",
			Credentials: []Credential{{"23#1", "foo", NewSensitive("bar")}, {"23#2", "admin", NewSensitive("admin")}},
			Console:     &ConsoleProtocol{Name: "SSH", Port: 22},
		},
		{Prefix: "6e1", Protocol: Protocol{Scheme: "https"}, Type: "switch"},
	}
	if diff := cmp.Diff(want, entriesOf(p), cmp.AllowUnexported(Sensitive{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTheLongestPrefixWins(t *testing.T) {
	p, _ := DecodeMACPrefixes("macdb.yaml", []byte(upstreamMACPrefixes), TokenKey{})
	for mac, want := range map[string]string{
		"23:00:00:00:00:01": "23",
		"00:11:22:00:00:01": "001122",
		"00:11:22:ab:00:01": "001122ab",
		"00:11:22:AB:00:01": "001122ab",
		"6e:1f:00:00:00:00": "6e1",
		"6e:2f:00:00:00:00": "",
		"no address":        "",
	} {
		got := ""
		if e, ok := p.Lookup(mac); ok {
			got = e.Prefix
		}
		if got != want {
			t.Errorf("%s: entry %q, want %q", mac, got, want)
		}
	}
	if _, ok := (*MACPrefixes)(nil).Lookup("23:00:00:00:00:01"); ok {
		t.Error("no database has an entry")
	}
}

func TestMistakesInTheMACPrefixDatabaseAreExplained(t *testing.T) {
	entry := func(lines string) string {
		return "macPrefixes:\n- macPrefix: a0369f\n  protocol: Redfish\n  port: 443\n  type: bmc\n" + lines
	}
	tests := map[string]struct{ data, want string }{
		"nothing is no mistake": {data: "# none yet\n"},
		"no list":               {data: "{}\n", want: "f:1:1: macPrefixes: is required: the list of prefixes"},
		"a misspelt list":       {data: "macPrefixs: []\n", want: `f:1:1: macPrefixs: unknown field, did you mean "macPrefixes"?`},
		"a misspelt field": {
			data: entry("  manufacterer: Intel\n"),
			want: `f:6:3: macPrefixes[0].manufacterer: unknown field, did you mean "manufacturer"?`,
		},
		"a prefix of letters": {
			data: "macPrefixes: [{macPrefix: dell, type: x}]\n",
			want: `f:1:27: macPrefixes[0].macPrefix: found "dell", ` +
				`want the first 1 to 12 hexadecimal digits of MAC addresses, such as a0369f or a0:36:9f`,
		},
		"a group too short": {
			data: "macPrefixes: [{macPrefix: \"a:b:c\", type: x}]\n",
			want: `f:1:27: macPrefixes[0].macPrefix: found "a:b:c", ` +
				`want the first 1 to 12 hexadecimal digits of MAC addresses, such as a0369f or a0:36:9f`,
		},
		"a prefix too long": {
			data: "macPrefixes: [{macPrefix: 00112233445566, type: x}]\n",
			want: `f:1:27: macPrefixes[0].macPrefix: found "00112233445566", ` +
				`want the first 1 to 12 hexadecimal digits of MAC addresses, such as a0369f or a0:36:9f`,
		},
		"no prefix": {data: "macPrefixes:\n- {type: x}\n", want: "f:2:3: macPrefixes[0].macPrefix: is required"},
		"a prefix twice": {
			data: entry("") + "- {macPrefix: \"A0-36-9F\", type: x}\n",
			want: `f:6:15: macPrefixes[1].macPrefix: found "a0369f" again, first in line 2: keep one of them`,
		},
		"a protocol of no BMC": {
			data: "macPrefixes:\n- {macPrefix: aa, type: bmc, port: 22, protocol: SSH}\n",
			want: `f:2:50: macPrefixes[0].protocol: found "SSH", want Redfish, RedfishLocal or RedfishWithRegistryPatch`,
		},
		"no protocol": {
			data: "macPrefixes:\n- {macPrefix: aa, type: bmc, port: 22}\n",
			want: "f:2:3: macPrefixes[0].protocol: is required: Redfish, RedfishLocal or RedfishWithRegistryPatch",
		},
		"a scheme that is none": {
			data: entry("  protocolScheme: ftp\n"),
			want: `f:6:19: macPrefixes[0].protocolScheme: found "ftp", want https or http`,
		},
		"a port out of range": {
			data: "macPrefixes:\n- {macPrefix: aa, type: bmc, port: 70000, protocol: Redfish}\n",
			want: "f:2:36: macPrefixes[0].port: found 70000, want a port from 1 to 65535",
		},
		"a type that is no BMC's": {
			data: "macPrefixes:\n- {macPrefix: aa, type: BMC}\n",
			want: `f:2:25: warning: macPrefixes[0].type: found "BMC", which is not acted upon, did you mean "bmc"?`,
		},
		"a user without name": {
			data: entry("  defaultCredentials:\n  - password: x\n"),
			want: "f:7:5: macPrefixes[0].defaultCredentials[0].username: is required",
		},
		"a console that is none": {
			data: entry("  console: {type: Telnet, port: 23}\n"),
			want: `f:6:19: macPrefixes[0].console.type: found "Telnet", want IPMI, SSH or SSHLenovo`,
		},
		"two documents": {
			data: "macPrefixes: []\n---\nmacPrefixes: []\n",
			want: "f:2:1: the file has a second document, want one",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, problems := DecodeMACPrefixes("f", []byte(tc.data), TokenKey{})
			if got := strings.TrimSpace(problemLines(problems)); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if HasErrors(problems) != (p == nil) {
				t.Errorf("database %v with %d problems", p, len(problems))
			}
		})
	}
}

func TestAPasswordOfTheMACPrefixDatabaseIsNeverShown(t *testing.T) {
	const password = "77314159"
	file := "macPrefixes:\n- macPrefix: aa\n  protocol: Redfish\n  port: 443\n  type: bmc\n  defaultCredentials:\n  - {username: root, " +
		"password: " + password + "}\n"
	_, problems := DecodeMACPrefixes("f", []byte(file), TokenKey{})
	if got := problemLines(problems); !strings.Contains(got, "write it in quotes") || strings.Contains(got, password) {
		t.Errorf("got %s", got)
	}
}

func TestACredentialsIDChangesWithItsPasswordAndRevealsNothing(t *testing.T) {
	id := func(password string, key TokenKey) string {
		p, problems := DecodeMACPrefixes("f",
			[]byte("macPrefixes:\n- macPrefix: aa\n  protocol: Redfish\n  port: 443\n  type: bmc\n"+
				"  defaultCredentials:\n  - {username: root, password: \""+password+"\"}\n"), key)
		if len(problems) > 0 {
			t.Fatal(problemLines(problems))
		}
		c := entriesOf(p)[0].Credentials[0]
		if known, ok := p.Credential(c.ID); !ok || known.Password != c.Password {
			t.Errorf("%s does not lead to its credential", c.ID)
		}
		return c.ID
	}
	k1, k2 := NewTokenKey([]byte(strings.Repeat("a", 32))), NewTokenKey([]byte(strings.Repeat("b", 32)))
	ids := map[string]bool{id("one", k1): true, id("two", k1): true, id("one", k2): true, id("one", TokenKey{}): true}
	if len(ids) != 4 {
		t.Errorf("got %v, want 4 different ones", ids)
	}
	if !ids[id("one", k1)] || !ids["aa#1"] {
		t.Errorf("got %v, want the same each time, and no mark without a key", ids)
	}
}

func FuzzDecodeMACPrefixes(f *testing.F) {
	f.Add([]byte(upstreamMACPrefixes))
	f.Add([]byte("macPrefixes: [{macPrefix: {}}, ~, {macPrefix: aa, macPrefix: bb}]"))
	f.Add([]byte("[]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, problems := DecodeMACPrefixes("f", data, TokenKey{})
		if (p == nil) != HasErrors(problems) {
			t.Fatalf("database %v with problems %v", p, problems)
		}
		for _, e := range entriesOf(p) {
			mac := e.Prefix + strings.Repeat("0", 12-len(e.Prefix))
			if got, ok := p.Lookup(mac); !ok || len(got.Prefix) < len(e.Prefix) {
				t.Fatalf("%s is found as %+v", mac, got)
			}
		}
	})
}

// TestWhatIsNoBMCMayHaveAnyProtocolOfUpstreams: nothing is done with it, and one entry that is
// refused costs the whole database.
func TestWhatIsNoBMCMayHaveAnyProtocolOfUpstreams(t *testing.T) {
	for _, protocol := range []string{"Redfish", "IPMI", "SSH"} {
		data := "macPrefixes:\n- {macPrefix: aa, type: switch, port: 22, protocol: " + protocol + "}\n"
		if _, problems := DecodeMACPrefixes("f", []byte(data), TokenKey{}); len(problems) > 0 {
			t.Errorf("%s: %s", protocol, problemLines(problems))
		}
	}
}
