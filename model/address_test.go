package model

import (
	"net/netip"
	"testing"
)

func TestOneClientHasAllAddressesOfItsNetwork(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.7": "192.0.2.7", "::ffff:192.0.2.7": "192.0.2.7", "::1": "::1",
		"2001:db8:0:1:a:b:c:d": "2001:db8:0:1::", "2001:db8:0:1::1": "2001:db8:0:1::", "fe80::1%eth0": "fe80::",
	} {
		if got := OneClient(netip.MustParseAddr(addr)); got.String() != want {
			t.Errorf("%s: got %s, want %s", addr, got, want)
		}
	}
	if got := OneClient(netip.Addr{}); got.IsValid() {
		t.Errorf("nobody: got %s", got)
	}
}
