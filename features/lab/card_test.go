package lab

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"ingot/features/internal/rig"
	"ingot/model/must"
)

// How clients show who they are, and from where they ask.
const (
	goldenDUID = "00:04:4c:4c:45:44:00:11:22:33:80:44:b5:c0:4f:56:44:33" // DUID-UUID (RFC 6355)
	randomLL   = "fe80::a1b2:c3d4:e5f6:%x/64"
)

// withDUID has dhclient show a DUID that it did not make of its MAC address.
func withDUID(t *testing.T, c *client, duid string) *client {
	t.Helper()
	octal := new(strings.Builder)
	for b := range strings.SplitSeq(duid, ":") {
		var n int
		must.Get(fmt.Sscanf(b, "%x", &n))(t)
		fmt.Fprintf(octal, `\%03o`, n)
	}
	c.write(t, "leases", fmt.Sprintf("default-duid \"%s\";\n", octal), 0o644)
	return c
}

// hidden is a machine whose link-local address does not show its MAC address.
func (r *rack) hidden(t *testing.T, relayed bool) *rig.Namespace {
	t.Helper()
	n := r.nextHost(t, relayed)
	n.IP("-6", "address", "flush", "dev", device, "scope", "link")
	n.IP("address", "add", fmt.Sprintf(randomLL, r.macs.Load()), "dev", device, "nodad")
	return n
}

func (c *client) pooled(t *testing.T, relayed bool) (all []string) {
	t.Helper()
	out, err := c.on.Run(t, rig.Patience, "ip", "-6", "-o", "address", "show", "dev", device, "scope", "global")
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for word := range strings.FieldsSeq(out) {
		if p, err := netip.ParsePrefix(word); err == nil && inPool(relayed, p.Addr()) {
			all = append(all, word)
		}
	}
	return all
}

func TestCardsAreToldApart6(t *testing.T) {
	rig.Need(t, rig.ToolDhclient, rig.ToolDhcpcd, rig.ToolDhcrelay)
	t.Parallel()
	r := newRack(t)
	r.addRelay(t)
	i := rig.NewIngot(t, r.server, rackNetwork)
	i.Start(t)
	has := func(t *testing.T, c *client, relayed bool) netip.Addr {
		t.Helper()
		c.start(t)
		got := c.mustAwait(t).Address
		if !inPool(relayed, got) {
			t.Errorf("was given %s, which is not of the subnet's range", got)
		}
		return got
	}
	for _, relayed := range []bool{false, true} {
		where := "on Ingot's link"
		if relayed {
			where = "through a relay"
		}
		t.Run("two network cards with one DUID have an address each, "+where, func(t *testing.T) {
			t.Parallel()
			var had []netip.Addr
			for range 2 {
				had = append(had, has(t, withDUID(t, newClient(t, dhclient6, r.nextHost(t, relayed)), goldenDUID), relayed))
			}
			if had[0] == had[1] {
				t.Errorf("both have %s", had[0])
			}
		})
		t.Run("a client has an address, and keeps it, by its DUID alone, "+where, func(t *testing.T) {
			t.Parallel()
			c := newClient(t, dhcpcd6, r.hidden(t, relayed), "duid "+strings.Replace(goldenDUID, "4c:4c", "0b:0b", 1))
			first := has(t, c, relayed)
			if again := c.renewNow(t).Address; again != first {
				t.Errorf("had %s, and after the renewal %s", first, again)
			}
		})
		t.Run("a client that asks for two addresses at once has two, "+where, func(t *testing.T) {
			t.Parallel()
			c := newClient(t, dhcpcd6, r.nextHost(t, relayed), "ia_na 2")
			has(t, c, relayed)
			rig.Eventually(t, rig.Patience, func() error {
				if all := c.pooled(t, relayed); len(all) != 2 {
					return fmt.Errorf("it has %v", all)
				}
				return nil
			})
		})
	}
	t.Run("machines of one DUID and one association have an address each on Ingot's link", func(t *testing.T) {
		t.Parallel()
		var had []netip.Addr
		for range 2 {
			had = append(had, has(t, newClient(t, dhcpcd6, r.hidden(t, false), "duid "+strings.Replace(goldenDUID, "4c:4c", "0c:0c", 1)), false))
		}
		if had[0] == had[1] {
			t.Errorf("both have %s", had[0])
		}
	})
}
