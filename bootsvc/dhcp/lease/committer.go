package lease

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ingot/model"
)

const (
	maxGroup    = 1024            // leases that are stored in one call
	maxWaiting  = 4096            // leases that wait to be stored
	maxTried    = 64              // the same while the store is away
	maxOwed     = 2 * maxLeases   // slots that the store is owed the truth about, when nobody has them
	saveTimeout = 5 * time.Second // of one call; clients ask again after 4 s
	tendStore   = 1 * time.Second // how often what is owed to the store is tried again, and it is asked for losses
	slowSave    = 1 * time.Second // from when on a store counts as away
	// restTime is how long the store is left idle after a call, while leases gather: a call
	// costs it, and us, about the same for one lease as for twenty.
	restTime = 10 * time.Millisecond
	// manyLeases in one call leave the store idle for twice as long: that halves the calls
	// where hundreds of machines boot, and adds ten milliseconds to a lease.
	manyLeases = 4
)

// errBusy is returned when more leases wait than can be stored in time.
var errBusy = errors.New("too many leases wait to be stored")

// errStopped is returned for leases that come after the end.
var errStopped = errors.New("the DHCP server stops")

// Store keeps leases over restarts. It may be slow or away.
type Store interface {
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

// Committer stores leases in groups: while one group is stored the next gathers,
// so a store that takes milliseconds to be durable serves thousands of clients a
// second. One goroutine stores a group and answers it, for each hand-over to
// another costs a lease more than all else.
type Committer struct {
	store   Store
	table   *Table
	metrics commitMetrics
	log     *slog.Logger

	wake  chan struct{} // has room for one: there is something to store
	epoch uint64        // of a store that may lose what it holds; run's
	rests time.Time     // until when the store is left idle; run's

	mu      sync.Mutex
	waiting []commitment         // are to be stored next
	storing []commitment         // are being stored
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

func (c *Committer) tell(all []answer) {
	for _, a := range all {
		a.done(a.err)
	}
}

// NewCommitter returns a committer for the leases of t. reg may be nil.
func NewCommitter(store Store, t *Table, reg prometheus.Registerer, log *slog.Logger) *Committer {
	c := &Committer{
		store: store, table: t, metrics: newCommitMetrics(reg), log: log,
		wake: make(chan struct{}, 1), owed: make(map[slot]model.Lease),
	}
	if s, ok := store.(losable); ok {
		c.epoch = s.LeaseEpoch() // before the leases are read: a loss from then on is seen
	}
	return c
}

// Commit stores l and then calls done, from the committer's own goroutine, with nil
// once l is durable. While the store is away, who renews is answered from memory, and
// new leases are only tried a few at a time. Commit never blocks; done is called at
// once when nothing is to be waited for.
func (c *Committer) Commit(l model.Lease, done func(error)) {
	c.tell(c.take(commitment{l, done}))
}

// take takes in a lease, and returns its answer unless that has to wait for the store.
func (c *Committer) take(w commitment) []answer {
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

// IsAway reports whether leases could not be stored when that was last tried. It tries again as long as it is true.
func (c *Committer) IsAway() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.away
}

func (c *Committer) rouse() {
	select {
	case c.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// Run stores leases until ctx ends, and then what waits.
func (c *Committer) Run(ctx context.Context) {
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

// gap returns how long the next group is still to gather. A lease that comes alone is
// stored at once; those that come soon after another wait for one another.
func (c *Committer) gap(now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away || len(c.waiting) >= maxGroup {
		return 0
	}
	return max(0, c.rests.Sub(now))
}

func (c *Committer) more() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting)+len(c.owed) > 0
}

// owe owes the store l. It is to be called with the committer locked. Of leases to be
// forgotten there is an end, as whoever asks while the store is away makes one: the
// store then keeps the rest until they have ended.
func (c *Committer) owe(l model.Lease) {
	if !l.Expires.IsZero() || len(c.owed) < maxOwed {
		c.owed[slot{l.Address, l.Bits}] = l
	}
}

// replenish owes the store all leases when it has lost them.
func (c *Committer) replenish() {
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
	all, _ := c.table.Leases(math.MaxInt)
	for _, l := range all {
		c.owe(l)
	}
	c.mu.Unlock()
	c.log.Warn("the store lost the leases: they are stored again", "leases", len(all))
}

func (c *Committer) prolong(l model.Lease) bool {
	if !c.table.extend(l) {
		return false
	}
	c.owe(l)
	return true
}

// lost notes that the store is away, says so once, and returns the answers to those
// who wait for a renewal.
func (c *Committer) lost(err error) (answers []answer) {
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
	c.waiting, c.storing = slices.DeleteFunc(c.waiting, renews), slices.DeleteFunc(c.storing, renews)
	return answers
}

// overdue is lost for a call that has not come back yet.
func (c *Committer) overdue() {
	c.mu.Lock()
	answers := c.lost(errors.New("it does not answer"))
	c.mu.Unlock()
	c.tell(answers)
}

// save stores what waits, and some of what is owed, answers who waits for it, and
// reports whether the store took it.
func (c *Committer) save(ctx context.Context) bool {
	g, refused := c.group()
	c.tell(refused)
	if err := c.call(ctx, g.leases); err != nil {
		c.tell(c.failed(g, err))
		return false
	}
	c.tell(c.stored(g))
	return true
}

// call calls the store. What was begun is brought to its end, also when the server
// stops; meanwhile, when it takes long, renewals are answered.
func (c *Committer) call(ctx context.Context, leases []model.Lease) error {
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
	c.rests = start.Add(took + restAfter(len(leases)))
	c.metrics.observe(len(leases), took, err)
	return err
}

// restAfter returns how long the store is left idle after a call with so many leases.
func restAfter(leases int) time.Duration {
	if leases >= manyLeases {
		return 2 * restTime
	}
	return restTime
}

// stored makes a stored group true in memory and returns the answers to those who wait for
// it.
func (c *Committer) stored(g group) []answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away { // with an empty group it is not known to be back, and the next lease is a try
		c.away = false
		c.metrics.away.Set(0)
		c.log.Info("leases are stored again")
	}
	for _, l := range g.owed {
		if l.Expires.IsZero() { // all others are true in memory already
			_ = c.table.bind(l)
		}
	}
	answers := make([]answer, 0, len(c.storing))
	for _, w := range c.storing {
		err := c.table.bind(w.lease)
		if err != nil {
			c.takeBack(w.lease)
		}
		answers = append(answers, answer{w.done, err})
	}
	c.clearStoring()
	return answers
}

// failed owes the store what could be answered without it, gives up the rest, and
// returns the answers. The store may have taken what was given up: it is told how
// things are.
func (c *Committer) failed(g group, err error) []answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range g.due() {
		if _, newer := c.owed[slot{l.Address, l.Bits}]; !newer {
			c.owe(l)
		}
	}
	answers := c.lost(err)
	for _, w := range c.storing {
		c.takeBack(w.lease)
		answers = append(answers, answer{w.done, err})
	}
	c.clearStoring()
	return answers
}

func (c *Committer) clearStoring() {
	clear(c.storing)
	c.storing = c.storing[:0]
}

// takeBack owes the store the truth about a lease that came to nothing, as it may have
// been told otherwise: that nobody has it, and what its device has instead. What was
// set aside is so in memory already.
func (c *Committer) takeBack(l model.Lease) {
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
func (c *Committer) stop(ctx context.Context) {
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
	for c.more() && c.save(ctx) {
	}
}
