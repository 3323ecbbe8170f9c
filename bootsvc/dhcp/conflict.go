package dhcp

import (
	"net/netip"
	"sync"
	"time"

	"ingot/bootsvc/dhcp/inuse"
	"ingot/model"
)

// Bounds of asking whether somebody uses an address.
const (
	maxAsking    = 1024             // at a time: who comes then is not kept waiting
	maxConflicts = 4                // addresses that one packet is tried with
	proxyAfter   = 16               // addresses that one device answers for, and then no longer counts
	proxyFor     = 10 * time.Minute // for how long those are remembered
)

// Prober finds out whether somebody uses an address: by which MAC address, "" where that cannot be
// seen.
type Prober interface {
	InUse(addr netip.Addr, link inuse.Link) (by string, used bool)
}

// conflicts asks whether addresses are in use that are to be given.
type conflicts struct {
	prober Prober        // nil = nobody is asked
	slots  chan struct{} // of those who are asking
	asking sync.WaitGroup

	mu    sync.Mutex
	since time.Time
	by    map[string]map[netip.Addr]bool // the addresses that a device answers for
}

func newConflicts(p Prober) *conflicts {
	return &conflicts{prober: p, slots: make(chan struct{}, maxAsking)}
}

// asksFirst reports whether the link is to be asked before a is given: a client that has the address
// already, or that was told of it, uses it itself.
func (n *network) asksFirst(a answer4) bool {
	return a.fresh && n.server.conflicts.prober != nil && (n.Probe == nil || *n.Probe) && !a.client.IsLoopback() &&
		n.server.table.Unasked(a.client)
}

// answerFirst answers p once it is known that nobody uses the address, and reports false if that is
// to be done without. Nobody else waits meanwhile.
func (n *network) answerFirst(p packet4, a answer4) bool {
	c := n.server.conflicts
	select {
	case c.slots <- struct{}{}:
	default:
		return false
	}
	c.asking.Go(func() {
		defer n.recoverPanic(false, p.from)
		defer func() { <-c.slots }()
		n.commit4(p, n.unused(p, a))
	})
	return true
}

// unused returns an answer to p with an address that nobody uses: a, or what p gets in its place. What is
// in use is set aside.
func (n *network) unused(p packet4, a answer4) answer4 {
	for range maxConflicts {
		by, used := n.server.conflicts.prober.InUse(a.client, n.linkTo(a.client))
		now := n.server.clock()
		q := n.query4(p, a.client, now)
		// Behind a router nobody can tell whether it is the client itself that answers.
		if !used || by == p.mac || by == "" && n.server.table.IsReserved(q, a.client) || n.server.conflicts.isProxy(by, a.client, now) {
			n.server.table.SetAsked(a.client)
			return a
		}
		aside, offered := n.server.table.SetAside(q)
		switch {
		case !offered:
			return silence4("in use")
		case !aside.Address.IsValid():
			return a // so much is set aside that somebody seems to answer for all
		}
		n.server.log.Warn("an address is in use by a device that Ingot did not give it to: it is set aside", "network", n.Name,
			"address", a.client, "by", by, "mac", p.mac, "until", aside.Expires)
		n.server.committer.Commit(aside, func(error) {}) // it is true in memory
		if a = n.decide4(p, now); !n.asksFirst(a) {
			return a
		}
	}
	return silence4("in use")
}

// linkTo returns the link that an address is asked for on, zero for behind a router.
func (n *network) linkTo(addr netip.Addr) inuse.Link {
	l := n.link()
	for _, p := range l.v4 {
		if n.Interface != "" && len(l.mac) == len(model.MAC{}) && p.Contains(addr) {
			return inuse.Link{Index: l.index, MAC: l.mac}
		}
	}
	return inuse.Link{}
}

// isProxy reports whether a device answers for whatever address is asked for, as a router does that is
// set up to (RFC 1027), or somebody who wants no address to be left.
func (c *conflicts) isProxy(by string, addr netip.Addr, now time.Time) bool {
	if by == "" {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.since) >= proxyFor || len(c.by) >= maxAsking {
		c.since, c.by = now, make(map[string]map[netip.Addr]bool)
	}
	if c.by[by] == nil {
		c.by[by] = make(map[netip.Addr]bool)
	}
	if len(c.by[by]) < proxyAfter {
		c.by[by][addr] = true
		return false
	}
	return !c.by[by][addr]
}
