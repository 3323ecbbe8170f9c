package lease

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"ingot/model"
)

// history drives a table through random events, and keeps a model of what was
// promised beside it.
type history struct {
	t        *testing.T
	r        *rand.Rand
	w        *world
	now      time.Time
	stored   map[netip.Addr]model.Lease          // what a restart finds
	promised map[netip.Addr]model.Lease          // what clients believe
	shares   map[netip.Addr]map[uint32]time.Time // until when each association of its client does
	reserved map[string]netip.Addr
}

func (h *history) mac() string { return fmt.Sprintf("02:00:00:00:00:%02x", h.r.IntN(12)) }

func (h *history) has(mac string) (netip.Addr, bool) {
	for a, l := range h.promised {
		if l.MAC == mac && l.Expires.After(h.now) {
			return a, true
		}
	}
	return netip.Addr{}, false
}

func (h *history) commit(l model.Lease) {
	also, err := h.w.table.prepare(l)
	if err != nil {
		return
	}
	for _, o := range append(also, l) {
		if o.Expires.IsZero() {
			delete(h.stored, o.Address)
			delete(h.promised, o.Address)
			continue
		}
		h.stored[o.Address] = o
	}
	h.w.table.bind(l)
	if l.Expires.IsZero() || l.Declined {
		delete(h.promised, l.Address)
		delete(h.shares, l.Address)
		return
	}
	if h.promised[l.Address].MAC != l.MAC {
		h.shares[l.Address] = map[uint32]time.Time{}
	}
	h.shares[l.Address][l.IAID] = l.Expires
	if was, ok := h.promised[l.Address]; ok && was.MAC != l.MAC && was.Expires.After(h.now) {
		h.t.Fatalf("%s was promised to %s until %s, and now to %s", l.Address, was.MAC, was.Expires, l.MAC)
	}
	for mac, a := range h.reserved {
		if was := h.promised[l.Address]; a == l.Address && mac != l.MAC && (was.MAC != l.MAC || !was.Expires.After(h.now)) {
			h.t.Fatalf("%s is reserved for %s and was newly given to %s", a, mac, l.MAC)
		}
	}
	for a, o := range h.promised {
		if o.MAC == l.MAC {
			delete(h.promised, a)
		}
	}
	h.promised[l.Address] = l
}

func (h *history) step() {
	mac := h.mac()
	q := ask(h.w, mac, "", h.now)
	a, has := h.has(mac)
	q.Wish, q.ClientID, q.IAID = a, "duid", uint32(h.r.IntN(3))
	switch h.r.IntN(12) {
	case 0, 1, 2, 3: // boots
		if l, err := h.w.table.Offer(q); err == nil && h.r.IntN(4) > 0 {
			q.Wish = l.Address
			if l, state := h.w.table.Renewal(q); state >= RenewalFree {
				h.commit(l)
			} else {
				h.t.Fatalf("%s may not have %s that it was just offered: state %d", mac, l.Address, state)
			}
		}
	case 4, 5, 6: // renews, or asks for something
		if !has || h.r.IntN(4) == 0 {
			q.Wish = netip.AddrFrom4([4]byte{192, 0, 2, byte(8 + h.r.IntN(10))})
		}
		if l, state := h.w.table.Renewal(q); state >= RenewalFree {
			h.commit(l)
		}
	case 7:
		l, _ := h.w.table.Release(q)
		delete(h.shares[a], q.IAID)
		if l == nil || !has {
			break
		}
		for iaid, until := range h.shares[a] {
			if until.After(h.now) {
				h.t.Fatalf("association %d of %s gave %s back, and %d holds it until %s", q.IAID, mac, a, iaid, until)
			}
		}
		h.commit(*l)
	case 8:
		if l, _ := h.w.table.Decline(q, false); l != nil && has {
			h.commit(*l)
		}
	case 9:
		h.reserved = map[string]netip.Addr{}
		var all []Reservation
		for i := range h.r.IntN(3) {
			r := Reservation{MAC: h.mac(), Address: netip.AddrFrom4([4]byte{192, 0, 2, byte(9 + 3*i)})}
			if _, twice := h.reserved[r.MAC]; !twice {
				h.reserved[r.MAC] = r.Address
				all = append(all, r)
			}
		}
		h.w.table.SetReservations(all)
	case 10:
		h.now = h.now.Add(time.Duration(h.r.IntN(40)) * time.Minute)
	case 11:
		h.restart()
	}
}

func (h *history) restart() {
	h.w = newWorld(setup{})
	var all []model.Lease
	for _, l := range h.stored {
		all = append(all, l)
		h.shares[l.Address] = map[uint32]time.Time{l.IAID: l.Expires} // the store knows who asked last
	}
	h.w.table.Load(all, h.now)
	h.reserved = nil
}

func (h *history) check() {
	holders := map[string]netip.Addr{}
	for i := range 20 {
		a := netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})
		mac, ok := h.w.holder(a, h.now)
		if !ok {
			continue
		}
		if other, twice := holders[mac]; twice {
			h.t.Fatalf("%s holds %s and %s", mac, other, a)
		}
		holders[mac] = a
	}
	for a, l := range h.promised {
		if l.Expires.After(h.now) && holders[l.MAC] != a {
			h.t.Fatalf("%s was promised %s until %s, the table says %s", l.MAC, a, l.Expires, holders[l.MAC])
		}
	}
	p := h.w.network.Subnets[0].addresses
	if p.entries > p.limit || p.entries < 0 || p.offers < 0 || p.declined < 0 || len(p.freed) > 2*p.limit+1 {
		h.t.Fatalf("the pool is out of bounds: %d entries, %d offers, %d declined, %d freed", p.entries, p.offers, p.declined, len(p.freed))
	}
}

func TestTableProperties(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprintf("history %d", seed), func(t *testing.T) {
			h := &history{
				t: t, r: rand.New(rand.NewPCG(seed, 1)), w: newWorld(setup{}), now: t0,
				stored: map[netip.Addr]model.Lease{}, promised: map[netip.Addr]model.Lease{},
				shares: map[netip.Addr]map[uint32]time.Time{},
			}
			for range 400 {
				h.step()
				h.check()
			}
		})
	}
}
