package registry

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// forever is when the lease of a store ends that only one process can open.
const forever = 100 * 365 * 24 * time.Hour

// Lead waits until we lead. With bbolt that is so already. Meanwhile the copy in
// memory follows the leader.
func (r *Registry) Lead(ctx context.Context) error {
	seen := ""
	for r.Fence() == 0 {
		holder, err := r.tryLead(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			r.judge(err)
		case holder == "":
			r.judge(nil)
			return nil
		case holder != seen:
			seen = holder
			r.judge(nil)
			r.log.Info("another ingot leads; waiting", "holder", holder)
		}
		if err := r.followFor(ctx, r.options.LeaseTTL/3); err != nil {
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
	asked := time.Now()
	fence, holder, err := r.acquire(ctx)
	if err != nil || holder != "" {
		return holder, err
	}
	fresh, err := r.reload(ctx)
	if err != nil {
		return "", err
	}
	switch {
	case fresh && r.memory.empty():
		err = r.fill(ctx)
	case fresh:
		err = r.rewrite(ctx)
	}
	if err != nil {
		return "", err
	}
	clear(r.unsure)
	r.extend(asked)
	r.setFence(fence)
	r.log.Info("leading", "fence", fence)
	return "", nil
}

func (r *Registry) acquire(ctx context.Context) (uint64, string, error) {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	return r.store.acquire(ctx)
}

// reload reads everything from the store, and reports whether it is fresh. What
// is in memory is kept then: it is all that is left.
func (r *Registry) reload(ctx context.Context) (fresh bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	c, fresh, err := r.store.load(ctx)
	if err != nil || fresh {
		return fresh, err
	}
	r.logCorrupt(r.memory.reset(c))
	r.wake()
	return false, nil
}

// rewrite fills a lost store from memory.
func (r *Registry) rewrite(ctx context.Context) error {
	r.metrics.lost.Inc()
	r.leaseEpoch.Add(1) // whether or not filling it succeeds, or is seen to
	r.log.Warn("the store was emptied, replaced or rolled back; writing it again from memory", "fence", r.Fence())
	return r.fill(ctx)
}

func (r *Registry) fill(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	all, err := r.memory.all()
	if err != nil {
		return err
	}
	err = r.store.replace(ctx, all)
	r.countFaults()
	r.durable.Store(r.store.durable())
	return err
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
	ticker := time.NewTicker(min(checkEvery, r.options.LeaseTTL/3))
	defer ticker.Stop()
	for ctx.Err() == nil {
		if !r.led.Load() {
			if err := r.followOnce(ctx); err != nil {
				r.judge(err)
				pause(ctx, checkEvery)
			}
			continue
		}
		if err := r.keep(ctx); errors.Is(err, ErrFenced) {
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
		return ErrFenced
	}
	asked := time.Now()
	err := r.renew(ctx)
	if errors.Is(err, errLost) {
		err = r.rewrite(ctx)
	}
	if err == nil && len(r.unsure) > 0 {
		if err = r.amend(ctx); err == nil {
			clear(r.unsure)
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	r.judge(err)
	if err == nil {
		r.extend(asked)
	}
	return err
}

func (r *Registry) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	return r.store.renew(ctx)
}

// followFor follows the leader for about d. Failures to do so are of no harm:
// everything is loaded before we lead.
func (r *Registry) followFor(ctx context.Context, d time.Duration) error {
	for end := time.Now().Add(d); time.Now().Before(end) && ctx.Err() == nil; {
		if err := r.followOnce(ctx); err != nil && ctx.Err() == nil {
			r.judge(err)
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
		pause(ctx, followWait)
		return nil
	}
	b, stale, err := r.store.follow(ctx)
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
	if fence != 0 {
		r.led.Store(true)
	}
	r.metrics.leading.Set(float64(min(fence, 1)))
}

// extend notes that nobody else can lead for the time of a lease after asked.
func (r *Registry) extend(asked time.Time) {
	end := asked.Add(r.options.LeaseTTL)
	if r.options.RedisURL == "" {
		end = asked.Add(forever)
	}
	r.leaseEnd.Store(&end)
}

// judge notes how a call to the store ended, and logs when that is news.
func (r *Registry) judge(err error) {
	before := r.Healthy()
	switch {
	case err == nil:
		r.health.Store(nil)
		if before != nil {
			r.log.Info("the store answers again")
		}
		return
	case errors.Is(err, ErrFenced):
		if r.Fence() != 0 {
			r.log.Error("leadership lost: another ingot leads", "fence", r.Fence())
		}
		r.setFence(0)
	case before == nil:
		r.log.Warn("the store cannot be used; going on from memory", "err", err)
	}
	r.metrics.errors.Inc()
	err = fmt.Errorf("store: %w", err)
	r.health.Store(&err)
}

// countFaults counts what the store found to be wrong with its leases, and told of.
func (r *Registry) countFaults() {
	if s, ok := r.store.(interface{ takeFaults() int }); ok {
		r.metrics.corrupt.Add(float64(s.takeFaults()))
	}
}

// logCorrupt tells of values that could not be read.
func (r *Registry) logCorrupt(bad []corrupt) {
	for _, c := range bad {
		r.metrics.corrupt.Inc()
		r.log.Error("stored value cannot be read and is ignored", "bucket", string(c.bucket), "name", c.name, "err", c.err)
	}
}

// pause waits, or not so long when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
