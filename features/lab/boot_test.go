package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ingot/bmc/sim"
	"ingot/bootsvc/ocitest"
	"ingot/cmd/probeimage/image"
)

// bootPatience is how long a machine may take from power to Available.
const bootPatience = 120 * time.Second

// machines bounds how many machines run at once: each keeps a processor busy.
var machines = make(chan struct{}, 2)

// probeImage is the image that servers are discovered with, as users make it.
var probeImage = sync.OnceValues(func() (image.Result, error) {
	return image.Build(sweptContext, image.Options{Out: filepath.Join(scratch, "probe"), Flavour: image.FlavourCloud})
})

// TestMachinesAreDiscovered lets machines with real firmware boot from the
// network, through what Ingot tells them by DHCP, until they are Available.
func TestMachinesAreDiscovered(t *testing.T) {
	need(t, toolQEMU, toolRadvd, toolNft)
	needFile(t, loaderFolder+"/undionly.kpxe", "ipxe")
	needFile(t, "/usr/lib/ipxe/qemu/pxe-virtio.rom", "ipxe-qemu")
	needFile(t, sim.DefaultOVMFDir+"/OVMF_CODE_4M.fd", "ovmf")
	t.Parallel()
	for _, c := range bootCases {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			built, err := probeImage()
			if err != nil {
				missing(t, "the probe's image cannot be built here: "+err.Error())
			}
			machines <- struct{}{}
			defer func() { <-machines }()
			c.boot(t, built)
		})
	}
}

// bootCase is a machine, and the way that it boots.
type bootCase struct {
	rule     string
	firmware sim.Firmware
	settings []string // of the firmware, as qemu's arguments
	old      bool     // its network card does not know iPXE
	stages   []string // that the server's timeline names, in order
}

var bootCases = []bootCase{
	{
		rule: "a BIOS whose network card has iPXE is discovered", firmware: sim.FirmwareBIOS,
		stages: []string{"DHCP", "iPXE script", "kernel", "initrd", "Ignition"},
	},
	{
		rule: "a BIOS whose network card knows TFTP alone is discovered", firmware: sim.FirmwareBIOS, old: true,
		stages: []string{"DHCP", "TFTP", "iPXE script", "kernel", "initrd", "Ignition"},
	},
	{
		rule: "UEFI that boots by PXE is discovered", firmware: sim.FirmwareUEFI,
		stages: []string{"DHCP", "TFTP", "iPXE script", "kernel", "initrd", "Ignition"},
	},
	{
		rule: "UEFI that boots by HTTP is discovered", firmware: sim.FirmwareUEFI, settings: withoutPXE,
		stages: []string{"DHCP", "HTTP boot", "Ignition"},
	},
}

// withoutPXE leaves a network card of OVMF with HTTP boot alone. Its BMC does not
// know, and calls that PXE too.
var withoutPXE = []string{
	"-fw_cfg", "name=opt/org.tianocore/IPv4PXESupport,string=no",
	"-fw_cfg", "name=opt/org.tianocore/IPv6PXESupport,string=no",
}

// boot takes one machine from its first power-on to Available.
func (c bootCase) boot(t *testing.T, built image.Result) {
	t.Helper()
	r := newRack(t)
	startRadvd(t, r.server)
	reference := pushProbe(t, r.server, built)
	r.server.tap("tap0", bridgeName)
	if c.old {
		r.server.disguise(t, "tap0")
	}
	facts := r.server.startRack(t, rackOrder{
		StateDir: t.TempDir(), QEMU: []sim.QEMUMachine{{Firmware: c.firmware, Taps: []string{"tap0"}, ExtraArgs: c.settings}},
	})
	server := facts.Servers[0]
	keepConsole(t, server)
	i := newIngot(t, r.server, rackNetwork+fmt.Sprintf("tftp: {listen: \":69\"}\ndiscovery: {image: %q}\n", reference))
	commitRack(t, i, facts)
	began := time.Now()
	i.start(t)

	content := i.statusHas(t, bootPatience, "servers/"+server.Name+".yaml", "state: Available")
	t.Logf("Available %s after Ingot's start", time.Since(began).Round(100*time.Millisecond))
	if err := inOrder(content, c.stages); err != nil {
		t.Errorf("the timeline of %s: %v:\n%s", server.Name, err, content)
	}
	var detail struct{ Power string }
	if err := r.server.control("/servers/"+server.Name, &detail); err != nil || detail.Power != "Off" {
		t.Errorf("its power is %q, want Off (%v)", detail.Power, err)
	}
}

// inOrder is nil if the bootTimeline of a Server's status names the stages, in
// their order.
func inOrder(content string, stages []string) error {
	_, timeline, ok := strings.Cut(content, "bootTimeline:")
	if !ok {
		return errors.New("there is none")
	}
	for _, s := range stages {
		_, after, ok := strings.Cut(timeline, "stage: "+s)
		if !ok {
			return fmt.Errorf("it does not name %q where it must", s)
		}
		timeline = after
	}
	return nil
}

// pushProbe pushes the probe's image to a registry of its own.
func pushProbe(t *testing.T, on *namespace, built image.Result) (reference string) {
	t.Helper()
	var parts ocitest.Image
	for path, into := range map[string]*[]byte{built.Kernel: &parts.Kernel, built.Initramfs: &parts.Initrd, built.UKI: &parts.UKI} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		*into = data
	}
	reference, _, err := newImages(t, on).Push("probe", "1", parts)
	if err != nil {
		t.Fatal(err)
	}
	return reference
}

// keepConsole shows the end of a machine's console if t fails, and keeps all of it
// where -artifacts asks for that.
func keepConsole(t *testing.T, server simulatedServer) {
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
		var o output
		_, _ = o.Write(data)
		t.Logf("console of %s: %s", server.Name, o.tail(40))
		_ = os.WriteFile(filepath.Join(t.ArtifactDir(), server.Name+"-console.log"), data, 0o644)
	})
}

// startRadvd advertises the router of the rack's link: without, iPXE waits for one
// a quarter of a minute.
func startRadvd(t *testing.T, on *namespace) {
	t.Helper()
	on.setting("net/ipv6/conf/all/forwarding", "1")
	config := filepath.Join(t.TempDir(), "radvd.conf")
	text := "interface " + bridgeName + " { AdvSendAdvert on; MinRtrAdvInterval 3; MaxRtrAdvInterval 4; AdvManagedFlag off; AdvOtherConfigFlag off; prefix fd77:1::/64 { AdvAutonomous off; }; };\n"
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	on.start(t, "radvd", "radvd", "-n", "-m", "stderr", "-C", config, "-p", config+".pid")
}
