package model

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model/must"
)

func networks(t *testing.T, texts ...string) BMCNetworks {
	t.Helper()
	var all BMCNetworks
	for _, text := range texts {
		var n BMCNetwork
		must.Do(t, n.UnmarshalText([]byte(text)))
		all = append(all, n)
	}
	return all
}

func TestAPasswordGoesOnlyWhereBMCsAreSaidToBe(t *testing.T) {
	plain := BMCNetworks{{Prefix: netip.MustParsePrefix("0.0.0.0/0"), Plain: true}, {Prefix: netip.MustParsePrefix("10.0.0.0/8")}}
	for name, c := range map[string]struct {
		networks   BMCNetworks
		at, scheme string
		want       string
	}{
		"without networks BMCs are anywhere": {at: "192.0.2.7", scheme: "https"},
		"without networks IPv6 is as good":   {at: "2001:db8::7", scheme: "https"},
		"without networks http is refused": {
			at: "192.0.2.7", scheme: "http",
			want: `http shows the password to everybody on the way to 192.0.2.7: set scheme https, ` +
				`or write bmc.networks: [0.0.0.0/0, 0::/0, {prefix: 192.0.2.7/32, plain: true}] in Ingot's configuration`,
		},
		"this machine is to be named": {
			at: "127.0.0.1", scheme: "https",
			want: `127.0.0.1 is this machine itself, so nothing is sent there unless it is named: ` +
				`correct the address, or write bmc.networks: [0.0.0.0/0, 0::/0, 127.0.0.1/32] in Ingot's configuration`,
		},
		"this machine in IPv6's spelling": {
			at: "::ffff:127.0.0.1", scheme: "https",
			want: `127.0.0.1 is this machine itself, so nothing is sent there unless it is named: ` +
				`correct the address, or write bmc.networks: [0.0.0.0/0, 0::/0, 127.0.0.1/32] in Ingot's configuration`,
		},
		"169.254.169.254 is to be named": {
			at: "169.254.169.254", scheme: "https",
			want: `169.254.169.254 is a link-local address, so nothing is sent there unless it is named: correct the address, or write ` +
				`bmc.networks: [0.0.0.0/0, 0::/0, 169.254.169.254/32] in Ingot's configuration`,
		},
		"a metadata address is to be named": {
			at: "fd00:ec2::254", scheme: "https",
			want: `fd00:ec2::254 is a metadata address of clouds, so nothing is sent there unless it is named: ` +
				`correct the address, or write bmc.networks: [0.0.0.0/0, 0::/0, fd00:ec2::254/128] in Ingot's configuration`,
		},
		"nobody has the unspecified address": {
			networks: networks(t, "0.0.0.0/0"), at: "0.0.0.0", scheme: "https",
			want: "0.0.0.0 is nobody's address: correct it",
		},
		"a network lets its addresses in": {networks: networks(t, "10.0.0.0/16"), at: "10.0.255.1", scheme: "https"},
		"a network lets no others in": {
			networks: networks(t, "10.0.0.0/16"), at: "10.1.0.1", scheme: "https",
			want: `10.1.0.1 is in none of bmc.networks, so nothing is sent there: ` +
				`correct the address, or add 10.1.0.1/32 to bmc.networks in Ingot's configuration`,
		},
		"a large network does not name us": {
			networks: networks(t, "0.0.0.0/0"), at: "127.0.0.1", scheme: "https",
			want: `127.0.0.1 is in none of bmc.networks, so nothing is sent there: ` +
				`correct the address, or add 127.0.0.1/32 to bmc.networks in Ingot's configuration`,
		},
		"loopback that is named": {networks: networks(t, "127.0.0.0/8"), at: "127.0.0.1", scheme: "https"},
		"plain lets http in":     {networks: plain, at: "192.0.2.7", scheme: "http"},
		"the smaller network says what holds": {
			networks: plain, at: "10.0.0.1", scheme: "http",
			want: `http shows the password to everybody on the way to 10.0.0.1: set scheme https, ` +
				`or add {prefix: 10.0.0.1/32, plain: true} to bmc.networks in Ingot's configuration`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := c.networks.Refuse(netip.MustParseAddr(c.at), c.scheme); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestANetworkIsWrittenAsItsPrefixOrWithMore(t *testing.T) {
	var got struct {
		Networks BMCNetworks `json:"networks"`
	}
	problems := DecodeStrict("f", []byte("networks: [10.0.0.0/16, {prefix: 192.0.2.0/24, plain: true}, fd00::/64]"), &got)
	want := append(networks(t, "10.0.0.0/16"), BMCNetwork{netip.MustParsePrefix("192.0.2.0/24"), true},
		BMCNetwork{Prefix: netip.MustParsePrefix("fd00::/64")})
	if len(problems) > 0 || cmp.Diff(want, got.Networks, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })) != "" {
		t.Errorf("got %v, %v", got.Networks, problems)
	}
	for text, want := range map[string]string{
		"networks: [10.0.0.1/16]": `f:1:12: networks[0]: found "10.0.0.1/16", which has bits set behind its length: ` +
			`write 10.0.0.0/16`,
		"networks: [10.0.0.1]":                `f:1:12: networks[0]: found "10.0.0.1", want a network such as 10.0.0.0/16 or fd00:1::/64`,
		"networks: [\"::ffff:10.0.0.0/112\"]": `f:1:12: networks[0]: an IPv4 network is written as one, such as 10.0.0.0/16`,
		"networks: [{prefx: 10.0.0.0/16}]":    `f:1:13: networks[0].prefx: unknown field, did you mean "prefix"?`,
	} {
		problems := DecodeStrict("f", []byte(text), &got)
		if len(problems) != 1 || problems[0].String() != want {
			t.Errorf("%s: got %v, want %s", text, problems, want)
		}
	}
}

func TestTheLineThatIsToldCanBeWritten(t *testing.T) {
	for _, at := range []string{"127.0.0.1", "::1"} {
		addr := netip.MustParseAddr(at)
		line := BMCNetworks(nil).line(addr, "http")
		line = strings.TrimSuffix(strings.TrimPrefix(line, "write bmc."), " in Ingot's configuration")
		var got struct {
			Networks BMCNetworks `json:"networks"`
		}
		if problems := DecodeStrict("f", []byte(line), &got); len(problems) > 0 {
			t.Errorf("%s: %v", line, problems)
		}
		if err := got.Networks.Refuse(addr, "http"); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}
