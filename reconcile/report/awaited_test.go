package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/plan"
)

func TestAnEndpointWithoutMACAddressSaysWhatItWaitsFor(t *testing.T) {
	endpoint := func(name, mac, ip string, annotations map[string]string) *model.Endpoint {
		return &model.Endpoint{Meta: model.Meta{Name: name, Source: name + ".yaml:1", Annotations: annotations}, Spec: model.EndpointSpec{MACAddress: mac, IP: ip}}
	}
	d, o := model.NewDesired(), model.NewObserved()
	for _, e := range []*model.Endpoint{
		endpoint("port", "", "192.0.2.7", map[string]string{model.AnnotationCircuitID: "Eth1/7", model.AnnotationRemoteID: "leafA"}),
		endpoint("client", "", "192.0.2.8", map[string]string{model.AnnotationClientID: "01:02:00:00:00:00:08"}),
		endpoint("held", "", "192.0.2.9", map[string]string{model.AnnotationCircuitID: "Eth1/9"}),
		endpoint("twice", "", "192.0.2.10", map[string]string{model.AnnotationRemoteID: "leafB"}),
		endpoint("mac", "02:00:00:00:00:0b", "192.0.2.11", nil),
	} {
		d.Endpoints[e.Name] = e
	}
	for _, facts := range []*model.EndpointFacts{
		{MACAddress: "02:00:00:00:00:09", IP: "192.0.2.9"}, {MACAddress: "02:00:00:00:00:0a", IP: "192.0.2.10", Reserved: "twice"},
	} {
		o.EndpointFacts[facts.MACAddress] = facts
	}
	const look = "check that the device has power and link, and that its port or client identifier is the one in the manifest"
	for name, want := range map[string]Explanation{
		"port":   {Why: "waits for a device on circuit Eth1/7, remote leafA", Actor: "rack operator", Next: look},
		"client": {Why: "waits for the device with client identifier 01:02:00:00:00:00:08", Actor: "rack operator", Next: look},
		"held": {
			Why:  "waits for a device on circuit Eth1/9; device 02:00:00:00:00:09 had the address 192.0.2.9 before it was reserved, and keeps it until its lease ends",
			Next: goesOn,
		},
		"twice": {
			Why:   "device 02:00:00:00:00:0a has its address, and another Endpoint in Git is for that device by its MAC address",
			Actor: "rack operator", Next: "remove one of the two Endpoints",
		},
	} {
		want.Kind, want.Name = "endpoint", name
		want.Facts = []Fact{{"reserved address", d.Endpoints[name].Spec.IP}, {"manifest", name + ".yaml:1"}}
		got, ok := ExplainAwaited(&plan.Input{Desired: d, Observed: o}, name)
		if diff := cmp.Diff(want, got); !ok || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, ok, diff)
		}
	}
	for _, name := range []string{"mac", "unknown"} {
		if got, ok := ExplainAwaited(&plan.Input{Desired: d, Observed: o}, name); ok {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}
