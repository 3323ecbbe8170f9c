package inventory

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/model/must"
)

func TestParseNeighbors(t *testing.T) {
	leaf := model.ProbeNeighbor{
		ChassisID: "0c:29:ef:00:00:01", PortID: "Ethernet1", PortDescription: "to rack 7", SystemName: "leaf-1",
		SystemDescription: "SONiC",
	}
	other := model.ProbeNeighbor{ChassisID: "0c:29:ef:00:00:02", PortID: "Ethernet2"}
	const (
		chassis = `"leaf-1":{"id":{"type":"mac","value":"0c:29:ef:00:00:01"},"descr":"SONiC","mgmt-ip":"10.0.0.1",
			"capability":[{"type":"Bridge","enabled":true},{"type":"Router","enabled":false}]}`
		listed = `"leaf-1":{"id":{"type":"mac","value":"0c:29:ef:00:00:01"},"descr":"SONiC","mgmt-ip":["10.0.0.1","fe80::1"],
			"capability":{"type":"Bridge","enabled":true}}`
		port   = `"port":{"id":{"type":"ifname","value":"Ethernet1"},"descr":"to rack 7","ttl":"120"}`
		second = `{"chassis":{"id":{"type":"mac","value":"0c:29:ef:00:00:02"}},"port":{"id":{"type":"ifname","value":"Ethernet2"}}}`
	)
	tests := map[string]struct {
		out  string
		want []model.ProbeLLDP
	}{
		"no neighbour": {`{"lldp":{}}`, []model.ProbeLLDP{}},
		"json: interfaces as an object, one management address, one VLAN": {
			`{"lldp":{"interface":{"eth0":{"chassis":{` + chassis + `},` + port + `,"vlan":{"vlan-id":"10","pvid":true,"value":"x"}}}}}`,
			[]model.ProbeLLDP{{Name: "eth0", Neighbors: []model.ProbeNeighbor{leaf}}},
		},
		"json: interfaces, management addresses and VLANs as lists; the port's own VLAN counts": {
			`{"lldp":{"interface":[{"eth0":{"chassis":{` + listed + `},` + port + `,
				"vlan":[{"vlan-id":"20","pvid":false},{"vlan-id":10,"pvid":true}]}}]}}`,
			[]model.ProbeLLDP{{Name: "eth0", Neighbors: []model.ProbeNeighbor{leaf}}},
		},
		"json: two neighbours on one interface, one without a name, and another interface": {
			`{"lldp":{"interface":[{"eth1":` + second + `},
				{"eth0":{"chassis":{` + chassis + `},` + port + `,"vlan":[{"vlan-id":"10"},{"vlan-id":"20"}]}},{"eth0":` + second + `}]}}`,
			[]model.ProbeLLDP{
				{Name: "eth0", Neighbors: []model.ProbeNeighbor{leaf, other}},
				{Name: "eth1", Neighbors: []model.ProbeNeighbor{other}},
			},
		},
		"json0: everything is a list": {
			`{"lldp":[{"interface":[{"name":"eth0","via":"LLDP","chassis":[{"id":[{"type":"mac","value":"0c:29:ef:00:00:01"}],
				"name":[{"value":"leaf-1"}],"descr":[{"value":"SONiC"}],"mgmt-ip":[{"value":"10.0.0.1"},{"value":"fe80::1"}],
				"capability":[{"type":"Bridge","enabled":true},{"type":"Wlan","enabled":false}]}],
				"port":[{"id":[{"type":"ifname","value":"Ethernet1"}],"descr":[{"value":"to rack 7"}]}],
				"vlan":[{"vlan-id":"10","pvid":true,"value":"x"}]}]}]}`,
			[]model.ProbeLLDP{{Name: "eth0", Neighbors: []model.ProbeNeighbor{leaf}}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := must.Get(parseNeighbors([]byte(test.out)))(t)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("neighbours (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnAnswerThatIsNoneIsAnError(t *testing.T) {
	for _, out := range []string{"", "{", "[]", `{"other":1}`, "null"} {
		if got, err := parseNeighbors([]byte(out)); err == nil {
			t.Errorf("%q: got %v, want an error", out, got)
		}
	}
}

func TestWithoutAnLLDPDaemonThereIsNothingToAsk(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := Local(nil).Neighbors(t.Context()); !errors.Is(err, ErrNoLLDP) {
		t.Errorf("got %v, want %v", err, ErrNoLLDP)
	}
}

func FuzzParseNeighbors(f *testing.F) {
	f.Add([]byte(`{"lldp":{"interface":{"eth0":{"chassis":{"s":{"id":{"value":"x"}}},"port":{"id":"y"},"vlan":{"vlan-id":1}}}}}`))
	f.Add([]byte(`{"lldp":[{"interface":[{"name":"eth0","chassis":[{"name":[{"value":[[["a"]]]}]}]}]}]}`))
	f.Fuzz(func(t *testing.T, out []byte) {
		list, err := parseNeighbors(out)
		if err != nil {
			return
		}
		for _, p := range list {
			for _, n := range p.Neighbors {
				if n.SystemName != clean(n.SystemName) {
					t.Errorf("neighbour %+v", n)
				}
			}
		}
		if _, err := json.Marshal(list); err != nil {
			t.Error(err)
		}
	})
}
