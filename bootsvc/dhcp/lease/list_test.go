package lease

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
	"ingot/model/must"
)

func TestLeasesAreListedAndOffersAreNot(t *testing.T) {
	w := newWorld(setup{})
	lease(t, w, mac1, t0)
	lease(t, w, mac2, t0)
	if _, ok := w.table.Decline(ask(w, mac2, "192.0.2.11", t0), false); !ok {
		t.Fatal("it cannot be declined")
	}
	must.Get(w.table.Offer(ask(w, mac3, "", t0)))(t)
	type shown struct {
		mac, address string
		declined     bool
	}
	all, more := w.table.Leases(10)
	slices.SortFunc(all, func(a, b model.Lease) int { return a.Address.Compare(b.Address) })
	var got []shown
	for _, l := range all {
		got = append(got, shown{l.MAC, l.Address.String(), l.Declined})
	}
	want := []shown{{mac1, "192.0.2.10", false}, {"", "192.0.2.11", true}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(shown{})); diff != "" || more != 0 {
		t.Errorf("leases (-want +got):\n%s%d more", diff, more)
	}
	if all, more := w.table.Leases(1); len(all) != 1 || more != 1 {
		t.Errorf("of two leases, one is asked for, and %d are there and %d more", len(all), more)
	}
}
