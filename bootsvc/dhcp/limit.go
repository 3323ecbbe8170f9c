package dhcp

import (
	"net/netip"
	"time"

	"golang.org/x/time/rate"

	"ingot/bootsvc/internal/lru"
)

const (
	// clientRate is how many packets of one client are processed per second. Firmware sends a dozen in a few seconds
	// at most.
	clientRate  = 8
	clientBurst = 5 * clientRate
	// maxClients is how many clients are counted. The least recently seen one is forgotten.
	maxClients = 8192
)

// overClient is the label of packets that are dropped because one client sends too many.
const overClient = "rate"

// client is a sender of packets: a MAC address or a client identifier. Behind a trusted relay it is counted
// separately for each port, so that a forged MAC address on another port does not use up its share.
type client struct {
	network string
	relay   netip.Addr
	port    string
	id      string
}

// limiter bounds the packets of each client.
type limiter struct {
	rate    rate.Limit
	clients *lru.Cache[client, *rate.Limiter]
}

func newLimiter() *limiter {
	return &limiter{rate: clientRate, clients: lru.New[client, *rate.Limiter](maxClients)}
}

// allow counts a packet and reports whether it may be processed.
func (l *limiter) allow(c client, now time.Time) bool {
	counted, ok := l.clients.Get(c)
	if !ok {
		counted = rate.NewLimiter(l.rate, clientBurst)
		l.clients.Put(c, counted, 1)
	}
	return counted.AllowN(now, 1)
}

// isOverLimit counts a packet of a client and reports whether it must be dropped. Port is empty if unknown.
func (n *network) isOverLimit(id string, relay netip.Addr, port string, now time.Time) bool {
	c := client{network: n.Name, id: id}
	if len(n.relays) > 0 && relay.IsValid() && port != "" {
		c.relay, c.port = relay, port
	}
	return !n.server.limiter.allow(c, now)
}
