package dhcp

import (
	"testing"
	"time"

	"ingot/model"
	"ingot/model/must"
)

func TestLeasesAreKnownBeforeAnythingIsAnswered(t *testing.T) {
	store := newMemory()
	renewed := time.Now().Add(-time.Hour).Truncate(time.Second).UTC()
	l := model.Lease{Network: "relays", MAC: mac1, Address: addr("127.0.9.7"), Renewed: renewed, Expires: time.Now().Add(time.Hour)}
	must.Do(t, store.SaveLeases(t.Context(), []model.Lease{l}))
	s := must.Get(New(Options{Networks: []Network{relays("127.0.0.1:0")}, Store: store}))(t)
	if mac, ok := s.Holder(l.Address); ok {
		t.Fatalf("%s holds it before the leases are read", mac)
	}
	if !s.Load(t.Context()) {
		t.Fatal("the leases are not read")
	}
	if mac, ok := s.Holder(l.Address); mac != mac1 || !ok {
		t.Errorf("held by %q, want %q", mac, mac1)
	}
	if at := s.Leased([]string{mac2, mac1}); !at.Equal(renewed) {
		t.Errorf("renewed at %s, want %s", at, renewed)
	}
	if at := s.Leased([]string{mac2}); !at.IsZero() {
		t.Errorf("what was never leased was renewed at %s", at)
	}
}
