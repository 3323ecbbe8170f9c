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
	for _, facts := range []*model.EndpointFacts{
		{MACAddress: "02:00:00:00:00:01", IP: "192.0.2.7", Reserved: "port-7"}, {MACAddress: "02:00:00:00:00:02", IP: "192.0.2.8", Reserved: "port-8"},
		{MACAddress: "02:00:00:00:00:03", IP: "192.0.2.9"}, // had it before it was reserved
	} {
		o.EndpointFacts[facts.MACAddress] = facts
	}
	f := &fleet{in: &Input{Desired: d, Observed: o}, holders: holdersOf(o.EndpointFacts)}
	devices := f.devices()
	if len(devices) != 3 || devices["02:00:00:00:00:03"].spec != nil || devices["02:00:00:00:00:01"].spec != d.Endpoints["port-7"] || devices["02:00:00:00:00:02"].spec != d.Endpoints["own"] {
		t.Errorf("got %d devices: %+v, %+v", len(devices), devices["02:00:00:00:00:01"], devices["02:00:00:00:00:02"])
	}
}
