package rig

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"ingot/bmc/sim/qemu"
)

// LoaderFolder is where Debian's package ipxe has what is served by TFTP.
const LoaderFolder = "/usr/lib/ipxe"

// NeedMachines is Need for tests that boot QEMU virtual machines from the network.
func NeedMachines(t testing.TB, tools ...Tool) {
	t.Helper()
	Need(t, append(tools, ToolQEMU, ToolRadvd)...)
	NeedFile(t, LoaderFolder+"/undionly.kpxe", "ipxe")
	NeedFile(t, "/usr/lib/ipxe/qemu/pxe-virtio.rom", "ipxe-qemu")
	NeedFile(t, qemu.DefaultOVMFDir+"/OVMF_CODE_4M.fd", "ovmf")
}

// KeepConsole shows the end of a machine's console if t fails, and keeps all of it
// where -artifacts asks for that.
func KeepConsole(t testing.TB, server SimulatedServer) {
	t.Helper()
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		data, err := os.ReadFile(server.Console)
		if err != nil {
			t.Logf("no console of %s: %v", server.Name, err)
			return
		}
		var o Output
		_, _ = o.Write(data)
		t.Logf("console of %s: %s", server.Name, o.Tail(40))
		_ = os.WriteFile(filepath.Join(t.ArtifactDir(), server.Name+"-console.log"), data, 0o644)
	})
}

// StartRadvd advertises the router of a link with a prefix: without, iPXE waits for one
// a quarter of a minute. It tells machines to get their addresses by DHCPv6 if they
// are managed.
func (n *Namespace) StartRadvd(t testing.TB, prefix string, managed bool) {
	t.Helper()
	n.Setting("net/ipv6/conf/all/forwarding", "1")
	config := filepath.Join(t.TempDir(), "radvd.conf")
	flag := "off"
	if managed {
		flag = "on"
	}
	text := fmt.Appendf(nil, "interface %s { AdvSendAdvert on; MinRtrAdvInterval 3; MaxRtrAdvInterval 4; AdvManagedFlag %s; AdvOtherConfigFlag off; prefix %s { AdvAutonomous off; }; };\n", BridgeName, flag, prefix)
	if err := os.WriteFile(config, text, 0o644); err != nil {
		t.Fatal(err)
	}
	n.Start(t, "radvd", "radvd", "-n", "-m", "stderr", "-C", config, "-p", config+".pid")
}
