package links

import (
	"net"
	"net/netip"
	"slices"
	"testing"

	"ingot/bootsvc/internal/netnstest"
)

func TestInterfacesAreReadAsTheyAre(t *testing.T) {
	netnstest.Run(t, [][]string{
		{"link", "set", "lo", "up"},
		{"link", "add", "rack", "address", "02:00:00:00:00:01", "type", "veth", "peer", "name", "far"},
		{"link", "set", "rack", "up"},
		{"address", "add", "192.0.2.1/24", "dev", "rack"},
		{"address", "add", "198.51.100.1/25", "dev", "rack"},
		{"address", "add", "10.0.0.1", "peer", "10.0.0.2/32", "dev", "rack"},
		{"address", "add", "fd00::1/64", "dev", "rack", "nodad"},
		{"address", "add", "fd01::1", "peer", "fd01::2/64", "dev", "rack", "nodad"},
	}, func(ip func(...string)) {
		all, err := Read()
		if err != nil {
			t.Error(err)
			return
		}
		names, err := net.Interfaces()
		if err != nil || len(names) != len(all) {
			t.Errorf("%d of %d interfaces, %v", len(all), len(names), err)
		}
		for _, want := range names {
			got := all[want.Name]
			if got.Index != want.Index || got.Flags != want.Flags || got.HardwareAddr.String() != want.HardwareAddr.String() {
				t.Errorf("got %+v, want %+v", got, want)
			}
			addresses, err := want.Addrs()
			if err != nil {
				t.Error(err)
			}
			var prefixes []netip.Prefix
			for _, a := range addresses {
				prefixes = append(prefixes, netip.MustParsePrefix(a.String()))
			}
			if !slices.Equal(got.Addresses, prefixes) {
				t.Errorf("%s has %v, want %v", want.Name, got.Addresses, prefixes)
			}
		}
	})
}
