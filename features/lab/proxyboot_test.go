package lab

import (
	"fmt"
	"testing"

	"ingot/bmc/sim/qemu"
	"ingot/features/internal/rig"
)

// proxyBootCase is a machine that boots while somebody else gives the addresses.
type proxyBootCase struct {
	rule    string
	machine bootCase
	other   func(t *testing.T, on *rig.Namespace) // starts the DHCP server of somebody else
	relayed bool
}

var proxyBootCases = []proxyBootCase{
	{
		rule: "a BIOS whose network card has iPXE is discovered beside Kea", other: startKea4,
		machine: bootCase{firmware: qemu.FirmwareBIOS, stages: []string{"DHCP", "iPXE script", "kernel", "initrd", "Ignition"}},
	},
	{
		rule: "UEFI that boots by PXE is discovered beside dnsmasq", other: startDnsmasqOfRack,
		machine: bootCase{firmware: qemu.FirmwareUEFI, stages: []string{"DHCP", "TFTP", "iPXE script", "kernel", "initrd", "Ignition"}},
	},
	{
		rule: "UEFI that boots by PXE is discovered behind a relay, beside Kea", other: startKea4, relayed: true,
		machine: bootCase{firmware: qemu.FirmwareUEFI, stages: []string{"DHCP", "TFTP", "iPXE script", "kernel", "initrd", "Ignition"}},
	},
	{
		rule: "a BIOS whose network card knows TFTP alone is discovered behind a relay, beside dnsmasq", other: startDnsmasqOfRack, relayed: true,
		machine: bootCase{
			firmware: qemu.FirmwareBIOS, old: true,
			stages: []string{"DHCP", "TFTP", "iPXE script", "kernel", "initrd", "Ignition"},
		},
	},
}

func startDnsmasqOfRack(t *testing.T, on *rig.Namespace) {
	t.Helper()
	rig.Need(t, rig.ToolDnsmasq)
	startDnsmasq(t, on, "--dhcp-range=10.77.1.200,10.77.1.210,1h", "--dhcp-option=option:router",
		"--dhcp-range=set:row,10.77.2.200,10.77.2.210,255.255.255.0,1h", "--dhcp-option=tag:row,option:router,"+relayAddress)
}

func TestProxyBootsMachines(t *testing.T) {
	rig.NeedMachines(t, rig.ToolNft, rig.ToolDnsmasq, rig.ToolKea4, rig.ToolDhcrelay)
	t.Parallel()
	for _, c := range proxyBootCases {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			machines <- struct{}{}
			defer func() { <-machines }()
			r := newRack(t)
			other := r.other(t)
			c.machine.network, c.machine.bridge = proxyNetwork, rig.BridgeName
			if c.relayed {
				r.addRelay(t, otherAddress)
				other.IP("route", "add", "10.77.2.0/24", "via", "10.77.1.2")
				c.machine.network, c.machine.bridge = proxyNetworkRelayed, r.row(t)
			}
			c.other(t, other)
			c.machine.bootIn(t, r)
		})
	}
}

func (r *rack) row(t *testing.T) (bridge string) {
	t.Helper()
	const name = "row0"
	r.server.Bridge(name)
	r.server.Setting(fmt.Sprintf("net/ipv6/conf/%s/disable_ipv6", name), "1")
	r.relay.Plug("down0", rig.MAC(0xfd), r.server, name)
	r.relay.IP("link", "set", "down0", "master", rig.BridgeName)
	r.relay.StartRadvd(t, "fd77:2::/64", false)
	return name
}
