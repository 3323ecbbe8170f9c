package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"ingot/model/fault"
	"ingot/registry/store"
)

// maxGroup is about how many bytes one commit may have; more wait for the next.
const maxGroup = 16 << 20

// An edit decides, at its turn, from what is stored then, what to write. So no
// edit overwrites what another has just written.
type edit func(d *draft) (store.Batch, error)

// always is the edit that does not depend on what is stored.
func always(b store.Batch) edit {
	return func(*draft) (store.Batch, error) { return b, nil }
}

// writer is one who waits for an edit to be made.
type writer struct {
	edit edit
	done chan struct{}
	err  error // once done is closed
}

func (w *writer) finish(err error) {
	w.err = err
	close(w.done)
}

// isDone reports whether the edit was made, or failed.
func (w *writer) isDone() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// queue is who waits to write, first come first served.
type queue struct {
	mu      sync.Mutex
	waiting []*writer
}

func (q *queue) add(w *writer) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, w)
}

// next takes the first of the queue, nil if it is empty.
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

// remove reports whether w was still in the queue, where it is no more.
func (q *queue) remove(w *writer) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, other := range q.waiting {
		if other == w {
			q.waiting = append(q.waiting[:i:i], q.waiting[i+1:]...)
			return true
		}
	}
	return false
}

// write makes one edit durable. All who wait while one commit is under way are
// served by the next one together: whoever has the turn works for the others too.
func (r *Registry) write(ctx context.Context, e edit) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if idle, err := r.changesNothing(e); idle || err != nil {
		return err
	}
	return r.join(ctx, e)
}

// join makes one edit durable that is known to change something.
func (r *Registry) join(ctx context.Context, e edit) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := &writer{edit: e, done: make(chan struct{})}
	r.queue.add(w)
	select {
	case <-w.done:
		return w.err
	case r.turn <- struct{}{}:
		for !w.isDone() {
			r.commitGroup(ctx)
		}
		r.endTurn()
		return w.err
	case <-ctx.Done():
		if r.queue.remove(w) {
			return ctx.Err()
		}
		return fmt.Errorf("not waited for the store, it may or may not be written: %w", ctx.Err())
	}
}

// changesNothing reports whether an edit has nothing to write now. Then it need
// not wait for its turn, or for a store that does not answer.
func (r *Registry) changesNothing(e edit) (bool, error) {
	d := newDraft(r.memory)
	b, err := e(d)
	if err != nil {
		return false, err
	}
	d.add(b)
	return len(d.changes()) == 0, nil
}

func (r *Registry) endTurn() { <-r.turn }

// takeTurn waits until nobody else uses the store.
func (r *Registry) takeTurn(ctx context.Context) error {
	select {
	case r.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// commitGroup makes the edits of those who wait in one commit.
func (r *Registry) commitGroup(ctx context.Context) {
	d := newDraft(r.memory)
	var group []*writer
	for d.size < maxGroup {
		w := r.queue.next()
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
	changes, err := r.numbered(d.changes())
	if err == nil {
		err = r.commit(ctx, changes)
	}
	for _, w := range group {
		w.finish(err)
	}
}

// numbered adds the number of the commit to one that changes records: it shows whether store or status
// branch is newer.
func (r *Registry) numbered(b store.Batch) (store.Batch, error) {
	key := store.Key{Bucket: store.BucketSequence, Name: sequenceKey}
	isNumber := func(ch store.Change) bool { return ch.Key == key }
	isDecision := func(ch store.Change) bool { return isNumber(ch) || ch.Bucket.IsRecord() && !r.keepsSequence.Load() }
	if !slices.ContainsFunc(b, isDecision) {
		return b, nil
	}
	raw, err := encode(key, r.store.Next())
	return append(slices.DeleteFunc(b, isNumber), store.Change{Key: key, Value: raw}), err
}

// commit writes b to the store, and to memory once that succeeded. Many may wait
// for it, so the end of one's context does not end it.
func (r *Registry) commit(ctx context.Context, b store.Batch) error {
	if len(b) == 0 {
		return nil
	}
	if r.Fence() == 0 {
		return store.ErrFenced
	}
	ctx = context.WithoutCancel(ctx)
	back, err := r.repairs(b)
	if err != nil {
		return err
	}
	if len(back) > 0 {
		err = r.commitOnce(ctx, append(back, b...))
	} else {
		err = r.commitOnce(ctx, b)
	}
	if errors.Is(err, store.ErrLost) {
		if err = r.rewrite(ctx, err); err == nil {
			err = r.commitOnce(ctx, b)
		}
	}
	r.recordHealth(err)
	switch {
	case err == nil:
		clear(r.uncertain)
		r.remember(b)
	case !errors.Is(err, store.ErrFenced):
		rest, _ := b.WithoutLeases()
		for _, ch := range rest {
			r.uncertain[ch.Key] = true
		}
	}
	return err
}

func (r *Registry) commitOnce(ctx context.Context, b store.Batch) error {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	start := time.Now()
	onlyLeases := !slices.ContainsFunc(b, func(ch store.Change) bool { return !store.IsLease(ch) })
	if !onlyLeases {
		fault.Point(fault.BeforeCommit)
	}
	err := r.store.Commit(ctx, b)
	if !onlyLeases {
		fault.Point(fault.AfterCommit)
	}
	r.metrics.commits.Observe(time.Since(start).Seconds())
	if err == nil {
		r.metrics.stored.SetToCurrentTime()
	}
	return err
}

// repairs are the changes that bring the store back to memory where a commit
// before failed and may have been made nevertheless, save for the keys of b.
func (r *Registry) repairs(b store.Batch) (store.Batch, error) {
	var back store.Batch
	for k := range r.uncertain {
		if slices.ContainsFunc(b, func(ch store.Change) bool { return ch.Key == k }) {
			continue
		}
		value, err := r.memory.stored(k)
		if err != nil {
			return nil, err
		}
		back = append(back, store.Change{Key: k, Value: value})
	}
	return back, nil
}

// repairUncertain makes all repairs.
func (r *Registry) repairUncertain(ctx context.Context) error {
	back, err := r.repairs(nil)
	if err != nil {
		return err
	}
	return r.commitOnce(ctx, back)
}

// remember takes what was committed into memory. Leases are no news to anybody.
func (r *Registry) remember(b store.Batch) {
	rest, leases := b.WithoutLeases()
	r.metrics.writes.WithLabelValues(string(store.BucketLease)).Add(float64(leases))
	if len(rest) == 0 {
		return
	}
	for _, ch := range rest {
		r.metrics.writes.WithLabelValues(string(ch.Bucket)).Inc()
	}
	r.logCorrupt(r.memory.apply(rest))
	r.wake()
}

// draft is what will be stored once the edits before were made.
type draft struct {
	memory *memory
	edited map[store.Key][]byte
	order  []store.Key
	size   int
	// tenancy is nil before the first edit of leases.
	tenancy *tenancy
}

func newDraft(m *memory) *draft { return &draft{memory: m} }

func (d *draft) add(b store.Batch) {
	if d.edited == nil { // most have one edit
		d.edited, d.order = make(map[store.Key][]byte, len(b)), make([]store.Key, 0, len(b))
	}
	for _, ch := range b {
		if _, again := d.edited[ch.Key]; !again {
			d.order = append(d.order, ch.Key)
		}
		d.edited[ch.Key] = ch.Value
		d.size += len(ch.Name) + len(ch.Value)
	}
}

// sealed returns the bytes of a value in a sealed bucket, nil if there is none.
func (d *draft) sealed(k store.Key) []byte {
	if value, ok := d.edited[k]; ok {
		return value
	}
	return d.memory.kept(k)
}

// changes returns what has to be written: the newest value of each key, if it is
// not what is stored already.
func (d *draft) changes() store.Batch {
	b := make(store.Batch, 0, len(d.order))
	for _, k := range d.order {
		if ch := (store.Change{Key: k, Value: d.edited[k]}); store.IsLease(ch) || d.memory.differs(ch) {
			b = append(b, ch)
		}
	}
	return b
}

// drafted returns what a value of a draft means, nil if there is none or it means
// nothing. It is not to be changed.
func drafted[V any](d *draft, k store.Key) *V {
	raw, edited := d.edited[k]
	if !edited {
		v, _ := d.memory.meaning(k).(*V)
		return v
	}
	if raw == nil {
		return nil
	}
	v, err := decode[V](raw)
	if err != nil {
		return nil
	}
	return v.(*V)
}
