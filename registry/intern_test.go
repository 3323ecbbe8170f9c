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
		in.remember(fmt.Sprint(i))
	}
	for _, v := range []any{facts(0), serverRecord(0, model.PurposeClaim), probe, &model.FleetRecord{At: now}, &model.ServerFacts{}} {
		want, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		in.internAll("key", v)
		got, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%T (-before +after):\n%s", v, diff)
		}
	}
}

// A fleet's values share what is the same in them but for the first, whose strings are one piece,
// and have no room to grow.
func TestDecodedValuesShareTheirStrings(t *testing.T) {
	m := newMemory()
	for i := range 3 {
		f := facts(i)
		f.Inventory.Memory = f.Inventory.Memory[:3] // decoding makes room for four
		raw, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		m.apply(store.Batch{{Key: store.Key{Bucket: store.BucketServerFacts, Name: string(f.Name)}, Value: raw}})
	}
	of := m.state.ServerFacts
	a, b := of["server-1"].Inventory, of["server-2"].Inventory
	if unsafe.StringData(a.Memory[2].Manufacturer) != unsafe.StringData(b.Memory[0].Manufacturer) {
		t.Error("two modules of one maker have two copies of its name")
	}
	if cap(a.Memory) != len(a.Memory) {
		t.Errorf("%d modules have room for %d", len(a.Memory), cap(a.Memory))
	}
	for key, f := range of {
		if unsafe.StringData(string(f.Name)) != unsafe.StringData(string(key)) {
			t.Errorf("the name of %s is there twice", key)
		}
	}
}

// What no other value has is one piece of memory, in which each string is once.
func TestStringsOfOneValueArePacked(t *testing.T) {
	const mac = "02:00:00:00:00:01"
	f := &model.ServerFacts{Inventory: &model.Inventory{
		UUID: "u", MACAddresses: []string{strings.Clone(mac)}, NetworkInterfaces: []model.NetworkInterface{{Name: "eth0", MACAddress: strings.Clone(mac)}},
	}}
	newInterner().internAll("s", f)
	inv := f.Inventory
	first, twice, other := unsafe.StringData(inv.MACAddresses[0]), unsafe.StringData(inv.NetworkInterfaces[0].MACAddress), unsafe.StringData(inv.NetworkInterfaces[0].Name)
	if first != twice {
		t.Error("one MAC address is there twice")
	}
	if apart := int(uintptr(unsafe.Pointer(first))) - int(uintptr(unsafe.Pointer(other))); apart != len("eth0") && apart != -len(mac) {
		t.Errorf("two strings of a value are %d bytes apart", apart)
	}
	if inv.MACAddresses[0] != mac || inv.NetworkInterfaces[0].Name != "eth0" || inv.UUID != "u" {
		t.Errorf("it is another: %+v", inv)
	}
}

// All servers of a fleet boot the same few images.
func TestLayersAreShared(t *testing.T) {
	in, digest := newInterner(), "sha256:"+strings.Repeat("a", 64)
	ticket := func(size int64) *model.Ticket {
		t := &model.Ticket{Image: model.PinnedImage{Kernel: &model.Layer{Digest: strings.Clone(digest), Size: size}}}
		in.internAll("t", t)
		return t
	}
	a, b, other := ticket(1), ticket(1), ticket(2)
	if a.Image.Kernel != b.Image.Kernel {
		t.Error("one layer is there twice")
	}
	if other.Image.Kernel.Size != 2 || a.Image.Kernel.Size != 1 {
		t.Error("a layer is another one")
	}
}

func TestLongStringsAreNotRemembered(t *testing.T) {
	in := newInterner()
	in.remember(strings.Repeat("x", internBytes+1))
	if in.slots != [internSlots]string{} {
		t.Error("a string that comes once keeps a place")
	}
}
