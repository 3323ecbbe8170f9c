package lab

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ingot/bmc/sim/qemu"
	"ingot/features/internal/rig"
)

// bootPatience is how long a machine may take from power to Available. OVMF requests IPv4 addresses for a minute before
// it turns to IPv6.
const bootPatience = 180 * time.Second

// machines bounds how many machines run at once: each keeps a processor busy.
var machines = make(chan struct{}, 2)

func TestMachinesAreDiscovered(t *testing.T) {
	rig.NeedMachines(t, rig.ToolNft)
	t.Parallel()
	for _, c := range bootCases {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			machines <- struct{}{}
			defer func() { <-machines }()
			c.boot(t)
		})
	}
}

// bootCase is a machine, and the way that it boots.
type bootCase struct {
	rule     string
	firmware qemu.Firmware
	settings []string // of the firmware, as qemu's arguments
	old      bool     // its network card does not know iPXE
	network  string   // as Ingot is told of it, rackNetwork if empty
	address  string   // a further address of the server, none if empty
	bridge   string   // that its network card is plugged into, the rack's link if empty
	stages   []string // that the server's timeline names, in order
	ovmf     string   // where UEFI is, Debian's if empty
	// push pushes the image that it is discovered with; nil is the probe's as it is.
	push   func(*testing.T, *rig.Namespace) string
	config string // more of Ingot's configuration
}

var bootCases = []bootCase{
	{
		rule: "a BIOS whose network card has iPXE is discovered", firmware: qemu.FirmwareBIOS,
		stages: []string{"DHCP", "iPXE script", "kernel", "initrd", "Ignition"},
	},
	{
		rule: "a BIOS whose network card knows TFTP alone is discovered", firmware: qemu.FirmwareBIOS, old: true,
		stages: []string{"DHCP", "TFTP", "iPXE script", "kernel", "initrd", "Ignition"},
	},
	{
		rule: "UEFI that boots by PXE is discovered", firmware: qemu.FirmwareUEFI,
		stages: []string{"DHCP", "TFTP", "iPXE script", "kernel", "initrd", "Ignition"},
	},
	{
		rule: "UEFI that boots by HTTP is discovered", firmware: qemu.FirmwareUEFI, settings: withoutPXE,
		network: network4, address: address4,
		stages: []string{"DHCP", "HTTP boot", "Ignition"},
	},
	{
		rule:     "UEFI that boots by PXE from a server address of 14 characters is discovered",
		firmware: qemu.FirmwareUEFI, network: network4, address: address4,
		stages: []string{"DHCP", "TFTP", "iPXE script", "kernel", "initrd", "Ignition"},
	},
	{
		rule:     "UEFI that boots by HTTP where there is IPv6 alone is discovered",
		firmware: qemu.FirmwareUEFI, settings: withoutPXE, network: network6,
		stages: []string{"DHCP", "HTTP boot", "Ignition"},
	},
	{
		rule:     "UEFI that boots by PXE where there is IPv6 alone is discovered",
		firmware: qemu.FirmwareUEFI, settings: without4, network: network6,
		stages: []string{"DHCP", "TFTP", "iPXE script", "kernel", "initrd", "Ignition"},
	},
}

// network6 is the rack's link without IPv4.
const network6 = `
dhcp:
- name: rack
  interface: br0
  role: host
  subnets:
  - {cidr: "fd77:1::/64", ranges: ["fd77:1::100-fd77:1::150"]}
registry: {url: "http://[fd77:1::1]:10000"}
`

// network4 is a network without DHCPv6, to which UEFI would turn if DHCPv4 failed.
const network4 = `
dhcp:
- name: rack
  interface: br0
  role: host
  subnets:
  - {cidr: 192.168.100.0/24, ranges: [192.168.100.100-192.168.100.150], gateway: 192.168.100.10}
`

// address4 is the server's address in network4. EDK2 reads its first character as the length of an
// option if no PAD follows option 67.
const address4 = "192.168.100.10/24"

// without4 keeps OVMF from asking for IPv4 addresses, which takes it a minute.
var without4 = []string{
	"-fw_cfg", "name=opt/org.tianocore/IPv4PXESupport,string=no",
}

// withoutPXE leaves a network card of OVMF with HTTP boot alone. Its BMC does not
// know, and calls that PXE too.
var withoutPXE = []string{
	"-fw_cfg", "name=opt/org.tianocore/IPv4PXESupport,string=no",
	"-fw_cfg", "name=opt/org.tianocore/IPv6PXESupport,string=no",
}

func (c bootCase) boot(t *testing.T) {
	t.Helper()
	c.bootIn(t, newRack(t))
}

// bootIn is boot in a rack that may have more in it.
func (c bootCase) bootIn(t *testing.T, r *rack) {
	t.Helper()
	i, server := c.startIn(t, r)
	began := time.Now()
	content := i.StatusHas(t, bootPatience, "servers/"+server.Name+".yaml", "state: Available")
	t.Logf("Available %s after Ingot was ready", time.Since(began).Round(100*time.Millisecond))
	if err := inOrder(content, c.stages); err != nil {
		t.Errorf("the timeline of %s: %v:\n%s", server.Name, err, content)
	}
	history, err := i.Repo.Git("log", "-p", "--format=", rig.StatusBranch)
	if err != nil || strings.Contains(history, "BootRefused") || strings.Contains(history, "TicketRefused") {
		t.Errorf("the status branch said once that the server, or another, was refused (%v)", err)
	}
	var detail struct{ Power string }
	if err := r.server.Control("/servers/"+server.Name, &detail); err != nil || detail.Power != "Off" {
		t.Errorf("its power is %q, want Off (%v)", detail.Power, err)
	}
}

func (c bootCase) startIn(t *testing.T, r *rack) (*rig.Ingot, rig.SimulatedServer) {
	t.Helper()
	r.server.StartRadvd(t, "fd77:1::/64", c.network == network6)
	if c.address != "" {
		r.server.Address(rig.BridgeName, c.address)
	}
	push := func(t *testing.T, on *rig.Namespace) string { return rig.PushProbe(t, on) }
	if c.push != nil {
		push = c.push
	}
	reference := push(t, r.server)
	r.server.Tap("tap0", cmp.Or(c.bridge, rig.BridgeName))
	if c.old {
		disguise(t, r.server, "tap0")
	}
	facts := r.server.StartRack(t, rig.RackOrder{
		StateDir: t.TempDir(),
		QEMU:     qemu.Machines{{Firmware: c.firmware, OVMFDir: c.ovmf, Taps: []string{"tap0"}, ExtraArgs: c.settings}},
	})
	server := facts.Servers[0]
	rig.KeepConsole(t, server)
	settings := fmt.Sprintf("tftp: {listen: \":69\"}\ndiscovery: {image: %q}\n", reference)
	i := rig.NewIngot(t, r.server, cmp.Or(c.network, rackNetwork)+settings+c.config)
	i.Paced = true
	i.CommitRack(t, facts)
	i.Start(t)
	return i, server
}

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
