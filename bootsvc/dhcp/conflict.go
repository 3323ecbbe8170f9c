package dhcp

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"ingot/bootsvc/dhcp/inuse"
	"ingot/bootsvc/dhcp/lease"
	"ingot/model"
)

// Bounds of asking whether somebody uses an address.
const (
	maxAsking    = 1024             // at a time: who comes then is not kept waiting
	maxConflicts = 4                // addresses that one packet is tried with
	proxyAfter   = 16               // addresses that one device answers for, and then no longer counts
	proxyFor     = 10 * time.Minute // for how long those are remembered
)

// inUse is why a client is not answered that somebody else uses the addresses of.
const inUse = "in use"

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

// probes reports whether n's clients are given addresses only once it is known that nobody uses them.
func (n *network) probes() bool {
	return n.server.conflicts.prober != nil && (n.Probe == nil || *n.Probe)
}

// asksFirst reports whether the link is to be asked before a is given: a client that has the address
// already, or that was told of it, uses it itself.
func (n service4) asksFirst(a answer4) bool {
	return a.fresh && n.probes() && !a.client.IsLoopback() && n.server.table.Unasked(a.client)
}

// answerFirst answers p once it is known that nobody uses the address, and reports false if that is
// to be done without. Nobody else waits meanwhile.
func (n service4) answerFirst(p packet4, a answer4) bool {
	return n.server.conflicts.later(func() {
		defer n.recoverPanic(false, p.from)
		n.commit4(p, n.unused(p, a))
	})
}

// later has a packet answered beside the others, and reports false if too many are.
func (c *conflicts) later(answer func()) bool {
	select {
	case c.slots <- struct{}{}:
	default:
		return false
	}
	c.asking.Go(func() {
		defer func() { <-c.slots }()
		answer()
	})
	return true
}

// unused returns an answer to p with an address that nobody uses: a, or what p gets in its place. What is
// in use is set aside.
func (n service4) unused(p packet4, a answer4) answer4 {
	for range maxConflicts {
		q := n.query4(p, a.client, n.server.options.Clock())
		switch n.lookFor(q) {
		case usedByNobody:
			return a
		case usedNotOffered:
			return silence4(inUse)
		case usedByOther:
		}
		if a = n.decide4(p, n.server.options.Clock()); !n.asksFirst(a) {
			return a
		}
	}
	return silence4(inUse)
}

// use is who uses an address that is offered to a client.
type use int

const (
	usedByNobody   use = iota // or by the client itself, or by whoever answers for all
	usedByOther               // and the address was set aside
	usedNotOffered            // the client is offered the address no more
)

// lookFor finds out whether somebody uses q.Wish, which the client is offered, and then sets it aside.
func (n *network) lookFor(q lease.Query) use {
	by, used := n.server.conflicts.prober.InUse(q.Wish, n.linkTo(q))
	// Behind a router nobody can tell whether it is the client itself that answers.
	if !used || by != "" && by == q.MAC || by == "" && n.server.table.Reserved(q) == q.Wish || n.server.conflicts.isProxy(by, q.Wish, q.Now) {
		n.server.table.SetAsked(q.Wish)
		return usedByNobody
	}
	aside, offered := n.server.table.SetAside(q)
	switch {
	case !offered:
		return usedNotOffered
	case !aside.Address.IsValid():
		return usedByNobody // so much is set aside that somebody seems to answer for all
	}
	n.server.options.Log.Warn("an address is in use by a device that Ingot did not give it to: it is set aside", "network", n.Name,
		"address", q.Wish, "by", by, "mac", q.MAC, "until", aside.Expires)
	n.server.committer.Commit(aside, func(error) {}) // it is true in memory
	return usedByOther
}

// noteDecline logs why a client declined an address, which was set aside, or given back if l is not. A client that checks its
// address (RFC 5227) declines one that is in use within a second, too, and may send a message. So the link is
// asked whether another device uses an address that is refused: only then it is a conflict. Where the link is not
// probed, the address is offered again after a minute, to any client.
func (n *network) noteDecline(q lease.Query, refuses bool, message string, l *model.Lease) {
	if l == nil || !l.Declined { // it declined so often that its declines no longer count
		return
	}
	facts := []any{"network", n.Name, "mac", q.MAC, "address", q.Wish, "message", model.ReadableIdentifier(message)}
	if !refuses {
		n.server.options.Log.Warn("a device found its address in use by another", facts...)
		return
	}
	decide := func() {
		defer n.recoverPanic(q.Wish.Is6(), netip.AddrPort{})
		if by, used := n.isUsed(q); used {
			n.server.options.Log.Warn("a device found its address in use by another", append(facts, "by", by)...)
			if l := n.server.table.ConfirmDecline(q.Wish, n.server.options.Clock()); l != nil {
				n.server.committer.Commit(*l, func(error) {}) // it is true in memory
			}
			return
		}
		n.server.options.Log.Warn("a device refused its lease", facts...)
	}
	if !n.probes() || q.Bits > 0 || q.Wish.IsLoopback() || !n.server.conflicts.later(decide) {
		n.server.options.Log.Warn("a device refused its lease", facts...)
	}
}

// isUsed reports whether another device than the client that declined q.Wish uses it.
func (n *network) isUsed(q lease.Query) (by string, used bool) {
	by, used = n.server.conflicts.prober.InUse(q.Wish, n.linkTo(q))
	return by, used && by != q.MAC && !n.server.conflicts.isProxy(by, q.Wish, q.Now)
}

// linkTo returns the link on which q.Wish is probed, zero for behind a router and for a link that cannot be probed. Over IPv6 the
// interface need not have an address of its clients' subnet.
func (n *network) linkTo(q lease.Query) inuse.Link {
	l := n.sockets.link()
	isOwn := q.Wish.Is6() && !q.Relay.Address.IsValid() ||
		slices.ContainsFunc(l.of(q.Wish.Is6()), func(p netip.Prefix) bool { return p.Contains(q.Wish) })
	if !isOwn || n.Interface == "" || len(l.mac) != len(model.MAC{}) {
		return inuse.Link{}
	}
	return inuse.Link{Index: l.index, MAC: l.mac}
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
