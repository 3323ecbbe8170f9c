package lab

import (
	"fmt"
	"strings"
	"testing"

	"ingot/features/internal/rig"
)

const routedNetwork = `
dhcp:
- name: rack
  interface: br0
  role: host
  subnets: [{cidr: "fd77:1::/64", range: "fd77:1::100-fd77:1::150"}]
  routerAdvertisements:
    managed: true
    routerLifetime: 30m
    mtu: 1400
    prefixes: [{prefix: "fd77:1::/64", onLink: true}, {prefix: "fd77:9::/64", autonomous: true}]
    dns: ["fd77:1::53"]
`

func TestRoutersAreAdvertised(t *testing.T) {
	rig.Need(t, rig.ToolRadvd)
	t.Parallel()
	r := newRack(t)
	r.server.Setting("net/ipv6/conf/all/forwarding", "1")
	i := rig.NewIngot(t, r.server, routedNetwork)
	i.Start(t) // without anybody on it the link has no carrier, and Ingot no address to send from: it is ready all the same
	if said := i.Process.Output.String(); !strings.Contains(said, "router advertisements wait for a carrier") {
		t.Errorf("it does not wait for a carrier:\n%s", said)
	}
	host := r.nextHost(t, false)
	host.IP("-6", "route", "flush", "dev", device, "proto", "boot") // what the lab has routed
	host.Setting("net/ipv6/conf/"+device+"/accept_ra", "1")
	host.IP("link", "set", device, "down")
	host.IP("link", "set", device, "up") // it solicits now
	links, err := r.server.Run(t, rig.Patience, "ip", "-6", "-o", "address", "show", "dev", rig.BridgeName, "scope", "link")
	router, _, found := strings.Cut(links[strings.Index(links, "fe80:"):], "/")
	if err != nil || !found {
		t.Fatalf("Ingot's machine has no link-local address: %v: %s", err, links)
	}
	ip := func(t *testing.T, args ...string) string {
		t.Helper()
		out, err := host.Run(t, rig.Patience, append([]string{"ip", "-6"}, args...)...)
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return out
	}
	shows := func(t *testing.T, want []string, args ...string) {
		t.Helper()
		rig.Eventually(t, rig.Patience, func() error {
			if out := ip(t, args...); !containsAll(out, want...) {
				return fmt.Errorf("ip -6 %s has not %q:\n%s", strings.Join(args, " "), want, out)
			}
			return nil
		})
	}
	t.Run("a machine that solicits makes itself an address of an autonomous prefix, and of no other", func(t *testing.T) {
		shows(t, []string{"fd77:9::5054:ff:fe77:1/64"}, "address", "show", "dev", device)
		if out := ip(t, "address", "show", "dev", device); strings.Contains(out, "fd77:1:") {
			t.Errorf("it has an address of the prefix that is only on the link:\n%s", out)
		}
	})
	t.Run("it routes by Ingot's machine, and to the prefix that is on the link", func(t *testing.T) {
		shows(t, []string{"default via " + router, "fd77:1::/64 proto kernel"}, "route", "show", "dev", device)
		if out, err := host.Run(t, rig.Patience, "cat", "/proc/sys/net/ipv6/conf/"+device+"/mtu"); strings.TrimSpace(out) != "1400" {
			t.Errorf("its MTU is %s (%v)", out, err)
		}
	})
	t.Run("another router that says otherwise is counted and warned of", func(t *testing.T) {
		r.other(t).StartRadvd(t, "fd77:1::/64", false)
		rig.Eventually(t, rig.Patience, func() error {
			lines, err := i.Metric("ingot_router_advertisements_contradicting_total")
			if err == nil && !strings.Contains(lines, `network="rack"`) || strings.Contains(lines, `"} 0`) {
				err = fmt.Errorf("none is counted:\n%s", lines)
			}
			return err
		})
		if said := i.Process.Output.String(); strings.Count(said, "another router contradicts") != 1 {
			t.Errorf("it is not warned of once")
		}
	})
	t.Run("the router is gone when Ingot ends", func(t *testing.T) {
		shows(t, []string{"via " + router + " "}, "route", "show", "default")
		i.Stop(t)
		rig.Eventually(t, rig.Patience, func() error {
			if out := ip(t, "route", "show", "default"); strings.Contains(out, "via "+router+" ") {
				return fmt.Errorf("it still is:\n%s", out)
			}
			return nil
		})
	})
}
