package lab

import (
	"fmt"
	"strings"
	"testing"

	"ingot/features/internal/rig"
)

// TestAnAddressInUseIsNotGiven6 has a device use what Ingot would give first, on Ingot's link and behind a relay.
func TestAnAddressInUseIsNotGiven6(t *testing.T) {
	rig.Need(t, rig.ToolDhclient, rig.ToolDhcpcd, rig.ToolDhcrelay)
	t.Parallel()
	r := newRack(t)
	r.addRelay(t)
	i := rig.NewIngot(t, r.server, rackNetwork)
	i.Start(t)
	for _, relayed := range []bool{false, true} {
		where := map[bool]string{false: "on Ingot's link", true: "behind a relay"}[relayed]
		t.Run(where, func(t *testing.T) {
			first := pools[relayed][6][0]
			stranger := r.nextHost(t, relayed)
			stranger.Address(device, first.String()+"/64")
			if !relayed { // where it answers Neighbor Discovery alone
				stranger.Setting("net/ipv6/icmp/echo_ignore_all", "1")
			}
			for _, kind := range []clientKind{dhclient6, dhcpcd6} {
				c := newClient(t, kind, r.nextHost(t, relayed))
				c.start(t)
				if got := c.mustAwait(t).Address; got == first || !inPool(relayed, got) {
					t.Errorf("%s was given %s; %s is in use", kind.name, got, first)
				}
			}
			by := stranger.MAC
			if relayed {
				by = ""
			}
			if log := i.Process.Output.String(); !strings.Contains(log, fmt.Sprintf(`"address":%q,"by":%q`, first, by)) {
				t.Errorf("the log does not say who uses %s:\n%s", first, i.Process.Output.Tail(20))
			}
		})
	}
}
