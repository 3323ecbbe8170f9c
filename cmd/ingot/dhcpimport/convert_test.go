package dhcpimport

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/model/testtool"
)

var updateGolden = flag.Bool("update", false, "write the golden files anew")

// now is when the leases of testdata are looked at.
var now = time.Date(2026, 11, 26, 16, 0, 0, 0, time.UTC)

// sources are the files of each server in testdata.
var sources = map[Server][]string{
	Kea:     {"kea/kea-dhcp4.conf", "kea/kea-leases4.csv", "kea/kea-leases4.csv.2", "kea/kea-leases6.csv"},
	Dnsmasq: {"dnsmasq/dnsmasq.conf", "dnsmasq/conf.d", "dnsmasq/dnsmasq.leases"},
	Dhcpd:   {"dhcpd/dhcpd.conf", "dhcpd/more.conf", "dhcpd/dhcpd.leases"},
}

func TestConvert(t *testing.T) {
	for from, files := range sources {
		t.Run(string(from), func(t *testing.T) {
			t.Chdir("testdata")
			r, err := Convert(from, files, nil, now)
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			fmt.Fprintf(&b, "%d reserved, %d leased\n", r.Reserved, r.Leased)
			for _, l := range r.LeftOut {
				fmt.Fprintf(&b, "%s: %s: %s\n", l.Where, l.What, l.Why)
			}
			for _, name := range slices.Sorted(maps.Keys(r.Files)) {
				fmt.Fprintf(&b, "--- %s\n%s", name, r.Files[name])
			}
			golden := string(from) + ".golden"
			if *updateGolden {
				if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), b.String()); diff != "" {
				t.Errorf("(-want +got; -update writes it anew):\n%s", diff)
			}
			valid(t, r)
		})
	}
}

// TestADeviceKeepsItsManifest: what is imported again neither doubles Endpoints nor writes over what
// somebody made of one.
func TestADeviceKeepsItsManifest(t *testing.T) {
	t.Chdir("testdata")
	endpoint := func(file, name, mac, ip string, annotations map[string]string) *model.Endpoint {
		return &model.Endpoint{
			Meta: model.Meta{Name: name, Source: file + ":1", Annotations: annotations, Labels: map[string]string{"rack": "4"}},
			Spec: model.EndpointSpec{MACAddress: mac, IP: ip},
		}
	}
	there := []model.Object{
		endpoint("endpoints/own-name.yaml", "own-name", "02:00:00:00:00:01", "192.0.2.100", nil),
		endpoint("endpoints/moved.yaml", "moved", "02:00:00:00:00:02", "192.0.2.150", nil),
		endpoint("all.yaml", "elsewhere", "02:00:00:00:00:06", "192.0.2.151", nil),
		endpoint("endpoints/port.yaml", "port", "", "192.0.2.13", map[string]string{model.AnnotationCircuitID: "Eth1/7"}),
		endpoint("endpoints/port-a.yaml", "port-a", "02:00:00:00:00:55", "192.0.2.155", nil),
	}
	r, err := Convert(Kea, sources[Kea], there, now)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(r.Same)
	if diff := cmp.Diff([]string{"own-name", "port"}, r.Same); diff != "" {
		t.Errorf("same (-want +got):\n%s", diff)
	}
	if data := r.Files["moved.yaml"]; !strings.Contains(data, "ip: 192.0.2.101") {
		t.Errorf("a device that moved: %s", data)
	}
	if r.Files["port-a.yaml"] != "" || r.Files["port-a-192-0-2-14.yaml"] == "" {
		t.Errorf("a name that another has is taken: %v", slices.Sorted(maps.Keys(r.Files)))
	}
	want := LeftOut{"kea/kea-leases4.csv:11", "192.0.2.106", "Endpoint elsewhere in all.yaml is for this device or address, and says otherwise: change it there"}
	if !slices.Contains(r.LeftOut, want) {
		t.Errorf("left out: %v", r.LeftOut)
	}
}

// TestNothingIsLostInSilence: of two devices that changed places, and of a file with more in it than
// one Endpoint, somebody has to decide.
func TestNothingIsLostInSilence(t *testing.T) {
	file := filepath.Join(t.TempDir(), "dnsmasq.conf")
	text := "dhcp-host=02:00:00:00:00:01,192.0.2.2\ndhcp-host=02:00:00:00:00:02,192.0.2.1\ndhcp-host=02:00:00:00:00:03,192.0.2.33\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	there := []model.Object{
		&model.Endpoint{Meta: model.Meta{Name: "a", Source: "endpoints/a.yaml:1"}, Spec: model.EndpointSpec{MACAddress: "02:00:00:00:00:01", IP: "192.0.2.1"}},
		&model.Endpoint{Meta: model.Meta{Name: "b", Source: "endpoints/b.yaml:1"}, Spec: model.EndpointSpec{MACAddress: "02:00:00:00:00:03", IP: "192.0.2.3"}},
		&model.BMC{Meta: model.Meta{Name: "b", Source: "endpoints/b.yaml:8"}},
	}
	r, err := Convert(Dnsmasq, []string{file}, there, now)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Files) != 1 || len(r.LeftOut) != 2 || r.Files["a.yaml"] == "" {
		t.Errorf("written: %v, left out: %v", slices.Sorted(maps.Keys(r.Files)), r.LeftOut)
	}
}

// valid checks that the decoder takes all manifests, beside one another.
func valid(t *testing.T, r *Result) {
	t.Helper()
	d := model.NewDesired()
	for name, data := range r.Files {
		objects, problems := model.Decode(name, []byte(data), model.DecodeOptions{})
		if len(problems) > 0 {
			t.Errorf("%v", problems)
			continue
		}
		e := objects[0].(*model.Endpoint)
		if d.Endpoints[e.Name] != nil || name != e.Name+".yaml" {
			t.Errorf("%s is another's name, or %s no file for it", e.Name, name)
		}
		d.Endpoints[e.Name] = e
	}
	for _, p := range model.CrossCheck(d) {
		t.Error(p)
	}
}

// TestTheServersTakeTheirConfigurations: what is imported in the tests is what the servers read.
func TestTheServersTakeTheirConfigurations(t *testing.T) {
	for name, command := range map[string][]string{
		"Kea":     {"kea-dhcp4", "-t", "testdata/kea/kea-dhcp4.conf"},
		"dnsmasq": {"dnsmasq", "--test", "--conf-file=testdata/dnsmasq/dnsmasq.conf"},
		"dhcpd":   {"dhcpd", "-t", "-cf", "testdata/dhcpd/dhcpd.conf"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), testtool.Path(t, command[0]), command[1:]...)
			cmd.Env = append(os.Environ(), "KEA_LOCKFILE_DIR="+t.TempDir(), "KEA_PIDFILE_DIR="+t.TempDir())
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// TestConvertOneFile: a case is a file, the Endpoints made of it, and what is left out, with why.
func TestConvertOneFile(t *testing.T) {
	for name, tc := range map[string]struct {
		from          Server
		text          string
		want, leftOut []string
	}{
		"Kea's answer to reservation-get-all": {
			from: Kea,
			text: `[{"arguments": {"count": 2, "hosts": [
				{"hostname": "", "hw-address": "08:08:08:08:08:42", "ip-address": "192.0.2.42", "option-data": [], "subnet-id": 1},
				{"duid": "00:03:00:01:08:08", "ip-addresses": ["2001:db8::42"], "prefixes": [], "subnet-id": 2}]}, "result": 0}]`,
			want: []string{"192.0.2.42 08:08:08:08:08:42", "2001:db8::42 000300010808"},
		},
		"an option of Kea by its name and its number": {
			from: Kea,
			text: `{"hosts": [{"hostname": "one", "hw-address": "08:08:08:08:08:42", "ip-address": "192.0.2.42",
				"option-data": [{"code": 12, "data": "two"}, {"code": 42, "data": "192.0.2.3"}, {"name": "ntp-servers", "data": "192.0.2.4"}]}]}`,
			want:    []string{"192.0.2.42 08:08:08:08:08:42"},
			leftOut: []string{"option 12: it is set by host-name, too", "option 42: it is set by ntp-servers, too"},
		},
		"Kea's answer without the list around it": {
			from: Kea,
			text: `{"arguments": {"hosts": [{"hw-address": "08:08:08:08:08:42", "ip-address": "192.0.2.42"}]}, "result": 0}`,
			want: []string{"192.0.2.42 08:08:08:08:08:42"},
		},
		"Kea's answer to lease4-get-all": {
			from: Kea,
			text: `[{ "arguments": { "leases": [ { "client-id": "01:02:00:00:00:00:01", "cltt": 4102440800, "fqdn-fwd": false, "fqdn-rev": false, "hostname": "old", "hw-address": "02:00:00:00:00:01", "ip-address": "192.0.2.100", "state": 0, "subnet-id": 1, "valid-lft": 4000 }, { "cltt": 0, "fqdn-fwd": false, "fqdn-rev": false, "hostname": "switch,1", "hw-address": "02:00:00:00:00:02", "ip-address": "192.0.2.101", "state": 0, "subnet-id": 1, "valid-lft": 4294967295 }, { "cltt": 4102440800, "fqdn-fwd": false, "fqdn-rev": false, "hostname": "", "hw-address": "02:00:00:00:00:03", "ip-address": "192.0.2.102", "state": 1, "subnet-id": 1, "valid-lft": 4000 }, { "cltt": 4102440800, "fqdn-fwd": false, "fqdn-rev": false, "hostname": "", "hw-address": "02:00:00:00:00:04", "ip-address": "192.0.2.103", "state": 2, "subnet-id": 1, "valid-lft": 4000 } ] }, "result": 0, "text": "4 IPv4 lease(s) found." }]`,
			want: []string{"192.0.2.100 02:00:00:00:00:01", "192.0.2.101 02:00:00:00:00:02"},
			leftOut: []string{
				"f:1, leases[2]: lease of 192.0.2.102: it is declined: another device was found to use it",
				"f:1, leases[3]: lease of 192.0.2.103: the lease has ended",
			},
		},
		"pages of Kea's answers to lease4-get-page, the last of which is empty": {
			from: Kea,
			text: `[{"arguments": {"count": 1, "leases": [{"cltt": 1795690000, "hw-address": "02:00:00:00:00:01", "ip-address": "192.0.2.100", "state": 0, "valid-lft": 9000}]}, "result": 0},
{"arguments": {"count": 2, "leases": [{"cltt": 1795700000, "hw-address": "02:00:00:00:00:02", "ip-address": "192.0.2.101", "state": 0, "valid-lft": 0},
  {"cltt": 1795700000, "hw-address": "02:00:00:00:00:03", "ip-address": "192.0.2.102", "state": 4, "valid-lft": 90000}]}, "result": 0},
{"arguments": {"count": 0, "leases": []}, "result": 3, "text": "0 IPv4 lease(s) found."}]`,
			leftOut: []string{
				`f:4: answer: Kea found nothing: "0 IPv4 lease(s) found."`,
				"f:1, leases[0]: lease of 192.0.2.100: the lease ended 2026-11-26T13:16:40Z",
				"f:2, leases[0]: lease of 192.0.2.101: the lease was released",
				"f:3, leases[1]: lease of 192.0.2.102: it is not active: its state is 4",
			},
		},
		"Kea's answer to lease6-get-all, without the list around it": {
			from: Kea,
			text: `{ "arguments": { "leases": [ { "cltt": 4102440800, "duid": "00:03:00:01:02:00:00:00:00:01", "hostname": "node1.example.com", "iaid": 1, "ip-address": "fd00::100", "preferred-lft": 3000, "state": 0, "subnet-id": 1, "type": "IA_NA", "valid-lft": 4000 }, { "cltt": 4102440800, "duid": "00:03:00:01:02:00:00:00:00:01", "hostname": "", "iaid": 1, "ip-address": "fd00:1::", "preferred-lft": 3000, "prefix-len": 64, "state": 0, "subnet-id": 1, "type": "IA_PD", "valid-lft": 4000 } ] }, "result": 0, "text": "2 IPv6 lease(s) found." }`,
			want: []string{"fd00::100 00030001020000000001"},
			leftOut: []string{
				"f:1, leases[1]: lease of fd00:1::: prefixes are not reserved for devices: Ingot delegates from dhcp[].subnets[].delegate",
			},
		},
		"leases in an answer of Kea that are wrong": {
			from: Kea,
			text: `{"arguments": {"leases": ["x", {"ip-address": "192.0.2.300"}, {"ip-address": "192.0.2.1", "valid-lft": 4000}, {"ip-address": "192.0.2.2", "cltt": 1, "valid-lft": -1}]}, "result": 0}`,
			leftOut: []string{
				`f:1, leases[0]: lease of "": it is not a device address`,
				`f:1, leases[1]: lease of "192.0.2.300": it is not a device address`,
				`f:1, leases[2]: lease of 192.0.2.1: it has no end time`,
				`f:1, leases[3]: lease of 192.0.2.2: it has no end time`,
			},
		},
		"Kea's answer to config-get": {
			from: Kea,
			text: `[{"arguments": {"Dhcp4": {"reservations": [{"hw-address": "08:08:08:08:08:42", "ip-address": "192.0.2.42"}]}, "hash": "A1"}, "result": 0}]`,
			want: []string{"192.0.2.42 08:08:08:08:08:42"},
		},
		"a line of a dhcp-hostsfile, in any order": {
			from: Dnsmasq,
			text: "fred,02:00:00:00:00:ee,10.40.0.81\n10.40.0.82,02:00:00:00:00:ed\n[fd00::83],id:00:03:00:01:ab\nid:a=b,10.40.0.84\n",
			want: []string{"10.40.0.81 02:00:00:00:00:ee", "10.40.0.82 02:00:00:00:00:ed", "10.40.0.84 613d62", "fd00::83 00030001ab"},
		},
		"an address to which dnsmasq adds the prefix of its dhcp-range": {
			from:    Dnsmasq,
			text:    "dhcp-host=10:20:30:40:50:6d,[::6d]\n",
			leftOut: []string{"dhcp-host=10:20:30:40:50:6d,[::6d]: the address is incomplete: write all of it"},
		},
		"of two leases of a card the one that ends last counts": {
			from: Dnsmasq,
			text: "1795780000 02:00:00:00:00:01 192.0.2.10 * 01:02\n1795790000 02:00:00:00:00:01 192.0.2.11 * 01:03\n1795780000 02:00:00:00:00:01 192.0.2.9 * *\n",
			want: []string{"192.0.2.11 02:00:00:00:00:01"},
			leftOut: []string{
				"lease of 192.0.2.9: its device has 192.0.2.11 by f:2, and an Endpoint has one address",
				"lease of 192.0.2.10: its device has 192.0.2.11 by f:2, and an Endpoint has one address",
			},
		},
		"of two leases of a card the one that never ends counts": {
			from:    Dhcpd,
			text:    "lease 192.0.2.10 { ends 5 2100/01/01 00:00:00; hardware ethernet 2:0:0:0:0:1; }\nlease 192.0.2.11 { ends never; hardware ethernet 2:0:0:0:0:1; }\n",
			want:    []string{"192.0.2.11 02:00:00:00:00:01"},
			leftOut: []string{"lease of 192.0.2.10: its device has 192.0.2.11 by f:2, and an Endpoint has one address"},
		},
		"of two leases of a card in Kea the one that never ends counts": {
			from:    Kea,
			text:    "address,hwaddr,client_id,valid_lifetime,expire,state\n192.0.2.10,02:00:00:00:00:01,01:02,4000,1795790000,0\n192.0.2.11,02:00:00:00:00:01,01:03,4294967295,1,0\n",
			want:    []string{"192.0.2.11 02:00:00:00:00:01"},
			leftOut: []string{"lease of 192.0.2.10: its device has 192.0.2.11 by f:3, and an Endpoint has one address"},
		},
		"a lease that Kea is just writing": {
			from: Kea,
			text: "address,hwaddr,client_id,valid_lifetime,expire,state\n192.0.2.10,02:00:00:00:00:01,01:02,4000,1795790000,0\n192.0.2.10,02:00:00:00:00:01,01:02,4000,17957",
			want: []string{"192.0.2.10 02:00:00:00:00:01"},
			leftOut: []string{
				"192.0.2.10,02:00:00:00:00:01,01:02,4000,17957: it is cut off: the server was writing it, or the copy is not whole; import again",
			},
		},
		"the first line of a lease file that Kea is just writing": {
			from: Kea, text: "address,hwaddr,cl",
			leftOut: []string{"address,hwaddr,cl: it is cut off: the server was writing it, or the copy is not whole; import again"},
		},
		"a lease that dnsmasq is just writing": {
			from: Dnsmasq, text: "1795790000 02:00:00:00:00:01 192.0.2.10 * 01:02\n1795790000 02:00:00:00:00:02 192.0.2.11 * 01:02:00:00",
			want: []string{"192.0.2.10 02:00:00:00:00:01"},
			leftOut: []string{
				"1795790000 02:00:00:00:00:02 192.0.2.11 * 01:02:00:00: it is cut off: the server was writing it, or the copy is not whole; import again",
			},
		},
		"a lease that dhcpd is just writing": {
			from:    Dhcpd,
			text:    "lease 192.0.2.10 { ends never; hardware ethernet 2:0:0:0:0:1; }\nlease 192.0.2.11 {\n  ends never; hardware ethernet 2:0:0",
			want:    []string{"192.0.2.10 02:00:00:00:00:01"},
			leftOut: []string{"lease 192.0.2.11: it is cut off: the server was writing it, or the copy is not whole; import again"},
		},
		"a lease of DHCPv6 that dhcpd is just writing": {
			from: Dhcpd,
			text: "lease 192.0.2.10 { ends never; hardware ethernet 2:0:0:0:0:1; }\n" +
				`ia-na 01:00:00:02:00:03:00:01:09:09 { iaaddr 3ffe:501:ffff:101::9 { binding state active; uid "\001`,
			want: []string{"192.0.2.10 02:00:00:00:00:01"},
			leftOut: []string{
				"ia-na 01:00:00:02:00:03:00:01:09:09: it is cut off: the server was writing it, or the copy is not whole; import again",
			},
		},
		"leases of DHCPv6 of dhcpd": {
			from: Dhcpd,
			text: `ia-na "\001\000\000\002\000\003\000\001\010\010" {
  cltt 4 2026/11/26 10:00:00;
  iaaddr 3ffe:501:ffff:101::5 {
    binding state active;
    preferred-life 375;
    max-life 600;
    ends 4 2100/01/01 00:00:00;
  }
  iaaddr 3ffe:501:ffff:101::6 { binding state active; ends 4 2026/11/26 10:00:00; }
  iaaddr 3ffe:501:ffff:101::7 { binding state expired; ends 4 2100/01/01 00:00:00; }
}
ia-na "\001\000\000\002" { iaaddr 3ffe:501:ffff:101::8 { binding state active; ends never; } }
ia-na 01:00:00:02:00:03:00:01:09:09 { iaaddr 3ffe:501:ffff:101::9 { binding state active; ends never; } }
ia-ta "\001\000\000\002\000\003\000\001\010\010" { iaaddr 3ffe:501:ffff:101::a { binding state active; ends never; } }
ia-pd "\001\000\000\002\000\003\000\001\010\010" { iaprefix 2001:db8:1::/56 { binding state active; ends never; } }
ia-pd "\001\000\000\002\000\003\000\001\010\010" { iaprefix 2001:db8:1::/56 { binding state active; ends never; } }
`,
			want: []string{"3ffe:501:ffff:101::5 000300010808", "3ffe:501:ffff:101::9 000300010909"},
			leftOut: []string{
				"ia-na: its identifier is not an IAID of 4 bytes with a DUID behind it",
				"lease of 3ffe:501:ffff:101::6: the lease ended 2026-11-26T10:00:00Z",
				"lease of 2001:db8:1::: prefixes are not reserved for devices: Ingot delegates from dhcp[].subnets[].delegate",
				"lease of 3ffe:501:ffff:101::7: the lease is expired",
				"lease of 3ffe:501:ffff:101::a: temporary addresses are not reserved for devices",
			},
		},
		"a prefix that dhcpd reserves": {
			from: Dhcpd,
			text: "host a { host-identifier option dhcp6.client-id 0:3:0:1:a:b; fixed-prefix6 2001:db8:1::/56; }\n" +
				"host b { host-identifier option dhcp6.client-id 0:3:0:1:a:c; fixed-prefix6 2001:db8:2::/56; fixed-address6 2001:db8::b; }\n",
			want: []string{"2001:db8::b 000300010a0c"},
			leftOut: []string{
				"host a: prefixes are not reserved for devices: Ingot delegates from dhcp[].subnets[].delegate",
				"host b: prefixes are not reserved for devices: Ingot delegates from dhcp[].subnets[].delegate",
			},
		},
		"lines of dnsmasq that reserve nothing": {
			from: Dnsmasq,
			text: "domain-needed\nlog-dhcp # all\naddress = /a.example/192.0.2.1\ntag:red,02:00:00:00:00:ee,10.40.0.81\n02:00:00:00:00:ef\n192.0.2.1 fred\n",
			leftOut: []string{
				"dhcp-host=tag:red,02:00:00:00:00:ee,10.40.0.81: it applies only to clients with a tag, which Ingot does not support",
				"02:00:00:00:00:ef: it is neither an option nor a reservation of an address",
				"192.0.2.1 fred: it is neither an option nor a reservation of an address",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reader{now: now, file: "f"}
			if err := parsers[tc.from](r, []byte(tc.text)); err != nil {
				t.Fatal(err)
			}
			result, err := newConverter(r).convert()
			if err != nil {
				t.Fatal(err)
			}
			valid(t, result)
			if diff := cmp.Diff(tc.want, endpoints(t, result)); diff != "" {
				t.Errorf("Endpoints (-want +got):\n%s", diff)
			}
			var leftOut []string
			for _, l := range result.LeftOut {
				said := l.What + ": " + l.Why
				if strings.Contains(tc.text, `"result"`) { // the position counts, where all stands in one line
					said = l.Where + ": " + said
				}
				leftOut = append(leftOut, said)
			}
			if diff := cmp.Diff(tc.leftOut, leftOut); diff != "" {
				t.Errorf("left out (-want +got):\n%s", diff)
			}
		})
	}
}

// endpoints are the addresses of manifests, each with the MAC address or the client identifier it is for.
func endpoints(t *testing.T, r *Result) (all []string) {
	t.Helper()
	for name, data := range r.Files {
		objects, problems := model.Decode(name, []byte(data), model.DecodeOptions{})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		e := objects[0].(*model.Endpoint)
		all = append(all, e.Spec.IP+" "+e.Spec.MACAddress+e.ClientID())
	}
	slices.Sort(all)
	return all
}

// TestKeaRewritesItsLeases: while Kea cleans up its lease file, what it cleans up is in .2, and half of it in
// .output already; what it writes meanwhile is in the file itself.
func TestKeaRewritesItsLeases(t *testing.T) {
	t.Chdir(t.TempDir())
	const name = "kea-leases4.csv"
	const head = "address,hwaddr,client_id,valid_lifetime,expire,state\n"
	old, fresh := head+"192.0.2.10,02:00:00:00:00:01,,4000,1795790000,0\n", head+"192.0.2.10,02:00:00:00:00:02,,4000,1795791000,0\n"
	for path, text := range map[string]string{name: fresh, name + ".2": old, name + ".output": old, name + ".pid": "4711\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(name + "*") // as docs/networks.md has it
	if err != nil {
		t.Fatal(err)
	}
	r, err := Convert(Kea, files, nil, now)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := endpoints(t, r), []string{"192.0.2.10 02:00:00:00:00:02"}; !slices.Equal(got, want) || len(r.LeftOut) != 2 {
		t.Errorf("Endpoints %q, want %q; left out: %v", got, want, r.LeftOut)
	}
}

func TestWhatCannotBeRead(t *testing.T) {
	deep := strings.Repeat("[", maxDepth+1)
	for name, tc := range map[string]struct {
		from       Server
		text, want string
	}{
		"no JSON":                       {Kea, `{"Dhcp4": *x}`, "line 1: found '*' outside a string"},
		"nothing of Kea":                {Kea, `{"a": 1}`, "it has neither Dhcp4 nor Dhcp6"},
		"an answer that refuses":        {Kea, "[{\"result\": 0, \"arguments\": {\"leases\": []}},\n{\"result\": 2, \"text\": \"'lease4-get-all' command not supported.\"}]", `line 2: it is an answer with result 2: "'lease4-get-all' command not supported."`},
		"an answer with neither":        {Kea, `[{"arguments": {"subnets": []}, "result": 0}]`, "it has neither Dhcp4 nor Dhcp6"},
		"an empty list":                 {Kea, `[]`, "it has neither Dhcp4 nor Dhcp6"},
		"an include of Kea":             {Kea, `{"Dhcp4": <?include "/etc/shadow"?>}`, "it includes another file, which is not opened"},
		"a comment without end":         {Kea, "{ /* ", "unterminated comment"},
		"JSON that is nested too deep":  {Kea, deep, "blocks are nested more than 64 deep"},
		"a block without end":           {Dhcpd, "host a {\n", "line 2: unterminated block or string"},
		"a host in which the file ends": {Dhcpd, "lease 192.0.2.10 { ends never; }\nhost a { fixed-address \"1", "line 2: unterminated block or string"},
		"a brace too many":              {Dhcpd, "}\n", "line 1: unmatched closing brace"},
		"a string without end":          {Dhcpd, "option a \"b\n", "line 1: a string does not end in its line"},
		"blocks that are too deep":      {Dhcpd, strings.Repeat("group {", maxDepth+1), "blocks are nested more than 64 deep"},
		"no text":                       {Dnsmasq, "a\x00b", "it is not a text file"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f")
			if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Convert(tc.from, []string{path}, nil, now); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func FuzzKea(f *testing.F)     { fuzz(f, Kea) }
func FuzzDnsmasq(f *testing.F) { fuzz(f, Dnsmasq) }
func FuzzDhcpd(f *testing.F)   { fuzz(f, Dhcpd) }

// fuzz checks that of whatever file the decoder takes what is made of it.
func fuzz(f *testing.F, from Server) {
	for _, name := range sources[from] {
		if data, err := os.ReadFile(filepath.Join("testdata", name)); err == nil {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := &reader{now: now, file: "f"}
		if parsers[from](r, data) != nil {
			return
		}
		result, err := newConverter(r).convert()
		if err != nil {
			return
		}
		valid(t, result)
	})
}
