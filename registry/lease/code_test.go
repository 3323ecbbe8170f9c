package lease

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
)

func TestLeaseIsReadAsItWasWritten(t *testing.T) {
	for _, want := range variety() {
		name, value := stored(t, want)
		got, err := Decode([]byte(name), value)
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
}

// The names of leases sort as the leases do, so that neighbours share pages.
func TestNeighboursAreStoredTogether(t *testing.T) {
	leases := variety()
	for i := range 600 {
		leases = append(leases, leaseOf(i), leaseWith(i, func(l *model.Lease) { l.Network = "oob-2" }))
	}
	slices.SortFunc(leases, Compare)
	names := make([]string, len(leases))
	for i := range leases {
		names[i], _ = stored(t, leases[i])
	}
	if !slices.IsSorted(names) {
		t.Error("names sort otherwise")
	}
}

// Another layout needs another version.
func TestLeaseLayoutStays(t *testing.T) {
	l := leaseOf(1)
	name, value := stored(t, l)
	wantName := "oob\x004\x0a\x00\x00\x01\x00"
	wantValue := "\x01\x02b\x02\x00\x00\x00\x00\x01\x00\x00\x00\x00" +
		strings.Repeat("\x18\xea\x0d\xa4\x1e\x9d\x80\x00", 2) + "\x18\xea\x10\xea\x4f\x56\x20\x00" + "01020000000001"
	if name != wantName || string(value) != wantValue {
		t.Errorf("name %q, value %q", name, value)
	}
	l.Relay = model.LeaseRelay{Address: netip.MustParseAddr("192.0.2.1"), CircuitID: "Eth7", RemoteID: "leaf1"}
	if _, value := stored(t, l); string(value) != wantValue+"\x00\x04\xc0\x00\x02\x01\x04Eth7leaf1" {
		t.Errorf("by a relay: %q", value)
	}
}

func FuzzDecodeLease(f *testing.F) {
	for _, l := range variety() {
		name, value := stored(f, l)
		f.Add([]byte(name), value)
		f.Add([]byte(name), value[:20])
	}
	f.Fuzz(func(t *testing.T, name, value []byte) {
		l, err := Decode(name, value)
		if err != nil {
			return
		}
		againName, again, err := Encode(&l)
		if len(name)+len(value) > MaxSize {
			return
		}
		if err != nil || againName != string(name) || !bytes.Equal(again, value) {
			t.Errorf("%+v is written as %q %q, %v; read from %q %q", l, againName, again, err, name, value)
		}
	})
}

func stored(t testing.TB, l model.Lease) (name string, value []byte) {
	t.Helper()
	name, value, err := Encode(&l)
	if err != nil {
		t.Fatal(err)
	}
	return name, value
}

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func leaseOf(i int) model.Lease {
	return model.Lease{
		Network: "oob", Role: model.RoleBMC, MAC: macOf(i), Address: addressOf(i), ClientID: "01" + strings.ReplaceAll(macOf(i), ":", ""),
		Since: now, Renewed: now, Expires: now.Add(time.Hour),
	}
}

func leaseWith(i int, edit func(*model.Lease)) model.Lease {
	l := leaseOf(i)
	edit(&l)
	return l
}

func macOf(i int) string {
	return model.MAC{0x02, 0, 0, byte(i >> 16), byte(i >> 8), byte(i)}.String()
}

func addressOf(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
}

func variety() []model.Lease {
	return []model.Lease{
		leaseWith(7, func(l *model.Lease) { l.Network, l.Role = "host", model.RoleHost }),
		leaseOf(1),
		leaseWith(2, func(l *model.Lease) { l.MAC, l.Declined = "", true }),
		leaseWith(3, func(l *model.Lease) { l.Expires = now.Add(-time.Hour) }),
		leaseWith(40, func(l *model.Lease) { l.Unproven = true }),
		leaseWith(41, func(l *model.Lease) { l.Nth = 7 }),
		leaseWith(42, func(l *model.Lease) { l.MAC, l.Unproven, l.IAID = "", true, 5 }),
		leaseWith(4, func(l *model.Lease) {
			l.Address, l.IAID, l.ClientID = netip.MustParseAddr("fd00::4"), 0xfffffffe, ""
			l.Since, l.Renewed = time.Time{}, now.Add(time.Nanosecond)
		}),
		leaseWith(41, func(l *model.Lease) {
			l.Relay = model.LeaseRelay{Address: netip.MustParseAddr("192.0.2.1"), CircuitID: "Eth1/7", RemoteID: "leaf1"}
		}),
		leaseWith(42, func(l *model.Lease) { l.ClientID, l.Relay.Address = "", netip.MustParseAddr("fd00::1") }),
		leaseWith(5, func(l *model.Lease) { l.Address, l.Bits = netip.MustParseAddr("fd00:1::"), 64 }),
		leaseWith(6, func(l *model.Lease) { l.Address, l.Bits = netip.MustParseAddr("fd00:1::"), 128 }),
	}
}
