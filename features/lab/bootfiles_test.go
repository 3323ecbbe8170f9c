package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ingot/features/internal/rig"
	"ingot/model/must"
)

func writeFiles(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return dir
}

func TestASwitchFetchesItsFile(t *testing.T) {
	rig.Need(t, rig.ToolBusybox, rig.ToolCurl)
	t.Parallel()
	r := newRack(t)
	const name = "switches/leaf1.cfg"
	config := "hostname leaf1\n" + strings.Repeat("interface Ethernet1\n", 1000)
	dir := writeFiles(t, map[string]string{name: config, "undionly.kpxe": "no loader", "autoexec.ipxe": "no script", ".netrc": "x"})
	i := rig.NewIngot(t, r.server, rackNetwork+fmt.Sprintf("tftp: {listen: \":69\"}\nboot: {files: %q}\n", dir))
	mac := rig.MAC(0x51)
	i.Commit(t, "switch.yaml", strings.Replace(rig.Endpoint("leaf1", mac, "10.77.1.120"), "metadata: {name: leaf1}",
		fmt.Sprintf("metadata: {name: leaf1, annotations: {dhcp.ingot/tftp-server: %s, dhcp.ingot/boot-file: %s, dhcp.ingot/tftp-servers: %[1]s}}", rig.ServerAddress, name), 1))
	i.Start(t)
	leaf := r.host(t, false, mac)
	c := newClient(t, udhcpc, leaf, "-O", "150")
	c.start(t)
	got := c.mustAwait(t)
	if got.BootFile != name || got.TFTPServer != rig.ServerAddress {
		t.Fatalf("is told %q on %q", got.BootFile, got.TFTPServer)
	}
	tftp := func(name string) (string, error) {
		to := filepath.Join(t.TempDir(), "file")
		if out, err := leaf.Run(t, rig.Patience, "busybox", "tftp", "-g", "-r", name, "-l", to, got.TFTPServer); err != nil {
			return "", fmt.Errorf("%w: %s", err, out)
		}
		text, err := os.ReadFile(to)
		return string(text), err
	}
	if text, err := tftp(got.BootFile); err != nil || text != config {
		t.Errorf("by TFTP: %d bytes of %d: %v", len(text), len(config), err)
	}
	for _, name := range []string{"autoexec.ipxe", ".netrc", "switches/../.netrc", "../" + filepath.Base(dir) + "/" + name, "/etc/passwd"} {
		if text, err := tftp(name); err == nil {
			t.Errorf("%s is served by TFTP: %q", name, text)
		}
	}
	if text, err := tftp("undionly.kpxe"); err == nil && text == "no loader" {
		t.Error("the folder stands in for a boot loader")
	}
	to := filepath.Join(t.TempDir(), "half")
	url := rig.BootURL + "/files/" + name
	must.Do(t, os.WriteFile(to, []byte(config[:5000]), 0o600))
	if out, err := leaf.Run(t, rig.Patience, "curl", "-sSf", "-C", "-", "-o", to, url); err != nil {
		t.Fatalf("curl: %v: %s", err, out)
	}
	if text, err := os.ReadFile(to); err != nil || string(text) != config {
		t.Errorf("by HTTP, from the middle on: %d bytes of %d: %v", len(text), len(config), err)
	}
	if out, err := leaf.Run(t, rig.Patience, "curl", "-sSf", rig.BootURL+"/files/.netrc"); err == nil {
		t.Errorf("a hidden file is served by HTTP: %s", out)
	}
}
