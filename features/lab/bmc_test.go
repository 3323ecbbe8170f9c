package lab

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ingot/bmc/sim"
	"ingot/features/internal/rig"
	"ingot/model/must"
)

func TestABMCThatIsPluggedIn(t *testing.T) {
	rig.Need(t)
	t.Parallel()
	r := newRack(t)
	// The rack runs before it has an address, as a BMC does, on whatever it gets.
	machine := rig.NewNamespace(t, "bmc")
	facts := machine.StartRack(t, rig.RackOrder{Host: "0.0.0.0", BootURL: rig.BootURL, Delays: sim.FastDelays()})
	bmc, server := facts.BMCs[0], facts.Servers[0]
	_, port, err := net.SplitHostPort(bmc.Address)
	if err != nil {
		t.Fatal(err)
	}
	database := filepath.Join(t.TempDir(), "mac-prefixes.yaml")
	must.Do(t, os.WriteFile(database, fmt.Appendf(nil, macPrefixes, hexMAC(bmc.MAC)[:6], port), 0o600))
	i := rig.NewIngot(t, r.server, fmt.Sprintf(`
dhcp:
- name: oob
  interface: br0
  role: bmc
  subnets:
  - {cidr: 10.77.1.0/24, ranges: [10.77.1.100-10.77.1.150], gateway: 10.77.1.1}
discovery: {image: %q, macPrefixesFile: %q}
`, pretendedProbe(t, r.server), database))
	i.Start(t)

	machine.Plug(device, bmc.MAC, r.server, rig.BridgeName)
	// the server behind it has a card of its own, and each answers for its own address
	machine.Setting("net/ipv4/conf/all/arp_ignore", "1")
	machine.Setting("net/ipv4/conf/all/arp_announce", "2")
	machine.Plug("host0", server.MAC, r.server, rig.BridgeName)
	machine.Address("host0", "10.77.1.60/24")
	machine.IP("route", "add", rig.ServerAddress, "dev", "host0", "src", "10.77.1.60")
	c := newClient(t, udhcpc, machine)
	c.start(t)
	first := c.mustAwait(t).Address.String()
	name := "oob-" + hexMAC(bmc.MAC)

	t.Run("a device that asks for an address is an Endpoint", func(t *testing.T) {
		i.StatusHas(t, rig.Patience, "endpoints/"+name+".yaml", bmc.MAC, first)
	})
	t.Run("an Endpoint whose MAC address is known is a BMC", func(t *testing.T) {
		i.StatusHas(t, rig.Patience, "bmcs/"+name+".yaml", first, bmc.MAC)
	})
	t.Run("the server behind it is discovered and Available", func(t *testing.T) {
		i.StatusHas(t, 2*rig.Patience, "servers/"+name+"-system-0.yaml", server.UUID, "state: Available")
	})
	if t.Failed() {
		return
	}

	c.releaseNow(t)
	other := newClient(t, udhcpc, r.nextHost(t, false), "-r", first)
	other.start(t)
	if got := other.mustAwait(t).Address.String(); got != first {
		t.Fatalf("another device was given %s, and not the address %s that it asked for", got, first)
	}
	again := newClient(t, udhcpc, machine)
	again.start(t)
	second := again.mustAwait(t).Address.String()
	if second == first {
		t.Fatalf("two devices have %s", first)
	}
	t.Run("an Endpoint whose address changed is followed", func(t *testing.T) {
		i.StatusHas(t, rig.Patience, "endpoints/"+name+".yaml", second)
		i.StatusHas(t, rig.Patience, "bmcs/"+name+".yaml", second, "state: Enabled")
	})
	t.Run("its server is still Available", func(t *testing.T) {
		i.StatusHas(t, rig.Patience, "servers/"+name+"-system-0.yaml", "state: Available")
	})
}

const macPrefixes = `macPrefixes:
- macPrefix: "%[1]s"
  manufacturer: Somebody
  protocol: Redfish
  protocolScheme: https
  port: %[2]s
  type: bmc
  defaultCredentials:
  - {username: admin, password: of-another-model}
  - {username: admin, password: ingot-sim}
`

func hexMAC(mac string) string { return strings.ReplaceAll(mac, ":", "") }
