package neighbour

import (
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"ingot/bootsvc/internal/netnstest"
)

// inNamespace runs a test in a network namespace of its own, with a link whose
// neighbours are what the test says.
func inNamespace(t *testing.T, test func(ip func(args ...string))) {
	t.Helper()
	netnstest.Run(t, [][]string{
		{"link", "set", "lo", "up"},
		{"link", "add", "rack", "type", "veth", "peer", "name", "far"},
		{"address", "add", "192.0.2.1/24", "dev", "rack"},
		{"-6", "address", "add", "2001:db8::1/64", "dev", "rack", "nodad"},
		{"link", "set", "far", "up"},
		{"link", "set", "rack", "up"},
	}, test)
}

const (
	own   = "02:00:00:00:00:01"
	other = "02:00:00:00:00:02"
)

func TestWhoIsAtAnAddress(t *testing.T) {
	inNamespace(t, func(ip func(args ...string)) {
		ip("route", "add", "198.51.100.0/24", "via", "192.0.2.254")
		ip("link", "add", "tunnel", "arp", "off", "type", "veth", "peer", "name", "end")
		ip("address", "add", "203.0.113.1/24", "dev", "tunnel")
		ip("link", "set", "end", "up")
		ip("link", "set", "tunnel", "up", "arp", "off")
		for _, state := range []string{"permanent", "reachable", "stale", "delay", "probe"} {
			ip("neighbour", "replace", address[state], "lladdr", own, "dev", "rack", "nud", state)
		}
		ip("neighbour", "replace", "192.0.2.20", "lladdr", own, "dev", "rack", "nud", "failed")
		ip("neighbour", "replace", "192.0.2.254", "lladdr", own, "dev", "rack", "nud", "permanent")
		ip("neighbour", "replace", "2001:db8::9", "lladdr", own, "dev", "rack", "nud", "stale")
		ip("neighbour", "replace", "fe80::9", "lladdr", own, "dev", "rack", "nud", "stale")
		ip("neighbour", "add", "proxy", "192.0.2.30", "dev", "rack")
		table, err := Open()
		if err != nil {
			t.Error(err)
			return
		}
		defer table.Close()
		neighbour := Neighbour{OnLink: true, MAC: own}
		for addr, want := range map[string]Neighbour{
			address["permanent"]: neighbour, address["reachable"]: neighbour, address["stale"]: neighbour,
			address["delay"]: neighbour, address["probe"]: neighbour,
			"::ffff:192.0.2.10": neighbour,
			"2001:db8::9":       neighbour, "fe80::9%rack": neighbour,
			"192.0.2.20":   {OnLink: true}, // failed
			"192.0.2.30":   {OnLink: true}, // we are its proxy
			"192.0.2.99":   {OnLink: true}, // nobody
			"fe80::8%rack": {OnLink: true},
			"192.0.2.1":    {}, // we
			"127.0.0.1":    {},
			"::1":          {},
			"198.51.100.7": {}, // behind a router, whose address it is not
			"203.0.113.9":  {}, // on a link without ARP, as tunnels are
			"8.8.8.8":      {}, // there is no way
		} {
			got, err := table.At(netip.MustParseAddr(addr))
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%s: %v (-want +got):\n%s", addr, err, diff)
			}
		}
		if _, err := table.At(netip.MustParseAddr("fe80::9%nowhere")); err == nil {
			t.Error("an interface that is not there has neighbours")
		}
		// on each link another machine may have it
		if got, err := table.At(netip.MustParseAddr("fe80::9")); err == nil {
			t.Errorf("a link-local address of no link is taken to be that of %+v", got)
		}
	})
}

// Firmware does not answer while it starts a boot loader, which opens a connection next.
func TestWhoDidNotAnswerIsAskedAgain(t *testing.T) {
	inNamespace(t, func(ip func(args ...string)) {
		// what the far end of the link answers for
		for setting, value := range map[string]string{
			"conf/all/forwarding": "1", "conf/far/accept_local": "1", "conf/all/rp_filter": "0", "conf/far/rp_filter": "0",
			"neigh/far/proxy_delay": "0",
		} {
			if err := os.WriteFile("/proc/sys/net/ipv4/"+setting, []byte(value), 0o644); err != nil {
				t.Error(err)
			}
		}
		ip("link", "set", "far", "address", own)
		ip("neighbour", "add", "proxy", "192.0.2.40", "dev", "far")
		ip("neighbour", "replace", "192.0.2.40", "lladdr", other, "dev", "rack", "nud", "failed")
		table, err := Open()
		if err != nil {
			t.Error(err)
			return
		}
		defer table.Close()
		if got, err := table.Known(netip.MustParseAddr("192.0.2.40")); err != nil || !cmp.Equal(got, Neighbour{OnLink: true}) {
			t.Errorf("who must not wait is told %+v, %v", got, err)
		}
		want := Neighbour{OnLink: true, MAC: own}
		if got, err := table.At(netip.MustParseAddr("192.0.2.40")); err != nil || !cmp.Equal(got, want) {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	})
}

var address = map[string]string{
	"permanent": "192.0.2.10", "reachable": "192.0.2.11", "stale": "192.0.2.12", "delay": "192.0.2.13", "probe": "192.0.2.14",
}

func TestChangesAreSeen(t *testing.T) {
	at := netip.MustParseAddr("192.0.2.9")
	for title, tc := range map[string]struct {
		change func(ip func(args ...string))
		want   Neighbour
	}{
		"to another and back": {func(ip func(args ...string)) {
			ip("neighbour", "replace", "192.0.2.9", "lladdr", other, "dev", "rack", "nud", "reachable")
			ip("neighbour", "replace", "192.0.2.9", "lladdr", own, "dev", "rack", "nud", "stale")
		}, Neighbour{OnLink: true, MAC: own, Previous: []string{other}}},
		"to another": {func(ip func(args ...string)) {
			ip("neighbour", "replace", "192.0.2.9", "lladdr", other, "dev", "rack", "nud", "reachable")
		}, Neighbour{OnLink: true, MAC: other, Previous: []string{own}}},
		"by way of nobody": {func(ip func(args ...string)) {
			ip("neighbour", "delete", "192.0.2.9", "dev", "rack")
			ip("neighbour", "replace", "192.0.2.9", "lladdr", other, "dev", "rack", "nud", "reachable")
		}, Neighbour{OnLink: true, MAC: other, Previous: []string{own}}},
		"of its state alone": {func(ip func(args ...string)) {
			ip("neighbour", "replace", "192.0.2.9", "lladdr", own, "dev", "rack", "nud", "reachable")
		}, Neighbour{OnLink: true, MAC: own}},
	} {
		t.Run(title, func(t *testing.T) {
			inNamespace(t, func(ip func(args ...string)) {
				ip("neighbour", "add", "192.0.2.9", "lladdr", own, "dev", "rack", "nud", "stale") // before anybody hears
				table, err := Open()
				if err != nil {
					t.Error(err)
					return
				}
				defer table.Close()
				tc.change(ip)
				got, err := table.At(at)
				if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
					t.Errorf("%v (-want +got):\n%s", err, diff)
				}
			})
		})
	}
}

func TestLostChangesAreTold(t *testing.T) {
	inNamespace(t, func(ip func(args ...string)) {
		table, err := Open()
		if err != nil {
			t.Error(err)
			return
		}
		defer table.Close()
		// the kernel doubles it and has a least size
		if err := unix.SetsockoptInt(table.changes, unix.SOL_SOCKET, unix.SO_RCVBUF, 1); err != nil {
			t.Error(err)
		}
		for range 40 {
			ip("neighbour", "replace", "192.0.2.9", "lladdr", other, "dev", "rack", "nud", "reachable")
			ip("neighbour", "replace", "192.0.2.9", "lladdr", own, "dev", "rack", "nud", "reachable")
		}
		got, err := table.At(netip.MustParseAddr("192.0.2.9"))
		if err != nil || !got.Lost {
			t.Errorf("%+v, %v, want that changes were lost", got, err)
		}
		table.clock = func() time.Time { return time.Now().Add(2 * Memory) }
		if got, err = table.At(netip.MustParseAddr("192.0.2.9")); err != nil || got.Lost {
			t.Errorf("%+v, %v, long after", got, err)
		}
	})
}
