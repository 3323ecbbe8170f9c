package netboot

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// heardLife is for how long what was heard counts.
	heardLife = time.Hour
	// maxHeard bounds the addresses and the ports that are remembered.
	maxHeard = 1 << 14
)

// Heard is what was overheard of clients and other DHCP servers: who asked for which
// address, and on which port of a relay. A nil Heard has heard nothing. It is safe for
// concurrent use.
type Heard struct {
	clock func() time.Time

	mu        sync.Mutex
	addresses map[netip.Addr]heard
	ports     map[string]heard // by MAC address
}

type heard struct {
	what string
	at   time.Time
}

// NewHeard returns what has heard nothing yet; a nil clock is time.Now.
func NewHeard(clock func() time.Time) *Heard {
	if clock == nil {
		clock = time.Now
	}
	return &Heard{clock: clock, addresses: make(map[netip.Addr]heard), ports: make(map[string]heard)}
}

// Asked notes that a client asked another DHCP server for an address, which is that
// client's from then on and nobody's before it.
func (h *Heard) Asked(mac string, addr netip.Addr) {
	if h == nil || !addr.IsValid() || addr.IsUnspecified() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	note(h.addresses, withoutZone(addr), mac, h.clock())
}

// On notes the port that a relay heard a client on.
func (h *Heard) On(mac, port string) {
	if h == nil || port == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	note(h.ports, mac, port, h.clock())
}

// Holder returns the MAC address that asked for an address last, within an hour.
func (h *Heard) Holder(addr netip.Addr) (mac string, ok bool) {
	if h == nil {
		return "", false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	e, ok := h.addresses[withoutZone(addr)]
	if !ok || h.clock().Sub(e.at) > heardLife {
		return "", false
	}
	return e.what, true
}

// Port returns the port of a relay that a MAC address was heard on last, "" for none.
func (h *Heard) Port(mac string) string {
	if h == nil {
		return ""
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ports[mac].what
}

// note keeps what was heard. Who is forgotten for want of room is refused, until heard again.
func note[K comparable](all map[K]heard, about K, what string, now time.Time) {
	if _, known := all[about]; !known && len(all) >= maxHeard {
		makeRoom(all, now)
	}
	all[about] = heard{what, now}
}

// makeRoom forgets what is too old, and of the rest as much as leaves an eighth free, so
// that it is seldom called.
func makeRoom[K comparable](all map[K]heard, now time.Time) {
	for k, e := range all {
		if now.Sub(e.at) > heardLife {
			delete(all, k)
		}
	}
	for k := range all {
		if len(all) < maxHeard*7/8 {
			return
		}
		delete(all, k)
	}
}
