package report

import (
	"cmp"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/plan/world"
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
		endpoint("mac", "02:00:00:00:00:0a", "192.0.2.11", nil),
		endpoint("found", "", "192.0.2.12", map[string]string{model.AnnotationRemoteID: "leafC"}),
	} {
		d.Endpoints[e.Name] = e
	}
	d.BMCs["b1"] = &model.BMC{Meta: model.Meta{Name: "b1"}, Spec: model.BMCSpec{EndpointRef: &model.LocalRef{Name: "port"}}}
	leased := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, facts := range []*model.EndpointFacts{
		{MACAddress: "02:00:00:00:00:09", IP: "192.0.2.9", Since: leased}, {MACAddress: "02:00:00:00:00:0a", IP: "192.0.2.10", Reserved: "twice", Since: leased},
		{MACAddress: "02:00:00:00:00:0c", IP: "192.0.2.12", Reserved: "found", Since: leased},
	} {
		o.EndpointFacts[facts.MACAddress] = facts
	}
	in := &world.Input{Desired: d, Observed: o, Now: leased}
	docs := documentsOf(in)
	const check = "check that the device has power and link, and that its port or client identifier is the one in the manifest"
	for name, want := range map[string]Waiting{
		"port":   {Message: "no lease yet for a device on circuit Eth1/7, remote leafA", Actor: proposal.RackOperator, Next: check},
		"client": {Message: "no lease yet for the device with client identifier 01:02:00:00:00:00:08", Actor: proposal.RackOperator, Next: check},
		"held": {
			Reason: model.ReasonAddressStillLeased, Since: leased,
			Message: "no lease yet for a device on circuit Eth1/9; device 02:00:00:00:00:09 had the address 192.0.2.9 before it was reserved, and keeps it until its lease ends",
		},
		"twice": {
			Reason: model.ReasonDeviceInGitTwice, Since: leased, Actor: proposal.RackOperator, Next: "remove one of the two Endpoints",
			Message: "device 02:00:00:00:00:0a has its address, and another Endpoint in Git is for that device by its MAC address",
		},
	} {
		want.Reason = cmp.Or(want.Reason, model.ReasonAwaitingDevice)
		ip := d.Endpoints[name].Spec.IP
		overview := Overview{[]Waiting{want}, Summary{State: EndpointAwaited, Since: want.Since, Addresses: []string{ip}}}
		doc := docs.Get(Endpoints, name)
		if diff := gocmp.Diff(overview, doc.Overview()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := gocmp.Diff([]Fact{{Name: "reserved address", Value: ip}}, docs.Facts(doc)); diff != "" {
			t.Errorf("facts of %s (-want +got):\n%s", name, diff)
		}
	}
	for _, name := range []string{"mac", "found"} {
		if got := docs.Get(Endpoints, name).Overview().Summary.State; got != EndpointUnrecognised {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	const ofBMC = "Endpoint port: no lease yet for a device on circuit Eth1/7, remote leafA (to act: rack operator)"
	if ready := conditions(docs.Get(BMCs, "b1").Conditions()).of(typeReady); ready.Reason != model.ReasonAwaitingDevice || ready.Message != ofBMC || ready.Status != metav1.ConditionFalse {
		t.Errorf("its BMC: got %+v", ready)
	}
}

func TestADeviceThatWasAwaitedIsNews(t *testing.T) {
	awaited := &Document{Spec: EndpointSpec{IP: "192.0.2.7"}, Status: EndpointStatus{Conditions: []metav1.Condition{
		{Type: typeRecognised, Status: metav1.ConditionFalse, Reason: model.ReasonAwaitingDevice},
	}}}
	found := &Document{Spec: EndpointSpec{MACAddress: "02:00:00:00:00:07", IP: "192.0.2.7"}, Status: EndpointStatus{}}
	for _, tt := range []struct {
		old, now *Document
		want     string
	}{
		{&Document{}, awaited, model.ReasonAwaitingDevice}, {awaited, found, "at 192.0.2.7"}, {found, awaited, model.ReasonAwaitingDevice},
	} {
		if got := endpointOutcome(tt.old, tt.now); got.text != tt.want {
			t.Errorf("got %q, want %q", got.text, tt.want)
		}
	}
}
