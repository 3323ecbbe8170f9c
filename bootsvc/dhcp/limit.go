package dhcp

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"time"
)

// RateLimit bounds the packets that are looked into, in packets per second. For a moment there
// may be limitWindow times as many.
type RateLimit struct {
	// Client is for each MAC address, DefaultClientRate when 0.
	Client int `json:"client"`
	// Port is for each port of relays that are named in Relays and tell the port, as option 82
	// does; DefaultPortRate when 0.
	Port int `json:"port"`
}

// The limits where the configuration says nothing. Firmware that boots sends a dozen packets in a
// few seconds at most, and a port may lead to a rack.
const (
	DefaultClientRate = 8
	DefaultPortRate   = 100
	maxRate           = 10_000
)

const (
	limitWindow = 5 // seconds
	limitSets   = 2048
	limitWays   = 4
)

// limiter bounds the packets of each of many senders. It has a fixed number of places, in sets
// of limitWays: a new sender takes the place in its set that was begun longest ago. Who loses its
// place is let through more, never less.
type limiter struct {
	seed maphash.Seed
	mu   sync.Mutex
	sets [limitSets][limitWays]limitPlace
}

// limitPlace is what one sender sent since.
type limitPlace struct {
	who   uint64
	since int64
	count int
	most  int
}

func newLimiter() *limiter { return &limiter{seed: maphash.MakeSeed()} }

// sender is who packets are counted for: a MAC address, behind a port of a relay if that may be
// believed; or such a port, without a MAC address.
type sender struct {
	network string
	relay   netip.Addr
	port    string
	mac     string
}

// hash returns the number that a sender is known by.
func (l *limiter) hash(who sender) uint64 {
	relay := who.relay.As16()
	var h maphash.Hash
	h.SetSeed(l.seed)
	_, _ = h.Write(relay[:])
	for _, s := range []string{who.network, who.port, who.mac} {
		_, _ = h.WriteString(s)
		_ = h.WriteByte(0)
	}
	return h.Sum64()
}

// allow counts a packet of a sender and reports whether it may be looked into, at a rate of so many
// packets per second.
func (l *limiter) allow(who sender, rate int, now time.Time) bool {
	hash := l.hash(who)
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.place(hash)
	if p.who != hash || !p.current(now) {
		*p = limitPlace{who: hash, since: now.Unix()}
	}
	p.count++
	p.most = rate * limitWindow
	return p.count <= p.most
}

// place returns the place of a sender, or the one that it takes.
func (l *limiter) place(who uint64) *limitPlace {
	set := &l.sets[who%limitSets]
	oldest := &set[0]
	for i := range set {
		if set[i].who == who {
			return &set[i]
		}
		if set[i].since < oldest.since {
			oldest = &set[i]
		}
	}
	return oldest
}

// current reports whether what is counted is of the present.
func (p *limitPlace) current(now time.Time) bool {
	age := now.Unix() - p.since
	return 0 <= age && age < limitWindow
}

// limited returns how many senders are over their limit.
func (l *limiter) limited(now time.Time) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.sets {
		for j := range l.sets[i] {
			if p := &l.sets[i][j]; p.count > p.most && p.current(now) {
				n++
			}
		}
	}
	return n
}

// limits are the limiters of a server.
type limits struct{ clients, ports *limiter }

func newLimits() limits { return limits{newLimiter(), newLimiter()} }

// The labels of metrics for packets over a limit.
const (
	overClient = "rate"      // too many of one MAC address
	overPort   = "port rate" // too many of one port of a relay
)

// overLimit returns which limit a packet is over, "" for none. Behind a relay that may be
// believed, a MAC address is counted for each port by itself: who shows another's there uses up
// none of what that one may send. Port is "" when nothing says it.
func (n *network) overLimit(mac string, relay netip.Addr, port string, now time.Time) string {
	believed := len(n.relays) > 0 && relay.IsValid() && port != ""
	who := sender{network: n.Name, mac: mac}
	if believed {
		who.relay, who.port = relay, port
	}
	if !n.server.limits.clients.allow(who, n.RateLimit.Client, now) {
		return overClient
	}
	who.mac = ""
	if believed && !n.server.limits.ports.allow(who, n.RateLimit.Port, now) {
		return overPort
	}
	return ""
}
