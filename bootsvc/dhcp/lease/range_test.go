package lease

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestRangeText(t *testing.T) {
	for _, text := range []string{"", "192.0.2.1-192.0.2.9", "fd00::1-fd00::9"} {
		var r Range
		if err := r.UnmarshalText([]byte(text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if back, _ := r.MarshalText(); string(back) != text {
			t.Errorf("%q became %q", text, back)
		}
	}
	for _, text := range []string{
		"192.0.2.1", "a-b", "192.0.2.1-", "-192.0.2.1", "fe80::1%eth0-fe80::2", "192.0.2.1-192.0.2.2-192.0.2.3",
		"::ffff:192.0.2.1-::ffff:192.0.2.2",
	} {
		var r Range
		if err := r.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was taken for %v", text, r)
		}
	}
}

func TestWhatIsLeftOfRanges(t *testing.T) {
	ranges := func(texts ...string) (all []Range) {
		for _, s := range texts {
			all = append(all, rangeOf(s))
		}
		return all
	}
	for name, tc := range map[string]struct{ given, without, want []Range }{
		"all, in order": {
			given: ranges("192.0.2.50-192.0.2.60", "192.0.2.10-192.0.2.20"), want: ranges("192.0.2.10-192.0.2.20", "192.0.2.50-192.0.2.60"),
		},
		"both sides of a hole": {
			given: ranges("192.0.2.10-192.0.2.20"), without: ranges("192.0.2.12-192.0.2.13"),
			want: ranges("192.0.2.10-192.0.2.11", "192.0.2.14-192.0.2.20"),
		},
		"holes at both ends, in any order, and that overlap": {
			given: ranges("192.0.2.10-192.0.2.20"), without: ranges("192.0.2.20-192.0.2.30", "192.0.2.5-192.0.2.11", "192.0.2.11-192.0.2.12"),
			want: ranges("192.0.2.13-192.0.2.19"),
		},
		"a hole across two": {
			given: ranges("192.0.2.10-192.0.2.20", "192.0.2.30-192.0.2.40"), without: ranges("192.0.2.15-192.0.2.35"),
			want: ranges("192.0.2.10-192.0.2.14", "192.0.2.36-192.0.2.40"),
		},
		"nothing":                             {given: ranges("192.0.2.10-192.0.2.20"), without: ranges("192.0.2.0-192.0.2.255")},
		"the end of all addresses":            {given: ranges("255.255.255.1-255.255.255.255"), without: ranges("255.255.255.9-255.255.255.255"), want: ranges("255.255.255.1-255.255.255.8")},
		"one address of very many":            {given: ranges("fd00::-fd00::ffff:ffff:ffff:ffff"), without: ranges("fd00::1-fd00::1"), want: ranges("fd00::-fd00::", "fd00::2-fd00::ffff:ffff:ffff:ffff")},
		"what is elsewhere is not in the way": {given: ranges("192.0.2.10-192.0.2.20"), without: ranges("192.0.2.30-192.0.2.40"), want: ranges("192.0.2.10-192.0.2.20")},
	} {
		if got := Without(tc.given, tc.without); !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

// Addresses of several ranges are given in order, and what is excluded by a reservation alone.
func TestSeveralRangesOfASubnet(t *testing.T) {
	subnet := hosts()
	subnet.Ranges = []Range{rangeOf("192.0.2.20-192.0.2.21"), rangeOf("192.0.2.10-192.0.2.12")}
	subnet.Exclude = []Range{rangeOf("192.0.2.11-192.0.2.11")}
	w := newWorld(setup{subnets: []Subnet{subnet}})
	var got []string
	for i := range 4 {
		got = append(got, lease(t, w, fmt.Sprintf("02:00:00:00:01:%02x", i), t0).String())
	}
	if want := []string{"192.0.2.10", "192.0.2.12", "192.0.2.20", "192.0.2.21"}; !slices.Equal(got, want) {
		t.Errorf("given %v, want %v", got, want)
	}
	if l, err := w.table.Offer(ask(w, mac1, "192.0.2.11", t0)); err == nil {
		t.Errorf("%s is offered, of a range of four addresses that are all given", l.Address)
	}
	if _, state := w.table.Renewal(ask(w, mac1, "192.0.2.11", t0)); state != RenewalUnknown {
		t.Errorf("an address that is excluded is %v to a client that asks for it, want unknown", state)
	}
	w.table.SetReservations([]Reservation{{MAC: mac1, Name: "e", Address: addr("192.0.2.11")}})
	if a := lease(t, w, mac1, t0); a != addr("192.0.2.11") {
		t.Errorf("given %s, and 192.0.2.11 is reserved", a)
	}
	if pools := w.table.Pools(t0.Add(time.Minute)); len(pools) != 1 || pools[0].Size != 4 || pools[0].Used != 4 {
		t.Errorf("pools %+v, want one of 4 addresses that are used", pools)
	}
	later := t0.Add(2 * time.Hour) // all have ended, and are given again, also what lies behind a hole
	if a := lease(t, w, mac2, later); a != addr("192.0.2.10") {
		t.Errorf("given %s, want the lease that ended first", a)
	}
}
