package plan

import (
	"testing"

	"ingot/model"
)

// The UUID of a system that its BMC lists and shows nothing of is not taken for that of
// a machine which has moved.
func TestAnUnreadSystemHasNotMoved(t *testing.T) {
	rec := &model.ServerRecord{RecordIdentity: model.RecordIdentity{Name: "a", BMC: "one", SystemURI: "/1", UUID: "u"}}
	old := &bmcView{name: "one", facts: &model.BMCFacts{Systems: []model.SystemFact{{URI: "/1", Unread: true}}}}
	other := &bmcView{name: "two", facts: &model.BMCFacts{Systems: []model.SystemFact{{URI: "/1", UUID: "u"}}}}
	f := withBMCs(new(fleet), old, other)
	if f.moved(rec, other) {
		t.Error("it is taken to have moved")
	}
	old.facts.Systems = nil
	if !f.moved(rec, other) {
		t.Error("one that is shown no more is not taken to have moved")
	}
}
