package registry

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
)

func TestLeaseIsReadAsItWasWritten(t *testing.T) {
	for _, want := range variety() {
		ch, err := leaseChange(&want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeLease([]byte(ch.name), ch.value)
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
}

// The names of leases sort as the leases do, so that neighbours share pages.
func TestNeighboursAreStoredTogether(t *testing.T) {
	leases := variety()
	for i := range 600 {
		leases = append(leases, lease(i), leaseWith(i, func(l *model.Lease) { l.Network = "oob-2" }))
	}
	slices.SortFunc(leases, compareLeases)
	names := make([]string, len(leases))
	for i := range leases {
		names[i] = mustName(t, leases[i])
	}
	if !slices.IsSorted(names) {
		t.Error("names sort otherwise")
	}
}

// The layout is a promise to the next Ingot.
func TestLeaseLayoutStays(t *testing.T) {
	l := lease(1)
	ch, err := leaseChange(&l)
	if err != nil {
		t.Fatal(err)
	}
	wantName := "oob\x004\x0a\x00\x00\x01\x00"
	wantValue := "\x01\x02b\x02\x00\x00\x00\x00\x01\x00\x00\x00\x00" +
		strings.Repeat("\x18\xea\x0d\xa4\x1e\x9d\x80\x00", 2) + "\x18\xea\x10\xea\x4f\x56\x20\x00" + "01020000000001"
	if ch.name != wantName || string(ch.value) != wantValue {
		t.Errorf("name %q, value %q", ch.name, ch.value)
	}
}

func FuzzDecodeLease(f *testing.F) {
	for _, l := range variety() {
		ch, err := leaseChange(&l)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(ch.name), ch.value)
		f.Add([]byte(ch.name), ch.value[:20])
	}
	f.Fuzz(func(t *testing.T, name, value []byte) {
		l, err := decodeLease(name, value)
		if err != nil {
			return
		}
		ch, err := leaseChange(&l)
		if len(name)+len(value) > maxLeaseSize {
			return
		}
		if err != nil || ch.name != string(name) || !bytes.Equal(ch.value, value) {
			t.Errorf("%+v is written as %q %q, %v; read from %q %q", l, ch.name, ch.value, err, name, value)
		}
	})
}
