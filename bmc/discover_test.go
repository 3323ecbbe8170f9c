package bmc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/model/must"
)

func expandQuery(f *fake) object {
	return f.resources["/redfish/v1/"]["ProtocolFeaturesSupported"].(object)["ExpandQuery"].(object)
}

func refuseQuery(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.RawQuery == "" {
		return false
	}
	fail(w, http.StatusNotImplemented, "Base.1.0.QueryNotSupported")
	return true
}

func TestDiscoverFindsMachines(t *testing.T) {
	reset := object{"#ComputerSystem.Reset": object{"target": "/reset"}}
	sys := func(uri string, with object) object {
		o := object{"@odata.id": uri, "@odata.type": "#ComputerSystem", "SystemType": "Physical", "Actions": reset, "PowerState": "On",
			"UUID": "1e90aa6e-6d05-9589-2253-ce7672d02d26"}
		maps.Copy(o, with)
		return o
	}
	const uuid = "1e90aa6e-6d05-9589-2253-ce7672d02d26"
	tests := map[string]struct {
		members []any
		want    []model.SystemFact
		others  []string
		problem string
	}{
		"two systems under one BMC are sorted by their URI (B20)": {
			members: []any{sys("/s/b", nil), sys("/s/a", object{"UUID": "1E90AA6E-6D05-9589-2253-CE7672D02D27"})},
			want: []model.SystemFact{
				{URI: "/s/a", UUID: "1e90aa6e-6d05-9589-2253-ce7672d02d27", Power: "On"},
				{URI: "/s/b", UUID: uuid, Power: "On"},
			},
		},
		"a GPU baseboard that cannot be reset is no machine (B21)": {
			members: []any{sys("/s/0", nil), sys("/s/HGX_Baseboard_0", object{"Actions": object{}})},
			want:    []model.SystemFact{{URI: "/s/0", UUID: uuid, Power: "On"}},
			others:  []string{"/s/HGX_Baseboard_0 is no server: it cannot be reset"},
		},
		"a DPU and a virtual machine are no machines (B21)": {
			members: []any{sys("/s/vm", object{"SystemType": "Virtual"}), sys("/s/dpu", object{"SystemType": "DPU", "Actions": nil})},
			others:  []string{"/s/dpu is no server: it is a DPU", "/s/vm is no server: it is a virtual machine"},
			problem: "none of the systems that the BMC shows is a server: /s/dpu is no server: it is a DPU; /s/vm is no server: it is a virtual machine",
		},
		"a DPU that calls itself a physical system is no machine": {
			members: []any{sys("/s/0", nil), sys("/s/dpu", object{"Model": "BlueField-3 SmartNIC Main Card"})},
			want:    []model.SystemFact{{URI: "/s/0", UUID: uuid, Power: "On"}},
			others:  []string{"/s/dpu is no server: it is a DPU"},
		},
		"a composed system with a UUID is a machine": {
			members: []any{sys("/s/0", object{"SystemType": "Composed"})},
			want:    []model.SystemFact{{URI: "/s/0", UUID: uuid, Power: "On"}},
		},
		"a composed system without a UUID is none": {
			members: []any{sys("/s/0", nil), sys("/s/1", object{"SystemType": "Composed", "UUID": nil})},
			want:    []model.SystemFact{{URI: "/s/0", UUID: uuid, Power: "On"}},
			others:  []string{"/s/1 is no server: its SystemType is Composed, and it has no UUID that tells it from what it is made of"},
		},
		"a node without boot override that can be reset is one": {
			members: []any{sys("/s/node", object{"SystemType": nil})},
			want:    []model.SystemFact{{URI: "/s/node", UUID: uuid, Power: "On"}},
		},
		"a UUID of zeros tells nothing (B23)": {
			members: []any{sys("/s/0", object{"UUID": "00000000-0000-0000-0000-000000000000"})},
			want:    []model.SystemFact{{URI: "/s/0", Power: "On"}},
			problem: "/s/0 has the UUID \"00000000-0000-0000-0000-000000000000\", which does not identify it",
		},
		"a UUID of Fs tells nothing (B23)": {
			members: []any{sys("/s/0", object{"UUID": "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF"})},
			want:    []model.SystemFact{{URI: "/s/0", Power: "On"}},
			problem: "/s/0 has the UUID \"FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF\", which does not identify it",
		},
		"a UUID that is missing is a problem (B23)": {
			members: []any{sys("/s/0", object{"UUID": nil})},
			want:    []model.SystemFact{{URI: "/s/0", Power: "On"}},
			problem: "/s/0 has no UUID",
		},
		"a UUID of zeros and a MAC address is one": {
			members: []any{sys("/s/0", object{"UUID": "00000000-0000-0000-0000-AC1F6B18A45A"})},
			want:    []model.SystemFact{{URI: "/s/0", UUID: "00000000-0000-0000-0000-ac1f6b18a45a", Power: "On"}},
		},
		"a power state that is null is unknown (B08)": {
			members: []any{sys("/s/0", object{"PowerState": nil})},
			want:    []model.SystemFact{{URI: "/s/0", UUID: uuid, Power: model.PowerUnknown}},
		},
		"a field of another form costs only itself (B27)": {
			members: []any{sys("/s/0", object{"Boot": "none", "Model": 3500})},
			want:    []model.SystemFact{{URI: "/s/0", UUID: uuid, Power: "On"}},
			problem: "/s/0: left out, as not in the schema's form: Boot",
		},
		"a URI of any length is left out": {
			members: []any{sys("/s/0", nil), sys("/s/"+strings.Repeat("x", maxText-2), nil)},
			want:    []model.SystemFact{{URI: "/s/0", UUID: uuid, Power: "On"}},
			problem: "the system /s/" + strings.Repeat("x", 61) + "… is left out: its URI has 257 bytes, allowed are 256",
		},
		"one of 256 bytes is not": {
			members: []any{sys("/s/"+strings.Repeat("x", maxText-3), nil)},
			want:    []model.SystemFact{{URI: "/s/" + strings.Repeat("x", maxText-3), UUID: uuid, Power: "On"}},
		},
		"a URI that a terminal would obey is left out": {
			members: []any{sys("/s/\x1b]0;pwned\x07", nil), sys("/s/0 \u00e4", nil)},
			want:    []model.SystemFact{{URI: "/s/0 ä", UUID: uuid, Power: "On"}},
			problem: "the system /s/ ]0;pwned is left out: its URI has characters that cannot be shown",
		},
		"so is the only one": {
			members: []any{sys("/s/\x07", nil)},
			problem: "the system /s/ is left out: its URI has characters that cannot be shown",
		},
		"members that are no links are passed over": {members: []any{nil, 1, object{}, object{"@odata.id": "evil.example"}},
			problem: "the BMC shows no system"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, plain)
			f.resources["/redfish/v1/Systems"]["Members"] = tt.members
			got := must.Get(newPool(t, Options{}).Discover(context.Background(), f.target()))(t)
			if diff := cmp.Diff(tt.want, got.Systems); diff != "" {
				t.Errorf("systems (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.others, got.Others); diff != "" {
				t.Errorf("others (-want +got):\n%s", diff)
			}
			if problems := strings.Join(got.Problems, "\n"); problems != tt.problem {
				t.Errorf("problems %q, want %q", problems, tt.problem)
			}
		})
	}
}

func TestDiscoverChoosesTheManager(t *testing.T) {
	mgr := func(id string, with object) object {
		o := object{"@odata.id": "/m/" + id, "@odata.type": "#Manager", "Model": id}
		maps.Copy(o, with)
		return o
	}
	console := object{"ServiceEnabled": true}
	tests := map[string]struct {
		members []any
		want    string
	}{
		"that is a BMC with a console (B22)": {want: "bmc", members: []any{
			mgr("aux", object{"ManagerType": "AuxiliaryController"}), mgr("plain", object{"ManagerType": "BMC"}),
			mgr("bmc", object{"ManagerType": "BMC", "GraphicalConsole": console}),
		}},
		"that is a BMC before an enclosure's with a console (B22)": {want: "bmc", members: []any{
			mgr("enclosure", object{"ManagerType": "EnclosureManager", "GraphicalConsole": console}),
			mgr("bmc", object{"ManagerType": "BMC"}),
		}},
		"that has the service's UUID": {want: "bmc", members: []any{
			mgr("other", object{"ManagerType": "BMC", "GraphicalConsole": console}),
			mgr("bmc", object{"ManagerType": "BMC", "UUID": "92384634-2938-2342-8820-489239905423"}),
		}},
		"that there is":   {want: "enclosure", members: []any{mgr("enclosure", object{"ManagerType": "EnclosureManager"})}},
		"if there is any": {want: "", members: []any{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, plain)
			f.resources["/redfish/v1/Managers"]["Members"] = tt.members
			got := must.Get(newPool(t, Options{}).Discover(context.Background(), f.target()))(t)
			if got.Model != tt.want {
				t.Errorf("chose %q, want %q", got.Model, tt.want)
			}
		})
	}
}

func TestDiscoverOfOddRoots(t *testing.T) {
	t.Run("a root with an odd property is read", func(t *testing.T) {
		f := newFake(t, plain)
		f.resources["/redfish/v1/"]["UUID"] = []any{"92384634-2938-2342-8820-489239905423"}
		f.resources["/redfish/v1/"]["Description"] = object{"odd": true}
		got, err := newPool(t, Options{}).Discover(context.Background(), f.target())
		if err != nil || len(got.Systems) != 1 {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	t.Run("a root that wants credentials gets them", func(t *testing.T) {
		f := newFake(t, plain)
		f.answer = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/redfish/v1/" && r.Header.Get("X-Auth-Token") == "" {
				fail(w, http.StatusUnauthorized, "Base.1.0.NoValidSession")
				return true
			}
			return false
		}
		got, err := newPool(t, Options{}).Discover(context.Background(), f.target())
		if err != nil || len(got.Systems) != 1 {
			t.Errorf("got %+v, %v", got, err)
		}
		if n := len(f.requests()); n != 5 {
			t.Errorf("%d requests, want 5", n)
		}
	})
	t.Run("what is no Redfish service is said to be none", func(t *testing.T) {
		f := newFake(t, plain)
		f.answer = func(w http.ResponseWriter, _ *http.Request) bool {
			w.Write([]byte("<html>It works!</html>"))
			return true
		}
		_, err := newPool(t, Options{}).Discover(context.Background(), f.target())
		if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "not a Redfish service root") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a service without systems shows its manager", func(t *testing.T) {
		f := newFake(t, plain)
		delete(f.resources["/redfish/v1/"], "Systems")
		got, err := newPool(t, Options{}).Discover(context.Background(), f.target())
		if err != nil || got.Model != "Joo Janta 200" || len(got.Problems) != 1 {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

// Problems are shown on the status branch: a BMC does not make it as long as it likes.
func TestProblemsOfABMCAreBounded(t *testing.T) {
	f := newFake(t, plain)
	var members []any
	for i := range 100 {
		members = append(members, object{"@odata.id": fmt.Sprintf("/s/\x07%d", i), "@odata.type": "#ComputerSystem"})
	}
	f.resources["/redfish/v1/Systems"]["Members"] = members
	got := must.Get(newPool(t, Options{}).Discover(context.Background(), f.target()))(t)
	if n := len(got.Problems); n != maxProblems+1 || got.Problems[maxProblems] != "and 68 more" {
		t.Errorf("%d problems, the last %q", n, got.Problems[n-1])
	}
}
