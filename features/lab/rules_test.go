package lab

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"ingot/features/internal/rig"
	"ingot/model/must"
)

// deniedMAC begins with what deniedNetwork does not serve.
const deniedMAC = "02:42:00:00:00:01"

const deniedNetwork = rackNetwork + `  macDeny: ["02:42"]
`

func TestWhoIsGivenWhat(t *testing.T) {
	rig.Need(t, rig.ToolDhclient, rig.ToolDhcrelay)
	t.Parallel()
	r := newRack(t)
	r.addRelay(t)
	const reservedMAC, reserved, reserved6 = "52:54:00:77:01:01", "10.77.1.20", "fd77:1::20"
	i := rig.NewIngot(t, r.server, deniedNetwork)
	i.Commit(t, "endpoints.yaml", rig.Endpoint("printer", reservedMAC, reserved)+"---\n"+
		rig.Endpoint("printer-of-relayed", rig.MAC(0xa1), "10.77.2.20"))
	i.Start(t)

	t.Run("a reservation in Git is given to its MAC address", func(t *testing.T) {
		t.Parallel()
		c := newClient(t, udhcpc, r.host(t, false, reservedMAC))
		c.start(t)
		if got := c.mustAwait(t); got.Address.String() != reserved {
			t.Errorf("was given %s, want %s", got.Address, reserved)
		}
	})
	t.Run("a reservation in Git is given through a relay", func(t *testing.T) {
		t.Parallel()
		c := newClient(t, dhclient4, r.host(t, true, rig.MAC(0xa1)))
		c.start(t)
		if got := c.mustAwait(t); got.Address.String() != "10.77.2.20" {
			t.Errorf("was given %s, want 10.77.2.20", got.Address)
		}
	})
	t.Run("a reservation that is committed later is given to a client that asks later", func(t *testing.T) {
		t.Parallel()
		mac := rig.MAC(0xa2)
		i.Commit(t, "later.yaml", rig.Endpoint("later", mac, reserved6))
		host := r.host(t, false, mac)
		rig.Eventually(t, rig.Patience, func() error {
			c := newClient(t, dhclient6, host)
			c.start(t)
			defer c.releaseNow(t)
			if got := c.mustAwait(t); got.Address.String() != reserved6 {
				return fmt.Errorf("was given %s, want %s", got.Address, reserved6)
			}
			return nil
		})
	})
	t.Run("a MAC address that is denied is given nothing", func(t *testing.T) {
		t.Parallel()
		if err := refused(t, r.host(t, false, deniedMAC)); err != nil {
			t.Error(err)
		}
	})
	t.Run("a MAC address keeps its IPv4 address whatever client identifier it shows", func(t *testing.T) {
		t.Parallel()
		host := r.nextHost(t, false)
		var first netip.Addr
		for _, id := range []string{"0x3d:ff01", "0x3d:ff02", ""} {
			c := newClient(t, udhcpc, host, "-C")
			if id != "" {
				c.options = append(c.options, "-x", id)
			}
			c.start(t)
			got := c.mustAwait(t).Address
			c.process.Kill() // and not released
			if first.IsValid() && got != first {
				t.Errorf("with %q it was given %s, and %s before", id, got, first)
			}
			first = got
		}
	})
	t.Run("a MAC address keeps its IPv6 address whatever DUID it shows", func(t *testing.T) {
		t.Parallel()
		host := r.nextHost(t, false)
		var first netip.Addr
		for _, form := range []string{"LL", "LLT"} { // RFC 8415 §11.4, §11.2
			kind := dhclient6
			kind.command = dhclient("-6", "-D", form)
			c := newClient(t, kind, host)
			c.start(t)
			got := c.mustAwait(t).Address
			c.process.Kill()
			if first.IsValid() && got != first {
				t.Errorf("with another DUID it was given %s, and %s before", got, first)
			}
			first = got
		}
	})
	t.Run("a relay that serves a subnet which nobody configured is not answered", func(t *testing.T) {
		t.Parallel()
		far := rig.NewNamespace(t, "far")
		far.Plug("up0", rig.MAC(0xfd), r.server, rig.BridgeName)
		far.Address("up0", "10.77.1.3/24")
		far.Bridge(rig.BridgeName, "10.99.0.1/24")
		r.server.IP("route", "add", "10.99.0.0/24", "via", "10.77.1.3")
		far.Start(t, "dhcrelay -4", "dhcrelay", "-4", "-d", "-a", "-id", rig.BridgeName, "-iu", "up0", rig.ServerAddress)
		host := rig.NewNamespace(t, "stray")
		host.Plug(device, rig.MAC(0xfc), far, rig.BridgeName)
		if err := refused(t, host); err != nil {
			t.Error(err)
		}
	})
}

func TestTwoNetworksAtOnce(t *testing.T) {
	rig.Need(t)
	t.Parallel()
	r := newRack(t)
	r.server.Bridge("br1", "10.78.1.1/24")
	i := rig.NewIngot(t, r.server, deniedNetwork+`
- name: oob
  interface: br1
  role: bmc
  subnets:
  - {cidr: 10.78.1.0/24, ranges: [10.78.1.100-10.78.1.150], gateway: 10.78.1.1}
`)
	i.Start(t)
	bmc := rig.NewNamespace(t, "bmc")
	bmc.Plug(device, rig.MAC(0xb1), r.server, "br1")
	for _, c := range []struct {
		network, gateway, seconds string
		on                        *rig.Namespace
	}{{"rack", rig.ServerAddress, "3600", r.nextHost(t, false)}, {"oob", "10.78.1.1", "86400", bmc}} {
		t.Run("a device on network "+c.network+" is given that network's lease", func(t *testing.T) {
			client := newClient(t, udhcpc, c.on)
			client.start(t)
			if got := client.mustAwait(t); got.Router != c.gateway || got.Seconds != c.seconds {
				t.Errorf("was given %+v, want the router %s and %s seconds", got, c.gateway, c.seconds)
			}
		})
	}
	t.Run("only the device on the bmc network is an Endpoint", func(t *testing.T) {
		const path = "endpoints/oob-5254007700b1.yaml"
		i.StatusHas(t, rig.Patience, path, rig.MAC(0xb1), "10.78.1.1")
		files := must.Get(i.Repo.ReadBranch(rig.StatusBranch))(t)
		for other := range files {
			if strings.HasPrefix(other, "endpoints/") && other != path && other != "endpoints/elsewhere.yaml" {
				t.Errorf("%s is on the status branch", other)
			}
		}
	})
	t.Run("the status branch rests when nothing happens", func(t *testing.T) {
		before := i.Repo.Head(rig.StatusBranch)
		// a denied device asks for some seconds, and nothing comes of it
		if err := refused(t, r.host(t, false, deniedMAC)); err != nil {
			t.Error(err)
		}
		if after := i.Repo.Head(rig.StatusBranch); after != before {
			log, err := i.Repo.Git("log", "-p", before+".."+after)
			t.Errorf("the status branch was written to (%v):\n%s", err, log)
		}
	})
}

func TestListenAddress(t *testing.T) {
	rig.Need(t, rig.ToolDhclient, rig.ToolDhcrelay)
	t.Parallel()
	r := newRack(t)
	r.addRelay(t)
	i := rig.NewIngot(t, r.server, `
dhcp:
- name: row4
  listen: 10.77.1.1
  role: host
  subnets:
  - {cidr: 10.77.2.0/24, ranges: [10.77.2.100-10.77.2.150], gateway: 10.77.2.1}
- name: row6
  listen: "[fd77:1::1]"
  role: host
  subnets:
  - {cidr: "fd77:2::/64", ranges: ["fd77:2::100-fd77:2::150"]}
`)
	i.Start(t)
	for _, kind := range []clientKind{udhcpc, dhclient6} {
		t.Run("a client behind a relay that sends to an address is served, "+kind.name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t, kind, r.nextHost(t, true))
			c.start(t)
			if got := c.mustAwait(t).Address; !inPool(true, got) {
				t.Errorf("was given %s, which is not of the range", got)
			}
		})
	}
	t.Run("a client on the address's own link is given nothing", func(t *testing.T) {
		t.Parallel()
		if err := refused(t, r.nextHost(t, false)); err != nil {
			t.Error(err)
		}
	})
}

func TestInterfacesThatComeAndGo(t *testing.T) {
	rig.Need(t)
	t.Parallel()
	r := newRack(t)
	r.server.IP("link", "delete", rig.BridgeName)
	i := rig.NewIngot(t, r.server, rackNetwork)
	i.Launch(t)
	appear := func() { r.server.Bridge(rig.BridgeName, rig.ServerAddress+"/24", rig.ServerAddress6+"/64") }
	saysNotReady := func(t *testing.T) {
		t.Helper()
		rig.Eventually(t, rig.Patience, func() error {
			err := i.Ready()
			if err == nil {
				return errors.New("Ingot says that it is ready, without its interface")
			}
			if !i.Process.Running() || webFails(err) {
				return err
			}
			return nil
		})
	}
	leased := func(t *testing.T) {
		t.Helper()
		i.AwaitReady(t)
		c := newClient(t, udhcpc, r.nextHost(t, false))
		c.start(t)
		c.mustAwait(t)
	}

	t.Run("an interface that is missing is waited for, and Ingot says that it is not ready", saysNotReady)
	appear()
	t.Run("an interface that appears is served", leased)
	r.server.IP("link", "delete", rig.BridgeName)
	t.Run("an interface that goes away is noticed", saysNotReady)
	appear()
	t.Run("an interface that comes back is served again", leased)
	r.server.IP("link", "set", rig.BridgeName, "down")
	t.Run("an interface that is down is noticed", saysNotReady)
	r.server.IP("link", "set", rig.BridgeName, "up")
	t.Run("an interface that is up again is served again", leased)
}

func TestStoreThatIsAway(t *testing.T) {
	rig.Need(t, rig.ToolRedis, rig.ToolDhclient)
	t.Parallel()
	r := newRack(t)
	redis := newRedis(t, r.server)
	i := rig.NewIngot(t, r.server, rackNetwork+"redis: {url: \"redis://127.0.0.1:6379/0\"}\n")
	i.Start(t)
	clients := []*client{newClient(t, udhcpc, r.nextHost(t, false)), newClient(t, dhclient6, r.nextHost(t, false))}
	var had []netip.Addr
	for _, c := range clients {
		c.start(t)
		had = append(had, c.mustAwait(t).Address)
	}
	redis.process.Kill()
	for n, c := range clients {
		t.Run("a lease is renewed while the store is away, "+c.kind.name, func(t *testing.T) {
			if got := c.renewNow(t); got.Address != had[n] {
				t.Errorf("had %s, and after the renewal %s", had[n], got.Address)
			}
		})
	}
	t.Run("a new device is given nothing while the store is away", func(t *testing.T) {
		if err := refused(t, r.nextHost(t, false)); err != nil {
			t.Error(err)
		}
	})
	redis.start(t)
	t.Run("a new device is given an address once the store is back", func(t *testing.T) {
		c := newClient(t, udhcpc, r.nextHost(t, false), "-t", "30")
		c.start(t)
		c.mustAwait(t)
	})
	t.Run("what was renewed meanwhile is still kept after a restart", func(t *testing.T) {
		i.Kill()
		i.Start(t)
		for n, c := range clients {
			if got := c.renewNow(t); got.Address != had[n] {
				t.Errorf("%s had %s, and after the restart %s", c.kind.name, had[n], got.Address)
			}
		}
	})
}

func TestPrefixesAreDelegated(t *testing.T) {
	rig.Need(t, rig.ToolDhclient, rig.ToolDhcpcd)
	t.Parallel()
	r := newRack(t)
	i := rig.NewIngot(t, r.server, `
dhcp:
- name: rack
  interface: br0
  role: host
  subnets:
  - {cidr: "fd77:1::/64", ranges: ["fd77:1::100-fd77:1::150"], delegate: {from: "fd77:100::/48", bits: 64}}
`)
	i.Start(t)
	from := netip.MustParsePrefix("fd77:100::/48")
	check := func(t *testing.T, c *client) {
		t.Parallel()
		c.start(t)
		var got lease
		rig.Eventually(t, rig.Patience, func() (err error) {
			if got.Prefix == "" {
				got, err = c.await(time.Second)
			}
			if err == nil && got.Prefix == "" {
				err = errors.New("no prefix yet")
			}
			return err
		})
		p, err := netip.ParsePrefix(got.Prefix)
		if err != nil {
			p, err = netip.ParsePrefix(got.Prefix + "/64") // dhcpcd says the length elsewhere
		}
		if err != nil || p.Bits() != 64 || !from.Contains(p.Addr()) {
			t.Errorf("was delegated %q (%v), want 64 bits of %s", got.Prefix, err, from)
		}
	}
	t.Run("dhclient -P is delegated a prefix", func(t *testing.T) {
		kind := dhclient6
		kind.command = dhclient("-6", "-P")
		check(t, newClient(t, kind, r.nextHost(t, false)))
	})
	t.Run("dhcpcd is delegated a prefix beside its address", func(t *testing.T) {
		check(t, newClient(t, dhcpcd6, r.nextHost(t, false), "ia_pd 2 -"))
	})
}

func TestPortThatIsTaken(t *testing.T) {
	rig.Need(t, rig.ToolDnsmasq)
	t.Parallel()
	r := newRack(t)
	startDnsmasq(t, r.server, "--dhcp-range=10.77.1.200,10.77.1.210,1h")
	i := rig.NewIngot(t, r.server, rackNetwork)
	i.Launch(t)
	wrote := i.Refuses(t)
	if !containsAll(wrote, "67", "in use") {
		t.Errorf("Ingot does not say that port 67 is in use:\n%s", wrote)
	}
}
