package lab

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ingot/features/internal/rig"
)

// leaser is a DHCP server that can be ended and started again.
type leaser interface {
	Start(t testing.TB)
	Stop(t testing.TB)
	Kill()
}

func newLeaser(t *testing.T, on *rig.Namespace) leaser {
	t.Helper()
	switch name := os.Getenv("INGOT_LAB_SERVER"); name {
	case "":
		return rig.NewIngot(t, on, rackNetwork)
	case "kea":
		return newKea(t, on)
	default:
		t.Fatalf("INGOT_LAB_SERVER is %q: kea is known, and nothing for Ingot itself", name)
		return nil
	}
}

// placed is a client, and where it is.
type placed struct {
	*client
	relayed bool
	address netip.Addr // that it was given first
}

func (p *placed) String() string {
	if p.relayed {
		return p.kind.name + " through a relay"
	}
	return p.kind.name + " on the server's link"
}

func clientsEverywhere(t *testing.T, r *rack) (all []*placed) {
	t.Helper()
	for _, kind := range clientKinds {
		for _, relayed := range []bool{false, true} {
			all = append(all, &placed{client: newClient(t, kind, r.nextHost(t, relayed)), relayed: relayed})
		}
	}
	return all
}

func TestLeasesOfRealClients(t *testing.T) {
	rig.Need(t, rig.ToolDhclient, rig.ToolDhcpcd, rig.ToolDhcrelay)
	t.Parallel()
	r := newRack(t)
	r.addRelay(t)
	server := newLeaser(t, r.server)
	server.Start(t)
	clients := clientsEverywhere(t, r)
	// each runs check on every client, as a subtest of a rule; a client that broke
	// one rule is not asked about the next
	each := func(rule string, check func(*testing.T, *placed)) {
		t.Run(rule, func(t *testing.T) {
			for _, c := range clients {
				t.Run(c.String(), func(t *testing.T) {
					t.Parallel()
					check(t, c)
				})
			}
		})
		if t.Failed() {
			t.FailNow()
		}
	}
	keeps := func(t *testing.T, c *placed) {
		if got := c.renewNow(t); got.Address != c.address {
			t.Errorf("had %s, and after the renewal %s", c.address, got.Address)
		}
	}

	for _, c := range clients {
		c.start(t)
	}
	each("a client is given an address and all that its subnet says", func(t *testing.T, c *placed) {
		got := c.mustAwait(t)
		c.address = got.Address
		if !inPool(c.relayed, got.Address) {
			t.Errorf("was given %s, which is not of the subnet's range", got.Address)
		}
		got.Address, got.BootFile, got.Next = netip.Addr{}, "", ""
		if diff := cmp.Diff(wantLease(c), got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
			t.Errorf("lease (- want, + got):\n%s", diff)
		}
	})
	t.Run("no two clients are given the same address", func(t *testing.T) {
		holders := make(map[netip.Addr]*placed)
		for _, c := range clients {
			if other := holders[c.address]; other != nil {
				t.Errorf("%s has %s, and so has %s", c, c.address, other)
			}
			holders[c.address] = c
		}
	})
	each("a lease is renewed", keeps)
	server.Stop(t)
	server.Start(t)
	each("a lease is renewed after the server was restarted", keeps)
	server.Kill()
	server.Start(t)
	t.Run("an address is still its holder's after the server was killed", func(t *testing.T) {
		thief := newClient(t, udhcpc, r.nextHost(t, false), "-r", clients[0].address.String())
		thief.start(t)
		if got := thief.mustAwait(t); got.Address == clients[0].address {
			t.Errorf("another device was given %s, which is that of %s", got.Address, clients[0])
		}
		thief.releaseNow(t)
	})
	each("a lease is renewed after the server was killed", keeps)
	if i, ok := server.(*rig.Ingot); ok {
		t.Run("each client has one lease in the metrics", func(t *testing.T) { leasesInMetrics(t, i, len(clients)) })
	}
	each("a client that gives its address back ends well", func(t *testing.T, c *placed) { c.releaseNow(t) })
	if i, ok := server.(*rig.Ingot); ok {
		t.Run("a lease that was given back is not in the metrics", func(t *testing.T) { leasesInMetrics(t, i, 0) })
	}
}

func wantLease(c *placed) lease {
	if c.kind.family == 6 {
		want := lease{DNS: "fd77:1::53", NTP: "fd77:1::123", Domain: "rack.example.com", Seconds: "3600"}
		if c.kind.needs == rig.ToolDhclient { // it shows the option as bytes, and names with their last dot
			want.NTP, want.Domain = "0:1:0:10:fd:77:0:1:0:0:0:0:0:0:0:0:0:0:1:23", "rack.example.com."
		}
		return want
	}
	want := lease{Router: "10.77.1.1", DNS: "10.77.1.53 10.77.1.54", NTP: "10.77.1.123", Domain: "rack.example.com", Seconds: "3600"}
	if c.relayed {
		want.Router = relayAddress
	}
	return want
}

func leasesInMetrics(t *testing.T, i *rig.Ingot, want int) {
	t.Helper()
	rig.Eventually(t, rig.Patience, func() error {
		lines, err := i.Metric("ingot_dhcp_leases{")
		if err != nil {
			return err
		}
		var sum float64
		for line := range strings.Lines(lines) {
			var n float64
			if _, err := fmt.Sscan(line[strings.LastIndexByte(line, ' ')+1:], &n); err != nil {
				return fmt.Errorf("%s: %w", line, err)
			}
			sum += n
		}
		if int(sum) != want {
			return fmt.Errorf("%d leases are counted, want %d:\n%s", int(sum), want, lines)
		}
		return nil
	})
}
