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
	// maxAddresses bounds the addresses that are remembered. A kernel's own table is
	// smaller (gc_thresh3 is 1024 unless somebody raises it).
	maxAddresses = 1 << 16
	// maxPrevious bounds the Ethernet addresses that one address is remembered to have had.
	maxPrevious = 8
)

// Neighbour is what is known of the machine at an address.
type Neighbour struct {
	// OnLink: the address is reached over a link that has a neighbour table, and not by
	// a router, and is none of this machine's own. Nothing else is known otherwise.
	OnLink bool
	MAC    string // canonical; "" when nobody answers for the address
	// Previous are the other MAC addresses that it had within Memory.
	Previous []string
	// Lost: changes were lost within Memory, so Previous may be incomplete.
	Lost bool
}

type linkAddress struct {
	index int // of the interface
	addr  netip.Addr
}

// past is who had an address.
type past struct {
	mac       string // that it has now
	seen      time.Time
	previous  []previousMAC
	lost      time.Time // when one of previous was left out last
	forgotten bool      // the kernel forgot the address at seen
}

// previousMAC is a MAC address that an address had until a time.
type previousMAC struct {
	mac   string
	until time.Time
}

// memory is what is remembered of changes. It is safe for concurrent use.
type memory struct {
	mu   sync.Mutex
	past map[linkAddress]*past
	lost time.Time // when changes were lost last
}

func newMemory() *memory { return &memory{past: make(map[linkAddress]*past)} }

func (m *memory) sawAt(at linkAddress, mac string, now time.Time) {
	p := m.past[at]
	if p == nil {
		if len(m.past) >= maxAddresses {
			m.forget(now)
		}
		m.past[at] = &past{mac: mac, seen: now}
		return
	}
	if p.mac != mac {
		p.retire(now)
		p.mac = mac
	}
	p.seen, p.forgotten = now, false
}

// retire notes that an address no longer has its MAC address, or not alone.
func (p *past) retire(now time.Time) {
	p.previous = slices.DeleteFunc(p.previous, func(f previousMAC) bool { return f.mac == p.mac || now.Sub(f.until) > Memory })
	if len(p.previous) == maxPrevious {
		p.previous, p.lost = p.previous[1:], now
	}
	p.previous = append(p.previous, previousMAC{p.mac, now})
}

func (m *memory) forgot(at linkAddress, now time.Time) {
	if p := m.past[at]; p != nil {
		p.seen, p.forgotten = now, true
	}
}

// forget makes room: for addresses that the kernel forgot long ago, or else for any, and
// then changes may be lost.
func (m *memory) forget(now time.Time) {
	for at, p := range m.past {
		if p.forgotten && now.Sub(p.seen) > Memory {
			delete(m.past, at)
		}
	}
	for at := range m.past {
		if len(m.past) < maxAddresses*7/8 {
			return
		}
		delete(m.past, at)
		m.lost = now
	}
}

// at returns which MAC addresses other than mac an address had within Memory.
func (m *memory) at(at linkAddress, mac string, now time.Time) Neighbour {
	isRecent := func(t time.Time) bool { return !t.IsZero() && now.Sub(t) <= Memory }
	n := Neighbour{OnLink: true, MAC: mac, Lost: isRecent(m.lost)}
	if p := m.past[at]; p != nil {
		n.Lost = n.Lost || isRecent(p.lost)
		for _, f := range p.previous {
			if f.mac != mac && isRecent(f.until) {
				n.Previous = append(n.Previous, f.mac)
			}
		}
	}
	return n
}
