package registry

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/registry/store"
)

// What is decoded means the same after it was made smaller, down to the bytes that
// it is stored as again.
func TestCompactChangesNoMeaning(t *testing.T) {
	in := newInterner()
	probe := &model.ProbeReport{Ticket: "t", ReceivedAt: now}
	for i := range 2 * internSlots { // the table is full, and strings drive others out
		in.intern(fmt.Sprint(i))
	}
	for _, v := range []any{facts(0), serverRecord(0, model.PurposeClaim), probe, &model.FleetRecord{At: now}, &model.ServerFacts{}} {
		want, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		in.internAll(v)
		got, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%T (-before +after):\n%s", v, diff)
		}
	}
}

// A fleet's values share what is the same in them, and have no room to grow.
func TestDecodedValuesShareTheirStrings(t *testing.T) {
	m := newMemory()
	for i := range 2 {
		f := facts(i)
		f.Inventory.Memory = f.Inventory.Memory[:3] // decoding makes room for four
		raw, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		m.apply(store.Batch{{Key: store.Key{Bucket: store.BucketServerFacts, Name: string(f.Name)}, Value: raw}})
	}
	a, b := m.state.ServerFacts["server-0"].Inventory, m.state.ServerFacts["server-1"].Inventory
	if unsafe.StringData(a.Memory[2].Manufacturer) != unsafe.StringData(b.Memory[0].Manufacturer) {
		t.Error("two modules of one maker have two copies of its name")
	}
	if cap(a.Memory) != len(a.Memory) {
		t.Errorf("%d modules have room for %d", len(a.Memory), cap(a.Memory))
	}
}

// All servers of a fleet boot the same few images.
func TestDigestsAreShared(t *testing.T) {
	in, digest := newInterner(), "sha256:"+strings.Repeat("a", 64)
	a, b := &model.Layer{Digest: strings.Clone(digest)}, &model.Layer{Digest: strings.Clone(digest)}
	in.internAll(a)
	in.internAll(b)
	if unsafe.StringData(a.Digest) != unsafe.StringData(b.Digest) {
		t.Error("two layers have two copies of one digest")
	}
}

func TestLongStringsAreNotRemembered(t *testing.T) {
	in := newInterner()
	in.intern(strings.Repeat("x", internBytes+1))
	if in.slots != [internSlots]string{} {
		t.Error("a string that comes once keeps a place")
	}
}
