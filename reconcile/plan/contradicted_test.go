package plan

import (
	"testing"

	"ingot/model"
)

// A BMC is the same one by whatever name Git and Ingot have it.
func TestWhichBMCsAreTwo(t *testing.T) {
	device := &endpointView{name: "e"}
	view := func(address string, device *endpointView) *bmcView {
		return &bmcView{spec: &model.BMC{}, target: model.BMCTarget{Address: address}, endpoint: device}
	}
	for name, tt := range map[string]struct {
		said, is *bmcView
		want     bool
	}{
		"at two addresses":                    {view("192.0.2.1:443", nil), view("192.0.2.2:443", nil), true},
		"of two ports":                        {view("192.0.2.1:443", nil), view("192.0.2.1:444", nil), true},
		"at one address":                      {view("192.0.2.1:443", nil), view("192.0.2.1:443", nil), false},
		"without addresses":                   {view("", nil), view("", nil), true},
		"of one device":                       {view("", device), view("192.0.2.1:443", device), false},
		"of which nobody knows one":           {nil, view("192.0.2.1:443", nil), false},
		"of which one's address is not known": {view("", nil), view("192.0.2.1:443", device), true},
	} {
		tt.is.name = "is"
		bmcs := []*bmcView{tt.is}
		if tt.said != nil {
			tt.said.name = "said"
			bmcs = append(bmcs, tt.said)
		}
		f := withBMCs(new(fleet), bmcs...)
		if got := f.areTwo("said", "is"); got != tt.want {
			t.Errorf("BMCs %s: %v, want %v", name, got, tt.want)
		}
	}
}

// Of two machines with one UUID in both byte orders, a manifest is of the one that has no other.
func TestAManifestIsOfTheMachineWithoutAnother(t *testing.T) {
	const uuid, swapped = "4c4c4544-0042-3010-8057-b5c04f4e3532", "44454c4c-4200-1030-8057-b5c04f4e3532"
	d := model.NewDesired()
	d.Add(&model.Server{Meta: model.Meta{Name: "a"}})
	for _, said := range []string{uuid, swapped} {
		d.Add(&model.Server{Meta: model.Meta{Name: "x"}, Spec: model.ServerSpec{SystemUUID: said}})
		f := &fleet{in: &Input{Desired: d}, memory: new(Memory), aliases: make(map[string]model.ServerName)}
		specs := f.matchSpecs(map[model.ServerName]*model.ServerRecord{"a": {RecordIdentity: model.RecordIdentity{Name: "a", UUID: uuid}}, "b": {RecordIdentity: model.RecordIdentity{Name: "b", UUID: swapped}}})
		if specs["b"] != d.Servers["x"] || f.aliases["x"] != "b" {
			t.Errorf("with UUID %s it is of %v", said, f.aliases)
		}
	}
}

// A manifest by the UUID of two machines is that of the first by name, in each plan.
func TestAManifestOfTwoMachinesIsOfTheFirst(t *testing.T) {
	const uuid = "00000000-0000-4000-8000-000000000001"
	d := model.NewDesired()
	d.Add(&model.Server{Meta: model.Meta{Name: "x"}, Spec: model.ServerSpec{SystemUUID: uuid}})
	for range 20 {
		f := &fleet{in: &Input{Desired: d}, memory: new(Memory), aliases: make(map[string]model.ServerName)}
		f.matchSpecs(map[model.ServerName]*model.ServerRecord{"a": {RecordIdentity: model.RecordIdentity{Name: "a", UUID: uuid}}, "b": {RecordIdentity: model.RecordIdentity{Name: "b", UUID: uuid}}, "c": {RecordIdentity: model.RecordIdentity{Name: "c", UUID: uuid}}})
		if f.aliases["x"] != "a" {
			t.Fatalf("it is of %v", f.aliases)
		}
	}
}
