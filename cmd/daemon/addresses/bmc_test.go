package addresses

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
		"a network of BMCs":              {addr: "10.1.2.3", want: true},
		"a network of BMCs' leases":      {addr: "10.2.2.3", want: true},
		"a network of hosts":             {addr: "10.3.2.3", want: false},
		"a BMC in Git":                   {addr: "10.4.0.1", want: true},
		"a BMC by its Endpoint":          {addr: "10.5.0.1", want: true},
		"a BMC that was spoken with":     {addr: "fd00::1", want: true},
		"beside a BMC":                   {addr: "10.4.0.2", want: false},
		"what only 0.0.0.0/0 has":        {addr: "192.0.2.1", want: false},
		"a family that no network is of": {addr: "2001:db8::1", want: false},
	} {
		addr := netip.MustParseAddr(c.addr)
		if got := o.MayBeBMC(addr) || IsBMC(addr, d, seen); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
	if IsBMC(netip.MustParseAddr("10.4.0.1"), nil, nil) {
		t.Error("before anything is known, a BMC is")
	}
}
