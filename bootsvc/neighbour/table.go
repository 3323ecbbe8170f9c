package neighbour

import (
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Memory is for how long a change is remembered. It is longer than a client can put off
// its request after it was last heard under its own address: a connection that is half
// open for 63 s (tcp_synack_retries is 5), and what the HTTP servers allow one.
const Memory = 3 * time.Minute

const (
	// maxPlaces bounds the addresses that are remembered. A kernel's own table is
	// smaller (gc_thresh3 is 1024 unless somebody raises it).
	maxPlaces = 1 << 16
	// maxFormer bounds the Ethernet addresses that one address is remembered to have had.
	maxFormer = 8
)

// Neighbour is what is known of who is at an address.
type Neighbour struct {
	// OnLink: the address is reached over a link that has a neighbour table, and not by
	// a router, and is none of this machine's own. Nothing else is known otherwise.
	OnLink bool
	MAC    string // canonical; "" when nobody answers for the address
	// Former are the other MAC addresses that it had within Memory.
	Former []string
	// Lost: changes were lost within Memory, so Former may be incomplete.
	Lost bool
}

// place is an address on a link.
type place struct {
	index int // of the interface
	addr  netip.Addr
}

// past is who was at a place.
type past struct {
	mac    string // who is there now
	seen   time.Time
	former []former
	lost   time.Time // when one of former was left out last
	gone   bool      // the kernel forgot the place at seen
}

// former is somebody who was at a place until a time.
type former struct {
	mac   string
	until time.Time
}

// memory is what is remembered of changes. It is safe for concurrent use.
type memory struct {
	mu     sync.Mutex
	places map[place]*past
	lost   time.Time // when changes were lost last
}

func newMemory() *memory { return &memory{places: make(map[place]*past)} }

// saw notes that somebody is at a place now.
func (m *memory) saw(at place, mac string, now time.Time) {
	p := m.places[at]
	if p == nil {
		if len(m.places) >= maxPlaces {
			m.forget(now)
		}
		m.places[at] = &past{mac: mac, seen: now}
		return
	}
	if p.mac != mac {
		p.leave(now)
		p.mac = mac
	}
	p.seen, p.gone = now, false
}

// leave notes that who is at a place is not any more, or not alone.
func (p *past) leave(now time.Time) {
	p.former = slices.DeleteFunc(p.former, func(f former) bool { return f.mac == p.mac || now.Sub(f.until) > Memory })
	if len(p.former) == maxFormer {
		p.former, p.lost = p.former[1:], now
	}
	p.former = append(p.former, former{p.mac, now})
}

// left notes that the kernel forgot a place.
func (m *memory) left(at place, now time.Time) {
	if p := m.places[at]; p != nil {
		p.seen, p.gone = now, true
	}
}

// forget makes room: for places that the kernel forgot long ago, or else for any, and
// then changes may be lost.
func (m *memory) forget(now time.Time) {
	for at, p := range m.places {
		if p.gone && now.Sub(p.seen) > Memory {
			delete(m.places, at)
		}
	}
	for at := range m.places {
		if len(m.places) < maxPlaces*7/8 {
			return
		}
		delete(m.places, at)
		m.lost = now
	}
}

// at returns who else than mac was at a place within Memory.
func (m *memory) at(at place, mac string, now time.Time) Neighbour {
	isRecent := func(t time.Time) bool { return !t.IsZero() && now.Sub(t) <= Memory }
	n := Neighbour{OnLink: true, MAC: mac, Lost: isRecent(m.lost)}
	if p := m.places[at]; p != nil {
		n.Lost = n.Lost || isRecent(p.lost)
		for _, f := range p.former {
			if f.mac != mac && isRecent(f.until) {
				n.Former = append(n.Former, f.mac)
			}
		}
	}
	return n
}
