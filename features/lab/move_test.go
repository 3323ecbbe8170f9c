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

// TestTheMoveFromKea moves a rack from the real Kea to Ingot: a device keeps its address, which nobody
// else is given, and neither is one that a device uses that says nothing of itself.
func TestTheMoveFromKea(t *testing.T) {
	rig.Need(t, rig.ToolKea4)
	t.Parallel()
	r := newRack(t)
	moved := r.nextHost(t, false)
	old := &kea{on: r.server, dir: t.TempDir()}
	old.startFamily(t, "4", strings.ReplaceAll(old.config4(), `"subnet": "10.77.1.0/24",`, `"subnet": "10.77.1.0/24", "reservations": [
		{"hw-address": "`+rig.MAC(0xa1)+`", "ip-address": "10.77.1.20", "hostname": "reserved"}],`))
	before := newClient(t, udhcpc, moved)
	before.start(t)
	had := before.mustAwait(t).Address
	before.process.Kill()
	old.Stop(t)
	endpoints := filepath.Join(t.TempDir(), "endpoints")
	const script = `cd "$1" && { jq -r '.Dhcp4.subnet4[].reservations[]? | [."hw-address",."ip-address",.hostname] | @csv' kea4.json && ` +
		`awk -F, 'NR > 1 {print $2","$1","$9}' leases4; } | "$0" import endpoints --into "$2" -`
	command := []string{"sh", "-c", script, rig.Program(t), old.dir, endpoints}
	if out, err := r.server.Run(t, rig.Patience, command...); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	i := rig.NewIngot(t, r.server, rackNetwork)
	files, err := os.ReadDir(endpoints)
	if err != nil || len(files) != 2 {
		t.Fatalf("imported: %v, %v", files, err)
	}
	for _, f := range files {
		data := must.Get(os.ReadFile(filepath.Join(endpoints, f.Name())))(t)
		i.Commit(t, "endpoints/"+f.Name(), string(data))
	}
	silent := r.nextHost(t, false) // uses what Ingot would offer first, and answers ARP alone
	first := had.Next()
	silent.Setting("net/ipv4/icmp_echo_ignore_all", "1")
	silent.Address(device, first.String()+"/24")
	i.Start(t)

	for name, tc := range map[string]struct {
		on   *rig.Namespace
		want string
	}{
		"the device that had a lease of Kea's": {moved, had.String()},
		"a device that Kea had reserved for":   {r.host(t, false, rig.MAC(0xa1)), "10.77.1.20"},
		"another device":                       {r.nextHost(t, false), first.Next().String()},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, udhcpc, tc.on)
			c.start(t)
			if got := c.mustAwait(t).Address; got.String() != tc.want {
				t.Errorf("was given %s, want %s", got, tc.want)
			}
		})
	}
	if log := i.Process.Output.String(); !strings.Contains(log, fmt.Sprintf(`"address":%q,"by":%q`, first, silent.MAC)) {
		t.Errorf("the log does not say who uses %s:\n%s", first, i.Process.Output.Tail(20))
	}
}

// dhcrelayPort6 is what dhcrelay -6 calls the first of its interfaces.
const dhcrelayPort6 = "0x01000000"

// TestAnAddressIsReservedForThePortOfARelay: dhcrelay calls the port by its interface, over DHCPv6 by a number of its
// own, and whatever device is there gets the address, one after the other.
func TestAnAddressIsReservedForThePortOfARelay(t *testing.T) {
	rig.Need(t, rig.ToolDhcrelay, rig.ToolDhclient)
	t.Parallel()
	r := newRack(t)
	r.addRelay(t)
	i := rig.NewIngot(t, r.server, rackNetwork+"  relays: [10.77.1.2, 10.77.2.1, \"fd77:1::2\"]\n")
	i.Commit(t, "port.yaml", "apiVersion: metal.ironcore.dev/v1alpha1\nkind: Endpoint\nmetadata: {name: port, annotations: {ingot/dhcp-circuit-id: "+
		rig.BridgeName+"}}\nspec: {ip: 10.77.2.20}\n")
	i.Commit(t, "port6.yaml", "apiVersion: metal.ironcore.dev/v1alpha1\nkind: Endpoint\nmetadata: {name: port6, annotations: {ingot/dhcp-circuit-id: '"+
		dhcrelayPort6+"'}}\nspec: {ip: \"fd77:2::20\"}\n")
	i.Start(t)
	for _, tc := range []struct {
		kind clientKind
		want string
	}{{udhcpc, "10.77.2.20"}, {dhclient6, "fd77:2::20"}, {dhclient6, "fd77:2::20"}, {udhcpc, "10.77.2.20"}} {
		c := newClient(t, tc.kind, r.nextHost(t, true))
		c.start(t)
		if got := c.mustAwait(t).Address; got.String() != tc.want {
			t.Errorf("%s was given %s, want %s", c.on.MAC, got, tc.want)
		}
		c.releaseNow(t)
	}
	for relay, port := range map[string]string{relayAddress: rig.BridgeName, relayAddress6: strings.TrimPrefix(dhcrelayPort6, "0x")} {
		if log := i.Process.Output.String(); !strings.Contains(log, `"relay":"`+relay+`","port":"`+port+`"`) {
			t.Errorf("the log does not say by which relay the lease was asked for:\n%s", i.Process.Output.Tail(20))
		}
	}
}
