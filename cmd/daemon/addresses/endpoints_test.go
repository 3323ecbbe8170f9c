package addresses

import (
	"net/netip"
	"testing"

	"ingot/model"
)

func TestEndpointsAreEvidence(t *testing.T) {
	endpoint := func(mac, ip string) *model.Endpoint {
		return &model.Endpoint{Spec: model.EndpointSpec{MACAddress: mac, IP: ip}}
	}
	d := &model.Desired{Endpoints: map[string]*model.Endpoint{
		"a": endpoint("m1", "10.0.0.1"), "b": endpoint("m2", "10.0.0.2"), "c": endpoint("m3", "10.0.0.2"),
		"d": endpoint("m4", "10.0.0.4"), "e": endpoint("m4", "10.0.0.4"), "f": endpoint("m5", ""),
	}}
	e := &Endpoints{Desired: func() *model.Desired { return d }}
	for ip, want := range map[string]string{"10.0.0.1": "m1", "10.0.0.2": "", "10.0.0.4": "m4", "10.0.0.9": ""} {
		if mac, ok := e.Holder(netip.MustParseAddr(ip)); mac != want || ok != (want != "") {
			t.Errorf("%s: %q, %v, want %q", ip, mac, ok, want)
		}
	}
	d = nil // before Git was read
	if mac, ok := e.Holder(netip.MustParseAddr("10.0.0.1")); ok {
		t.Errorf("%q is known before Git was read", mac)
	}
}
