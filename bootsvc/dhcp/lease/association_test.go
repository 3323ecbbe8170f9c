package lease

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"ingot/model"
	"ingot/model/must"
)

// deed is what one association does with the lease of mac1.
type deed struct {
	does string
	by   association
}

func TestALeaseIsHeldByAllAssociationsOfTheClientThatAskedLast(t *testing.T) {
	var (
		pxe, http = association{"ovmf", 1}, association{"ovmf", 2}
		ipxe      = association{"ipxe", 1}
		scsi      = association{"ovmf", 3}
		system    = association{"system", 1}
		nameless  = association{}
	)
	asks := func(by association) deed { return deed{"asks", by} }
	isOffered := func(by association) deed { return deed{"is offered", by} }
	gives := func(by association) deed { return deed{"gives back", by} }
	often := slices.Repeat([]deed{asks(pxe), asks(http)}, maxShared)
	waits := deed{does: "waits"} // as long as a lease lasts, less a minute
	for name, tc := range map[string]struct {
		deeds []deed
		free  bool
	}{
		"what its only holder gives back is free":          {[]deed{asks(system), gives(system)}, true},
		"what is given back twice is free":                 {[]deed{asks(system), gives(system), gives(system)}, true},
		"what the first gives back the second holds":       {[]deed{asks(pxe), asks(http), gives(pxe)}, false},
		"what the second gives back the first holds":       {[]deed{asks(pxe), asks(http), gives(http)}, false},
		"what one of two gives back twice the other holds": {[]deed{asks(pxe), asks(http), gives(http), gives(http)}, false},
		"what both give back is free":                      {[]deed{asks(pxe), asks(http), gives(http), gives(pxe)}, true},
		"in the order of their asking too":                 {[]deed{asks(pxe), asks(http), gives(pxe), gives(http)}, true},
		"however often they asked":                         {append(often, gives(pxe), gives(http)), true},
		"who asks often crowds nobody out": {
			deeds: slices.Concat([]deed{asks(scsi)}, often, []deed{gives(pxe), gives(http)}),
		},
		"what was never asked for cannot be given back": {[]deed{asks(pxe), gives(http)}, false},
		"what firmware gives back late iPXE holds":      {[]deed{asks(pxe), asks(http), gives(http), asks(ipxe), gives(pxe)}, false},
		"what iPXE never gave back the system can": {
			deeds: []deed{asks(pxe), asks(http), asks(ipxe), asks(system), gives(system)}, free: true,
		},
		"what firmware gives back while iPXE is asking is not free": {[]deed{asks(pxe), isOffered(ipxe), gives(pxe)}, false},
		"and iPXE has it alone then": {
			deeds: []deed{asks(pxe), isOffered(ipxe), gives(pxe), asks(ipxe), gives(ipxe)}, free: true,
		},
		"what a crashed association of a client holds ends in time": {[]deed{asks(pxe), waits, asks(http), waits, gives(http)}, true},
		"until then it is held":                        {[]deed{asks(pxe), waits, asks(http), gives(http)}, false},
		"a DHCPv4 client need not show its identifier": {[]deed{asks(system), gives(nameless)}, true},
		"but one that has none shows none":             {[]deed{asks(nameless), gives(system)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w, now := newWorld(setup{}), t0
			for _, d := range tc.deeds {
				now = now.Add(time.Second)
				if d.does == "waits" {
					now = now.Add(59 * time.Minute)
					continue
				}
				do(t, w, d, now)
			}
			if _, held := w.holder(addr("192.0.2.10"), now); held == tc.free {
				t.Errorf("it is held: %v, want %v", held, !tc.free)
			}
		})
	}
}

// do does a deed of mac1, and stores what comes of it.
func do(t *testing.T, w *world, d deed, now time.Time) {
	t.Helper()
	q := ask(w, mac1, "192.0.2.10", now)
	q.ClientID, q.IAID = d.by.clientID, d.by.iaid
	switch d.does {
	case "gives back":
		if l, _ := w.table.Release(q); l != nil {
			commitNow(t, w, *l)
		}
	case "asks", "is offered":
		l, err := w.table.Offer(q)
		if err != nil || l.Address != q.Wish {
			t.Fatalf("%v is offered %s: %v", d.by, l.Address, err)
		}
		if d.does == "asks" {
			commitNow(t, w, l)
		}
	}
}

// A lease that is being stored is asked for; nobody else gives it back meanwhile.
func TestALeaseThatIsBeingStoredIsNotGivenBackByAnother(t *testing.T) {
	w := newWorld(setup{})
	do(t, w, deed{"asks", association{"ovmf", 1}}, t0)
	q := ask(w, mac1, "192.0.2.10", t0)
	q.ClientID, q.IAID = "ovmf", 2
	l := must.Get(w.table.Offer(q))(t)
	do(t, w, deed{"gives back", association{"ovmf", 1}}, t0)
	commitNow(t, w, l)
	if mac, _ := w.holder(l.Address, t0); mac != mac1 {
		t.Fatalf("it is held by %q, want %s", mac, mac1)
	}
	do(t, w, deed{"gives back", association{"ovmf", 2}}, t0)
	if mac, held := w.holder(l.Address, t0); held {
		t.Errorf("it is held by %s, though all gave it back", mac)
	}
}

func TestAnAddressThatOneOfTwoAssociationsDeclines(t *testing.T) {
	for name, tc := range map[string]struct {
		others []association
		want   time.Duration
	}{
		"is set aside for a while":              {nil, setAside},
		"is set aside until the other has done": {[]association{{"ovmf", 1}}, time.Hour},
		"is nothing to an earlier client":       {[]association{{"ipxe", 1}}, setAside},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(setup{})
			for _, a := range append(tc.others, association{"ovmf", 2}) {
				do(t, w, deed{"asks", a}, t0)
			}
			q := ask(w, mac1, "192.0.2.10", t0)
			q.ClientID, q.IAID = "ovmf", 2
			l, ok := w.table.Decline(q, false)
			if !ok || !l.Declined || !l.Expires.Equal(t0.Add(tc.want)) {
				t.Errorf("got %+v, want it set aside until %s", l, t0.Add(tc.want))
			}
		})
	}
}

func TestAssociationsThatShareALeaseAreBounded(t *testing.T) {
	w := newWorld(setup{})
	for i := range uint32(1000) {
		do(t, w, deed{"asks", association{"duid", i}}, t0)
	}
	if n := len(w.table.index.bySlot[slot{addr("192.0.2.10"), 0}].shares); n != maxShared {
		t.Errorf("%d are remembered, want %d", n, maxShared)
	}
}

// What is stored of a lease is who asked last.
func TestAStoredLeaseIsItsLastAssociations(t *testing.T) {
	w := newWorld(setup{})
	w.table.Load([]model.Lease{{
		Network: "hosts", Role: model.RoleHost, MAC: mac1, Address: addr("192.0.2.10"), ClientID: "ovmf", IAID: 2,
		Since: t0, Renewed: t0, Expires: t0.Add(time.Hour),
	}}, t0)
	for i, a := range []association{{"ovmf", 1}, {"ipxe", 2}, {"ovmf", 2}} {
		do(t, w, deed{"gives back", a}, t0)
		if _, held := w.holder(addr("192.0.2.10"), t0); held != (i < 2) {
			t.Errorf("%s: it is held: %v", fmt.Sprint(a), held)
		}
	}
}

// A client that was offered two addresses may request one of them by itself.
func TestOneOfTwoOffersIsFoundByItsAddress(t *testing.T) {
	w := newWorld(setup{})
	var offered []netip.Addr
	for n := range 2 {
		q := ask(w, mac1, "", t0)
		q.Nth = n
		l := must.Get(w.table.Offer(q))(t)
		offered = append(offered, l.Address)
	}
	for n, a := range offered {
		if got := w.table.Nth(ask(w, mac1, "", t0), []netip.Addr{a}); got != n {
			t.Errorf("%s is lease %d of its interface, want %d", a, got, n)
		}
	}
}
