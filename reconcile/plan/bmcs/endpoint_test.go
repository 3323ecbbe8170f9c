package bmcs

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/reconcile/internal/fleettest"
	"ingot/reconcile/plan/policy"
)

// inputOf is an input with these manifests, and devices that DHCP found.
func inputOf(objects []model.Object, devices ...model.EndpointFacts) *Input {
	p := policy.Default()
	in := &Input{Desired: model.NewDesired(), Observed: model.NewObserved(), Policy: &p, Now: settleNow}
	for _, o := range objects {
		in.Desired.Add(o)
	}
	for _, facts := range devices {
		in.Observed.EndpointFacts[facts.MACAddress] = &facts
	}
	return in
}

// addresses are the MAC and IP address of each endpoint by name.
func addresses(in *Input) map[string][2]string {
	all := make(map[string][2]string)
	for _, e := range Load(in).Endpoints() {
		all[e.Name] = [2]string{e.MAC, e.IP}
	}
	return all
}

func TestLastDeviceToGetAnAddressHasIt(t *testing.T) {
	const a, b, c, d, e = "02:00:00:00:00:01", "02:00:00:00:00:02", "02:00:00:00:00:03", "02:00:00:00:00:04", "02:00:00:00:00:05"
	want := map[string][2]string{
		"oob-020000000001": {a, ""}, "oob-020000000002": {b, "10.0.0.1"}, "oob-020000000003": {c, ""},
		"oob-020000000004": {d, "10.0.0.2"}, "oob-020000000005": {e, ""},
	}
	device := func(mac, ip string, since time.Time) model.EndpointFacts {
		return model.EndpointFacts{MACAddress: mac, IP: ip, Network: "oob", Since: since}
	}
	for range 20 { // the order of a map is random
		got := addresses(inputOf(nil, device(a, "10.0.0.1", plannedAt), device(b, "10.0.0.1", settleNow), device(c, "", plannedAt),
			device(d, "10.0.0.2", plannedAt), device(e, "10.0.0.2", plannedAt)))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	}
}

func TestEndpointByReservedAddress(t *testing.T) {
	endpoint := func(name, mac, ip string) model.Object {
		return &model.Endpoint{Meta: model.Meta{Name: name}, Spec: model.EndpointSpec{MACAddress: mac, IP: ip}}
	}
	in := inputOf([]model.Object{
		endpoint("port-7", "", "192.0.2.7"), endpoint("port-8", "", "192.0.2.8"), endpoint("port-9", "", "192.0.2.9"),
		endpoint("own", "02:00:00:00:00:02", "192.0.2.99"),
	}, model.EndpointFacts{MACAddress: "02:00:00:00:00:01", IP: "192.0.2.7", Reserved: "port-7"},
		model.EndpointFacts{MACAddress: "02:00:00:00:00:02", IP: "192.0.2.8", Reserved: "port-8"},
		model.EndpointFacts{MACAddress: "02:00:00:00:00:03", IP: "192.0.2.9"}) // had it before the reservation
	want := map[string][2]string{
		"port-7": {"02:00:00:00:00:01", "192.0.2.7"}, "port-8": {"", "192.0.2.8"}, "port-9": {"", "192.0.2.9"},
		"own": {"02:00:00:00:00:02", "192.0.2.8"}, "endpoint-020000000003": {"02:00:00:00:00:03", "192.0.2.9"},
	}
	if diff := cmp.Diff(want, addresses(in)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSecretOfFoundBMC(t *testing.T) {
	in := inputOf(nil)
	in.Policy.Tenants = fleettest.Tenants
	for tenant, want := range map[string]bool{"ops": true, "beta": true, "gamma": false, "": false} {
		in.Desired.Add(&model.BMCSecret{Meta: model.Meta{Name: "bmc-1", Tenant: tenant}})
		if got := in.foundSecret("bmc-1"); (got != nil) != want {
			t.Errorf("of %q: got %v", tenant, got)
		}
	}
	in.Policy.Tenants = nil
	if in.foundSecret("bmc-1") == nil || in.foundSecret("bmc-2") != nil {
		t.Error("without tenants it is not the one of its name")
	}
}

// A BMC that shows a UUID one day, as after an update of its firmware, has to show the one
// that Git gave its machine.
func TestMachineThatShowsItsUUIDLater(t *testing.T) {
	rec := &model.ServerRecord{RecordIdentity: model.RecordIdentity{SystemURI: "/1", UUID: fleettest.GivenUUID, Board: &model.Board{SerialNumber: "S1"}}}
	for uuid, want := range map[string]Place{fleettest.GivenUUID: ShownItself, "00000000-0000-4000-8000-00000000000b": ShownOther} {
		facts := &model.BMCFacts{Systems: []model.SystemFact{{URI: "/1", UUID: uuid}}}
		if got := ShownAs(facts, rec); got != want {
			t.Errorf("one that shows %s is taken for %d, want %d", uuid, got, want)
		}
	}
}
