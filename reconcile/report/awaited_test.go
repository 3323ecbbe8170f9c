package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
	"ingot/reconcile/plan"
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
	r := NewProjector().Report(in, plan.Plan(in), 1, model.Holder{})
	const look = "check that the device has power and link, and that its port or client identifier is the one in the manifest"
	for name, want := range map[string]Glance{
		"port":   {State: "Awaited", Why: "no lease yet for a device on circuit Eth1/7, remote leafA", Actor: "rack operator"},
		"client": {State: "Awaited", Why: "no lease yet for the device with client identifier 01:02:00:00:00:00:08", Actor: "rack operator"},
		"held": {
			State: "Awaited", Since: leased, WhySince: leased,
			Why: "no lease yet for a device on circuit Eth1/9; device 02:00:00:00:00:09 had the address 192.0.2.9 before it was reserved, and keeps it until its lease ends",
		},
		"twice": {
			State: "Awaited", Since: leased, WhySince: leased, Actor: "rack operator",
			Why: "device 02:00:00:00:00:0a has its address, and another Endpoint in Git is for that device by its MAC address",
		},
	} {
		want.Name = name
		doc := r.Documents["endpoints/"+name+".yaml"]
		if doc == nil {
			t.Fatalf("the report has nothing of %s", name)
		}
		if got, _ := GlanceOf(doc.Object.(*Document)); !cmp.Equal(want, got) {
			t.Errorf("(-want +got):\n%s", cmp.Diff(want, got))
		}
		explained, err := Explain(r, "endpoint", name)
		next := map[string]string{"held": goesOn, "twice": "remove one of the two Endpoints"}[name]
		if next == "" {
			next = look
		}
		wantExplained := Explanation{
			Kind: "endpoint", Name: name, Why: want.Why, Actor: want.Actor, Next: next, Conditions: explained.Conditions,
			Facts: []Fact{{"reserved address", d.Endpoints[name].Spec.IP}},
		}
		if diff := cmp.Diff(wantExplained, explained); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	for _, name := range []string{"mac", "found"} {
		if got, _ := GlanceOf(r.Documents["endpoints/"+name+".yaml"].Object.(*Document)); got.State != string(EndpointUnrecognised) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	const ofBMC = "Endpoint port: no lease yet for a device on circuit Eth1/7, remote leafA (to act: rack operator)"
	bmc := r.Documents["bmcs/b1.yaml"].Object.(*Document).Status.(BMCStatus)
	if ready := conditions(bmc.Conditions).of(typeReady); ready.Reason != model.ReasonAwaitingDevice || ready.Message != ofBMC || ready.Status != metav1.ConditionFalse {
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
