package dhcp

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"ingot/model"
)

// Bounds of the committer.
const (
	maxGroup    = 1024                 // leases that are stored in one call
	maxWaiting  = 4096                 // leases that wait to be stored
	maxTried    = 64                   // the same while the store is away
	maxOwed     = 2 * maxLeases        // slots that the store is owed the truth about, when nobody has them
	saveTimeout = 5 * time.Second      // of one call; clients ask again after 4 s
	tendStore   = 1 * time.Second      // how often what is owed to the store is tried again, and it is asked for losses
	slowSave    = 1 * time.Second      // from when on a store counts as away
	longestGap  = 1 * time.Millisecond // between two calls; see pauseAfter
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
	// network, address and bits; one without Expires is forgotten. After an error
	// any of it may be durable, or nothing.
	SaveLeases(ctx context.Context, leases []model.Lease) error
}

// A losable store may lose what it holds, as Redis does. It is told all leases
// again when LeaseEpoch returns another number than before.
type losable interface{ LeaseEpoch() uint64 }

// committer stores leases in groups: while one group is stored the next gathers,
// so a store that takes milliseconds to be durable serves thousands of clients a
// second. One goroutine stores a group and answers it, for each hand-over to
// another costs a lease more than all else.
type committer struct {
	store   LeaseStore
	table   *table
	metrics commitMetrics
	log     *slog.Logger

	wake  chan struct{} // has room for one: there is something to store
	epoch uint64        // of a store that may lose what it holds; run's
	rests time.Time     // until when the store is left idle; run's

	mu      sync.Mutex
	waiting []commitment         // are to be stored next
	flying  []commitment         // are being stored
	owed    map[slot]model.Lease // true in memory, and not stored yet
	away    bool                 // the last call failed, or is overdue
	stopped bool
}

// commitment is a lease that is to be stored, and who wants to know.
type commitment struct {
	lease model.Lease
	done  func(error)
}

// answer is what becomes of a commitment. It is told with the committer unlocked, for
// it sends a packet.
type answer struct {
	done func(error)
	err  error
}

// tell tells answers.
func tell(all []answer) {
	for _, a := range all {
		a.done(a.err)
	}
}

func newCommitter(store LeaseStore, t *table, m commitMetrics, log *slog.Logger) *committer {
	c := &committer{store: store, table: t, metrics: m, log: log, wake: make(chan struct{}, 1), owed: make(map[slot]model.Lease)}
	if s, ok := store.(losable); ok {
		c.epoch = s.LeaseEpoch() // before the leases are read: a loss from then on is seen
	}
	return c
}

// commit stores l and then calls done, from the committer's own goroutine, with nil
// once l is durable. While the store is away, who renews is answered from memory, and
// new leases are only tried a few at a time. commit never blocks; done is called at
// once when nothing is to be waited for.
func (c *committer) commit(l model.Lease, done func(error)) {
	tell(c.take(commitment{l, done}))
}

// take takes in a lease, and returns its answer unless that has to wait for the store.
func (c *committer) take(w commitment) []answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	most := maxWaiting
	if c.away {
		most = maxTried
	}
	switch {
	case c.stopped:
		return []answer{{w.done, errStopped}}
	case c.away && c.prolong(w.lease):
		return []answer{{w.done, nil}}
	case len(c.waiting) >= most:
		return []answer{{w.done, errBusy}}
	}
	c.waiting = append(c.waiting, w)
	c.rouse()
	return nil
}

// rouse wakes run.
func (c *committer) rouse() {
	select {
	case c.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// run stores leases until ctx ends, and then what waits.
func (c *committer) run(ctx context.Context) {
	tend := time.NewTicker(tendStore)
	defer tend.Stop()
	for {
		select {
		case <-ctx.Done():
			c.stop(ctx)
			return
		case <-tend.C:
			c.replenish()
			if !c.more() {
				continue
			}
		case <-c.wake:
			time.Sleep(c.gap(time.Now()))
		}
		if c.save(ctx) && c.more() {
			c.rouse()
		}
	}
}

// pauseAfter returns how long the store is left idle after a call that took so long: a
// call costs it, and us, about the same for one lease as for twenty.
func pauseAfter(took time.Duration) time.Duration { return min(3*took, longestGap) }

// gap returns how long the next group is still to gather. A lease that comes alone is
// stored at once; those that come soon after another wait for one another.
func (c *committer) gap(now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away || len(c.waiting) >= maxGroup {
		return 0
	}
	return max(0, c.rests.Sub(now))
}

// more reports whether anything is to be stored.
func (c *committer) more() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting)+len(c.owed) > 0
}

// owe owes the store l. It is to be called with the committer locked. Of leases to be
// forgotten there is an end, as whoever asks while the store is away makes one: the
// store then keeps the rest until they have ended.
func (c *committer) owe(l model.Lease) {
	if !l.Expires.IsZero() || len(c.owed) < maxOwed {
		c.owed[slot{l.Address, l.Bits}] = l
	}
}

// replenish owes the store all leases when it has lost them.
func (c *committer) replenish() {
	store, ok := c.store.(losable)
	if !ok {
		return
	}
	epoch := store.LeaseEpoch()
	if epoch == c.epoch {
		return
	}
	c.epoch = epoch
	c.mu.Lock()
	all := c.table.all()
	for _, l := range all {
		c.owe(l)
	}
	c.mu.Unlock()
	c.log.Warn("the store lost the leases: they are stored again", "leases", len(all))
}

// prolong prolongs in memory what its holder has already.
func (c *committer) prolong(l model.Lease) bool {
	if !c.table.extend(l) {
		return false
	}
	c.owe(l)
	return true
}

// lost notes that the store is away, says so once, and returns the answers to those
// who wait for a renewal.
func (c *committer) lost(err error) (answers []answer) {
	if !c.away {
		c.away = true
		c.metrics.away.Set(1)
		c.log.Warn("leases cannot be stored: renewals are answered from memory, new devices wait", "err", err)
	}
	renews := func(w commitment) bool {
		prolonged := c.prolong(w.lease)
		if prolonged {
			answers = append(answers, answer{w.done, nil})
		}
		return prolonged
	}
	c.waiting, c.flying = slices.DeleteFunc(c.waiting, renews), slices.DeleteFunc(c.flying, renews)
	return answers
}

// overdue is lost for a call that has not come back yet.
func (c *committer) overdue() {
	c.mu.Lock()
	answers := c.lost(errors.New("it does not answer"))
	c.mu.Unlock()
	tell(answers)
}

// save stores what waits, and some of what is owed, answers who waits for it, and
// reports whether the store took it.
func (c *committer) save(ctx context.Context) bool {
	g, refused := c.group()
	tell(refused)
	if err := c.call(ctx, g.leases); err != nil {
		tell(c.failed(g, err))
		return false
	}
	tell(c.stored(g))
	return true
}

// call calls the store. What was begun is brought to its end, also when the server
// stops; meanwhile, when it takes long, renewals are answered.
func (c *committer) call(ctx context.Context, leases []model.Lease) error {
	if len(leases) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	said, start := make(chan struct{}), time.Now()
	late := time.AfterFunc(slowSave, func() { defer close(said); c.overdue() })
	err := c.store.SaveLeases(ctx, leases)
	if !late.Stop() {
		<-said
	}
	took := time.Since(start)
	c.rests = start.Add(took + pauseAfter(took))
	c.metrics.observe(len(leases), took, err)
	return err
}

// group is what is stored in one call.
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
	network, mac string
	kind         kind
}

// ownerOf returns who l belongs to, and false for what is given back or set aside.
func ownerOf(l model.Lease) (owner, bool) {
	return owner{l.Network, l.MAC, kindOf(l.Address, l.Bits)}, !l.Expires.IsZero() && !l.Declined
}

// group takes what is stored next out of what is owed and what waits, and returns the
// answers to those who are refused.
func (c *committer) group() (g group, refused []answer) {
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
		c.flying = append(c.flying, w)
	}
	c.waiting = slices.Replace(c.waiting, 0, len(next), later...)
	return g, refused
}

// groupOwed takes some of what is owed into g, as far as it is still true.
func (c *committer) groupOwed(g *group) {
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

// stored makes a stored group true in memory and returns the answers to who waits for
// it.
func (c *committer) stored(g group) []answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away && len(g.leases) > 0 { // or the store was not asked
		c.away = false
		c.metrics.away.Set(0)
		c.log.Info("leases are stored again")
	}
	for _, l := range g.owed {
		if l.Expires.IsZero() { // all others are true in memory already
			_ = c.table.bind(l)
		}
	}
	answers := make([]answer, 0, len(c.flying))
	for _, w := range c.flying {
		err := c.table.bind(w.lease)
		if err != nil {
			c.takeBack(w.lease)
		}
		answers = append(answers, answer{w.done, err})
	}
	c.land()
	return answers
}

// failed owes the store what could be answered without it, gives up the rest, and
// returns the answers. The store may have taken what was given up: it is told how
// things are.
func (c *committer) failed(g group, err error) []answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range g.due() {
		if _, newer := c.owed[slot{l.Address, l.Bits}]; !newer {
			c.owe(l)
		}
	}
	answers := c.lost(err)
	for _, w := range c.flying {
		c.takeBack(w.lease)
		answers = append(answers, answer{w.done, err})
	}
	c.land()
	return answers
}

// land forgets what was flying.
func (c *committer) land() {
	clear(c.flying)
	c.flying = c.flying[:0]
}

// takeBack owes the store the truth about a lease that came to nothing, as it may have
// been told otherwise: that nobody has it, and what its device has instead. What was
// set aside is so in memory already.
func (c *committer) takeBack(l model.Lease) {
	if l.Declined {
		c.owe(l)
		return
	}
	if had, ok := c.table.ownedBy(l); ok {
		c.owe(had)
	}
	l.Expires = time.Time{}
	c.owe(l)
}

// stop stores what waits and what is owed a last time.
func (c *committer) stop(ctx context.Context) {
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
	for c.more() && c.save(ctx) {
	}
}
