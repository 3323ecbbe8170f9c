package lease

import (
	"slices"

	"ingot/model"
)

type group struct {
	leases []model.Lease
	owed   []model.Lease // of them those that were owed
	at     map[slot]int
	given  map[owner]slot // which address each device is given
}

// add adds a lease. For each address the last that is said of it counts.
func (g *group) add(l model.Lease) {
	s := slot{l.Address, l.Bits}
	if i, ok := g.at[s]; ok {
		g.leases[i] = l
		return
	}
	g.at[s] = len(g.leases)
	g.leases = append(g.leases, l)
}

// due returns what the store still is to be told after it failed, whoever waits or not:
// what it was owed, and what is to be forgotten, for that was forgotten in memory.
func (g *group) due() []model.Lease {
	all := slices.Clone(g.owed)
	for _, l := range g.leases {
		if l.Expires.IsZero() {
			all = append(all, l)
		}
	}
	return all
}

// gives notes that l is given to its device, and reports whether it may be: of a
// device that was given two addresses of a network the second waits for the next
// group, which then forgets the first if it must, so that the store is never told both.
func (g *group) gives(l model.Lease) bool {
	o, ok := ownerOf(l)
	if !ok {
		return true
	}
	s := slot{l.Address, l.Bits}
	if first, again := g.given[o]; again && first != s {
		g.given[o] = slot{} // nor may what comes behind overtake it
		return false
	}
	g.given[o] = s
	return true
}

// owner is who a lease belongs to, as the store knows it.
type owner struct {
	network string
	device  deviceID
	kind    kind
}

// ownerOf returns who l belongs to, and false for what is given back or set aside.
func ownerOf(l model.Lease) (owner, bool) {
	return owner{l.Network, deviceOf(l), kindOf(l.Address, l.Bits)}, !l.Expires.IsZero() && !l.Declined
}

// group takes what is stored next out of what is owed and what waits, and returns the
// answers to those who are refused.
func (c *Committer) group() (g group, refused []answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	size := min(len(c.waiting), maxGroup) + min(len(c.owed), maxGroup)
	g = group{leases: make([]model.Lease, 0, size), at: make(map[slot]int, size), given: make(map[owner]slot, size)}
	c.groupOwed(&g)
	next := c.waiting[:min(len(c.waiting), maxGroup)]
	var later []commitment
	for _, w := range next {
		if !g.gives(w.lease) {
			later = append(later, w)
			continue
		}
		also, err := c.table.prepare(w.lease)
		if err != nil {
			refused = append(refused, answer{w.done, err})
			continue
		}
		for _, l := range append(also, w.lease) {
			g.add(l)
		}
		delete(c.owed, slot{w.lease.Address, w.lease.Bits})
		c.storing = append(c.storing, w)
	}
	c.waiting = slices.Replace(c.waiting, 0, len(next), later...)
	return g, refused
}

// groupOwed takes some of what is owed into g, as far as it is still true.
func (c *Committer) groupOwed(g *group) {
	for s, l := range c.owed {
		if len(g.owed) >= maxGroup {
			return
		}
		delete(c.owed, s)
		also, err := c.table.prepare(l)
		if err != nil {
			continue
		}
		for _, l := range append(also, l) {
			g.add(l)
		}
		g.owed = append(g.owed, l)
	}
}
