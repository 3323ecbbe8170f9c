package daemon

import (
	"net/netip"
	"testing"

	"ingot/bootsvc/dhcp"
	"ingot/cmd/daemon/config"
	"ingot/model"
)

func TestNoImageIsLookedForWhereBMCsAre(t *testing.T) {
	o := config.Default()
	o.BMC.Networks = model.BMCNetworks{{Prefix: netip.MustParsePrefix("0.0.0.0/0")}, {Prefix: netip.MustParsePrefix("10.1.0.0/16")}}
	o.DHCP = []dhcp.Network{
		{Name: "oob", Role: model.RoleBMC, Subnets: []dhcp.Subnet{{CIDR: netip.MustParsePrefix("10.2.0.0/16")}}},
		{Name: "hosts", Role: model.RoleHost, Subnets: []dhcp.Subnet{{CIDR: netip.MustParsePrefix("10.3.0.0/16")}}},
	}
	d := model.NewDesired()
	d.Endpoints["e"] = &model.Endpoint{Spec: model.EndpointSpec{IP: "10.5.0.1"}}
	d.BMCs["a"] = &model.BMC{Spec: model.BMCSpec{Access: &model.InlineEndpoint{IP: "10.4.0.1"}}}
	d.BMCs["b"] = &model.BMC{Spec: model.BMCSpec{EndpointRef: &model.LocalRef{Name: "e"}}}
	seen := model.NewObserved()
	seen.BMCs["c"] = &model.BMCRecord{Name: "c", Address: "[fd00::1]:443"}
	for name, c := range map[string]struct {
		addr string
		want bool
	}{
		"a network of BMCs":              {"10.1.2.3", true},
		"a network of BMCs' leases":      {"10.2.2.3", true},
		"a network of hosts":             {"10.3.2.3", false},
		"a BMC in Git":                   {"10.4.0.1", true},
		"a BMC by its Endpoint":          {"10.5.0.1", true},
		"a BMC that was spoken with":     {"fd00::1", true},
		"beside a BMC":                   {"10.4.0.2", false},
		"what only 0.0.0.0/0 has":        {"192.0.2.1", false},
		"a family that no network is of": {"2001:db8::1", false},
	} {
		addr := netip.MustParseAddr(c.addr)
		if got := o.MayBeBMC(addr) || atBMC(addr, d, seen); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
	if atBMC(netip.MustParseAddr("10.4.0.1"), nil, nil) {
		t.Error("before anything is known, a BMC is")
	}
}
