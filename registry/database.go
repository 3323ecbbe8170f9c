package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ingot/model/fault"
	"ingot/registry/store"
)

const (
	// commitTimeout bounds one commit, so that a caller learns soon that Redis is down.
	commitTimeout = 2 * time.Second
	// loadTimeout bounds reading or writing everything.
	loadTimeout = 30 * time.Second
	// maxGroup is about how many bytes one commit may have. More edits wait for the next commit.
	maxGroup = 16 << 20
)

// database is the store and its typed copy in memory. Commits change both, and edits that are made at
// the same time share a commit. The leader is the only writer, so a store that differs from memory is
// written again.
type database struct {
	log     *slog.Logger
	store   store.Store
	memory  *memory
	metrics *metrics
	lead    *Lead

	turn      chan struct{} // held by the goroutine that uses the store
	queue     queue
	uncertain map[store.Key]bool // by turn: keys of failed commits, which may have been made
	unread    store.Batch        // by turn: unreadable records. They stay in the store until Adopt.
	closed    bool               // by turn

	damage        atomic.Pointer[[]store.Damage]
	changed       chan struct{}
	keepsSequence atomic.Bool
	losses        atomic.Uint64 // how often the store was lost
}

func newDatabase(s store.Store, o *Options, m *metrics) *database {
	return &database{
		log: o.Log, store: s, memory: newMemory(), metrics: m, lead: newLead(o, m),
		turn: make(chan struct{}, 1), uncertain: make(map[store.Key]bool), changed: make(chan struct{}, 1),
	}
}

// An edit decides from the stored values what to write. It runs when its commit is assembled, so that
// no edit overwrites another one's result.
type edit func(d *draft) (store.Batch, error)

// always is the edit that does not depend on the stored values.
func always(b store.Batch) edit {
	return func(*draft) (store.Batch, error) { return b, nil }
}

// writer waits for the commit with its edit.
type writer struct {
	edit edit
	done chan struct{}
	err  error // once done is closed
}

func (w *writer) finish(err error) {
	w.err = err
	close(w.done)
}

func (w *writer) isDone() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// queue has the writers in the order of their calls.
type queue struct {
	mu      sync.Mutex
	waiting []*writer
}

func (q *queue) add(w *writer) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, w)
}

// next takes the first writer of the queue, nil if it is empty.
func (q *queue) next() *writer {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return nil
	}
	w := q.waiting[0]
	q.waiting = q.waiting[1:]
	return w
}

func (q *queue) remove(w *writer) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, w)
	if i >= 0 {
		q.waiting = slices.Concat(q.waiting[:i], q.waiting[i+1:])
	}
	return i >= 0
}

// write makes an edit durable. An edit that changes nothing does not wait for the store.
func (db *database) write(ctx context.Context, e edit) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	d := newDraft(db.memory)
	b, err := e(d)
	if err != nil {
		return err
	}
	if d.add(b); len(d.changes()) == 0 {
		return nil
	}
	return db.join(ctx, e)
}

// join makes an edit durable that changes something. The goroutine with the turn commits the edits of
// all writers that wait.
func (db *database) join(ctx context.Context, e edit) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := &writer{edit: e, done: make(chan struct{})}
	db.queue.add(w)
	select {
	case <-w.done:
		return w.err
	case db.turn <- struct{}{}:
		for !w.isDone() {
			db.commitGroup(ctx)
		}
		db.endTurn()
		return w.err
	case <-ctx.Done():
		if db.queue.remove(w) {
			return ctx.Err()
		}
		return fmt.Errorf("the commit is under way, its result is unknown: %w", ctx.Err())
	}
}

// takeTurn waits until no other goroutine uses the store.
func (db *database) takeTurn(ctx context.Context) error {
	select {
	case db.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (db *database) endTurn() { <-db.turn }

func (db *database) commitGroup(ctx context.Context) {
	d := newDraft(db.memory)
	var group []*writer
	for d.size < maxGroup {
		w := db.queue.next()
		if w == nil {
			break
		}
		b, err := w.edit(d)
		if err != nil {
			w.finish(err)
			continue
		}
		d.add(b)
		group = append(group, w)
	}
	changes, err := db.numbered(d.changes())
	if err == nil {
		err = db.commit(ctx, changes)
	}
	for _, w := range group {
		w.finish(err)
	}
}

// numbered adds the number of the commit to one that changes records. The number shows whether the
// store or the status branch is newer.
func (db *database) numbered(b store.Batch) (store.Batch, error) {
	key := store.Key{Bucket: store.BucketSequence, Name: sequenceKey}
	isNumber := func(ch store.Change) bool { return ch.Key == key }
	isDecision := func(ch store.Change) bool { return isNumber(ch) || ch.Bucket.IsRecord() && !db.keepsSequence.Load() }
	if !slices.ContainsFunc(b, isDecision) {
		return b, nil
	}
	raw, err := encode(key, db.store.Next())
	return append(slices.DeleteFunc(b, isNumber), store.Change{Key: key, Value: raw}), err
}

// commit writes b to the store, and then to memory. Several writers may wait for it, so it does not
// end with the context of one.
func (db *database) commit(ctx context.Context, b store.Batch) error {
	if len(b) == 0 {
		return nil
	}
	if db.lead.Fence() == 0 {
		return store.ErrFenced
	}
	ctx = context.WithoutCancel(ctx)
	back, err := db.repairs(b)
	if err != nil {
		return err
	}
	err = db.commitOnce(ctx, append(back, b...))
	if errors.Is(err, store.ErrLost) {
		if err = db.rewrite(ctx, err); err == nil {
			err = db.commitOnce(ctx, b)
		}
	}
	db.lead.note(err)
	switch {
	case err == nil:
		clear(db.uncertain)
		db.remember(b)
	case !errors.Is(err, store.ErrFenced):
		rest, _ := b.WithoutLeases()
		for _, ch := range rest {
			db.uncertain[ch.Key] = true
		}
	}
	return err
}

func (db *database) commitOnce(ctx context.Context, b store.Batch) error {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	start := time.Now()
	onlyLeases := !slices.ContainsFunc(b, func(ch store.Change) bool { return !store.IsLease(ch) })
	if !onlyLeases {
		fault.Point(fault.BeforeCommit)
	}
	err := db.store.Commit(ctx, b)
	if !onlyLeases {
		fault.Point(fault.AfterCommit)
	}
	db.metrics.commits.Observe(time.Since(start).Seconds())
	if err == nil {
		db.metrics.stored.SetToCurrentTime()
	}
	return err
}

// repairs are the changes that set the keys of failed commits to their values in memory, except the
// keys of b.
func (db *database) repairs(b store.Batch) (store.Batch, error) {
	var back store.Batch
	for k := range db.uncertain {
		if slices.ContainsFunc(b, func(ch store.Change) bool { return ch.Key == k }) {
			continue
		}
		value, err := db.memory.stored(k)
		if err != nil {
			return nil, err
		}
		back = append(back, store.Change{Key: k, Value: value})
	}
	return back, nil
}

func (db *database) repairUncertain(ctx context.Context) error {
	back, err := db.repairs(nil)
	if err != nil || len(back) == 0 {
		return err
	}
	if err = db.commitOnce(ctx, back); err == nil {
		clear(db.uncertain)
	}
	return err
}

// remember takes a commit into memory, which has no leases.
func (db *database) remember(b store.Batch) {
	rest, leases := b.WithoutLeases()
	db.metrics.writes.WithLabelValues(string(store.BucketLease)).Add(float64(leases))
	for _, ch := range rest {
		db.metrics.writes.WithLabelValues(string(ch.Bucket)).Inc()
	}
	db.apply(rest)
}

func (db *database) apply(b store.Batch) {
	if len(b) > 0 {
		db.logCorrupt(db.memory.apply(b))
		db.wake()
	}
}

func (db *database) wake() {
	select {
	case db.changed <- struct{}{}:
	default:
	}
}

// load reads everything from the store. Values in memory that are newer stay: all of them if the
// store is fresh. A process that followed a leader may know more than a store that was rolled back.
func (db *database) load(ctx context.Context) (store.Loaded, error) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	l, err := db.store.Load(ctx)
	if err != nil {
		return l, err
	}
	db.unread = nil
	if l.Fresh {
		db.setDamage(l.Damage)
		return l, nil
	}
	held := store.NewContents()
	if !db.memory.empty() {
		if held, err = db.memory.all(); err != nil {
			return l, err
		}
		merge(&l, held)
	}
	bad := db.memory.reset(l.Contents)
	db.logCorrupt(bad)
	db.replaceUnreadable(&l, held, bad)
	db.setDamage(l.Damage)
	db.wake()
	return l, nil
}

// merge adds values of memory to a loaded store: all values if the store was rolled back, else those
// that a damaged bucket lacks. A record that a sound store lacks was deleted.
func merge(l *store.Loaded, kept store.Contents) {
	damaged := make(map[store.Bucket]bool)
	for _, d := range l.Damage {
		damaged[store.Bucket(d.Bucket)] = true
	}
	for b, values := range kept {
		for name, mine := range values {
			theirs, exists := l.Contents[b][name]
			if l.Behind && !bytes.Equal(theirs, mine) || !exists && damaged[b] {
				l.Contents.Set(store.Change{Key: store.Key{Bucket: b, Name: name}, Value: mine})
				l.Ahead = true
			}
		}
	}
	l.Ahead = l.Ahead || l.Behind
	l.Damage = slices.DeleteFunc(l.Damage, func(d store.Damage) bool {
		b := store.Bucket(d.Bucket)
		want, counted := l.Want[b]
		return counted && len(l.Contents[b]) >= want
	})
}

// replaceUnreadable replaces unreadable values with those that memory had before, and notes as damage
// the records that memory did not have.
func (db *database) replaceUnreadable(l *store.Loaded, held store.Contents, bad []corrupt) {
	for _, c := range bad {
		if mine := held[c.Bucket][c.Name]; mine != nil {
			l.Ahead = true
			db.logCorrupt(db.memory.apply(store.Batch{{Key: c.Key, Value: mine}}))
			continue
		}
		if c.Bucket.IsRecord() {
			l.Damage = append(l.Damage, store.Damage{Bucket: string(c.Bucket), Name: c.Name, Err: c.err})
			db.unread = append(db.unread, store.Change{Key: c.Key, Value: l.Contents[c.Bucket][c.Name]})
		}
	}
}

// rewrite fills a lost store from memory.
func (db *database) rewrite(ctx context.Context, why error) error {
	db.metrics.lost.Inc()
	db.losses.Add(1) // the leases are lost even if filling fails
	db.log.Warn("the store does not have the committed values; writing it again from memory", "fence", db.lead.Fence(), "err", why)
	return db.fill(ctx)
}

func (db *database) fill(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	all, err := db.memory.all()
	if err != nil {
		return err
	}
	for _, ch := range db.unread {
		if all[ch.Bucket][ch.Name] == nil {
			all.Set(ch)
		}
	}
	fault.Point(fault.BeforeCommit)
	err = db.store.Replace(ctx, all)
	fault.Point(fault.AfterCommit)
	return err
}

// repair writes the store again without the damage that was found when it was read.
func (db *database) repair(ctx context.Context) error {
	if db.damage.Load() == nil {
		return nil
	}
	if err := db.takeTurn(ctx); err != nil {
		return err
	}
	defer db.endTurn()
	if db.lead.Fence() == 0 {
		return store.ErrFenced
	}
	unread := db.unread
	db.unread = nil
	err := db.fill(context.WithoutCancel(ctx))
	db.lead.note(err)
	if err != nil {
		db.unread = unread
		return err
	}
	db.setDamage(nil)
	return nil
}

func (db *database) setDamage(damage []store.Damage) {
	if len(damage) == 0 {
		db.damage.Store(nil)
		return
	}
	for _, d := range damage {
		if d.Bucket != "" && d.Name == "" { // the others were logged when they were found
			db.log.Error("stored records are missing", "bucket", d.Bucket, "err", d.Err)
		}
	}
	db.damage.Store(&damage)
}

func (db *database) logCorrupt(bad []corrupt) {
	for _, c := range bad {
		db.metrics.corrupt.Inc()
		db.log.Error("stored value cannot be read and is ignored", "bucket", string(c.Bucket), "name", c.Name, "err", c.err)
	}
}
