package dhcp

import (
	"hash/maphash"
	"sync"
	"time"
)

// What one MAC address may send. Firmware that boots sends a dozen packets in a
// few seconds at most.
const (
	limitPackets = 40
	limitWindow  = 5 // seconds
	limitSlots   = 8192
)

// limiter bounds the packets that one MAC address is answered. It has a fixed
// number of places: two MAC addresses that meet in one take it from each other,
// which lets through more, never less.
type limiter struct {
	seed  maphash.Seed
	mu    sync.Mutex
	slots [limitSlots]limitSlot
}

// limitSlot is what one MAC address sent since.
type limitSlot struct {
	who   uint64
	since int64
	count int
}

func newLimiter() *limiter { return &limiter{seed: maphash.MakeSeed()} }

// allow counts a packet of mac and reports whether it may be answered.
func (l *limiter) allow(mac string, now time.Time) bool {
	who := maphash.String(l.seed, mac)
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.slots[who%limitSlots]
	if s.who != who || now.Unix()-s.since >= limitWindow || now.Unix() < s.since {
		*s = limitSlot{who: who, since: now.Unix()}
	}
	s.count++
	return s.count <= limitPackets
}
