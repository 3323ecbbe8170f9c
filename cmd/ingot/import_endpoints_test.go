package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model/must"
)

func importCSV(t *testing.T, text string, flags ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = execute(t.Context(), append([]string{"import", "endpoints", "-"}, flags...), &console{in: strings.NewReader(text), out: &out, err: &errs})
	return out.String(), errs.String(), code
}

func TestImportEndpointsWritesManifests(t *testing.T) {
	t.Chdir(t.TempDir())
	const text = "mac,ip,name\n1a1b.1c1d.1e01, 192.0.2.11, Blade-1\n# old\n\"02:00:00:00:00:02\",\"fd00::2\",\r\n"
	for _, want := range []string{"2 Endpoints written to", "; 2 unchanged."} {
		if out, errs, code := importCSV(t, text); code != exitFine || !strings.Contains(out, want) {
			t.Fatalf("exit code %d, want %q\n%s%s", code, want, out, errs)
		}
	}
	if out, errs, code := command(t, "validate", "endpoints"); code != exitFine {
		t.Errorf("validate: exit code %d\n%s%s", code, out, errs)
	}
	if got, want := filesBelow(t, "."), []string{"endpoints/blade-1.yaml", "endpoints/dhcp-fd00--2.yaml"}; !cmp.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestImportEndpointsReplacesOnlyWithOverwrite(t *testing.T) {
	t.Chdir(t.TempDir())
	const file, text = "endpoints/a.yaml", "02:00:00:00:00:01,192.0.2.1,a\n02:00:00:00:00:02,192.0.2.2,b\n"
	must.Do(t, writeNewFile(file, "# mine\n"))
	_, errs, code := importCSV(t, text)
	if code != exitFailed || !strings.Contains(errs, file) || !strings.Contains(errs, "--overwrite") || len(filesBelow(t, ".")) != 1 {
		t.Errorf("exit code %d, files %v, %s", code, filesBelow(t, "."), errs)
	}
	if out, errs, code := importCSV(t, text, "--overwrite"); code != exitFine || !strings.Contains(out, "2 Endpoints written") {
		t.Errorf("with --overwrite: exit code %d, %s%s", code, out, errs)
	}
}

func TestImportEndpointsReportsEachWrongLine(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"no line":             {"mac,ip,name\n", "standard input: no line with mac,ip,name"},
		"group MAC address":   {"01:00:00:00:00:02,192.0.2.2,b\n", `standard input:1: macAddress: found "01:00:00:00:00:02", want the address of one device`},
		"no MAC address":      {"mac,ip,name\n,192.0.2.2,b\n", "standard input:2: macAddress: is required"},
		"no IP address":       {"02:00:00:00:00:01,192.0.2.300,b\n", `standard input:1: ip: found "192.0.2.300", want an IP address`},
		"not a name":          {"02:00:00:00:00:01,192.0.2.3,a_b\n", `standard input:1: name: found "a_b", want at most`},
		"same IP address":     {"020000000001,fd00::1,a\n020000000002,fd00:0::1,b\n", `standard input:2: "fd00::1" is already in line 1`},
		"same name":           {"020000000001,192.0.2.1,a\n020000000002,192.0.2.2,A\n", `standard input:2: "a" is already in line 1`},
		"two columns":         {"020000000001,192.0.2.1\n", "standard input:1: wrong number of fields, want mac,ip,name"},
		"a line after others": {"x,y\nx,192.0.2.1,a\n", `standard input:2: macAddress: found "x", want a MAC address`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if _, errs, code := importCSV(t, tc.text); code != exitFailed || !strings.Contains(errs, tc.want) || len(filesBelow(t, ".")) != 0 {
				t.Errorf("exit code %d, want %q\n%s", code, tc.want, errs)
			}
		})
	}
	if _, errs, code := command(t, "import", "endpoints", filepath.Join(t.TempDir(), "missing.csv")); code != exitFailed || !strings.Contains(errs, "no such file") {
		t.Errorf("missing file: exit code %d, %s", code, errs)
	}
}

func TestDocumentedCommandsMakeTheCSV(t *testing.T) {
	doc := must.Get(os.ReadFile("../../docs/networks.md"))(t)
	_, section, _ := strings.Cut(string(doc), "## The day of the move")
	for name, tc := range map[string]struct {
		begins string
		files  map[string]string
		want   string
	}{
		"Kea": {"jq", map[string]string{
			"kea-dhcp4.conf": `{"Dhcp4": {"host-reservation-identifiers": ["hw-address"],
				"reservations": [{"hw-address": "1a:1b:1c:1d:1e:01", "ip-address": "192.0.2.11", "hostname": "blade-1"}],
				"subnet4": [{"id": 1, "reservations": [{"hw-address": "1a:1b:1c:1d:1e:02", "ip-address": "192.0.2.12"}]}]}}`,
			"leases4.json": `[{"result": 0, "arguments": {"leases": [
				{"hw-address": "1a:1b:1c:1d:1e:02", "ip-address": "192.0.2.12", "hostname": "other", "state": 0},
				{"hw-address": "1a:1b:1c:1d:1e:03", "ip-address": "192.0.2.103", "hostname": "node3", "state": 0},
				{"hw-address": "1a:1b:1c:1d:1e:04", "ip-address": "192.0.2.104", "hostname": "", "state": 2}]}}]`,
		}, `"1a:1b:1c:1d:1e:01","192.0.2.11","blade-1"` + "\n" + `"1a:1b:1c:1d:1e:02","192.0.2.12",` + "\n" + `"1a:1b:1c:1d:1e:03","192.0.2.103","node3"` + "\n"},
		"dnsmasq": {"awk '/^duid/", map[string]string{
			"dnsmasq.leases": "1795780000 02:00:00:00:00:01 192.0.2.100 node1 01:02:00:00:00:00:01\n0 02:00:00:00:00:02 192.0.2.101 * *\n" +
				"duid 00:01:00:01:2b:d2\n1795780000 16777217 fd00::100 node1 00:03:00:01:02:00\n",
		}, "02:00:00:00:00:01,192.0.2.100,node1\n02:00:00:00:00:02,192.0.2.101,\n"},
		"ISC dhcpd": {"awk -v", map[string]string{
			"dhcpd.conf": "subnet 192.0.2.0 netmask 255.255.255.0 { range 192.0.2.100 192.0.2.199; }\ngroup {\n  option host-name \"x\"; # host { no }\n" +
				"  host blade-1 { hardware ethernet 1a:1b:1c:1d:1e:01; fixed-address 192.0.2.11; }\n" +
				"  host blade-2 {\n    fixed-address 192.0.2.12;\n    hardware ethernet 1a:1b:1c:1d:1e:02;\n  }\n}\n",
		}, "1a:1b:1c:1d:1e:01,192.0.2.11,blade-1\n1a:1b:1c:1d:1e:02,192.0.2.12,blade-2\n"},
	} {
		t.Run(name, func(t *testing.T) {
			program, _, _ := strings.Cut(tc.begins, " ")
			if _, err := exec.LookPath(program); err != nil {
				t.Skipf("NOT RUN: %v: make setup", err)
			}
			_, script, found := strings.Cut(section, "\n    "+tc.begins)
			script, _, _ = strings.Cut(tc.begins+script, "\n\n")
			if !found {
				t.Fatalf("no command begins with %q", tc.begins)
			}
			t.Chdir(t.TempDir())
			for file, content := range tc.files {
				must.Do(t, writeNewFile(file, content))
			}
			if out, err := exec.CommandContext(t.Context(), "sh", "-c", script).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			got, err := os.ReadFile("leases.csv")
			if diff := cmp.Diff(tc.want, string(got)); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if out, errs, code := command(t, "import", "endpoints", "leases.csv"); code != exitFine {
				t.Errorf("exit code %d\n%s%s", code, out, errs)
			}
		})
	}
}
