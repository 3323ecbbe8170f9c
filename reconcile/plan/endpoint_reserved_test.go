package plan

import (
	"testing"

	"ingot/model"
)

func TestAnEndpointWithoutMACAddressIsTheDeviceThatHasItsAddress(t *testing.T) {
	endpoint := func(name, mac, ip string) *model.Endpoint {
		return &model.Endpoint{Meta: model.Meta{Name: name}, Spec: model.EndpointSpec{MACAddress: mac, IP: ip}}
	}
	d, o := model.NewDesired(), model.NewObserved()
	for _, e := range []*model.Endpoint{
		endpoint("port-7", "", "192.0.2.7"), endpoint("port-8", "", "192.0.2.8"), endpoint("own", "02:00:00:00:00:02", "192.0.2.99"),
		endpoint("port-9", "", "192.0.2.9"),
	} {
		d.Endpoints[e.Name] = e
	}
	for mac, ip := range map[string]string{"02:00:00:00:00:01": "192.0.2.7", "02:00:00:00:00:02": "192.0.2.8"} {
		o.EndpointFacts[mac] = &model.EndpointFacts{MACAddress: mac, IP: ip}
	}
	f := &fleet{in: &Input{Desired: d, Observed: o}}
	devices := f.devices()
	if len(devices) != 2 || devices["02:00:00:00:00:01"].spec != d.Endpoints["port-7"] || devices["02:00:00:00:00:02"].spec != d.Endpoints["own"] {
		t.Errorf("got %d devices: %+v, %+v", len(devices), devices["02:00:00:00:00:01"], devices["02:00:00:00:00:02"])
	}
}
