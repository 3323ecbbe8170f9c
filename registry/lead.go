package registry

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ingot/model/fault"
	"ingot/registry/store"
)

// forever is when the lease of a store ends that only one process can open.
const forever = 100 * 365 * 24 * time.Hour

// Lead waits until we lead. With bbolt that is so already. Meanwhile the copy in
// memory follows the leader. It fails where we cannot ever lead: with another seal key
// than the store's, or after EndLead.
func (r *Registry) Lead(ctx context.Context) error {
	seen := ""
	for r.Fence() == 0 {
		holder, err := r.tryLead(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, ErrSealKey), errors.Is(err, ErrLeadershipLost):
			return err
		case err != nil:
			r.recordHealth(err)
		case holder == "":
			r.recordHealth(nil)
			return nil
		default:
			r.recordHealth(nil)
			if holder != seen {
				seen = holder
				r.log.Info("another ingot leads; waiting", "holder", holder)
			}
		}
		if err := r.followFor(ctx, r.options.LeaderTTL/3); err != nil {
			return err
		}
	}
	return nil
}

// tryLead asks for leadership once, and returns who has it instead.
func (r *Registry) tryLead(ctx context.Context) (holder string, err error) {
	if err := r.takeTurn(ctx); err != nil {
		return "", err
	}
	defer r.endTurn()
	r.following.Lock() // the feed is not read on from a place that loading moves
	defer r.following.Unlock()
	if r.ended.Load() {
		return "", ErrLeadershipLost
	}
	if err := r.checkSealKey(); err != nil { // before the leader's fencing number is raised
		return "", err
	}
	asked := time.Now()
	fence, holder, err := r.acquire(ctx)
	if err != nil {
		return "", err
	}
	r.holder.Store(&holder)
	if holder != "" {
		return holder, nil
	}
	if fence, err = r.takeOver(ctx, fence); err != nil {
		return "", err
	}
	clear(r.uncertain)
	r.extend(asked)
	r.setFence(fence)
	r.log.Info("leading", "fence", fence)
	return "", nil
}

// takeOver makes memory and store the same, and returns our fencing number.
func (r *Registry) takeOver(ctx context.Context, fence uint64) (uint64, error) {
	l, err := r.reload(ctx)
	if err != nil {
		return 0, err
	}
	if err := r.checkSealKey(); err != nil {
		r.store.Release()
		return 0, err
	}
	// Commits count up from the time, so that after a lost store no number is used again.
	r.store.Raise(uint64(max(r.options.Clock().UnixMilli(), 0)))
	switch {
	case l.Fresh && r.memory.empty():
		err = r.fill(ctx)
	case l.Fresh || l.Ahead:
		err = r.rewrite(ctx, store.ErrLost)
	}
	if err != nil {
		return 0, err
	}
	return fence, r.keepSealCheck(ctx)
}

func (r *Registry) acquire(ctx context.Context) (uint64, string, error) {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	fault.Point(fault.BeforeCommit)
	defer fault.Point(fault.AfterCommit)
	return r.store.Acquire(ctx)
}

// reload reads everything from the store. What is in memory and newer is kept: of a
// fresh store that is all. Whoever followed a leader may know more than a store that
// was rolled back with it.
func (r *Registry) reload(ctx context.Context) (store.Loaded, error) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	l, err := r.store.Load(ctx)
	if err != nil {
		return l, err
	}
	r.unread = nil
	if l.Fresh {
		r.setDamage(l.Damage)
		return l, nil
	}
	held := store.NewContents()
	if !r.memory.empty() {
		if held, err = r.memory.all(); err != nil {
			return l, err
		}
		merge(&l, held)
	}
	bad := r.memory.reset(l.Contents)
	r.logCorrupt(bad)
	r.replaceUnreadable(&l, held, bad)
	r.setDamage(l.Damage)
	r.wake()
	return l, nil
}

// replaceUnreadable puts what memory held in the place of values that cannot be read,
// and notes the records of which it held nothing.
func (r *Registry) replaceUnreadable(l *store.Loaded, held store.Contents, bad []corrupt) {
	for _, c := range bad {
		if mine := held[c.Bucket][c.Name]; mine != nil {
			l.Ahead = true
			r.logCorrupt(r.memory.apply(store.Batch{{Key: c.Key, Value: mine}}))
			continue
		}
		if c.Bucket.IsRecord() {
			l.Damage = append(l.Damage, store.Damage{Bucket: string(c.Bucket), Name: c.Name, Err: c.err})
			r.unread = append(r.unread, store.Change{Key: c.Key, Value: l.Contents[c.Bucket][c.Name]})
		}
	}
}

// rewrite fills a lost store from memory.
func (r *Registry) rewrite(ctx context.Context, why error) error {
	r.metrics.lost.Inc()
	r.leaseEpoch.Add(1) // whether or not filling it succeeds, or is noticed
	r.log.Warn("the store does not hold what was stored; writing it again from memory", "fence", r.Fence(), "err", why)
	return r.fill(ctx)
}

func (r *Registry) fill(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	all, err := r.memory.all()
	if err != nil {
		return err
	}
	for _, ch := range r.unread {
		if all[ch.Bucket][ch.Name] == nil {
			all.Set(ch)
		}
	}
	fault.Point(fault.BeforeCommit)
	err = r.store.Replace(ctx, all)
	fault.Point(fault.AfterCommit)
	return err
}

// repair ends the damage that was found when the store was read.
func (r *Registry) repair(ctx context.Context) error {
	if r.damage.Load() == nil {
		return nil
	}
	if err := r.takeTurn(ctx); err != nil {
		return err
	}
	defer r.endTurn()
	if r.Fence() == 0 {
		return store.ErrFenced
	}
	unread := r.unread
	r.unread = nil
	err := r.fill(context.WithoutCancel(ctx))
	r.recordHealth(err)
	if err != nil {
		r.unread = unread
		return err
	}
	r.setDamage(nil)
	return nil
}

// Run keeps leadership, notices when the store is lost, writes the uses of tickets,
// and while another leads follows its changes. It returns ErrLeadershipLost once
// another leads after us. A store that does not answer is no reason to stop: see
// Healthy and Leading.
func (r *Registry) Run(ctx context.Context) error {
	var uses sync.WaitGroup
	defer uses.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	uses.Go(func() { r.keepUses(ctx) })
	ticker := time.NewTicker(min(checkEvery, r.options.LeaderTTL/3))
	defer ticker.Stop()
	for ctx.Err() == nil {
		if r.ended.Load() {
			return ErrLeadershipLost
		}
		if !r.led.Load() {
			if err := r.followOnce(ctx); err != nil {
				r.recordHealth(err)
				pause(ctx, checkEvery)
			}
			continue
		}
		if err := r.keep(ctx); errors.Is(err, store.ErrFenced) {
			return ErrLeadershipLost
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	return nil
}

// keep renews leadership, and brings the store back to memory where it differs.
func (r *Registry) keep(ctx context.Context) error {
	if err := r.takeTurn(ctx); err != nil {
		return nil
	}
	defer r.endTurn()
	if r.Fence() == 0 {
		return store.ErrFenced
	}
	asked := time.Now()
	err := r.renew(ctx)
	switch {
	case errors.Is(err, store.ErrHoles) && r.Damage() != nil:
		err = nil // until Adopt has filled them, they show what is missing
	case errors.Is(err, store.ErrLost):
		err = r.rewrite(ctx, err)
	}
	if err == nil && len(r.uncertain) > 0 {
		if err = r.repairUncertain(ctx); err == nil {
			clear(r.uncertain)
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	r.recordHealth(err)
	if err == nil {
		r.extend(asked)
	}
	return err
}

func (r *Registry) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	return r.store.Renew(ctx)
}

// followFor follows the leader for about d. Failures to do so are of no harm:
// everything is loaded before we lead.
func (r *Registry) followFor(ctx context.Context, d time.Duration) error {
	for end := time.Now().Add(d); time.Now().Before(end) && ctx.Err() == nil; {
		if err := r.followOnce(ctx); err != nil && ctx.Err() == nil {
			r.recordHealth(err)
			pause(ctx, d)
		}
	}
	return ctx.Err()
}

// followOnce takes over what the leader committed.
func (r *Registry) followOnce(ctx context.Context) error {
	r.following.Lock()
	defer r.following.Unlock()
	if r.Fence() != 0 {
		pause(ctx, store.FollowWait)
		return nil
	}
	b, stale, err := r.store.Follow(ctx)
	if err != nil {
		return err
	}
	if stale {
		_, err := r.reload(ctx)
		return err
	}
	if len(b) > 0 {
		r.logCorrupt(r.memory.apply(b))
		r.wake()
	}
	return nil
}

// setFence notes that we lead with this fencing number, or no more with 0.
func (r *Registry) setFence(fence uint64) {
	r.fence.Store(fence)
	if r.ended.Load() {
		fence = 0
		r.fence.Store(0)
	}
	if fence != 0 {
		r.led.Store(true)
	}
	r.metrics.leading.Set(float64(min(fence, 1)))
}

// extend notes that nobody else can lead for the time of a lease after asked.
func (r *Registry) extend(asked time.Time) {
	end := asked.Add(r.options.LeaderTTL)
	if r.options.RedisURL == "" {
		end = asked.Add(forever)
	}
	r.leaderUntil.Store(&end)
}

// recordHealth notes how a call to the store ended, and logs when that is news.
func (r *Registry) recordHealth(err error) {
	before := r.Healthy()
	switch {
	case err == nil:
		r.health.Store(nil)
		r.metrics.up.Set(1)
		if before != nil {
			r.log.Info("the store answers again")
		}
		return
	case errors.Is(err, store.ErrFenced):
		if r.Fence() != 0 {
			r.log.Error("leadership lost: another ingot leads", "fence", r.Fence())
		}
		r.setFence(0)
	case before == nil:
		r.log.Warn("the store cannot be used; continuing from memory", "err", err)
	}
	r.metrics.errors.Inc()
	r.metrics.up.Set(0)
	err = fmt.Errorf("store: %w", err)
	r.health.Store(&err)
}

// logCorrupt logs values that could not be read.
func (r *Registry) logCorrupt(bad []corrupt) {
	for _, c := range bad {
		r.metrics.corrupt.Inc()
		r.log.Error("stored value cannot be read and is ignored", "bucket", string(c.Bucket), "name", c.Name, "err", c.err)
	}
}

// pause waits, or not so long when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
