package plan

import (
	"slices"
	"testing"

	"ingot/model"
)

// A machine that nobody knows may be each of several servers that were behind its BMC: the reason
// names the same one, whatever the order of what is in the store.
func TestTheServerInWhosePlaceAMachineIsIsAlwaysTheSame(t *testing.T) {
	at := func(name model.ServerName, uri string) *model.ServerRecord {
		return &model.ServerRecord{RecordIdentity: model.RecordIdentity{Name: name, SystemURI: uri}, Life: model.RecordLife{State: model.StateReserved}}
	}
	known := []*model.ServerRecord{at("a", "/2"), at("c", "/1"), at("b", "/1"), at("d", "/3")}
	for range 2 {
		slices.Reverse(known)
		b := &bmcView{facts: &model.BMCFacts{Systems: []model.SystemFact{{URI: "/1"}}}, known: known}
		if got := b.keeper("/1"); got.Name != "b" {
			t.Errorf("it is in the place of %s, want b", got.Name)
		}
	}
}
