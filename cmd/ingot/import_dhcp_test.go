package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheAddressesOfAnotherServerAreImported(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "endpoints")
	args := []string{"import", "dhcp", "--from", "kea", "--into", dir, "dhcpimport/testdata/kea/kea-dhcp4.conf"}
	out, errs, code := command(t, args...)
	for _, want := range []string{"7 Endpoints written to " + dir, ", of 7 reservations and 0 leases; 0 are there already.", "Left out (5):\n", "flex-id", "ingot validate"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	if code != exitFine {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	if out, errs, code := command(t, "validate", dir); code != exitFine {
		t.Errorf("validate: exit code %d\n%s%s", code, out, errs)
	}
	var done importedDHCP
	out, errs, code = command(t, append([]string{"-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &done); err != nil || code != exitFine || len(done.Unchanged) != 7 || len(done.Written) != 0 {
		t.Errorf("again: exit code %d, %v, %s%s", code, err, out, errs)
	}
	file := filepath.Join(dir, "port-a.yaml")
	if err := os.WriteFile(file, []byte("# mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs, code = command(t, args...); code != exitFailed || !strings.Contains(errs, file) || !strings.Contains(errs, "--overwrite") {
		t.Errorf("over what somebody wrote: exit code %d, %s", code, errs)
	}
	if data, _ := os.ReadFile(file); string(data) != "# mine\n" {
		t.Errorf("it was overwritten: %s", data)
	}
	if out, errs, code = command(t, append(args, "--overwrite")...); code != exitFine || !strings.Contains(out, "1 Endpoint written") {
		t.Errorf("with --overwrite: exit code %d, %s%s", code, out, errs)
	}
}

func TestNothingIsWrittenOfFilesWithoutAddresses(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "dnsmasq.conf")
	if err := os.WriteFile(empty, []byte("dhcp-host=fred,192.0.2.1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code := command(t, "import", "dhcp", "--from", "dnsmasq", "--into", filepath.Join(dir, "e"), empty)
	if code != exitFailed || !strings.Contains(errs, "nothing was written") || !strings.Contains(out, "dnsmasq.conf:1") {
		t.Errorf("exit code %d, %s%s", code, out, errs)
	}
	if _, _, code := command(t, "import", "dhcp", "--from", "kea", "--into", filepath.Join(dir, "e"), filepath.Join(dir, "missing")); code != exitFailed {
		t.Errorf("a file that is missing: exit code %d", code)
	}
}

// TestTheDayOfTheMove runs the commands of the documentation, on the files of testdata in the place of
// those of the old server.
func TestTheDayOfTheMove(t *testing.T) {
	doc, err := os.ReadFile("../../docs/networks.md")
	if err != nil {
		t.Fatal(err)
	}
	data, err := filepath.Abs("dhcpimport/testdata")
	if err != nil {
		t.Fatal(err)
	}
	places := strings.NewReplacer(
		"/etc/kea/", data+"/kea/", "/var/lib/kea/kea-leases4.csv*", data+"/kea/kea-leases4.csv "+data+"/kea/kea-leases4.csv.2",
		"/etc/dnsmasq.conf", data+"/dnsmasq/dnsmasq.conf", "/etc/dnsmasq.d", data+"/dnsmasq/conf.d", "/var/lib/misc/", data+"/dnsmasq/",
		" leases4.json", " "+data+"/kea/leases4.json", "/etc/dhcp/", data+"/dhcpd/", "/var/lib/dhcp/", data+"/dhcpd/",
	)
	t.Chdir(t.TempDir())
	_, day, _ := strings.Cut(string(doc), "## The day of the move")
	imported := 0
	for line := range strings.Lines(day) {
		words := strings.Fields(places.Replace(line))
		if !strings.HasPrefix(line, "    ") || len(words) < 2 || words[0] != "ingot" || words[1] == "leases" {
			continue
		}
		if words[1] == "import" && imported < 5 { // of another server than the one before
			imported++
			if err := os.RemoveAll("endpoints"); err != nil {
				t.Fatal(err)
			}
		}
		if out, errs, code := command(t, words[1:]...); code != exitFine {
			t.Errorf("%s: exit code %d\n%s%s", strings.TrimSpace(line), code, out, errs)
		}
	}
	if imported != 5 {
		t.Errorf("%d imports are documented, want one of each server, one of Kea's answer, and one on the day", imported)
	}
}
