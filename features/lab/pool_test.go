package lab

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"ingot/features/internal/rig"
)

const oneAddress = `
dhcp:
- name: rack
  interface: br0
  role: host
  subnets:
  - {cidr: 10.77.1.0/24, ranges: [10.77.1.100-10.77.1.100]}
  - {cidr: "fd77:1::/64", ranges: ["fd77:1::100-fd77:1::100"]}
`

// TestLeaseOfTheOnlyAddress hands one address from client to client: who gets it
// proves that the one before has given it back.
func TestLeaseOfTheOnlyAddress(t *testing.T) {
	rig.Need(t, rig.ToolDhclient, rig.ToolDhcpcd)
	t.Parallel()
	r := newRack(t)
	server := newLeaser(t, r.server)
	switch s := server.(type) {
	case *rig.Ingot:
		s.Config = oneAddress
	case *kea:
		s.size = 1
	}
	server.Start(t)

	holders := make(map[int]*client) // by family
	for _, kind := range clientKinds {
		t.Run("what a client gave back is given to the next, "+kind.name, func(t *testing.T) {
			if before := holders[kind.family]; before != nil {
				before.releaseNow(t)
			}
			c := newClient(r.t, kind, r.nextHost(r.t, false))
			c.start(r.t)
			want := pools[false][kind.family][0]
			if got := c.mustAwait(t); got.Address != want {
				t.Errorf("was given %s, and the only address is %s", got.Address, want)
			}
			holders[kind.family] = c
		})
	}
	if t.Failed() {
		return
	}
	t.Run("a device that finds the pool empty is given nothing", func(t *testing.T) {
		if err := refused(t, r.nextHost(t, false)); err != nil {
			t.Error(err)
		}
	})
	i, ok := server.(*rig.Ingot)
	if !ok {
		return
	}
	t.Run("an empty pool is on the status branch", func(t *testing.T) {
		i.StatusHas(t, rig.Patience, "README.md", "10.77.1.0/24", "rack")
	})
	t.Run("an empty pool is in the metrics", func(t *testing.T) {
		rig.Eventually(t, rig.Patience, func() error {
			lines, err := i.Metric(`ingot_dhcp_pool_refused_total{network="rack",subnet="10.77.1.0/24"}`)
			if err == nil && (lines == "" || strings.HasSuffix(lines, " 0")) {
				err = fmt.Errorf("the metrics say %q", lines)
			}
			return err
		})
	})
	t.Run("a pool that has room again is no longer on the status branch", func(t *testing.T) {
		holders[4].releaseNow(t)
		c := newClient(t, udhcpc, r.nextHost(t, false))
		c.start(t)
		c.mustAwait(t)
		rig.Eventually(t, rig.Patience, func() error {
			readme, err := i.Status("README.md")
			if err == nil && strings.Contains(readme, "10.77.1.0/24") {
				err = errors.New("README.md still says:\n" + readme)
			}
			return err
		})
	})
}
