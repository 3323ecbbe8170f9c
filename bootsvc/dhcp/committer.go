package dhcp

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"ingot/model"
)

// Bounds of the committer.
const (
	maxGroup    = 1024                 // leases that are stored in one call, and that wait for the next
	maxQueue    = 4096                 // leases that wait to be looked at
	saveTimeout = 5 * time.Second      // of one call; clients ask again after 4 s
	retrySave   = 2 * time.Second      // how soon what is owed to the store is tried again
	slowSave    = 1 * time.Second      // from when on a store counts as away
	longestGap  = 1 * time.Millisecond // between two calls; see gap
	lookForLoss = 1 * time.Second      // how often a store is asked whether it lost its leases
)

// errBusy is returned when more leases wait than can be stored in time.
var errBusy = errors.New("too many leases wait to be stored")

// errStopped is returned for leases that come after the end.
var errStopped = errors.New("the DHCP server stops")

// LeaseStore keeps leases over restarts. It may be slow or away.
type LeaseStore interface {
	// Leases returns all leases.
	Leases(ctx context.Context) ([]model.Lease, error)
	// SaveLeases is durable when it returns. A lease replaces the one of the same
	// network, address and bits; one without Expires is forgotten.
	SaveLeases(ctx context.Context, leases []model.Lease) error
}

// A losable store may lose what it holds, as Redis does. It is told all leases
// again when LeaseEpoch returns another number than before.
type losable interface{ LeaseEpoch() uint64 }

// committer stores leases in groups: while one group is stored the next gathers,
// so a store that takes milliseconds to be durable serves thousands of clients a
// second.
type committer struct {
	store   LeaseStore
	table   *table
	metrics commitMetrics
	log     *slog.Logger

	queue   chan commitment
	stopped chan struct{}

	// What follows belongs to run.
	waiting []commitment         // are to be stored next
	flying  []commitment         // are being stored
	owed    map[slot]model.Lease // true in memory, and not stored yet
	away    bool                 // the last call failed, or is overdue
	epoch   uint64               // of a store that may lose what it holds
	rests   time.Time            // until when the store is left idle; see gap
	at      map[slot]int         // of group, of use within a call only
	given   map[owner]slot       // which address each device is given
}

// commitment is a lease that is to be stored, and who wants to know.
type commitment struct {
	lease model.Lease
	done  func(error)
}

// saved is what became of a call of the store.
type saved struct {
	leases int
	also   []model.Lease // of them those that were owed
	err    error
	took   time.Duration
}

func newCommitter(store LeaseStore, t *table, m commitMetrics, log *slog.Logger) *committer {
	c := &committer{
		store: store, table: t, metrics: m, log: log,
		queue: make(chan commitment, maxQueue), stopped: make(chan struct{}),
		owed: make(map[slot]model.Lease), at: make(map[slot]int), given: make(map[owner]slot),
	}
	if s, ok := store.(losable); ok {
		c.epoch = s.LeaseEpoch() // before the leases are read: a loss from then on is seen
	}
	return c
}

// commit stores l and then calls done, from the committer's own goroutine: with nil
// once l is durable, or prolonged in memory while the store is away. It never
// blocks; done is called at once with errBusy when too much waits already.
func (c *committer) commit(l model.Lease, done func(error)) {
	select {
	case <-c.stopped:
		done(errStopped)
		return
	default:
	}
	select {
	case c.queue <- commitment{l, done}:
	default:
		done(errBusy)
	}
}

// run stores leases until ctx ends, and then what waits.
func (c *committer) run(ctx context.Context) {
	results := make(chan saved, 1)
	saving := false
	var overdue, retry, look, gather <-chan time.Time
	if _, ok := c.store.(losable); ok {
		ticker := time.NewTicker(lookForLoss)
		defer ticker.Stop()
		look = ticker.C
	}
	for {
		if !saving && gather == nil && (len(c.waiting) > 0 || len(c.owed) > 0 && retry == nil) {
			if d := c.gap(time.Now()); d > 0 {
				gather = time.After(d)
			} else {
				saving, overdue = true, time.After(slowSave)
				c.save(ctx, results)
			}
		}
		queue := c.queue
		// What cannot be stored yet gathers in the queue: to be woken for each costs more
		// than to take in the lease.
		if len(c.waiting) >= maxGroup || !c.away && (saving || gather != nil) {
			queue = nil
		}
		select {
		case <-ctx.Done():
			c.stop(ctx, saving, results)
			return
		case next := <-queue:
			c.accept(next)
		case <-overdue:
			c.lost(errors.New("it does not answer"))
			overdue = nil
		case <-retry:
			retry = nil
		case <-look:
			if !saving { // or what is being stored would be overwritten by what was before it
				c.replenish()
			}
		case s := <-results:
			saving, overdue, retry = false, nil, nil
			c.rests = time.Now().Add(rest(s.took))
			if !c.finish(s) {
				retry = time.After(retrySave)
			}
		case <-gather:
			gather = nil
		}
	}
}

// rest returns how long the store is left idle after a call that took so long: a call
// costs it, and us, about the same for one lease as for twenty.
func rest(took time.Duration) time.Duration { return min(3*took, longestGap) }

// gap returns how long the next group is still to gather. A lease that comes alone is
// stored at once; those that come soon after another wait for one another.
func (c *committer) gap(now time.Time) time.Duration {
	if c.away || len(c.queue)+len(c.waiting) >= maxGroup {
		return 0
	}
	return max(0, c.rests.Sub(now))
}

// replenish owes the store all leases when it has lost them.
func (c *committer) replenish() {
	epoch := c.store.(losable).LeaseEpoch()
	if epoch == c.epoch {
		return
	}
	c.epoch = epoch
	all := c.table.all()
	for _, l := range all {
		c.owed[slot{l.Address, l.Bits}] = l
	}
	c.log.Warn("the store lost the leases: they are stored again", "leases", len(all))
}

// accept takes in a lease, and all that came with it. While the store is away, who
// renews is answered from memory and new leases are only tried a few at a time.
func (c *committer) accept(next commitment) {
	for {
		switch {
		case c.away && c.prolong(next.lease):
			next.done(nil)
		case c.away && len(c.waiting) >= maxGroup/16:
			next.done(errBusy)
		default:
			c.waiting = append(c.waiting, next)
		}
		if len(c.waiting) >= maxGroup {
			return
		}
		select {
		case next = <-c.queue:
		default:
			return
		}
	}
}

// prolong prolongs in memory what its holder has already.
func (c *committer) prolong(l model.Lease) bool {
	if !c.table.extend(l) {
		return false
	}
	c.owed[slot{l.Address, l.Bits}] = l
	return true
}

// lost notes that the store is away, says so once, and answers who waits for a
// renewal.
func (c *committer) lost(err error) {
	if !c.away {
		c.away = true
		c.metrics.away.Set(1)
		c.log.Warn("leases cannot be stored: renewals are answered from memory, new devices wait", "err", err)
	}
	c.waiting, c.flying = c.answerRenewals(c.waiting), c.answerRenewals(c.flying)
}

// answerRenewals answers those that can be answered from memory, and returns the
// rest.
func (c *committer) answerRenewals(all []commitment) []commitment {
	rest := all[:0]
	for _, w := range all {
		if c.prolong(w.lease) {
			w.done(nil)
			continue
		}
		rest = append(rest, w)
	}
	return rest
}

// save stores what waits, and some of what is owed, and sends what became of it.
// What was begun is brought to its end, also when the server stops.
func (c *committer) save(ctx context.Context, results chan<- saved) {
	also, leases := c.group()
	go func() {
		start := time.Now()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
		defer cancel()
		var err error
		if len(leases) > 0 {
			err = c.store.SaveLeases(ctx, leases)
		}
		results <- saved{len(leases), also, err, time.Since(start)}
	}()
}

// group moves what waits to flying, and returns what is to be stored: for each
// address the last that was said of it, and what was owed of that. Of a device that
// was given two addresses the second waits for the next group, which then forgets
// the first: the store is never told both.
func (c *committer) group() (also, leases []model.Lease) {
	clear(c.at)
	leases = make([]model.Lease, 0, len(c.waiting)+min(len(c.owed), maxGroup))
	add := func(l model.Lease) {
		s := slot{l.Address, l.Bits}
		if i, ok := c.at[s]; ok {
			leases[i] = l
			return
		}
		c.at[s] = len(leases)
		leases = append(leases, l)
	}
	for s, l := range c.owed {
		if len(also) >= maxGroup {
			break
		}
		delete(c.owed, s)
		if _, err := c.table.prepare(l); err == nil {
			also = append(also, l)
			add(l)
		}
	}
	var later []commitment
	clear(c.given)
	for _, w := range c.waiting {
		if o, ok := ownerOf(w.lease); ok {
			s := slot{w.lease.Address, w.lease.Bits}
			if first, again := c.given[o]; again && first != s {
				c.given[o] = slot{} // nor may what comes behind overtake it
				later = append(later, w)
				continue
			}
			c.given[o] = s
		}
		replaced, err := c.table.prepare(w.lease)
		if err != nil {
			w.done(err)
			continue
		}
		for _, old := range replaced {
			add(old)
		}
		add(w.lease)
		delete(c.owed, slot{w.lease.Address, w.lease.Bits})
		c.flying = append(c.flying, w)
	}
	clear(c.waiting)
	c.waiting = append(c.waiting[:0], later...)
	return also, leases
}

// owner is who a lease belongs to, as the store knows it.
type owner struct {
	network, mac string
	kind         kind
}

// ownerOf returns who l belongs to, and false for what is given back or set aside.
func ownerOf(l model.Lease) (owner, bool) {
	return owner{l.Network, l.MAC, kindOf(l.Address, l.Bits)}, !l.Expires.IsZero() && !l.Declined
}

// finish makes a stored group true in memory and answers who waits for it. It
// reports whether the store took it.
func (c *committer) finish(s saved) bool {
	c.metrics.observe(s)
	if s.err != nil {
		c.failed(s)
		return false
	}
	if c.away && s.leases > 0 { // or the store was not asked
		c.away = false
		c.metrics.away.Set(0)
		c.log.Info("leases are stored again")
	}
	for _, w := range c.flying {
		err := c.table.bind(w.lease)
		if err != nil {
			c.takeBack(w.lease)
		}
		w.done(err)
	}
	clear(c.flying)
	c.flying = c.flying[:0]
	return true
}

// takeBack owes the store what it was told wrong with a lease that came to nothing:
// the lease, and that its device has no other.
func (c *committer) takeBack(l model.Lease) {
	if had, ok := c.table.ownedBy(l); ok {
		c.owed[slot{had.Address, had.Bits}] = had
	}
	l.Expires = time.Time{}
	c.owed[slot{l.Address, l.Bits}] = l
}

// failed owes the store what could be answered without it, and gives up the rest.
func (c *committer) failed(s saved) {
	for _, l := range s.also {
		if _, newer := c.owed[slot{l.Address, l.Bits}]; !newer {
			c.owed[slot{l.Address, l.Bits}] = l
		}
	}
	c.lost(s.err)
	for _, w := range c.flying {
		w.done(s.err)
	}
	clear(c.flying)
	c.flying = c.flying[:0]
}

// stop stores what waits and what is owed a last time.
func (c *committer) stop(ctx context.Context, saving bool, results chan saved) {
	close(c.stopped)
	if saving {
		c.finish(<-results)
	}
	for {
		for len(c.queue) > 0 && len(c.waiting) < maxGroup {
			c.waiting = append(c.waiting, <-c.queue)
		}
		if len(c.waiting) == 0 && len(c.owed) == 0 {
			return
		}
		c.save(ctx, results)
		if !c.finish(<-results) {
			return
		}
	}
}
