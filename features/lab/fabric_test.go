package lab

import (
	"testing"

	"ingot/features/internal/rig"
)

// rowNetwork is the link behind the relay, whose own address on the rack's link is not of it.
const rowNetwork = `
dhcp:
- {name: row, interface: br0, role: host, subnets: [{cidr: 10.77.2.0/24, ranges: [10.77.2.100-10.77.2.150], gateway: 10.77.2.1}]}
`

// TestLeasesByAFabricsRelay relays as the switches of a fabric do: by an address of the
// relay's own, with the client's link named beside it (RFC 3527).
func TestLeasesByAFabricsRelay(t *testing.T) {
	rig.Need(t, rig.ToolDhcrelay, rig.ToolDhclient, rig.ToolDhcpcd)
	t.Parallel()
	r := newRack(t)
	r.addRouter(t)
	r.relay.Start(t, "dhcrelay -4", "dhcrelay", "-4", "-d", "-a", "-U", "up0", "-id", rig.BridgeName, rig.ServerAddress)
	rig.NewIngot(t, r.server, rowNetwork).Start(t)
	for _, kind := range clientKinds {
		if kind.family != 4 {
			continue
		}
		t.Run(kind.name+" is given an address of the link that its relay selects, and renews it", func(t *testing.T) {
			c := newClient(t, kind, r.nextHost(t, true))
			c.start(t)
			first := c.mustAwait(t)
			if !inPool(true, first.Address) {
				t.Fatalf("was given %s, which is not of its link", first.Address)
			}
			if again := c.renewNow(t); again.Address != first.Address {
				t.Errorf("had %s, and after the renewal %s", first.Address, again.Address)
			}
		})
	}
}
