package lease

import (
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"

	"ingot/model"
)

// Reservation is an address that is kept for one device, or for what is plugged into one port.
type Reservation struct {
	MAC      string          // canonical; empty = any
	ClientID string          // client identifier or DUID, in hexadecimal; who shows it counts as who has MAC
	Port     model.RelayPort // of a relay; whoever is there, and nobody else, counts
	Name     string          // of the Endpoint, for the log
	Address  netip.Addr
	Options  model.DHCPOptions // that its device is told, before those of its subnet
}

// reservations are all that there are. The table's lock guards them.
type reservations struct {
	networks networks
	log      *slog.Logger

	own    map[netip.Addr]bool // addresses of this machine
	warned map[netip.Addr]bool // reserved addresses that were logged as leased to another device

	byAddress  map[netip.Addr]Reservation
	byMAC      map[string][]Reservation
	byClientID map[string][]Reservation
	byPort     map[model.RelayPort][]Reservation
}

func (all *reservations) add(r Reservation) {
	all.byAddress[r.Address] = r
	if r.Port != (model.RelayPort{}) {
		all.byPort[r.Port] = append(all.byPort[r.Port], r)
		return
	}
	if r.MAC != "" {
		all.byMAC[r.MAC] = append(all.byMAC[r.MAC], r)
	}
	if r.ClientID != "" {
		all.byClientID[r.ClientID] = append(all.byClientID[r.ClientID], r)
	}
}

// of returns the reservations that are the client's who asks, those that count most first: of the
// port that it is plugged into, which no client can choose; of its client identifier, which an
// operating system is given to be known by; of its MAC address.
func (all *reservations) of(q Query) []Reservation {
	mac := q.MAC
	if q.Unreserved {
		mac = ""
	}
	if len(all.byPort)+len(all.byClientID) == 0 {
		return all.byMAC[mac]
	}
	var found []Reservation
	for _, port := range portsOf(q.Port) {
		found = append(found, all.byPort[port]...)
	}
	for _, id := range clientsOf(q.ClientID) {
		found = append(found, all.byClientID[id]...)
	}
	return append(found, all.byMAC[mac]...)
}

// portsOf are the names that a port goes by, the most exact first.
func portsOf(p model.RelayPort) []model.RelayPort {
	switch {
	case p == model.RelayPort{}:
		return nil
	case p.CircuitID == "" || p.RemoteID == "":
		return []model.RelayPort{p}
	}
	return []model.RelayPort{p, {CircuitID: p.CircuitID}, {RemoteID: p.RemoteID}}
}

// clientsOf are the names that a client identifier goes by: itself, the DUID in it (RFC 4361 §6.1:
// type 255, an IAID of 4 bytes), and what stands behind type 0, which says that it is no
// hardware's (RFC 2132 §9.14), as dhclient and dnsmasq have it.
func clientsOf(id string) []string {
	const typeByte, iaid = 2, 8 // in hexadecimal digits
	switch {
	case id == "":
		return nil
	case strings.HasPrefix(id, "ff") && len(id) > typeByte+iaid:
		return []string{id, id[typeByte+iaid:]}
	case strings.HasPrefix(id, "00") && len(id) > typeByte:
		return []string{id, id[typeByte:]}
	}
	return []string{id}
}

// isFor reports whether a reservation is the client's who asks.
func (r *Reservation) isFor(q Query) bool {
	switch {
	case q.Nth > 0:
		return false
	case r.Port != (model.RelayPort{}):
		return slices.Contains(portsOf(q.Port), r.Port)
	}
	return r.MAC == q.MAC && r.MAC != "" && !q.Unreserved || r.ClientID != "" && slices.Contains(clientsOf(q.ClientID), r.ClientID)
}

// gave reports whether e, whose client does not say by which port it is heard, was given to what is
// plugged into the port of a reservation: who renews by unicast passes by its relay.
func (r *Reservation) gave(e *entry, q Query) bool {
	isSame := func(id, shown string) bool { return id == "" || model.ReadableIdentifier(id) == shown }
	none := model.RelayPort{}
	return r.Port != none && q.Port == none && isSame(r.Port.CircuitID, e.relay.CircuitID) && isSame(r.Port.RemoteID, e.relay.RemoteID)
}

// SetReservations replaces all reservations. Leases stay as they are.
func (t *Table) SetReservations(all []Reservation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reserved.replace(all)
	t.networks.lookAgain()
}

func (all *reservations) replace(with []Reservation) {
	before := all.byAddress
	all.byAddress, all.byMAC = make(map[netip.Addr]Reservation, len(with)), make(map[string][]Reservation, len(with))
	all.byClientID, all.byPort = make(map[string][]Reservation), make(map[model.RelayPort][]Reservation)
	all.warned = make(map[netip.Addr]bool)
	for _, r := range with {
		r.Address = r.Address.Unmap().WithZone("")
		if first, duplicate := all.byAddress[r.Address]; duplicate || !r.Address.IsValid() {
			all.log.Warn("a reservation is skipped: its address is already reserved", "endpoint", r.Name, "address", r.Address, "first", first.Name)
			continue
		}
		all.add(r)
		if before[r.Address].Name != r.Name {
			all.warnUseless(r)
		}
	}
	all.count()
}

// setOwn replaces the addresses of this machine.
func (all *reservations) setOwn(own map[netip.Addr]bool) {
	before := all.own
	all.own = own
	for a := range own {
		if r, reserved := all.byAddress[a]; reserved && !before[a] {
			all.warnUseless(r)
		}
	}
}

// count gives each pool the list of its reserved addresses, because each plan reads how full the pools are.
func (all *reservations) count() {
	var pools []*pool
	for _, n := range all.networks {
		for _, s := range n.Subnets {
			if s.addresses != nil {
				s.addresses.reserved = nil
				pools = append(pools, s.addresses)
			}
		}
	}
	for a := range all.byAddress {
		for _, p := range pools {
			if p.contains(a) {
				p.reserved = append(p.reserved, a)
			}
		}
	}
}

// pickReserved finds the address that is reserved for the client on its link. It
// stays with who holds it now until that lease ends.
func (t *Table) pickReserved(q Query) *entry {
	r, s, ok := t.reserved.onLink(q)
	if !ok {
		return nil
	}
	e := t.index.bySlot[slot{r.Address, 0}]
	switch {
	case e == nil:
	case e.device == q.device():
		return e
	case t.holds(e, q.Now):
		t.reserved.warnHeld(r, e)
		return nil
	default:
		t.index.remove(e)
	}
	e = t.index.insert(s.poolOf(r.Address, 0), r.Address, q)
	e.rightful = true
	return e
}

// holds reports whether e keeps a reserved address even from a device that it is reserved for, of
// which there may be several: two network cards with one client identifier.
func (t *Table) holds(e *entry, now time.Time) bool {
	return t.outlastsReservation(e, now) || e.expires == 0 && e.rightful && !e.free(now)
}

// warnHeld says once that a reservation waits for a lease to end.
func (all *reservations) warnHeld(r Reservation, e *entry) {
	if all.warned[r.Address] {
		return
	}
	all.warned[r.Address] = true
	all.log.Warn("a reserved address is still another device's: its own device gets another until that lease ends",
		"endpoint", r.Name, "address", r.Address, "holder", e.mac, "declined", e.declined, "until", time.Unix(max(e.expires, e.offeredUntil), 0).UTC())
}

// warnUseless says that a reserved address is none that a device can be given.
func (all *reservations) warnUseless(r Reservation) {
	why := ""
	if all.own[r.Address] {
		why = "it is an address of this machine"
	}
	for _, n := range all.networks {
		switch s, ok := n.SubnetOf(r.Address, 0); {
		case !ok || why != "":
		case !s.special(r.Address):
			return // of a link there may be another
		case r.Address == s.Gateway:
			why = "it is the gateway of network " + n.Name
		default:
			why = "it is the first or the last address of a subnet of network " + n.Name
		}
	}
	if why != "" {
		all.log.Warn("a reserved address cannot be given: its device gets another", "endpoint", r.Name, "address", r.Address, "because", why)
	}
}

// Options returns the options that the client who asks is told, nil for none.
func (t *Table) Options(q Query) model.DHCPOptions {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _, hasAddress := t.reserved.onLink(q)
	for _, r := range t.reserved.of(q) {
		// The options of an address in another subnet count only for a client with none here.
		if _, onLink := q.onLink(r.Address); r.Options != nil && (onLink || !hasAddress) {
			return r.Options
		}
	}
	return nil
}

// Reserved returns the address that is reserved for the client on its link, invalid for none.
func (t *Table) Reserved(q Query) netip.Addr {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, _, _ := t.reserved.onLink(q)
	return r.Address
}

func (all *reservations) onLink(q Query) (Reservation, *Subnet, bool) {
	if q.Bits > 0 || q.Nth > 0 {
		return Reservation{}, nil, false
	}
	for _, r := range all.of(q) {
		if s, ok := q.onLink(r.Address); ok && !all.own[r.Address] && !s.special(r.Address) {
			return r, s, true
		}
	}
	return Reservation{}, nil, false
}

// areForOther reports whether a is kept for another client than the one that asks.
func (all *reservations) areForOther(a netip.Addr, q Query) bool {
	r, ok := all.byAddress[a]
	return ok && !r.isFor(q)
}

// nameOf returns the Endpoint without a MAC address that reserves e for its client, or "".
func (all *reservations) nameOf(e *entry, q Query) string {
	r, ok := all.byAddress[e.address]
	if !ok || r.MAC != "" || !r.isFor(q) && !r.gave(e, q) {
		return ""
	}
	return r.Name
}

// isToLeave reports whether what the client who asks holds is kept for another.
func (all *reservations) isToLeave(e *entry, q Query) bool {
	r, ok := all.byAddress[e.address]
	return ok && e.pool.bits == 0 && !r.isFor(q) && !r.gave(e, q)
}

// leftPort reports whether a is kept for a port, and who asks is plugged into another one.
func (all *reservations) leftPort(a netip.Addr, q Query) bool {
	r, ok := all.byAddress[a]
	return ok && r.Port != (model.RelayPort{}) && q.Port != (model.RelayPort{}) && !r.isFor(q)
}
