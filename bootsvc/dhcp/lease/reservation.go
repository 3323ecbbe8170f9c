package lease

import (
	"net/netip"
	"time"

	"ingot/model"
)

// Reservation is an address that is kept for one MAC address.
type Reservation struct {
	MAC     string // canonical
	Name    string // of the Endpoint, for the log
	Address netip.Addr
	Options model.DHCPOptions // that its device is told, before those of its subnet
}

// SetReservations replaces all reservations. Leases stay as they are.
func (t *Table) SetReservations(all []Reservation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byMAC, t.reserved = make(map[string][]Reservation, len(all)), make(map[netip.Addr]Reservation, len(all))
	for _, r := range all {
		r.Address = r.Address.Unmap().WithZone("")
		if first, duplicate := t.reserved[r.Address]; duplicate || !r.Address.IsValid() {
			t.log.Warn("a reservation is left out: its address is reserved already", "endpoint", r.Name, "address", r.Address, "first", first.Name)
			continue
		}
		t.byMAC[r.MAC] = append(t.byMAC[r.MAC], r)
		t.reserved[r.Address] = r
	}
	clear(t.warned)
	t.lookAgain()
}

// pickReserved finds the address that is reserved for the client on its link. It
// stays with who holds it now until that lease ends.
func (t *Table) pickReserved(q Query) *entry {
	r, s, ok := t.reservation(q)
	if !ok {
		return nil
	}
	e := t.bySlot[slot{r.Address, 0}]
	switch {
	case e == nil:
	case e.device == q.device():
		return e
	case t.outlastsReservation(e, q.Now):
		t.warnHeld(r, e)
		return nil
	default:
		t.remove(e)
	}
	return t.insert(s.poolOf(r.Address, 0), r.Address, q)
}

// warnHeld says once that a reservation waits for a lease to end.
func (t *Table) warnHeld(r Reservation, e *entry) {
	if t.warned[r.Address] {
		return
	}
	t.warned[r.Address] = true
	t.log.Warn("a reserved address is still another device's: its own device gets another until that lease ends",
		"endpoint", r.Name, "address", r.Address, "mac", r.MAC, "holder", e.mac, "declined", e.declined, "until", time.Unix(e.expires, 0).UTC())
}

// Options returns the options that a MAC address is told, nil for none.
func (t *Table) Options(mac string) model.DHCPOptions {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.byMAC[mac] {
		if r.Options != nil {
			return r.Options
		}
	}
	return nil
}

// Reserves reports whether an address is reserved for the client on its link.
func (t *Table) Reserves(q Query) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _, ok := t.reservation(q)
	return ok
}

// reservation returns the client's reservation on its link.
func (t *Table) reservation(q Query) (Reservation, *Subnet, bool) {
	if q.Bits > 0 || q.Nth > 0 || q.Unreserved {
		return Reservation{}, nil, false
	}
	for _, r := range t.byMAC[q.MAC] {
		if s, ok := q.onLink(r.Address); ok && !t.own[r.Address] && !s.special(r.Address) {
			return r, s, true
		}
	}
	return Reservation{}, nil, false
}

// reservedForOther reports whether a is kept for another than the client that asks.
func (t *Table) reservedForOther(a netip.Addr, q Query) bool {
	r, ok := t.reserved[a]
	return ok && (r.MAC != q.MAC || q.Nth > 0 || q.Unreserved)
}
